//! Speculation on the functions that indirect calls call: where a call has called one function so far, or two, the form compares
//! the callee with these, and calls them directly, so that they can be inlined.
//!
//! Other functions are called as before. Then the form leaves for the interpreter: so nothing merges with the results of an
//! unknown function, and the interpreter learns of it before the next version of the code is made. Or the form goes on with
//! the results, where a call has shown that others are to be expected.
//!
//! Relies on slot form as the build has made it, and guarantees it. The direct calls have the location of the indirect one.
//! Its checks stay where they were: the comparison needs an entry of the table, and reading that traps where the call would
//! have. The indirect call that stays makes the other checks.

use slotvm_bytecode::{CodeReader, Imm, Op, ValType, VerifiedModule};

use super::func_exits::LikelyCall;
use super::paying_exits::exit_insts;
use crate::ir::entity::{Inst, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::split::{Split, split_at};
use crate::ir::{Function, WaitingCall, WaitingValue};

/// The number of functions that a call is compared with, at most.
pub const LIKELY_CALLEES_MAX: usize = 2;

/// The size that exits after calls may add to a form whatever its own is: see [`exit_insts`].
const ADDED_MIN: u32 = 64;

/// The calls among some of a function that can be compared with their callees: functions of the right type that the module
/// defines and to which there are references in any instance.
pub fn possible_calls(
    module: &VerifiedModule,
    func: u32,
    mut calls: Vec<LikelyCall>,
) -> Vec<LikelyCall> {
    let code = &module.func(func).expect("the function is defined in the module").code;
    let references = module.funcs_with_references();
    calls.retain(|LikelyCall { offset, callees, .. }| {
        let mut reader = CodeReader::new(code, *offset);
        let inst = reader.read().expect("verified code decodes");
        let ty = &module.module().types[inst.imm.low() as usize];
        let is_possible = |&callee: &u32| {
            callee >= module.n_imported_funcs()
                && references.binary_search(&callee).is_ok()
                && module.func_type(callee) == ty
        };
        (1..=LIKELY_CALLEES_MAX).contains(&callees.len()) && callees.iter().all(is_possible)
    });
    calls
}

/// Compares indirect calls of a function in slot form with the functions that they are likely to call, in ascending order of
/// their offsets. It has been noted what waits at these calls; where it has not, a call stays as it is. So it does where
/// the exits of those before take half as much code as the function.
pub(super) fn speculate(f: &mut Function, calls: &[LikelyCall]) {
    let mut left = ADDED_MIN + f.n_insts() as u32 / 2;
    let mut sites = Vec::new();
    // Whatever has been noted is a call, direct ones too. They are in the order of the code.
    for waiting in &f.waiting {
        let call = waiting.inst;
        if f.opcode(call) != Opcode::Op(Op::CallIndirect) {
            continue;
        }
        let offset = f.locs[f.loc(call).index()].offset;
        let likely = match calls.binary_search_by_key(&offset, |call| call.offset) {
            Ok(at) if !calls[at].callees.is_empty() => &calls[at],
            _ => continue,
        };
        let n_waiting = if likely.leaves { waiting.values.len() } else { 0 };
        let size = exit_insts((n_waiting + f.results(call).len()) as u32);
        if size <= left {
            left -= size;
            sites.push((call, likely));
        }
    }
    if sites.is_empty() {
        return;
    }
    let mut sites = sites.into_iter().peekable();
    split_at(f, |split, part, inst| {
        let (call, likely) = sites.next_if(|site| site.0 == inst)?;
        Some(Speculation { split }.replace(part, call, likely))
    });
}

/// The blocks of a function that are put together anew.
struct Speculation<'s, 'f> {
    split: &'s mut Split<'f>,
}

impl Speculation<'_, '_> {
    /// Replaces a call, which ends a part of a block. Returns the part that goes on after it.
    fn replace(&mut self, mut part: u32, call: Inst, likely: &LikelyCall) -> u32 {
        let table = Imm::index(self.split.f.imm(call).high());
        let index = *self.split.f.operands(call).last().expect("an indirect call has an index");
        let entry = Opcode::Op(Op::TableGet);
        let callee = self.split.emit(entry, table, &[index], &[ValType::FuncRef], call)[0];
        let mut heres = Vec::with_capacity(likely.callees.len());
        for &func in &likely.callees {
            let (is_func, func) = (Opcode::Ir(IrOp::RefIsFunc), Imm::index(func));
            let is_func = self.split.emit(is_func, func, &[callee], &[ValType::I32], call);
            self.split.emit(Opcode::Op(Op::BrIf), Imm::NONE, &is_func, &[], call);
            let (here, elsewhere) = (self.split.add_block(call), self.split.add_block(call));
            self.split.blocks.push_edge(here, []);
            self.split.blocks.push_edge(elsewhere, []);
            self.split.blocks.close(part);
            self.split.blocks.open(elsewhere);
            heres.push((here, func));
            part = elsewhere;
        }
        let results = self.call_others(call);
        if !likely.leaves {
            return self.join(call, &heres, Some((part, results)));
        }
        self.leave(call, callee, results);
        self.split.blocks.close(part);
        match heres[..] {
            [(here, func)] => {
                self.split.f.ops[call.index()] = Opcode::Op(Op::Call);
                self.split.f.imms[call.index()] = func;
                // The index is the last operand.
                self.split.f.operands[call.index()].1 -= 1;
                self.split.blocks.open(here);
                self.split.blocks.push(call);
                here
            }
            _ => self.join(call, &heres, None),
        }
    }

    /// Calls functions directly, each in a block of its own. Returns the block that goes on after that, and after a call of
    /// others if the open block has one, with its results.
    fn join(&mut self, call: Inst, heres: &[(u32, Imm)], others: Option<(u32, Vec<Value>)>) -> u32 {
        let join = self.split.add_block(call);
        if let Some((part, results)) = others {
            self.go_on(part, join, results, call);
        }
        let operands = self.split.f.operands(call).to_vec();
        let (_, args) = operands.split_last().expect("an indirect call has an index");
        let types = self.split.result_types(call);
        for &(here, func) in heres {
            self.split.blocks.open(here);
            let inst = Inst(self.split.f.n_insts() as u32);
            let results = self.split.emit(Opcode::Op(Op::Call), func, args, &types, call);
            let waiting = WaitingCall { inst, ..self.waiting(call).clone() };
            self.split.f.waiting.push(waiting);
            self.go_on(here, join, results, call);
        }
        self.split.blocks.set_params(join, self.split.f.results(call));
        self.split.blocks.open(join);
        join
    }

    /// Ends the open block by going on in another one with the results of a call.
    fn go_on(&mut self, part: u32, join: u32, results: Vec<Value>, call: Inst) {
        self.split.emit(Opcode::Op(Op::Br), Imm::NONE, &[], &[], call);
        self.split.blocks.push_edge(join, results);
        self.split.blocks.close(part);
    }

    /// Appends a copy of a call. Returns its results.
    fn call_others(&mut self, call: Inst) -> Vec<Value> {
        let (imm, operands) = (self.split.f.imm(call), self.split.f.operands(call).to_vec());
        let types = self.split.result_types(call);
        self.split.emit(Opcode::Op(Op::CallIndirect), imm, &operands, &types, call)
    }

    /// Leaves after a call of another function.
    fn leave(&mut self, call: Inst, callee: Value, results: Vec<Value>) {
        let WaitingCall { values: waiting, args: mut cell, .. } = self.waiting(call).clone();
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for (cell, value) in waiting {
            places.push(FramePlace::Cell(cell));
            values.push(match value {
                WaitingValue::Slot(slot) => {
                    let (get, ty) =
                        (Opcode::Ir(IrOp::SlotGet), self.split.f.slots[slot as usize].ty);
                    self.split.emit(get, Imm::index(slot), &[], &[ty], call)[0]
                }
                WaitingValue::Operand(value) => value,
            });
        }
        for result in results {
            places.push(FramePlace::Cell(cell));
            values.push(result);
            cell += self.split.f.value_type(result).cells() as u32;
        }
        places.push(FramePlace::Callee);
        values.push(callee);
        let at = Some(self.split.f.locs[self.split.f.loc(call).index()].offset);
        let (func, exit) = (self.split.f.func, Imm::index(self.split.f.exits.len() as u32));
        let state = FrameState { func, blocks: Vec::new(), call: at, places, caller: None };
        self.split.f.exits.push(state);
        self.split.emit(Opcode::Ir(IrOp::Exit), exit, &values, &[], call);
    }

    /// The values that wait at a call.
    fn waiting(&self, call: Inst) -> &WaitingCall {
        self.split.f.waiting_at(call).expect("it has been noted")
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::verified::Body;

    use super::*;
    use crate::construction::build::{BuildOptions, BuildScratch, FuncExits, build_with_exits};
    use crate::construction::promote::{Scratch, promote};
    use crate::ir::verify::{Form, verify};
    use crate::tools::samples::module;

    /// Functions in a table, and one that calls one of them while operands and locals wait.
    const SOURCE: &str = "
        table t funcref 4 4
        elem e t at i32.const 0 func first, second, other
        import \"a\" \"b\" func host(i64) -> i64
        func first(x: i64) -> i64 { local.get x  return }
        func second(x: i64) -> i64 { local.get x  return }
        func other() { return }
        func unnamed(x: i64) -> i64 { local.get x  return }
        func main(a: i64, b: i64, at: i32) -> i64 {
          local unread: i64
          local.get a  i64.const 7  i64.mul
          local.get b
          local.get a  local.get at  call_indirect (i64) -> i64, t
          i64.add  i64.xor
          local.get at  i64.extend_i32_u  i64.add  return
        }";

    /// The offsets of the indirect calls of a function.
    fn offsets(module: &VerifiedModule, func: u32) -> Vec<u32> {
        let Body { blocks, .. } = module.body(func).unwrap();
        let insts = blocks.iter().flat_map(|block| module.insts(func, block));
        insts.filter(|(_, inst)| inst.op == Op::CallIndirect).map(|(offset, _)| offset).collect()
    }

    /// The form of `main` where each indirect call has called some functions, in slot form and promoted.
    fn forms(source: &str, callees: &[u32], leaves: bool) -> [String; 2] {
        let module = module(source);
        let main = module.n_funcs() - 1;
        let call = |offset| LikelyCall { offset, callees: callees.to_vec(), leaves };
        let calls =
            possible_calls(&module, main, offsets(&module, main).into_iter().map(call).collect());
        let exits = FuncExits { blocks: Vec::new(), calls };
        let (options, mut scratch) = (BuildOptions::default(), BuildScratch::default());
        let mut f = build_with_exits(&module, main, &exits, &options, &mut scratch);
        let check = |f: &Function, form| {
            verify(f, form, &module).unwrap_or_else(|violation| panic!("{violation}\n{f}"));
            f.to_string()
        };
        let slots = check(&f, Form::Slots);
        promote(&mut f, &mut Scratch::default());
        [slots, check(&f, Form::Ssa)]
    }

    fn counts(text: &str) -> [usize; 4] {
        ["ref.is_func", " call f", "call_indirect", "exit f"].map(|what| text.matches(what).count())
    }

    #[test]
    fn the_form_is_left_after_calls_of_others() {
        for text in forms(SOURCE, &[1], true) {
            assert_eq!(counts(&text), [1, 1, 1, 1], "{text}");
            // The first operand has a cell of its own; the second one may be a name of `b`. Results take the place of arguments.
            let exit = "after 11: cell 0, cell 1, cell 2, cell 4, cell 5, cell 6, callee (";
            assert!(text.contains(exit), "{text}");
        }
    }

    #[test]
    fn two_functions_lead_to_one_place() {
        for text in forms(SOURCE, &[2, 1], true) {
            assert_eq!(counts(&text), [2, 2, 1, 1], "{text}");
        }
    }

    #[test]
    fn the_form_goes_on_after_calls_of_others() {
        for (callees, n) in [(&[1][..], 1), (&[2, 1], 2)] {
            for text in forms(SOURCE, callees, false) {
                assert_eq!(counts(&text), [n, n, 1, 0], "{text}");
            }
        }
    }

    /// Functions of other types, those of the host, and those that no instance has a reference to.
    #[test]
    fn some_calls_are_left_as_they_are() {
        for callees in [&[][..], &[0], &[3], &[4], &[1, 3], &[1, 2, 1]] {
            for leaves in [false, true] {
                assert_eq!(counts(&forms(SOURCE, callees, leaves)[0]), [0, 0, 1, 0], "{callees:?}");
            }
        }
    }

    #[test]
    fn what_is_compared_takes_half_as_much_as_the_function() {
        let call = "local.get b  local.get at  call_indirect (i64) -> i64, t  i64.add ";
        let of = |n: usize, leaves| {
            let source =
                SOURCE.replace("i64.add  i64.xor", &format!("i64.add  i64.xor {}", call.repeat(n)));
            counts(&forms(&source, &[1], leaves)[0])
        };
        assert_eq!(of(1, true), [2, 2, 2, 2]);
        for leaves in [false, true] {
            let [n_compared, n_direct, n_indirect, n_exits] = of(1_000, leaves);
            assert_eq!((n_compared, n_indirect), (n_direct, 1_001));
            assert!((50..250).contains(&n_compared), "{n_compared}");
            assert_eq!(n_exits, if leaves { n_compared } else { 0 });
        }
    }
}
