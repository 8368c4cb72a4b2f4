//! The columns after the IR: CLIF, native code, and other constructions of SSA form.

use std::collections::HashMap;

use slotvm::compiler::{BytecodePlace, CodeTarget, Effort, FunctionCode, Work};
use slotvm::{Compile, Config, Engine, Module, PassSet, SlotMode, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_bytecode::printable::counted;
use slotvm_ssa::construction::braun::BraunOptions;
use slotvm_ssa::construction::construct::Construction as Form;
use slotvm_ssa::construction::promote::{PromoteOptions, Scratch, promote_with};
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::print::InstPrinter;
use slotvm_ssa::passes::inline::ExitPlan;

use super::document::{CodeLine, Comparison, NativeLine};
use super::stages::Snapshot;
use super::{Construction, Request};
use crate::ViewError;
use crate::disassembly::{NativeInst, disassemble};
use crate::names::func_name;

/// A compiled function.
pub(super) struct Compiled {
    clif: String,
    code: FunctionCode,
    plan: Option<ExitPlan>,
}

/// The columns of a compiled function.
pub(super) struct Columns {
    pub(super) clif: Vec<CodeLine>,
    pub(super) native: Vec<NativeLine>,
}

/// The effort that a function was compiled with, if it is less than usual.
fn effort(work: Work) -> String {
    let cause = work.cause.map_or(String::new(), |cause| format!(": {}", cause.message()));
    match work.effort {
        Effort::AsAsked => String::new(),
        Effort::Unoptimised => format!("compiled without Cranelift's optimiser{cause}"),
        _ => format!("CLIF and native code are made of the slot form, not of SSA form{cause}"),
    }
}

/// Compiles the function.
///
/// # Errors
/// Fails if it cannot be compiled.
pub(super) fn compiled(request: &Request<'_>) -> Result<Compiled, ViewError> {
    let module = module(request, SlotMode::Ssa)?;
    let plan =
        request.executions.and_then(|executions| module.exits_after(executions, request.func));
    let code = match &plan {
        Some(plan) => module.code_with_exits(request.func, plan)?,
        None => module.clif(request.func)?.zip(module.machine_code(request.func)?),
    };
    let (clif, code) = code.expect("the module defines the function");
    Ok(Compiled { clif, code, plan })
}

impl Compiled {
    /// The passes that it went through.
    pub(super) fn passes(&self) -> PassSet {
        self.code.passes
    }

    /// Its exits, if it has any.
    pub(super) fn plan(&self) -> Option<&ExitPlan> {
        self.plan.as_ref()
    }

    /// A remark if it was compiled with less effort than usual.
    pub(super) fn effort(&self) -> String {
        effort(self.code.work)
    }

    /// The columns, with the locations of the function that the passes leave as `last`.
    ///
    /// # Errors
    /// Fails if the machine code cannot be taken apart.
    pub(super) fn columns(
        &self,
        request: &Request<'_>,
        last: &Function,
    ) -> Result<Columns, ViewError> {
        let locations = Locations::new(last);
        Ok(Columns {
            clif: clif_lines(&self.clif, request.func, &locations),
            native: native_lines(request, &self.code, &locations)?,
        })
    }
}

/// The instructions of the machine code.
fn native_lines(
    request: &Request<'_>,
    code: &FunctionCode,
    locations: &Locations,
) -> Result<Vec<NativeLine>, ViewError> {
    let insts = disassemble(code)?;
    let line = |inst: &NativeInst| {
        let range = inst.code.clone();
        let bytes = &code.bytes[range.start as usize..range.end as usize];
        let at = locations.find(code.places_at(range.start));
        NativeLine {
            address: range.start,
            bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            // Registers that the prologue saves come from no instruction.
            spill: !inst.is_data && at.is_some() && is_spill(&inst.text, &code.frame.slots),
            at,
            note: note(request.module, code, range),
            text: inst.text.clone(),
        }
    };
    Ok(insts.iter().map(line).collect())
}

/// Whether an instruction reads or writes the frame outside of slots: where spilled values, and arguments and results of
/// calls lie.
fn is_spill(text: &str, slots: &std::ops::Range<u32>) -> bool {
    let address = text.split_once("ptr [rsp").or_else(|| text.split_once("[sp"));
    let Some((_, rest)) = address else { return false };
    let offset =
        rest.split(']').next().unwrap_or_default().trim_start_matches([' ', '+', ',', '#']);
    let offset = match offset.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None if offset.is_empty() => Ok(0),
        None => offset.parse(),
    };
    offset.is_ok_and(|offset| !slots.contains(&offset))
}

/// The name that a relocation of the instruction stands for, or the trap that it raises.
fn note(
    module: &VerifiedModule,
    code: &FunctionCode,
    range: std::ops::Range<u32>,
) -> Option<String> {
    if let Some(relocation) = code.relocations_in(range.clone()).first() {
        return Some(match &relocation.target {
            CodeTarget::Func(func) => format!("f{func} {}", func_name(module, *func)),
            CodeTarget::Runtime(name) => format!("{name} of the runtime"),
            _ => "an address".to_owned(),
        });
    }
    let trap = code.traps_in(range).first()?;
    Some(trap.reason.map_or("error of a host function".into(), |reason| format!("trap: {reason}")))
}

/// The locations of a function by what they stand for.
struct Locations(HashMap<Vec<(u32, u32)>, u32>);

