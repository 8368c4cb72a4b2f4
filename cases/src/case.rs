//! The format of a file test.
//!
//! A case is a header of comments, the input, and the expected output of each stage:
//!
//! ```text
//! ; stages: slots, ssa
//! ; why: a loop-carried local needs a phi at the header
//! func sum(n: i64) -> i64 { … }
//! ; run: sum(5) == 15
//! ; run: sum(-1) == 0
//! ; run: quotient(1, 0) traps integer division by zero @0004
//!
//! === slots
//! …
//! === ssa
//! …
//! ```
//!
//! * `stages` names the sections, in order; it may be missing.
//! * `why` states the property that the case shows; every case has one.
//! * `target: x86_64` names the architecture of the sections; on others only the calls are made. Cases
//!   whose stages depend on the machine have one.
//! * `run: f(arguments) == results` calls a function by name, in every engine. Instead of results
//!   there may be `traps MESSAGE @OFFSET`, with the code offset of the trap in hexadecimal.
//! * `idom: b1 <- b0, b2 <- b0` states the immediate dominator of each block except the entry. The case
//!   has one function. There may be several such lines.
//! * `error: TEXT` stands at the end of an offending line: assembling or verifying fails there, with a
//!   message that contains the text. Such a case has no stages and no runs.
//!
//! A `.vasm` case starts from bytecode, a `.ssa` case from the text IR of one function.

use std::fmt;

/// A parsed case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The names of the expected sections.
    pub stages: Vec<String>,
    /// The architecture that the sections are for, if they depend on it, as in
    /// [`std::env::consts::ARCH`].
    pub target: Option<String>,
    /// Everything before the first section, which is the program: directives are comments in it.
    pub input: String,
    /// The calls to make.
    pub runs: Vec<Run>,
    /// Blocks and their immediate dominators, if the case states them.
    pub idoms: Vec<(String, String)>,
    /// The error to expect.
    pub error: Option<ExpectedError>,
    /// The stage and the expected text of each section.
    pub sections: Vec<(String, String)>,
}

/// A call and its expected outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The line of the directive, from 1.
    pub line: usize,
    /// The name of the function.
    pub func: String,
    /// The arguments as they are written.
    pub args: Vec<String>,
    /// The expected outcome.
    pub expected: Expected,
}

/// The expected outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Results, as they are written.
    Results(Vec<String>),
    /// A trap with this message at this code offset.
    Trap {
        /// The message of the trap code.
        message: String,
        /// The code offset in the function that traps.
        offset: u32,
    },
}

/// An error on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedError {
    /// The offending line, from 1.
    pub line: usize,
    /// A substring of the message.
    pub text: String,
}

/// The error for a malformed case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The line, from 1.
    pub line: usize,
    /// The error message.
    pub message: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for CaseError {}

const SECTION: &str = "=== ";

impl Case {
    /// Parses a case.
    ///
    /// # Errors
    /// Fails if a directive is malformed, `why` is missing, or the sections are not those of `stages`.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        let fail = |line, message: &str| Err(CaseError { line, message: message.into() });
        let (input, sections) = split(text);
        let mut case = Case {
            stages: Vec::new(),
            target: None,
            input: input.to_owned(),
            runs: Vec::new(),
            idoms: Vec::new(),
            error: None,
            sections,
        };
        let mut why = false;
        for (line, text) in input.lines().enumerate().map(|(i, text)| (i + 1, text)) {
            let Some((_, comment)) = text.split_once(';') else { continue };
            let Some((key, value)) = comment.split_once(':') else { continue };
            let value = value.trim();
            match key.trim() {
                "stages" => case.stages = value.split(',').map(|s| s.trim().to_owned()).collect(),
                "target" => case.target = Some(value.to_owned()),
                "why" => why = !value.is_empty(),
                "run" => match Run::parse(line, value) {
                    Some(run) => case.runs.push(run),
                    None => return fail(line, "expected `run: f(arguments) == results`"),
                },
                "idom" => match parse_idoms(value) {
                    Some(idoms) => case.idoms.extend(idoms),
                    None => return fail(line, "expected `idom: b1 <- b0, b2 <- b1`"),
                },
                "error" if case.error.is_some() => return fail(line, "duplicate `error:`"),
                "error" => case.error = Some(ExpectedError { line, text: value.to_owned() }),
                _ => {}
            }
        }
        if !why {
            return fail(1, "missing `; why: …`");
        }
        let has_checks = !(case.stages.is_empty() && case.runs.is_empty() && case.idoms.is_empty());
        if case.error.is_some() && has_checks {
            return fail(1, "a case with `error:` cannot have stages, runs or `idom:`");
        }
        if case.target.is_none() && case.stages.iter().any(|stage| stage.starts_with("clif")) {
            return fail(1, "the stage `clif` depends on the machine; expected `; target: …`");
        }
        if case.error.is_none() && !has_checks {
            return fail(1, "the case checks nothing; expected stages, runs, `idom:` or an error");
        }
        Ok(case)
    }

    /// Whether there is a section for each stage, in order.
    pub fn has_all_sections(&self) -> bool {
        self.sections.iter().map(|(stage, _)| stage).eq(&self.stages)
    }

    /// Whether the sections are for the architecture of this machine.
    pub fn is_for_this_machine(&self) -> bool {
        self.target.as_ref().is_none_or(|target| target == std::env::consts::ARCH)
    }

    /// The text of the file with its sections replaced by these.
    pub fn with_sections(&self, sections: &[(String, String)]) -> String {
        let mut text = self.input.trim_end().to_owned();
        text.push('\n');
        for (stage, section) in sections {
            text.push_str(&format!("\n{SECTION}{stage}\n{}\n", section.trim_end()));
        }
        text
    }
}

