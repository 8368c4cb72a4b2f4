//! Loads of fields that never change, of which a block does each once.
//!
//! With the optimiser this changes nothing but the number of instructions that it looks at: it would find the loads
//! to be the same. The ways to compile without it would do each load again, for each access of memory and each call.

use cranelift_codegen::ir::{self, InstBuilder};

use super::Lowering;
use crate::lower::abi::POINTER;

/// Loads that a block remembers: a search looks at them all.
const N_LOADS_MAX: usize = 8;

/// The last constant fields that the block at hand has loaded.
#[derive(Default)]
pub(super) struct Constants {
    block: Option<ir::Block>,
    loads: [Option<ConstantLoad>; N_LOADS_MAX],
    /// The entry to be replaced next.
    oldest: usize,
}

#[derive(Copy, Clone)]
struct ConstantLoad {
    base: ir::Value,
    offset: i32,
    value: ir::Value,
}

impl Constants {
    /// Forgets what was loaded in another block: it need not dominate this one.
    fn enter(&mut self, block: Option<ir::Block>) {
        if self.block != block {
            *self = Constants { block, ..Constants::default() };
        }
    }

    fn find(&self, base: ir::Value, offset: i32) -> Option<ir::Value> {
        let mut loads = self.loads.iter().flatten();
        loads.find(|load| (load.base, load.offset) == (base, offset)).map(|load| load.value)
    }

    fn push(&mut self, load: ConstantLoad) {
        self.loads[self.oldest] = Some(load);
        self.oldest = (self.oldest + 1) % N_LOADS_MAX;
    }
}

impl Lowering<'_, '_> {
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
        self.constants.enter(self.builder.current_block());
        if let Some(value) = self.constants.find(base, offset) {
            debug_assert_eq!(self.builder.func.dfg.value_type(value), ty, "a field has one type");
            return value;
        }
        let flags = self.constant_flags();
        let value = self.builder.ins().load(ty, flags, base, offset);
        self.constants.push(ConstantLoad { base, offset, value });
        value
    }

    /// Entry `index` of an array of pointers in the context, by the array's field.
    pub(super) fn context_array_entry(&mut self, field: i32, index: u32) -> ir::Value {
        let array = self.constant_pointer(self.context, field);
        self.constant_pointer(array, index as i32 * POINTER.bytes() as i32)
    }
}
