//! `vmrun explain`: a function in every stage of the pipeline, as a page, as JSON or as text.
//!
//! `explain` runs the rows of [`slotvm_ssa::pipeline`] on one function and keeps what each of them leaves, records
//! films of promotion, draws the blocks, and adds CLIF and native code. The result is a `Document`: `--json` writes
//! it, the page carries it, `text` prints it. With a profile, the function has the exits that the default tier would give
//! it. It relies on passes that keep the ids of instructions and values, so that a value and a block have one number in all
//! stages.

mod blocks;
mod bytecode;
mod code;
pub mod document;
mod exits;
mod films;
mod form;
mod layout;
mod ledger;
pub mod page;
mod stack;
mod stages;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use slotvm::PassSet;
use slotvm::compiler::Executions;
use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::is_buildable;
use slotvm_ssa::ir::entity::{Slot as SlotId, Value as ValueId};
use slotvm_ssa::ir::{Function, SlotOrigin};

use self::blocks::BlockNumbers;
use self::document::{Block, Document, Exit, FunctionHead, Location, SCHEMA, Slot, Value};
use self::form::Subject;
use self::stages::Stages;
use crate::ViewError;
use crate::names::func_name;

/// A construction of SSA form to show beside the one that compiles.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Construction {
    /// A phi of every slot in every block with several predecessors
    Maximal,
    /// Phis where writes meet
    Minimal,
    /// The same, for slots that are live in some block
    SemiPruned,
    /// Phis where writes meet and the slot is live, as LLVM's mem2reg places them
    Pruned,
    /// Construction on the fly, after Braun et al.
    Braun,
    /// Variables of cranelift-frontend
    Cranelift,
}

/// The function to explain, and the way to compile it.
pub struct Request<'a> {
    /// The module.
    pub module: &'a Arc<VerifiedModule>,
    /// The function, by number.
    pub func: u32,
    /// The passes that are asked for.
    pub passes: PassSet,
    /// The constructions to show beside the one that compiles.
    pub compare: &'a [Construction],
    /// The path that the document names.
    pub program: &'a Path,
    /// The executions of a run of the module, if its exits are to be shown.
    pub executions: Option<&'a Executions>,
    /// The text of the program, if its lines are what the code's lines are about.
    pub source: Option<&'a str>,
}

/// Makes the document of a function.
///
/// # Errors
/// Fails if the function cannot be compiled.
pub fn explain(request: &Request<'_>) -> Result<Document, ViewError> {
    let &Request { module, func, .. } = request;
    let too_large = || ViewError::Failed("the function is too large for the IR".into());
    if !is_buildable(module, func) {
        return Err(too_large());
    }
    let compiled = code::compiled(request)?;
    let passes = compiled.passes();
    let subject = Subject { module, func, plan: compiled.plan() };
    let slots = subject.slot_form();
    let mut numbers = BlockNumbers::default();
    let mut stages = Stages::new(&mut numbers);
    let passed = subject.promoted(&slots, passes, |row, f| stages.add(row, f));
    let last = passed.map_err(|error| ViewError::Failed(error.to_string()))?;
    let stages = stages.finish();
    let input = &stages.promotion_input;
    let phis = films::phis(&input.function);
    let columns = compiled.columns(request, &last)?;
    let exits = compiled.plan().map_or(vec![], |plan| exits::list(module, &slots, plan));
    Ok(Document {
        schema: SCHEMA,
        generator: format!("vmrun {}", env!("CARGO_PKG_VERSION")),
        program: request.program.display().to_string(),
        function: head(module, func, &compiled),
        functions: function_names(module, func, &last, &exits),
        slots: slot_list(&input.function),
        source: source_lines(request),
        bytecode: bytecode::lines(module, &slots, &stages.slot_blocks, compiled.plan()),
        locations: locations(&last),
        values: value_list(&last, &input.function, &phis),
        blocks: block_list(module, func, &numbers),
        comparisons: code::comparisons(request, input, compiled.plan())?,
        clif: columns.clif,
        native: columns.native,
        ledger: ledger::ledger(module, input, &phis),
        films: films::record(&input.function, &input.blocks),
        graph: layout::draw(&stages.union),
        profile: counts(request),
        exits,
        stages: stages.stages,
    })
}

