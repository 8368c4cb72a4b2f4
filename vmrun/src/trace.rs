//! `--trace`: each instruction with the operand stack before it, on standard error.

use std::fmt::Write as _;
use std::io::Write as _;

use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::text::Printer;
use slotvm_runtime::{TraceEvent, TraceFn};

use slotvm_views::names::func_name;

/// A trace function that prints.
pub fn to_stderr() -> TraceFn {
    std::sync::Arc::new(|event| {
        // The program continues even if nobody reads the trace.
        let _ = writeln!(std::io::stderr().lock(), "{}", Printable(&line(event)));
    })
}

/// `depth function @offset instruction ; operands`, the deepest operand first, as cells.
fn line(event: &TraceEvent<'_>) -> String {
    /// Operands of a line.
    const OPERANDS_SHOWN_MAX: usize = 8;
    let printer = Printer::new(event.module.module());
    let inst = printer.func(event.func).inst(event.inst);
    let name = func_name(event.module, event.func);
    let mut line = format!("{:>3} {name} @{:04x}  {inst:<28} ;", event.depth, event.offset);
    let hidden = event.stack.len().saturating_sub(OPERANDS_SHOWN_MAX);
    if hidden > 0 {
        line.push_str(" …");
    }
    for cell in &event.stack[hidden..] {
        write!(line, " {cell:#x}").expect("writing to a string succeeds");
    }
    line
}
