//! Loading of `.bc`, `.vasm` and WebAssembly files, distinguished by file extension and first bytes.
//!
//! The extensions `bc`, `vasm` and `wasm` decide the format, so that a damaged file gets the error of its own
//! format. Without them the first bytes decide: WebAssembly has a magic number, and `.bc` starts with a byte
//! 0, which no text does.

use crate::decode::{DecodeError, decode};
use crate::module::Module;
use crate::section;
use crate::text::{self, ParseError, ParseOptions, parse_with};
use crate::verified::VerifiedModule;
use crate::verify::{Proof, VerifyError, verify_by};

/// Options of [`load`].
#[derive(Copy, Clone, Debug, Default)]
pub struct LoadOptions<'a> {
    /// The file extension, if any.
    pub extension: Option<&'a str>,
    /// Whether functions of a text without source lines of their own get the lines of the text.
    pub record_lines: bool,
    /// Whether to translate WebAssembly on several threads.
    pub is_parallel: bool,
    /// Whether to translate a function of WebAssembly only when [`VerifiedModule::func`] or [`VerifiedModule::body`] first
    /// asks for it. All functions are validated at once, so there is no later error. A module with vectors or functions of
    /// several results, or one that may exceed a limit, is translated at once all the same.
    pub is_lazy: bool,
    /// Whether the function bodies are known to be valid, since the same bytes were loaded before, so that
    /// [`LoadOptions::is_lazy`] need not validate them. If they are not after all, asking for a function that is not
    /// panics.
    pub is_validated: bool,
}

/// The format of a module.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A binary module (`.bc`).
    Binary,
    /// Assembler text (`.vasm`).
    Text,
    /// A WebAssembly binary (`.wasm`).
    Wasm,
}

impl Format {
    /// The format that a file is meant to have: by its extension, or else by its content. `None` if it has none of them:
    /// the magic number of a binary format, or text that is empty or starts with an item or an item's beginning.
    pub fn of(bytes: &[u8], extension: Option<&str>) -> Option<Format> {
        match extension {
            Some("bc") => return Some(Format::Binary),
            Some("vasm") => return Some(Format::Text),
            Some("wasm") => return Some(Format::Wasm),
            _ => {}
        }
        if bytes.starts_with(WASM_MAGIC) {
            return Some(Format::Wasm);
        }
        // A module that is cut off within its magic number is a damaged module.
        let n_magic = bytes.len().min(section::MAGIC.len());
        if bytes.starts_with(&section::MAGIC[..n_magic.max(1)]) {
            return Some(Format::Binary);
        }
        let source = std::str::from_utf8(bytes).ok()?;
        first_word(source).is_none_or(text::is_item).then_some(Format::Text)
    }
}

/// The magic number of WebAssembly, which is told apart in builds without the import, too.
const WASM_MAGIC: &[u8] = b"\0asm";

/// The first word of an assembler text, after comments; empty if something else is there.
fn first_word(source: &str) -> Option<&str> {
    let is_comment = |line: &&str| line.is_empty() || line.starts_with(';');
    let line = source.lines().map(str::trim_start).find(|line| !is_comment(line))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    Some(&line[..line.find(|c| !is_part(c)).unwrap_or(line.len())])
}

/// Error for a file that is not a module.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A binary module is malformed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A text has errors.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// A WebAssembly module is invalid or needs an unsupported feature.
    #[cfg(feature = "wasm")]
    #[error(transparent)]
    Wasm(#[from] crate::wasm::Error),
    /// The format is unknown.
    #[error("neither a binary module nor UTF-8 text")]
    UnknownFormat,
}

/// A module that has been loaded, and is not verified yet.
#[derive(Debug)]
pub struct Loaded {
    module: Module,
    /// What validation has proved about a WebAssembly module.
    proof: Proof,
}

impl Loaded {
    /// The number of functions that the module defines.
    pub fn n_defined_funcs(&self) -> usize {
        self.module.funcs.len()
    }

    /// Takes the module. Its functions are translated if they are not yet.
    pub fn into_module(self) -> Module {
        match self.proof.lazy {
            Some(mut lazy) => lazy.take_complete(self.module),
            None => self.module,
        }
    }

