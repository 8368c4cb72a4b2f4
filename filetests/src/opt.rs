//! Runs LLVM's `opt`, if it is installed, and parses the parts of its output that tests compare.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The oldest supported version.
const VERSION_MIN: u32 = 19;

/// Candidates, in order: the names in Debian's packages, their paths, and the plain name.
const PROGRAMS: &[&str] =
    &["opt-19", "opt-20", "opt-21", "opt-22", "/usr/lib/llvm-19/bin/opt", "opt"];

/// An `opt` of LLVM 19 or later.
#[derive(Copy, Clone, Debug)]
pub struct Opt {
    program: &'static str,
    /// The major version.
    pub version: u32,
}

impl Opt {
    /// Finds an `opt`.
    ///
    /// # Errors
    /// Fails if none is found. The error lists older versions.
    pub fn find() -> Result<Opt, String> {
        let mut older = Vec::new();
        for program in PROGRAMS {
            match version(program) {
                Some(version) if version >= VERSION_MIN => return Ok(Opt { program, version }),
                Some(version) => older.push(format!("; `{program}` is LLVM {version}")),
                None => {}
            }
        }
        let older = older.concat();
        Err(format!("found no `opt` of LLVM {VERSION_MIN} or later (Debian: llvm-19){older}"))
    }

    /// Runs passes, such as `mem2reg`, on the text of a module, and returns the text of the result.
    ///
    /// # Errors
    /// Fails if LLVM refuses the module, with its message.
    pub fn run(&self, passes: &str, module: &str) -> Result<String, String> {
        self.run_with(&[&format!("-passes={passes}")], Input::Text(module))
    }

    /// Runs passes on a file.
    ///
    /// # Errors
    /// Fails if LLVM refuses the module, with its message.
    pub fn run_on_file(&self, passes: &str, file: &Path) -> Result<String, String> {
        self.run_with(&[&format!("-passes={passes}")], Input::File(file))
    }

    /// Runs passes on the text of a module, and returns the report of their times.
    ///
    /// # Errors
    /// Fails if LLVM refuses the module, with its message.
    pub fn time_report(&self, passes: &str, module: &str) -> Result<String, String> {
        let args = [&format!("-passes={passes}"), "-time-passes", "-info-output-file=-"];
        self.run_with(&[&args[..], &["-disable-output"]].concat(), Input::Text(module))
    }

    fn run_with(&self, args: &[&str], input: Input<'_>) -> Result<String, String> {
        let mut opt = Command::new(self.program);
        opt.args(args).args(["-S", "-o", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        match input {
            Input::Text(_) => opt.arg("-").stdin(Stdio::piped()),
            Input::File(file) => opt.arg(file).stdin(Stdio::null()),
        };
        let failed = |error: std::io::Error| format!("{}: {error}", self.program);
        let mut child = opt.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // If opt stops reading, it reports the reason itself.
            if let (Some(mut stdin), Input::Text(text)) = (stdin, input) {
                scope.spawn(move || stdin.write_all(text.as_bytes()));
            }
            child.wait_with_output().map_err(failed)
        })?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    }
}

#[derive(Copy, Clone)]
enum Input<'a> {
    Text(&'a str),
    File(&'a Path),
}

/// The major version of an `opt`, if it is one.
fn version(program: &str) -> Option<u32> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (_, version) = text.split_once("LLVM version ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A function in the text of a module.
#[derive(Clone, Debug, Default)]
pub struct LlvmFunction<'t> {
    /// Its name, with quotes if it has any.
    pub name: &'t str,
    /// Its blocks, in the order of the text.
    pub blocks: Vec<LlvmBlock<'t>>,
}

/// A block of it.
#[derive(Clone, Debug, Default)]
pub struct LlvmBlock<'t> {
    /// Its name, with quotes if it has any; empty for an entry block without one.
    pub name: &'t str,
    /// Its phis.
    pub phis: Vec<LlvmPhi<'t>>,
    /// The lines of all other instructions.
    pub rest: Vec<&'t str>,
}

/// A phi.
#[derive(Clone, Debug)]
pub struct LlvmPhi<'t> {
    /// Its name, with the `%`.
    pub name: &'t str,
    /// Value for each in-edge, and the block that the edge leaves, without the `%`.
    pub operands: Vec<(&'t str, &'t str)>,
}

