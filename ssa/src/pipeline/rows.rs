//! The table itself, and the constraints on its order.

use tracing::{debug_span, trace_span};

use super::{Product::*, Row, Run, Stage, User};
use crate::ir::edit::edit;
use crate::passes::{bounds, forward, if_convert, peephole, simplify, simplify_cfg, version};

/// One row: `name: needs -> makes, users, run, span, summary`, after `optional` if it can be switched off.
macro_rules! row {
    (optional $($row:tt)*) => {
        Row { is_optional: true, ..row!($($row)*) }
    };
    ($name:literal: $needs:ident -> $makes:ident, [$($user:ident),*], $run:expr, $span:ident, $summary:literal) => {
        Row {
            name: $name,
            summary: $summary,
            needs: $needs,
            makes: $makes,
            users: &[$(User::$user),*],
            is_optional: false,
            run: $run,
            span: || $span!($name, bytes = tracing::field::Empty, functions = tracing::field::Empty),
        }
    };
}

/// All stages and passes, in the order in which they run.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row!("load": Bytes -> Module, [Jit, Opt], Run::Stage(Stage::Load), debug_span, "Decode, assemble or import a module"),
    row!("verify": Module -> Verified, [Jit, Opt], Run::Stage(Stage::Verify), debug_span, "Verify the bytecode"),
    row!("slots": Verified -> Slots, [Jit, Opt], Run::Stage(Stage::Slots), trace_span, "The IR with the locals in slots"),
    row!(optional "devirtualise": Slots -> Slots, [Jit], Run::Stage(Stage::Devirtualise), trace_span, "Direct calls instead of indirect ones through constant tables"),
    row!(optional "inline": Slots -> Slots, [Jit], Run::Stage(Stage::Inline), trace_span, "The bodies of small functions instead of calls"),
    row!(optional "rotate": Slots -> Slots, [Jit], Run::Stage(Stage::Rotate), trace_span, "Loops that test at their end"),
    row!(optional "pressure": Slots -> Slots, [Jit], Run::Stage(Stage::Pressure), trace_span, "Slots that would only be spilled marked to stay in memory"),
    row!("ssa": Slots -> Ssa, [Jit, Opt], Run::Stage(Stage::Ssa), trace_span, "The IR in SSA form"),
    row!(optional "forward": Ssa -> Ssa, [Jit], Run::Pass(|f| { forward::forward(f); }), trace_span, "Values instead of loads of what is known in memory"),
    row!(optional "peephole": Ssa -> Ssa, [Jit, Opt], Run::Pass(|f| edit(f, |editor| { peephole::run(editor); })), trace_span, "Masks, extensions and tests that do nothing removed"),
    row!(optional "simplify": Ssa -> Ssa, [Opt], Run::Pass(|f| { simplify::simplify(f); }), trace_span, "Constants folded, unused code removed"),
    row!(optional "simplify_cfg": Ssa -> Ssa, [Jit, Opt], Run::Pass(|f| edit(f, |editor| { simplify_cfg::run(editor); })), trace_span, "Blocks merged, branches that are decided skipped"),
    row!(optional "if_convert": Ssa -> Ssa, [Jit], Run::Pass(|f| edit(f, |editor| { if_convert::run(editor); })), trace_span, "Branches around few cheap instructions as selects"),
    row!(optional "version": Ssa -> Ssa, [Jit], Run::Pass(|f| { version::version(f); }), trace_span, "Loops without checks of what a guard in front of them checks"),
    row!(optional "bounds": Ssa -> Ssa, [Jit], Run::Pass(|f| { bounds::bounds(f); }), trace_span, "Accesses that are in bounds since an earlier one is"),
    row!("destruct": Ssa -> Slots, [Opt], Run::Stage(Stage::Destruct), trace_span, "The IR out of SSA form, its values in slots"),
    row!("write": Slots -> Module, [Opt], Run::Stage(Stage::Write), trace_span, "Write bytecode"),
    row!("clif": Ssa -> Clif, [Jit], Run::Stage(Stage::Clif), trace_span, "Cranelift's IR"),
    row!("asm": Clif -> Asm, [Jit], Run::Stage(Stage::Asm), trace_span, "Machine code"),
    row!("place": Asm -> Code, [Jit], Run::Stage(Stage::Place), debug_span, "Place machine code into executable memory"),
];

/// Constraints on the order of rows: the first stands before the second, because of the third.
pub const ORDER: &[(&str, &str, &str)] = &[
    ("load", "verify", "only a module can be verified"),
    ("verify", "slots", "building relies on what the verifier has proved"),
    ("slots", "devirtualise", "calls are replaced in slot form"),
    ("devirtualise", "inline", "calls that became direct can be inlined"),
    ("slots", "inline", "the bodies of functions are joined in slot form"),
    ("inline", "ssa", "one promotion sees the slots of all functions that were joined"),
    ("inline", "rotate", "the loops of functions that were joined are loops as well"),
    ("rotate", "ssa", "promotion places phis for what copies of blocks write"),
    ("rotate", "pressure", "copies of headers make other values live round a loop"),
    ("pressure", "ssa", "promotion leaves the marked slots alone"),
    ("slots", "ssa", "promotion reads slots"),
    ("ssa", "simplify", "constants are seen through values, not through slots"),
    ("ssa", "forward", "addresses are seen through values, not through slots"),
    ("forward", "clif", "passes edit this IR, not Cranelift's"),
    ("peephole", "simplify", "constants of operations that went are unused"),
    ("peephole", "simplify_cfg", "conditions without masks decide branches"),
    ("simplify", "destruct", "values that nothing uses need no slot"),
    ("simplify", "simplify_cfg", "folded branches leave blocks to merge"),
    ("simplify_cfg", "if_convert", "arms of a branch are seen past empty blocks"),
    ("simplify_cfg", "version", "tests of loops are plain comparisons"),
    ("if_convert", "version", "copies of branches are converted once"),
    ("version", "bounds", "accesses that no guard covers may follow one that is checked"),
    ("forward", "bounds", "loads that become values show nothing"),
    ("if_convert", "bounds", "marks depend on instructions that stay where they are"),
    ("bounds", "clif", "checks are made by the lowering"),
    ("if_convert", "clif", "Cranelift keeps the branches that it is given"),
    ("destruct", "write", "bytecode has locals, not phis"),
    ("simplify", "clif", "passes edit this IR, not Cranelift's"),
    ("clif", "asm", "Cranelift generates code from its IR"),
    ("asm", "place", "relocations are known once code is generated"),
];
