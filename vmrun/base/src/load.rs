//! Reads and writes files of programs, `-` for standard input and output, and loads them: all formats of the library, and
//! WebAssembly text.

use std::borrow::Cow;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use slotvm::Engine;
use slotvm_bytecode::load::{self, Format, LoadError, LoadOptions};
use slotvm_bytecode::{Module, VerifiedModule, encode};

use crate::error::CliError;

/// A loaded program and how long loading took.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub module: VerifiedModule,
    /// Time of decoding or assembling.
    pub load: Duration,
    /// Time of verification.
    pub verify: Duration,
}

/// The name that stands for standard input and output.
pub const STANDARD: &str = "-";

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// Reads a file, or standard input if its name is `-`. Whoever asks for standard input again gets the same bytes.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read(path: &Path) -> Result<Cow<'static, [u8]>, CliError> {
    static INPUT: OnceLock<Vec<u8>> = OnceLock::new();
    if !is_standard(path) {
        return fs::read(path).map(Cow::Owned).map_err(CliError::file(path));
    }
    if let Some(input) = INPUT.get() {
        return Ok(Cow::Borrowed(input));
    }
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input).map_err(CliError::file(path))?;
    Ok(Cow::Borrowed(INPUT.get_or_init(|| input)))
}

/// Writes a file, or standard output if its name is `-`.
///
/// # Errors
/// Fails if the file cannot be written, or what is written is not text and standard output is a terminal.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    if !is_standard(path) {
        return fs::write(path, bytes).map_err(CliError::file(path));
    }
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        let message = "a binary module is not written to a terminal; name a file with --output";
        return Err(CliError::Usage(message.into()));
    }
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// The path of the output of a command that makes one file of another: that which was asked for, or the source with
/// another extension; standard output for standard input.
///
/// # Errors
/// Fails if the source would be overwritten.
pub fn output(asked: Option<&Path>, source: &Path, extension: &str) -> Result<PathBuf, CliError> {
    let output = match asked {
        Some(asked) => asked.to_owned(),
        None if is_standard(source) => source.to_owned(),
        None => source.with_extension(extension),
    };
    check_output(&output, source)?;
    Ok(output)
}

/// Refuses an output that is the program itself, and one in a missing folder, before work is done for it.
///
/// # Errors
/// Fails if the output is the program, or its folder cannot be found.
pub fn check_output(output: &Path, source: &Path) -> Result<(), CliError> {
    let is_same = || match (output.canonicalize(), source.canonicalize()) {
        (Ok(output), Ok(source)) => output == source,
        _ => output == source,
    };
    if is_standard(output) {
        return Ok(());
    }
    if is_standard(source) || !is_same() {
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = folder.map(|folder| fs::metadata(folder.join("."))).transpose();
        return found.map(drop).map_err(CliError::file(output));
    }
    let message = format!("{} would be overwritten; name another file", output.display());
    Err(CliError::Usage(message))
}

/// Reads a file as text, or standard input if its name is `-`.
///
/// # Errors
/// Fails if the file cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, CliError> {
    let bytes = read(path)?.into_owned();
    String::from_utf8(bytes).map_err(|_| CliError::module(path, "expected text in UTF-8"))
}

/// The extension of a file's name, and `wat` for WebAssembly text without one.
///
/// # Errors
/// Fails if the content is none of a program.
fn extension_of<'p>(path: &'p Path, bytes: &[u8]) -> Result<Option<&'p str>, CliError> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension == Some("wat") || Format::of(bytes, extension).is_some() {
        return Ok(extension);
    }
    match is_wat(bytes) {
        true => Ok(Some("wat")),
        false => {
            let message = "not a slotvm program; expected a binary module (.bc), assembler text (.vasm), \
                           a WebAssembly module (.wasm, .wat) or a precompiled program (.vmc)";
            Err(CliError::module(path, message))
        }
    }
}

