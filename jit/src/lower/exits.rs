//! Exits: leaving the native frame for the interpreter, see [`slotvm_runtime::native::Exit`].

use std::sync::Arc;

use cranelift_codegen::ir::{self, InstBuilder};
use slotvm_bytecode::ValType;
use slotvm_runtime::native::{
    CodeVersion, EXIT_CELLS_MAX, Exit, ExitFrame, ExitPlace, WaitingFrame, offsets,
};
use slotvm_ssa::ir::entity::{Inst, Value};
use slotvm_ssa::ir::frame::{FramePlace, FrameState};
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::{Entry, Function};

use super::Lowering;
use crate::lower::abi::{self, CELL_BYTES, POINTER};

/// The address of the interpreter in code that is shown, which takes as many bytes as one of user space.
const SHOWN_INTERPRETER: usize = 0x7fff_0000_0000;

/// The address of the first exit in code that is shown. The others count on from there.
const SHOWN_EXITS: usize = 0x7ffe_0000_0000;

/// Code that is left at exits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LeftCode<'a> {
    /// The trampoline by which calls of the function go to the interpreter. Code without one is shown and never run: it has
    /// numbers in place of addresses, so that its text is always the same.
    pub(crate) interpreter: Option<usize>,
    pub(crate) version: &'a Arc<CodeVersion>,
}

/// The exits of a function, by the numbers that its IR gives them. Code has their addresses.
#[derive(Clone)]
pub(crate) struct CodeExits {
    exits: Arc<[Exit]>,
    /// The trampoline by which calls of the function go to the interpreter. It lives as long as the code. `None` if the code
    /// is shown only.
    interpreter: Option<usize>,
}

impl CodeExits {
    /// The exits of a function, if it has any.
    pub(crate) fn of(func: &Function, code: Option<LeftCode<'_>>) -> Option<CodeExits> {
        if func.exits.is_empty() {
            return None;
        }
        let LeftCode { interpreter, version } = code.expect("it is known what is left");
        // Passes may have copied an exit, or left it out.
        let mut insts = vec![None; func.exits.len()];
        let terminators = func.blocks().map(|block| func.terminator(block));
        for inst in terminators.filter(|&inst| func.opcode(inst) == Opcode::Ir(IrOp::Exit)) {
            insts[func.imm(inst).low() as usize] = Some(inst);
        }
        let exit = |(state, inst): (&FrameState, Option<Inst>)| {
            let values = inst.map_or(&[][..], |inst| func.operands(inst));
            exit(func, state, values, version)
        };
        let exits = func.exits.iter().zip(insts).map(exit).collect();
        Some(CodeExits { exits, interpreter })
    }

    /// The number of times that one of them was taken.
    pub(crate) fn n_taken(&self) -> u64 {
        self.exits.iter().map(Exit::n_taken).sum()
    }

    fn address(&self, number: usize) -> usize {
        match self.interpreter {
            Some(_) => std::ptr::from_ref(&self.exits[number]).expose_provenance(),
            None => SHOWN_EXITS + number,
        }
    }

    fn interpreter_address(&self) -> usize {
        self.interpreter.unwrap_or(SHOWN_INTERPRETER)
    }
}

/// The exit whose frames have these values, one for each place.
fn exit(
    func: &Function,
    state: &FrameState,
    mut values: &[Value],
    version: &Arc<CodeVersion>,
) -> Exit {
    let mut cells = |state: &FrameState| -> Box<[u32]> {
        let (own, outer) = values.split_at(state.places.len().min(values.len()));
        values = outer;
        let of_value = |(&value, &place): (&Value, &FramePlace)| match place {
            FramePlace::Cell(cell) => cell..cell + func.value_type(value).cells() as u32,
            // It goes elsewhere.
            FramePlace::Callee => 0..0,
            FramePlace::FrameSp | FramePlace::Block => unreachable!("an exit writes cells"),
        };
        own.iter().zip(&state.places).flat_map(of_value).collect()
    };
    let place = match state.call {
        Some(call) => ExitPlace::Call(call),
        None => ExitPlace::Block(state.blocks[0]),
    };
    let at = ExitFrame { func: state.func, place, cells: cells(state) };
    let waiting = state.frames().skip(1).map(|state| {
        let call = state.call.expect("a frame that waits has made a call");
        WaitingFrame { func: state.func, call, cells: cells(state) }
    });
    let waiting = waiting.collect();
    Exit::new(version, at, waiting)
}

impl Lowering<'_, '_> {
    /// Writes the values of the frame and the exit to what the store shares, and leaves: by a return where the interpreter's
    /// frame is there, and else by a call of the interpreter in place of the function.
    pub(super) fn lower_exit(&mut self, inst: Inst) {
        let func = self.func;
        let exits = self.options.exits.as_ref().expect("code with exits is given them");
        let exit = exits.address(func.imm(inst).low() as usize);
        let (shared, flags) = (self.shared(), self.context_flags());
        let state = &func.exits[func.imm(inst).low() as usize];
        let mut operands = Vec::with_capacity(func.operands(inst).len());
        for (&operand, place) in func.operands(inst).iter().zip(state.places()) {
            match place {
                FramePlace::Callee => {
                    let callee = self.value(operand);
                    self.builder.ins().store(flags, callee, shared, offsets::SHARED_EXIT_CALLEE);
                }
                _ => operands.push(operand),
            }
        }
        let types: Vec<ValType> = operands.iter().map(|&value| func.value_type(value)).collect();
        let cells = self.builder.ins().load(POINTER, flags, shared, offsets::SHARED_EXIT_CELLS);
        for (operand, (offset, ty)) in operands.into_iter().zip(abi::in_cells(&types)) {
            debug_assert!((offset as usize) < EXIT_CELLS_MAX * CELL_BYTES as usize);
            let cell = self.cell_of(self.value(operand));
            self.builder.ins().store(abi::cell_flags(ty, flags), cell, cells, offset);
        }
        let exit = self.builder.ins().iconst(POINTER, exit as i64);
        self.builder.ins().store(flags, exit, shared, offsets::SHARED_EXIT);
        match func.entry {
            Entry::Frame(_) => {
                let by_area = abi::returns_by_area(&func.ty);
                let results = if by_area { &[] } else { &*func.ty.results };
                let results: Vec<ir::Value> = results.iter().map(|&ty| self.zero(ty)).collect();
                self.builder.ins().return_(&results);
            }
            Entry::Call => {
                let interpreter = exits.interpreter_address() as i64;
                let code = self.builder.ins().iconst(POINTER, interpreter);
                let signature = self.signature(self.module.func_type_index(func.func));
                let mut args = vec![self.context];
                args.extend(self.return_area);
                args.extend(func.ty.params.iter().map(|&ty| self.zero(ty)));
                self.builder.ins().return_call_indirect(signature, code, &args);
            }
        }
    }
}
