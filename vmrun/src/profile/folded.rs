//! Folded stacks: a line `main;f;g 123` for each path of calls, with the number of instructions executed in its last
//! function. `flamegraph.pl`, `inferno-flamegraph` and speedscope read it.

use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::Printable;

use super::collect::{Collector, DEEPER, OTHERS};
use slotvm_views::names::func_name;

/// The lines, sorted.
pub fn render(collector: &Collector, module: &VerifiedModule) -> String {
    let line = |(funcs, instructions): (Vec<u32>, u64)| {
        let names: Vec<String> = funcs.into_iter().map(|func| name(module, func)).collect();
        format!("{} {instructions}\n", names.join(";"))
    };
    let mut lines: Vec<String> = collector.paths().into_iter().map(line).collect();
    lines.sort_unstable();
    lines.concat()
}

/// The name of a function, without characters that have a meaning in the format.
fn name(module: &VerifiedModule, func: u32) -> String {
    match func {
        DEEPER => return "[deeper]".to_owned(),
        OTHERS => return "[others]".to_owned(),
        _ => {}
    }
    Printable(&func_name(module, func)).to_string().replace(';', ":")
}