    /// Verifies the module, its functions on several threads if asked for. What validation has proved about a
    /// WebAssembly module is not checked again, except in builds with debug assertions.
    ///
    /// # Errors
    /// Fails with the first violated rule and its place.
    pub fn verify(self, is_parallel: bool) -> Result<VerifiedModule, VerifyError> {
        verify_by(self.module, self.proof, is_parallel)
    }
}

impl From<Module> for Loaded {
    fn from(module: Module) -> Loaded {
        Loaded { module, proof: Proof::default() }
    }
}

/// Loads a module from the contents of a file. Does not verify it.
///
/// # Errors
/// Fails if the bytes are not a module, or exceed a limit of [`crate::limits`].
pub fn load(bytes: &[u8], options: LoadOptions<'_>) -> Result<Loaded, LoadError> {
    let is_called = |extension| options.extension == Some(extension);
    #[cfg(feature = "wasm")]
    if bytes.starts_with(crate::wasm::MAGIC) || is_called("wasm") {
        let LoadOptions { is_parallel, is_lazy, is_validated, .. } = options;
        let options = crate::wasm::Options { is_parallel, is_lazy, is_validated };
        let (module, proof) = crate::wasm::import_by(bytes, options)?;
        return Ok(Loaded { module, proof });
    }
    let is_text = match bytes.first() {
        Some(&first) => first != 0 && !is_called("bc"),
        None => is_called("vasm"),
    };
    if !is_text {
        return Ok(decode(bytes)?.into());
    }
    let source = std::str::from_utf8(bytes).map_err(|_| LoadError::UnknownFormat)?;
    Ok(parse_with(source, ParseOptions { record_lines: options.record_lines })?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(bytes: &[u8], extension: Option<&str>) -> Result<Module, LoadError> {
        let loaded = load(bytes, LoadOptions { extension, ..LoadOptions::default() });
        loaded.map(Loaded::into_module)
    }

    const TEXT: &str = "func f() { return }";

    #[test]
    fn formats_are_told_apart_by_their_bytes() {
        let text = loaded(TEXT.as_bytes(), None).expect("it is text");
        let binary = loaded(&crate::encode(&text), None).expect("it is binary");
        assert_eq!(text, binary);
        assert!(matches!(loaded(b"\xff\xfe", None), Err(LoadError::UnknownFormat)));
        assert!(matches!(loaded(b"", None), Err(LoadError::Decode(_))));
        assert!(matches!(loaded(b"\0", None), Err(LoadError::Decode(_))));
    }

    #[test]
    fn a_file_has_the_errors_of_its_format() {
        assert!(matches!(loaded(b"func", Some("bc")), Err(LoadError::Decode(_))));
        assert!(matches!(loaded(b"func", Some("vasm")), Err(LoadError::Text(_))));
        assert!(loaded(b"", Some("vasm")).is_ok());
        #[cfg(feature = "wasm")]
        assert!(matches!(loaded(b"func", Some("wasm")), Err(LoadError::Wasm(_))));
    }

    #[test]
    fn what_is_no_module_is_told_apart_from_what_is_damaged() {
        let of = |bytes: &[u8]| Format::of(bytes, None);
        assert_eq!(of(b"\0svm\x01"), Some(Format::Binary));
        assert_eq!(of(b"\0sv"), Some(Format::Binary));
        assert_eq!(of(b"\0"), Some(Format::Binary));
        assert_eq!(of(b"\0asm\x01"), Some(Format::Wasm));
        for text in ["", "\n ; nothing\n", "; why: x\n\n  func f() {", "module\"m\"", "import"] {
            assert_eq!(of(text.as_bytes()), Some(Format::Text), "{text:?}");
        }
        for other in ["root:x:0:0", "#!/bin/sh", "{}", "\0elf", "\x7fELF", "(module)", "function f"]
        {
            assert_eq!(of(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(of(b"func \xff"), None);
        assert_eq!(Format::of(b"root:x", Some("vasm")), Some(Format::Text));
        assert_eq!(Format::of(b"root:x", Some("bc")), Some(Format::Binary));
    }

    #[test]
    fn lines_of_texts_are_recorded_if_asked_for() {
        let with = |record_lines| {
            let options = LoadOptions { record_lines, ..LoadOptions::default() };
            load(TEXT.as_bytes(), options).expect("it is text").into_module().funcs[0]
                .lines
                .is_empty()
        };
        assert!(with(false) && !with(true));
    }
}
