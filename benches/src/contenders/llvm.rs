//! The pass `mem2reg` of LLVM, by its tool `opt`, which reports the time of the pass itself.

use std::fmt::Write;
use std::time::Duration;

use slotvm_filetests::opt::Opt;
use slotvm_ssa::graphs::cfg::ControlFlow;

use crate::slot_graph::{Access, SlotGraph, Written};

/// The name of the contender.
pub const MEM2REG: &str = "LLVM";

/// Passes that count as the construction: promotion, and the analyses that it asks for.
const PASSES: [&str; 3] = ["PromotePass", "DominatorTreeAnalysis", "AssumptionAnalysis"];

/// Returns the time of the pass for all functions of a module, as `opt` reports it: in tenths of a millisecond.
///
/// # Errors
/// Fails if `opt` refuses the module, or does not say what is expected.
pub fn time(opt: &Opt, module: &str) -> Result<Duration, String> {
    let report = opt.time_report("mem2reg", module)?;
    let times = PASSES.map(|pass| report.lines().find_map(|line| pass_seconds(line, pass)));
    match times[0] {
        Some(_) => Ok(Duration::from_secs_f64(times.into_iter().flatten().sum())),
        None => Err("`opt` reports no time of mem2reg".to_owned()),
    }
}

/// The phis that the pass leaves in all functions of a module.
///
/// # Errors
/// Fails if `opt` refuses the module.
pub fn n_phis(opt: &Opt, module: &str) -> Result<usize, String> {
    let text = opt.run("mem2reg", module)?;
    Ok(text.lines().filter(|line| line.contains(" = phi ")).count())
}

/// The user and system time in a line of the report, if it is of this pass:
/// `0.0001 ( 78.5%)   0.0001 ( 78.5%)   0.0001 ( 78.5%)   0.0001 ( 78.9%)  PromotePass`.
fn pass_seconds(line: &str, pass: &str) -> Option<f64> {
    let times = line.trim_end().strip_suffix(pass)?;
    // Each time is followed by its share; the last one is elapsed time. A column that would be all
    // zero is left out.
    let times: Vec<f64> =
        times.split(')').filter_map(|part| part.split('(').next()?.trim().parse().ok()).collect();
    times.iter().rev().nth(1).copied()
}

/// A module of LLVM IR with all these functions. Each slot is an `alloca` of an `i64`.
pub fn module<'g>(graphs: impl IntoIterator<Item = &'g SlotGraph>) -> String {
    let mut text = String::from("declare void @use(...)\n");
    for (number, graph) in graphs.into_iter().enumerate() {
        write_function(&mut text, number, graph).expect("a string takes any text");
    }
    text
}

fn write_function(text: &mut String, number: usize, graph: &SlotGraph) -> std::fmt::Result {
    writeln!(text, "define void @f{number}(i1 %c, i64 %i) {{")?;
    let (mut next_read, mut next_constant) = (0, 0);
    for block in 0..graph.n_blocks() as u32 {
        writeln!(text, "b{block}:")?;
        if block == 0 {
            for slot in 0..graph.n_slots {
                writeln!(text, "%s{slot} = alloca i64")?;
            }
        }
        let first_read = next_read;
        for &access in graph.accesses(block) {
            match access {
                Access::Read { slot } => {
                    writeln!(text, "%r{next_read} = load i64, ptr %s{slot}")?;
                    next_read += 1;
                }
                Access::Write { slot, value: Written::New } => {
                    writeln!(text, "store i64 {next_constant}, ptr %s{slot}")?;
                    next_constant += 1;
                }
                Access::Write { slot, value: Written::Read(read) } => {
                    writeln!(text, "store i64 %r{read}, ptr %s{slot}")?;
                }
            }
        }
        if first_read < next_read {
            write!(text, "call void (...) @use(i64 %r{first_read}")?;
            for read in first_read + 1..next_read {
                write!(text, ", i64 %r{read}")?;
            }
            writeln!(text, ")")?;
        }
        match graph.cfg.succs(block) {
            [] => writeln!(text, "ret void")?,
            [only] => writeln!(text, "br label %b{only}")?,
            [taken, other] => writeln!(text, "br i1 %c, label %b{taken}, label %b{other}")?,
            [targets @ .., last] => {
                writeln!(text, "switch i64 %i, label %b{last} [")?;
                for (i, target) in targets.iter().enumerate() {
                    writeln!(text, "i64 {i}, label %b{target}")?;
                }
                writeln!(text, "]")?;
            }
        }
    }
    writeln!(text, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph_text;

    #[test]
    fn times_of_a_pass_are_read() {
        let line =
            "   0.0001 ( 78.5%)   0.0020 ( 78.5%)   0.0021 ( 78.5%)   0.0300 ( 78.9%)  PromotePass";
        assert_eq!(pass_seconds(line, "PromotePass"), Some(0.0021));
        assert_eq!(pass_seconds(line, "DominatorTreeAnalysis"), None);
        let line = "   1.5000 (100.0%)   1.5000 (100.0%)   1.6000 ( 98.0%)  PromotePass";
        assert_eq!(pass_seconds(line, "PromotePass"), Some(1.5));
    }

    #[test]
    fn a_module_has_the_accesses_of_the_graph() {
        let text = "\
function f
slots 1
block 0 -> 1 2 1
  w 0
  r 0
block 1 -> 2
  w 0 r0
block 2
";
        let expected = "\
declare void @use(...)
define void @f0(i1 %c, i64 %i) {
b0:
%s0 = alloca i64
store i64 0, ptr %s0
%r0 = load i64, ptr %s0
call void (...) @use(i64 %r0)
switch i64 %i, label %b1 [
i64 0, label %b1
i64 1, label %b2
]
b1:
store i64 %r0, ptr %s0
br label %b2
b2:
ret void
}
";
        assert_eq!(module(&graph_text::parse(text).expect("it is a graph")), expected);
    }
}
