//! Comments at the top of programs in C, C++ and Rust, which describe how a program is run.
//!
//! | line | meaning |
//! |---|---|
//! | `// arg: A` | an argument |
//! | `// env: NAME=VALUE` | a variable of the environment |
//! | `// stdin: FILE` | the input is this file beside the source; without this line it is empty |
//! | `// dir: D` | the program may use a copy of this directory beside the source, under the same name |
//! | `// exit: CODE` | the program ends with this code instead of 0 |
//! | `// default-size: N` | the argument of `main` for the expected output |
//! | `// bench-size: N` | the argument of `main` in measurements |

use std::io;
use std::path::{Path, PathBuf};

/// A parsed comment. All fields except [`default_size`](Description::default_size) and
/// [`bench_size`](Description::bench_size) are for WASI programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The arguments, without the name of the program.
    pub args: Vec<String>,
    /// The variables of the environment, each as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The file that is the input.
    pub stdin: Option<String>,
    /// The directories that the program may use.
    pub dirs: Vec<String>,
    /// The exit code.
    pub exit: i32,
    /// The size that the expected output was made with.
    pub default_size: Option<i32>,
    /// The size to measure with.
    pub bench_size: Option<i32>,
}

/// The source of NAME.wasm or NAME.O2.wasm, which is beside it: NAME.c, NAME.cc or NAME.rs. It is NAME.c if there
/// is none.
pub fn source(module: &Path) -> PathBuf {
    let file_name = module.file_name().unwrap_or_default().to_string_lossy();
    let name = file_name.split('.').next().unwrap_or_default();
    let beside = |ending: &str| module.with_file_name(format!("{name}.{ending}"));
    let found = ["c", "cc", "rs"].map(beside).into_iter().find(|source| source.exists());
    found.unwrap_or_else(|| beside("c"))
}

impl Description {
    /// Reads the comment of a source file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or a number is malformed.
    pub fn read(source: &Path) -> io::Result<Description> {
        let text = std::fs::read_to_string(source)?;
        Description::of(&text)
            .map_err(|message| io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// Parses the comment of a source.
    ///
    /// # Errors
    /// Fails if a number is malformed.
    pub fn of(source: &str) -> Result<Description, String> {
        let mut description = Description::default();
        for line in source.lines() {
            let said = line.strip_prefix("// ").and_then(|line| line.split_once(':'));
            let Some((what, text)) = said else { continue };
            let text = text.strip_prefix(' ').unwrap_or(text);
            let number = || text.parse().map_err(|_| format!("`{line}`: expected a number"));
            match what {
                "arg" => description.args.push(text.to_owned()),
                "env" => description.env.push(text.to_owned()),
                "stdin" => description.stdin = Some(text.to_owned()),
                "dir" => description.dirs.push(text.to_owned()),
                "exit" => description.exit = number()?,
                "default-size" => description.default_size = Some(number()?),
                "bench-size" => description.bench_size = Some(number()?),
                _ => {}
            }
        }
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_read() {
        let source = "// A program: it does nothing.\n//\n// arg: a b\n// arg:\n// env: A=b=c\n\
                      // stdin: file\n// dir: work\n// exit: 7\n// bench-size: 12\nint x; // arg: none\n";
        let expected = Description {
            args: vec!["a b".into(), String::new()],
            env: vec!["A=b=c".into()],
            stdin: Some("file".into()),
            dirs: vec!["work".into()],
            exit: 7,
            default_size: None,
            bench_size: Some(12),
        };
        assert_eq!(Description::of(source), Ok(expected));
    }

    #[test]
    fn what_should_be_a_number_is_one() {
        let error = Description::of("// exit: seven\n").unwrap_err();
        assert_eq!(error, "`// exit: seven`: expected a number");
    }
}
