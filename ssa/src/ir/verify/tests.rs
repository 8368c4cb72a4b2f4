mod special_types;

use slotvm_bytecode::{Imm, Op};

use super::*;
use crate::ir::entity::{Block, Edge, Inst, Loc, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::ir::{Entry, LocData, SlotData, SlotOrigin};
use ValType::{I32, I64};

/// A module with one function from `i64` to `i64` and nothing else.
struct OneFunc(FuncType);

impl Context for OneFunc {
    fn func_type(&self, func: u32) -> Option<&FuncType> {
        (func == 0).then_some(&self.0)
    }
    fn type_at(&self, index: u32) -> Option<&FuncType> {
        (index == 0).then_some(&self.0)
    }
    fn global(&self, _: u32) -> Option<GlobalType> {
        None
    }
    fn table(&self, _: u32) -> Option<ValType> {
        None
    }
    fn elem(&self, _: u32) -> Option<ValType> {
        None
    }
    fn n_memories(&self) -> usize {
        0
    }
    fn n_datas(&self) -> usize {
        0
    }
}

fn context() -> OneFunc {
    OneFunc(FuncType::new([I64], [I64]))
}

fn push(f: &mut Function, op: Opcode, imm: u64, operands: &[u32], results: &[ValType]) {
    let operands: Vec<_> = operands.iter().copied().map(Value).collect();
    let inst = f.make_inst(op, Imm(imm), &operands, results, Loc(0));
    f.layout.push(inst);
}

/// A function from `i64` to `i64` whose blocks are filled by `fill`.
fn function(fill: impl FnOnce(&mut Function)) -> Function {
    let mut f = Function { ty: context().0, ..Function::default() };
    f.slots.push(SlotData::new(I64, SlotOrigin::Local(0)));
    f.slots.push(SlotData::new(I64, SlotOrigin::Stack(0)));
    f.slots.push(SlotData::new(I32, SlotOrigin::Stack(0)));
    f.locs.push(LocData::default());
    f.start_block(None, 0);
    f.append_param(I64);
    fill(&mut f);
    f.compute_preds();
    f
}

/// A function with a loop, a phi and slots, of which all properties hold but the last.
///
/// ```text
/// b0:
///   i0: slot.set s0, v0
///   i1: v1 = i64.const 0
///   i2: br b1(v1)                   e0
/// b1(v2: i64):
///   i3: v3 = slot.get s0
///   i4: v4 = i64.add v2, v3
///   i5: v5 = i64.eqz v4
///   i6: br_if v5, b1(v4), b2        e1, e2
/// b2:
///   i7: return v2
/// ```
fn sound() -> Function {
    function(|f| {
        push(f, Opcode::Ir(IrOp::SlotSet), 0, &[0], &[]);
        push(f, Opcode::Op(Op::I64Const), 0, &[], &[I64]);
        push(f, Opcode::Op(Op::Br), 0, &[], &[]);
        f.append_edge(Block(1));
        f.edge_args.push(Value(1));
        f.end_block();
        f.start_block(Some(0), 4);
        f.append_param(I64);
        push(f, Opcode::Ir(IrOp::SlotGet), 0, &[], &[I64]);
        push(f, Opcode::Op(Op::I64Add), 0, &[2, 3], &[I64]);
        push(f, Opcode::Op(Op::I64Eqz), 0, &[4], &[I32]);
        push(f, Opcode::Op(Op::BrIf), 0, &[5], &[]);
        f.append_edge(Block(1));
        f.edge_args.push(Value(4));
        f.append_edge(Block(2));
        f.end_block();
        f.start_block(None, 8);
        push(f, Opcode::Op(Op::Return), 0, &[2], &[]);
        f.end_block();
    })
}

/// A chain of blocks in the wrong order.
fn misnumbered() -> Function {
    function(|f| {
        push(f, Opcode::Op(Op::Br), 0, &[], &[]);
        f.append_edge(Block(2));
        f.end_block();
        f.start_block(None, 4);
        push(f, Opcode::Op(Op::Return), 0, &[0], &[]);
        f.end_block();
        f.start_block(None, 8);
        push(f, Opcode::Op(Op::Br), 0, &[], &[]);
        f.append_edge(Block(1));
        f.end_block();
    })
}

fn broken(fault: impl FnOnce(&mut Function)) -> (Function, Form) {
    let mut f = sound();
    fault(&mut f);
    (f, Form::Slots)
}

fn retarget(f: &mut Function, edge: u32, dst: u32) {
    f.edges[edge as usize].dst = Block(dst);
    f.compute_preds();
}

/// A function of which just this property does not hold, or it and such that are checked after it.
fn breaks(property: Property) -> (Function, Form) {
    match property {
        Property::OneBlock => broken(|f| f.blocks[2].insts = (0, 0)),
        Property::LayoutOnce => broken(|f| f.layout[4] = f.layout[3]),
        Property::TerminatorLast => broken(|f| f.layout.swap(1, 2)),
        Property::EdgesOfTerminator => broken(|f| f.blocks[2].first_edge = 2),
        Property::PredsAgree => broken(|f| f.pred_edges.swap(0, 1)),
        Property::EntryFirst => broken(|f| retarget(f, 1, 0)),
        Property::AllReachable => broken(|f| retarget(f, 2, 1)),
        Property::DominatorPreorder => (misnumbered(), Form::Slots),
        Property::EntryParams => broken(|f| f.ty.params.push(I32)),
        Property::OpcodeOfIr => broken(|f| f.ops[1] = Opcode::Op(Op::LocalGet)),
        Property::Immediates => broken(|f| f.imms[3] = Imm(3)),
        Property::OperandTypes => broken(|f| f.operand_pool[1] = Value(5)),
        Property::ResultTypes => broken(|f| f.value_types[5] = I64),
        Property::ReturnTypes => broken(|f| f.ty.results[0] = I32),
        Property::EdgeArguments => broken(|f| f.edge_args[1] = Value(5)),
        Property::DefinedOnce => broken(|f| f.results[3] = (Value(1), 1)),
        Property::DefsDominate => broken(|f| f.edge_args[0] = Value(4)),
        Property::Locations => broken(|f| f.inst_locs[1] = Loc(1)),
        Property::SlotsDistinct => broken(|f| f.slots[1] = f.slots[0]),
        Property::ExitFrames => (left("f0 at 1: cell 0 ()"), Form::Ssa),
        Property::NoSlotAccess => (sound(), Form::Ssa),
        Property::EffectsInOrder => unreachable!("one function cannot break it"),
    }
}

#[test]
fn a_sound_function_is_accepted() {
    assert_eq!(verify(&sound(), Form::Slots, &context()), Ok(()));
}

#[test]
fn each_property_is_checked() {
    for &property in Property::ALL {
        if property == Property::EffectsInOrder {
            // A property of two functions: `effects` has its tests.
            continue;
        }
        let (f, form) = breaks(property);
        let violation = verify(&f, form, &context()).expect_err(property.name());
        assert_eq!(violation.property, property, "{violation}");
    }
}

#[test]
fn the_documentation_lists_all_properties() {
    let source = include_str!("../verify.rs");
    for property in Property::ALL {
        let line = format!("//! {:2}. `{}`:", property.number(), property.name());
        assert!(source.contains(&line), "{line}");
    }
    let beyond = format!("//! {}. ", Property::ALL.len() + 1);
    assert!(!source.contains(&beyond), "{beyond}");
}

fn rejected(property: Property, fault: impl FnOnce(&mut Function)) {
    let (f, form) = broken(fault);
    let violation = verify(&f, form, &context()).expect_err(property.name());
    assert_eq!(violation.property, property, "{violation}");
}

#[test]
fn other_ways_to_break_a_property() {
    // The definition follows the use, in the same block.
    rejected(Property::DefsDominate, |f| f.layout.swap(3, 4));
    // The definition is in no block.
    rejected(Property::DefsDominate, |f| f.blocks[0].insts.0 = 2);
    rejected(Property::LayoutOnce, |f| f.blocks[1].insts.0 = 2);
    rejected(Property::EdgeArguments, |f| f.edge_args.truncate(1));
    rejected(Property::EdgesOfTerminator, |f| f.edges[2].dst = Block(3));
    rejected(Property::EdgesOfTerminator, |f| f.edges[2].src = Block(0));
    rejected(Property::PredsAgree, |f| f.pred_edges[0] = Edge(2));
    rejected(Property::OperandTypes, |f| f.operands[4].1 = 1);
    rejected(Property::OperandTypes, |f| f.operand_pool[0] = Value(77));
    rejected(Property::Locations, |f| f.locs[0].inlined_at = Some(Loc(0)));
    rejected(Property::Locations, |f| f.locs[0].func = 1);
    rejected(Property::Immediates, |f| f.ops[1] = Opcode::Op(Op::MemorySize));
    rejected(Property::Immediates, |f| f.mark_in_bounds(Inst(1)));
    rejected(Property::Immediates, |f| {
        (f.ops[1], f.imms[1], f.results[1].1) = (Opcode::Ir(IrOp::Poll), Imm(1), 0);
    });
    rejected(Property::ResultTypes, |f| f.ops[1] = Opcode::Ir(IrOp::Poll));
    rejected(Property::Immediates, |f| {
        let is_branch = |&i: &usize| f.ops[i] == Opcode::Op(Op::BrIf);
        let branch = (0..f.n_insts()).find(is_branch).expect("there is one");
        f.imms[branch] = Imm(3);
    });
    // There is no such function.
    rejected(Property::Immediates, |f| {
        (f.ops[1], f.imms[1]) = (Opcode::Ir(IrOp::RefIsFunc), Imm(77));
    });
    rejected(Property::SlotsDistinct, |f| f.slots[2].ty = I64);
    rejected(Property::TerminatorLast, |f| f.ops[7] = Opcode::Op(Op::I64Eqz));
    rejected(Property::OneBlock, |f| *f = Function::default());
}

/// Lets a function be entered from a frame with these places.
fn entered(f: &mut Function, places: Vec<FramePlace>) {
    f.entry = Entry::Frame(FrameState {
        func: f.func,
        blocks: vec![1],
        call: None,
        places,
        caller: None,
    });
}

#[test]
fn the_places_of_a_frame_are_those_of_the_parameters() {
    let (f, form) = broken(|f| entered(f, vec![FramePlace::Cell(3)]));
    verify(&f, form, &context()).expect("one cell is for one parameter");
    let state = |change: fn(&mut FrameState)| {
        move |f: &mut Function| {
            entered(f, vec![FramePlace::Cell(3)]);
            let Entry::Frame(state) = &mut f.entry else { unreachable!("it was just made") };
            change(state);
        }
    };
    rejected(Property::EntryParams, state(|state| state.func += 1));
    rejected(Property::EntryParams, state(|state| state.blocks.clear()));
    rejected(Property::EntryParams, state(|state| state.caller = Some(Box::new(state.clone()))));
    rejected(Property::EntryParams, state(|state| state.places.clear()));
    rejected(Property::EntryParams, state(|state| state.places.push(FramePlace::Cell(4))));
    // It is an i64.
    rejected(Property::EntryParams, state(|state| state.places[0] = FramePlace::FrameSp));
    rejected(Property::EntryParams, state(|state| state.places[0] = FramePlace::Block));
    let callee = "func f0 f(v0: funcref) {\n  enter f0 at 1: callee\nb0:\n  return\n}\n";
    let violation = verify(&parse(callee).expect("it is text"), Form::Ssa, &context());
    assert_eq!(violation.map_err(|violation| violation.property), Err(Property::EntryParams));
    let of_vector = |places: &str| {
        let head = "func f0 f(v0: v128, v1: i64) -> i64 {\n  enter f0 at 1: ";
        let f = parse(&format!("{head}{places}\nb0:\n  return v1\n}}\n")).expect("it is text");
        verify(&f, Form::Ssa, &context()).map_err(|violation| violation.to_string())
    };
    assert_eq!(of_vector("cell 0, cell 2"), Ok(()));
    assert_eq!(of_vector("cell 1, cell 0"), Ok(()));
    let overlap = "property 9 (entry-params) does not hold: two values lie in cell 1";
    assert_eq!(of_vector("cell 0, cell 1"), Err(overlap.to_owned()));
}

/// A function that only leaves for a frame.
fn left(exit: &str) -> Function {
    let head = "func f0 f(v0: i64, v1: v128, v2: funcref) -> i64";
    let text = format!("{head} {{\nb0:\n  exit {exit}\n}}\n");
    parse(&text).expect("it is text")
}

#[test]
fn exits_have_frames_for_their_values() {
    for exit in [
        "f0 at 1: ()",
        "f0 at 1: cell 3 (v0)",
        "f0 at 1: cell 3, cell 4 (v0, v1)",
        "f0 at 1: cell 3 < f0 after 2: cell 3 (v0, v0)",
        "f0 after 7: callee (v2)",
        "f0 after 7: cell 3, callee < f0 after 2: cell 3 (v0, v2, v0)",
    ] {
        let f = left(exit);
        assert_eq!(verify(&f, Form::Ssa, &context()), Ok(()), "{exit}");
        assert!(print(&f).contains(&format!("exit {exit}")), "{}", print(&f));
    }
    for exit in [
        "f0 at 1: (v0)",
        "f0 at 1, 2: ()",
        "f7 at 1: ()",
        "f0 at 1: < f7 after 1: ()",
        "f0 at 1: < f0 at 1: ()",
        "f0 after 1: ()",
        "f0 at 1: cell 3, cell 3 (v0, v0)",
        "f0 at 1: cell 3, cell 4 (v1, v0)",
        "f0 at 1: frame (v0)",
        "f0 at 1: callee (v2)",
        "f0 after 7: callee (v0)",
        "f0 after 7: callee, callee (v2, v2)",
        "f0 after 7: callee < f0 after 2: callee (v2, v2)",
    ] {
        let violation = verify(&left(exit), Form::Ssa, &context()).expect_err(exit);
        assert_eq!(violation.property, Property::ExitFrames, "{exit}: {violation}");
    }
    let mut f = left("f0 at 1: ()");
    f.exits.clear();
    let violation = verify(&f, Form::Ssa, &context()).expect_err("it has no frame");
    assert_eq!(violation.property, Property::Immediates, "{violation}");
}

#[test]
fn messages_name_the_property_and_the_place() {
    let (f, form) = breaks(Property::OperandTypes);
    let message = verify(&f, form, &context()).unwrap_err().to_string();
    assert!(message.starts_with("property 12 (operand-types) does not hold: i4"), "{message}");
}

#[test]
fn ids_of_instructions_follow_the_picture() {
    let f = sound();
    assert_eq!(f.terminator(Block(2)), Inst(7));
    assert_eq!(f.edge_args(Edge(1)), [Value(4)]);
}
