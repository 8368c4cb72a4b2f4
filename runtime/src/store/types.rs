//! The function types of a store, each once, with a number.

use std::collections::HashMap;

use slotvm_bytecode::FuncType;

/// Number of function types of a store that are found by comparison: hashing one takes longer.
const TYPES_COMPARED: usize = 8;

/// See the module documentation.
#[derive(Default)]
pub(super) struct Types {
    types: Vec<FuncType>,
    /// The numbers of those after the first [`TYPES_COMPARED`].
    numbers: HashMap<FuncType, u32>,
}

impl Types {
    /// The number of a type: equal types have equal numbers.
    pub(super) fn intern(&mut self, ty: &FuncType) -> u32 {
        let first = &self.types[..self.types.len().min(TYPES_COMPARED)];
        if let Some(number) = first.iter().position(|known| known == ty) {
            return number as u32;
        }
        if let Some(&number) = self.numbers.get(ty) {
            return number;
        }
        let number = self.types.len();
        self.types.push(ty.clone());
        if number >= TYPES_COMPARED {
            self.numbers.insert(ty.clone(), number as u32);
        }
        number as u32
    }

    /// The type with a number.
    pub(super) fn get(&self, number: u32) -> &FuncType {
        &self.types[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::ValType;

    use super::*;

    #[test]
    fn equal_types_have_equal_numbers() {
        let mut known = Types::default();
        let types = (0..3 * TYPES_COMPARED).map(|n| FuncType::new(vec![ValType::I32; n], []));
        let types: Vec<_> = types.collect();
        let numbers: Vec<_> = types.iter().map(|ty| known.intern(ty)).collect();
        assert!(numbers.iter().copied().eq(0..types.len() as u32));
        for (ty, number) in types.iter().zip(numbers).rev() {
            assert_eq!(known.intern(ty), number);
            assert_eq!(known.get(number), ty);
        }
    }
}
