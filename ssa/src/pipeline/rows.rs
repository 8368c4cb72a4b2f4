//! The table itself, and the constraints on its order.

use tracing::{debug_span, trace_span};

use super::{Product::*, Row, Run, Stage, User};
use crate::passes::{if_convert, peephole, simplify, simplify_cfg};

/// One row: `name: needs -> makes, users, run, span, summary`.
macro_rules! row {
    ($name:literal: $needs:ident -> $makes:ident, [$($user:ident),*], $run:expr, $span:ident, $summary:literal) => {
        Row {
            name: $name,
            summary: $summary,
            needs: $needs,
            makes: $makes,
            users: &[$(User::$user),*],
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
    row!("ssa": Slots -> Ssa, [Jit, Opt], Run::Stage(Stage::Ssa), trace_span, "The IR in SSA form"),
    row!("peephole": Ssa -> Ssa, [Jit, Opt], Run::Pass(|editor| { peephole::run(editor); }), trace_span, "Masks, extensions and tests that do nothing removed"),
    row!("simplify": Ssa -> Ssa, [Opt], Run::Pass(|editor| { simplify::run(editor); }), trace_span, "Constants folded, unused code removed"),
    row!("simplify_cfg": Ssa -> Ssa, [Jit, Opt], Run::Pass(|editor| { simplify_cfg::run(editor); }), trace_span, "Blocks merged, branches that are decided skipped"),
    row!("if_convert": Ssa -> Ssa, [Jit], Run::Pass(|editor| { if_convert::run(editor); }), trace_span, "Branches around few cheap instructions as selects"),
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
    ("slots", "ssa", "promotion reads slots"),
    ("ssa", "simplify", "constants are seen through values, not through slots"),
    ("peephole", "simplify", "constants of operations that went are unused"),
    ("peephole", "simplify_cfg", "conditions without masks decide branches"),
    ("simplify", "destruct", "values that nothing uses need no slot"),
    ("simplify", "simplify_cfg", "folded branches leave blocks to merge"),
    ("simplify_cfg", "if_convert", "arms of a branch are seen past empty blocks"),
    ("if_convert", "clif", "Cranelift keeps the branches that it is given"),
    ("destruct", "write", "bytecode has locals, not phis"),
    ("simplify", "clif", "passes edit this IR, not Cranelift's"),
    ("clif", "asm", "Cranelift generates code from its IR"),
    ("asm", "place", "relocations are known once code is generated"),
];
