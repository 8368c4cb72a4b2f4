//! Properties 9 to 14 and 18 to 21: instructions one by one.

use std::collections::HashSet;

use slotvm_bytecode::inst::check_lane;
use slotvm_bytecode::typing::{self, OperandStack};
use slotvm_bytecode::{FuncType, Imm, ImmKind, Op, ValType};

use super::{Context, Form, Property, Violation, require};
use crate::ir::branch_hints;
use crate::ir::entity::{Inst, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode, is_in_ir};
use crate::ir::{Entry, Function, LocData, SlotOrigin};

/// Checks the properties that do not depend on the graph.
pub(super) fn check_types(
    f: &Function,
    form: Form,
    context: &impl Context,
) -> Result<(), Violation> {
    let entry_params = f.params(Function::ENTRY).iter().map(|&param| f.value_type(param));
    require!(
        entry_params.clone().eq(f.ty.params.iter().copied()),
        EntryParams,
        "the entry has parameters of types {:?}; expected {:?} by the function's type",
        entry_params.collect::<Vec<_>>(),
        f.ty.params
    );
    if let Entry::Frame(state) = &f.entry {
        check_state(f, state)?;
    }
    check_locs(f, context)?;
    check_slots(f)?;
    let mut expected = Types::default();
    for block in f.blocks() {
        for &inst in f.insts(block) {
            check_inst(f, inst, form, context, &mut expected)?;
        }
    }
    Ok(())
}

/// Checks the state of the frame that a function is entered from.
fn check_state(f: &Function, state: &FrameState) -> Result<(), Violation> {
    require!(
        state.func == f.func
            && state.caller.is_none()
            && state.call.is_none()
            && !state.blocks.is_empty()
            && !state.places.contains(&FramePlace::Callee),
        EntryParams,
        "the function is entered from the frame {state}; expected one of f{} at some block",
        f.func
    );
    let params = f.params(Function::ENTRY);
    require!(
        state.places.len() == params.len(),
        EntryParams,
        "the entry has {} parameters, and its frame {} places",
        params.len(),
        state.places.len()
    );
    check_places(f, state, params).or_else(|detail| violated(Property::EntryParams, detail))
}

/// Checks the places of the values of a frame.
fn check_places(f: &Function, state: &FrameState, values: &[Value]) -> Result<(), String> {
    let mut taken = HashSet::new();
    for (&value, &place) in values.iter().zip(&state.places) {
        let ty = f.value_type(value);
        let (second, is_right) = match place {
            FramePlace::Cell(cell) if ty == ValType::V128 => {
                (cell.checked_add(1).map(FramePlace::Cell), true)
            }
            FramePlace::Cell(_) => (None, true),
            FramePlace::FrameSp | FramePlace::Block => (None, ty == ValType::I32),
            FramePlace::Callee => (None, ty == ValType::FuncRef),
        };
        if !is_right {
            return Err(format!("v{} has type {ty}, and its place is {place}", value.0));
        }
        // At another block, operands of other sizes may lie below, and another one in the cell.
        if state.blocks.len() > 1 {
            continue;
        }
        for place in [Some(place), second].into_iter().flatten() {
            if !taken.insert(place) {
                return Err(format!("two values lie in {place}"));
            }
        }
    }
    Ok(())
}

/// Checks the frames of an exit, of which the list has the state.
fn check_exit(f: &Function, inst: Inst, context: &impl Context) -> Result<(), Violation> {
    let state = &f.exits[f.imm(inst).0 as usize];
    let mut values = f.operands(inst);
    let n_places = state.places().count();
    require!(
        n_places == values.len(),
        ExitFrames,
        "{inst} has {} values, and its frames {n_places} places",
        values.len()
    );
    for (i, state) in state.frames().enumerate() {
        let is_frame = context.func_type(state.func).is_some()
            && match state.call {
                None => i == 0 && state.blocks.len() == 1,
                Some(_) => state.blocks.is_empty(),
            };
        let n_callees = state.places.iter().filter(|&&place| place == FramePlace::Callee).count();
        let is_frame = is_frame && n_callees == usize::from(i == 0 && state.call.is_some());
        require!(
            is_frame,
            ExitFrames,
            "{inst} leaves for {state}; expected a function at one block or after a call with its callee, and callers after calls"
        );
        let (own, outer) = values.split_at(state.places.len());
        check_places(f, state, own).or_else(|detail| violated(Property::ExitFrames, detail))?;
        values = outer;
    }
    Ok(())
}

fn violated(property: Property, detail: String) -> Result<(), Violation> {
    Err(Violation { property, detail })
}