fn head(module: &VerifiedModule, func: u32, compiled: &code::Compiled) -> FunctionHead {
    let ty = module.func_type(func);
    let names =
        |types: &[slotvm_bytecode::ValType]| types.iter().map(|ty| ty.to_string()).collect();
    FunctionHead {
        index: func,
        name: func_name(module, func),
        params: names(&ty.params),
        results: names(&ty.results),
        target: slotvm::host_target().to_string(),
        effort: compiled.effort(),
    }
}

/// The functions that code of the document comes from or calls.
fn function_names(
    module: &VerifiedModule,
    func: u32,
    last: &Function,
    exits: &[Exit],
) -> Vec<(u32, String)> {
    use slotvm_bytecode::Op;
    use slotvm_ssa::ir::irop::Opcode;
    let mut funcs: BTreeSet<u32> = last.locs.iter().map(|location| location.func).collect();
    funcs.insert(func);
    funcs.extend(exits.iter().flat_map(|exit| &exit.callees));
    for block in last.blocks() {
        for &inst in last.insts(block) {
            if let Opcode::Op(Op::Call | Op::ReturnCall | Op::RefFunc) = last.opcode(inst) {
                funcs.insert(last.imm(inst).low());
            }
        }
    }
    funcs.into_iter().map(|func| (func, func_name(module, func))).collect()
}

/// The number of executions of each block of the function's bytecode, by the code offset of its start.
fn counts(request: &Request<'_>) -> Vec<(u32, u64)> {
    let function =
        request.executions.and_then(|executions| executions.functions.get(&request.func));
    let blocks = function.into_iter().flat_map(|function| &function.blocks);
    blocks.map(|(&offset, &count)| (offset, count)).collect()
}

/// A slot's origin as a phrase.
fn origin_text(origin: SlotOrigin) -> String {
    match origin {
        SlotOrigin::Local(local) => format!("local {local}"),
        SlotOrigin::Stack(depth) => format!("operand {depth}"),
        SlotOrigin::Inlined(number) => format!("inlined {number}"),
    }
}

fn slot_list(f: &Function) -> Vec<Slot> {
    let keys = f.slot_keys().into_iter().zip(&f.slots).enumerate();
    keys.map(|(i, (key, slot))| Slot {
        key,
        name: f.slot_name(SlotId::new(i)).unwrap_or_default().to_owned(),
        ty: slot.ty.to_string(),
        origin: origin_text(slot.origin),
    })
    .collect()
}

fn source_lines(request: &Request<'_>) -> Vec<(u32, String)> {
    let Some(source) = request.source else { return vec![] };
    let body = request.module.func(request.func).expect("the module defines the function");
    let wanted: BTreeSet<u32> = body.lines.iter().map(|&(_, place)| place.line).collect();
    let lines = (1..).zip(source.lines()).filter(|(number, _)| wanted.contains(number));
    lines.map(|(number, line)| (number, line.trim_end().to_owned())).collect()
}

fn locations(f: &Function) -> Vec<Location> {
    let location = |at: &slotvm_ssa::ir::LocData| Location {
        func: at.func,
        offset: at.offset,
        inlined_at: at.inlined_at.map(|at| at.0),
    };
    f.locs.iter().map(location).collect()
}

/// The type of each value, and the slot of phis and parameters.
fn value_list(last: &Function, input: &Function, phis: &[films::Phi]) -> Vec<Value> {
    let mut slots: BTreeMap<u32, u32> = phis.iter().map(|phi| (phi.value, phi.slot)).collect();
    let params = input.params(Function::ENTRY);
    for (slot, data) in (0..).zip(&input.slots) {
        if let SlotOrigin::Local(local) = data.origin
            && let Some(param) = params.get(local as usize)
        {
            slots.insert(param.0, slot);
        }
    }
    (0..last.n_values() as u32)
        .map(|value| {
            let id = ValueId(value);
            let name = last.value_name(id).unwrap_or_default().to_owned();
            Value { ty: last.value_type(id).to_string(), name, slot: slots.get(&value).copied() }
        })
        .collect()
}

/// The name of a label, or what it is called without one.
fn label_name(module: &VerifiedModule, func: u32, label: u32) -> String {
    let name = module.module().names.label(func, label);
    name.map_or_else(|| format!("label {label}"), str::to_owned)
}

fn block_list(module: &VerifiedModule, func: u32, numbers: &BlockNumbers) -> Vec<Block> {
    let block = |&(label, offset): &(Option<u32>, u32)| Block {
        label: label.map(|label| label_name(module, func, label)),
        offset,
    };
    numbers.origins.iter().map(block).collect()
}
