//! The table itself, and the constraints on its order.

use tracing::{debug_span, trace_span};

use super::{Growth, Outcome, PassContext, PassScratch, Product::*, Row, Run, Stage, User, When};
use crate::construction::build::{build_loop, build_with_exits};
use crate::construction::promote::promote_with;
use crate::ir::Function;
use crate::ir::edit::{Editor, edit};
use crate::passes::destruct::destruct;
use crate::passes::devirtualise::devirtualise;
use crate::passes::inline::{InlineReport, inline};
use crate::passes::pressure::pressure;
use crate::passes::roots::roots;
use crate::passes::rotate::rotate;
use crate::passes::{bounds, forward, if_convert, peephole, simplify, simplify_cfg, version};

/// One row: `name: needs -> makes, users, run, span, summary`, after the attributes that are not those of most rows.
macro_rules! row {
    (optional $($row:tt)*) => {
        Row { is_optional: true, ..row!($($row)*) }
    };
    (growing $($row:tt)*) => {
        Row { growth: Growth::Bounded, ..row!($($row)*) }
    };
    (multiplying $($row:tt)*) => {
        Row { growth: Growth::Manifold, ..row!($($row)*) }
    };
    (adding $($row:tt)*) => {
        Row { adds_effects: true, ..row!($($row)*) }
    };
    (checked $($row:tt)*) => {
        Row { when: When::Checked, ..row!($($row)*) }
    };
    (promoted $($row:tt)*) => {
        Row { when: When::Promoted, ..row!($($row)*) }
    };
    ($name:literal: $needs:ident -> $makes:ident, [$($user:ident),*], $run:expr, $span:ident, $summary:literal) => {
        Row {
            name: $name,
            summary: $summary,
            needs: $needs,
            makes: $makes,
            users: &[$(User::$user),*],
            is_optional: false,
            growth: Growth::None,
            adds_effects: false,
            when: When::Always,
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
    row!("slots": Verified -> Slots, [Jit, Opt], Run::Pass(slots), trace_span, "The IR with the locals in slots"),
    row!(optional multiplying "devirtualise": Slots -> Slots, [Jit], Run::Pass(devirtualised), trace_span, "Direct calls instead of indirect ones through constant tables"),
    row!(optional growing "inline": Slots -> Slots, [Jit], Run::Pass(inlined), trace_span, "The bodies of small functions instead of calls"),
    row!(optional growing "rotate": Slots -> Slots, [Jit], Run::Pass(|f, context| Outcome::grown_if(rotate(f, &mut context.scratch.analyses).n_loops > 0)), trace_span, "Loops that test at their end"),
    row!(adding "roots": Slots -> Slots, [Jit], Run::Pass(|f, context| kept(roots(f, context.module, &mut context.scratch.analyses))), trace_span, "References into the embedder's heap in cells that it visits during calls"),
    row!(optional promoted "pressure": Slots -> Slots, [Jit], Run::Pass(|f, context| kept(pressure(f, context.module, context.preserved, &mut context.scratch.analyses))), trace_span, "Slots that would only be spilled marked to stay in memory"),
    row!("ssa": Slots -> Ssa, [Jit, Opt], Run::Pass(ssa), trace_span, "The IR in SSA form"),
    row!(optional "forward": Ssa -> Ssa, [Jit], Run::Pass(forwarded), trace_span, "Values instead of loads of what is known in memory"),
    row!(optional "peephole": Ssa -> Ssa, [Jit, Opt], Run::Pass(|f, _| edited(f, peephole::run)), trace_span, "Masks, extensions and tests that do nothing removed"),
    row!(optional "simplify": Ssa -> Ssa, [Opt], Run::Pass(|f, _| changed(simplify::simplify(f))), trace_span, "Constants folded, unused code removed"),
    row!(optional "simplify_cfg": Ssa -> Ssa, [Jit, Opt], Run::Pass(|f, _| edited(f, simplify_cfg::run)), trace_span, "Blocks merged, branches that are decided skipped"),
    row!(optional "if_convert": Ssa -> Ssa, [Jit], Run::Pass(|f, _| edited(f, if_convert::run)), trace_span, "Branches around few cheap instructions as selects"),
    row!(optional growing checked "version": Ssa -> Ssa, [Jit], Run::Pass(|f, context| Outcome::grown_if(version::version(f, &mut context.scratch.analyses).n_loops > 0)), trace_span, "Loops without checks of what a guard in front of them checks"),
    row!(optional checked "bounds": Ssa -> Ssa, [Jit], Run::Pass(|f, context| kept(bounds::bounds(f, &mut context.scratch.analyses))), trace_span, "Accesses that are in bounds since an earlier one is"),
    row!("destruct": Ssa -> Slots, [Opt], Run::Pass(destructed), trace_span, "The IR out of SSA form, its values in slots"),
    row!("write": Slots -> Module, [Opt], Run::Stage(Stage::Write), trace_span, "Write bytecode"),
    row!("clif": Ssa -> Clif, [Jit], Run::Stage(Stage::Clif), trace_span, "Cranelift's IR"),
    row!("asm": Clif -> Asm, [Jit], Run::Stage(Stage::Asm), trace_span, "Machine code"),
    row!("place": Asm -> Code, [Jit], Run::Stage(Stage::Place), debug_span, "Place machine code into executable memory"),
];

/// The outcome of a pass that leaves blocks and edges as they are, whatever it reports.
fn kept<R>(_: R) -> Outcome {
    Outcome::Kept
}

/// The outcome of a pass that may change them.
fn changed<R>(_: R) -> Outcome {
    Outcome::Changed
}

/// Runs a pass that edits.
fn edited<R>(f: &mut Function, pass: impl FnOnce(&mut Editor<'_>) -> R) -> Outcome {
    let has_changed = edit(f, |editor| {
        pass(editor);
    });
    if has_changed { Outcome::Changed } else { Outcome::Kept }
}

fn slots(f: &mut Function, context: &mut PassContext<'_>) -> Outcome {
    let &mut PassContext { module, func, starts, exits, build: ref options, .. } = context;
    let scratch = &mut context.scratch.build;
    let built = match starts {
        [] => Some(build_with_exits(module, func, exits, options, scratch)),
        _ => build_loop(module, func, starts, exits, options, scratch),
    };
    // Otherwise frames of the interpreter that are in one of the loops cannot enter the form in the same way.
    let Some(built) = built else { return Outcome::GivenUp };
    *f = built;
    if context.takes_names {
        f.take_names(module);
    }
    Outcome::Changed
}

fn devirtualised(f: &mut Function, context: &mut PassContext<'_>) -> Outcome {
    let report = devirtualise(f, context.module, &mut context.scratch.analyses);
    if report.n_calls > 0 {
        // Calls have other numbers now.
        f.waiting.clear();
    }
    Outcome::grown_if(report.n_calls > 0)
}

fn inlined(f: &mut Function, context: &mut PassContext<'_>) -> Outcome {
    let PassScratch { build, callees, .. } = &mut *context.scratch;
    let (module, exits) = (context.module, context.body_exits);
    let report = inline(f, module, &context.build, exits, build, callees);
    if report == InlineReport::default() {
        return Outcome::Kept;
    }
    context.inlined = report.functions;
    // A tail call of the function itself became a branch.
    if context.inlined.is_empty() { Outcome::Changed } else { Outcome::Grown }
}

fn ssa(f: &mut Function, context: &mut PassContext<'_>) -> Outcome {
    let report = promote_with(f, context.promotion, &mut context.scratch.promote);
    context.promoted = Some(report);
    if report.too_large.is_some() { Outcome::GivenUp } else { Outcome::Kept }
}

fn forwarded(f: &mut Function, _: &mut PassContext<'_>) -> Outcome {
    let report = forward::forward(f);
    // Loops that carry values have a block in front of them.
    if report.n_loops > 0 { Outcome::Changed } else { Outcome::Kept }
}

fn destructed(f: &mut Function, context: &mut PassContext<'_>) -> Outcome {
    let report = destruct(f);
    context.locals = report.locals;
    if report.is_too_large { Outcome::GivenUp } else { Outcome::Changed }
}

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
    ("inline", "roots", "a call that is inlined is no place where references move"),
    ("rotate", "roots", "copies of blocks call as well"),
    ("roots", "ssa", "promotion places phis for references that calls define anew"),
    ("roots", "pressure", "slots are read and written around calls"),
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