fn check_locs(f: &Function, context: &impl Context) -> Result<(), Violation> {
    for (i, &LocData { func, inlined_at, .. }) in f.locs.iter().enumerate() {
        let exists = context.func_type(func).is_some();
        require!(exists, Locations, "l{i} names f{func}, which does not exist");
        let earlier = inlined_at.is_none_or(|at| at.index() < i);
        require!(
            earlier,
            Locations,
            "l{i} is inlined at {inlined_at:?}; expected an earlier location"
        );
    }
    Ok(())
}

fn check_slots(f: &Function) -> Result<(), Violation> {
    let mut keys: Vec<_> = f.slots.iter().map(|slot| (slot.origin.key(), slot.ty)).collect();
    keys.sort_unstable();
    // What a stack position is may change from block to block; any other slot has one type.
    const STACK: u8 = SlotOrigin::Stack(0).key().0;
    let is_same = |a: &((u8, u32), ValType), b: &((u8, u32), ValType)| {
        a.0 == b.0 && (a.0.0 != STACK || a.1 == b.1)
    };
    let distinct = keys.windows(2).all(|pair| !is_same(&pair[0], &pair[1]));
    require!(distinct, SlotsDistinct, "two slots stand for the same local or operand");
    Ok(())
}

/// The operand and result types of an operation.
#[derive(Default)]
struct Types {
    operands: Vec<ValType>,
    results: Vec<ValType>,
}

impl Types {
    fn clear(&mut self) {
        self.operands.clear();
        self.results.clear();
    }

    fn set(&mut self, operands: &[ValType], results: &[ValType]) {
        self.clear();
        self.operands.extend_from_slice(operands);
        self.results.extend_from_slice(results);
    }
}

fn check_inst(
    f: &Function,
    inst: Inst,
    form: Form,
    context: &impl Context,
    expected: &mut Types,
) -> Result<(), Violation> {
    let opcode = f.opcode(inst);
    let name = opcode.mnemonic();
    let is_bytecode_only = match opcode {
        Opcode::Op(op) => !is_in_ir(op),
        Opcode::Ir(_) => false,
    };
    require!(!is_bytecode_only, OpcodeOfIr, "{inst} is {name}");
    let is_slot_access = matches!(opcode, Opcode::Ir(op) if op.is_slot_access());
    let is_kept =
        || f.slots.get(f.imm(inst).low() as usize).is_some_and(|slot| slot.kept.is_some());
    let may_access = form == Form::Slots || !is_slot_access || is_kept();
    require!(may_access, NoSlotAccess, "{inst} is {name}");
    require!(f.loc(inst).index() < f.locs.len(), Locations, "{inst} has {}", f.loc(inst));

    let operands = f.operands(inst);
    let undefined = operands.iter().find(|value| value.index() >= f.n_values());
    require!(undefined.is_none(), OperandTypes, "{inst} takes {undefined:?}, which does not exist");
    let imm = f.imm(inst);
    let named = match opcode {
        Opcode::Op(op) => types_of_op(f, op, imm, operands, context, expected),
        Opcode::Ir(IrOp::Exit) => {
            // Property 20 says which.
            expected.clear();
            expected.operands.extend(types_of(f, operands));
            f.exits.get(imm.0 as usize).map(drop)
        }
        Opcode::Ir(op) => types_of_ir_op(f, op, imm, context, expected),
    };
    require!(named.is_some(), Immediates, "{inst} is {name} of {imm:?}, which is not there");
    let is_access = matches!(opcode, Opcode::Op(op) if op.access_bytes().is_some());
    let is_marked = f.is_in_bounds(inst);
    require!(is_access || !is_marked, Immediates, "{inst}, {name}, is no access to be in bounds");
    let (given, results) = (types_of(f, operands), f.results(inst));
    require!(
        given.clone().eq(expected.operands.iter().copied()),
        OperandTypes,
        "{inst}, {name}, takes {:?}, not {:?}",
        expected.operands,
        given.collect::<Vec<_>>()
    );
    let fits = results
        .map(|value| f.value_types.get(value.index()).copied())
        .eq(expected.results.iter().map(|&ty| Some(ty)));
    require!(fits, ResultTypes, "{inst}, {name}, does not give {:?}", expected.results);
    if opcode == Opcode::Ir(IrOp::Exit) {
        return check_exit(f, inst, context);
    }
    check_return(f, inst, context)
}

fn types_of(f: &Function, values: &[Value]) -> impl DoubleEndedIterator<Item = ValType> + Clone {
    values.iter().map(|&value| f.value_type(value))
}