impl Locations {
    fn new(f: &Function) -> Locations {
        let mut chains: Vec<Vec<(u32, u32)>> = Vec::with_capacity(f.locs.len());
        let mut locations = HashMap::new();
        for (at, location) in (0..).zip(&f.locs) {
            let mut chain = vec![(location.func, location.offset)];
            // A location is inlined at an earlier one.
            if let Some(outer) = location.inlined_at {
                chain.extend_from_slice(&chains[outer.index()]);
            }
            locations.entry(chain.clone()).or_insert(at);
            chains.push(chain);
        }
        Locations(locations)
    }

    fn find(&self, places: &[BytecodePlace]) -> Option<u32> {
        let chain: Vec<(u32, u32)> =
            places.iter().map(|place| (place.func, place.offset)).collect();
        self.of_chain(&chain)
    }

    fn of_chain(&self, chain: &[(u32, u32)]) -> Option<u32> {
        self.0.get(chain).copied()
    }
}

fn module(request: &Request<'_>, slots: SlotMode) -> Result<Module, ViewError> {
    let mut config = Config::new();
    // Only one function is wanted.
    config.tier(Tier::Jit).compile(Compile::Lazy).slots(slots).passes(request.passes);
    let engine = Engine::new(&config)?;
    Ok(Module::from_verified(&engine, request.module.clone())?)
}

/// The lines of CLIF. An instruction has the code offset before it, and if it comes from an inlined function, a comment
/// with its place there and the calls that lead to it: `f2@0006 < @0016`.
fn clif_lines(clif: &str, func: u32, locations: &Locations) -> Vec<CodeLine> {
    let line = |line: &str| {
        let place = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let Some((offset, rest)) = place else {
            return CodeLine { text: line.trim().to_owned(), at: None };
        };
        let inlined = rest.split("; ").find(|comment| comment.contains(" < @"));
        let text = inlined.map_or_else(|| format!("@{offset}"), str::to_owned);
        let chain = text.trim().split(" < ").map(|place| {
            let (of, offset) = place.split_once('@')?;
            let func = of.strip_prefix('f').map_or(Some(func), |number| number.parse().ok())?;
            Some((func, u32::from_str_radix(offset, 16).ok()?))
        });
        let at = chain.collect::<Option<Vec<_>>>().and_then(|chain| locations.of_chain(&chain));
        CodeLine { text: format!("    {}", rest.trim_start()), at }
    };
    clif.lines().map(line).collect()
}

/// The constructions that were asked for, from the slot form that promotion gets.
///
/// # Errors
/// Fails if the function cannot be compiled.
pub(super) fn comparisons(
    request: &Request<'_>,
    input: &Snapshot,
    plan: Option<&ExitPlan>,
) -> Result<Vec<Comparison>, ViewError> {
    let comparison = |&construction: &Construction| match form(construction) {
        Some(form) => Ok(promoted(input, form)),
        None => of_cranelift(request, &input.function, plan),
    };
    request.compare.iter().map(comparison).collect()
}

fn form(construction: Construction) -> Option<Form> {
    Some(match construction {
        Construction::Maximal => Form::Maximal,
        Construction::Minimal => Form::Minimal,
        Construction::SemiPruned => Form::SemiPruned,
        Construction::Pruned => Form::Pruned,
        Construction::Braun => Form::Braun(BraunOptions::default()),
        Construction::Cranelift => return None,
    })
}

fn promoted(input: &Snapshot, construction: Form) -> Comparison {
    let mut f = input.function.clone();
    let options = PromoteOptions { construction, ..PromoteOptions::default() };
    let report = promote_with(&mut f, options, &mut Scratch::default());
    let summary = match report.too_large {
        Some(too_large) => format!("left in slot form: {too_large}"),
        None => counted(report.n_phis as u64, "phi", "phis"),
    };
    Comparison {
        name: construction.name().into(),
        summary,
        phis: report.n_phis,
        lines: function_lines(&f, &input.blocks),
    }
}

/// A function as lines, whose blocks have these numbers in the document. Values that promotion adds are numbered after
/// those of the slot form, as it comes.
fn function_lines(f: &Function, blocks: &[u32]) -> Vec<CodeLine> {
    let mut printer = InstPrinter::new(f, blocks.to_vec());
    let mut lines = vec![];
    for block in f.blocks() {
        let params: Vec<String> =
            f.params(block).iter().map(|&v| format!("{v}: {}", f.value_type(v))).collect();
        let params =
            if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
        let number = blocks[block.index()];
        lines.push(CodeLine { text: format!("b{number}{params}:"), at: None });
        for &inst in f.insts(block) {
            let text = format!("    {}", printer.inst(block, inst));
            lines.push(CodeLine { text, at: Some(f.loc(inst).0) });
        }
    }
    lines
}

/// The CLIF of the slot mode `variables`, before optimisation.
fn of_cranelift(
    request: &Request<'_>,
    slots: &Function,
    plan: Option<&ExitPlan>,
) -> Result<Comparison, ViewError> {
    let module = module(request, SlotMode::Variables)?;
    let clif = match plan {
        Some(plan) => module.code_with_exits(request.func, plan)?.map(|(clif, _)| clif),
        None => module.clif(request.func)?,
    };
    let clif = clif.expect("the module defines the function");
    let lines = clif_lines(&clif, request.func, &Locations::new(slots));
    let blocks = || clif.lines().map(str::trim_start).filter(|line| line.starts_with("block"));
    let phis = blocks().skip(1).map(|line| line.matches(": ").count()).sum();
    Ok(Comparison {
        name: "cranelift".into(),
        summary: format!("{phis} block parameters"),
        phis,
        lines,
    })
}