/// Whether text begins with a parenthesis, as that of WebAssembly does and that of the assembler does not.
fn is_wat(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b";;"));
    lines.next().is_some_and(|line| line.starts_with(b"(")) && str::from_utf8(bytes).is_ok()
}

/// Reads a module without verifying it.
///
/// # Errors
/// Fails if the file cannot be read, or is neither a binary module nor text that assembles.
pub fn load_module(path: &Path) -> Result<Module, CliError> {
    Ok(load_unverified(path, false)?.into_module())
}

fn load_unverified(path: &Path, is_lazy: bool) -> Result<load::Loaded, CliError> {
    let bytes = read(path)?;
    if Engine::detect_precompiled(&bytes) {
        return Err(CliError::module(path, "a precompiled program, which can only be run"));
    }
    let extension = extension_of(path, &bytes)?;
    // Traps name the lines of the text, unless it has line directives of its own.
    let options = LoadOptions {
        extension,
        record_lines: true,
        is_parallel: true,
        is_lazy,
        ..LoadOptions::default()
    };
    let loaded = if extension == Some("wat") {
        let bytes = assemble_wat(path, &bytes)?;
        load::load(&bytes, LoadOptions { extension: Some("wasm"), ..options })
    } else {
        load::load(&bytes, options)
    };
    loaded.map_err(|error| match error {
        LoadError::Text(error) => {
            CliError::Text(Box::new(error.with_path(path.display().to_string())))
        }
        error => CliError::module(path, error),
    })
}

/// Assembles WebAssembly text, with its places as DWARF.
#[cfg(feature = "wat")]
fn assemble_wat(path: &Path, text: &[u8]) -> Result<Vec<u8>, CliError> {
    let path = if is_standard(path) { Path::new("stdin") } else { path };
    let mut parser = wat::Parser::new();
    let bytes = parser.generate_dwarf(wat::GenerateDwarf::Lines).parse_bytes(Some(path), text);
    bytes.map(Cow::into_owned).map_err(|error| CliError::module(path, error))
}

#[cfg(not(feature = "wat"))]
fn assemble_wat(_: &Path, _: &[u8]) -> Result<Vec<u8>, CliError> {
    Err(CliError::NotBuilt { what: "WebAssembly text", feature: "wat" })
}

/// Reads a program in a binary form: what [`load_module`] makes of it, or a WebAssembly module as it is.
///
/// # Errors
/// Fails if the file cannot be read, or if it is text with errors.
pub fn load_bytes(path: &Path) -> Result<Cow<'static, [u8]>, CliError> {
    let bytes = read(path)?;
    if Engine::detect_precompiled(&bytes) {
        return Ok(bytes);
    }
    let is_text = bytes.first().is_none_or(|&first| first != 0);
    match extension_of(path, &bytes)? {
        Some("wat") => assemble_wat(path, &bytes).map(Cow::Owned),
        Some("bc" | "wasm") => Ok(bytes),
        _ if is_text => Ok(Cow::Owned(encode(&load_module(path)?))),
        _ => Ok(bytes),
    }
}

/// Reads and verifies a program.
///
/// # Errors
/// Fails like [`load_module`], and if the module does not verify.
pub fn load(path: &Path) -> Result<Loaded, CliError> {
    load_by(path, false)
}

/// Reads and verifies a program like [`load()`]. Its functions are translated when they are first called, if possible.
///
/// # Errors
/// Fails like [`load()`].
pub fn load_lazily(path: &Path) -> Result<Loaded, CliError> {
    load_by(path, true)
}

fn load_by(path: &Path, is_lazy: bool) -> Result<Loaded, CliError> {
    let start = Instant::now();
    let loaded = load_unverified(path, is_lazy)?;
    let load = start.elapsed();
    let start = Instant::now();
    let module = loaded.verify(true).map_err(|error| CliError::module(path, error))?;
    Ok(Loaded { module, load, verify: start.elapsed() })
}