/// Property 14. Operands and immediates have been checked.
fn check_return(f: &Function, inst: Inst, context: &impl Context) -> Result<(), Violation> {
    let imm = f.imm(inst);
    let callee = match f.opcode(inst) {
        Opcode::Op(Op::ReturnCall) => context.func_type(imm.low()),
        Opcode::Op(Op::ReturnCallIndirect) => context.type_at(imm.low()),
        Opcode::Op(Op::Return) => {
            let fits = types_of(f, f.operands(inst)).eq(f.ty.results.iter().copied());
            require!(fits, ReturnTypes, "{inst} does not return {:?}", f.ty.results);
            return Ok(());
        }
        _ => return Ok(()),
    };
    let fits = callee.is_some_and(|ty| ty.results == f.ty.results);
    require!(fits, ReturnTypes, "the callee of {inst} does not return {:?}", f.ty.results);
    Ok(())
}

/// Finds the types of an operation of the opcode table; `None` if an immediate names something that does not
/// exist.
fn types_of_op(
    f: &Function,
    op: Op,
    imm: Imm,
    operands: &[Value],
    context: &impl Context,
    types: &mut Types,
) -> Option<()> {
    check_imm(f, op, imm, context)?;
    if let Some(signature) = op.signature() {
        types.set(signature.params, signature.results);
        return Some(());
    }
    types.clear();
    let mut stack = Expected { f, operands, context, types };
    typing::apply(&mut stack, op, imm).ok()?;
    types.operands.reverse();
    Some(())
}

/// Property 11 for what stands in immediates alone.
fn check_imm(f: &Function, op: Op, imm: Imm, context: &impl Context) -> Option<()> {
    let has_lane = |lane: u32| check_lane(op, lane).ok();
    let memory = |memory: u32| (memory == 0 && context.n_memories() > 0).then_some(());
    match op.imm_kind() {
        ImmKind::Label if op == Op::BrIf => branch_hints::is_imm(imm).then_some(()),
        ImmKind::Func => context.func_type(imm.low()).map(drop),
        ImmKind::Table => context.table(imm.low()).map(drop),
        ImmKind::TypeTable => {
            context.type_at(imm.low())?;
            (context.table(imm.high())? == ValType::FuncRef).then_some(())
        }
        ImmKind::TableTable => {
            (context.table(imm.low())? == context.table(imm.high())?).then_some(())
        }
        ImmKind::ElemTable => {
            (context.elem(imm.low())? == context.table(imm.high())?).then_some(())
        }
        ImmKind::Elem => context.elem(imm.low()).map(drop),
        ImmKind::Memory => memory(imm.low()),
        ImmKind::MemoryMemory => memory(imm.low()).and(memory(imm.high())),
        ImmKind::DataMemory => {
            memory(imm.high())?;
            ((imm.low() as usize) < context.n_datas()).then_some(())
        }
        ImmKind::Data => ((imm.low() as usize) < context.n_datas()).then_some(()),
        ImmKind::Mem | ImmKind::Indexed => memory(imm.memory()),
        ImmKind::MemLane => memory(imm.memory()).and(has_lane(imm.access_lane())),
        ImmKind::Lane => has_lane(u32::try_from(imm.0).ok()?),
        ImmKind::V128 => f.vectors.get(imm.0 as usize).map(drop),
        ImmKind::Lanes => {
            let lanes = f.vectors.get(imm.0 as usize)?.to_le_bytes();
            lanes.iter().try_for_each(|&lane| has_lane(lane.into()))
        }
        ImmKind::RefType => ValType::from_code(u8::try_from(imm.0).ok()?)?.is_ref().then_some(()),
        ImmKind::I32 | ImmKind::F32 | ImmKind::Number => (imm.high() == 0).then_some(()),
        // Of these, `types_of_op` needs more than whether they exist.
        ImmKind::Global => Some(()),
        ImmKind::None | ImmKind::I64 | ImmKind::F64 => Some(()),
        // In the IR labels are edges.
        ImmKind::Label | ImmKind::LabelCount | ImmKind::Labels | ImmKind::Local => Some(()),
    }
}

