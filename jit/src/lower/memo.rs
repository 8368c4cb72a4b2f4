//! Values that a block needs again and again, of which it makes each once: constants, extended addresses, and loads of
//! fields that never change.
//!
//! With the optimiser this changes nothing but the number of instructions that it looks at: it would find the values
//! to be the same. The ways to compile without it would do each load again, for each access of memory and each call;
//! addresses they do compute again, since a value that lives longer takes a register from others.

use cranelift_codegen::ir::{self, InstBuilder, types};

use super::Lowering;
use crate::lower::abi::POINTER;

/// A value that can be made again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Made {
    /// A field at an offset from an address.
    Field(ir::Value, i32),
    /// A constant of 32 or of 64 bits.
    Int(bool, i64),
    /// A value of 32 bits in 64.
    Extended(ir::Value),
    /// A sum of 64 bits.
    Sum(ir::Value, ir::Value),
}

/// The logarithm of the number of values that are remembered.
const REMEMBERED_LOG2: u32 = 6;

/// The values that the block at hand has made last, each in its place of a table.
pub(super) struct Memo([Option<(ir::Block, Made, ir::Value)>; 1 << REMEMBERED_LOG2]);

impl Default for Memo {
    fn default() -> Memo {
        Memo([None; 1 << REMEMBERED_LOG2])
    }
}

impl Made {
    /// Its place in the table.
    fn place(self) -> usize {
        let (kind, a, b) = match self {
            Made::Field(base, offset) => (0, base.as_u32().into(), offset as u64),
            Made::Int(is_wide, value) => (1 + u64::from(is_wide), value as u64, 0),
            Made::Extended(value) => (3, value.as_u32().into(), 0),
            Made::Sum(a, b) => (4, u64::from(a.as_u32()), u64::from(b.as_u32())),
        };
        // Fibonacci hashing (Knuth, TAOCP volume 3, section 6.4).
        let mixed = (a ^ b.rotate_left(20) ^ kind << 61).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - REMEMBERED_LOG2)) as usize
    }
}

impl Lowering<'_, '_> {
    /// A value that the block has made, or that `make` makes.
    fn once(&mut self, made: Made, make: impl FnOnce(&mut Self) -> ir::Value) -> ir::Value {
        let block = self.builder.current_block().expect("instructions are in blocks");
        let place = made.place();
        // One of another block need not dominate this one.
        if let Some((known_block, known, value)) = self.memo.0[place]
            && (known_block, known) == (block, made)
        {
            return value;
        }
        let value = make(self);
        self.memo.0[place] = Some((block, made, value));
        value
    }

    /// A constant of 32 bits, of which the others are zero.
    pub(super) fn int32(&mut self, bits: u32) -> ir::Value {
        let value = i64::from(bits);
        self.once(Made::Int(false, value), |it| it.builder.ins().iconst(types::I32, value))
    }

    /// A constant of 64 bits.
    pub(super) fn int64(&mut self, value: i64) -> ir::Value {
        self.once(Made::Int(true, value), |it| it.builder.ins().iconst(types::I64, value))
    }

    /// A value of 32 bits in 64.
    pub(super) fn extended(&mut self, value: ir::Value) -> ir::Value {
        if !self.optimises {
            return self.builder.ins().uextend(POINTER, value);
        }
        self.once(Made::Extended(value), |it| it.builder.ins().uextend(POINTER, value))
    }

    /// The sum of an address and a distance.
    pub(super) fn sum(&mut self, a: ir::Value, b: ir::Value) -> ir::Value {
        if !self.optimises {
            return self.builder.ins().iadd(a, b);
        }
        self.once(Made::Sum(a, b), |it| it.builder.ins().iadd(a, b))
    }

    /// Loads a pointer that never changes.
    pub(super) fn constant_pointer(&mut self, base: ir::Value, offset: i32) -> ir::Value {
        self.constant_field(POINTER, base, offset)
    }

    /// Loads a field that never changes, and is always read as this type.
    pub(super) fn constant_field(
        &mut self,
        ty: ir::Type,
        base: ir::Value,
        offset: i32,
    ) -> ir::Value {
        let value = self.once(Made::Field(base, offset), |it| {
            let flags = it.constant_flags();
            it.builder.ins().load(ty, flags, base, offset)
        });
        debug_assert_eq!(self.builder.func.dfg.value_type(value), ty, "a field has one type");
        value
    }

    /// Entry `index` of an array of pointers in the context, by the array's field.
    pub(super) fn context_array_entry(&mut self, field: i32, index: u32) -> ir::Value {
        let array = self.constant_pointer(self.context, field);
        self.constant_pointer(array, index as i32 * POINTER.bytes() as i32)
    }
}
