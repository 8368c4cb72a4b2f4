//! The calling convention of guest functions, for the lowering and for trampolines.
//!
//! All guest functions have Cranelift's `tail` convention. Parameter 0 is the `*mut VmCtx` of the
//! instance that defines the function. If the results do not fit registers, parameter 1 is the address
//! of a return area with the 8-byte cells of all results, which the callee writes, and there are no
//! register results at all. The bytecode's parameters follow, references as `I64` handles.
//!
//! In cells, of return areas and of the arrays that trampolines take, `i32` and `f32` are
//! zero-extended; a vector takes two, and is an `I8X16` otherwise.
//!
//! A function of the module is called directly, as the colocated [`func_name`]; imported functions and
//! those of tables are called through their `FuncRecord`.

use cranelift_codegen::ir::{
    AbiParam, ArgumentPurpose, MemFlagsData, Signature, Type, UserExternalName, types,
};
use cranelift_codegen::isa::CallConv;
use slotvm_bytecode::{FuncType, ValType, n_cells};

use crate::code::machine_code::FUNC_NAMESPACE;

/// Results of integer class that fit registers on all targets.
pub(crate) const INT_RESULTS_MAX: usize = 6;
/// Floating-point results and vectors that fit registers on all targets.
pub(crate) const FLOAT_RESULTS_MAX: usize = 8;
/// The bytes of a cell.
pub(crate) const CELL_BYTES: u32 = 8;
/// The type of addresses; all targets have 64 bits.
pub(crate) const POINTER: Type = types::I64;

/// The type that holds a value in native code.
pub(crate) const fn clif_type(ty: ValType) -> Type {
    match ty {
        ValType::I32 => types::I32,
        ValType::I64 | ValType::FuncRef | ValType::ExternRef | ValType::Ref => types::I64,
        ValType::F32 => types::F32,
        ValType::F64 => types::F64,
        ValType::V128 => types::I8X16,
    }
}

/// The flags of an access to a cell, which of a vector are two and not aligned to its size.
pub(crate) fn cell_flags(ty: ValType, flags: MemFlagsData) -> MemFlagsData {
    if ty != ValType::V128 {
        return flags;
    }
    let mut unaligned = MemFlagsData::new().with_notrap().with_alias_region(flags.alias_region());
    if flags.readonly() {
        unaligned = unaligned.with_readonly();
    }
    if flags.can_move() {
        unaligned = unaligned.with_can_move();
    }
    unaligned
}

/// Types, each with the place of its value's first cell where the cells of all follow each other, in
/// bytes.
pub(crate) fn in_cells(types: &[ValType]) -> impl Iterator<Item = (i32, ValType)> {
    types.iter().scan(0, |next, &ty| {
        let offset = *next;
        *next += ty.cells() as i32 * CELL_BYTES as i32;
        Some((offset, ty))
    })
}

/// Whether the results of a function go to a return area instead of registers.
pub(crate) fn returns_by_area(ty: &FuncType) -> bool {
    let is_float = |ty: &&ValType| matches!(ty, ValType::F32 | ValType::F64 | ValType::V128);
    let n_floats = ty.results.iter().filter(is_float).count();
    n_floats > FLOAT_RESULTS_MAX || ty.results.len() - n_floats > INT_RESULTS_MAX
}

/// The bytes of the return area of a function, 0 if it needs none.
pub(crate) fn return_area_bytes(ty: &FuncType) -> u32 {
    if returns_by_area(ty) { n_cells(&ty.results) as u32 * CELL_BYTES } else { 0 }
}

/// The number of native parameters before those of the bytecode.
pub(crate) fn n_leading_params(ty: &FuncType) -> usize {
    1 + usize::from(returns_by_area(ty))
}

/// The native signature of a guest function.
pub(crate) fn guest_signature(ty: &FuncType) -> Signature {
    let param = |&ty: &ValType| AbiParam::new(clif_type(ty));
    let mut signature = Signature::new(CallConv::Tail);
    // The purpose does not change where the context is passed; the prologue's stack check finds it by it.
    signature.params.push(AbiParam::special(POINTER, ArgumentPurpose::VMContext));
    if returns_by_area(ty) {
        signature.params.push(AbiParam::new(POINTER));
    }
    signature.params.extend(ty.params.iter().map(param));
    if !returns_by_area(ty) {
        signature.returns.extend(ty.results.iter().map(param));
    }
    signature
}

/// The native signature of a leaf function, in the C convention of the target.
pub(crate) fn leaf_signature(convention: CallConv, ty: &FuncType) -> Signature {
    let param = |&ty: &ValType| AbiParam::new(clif_type(ty));
    let mut signature = Signature::new(convention);
    signature.params.push(AbiParam::new(POINTER));
    signature.params.extend(ty.params.iter().map(param));
    signature.returns.extend(ty.results.iter().map(param));
    signature
}

/// The signature of what guest code calls when a poll is due. It keeps all registers: another call in
/// each loop, even if it is never made, would make guest code keep in memory what lives there.
pub(crate) fn poll_signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.push(AbiParam::new(POINTER));
    signature
}

/// Which direction calls go through a trampoline.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// Guest code to host functions of the signature, whose records have the trampoline as their code.
    ToHost,
    /// The host to guest functions of the signature: an `EntryTrampoline`.
    FromHost,
}

impl Direction {
    /// The name of the trampoline of a signature, for profilers and debuggers.
    pub(crate) fn name(self, ty: &FuncType) -> String {
        match self {
            Direction::ToHost => format!("trampoline to the host {ty}"),
            Direction::FromHost => format!("trampoline from the host {ty}"),
        }
    }
}

/// The name by which native code refers to a function of the module.
pub(crate) const fn func_name(func: u32) -> UserExternalName {
    UserExternalName { namespace: FUNC_NAMESPACE, index: func }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ValType::{F32, F64, FuncRef, I32, I64};

    #[test]
    fn results_go_to_an_area_when_either_class_is_full() {
        let by_area = |results: &[ValType]| returns_by_area(&FuncType::new([], results));
        assert!(!by_area(&[]));
        assert!(!by_area(&[
            I32, I64, FuncRef, I32, I32, I32, F32, F32, F32, F32, F64, F64, F64, F64
        ]));
        assert!(by_area(&[I32, I64, FuncRef, I32, I32, I32, I64]));
        assert!(by_area(&[F64; 9]));
    }

    #[test]
    fn the_area_pointer_comes_after_the_context() {
        let ty = FuncType::new([I32, F64], [I64; 7]);
        let signature = guest_signature(&ty);
        let params: Vec<Type> = signature.params.iter().map(|p| p.value_type).collect();
        assert_eq!(params, [POINTER, POINTER, types::I32, types::F64]);
        assert!(signature.returns.is_empty());
        assert_eq!(return_area_bytes(&ty), 56);

        let ty = FuncType::new([I32], [F32, FuncRef]);
        let signature = guest_signature(&ty);
        let params: Vec<Type> = signature.params.iter().map(|p| p.value_type).collect();
        let results: Vec<Type> = signature.returns.iter().map(|p| p.value_type).collect();
        assert_eq!(params, [POINTER, types::I32]);
        assert_eq!(results, [types::F32, types::I64]);
        assert_eq!(return_area_bytes(&ty), 0);
    }
}