fn types_of_ir_op(
    f: &Function,
    op: IrOp,
    imm: Imm,
    context: &impl Context,
    types: &mut Types,
) -> Option<()> {
    use ValType::{FuncRef, I32, Ref};
    match op {
        IrOp::SlotGet => types.set(&[], &[f.slots.get(imm.0 as usize)?.ty]),
        IrOp::SlotSet => types.set(&[f.slots.get(imm.0 as usize)?.ty], &[]),
        IrOp::FuelBulk => {
            (imm.0 < 32).then_some(())?;
            types.set(&[I32], &[]);
        }
        IrOp::FramePush => types.set(&[], &[I32]),
        IrOp::RefIsFunc => {
            context.func_type(imm.low())?;
            types.set(&[FuncRef], &[I32]);
        }
        IrOp::Poll => {
            (imm.0 == 0).then_some(())?;
            types.set(&[], &[]);
        }
        IrOp::Fuel | IrOp::StackPush | IrOp::StackPop | IrOp::FramePop | IrOp::Safepoint => {
            types.set(&[], &[]);
        }
        IrOp::RootGet | IrOp::RootSet if imm.low() >= f.n_root_cells => return None,
        IrOp::RootGet => types.set(&[], &[Ref]),
        IrOp::RootSet => types.set(&[Ref], &[]),
        IrOp::Exit => unreachable!("an exit has its own types"),
    }
    (imm.high() == 0).then_some(())
}

/// The types that an operation without a fixed signature takes, topmost first, and gives. Where it takes
/// any type, that is the type of the operand that it has.
struct Expected<'a, C> {
    f: &'a Function,
    operands: &'a [Value],
    context: &'a C,
    types: &'a mut Types,
}

/// An immediate that names something that does not exist.
struct Missing;

impl<C> Expected<'_, C> {
    /// The type of the operand that is next to be popped.
    fn next(&self) -> ValType {
        let below = self.operands.len().checked_sub(1 + self.types.operands.len());
        below.map_or(ValType::I32, |i| self.f.value_type(self.operands[i]))
    }
}

impl<'a, C: Context> OperandStack for Expected<'a, C> {
    type Operand = ValType;
    type Type = &'a FuncType;
    type Error = Missing;

    fn pop(&mut self, ty: ValType) -> Result<(), Missing> {
        self.types.operands.push(ty);
        Ok(())
    }

    fn pop_any(&mut self) -> Result<ValType, Missing> {
        let ty = self.next();
        self.types.operands.push(ty);
        Ok(ty)
    }

    fn pop_ref(&mut self) -> Result<(), Missing> {
        let ty = self.next();
        self.pop(if ty.is_ref() { ty } else { ValType::FuncRef })
    }

    fn type_of(&self, operand: ValType) -> ValType {
        operand
    }

    fn push(&mut self, ty: ValType) -> Result<(), Missing> {
        self.types.results.push(ty);
        Ok(())
    }

    /// The IR has no such instruction.
    fn local(&mut self, _: u32) -> Result<ValType, Missing> {
        Err(Missing)
    }

    fn global(&mut self, global: u32) -> Result<ValType, Missing> {
        self.context.global(global).map(|global| global.ty).ok_or(Missing)
    }

    fn mutable_global(&mut self, global: u32) -> Result<ValType, Missing> {
        let global = self.context.global(global).filter(|global| global.mutable);
        global.map(|global| global.ty).ok_or(Missing)
    }

    fn elements(&mut self, table: u32) -> Result<ValType, Missing> {
        self.context.table(table).ok_or(Missing)
    }

    fn callable(&mut self, table: u32) -> Result<(), Missing> {
        (self.context.table(table) == Some(ValType::FuncRef)).then_some(()).ok_or(Missing)
    }

    fn ref_type(&mut self, imm: Imm) -> Result<ValType, Missing> {
        Ok(imm.as_ref_type())
    }

    fn func_type(&mut self, func: u32) -> Result<&'a FuncType, Missing> {
        self.context.func_type(func).ok_or(Missing)
    }

    fn type_at(&mut self, index: u32) -> Result<&'a FuncType, Missing> {
        self.context.type_at(index).ok_or(Missing)
    }

    // In the IR labels are edges, and what goes along them no operand of the branch.

    fn branch(&mut self, _: u32) -> Result<(), Missing> {
        Ok(())
    }

    fn branch_keeping(&mut self, _: u32, _: u32) -> Result<(), Missing> {
        Err(Missing)
    }

    fn branch_table(&mut self, _: Imm) -> Result<(), Missing> {
        Ok(())
    }

    /// Property 14 gives the operands.
    fn leave(&mut self) -> Result<(), Missing> {
        self.types.operands.extend(types_of(self.f, self.operands).rev());
        Ok(())
    }

    /// Property 14 gives the results.
    fn tail_call(&mut self, callee: &FuncType) -> Result<(), Missing> {
        self.pop_all(&callee.params)
    }
}
