//! The steps that concern operands of two cells, the lower half in the first one.

use slotvm_bytecode::{Op, TrapCode, ValType, VectorPart, vector};

use super::frame::{Frame, load, store};
use crate::entities::{cells_of, value_of};
use crate::steps::prepare::VectorStep;
use crate::store::instance::GuestParts;

impl Frame<'_> {
    fn push_wide(&mut self, value: u128) {
        let [low, high] = cells_of(value);
        self.push(low);
        self.push(high);
    }

    fn pop_wide(&mut self) -> u128 {
        let (high, low) = (self.pop(), self.pop());
        value_of([low, high])
    }

    /// The two cells from one on.
    fn wide_at(&mut self, cell: usize) -> &mut [u64; 2] {
        self.cells[cell..].first_chunk_mut().expect("a vector has two cells")
    }

    fn push_of_type(&mut self, ty: ValType, value: u128) {
        match ty {
            ValType::V128 => self.push_wide(value),
            _ => self.push(value as u64),
        }
    }

    fn pop_of_type(&mut self, ty: ValType) -> u128 {
        match ty {
            ValType::V128 => self.pop_wide(),
            _ => self.pop().into(),
        }
    }
}

/// Executes a step.
///
/// # Errors
/// The trap of an access out of bounds. What has been popped is then not restored.
#[inline(never)]
pub(super) fn execute(
    step: VectorStep,
    parts: &mut GuestParts<'_>,
    canonical_nans: bool,
    frame: &mut Frame<'_>,
) -> Result<(), TrapCode> {
    match step {
        VectorStep::Const(value) => frame.push_wide(value),
        VectorStep::Op(op, imm) => operation(op, imm, canonical_nans, frame),
        VectorStep::Load(imm) => {
            let address = frame.pop_address(imm);
            frame.push_wide(u128::from_le_bytes(load(parts.memory, address)?));
        }
        VectorStep::Store(imm) => {
            let value = frame.pop_wide();
            let address = frame.pop_address(imm);
            store(parts.memory, address, value.to_le_bytes())?;
        }
        VectorStep::Part(access, imm) => {
            let takes_vector = access.part == VectorPart::Lane;
            let value = if takes_vector { frame.pop_wide() } else { 0 };
            let (address, lane) = (frame.pop_address(imm), imm.access_lane());
            let memory = &mut *parts.memory;
            if access.store {
                let bytes = vector::stored(access, lane, value);
                return match access.bytes {
                    1 => store(memory, address, (bytes as u8).to_le_bytes()),
                    2 => store(memory, address, (bytes as u16).to_le_bytes()),
                    4 => store(memory, address, (bytes as u32).to_le_bytes()),
                    _ => store(memory, address, bytes.to_le_bytes()),
                };
            }
            let bytes = match access.bytes {
                1 => u8::from_le_bytes(load(memory, address)?).into(),
                2 => u16::from_le_bytes(load(memory, address)?).into(),
                4 => u32::from_le_bytes(load(memory, address)?).into(),
                _ => u64::from_le_bytes(load(memory, address)?),
            };
            frame.push_wide(vector::loaded(access, bytes, lane, value));
        }
        VectorStep::LocalGet(cell) => {
            let value = *frame.wide_at(cell as usize);
            frame.push_wide(value_of(value));
        }
        VectorStep::LocalSet(cell) => {
            let value = frame.pop_wide();
            *frame.wide_at(cell as usize) = cells_of(value);
        }
        VectorStep::LocalTee(cell) => {
            let value = *frame.wide_at(frame.sp - 2);
            *frame.wide_at(cell as usize) = value;
        }
        VectorStep::GlobalGet(cell) => frame.push_wide(parts.globals.get_wide(cell)),
        VectorStep::GlobalSet(cell) => {
            let value = frame.pop_wide();
            parts.globals.set_wide(cell, value);
        }
        VectorStep::Shuffle(op, wide) => shuffle(op, wide, frame),
    }
    Ok(())
}

fn operation(op: Op, imm: u128, canonical_nans: bool, frame: &mut Frame<'_>) {
    let signature = op.signature().expect("operations on vectors have fixed signatures");
    let mut operands = [0; 3];
    for (operand, &ty) in operands.iter_mut().zip(signature.params).rev() {
        *operand = frame.pop_of_type(ty);
    }
    let mut value = vector::eval(op, imm, operands);
    if canonical_nans {
        value = vector::canonical_nans(op, value);
    }
    frame.push_of_type(signature.results[0], value);
}

/// A stack shuffle, `drop` or `select`; bit `i` of `wide` is set if operand `i` from the top takes two cells.
fn shuffle(op: Op, wide: u8, frame: &mut Frame<'_>) {
    let ty = |i: u32| if wide >> i & 1 == 1 { ValType::V128 } else { ValType::I64 };
    match op {
        Op::Drop => drop(frame.pop_wide()),
        Op::Dup => {
            let a = frame.pop_wide();
            frame.push_wide(a);
            frame.push_wide(a);
        }
        Op::Swap | Op::Over => {
            let (b, a) = (frame.pop_of_type(ty(0)), frame.pop_of_type(ty(1)));
            if op == Op::Over {
                frame.push_of_type(ty(1), a);
            }
            frame.push_of_type(ty(0), b);
            frame.push_of_type(ty(1), a);
        }
        Op::Rot => {
            let (c, b) = (frame.pop_of_type(ty(0)), frame.pop_of_type(ty(1)));
            let a = frame.pop_of_type(ty(2));
            frame.push_of_type(ty(1), b);
            frame.push_of_type(ty(0), c);
            frame.push_of_type(ty(2), a);
        }
        Op::Select => {
            let (condition, b, a) = (frame.pop() as u32, frame.pop_wide(), frame.pop_wide());
            frame.push_wide(if condition != 0 { a } else { b });
        }
        _ => unreachable!("`{}` shuffles nothing", op.mnemonic()),
    }
}