/// Parses the functions that a module defines, in the text that `opt` writes.
///
/// # Errors
/// Fails if a line is not as expected, with the line.
pub fn functions(text: &str) -> Result<Vec<LlvmFunction<'_>>, String> {
    let mut functions = Vec::new();
    let mut open: Option<LlvmFunction<'_>> = None;
    for line in text.lines() {
        let wrong = || format!("unexpected: {line}");
        match &mut open {
            None => {
                if line.starts_with("define ") {
                    let (_, rest) = line.split_once('@').ok_or_else(wrong)?;
                    let name = &rest[..find_outside_quotes(rest, "(").ok_or_else(wrong)?];
                    open = Some(LlvmFunction { name, blocks: Vec::new() });
                }
            }
            Some(_) if line == "}" => functions.extend(open.take()),
            Some(function) => {
                read_line(function, line).ok_or_else(wrong)?;
            }
        }
    }
    Ok(functions)
}

/// Parses a line of a function; `None` if it is malformed.
fn read_line<'t>(function: &mut LlvmFunction<'t>, line: &'t str) -> Option<()> {
    if line.is_empty() {
        return Some(());
    }
    let Some(inst) = line.strip_prefix("  ") else {
        let name = &line[..find_outside_quotes(line, ":")?];
        function.blocks.push(LlvmBlock { name, ..LlvmBlock::default() });
        return Some(());
    };
    if function.blocks.is_empty() {
        function.blocks.push(LlvmBlock::default());
    }
    let block = function.blocks.last_mut()?;
    match find_outside_quotes(inst, " = phi ") {
        Some(end) => block.phis.push(LlvmPhi { name: &inst[..end], operands: operands(inst)? }),
        None => block.rest.push(inst),
    }
    Some(())
}

/// The `[ value, %block ]` of a phi.
fn operands(phi: &str) -> Option<Vec<(&str, &str)>> {
    let mut operands = Vec::new();
    let mut rest = phi;
    while let Some(start) = find_outside_quotes(rest, "[ ") {
        rest = &rest[start + 2..];
        let value = &rest[..find_outside_quotes(rest, ", %")?];
        rest = &rest[value.len() + 3..];
        let block = &rest[..find_outside_quotes(rest, " ]")?];
        rest = &rest[block.len() + 2..];
        operands.push((value, block));
    }
    Some(operands)
}

/// The first position of a part outside quoted names. A quote in a name is escaped as its number.
fn find_outside_quotes(text: &str, part: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().enumerate().find_map(|(i, byte)| {
        is_quoted ^= byte == b'"';
        (!is_quoted && text.as_bytes()[i..].starts_with(part.as_bytes())).then_some(i)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phis_are_read() {
        let text = "\
declare void @g(i32)

define void @\"f, (\"(i32 %x) {
  br label %\"b, ]: \"

\"b, ]: \":                                        ; preds = %\"b, ]: \", %0
  %s0.0 = phi i32 [ %x, %0 ], [ %\"a, b\", %\"b, ]: \" ]
  call void @g(i32 %s0.0)
  br label %\"b, ]: \"
}
";
        let functions = functions(text).unwrap();
        let [function] = &functions[..] else { panic!("{functions:?}") };
        let [entry, block] = &function.blocks[..] else { panic!("{function:?}") };
        assert_eq!((function.name, entry.name, block.name), ("\"f, (\"", "", "\"b, ]: \""));
        assert_eq!(block.phis[0].name, "%s0.0");
        assert_eq!(block.phis[0].operands, [("%x", "0"), ("%\"a, b\"", "\"b, ]: \"")]);
        assert_eq!(block.rest, ["call void @g(i32 %s0.0)", "br label %\"b, ]: \""]);
    }

    #[test]
    fn what_is_no_function_is_refused() {
        assert_eq!(functions("define f").unwrap_err(), "unexpected: define f");
        let text = "define void @f() {\n  %x = phi i32 [ 1, b ]\n}\n";
        assert_eq!(functions(text).unwrap_err(), "unexpected:   %x = phi i32 [ 1, b ]");
    }
}
