//! Operations on operands of two cells, the lower half in the first one. The operands lie on the operand stack.

use slotvm_bytecode::{Imm, Op, TrapCode, ValType, VectorPart, vector};

use crate::entities::{cells_of, value_of};
use crate::steps::instr::StackOp;

/// The cells of a frame, and the cell above the top of its operand stack.
pub(super) struct Operands<'a> {
    pub(super) cells: &'a mut [u64],
    pub(super) sp: usize,
}

impl Operands<'_> {
    fn push(&mut self, cell: u64) {
        self.cells[self.sp] = cell;
        self.sp += 1;
    }

    fn pop(&mut self) -> u64 {
        self.sp -= 1;
        self.cells[self.sp]
    }

    /// Pops the address of a plain access.
    fn pop_address(&mut self, imm: Imm) -> u64 {
        u64::from(self.pop() as u32) + u64::from(imm.offset())
    }

    pub(super) fn push_wide(&mut self, value: u128) {
        let [low, high] = cells_of(value);
        self.push(low);
        self.push(high);
    }

    pub(super) fn pop_wide(&mut self) -> u128 {
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

/// Executes an operation.
///
/// # Errors
/// The trap of an access out of bounds. What has been popped is then not restored.
pub(super) fn execute(
    op: StackOp,
    memory: &mut [u8],
    canonical_nans: bool,
    operands: &mut Operands<'_>,
) -> Result<(), TrapCode> {
    match op {
        StackOp::Const(value) => operands.push_wide(value),
        StackOp::Vector(op, imm) => operation(op, imm, canonical_nans, operands),
        StackOp::Load(imm) => {
            let address = operands.pop_address(imm);
            operands.push_wide(u128::from_le_bytes(load(memory, address)?));
        }
        StackOp::Store(imm) => {
            let value = operands.pop_wide();
            let address = operands.pop_address(imm);
            store(memory, address, value.to_le_bytes())?;
        }
        StackOp::Part(access, imm) => {
            let takes_vector = access.part == VectorPart::Lane;
            let value = if takes_vector { operands.pop_wide() } else { 0 };
            let (address, lane) = (operands.pop_address(imm), imm.access_lane());
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
            operands.push_wide(vector::loaded(access, bytes, lane, value));
        }
        StackOp::LocalGet(cell) => {
            let value = *operands.wide_at(cell as usize);
            operands.push_wide(value_of(value));
        }
        StackOp::LocalSet(cell) => {
            let value = operands.pop_wide();
            *operands.wide_at(cell as usize) = cells_of(value);
        }
        StackOp::LocalTee(cell) => {
            let value = *operands.wide_at(operands.sp - 2);
            *operands.wide_at(cell as usize) = value;
        }
        StackOp::Shuffle(op, wide) => shuffle(op, wide, operands),
        StackOp::GlobalGet(_) | StackOp::GlobalSet(_) | StackOp::Service(..) => {
            unreachable!("{op:?} concerns the store")
        }
    }
    Ok(())
}

/// Reads memory 0.
fn load<const N: usize>(memory: &[u8], address: u64) -> Result<[u8; N], TrapCode> {
    let bytes = usize::try_from(address).ok().and_then(|start| memory.get(start..));
    bytes.and_then(<[u8]>::first_chunk).copied().ok_or(TrapCode::MemoryOutOfBounds)
}

/// Writes memory 0.
fn store<const N: usize>(memory: &mut [u8], address: u64, value: [u8; N]) -> Result<(), TrapCode> {
    let bytes = usize::try_from(address).ok().and_then(|start| memory.get_mut(start..));
    let bytes = bytes.and_then(<[u8]>::first_chunk_mut).ok_or(TrapCode::MemoryOutOfBounds)?;
    *bytes = value;
    Ok(())
}

fn operation(op: Op, imm: u128, canonical_nans: bool, operands: &mut Operands<'_>) {
    let signature = op.signature().expect("operations on vectors have fixed signatures");
    let mut values = [0; 3];
    for (value, &ty) in values.iter_mut().zip(signature.params).rev() {
        *value = operands.pop_of_type(ty);
    }
    let mut value = vector::eval(op, imm, values);
    if canonical_nans {
        value = vector::canonical_nans(op, value);
    }
    operands.push_of_type(signature.results[0], value);
}

/// A stack shuffle, `drop` or `select`; bit `i` of `wide` is set if operand `i` from the top takes two cells.
fn shuffle(op: Op, wide: u8, operands: &mut Operands<'_>) {
    let ty = |i: u32| if wide >> i & 1 == 1 { ValType::V128 } else { ValType::I64 };
    match op {
        Op::Drop => drop(operands.pop_wide()),
        Op::Dup => {
            let a = operands.pop_wide();
            operands.push_wide(a);
            operands.push_wide(a);
        }
        Op::Swap | Op::Over => {
            let (b, a) = (operands.pop_of_type(ty(0)), operands.pop_of_type(ty(1)));
            if op == Op::Over {
                operands.push_of_type(ty(1), a);
            }
            operands.push_of_type(ty(0), b);
            operands.push_of_type(ty(1), a);
        }
        Op::Rot => {
            let (c, b) = (operands.pop_of_type(ty(0)), operands.pop_of_type(ty(1)));
            let a = operands.pop_of_type(ty(2));
            operands.push_of_type(ty(1), b);
            operands.push_of_type(ty(0), c);
            operands.push_of_type(ty(2), a);
        }
        Op::Select => {
            let (condition, b, a) =
                (operands.pop() as u32, operands.pop_wide(), operands.pop_wide());
            operands.push_wide(if condition != 0 { a } else { b });
        }
        _ => unreachable!("`{}` shuffles nothing", op.mnemonic()),
    }
}