/// Splits a file into its input, and the stage and text of each section.
fn split(text: &str) -> (&str, Vec<(String, String)>) {
    let mut input = text;
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(stage) = line.strip_prefix(SECTION) {
            if sections.is_empty() {
                input = &text[..start];
            }
            sections.push((stage.trim().to_owned(), String::new()));
        } else if let Some((_, section)) = sections.last_mut() {
            section.push_str(line);
        }
        start += line.len();
    }
    for (_, section) in &mut sections {
        *section = format!("{}\n", section.trim_end());
    }
    (input, sections)
}

fn parse_idoms(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (block, idom) = pair.split_once("<-")?;
        Some((block.trim().to_owned(), idom.trim().to_owned()))
    };
    text.split(',').map(pair).collect()
}

impl Run {
    fn parse(line: usize, text: &str) -> Option<Run> {
        let (func, rest) = text.split_once('(')?;
        let (args, rest) = rest.split_once(')')?;
        let rest = rest.trim();
        let list = |text: &str| -> Vec<String> {
            text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
        };
        let expected = if let Some(results) = rest.strip_prefix("==") {
            Expected::Results(list(results))
        } else {
            let (message, offset) = rest.strip_prefix("traps ")?.rsplit_once('@')?;
            let offset = u32::from_str_radix(offset.trim(), 16).ok()?;
            Expected::Trap { message: message.trim().to_owned(), offset }
        };
        Some(Run { line, func: func.trim().to_owned(), args: list(args), expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "; stages: slots\n; why: it shows\nfunc f() {\n}\n; run: f(1, -2) == 3\n; run: g() traps integer overflow @00a0\n\n=== slots\nb0:\n\n";

    #[test]
    fn a_case_has_runs_and_sections() {
        let case = Case::parse(TEXT).expect("parses");
        assert_eq!(case.stages, ["slots"]);
        assert_eq!(case.sections, [("slots".to_owned(), "b0:\n".to_owned())]);
        assert_eq!(case.runs[0].args, ["1", "-2"]);
        assert_eq!(case.runs[0].expected, Expected::Results(vec!["3".into()]));
        let trap = Expected::Trap { message: "integer overflow".into(), offset: 0xa0 };
        assert_eq!(case.runs[1].expected, trap);
        assert!(case.has_all_sections());
    }

    #[test]
    fn immediate_dominators_may_come_in_several_lines() {
        let text = "; why: x\n; idom: b1 <- b0, b2 <- b1\nb0: ; idom: b3<-b0\n";
        let idoms = Case::parse(text).expect("parses").idoms;
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(idoms, [pair("b1", "b0"), pair("b2", "b1"), pair("b3", "b0")]);
    }

    #[test]
    fn rewriting_with_its_own_sections_changes_nothing_but_space() {
        let case = Case::parse(TEXT).expect("parses");
        let text = case.with_sections(&case.sections);
        assert_eq!(
            Case::parse(&text),
            Ok(Case { input: case.input.trim_end().to_owned() + "\n\n", ..case })
        );
    }

    #[test]
    fn sections_can_be_those_of_a_machine() {
        let with = |target: &str| Case::parse(&format!("; target: {target}\n{TEXT}")).unwrap();
        assert!(Case::parse(TEXT).unwrap().is_for_this_machine());
        assert!(with(std::env::consts::ARCH).is_for_this_machine());
        assert!(!with("pdp11").is_for_this_machine());
        assert_eq!(Case::parse("; why: x\n; stages: clif\n").unwrap_err().line, 1);
    }

    #[test]
    fn what_checks_nothing_is_refused() {
        assert_eq!(Case::parse("; why: no reason\n").unwrap_err().line, 1);
        assert_eq!(Case::parse("; run: f() == 1\n").unwrap_err().line, 1);
        assert_eq!(Case::parse("; why: x\n; run: f( == 1\n").unwrap_err().line, 2);
        assert_eq!(Case::parse("; why: x\n; idom: b1 b0\n").unwrap_err().line, 2);
        assert!(Case::parse("; why: x\nlocal.get 7 ; error: index\n").is_ok());
    }
}
