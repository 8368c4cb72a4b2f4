//! Maps WebAssembly operators to opcodes of the same name, as marked in the opcode table.

use wasmparser::{HeapType, MemArg, Operator};

use crate::for_each_op;
use crate::inst::Imm;
use crate::op::Op;
use crate::types::ValType;

/// The operator pattern for a row of the opcode table, by its origin and immediates. It binds the
/// operator's fields to `$a` and `$b`. A row without an equivalent operator gets the pattern of an operator
/// that an earlier arm has matched.
macro_rules! operator {
    (Own $kind:ident $name:ident $a:ident $b:ident) => {
        Operator::Unreachable
    };
    (Wasm V128 $name:ident $a:ident $b:ident) => {
        Operator::Unreachable
    };
    (Wasm Lanes $name:ident $a:ident $b:ident) => {
        Operator::Unreachable
    };
    (Wasm None $name:ident $a:ident $b:ident) => {
        Operator::$name
    };
    (Wasm I32 $name:ident $a:ident $b:ident) => {
        Operator::$name { value: $a }
    };
    (Wasm I64 $name:ident $a:ident $b:ident) => {
        Operator::$name { value: $a }
    };
    (Wasm F32 $name:ident $a:ident $b:ident) => {
        Operator::$name { value: $a }
    };
    (Wasm F64 $name:ident $a:ident $b:ident) => {
        Operator::$name { value: $a }
    };
    (Wasm Local $name:ident $a:ident $b:ident) => {
        Operator::$name { local_index: $a }
    };
    (Wasm Global $name:ident $a:ident $b:ident) => {
        Operator::$name { global_index: $a }
    };
    (Wasm Func $name:ident $a:ident $b:ident) => {
        Operator::$name { function_index: $a }
    };
    (Wasm TypeTable $name:ident $a:ident $b:ident) => {
        Operator::$name { type_index: $a, table_index: $b }
    };
    (Wasm RefType $name:ident $a:ident $b:ident) => {
        Operator::$name { hty: $a }
    };
    (Wasm Table $name:ident $a:ident $b:ident) => {
        Operator::$name { table: $a }
    };
    (Wasm TableTable $name:ident $a:ident $b:ident) => {
        Operator::$name { dst_table: $a, src_table: $b }
    };
    (Wasm ElemTable $name:ident $a:ident $b:ident) => {
        Operator::$name { elem_index: $a, table: $b }
    };
    (Wasm Elem $name:ident $a:ident $b:ident) => {
        Operator::$name { elem_index: $a }
    };
    (Wasm Memory $name:ident $a:ident $b:ident) => {
        Operator::$name { mem: $a }
    };
    (Wasm MemoryMemory $name:ident $a:ident $b:ident) => {
        Operator::$name { dst_mem: $a, src_mem: $b }
    };
    (Wasm DataMemory $name:ident $a:ident $b:ident) => {
        Operator::$name { data_index: $a, mem: $b }
    };
    (Wasm Data $name:ident $a:ident $b:ident) => {
        Operator::$name { data_index: $a }
    };
    (Wasm Mem $name:ident $a:ident $b:ident) => {
        Operator::$name { memarg: $a }
    };
    (Wasm Lane $name:ident $a:ident $b:ident) => {
        Operator::$name { lane: $a }
    };
    (Wasm MemLane $name:ident $a:ident $b:ident) => {
        Operator::$name { memarg: $a, lane: $b }
    };
}

/// Builds the immediates of a row from the bindings of [`operator!`].
macro_rules! imm {
    (Own $kind:ident $a:ident $b:ident) => {
        Imm::NONE
    };
    (Wasm V128 $a:ident $b:ident) => {
        Imm::NONE
    };
    (Wasm Lanes $a:ident $b:ident) => {
        Imm::NONE
    };
    (Wasm None $a:ident $b:ident) => {
        Imm::NONE
    };
    (Wasm I32 $a:ident $b:ident) => {
        Imm::i32($a)
    };
    (Wasm I64 $a:ident $b:ident) => {
        Imm::i64($a)
    };
    (Wasm F32 $a:ident $b:ident) => {
        Imm::index($a.bits())
    };
    (Wasm F64 $a:ident $b:ident) => {
        Imm($a.bits())
    };
    (Wasm TypeTable $a:ident $b:ident) => {
        Imm::pair($a, $b)
    };
    (Wasm RefType $a:ident $b:ident) => {
        Imm::ref_type(ref_type($a))
    };
    (Wasm TableTable $a:ident $b:ident) => {
        Imm::pair($a, $b)
    };
    (Wasm ElemTable $a:ident $b:ident) => {
        Imm::pair($a, $b)
    };
    (Wasm MemoryMemory $a:ident $b:ident) => {
        Imm::pair($a, $b)
    };
    (Wasm DataMemory $a:ident $b:ident) => {
        Imm::pair($a, $b)
    };
    (Wasm Mem $a:ident $b:ident) => {
        mem($a)
    };
    (Wasm Lane $a:ident $b:ident) => {
        Imm::lane($a.into())
    };
    (Wasm MemLane $a:ident $b:ident) => {
        Imm::mem_lane($a.offset as u32, $b.into())
    };
    (Wasm $index:ident $a:ident $b:ident) => {
        Imm::index($a)
    };
}

/// Returns the equivalent instruction, if there is exactly one. Structured control flow and the operators
/// of [`vector`] have none.
///
/// The operator has been validated with [`super::proposals::SUPPORTED`], so its memory is 0 and all of its
/// indices fit.
pub(super) fn plain(operator: &Operator<'_>) -> Option<(Op, Imm)> {
    macro_rules! same_name {
        ($(
            $code:literal $variant:ident $mnemonic:literal $imm:ident $(($($bytes:tt)*))? {$($sig:tt)*}
            $effect:ident $origin:ident $doc:literal;
        )*) => {
            #[expect(unreachable_patterns, reason = "rows without an operator repeat a pattern")]
            match *operator {
                Operator::Unreachable => None,
                Operator::TypedSelect { .. } => Some((Op::Select, Imm::NONE)),
                $(operator!($origin $imm $variant a b) => {
                    Some((Op::$variant, imm!($origin $imm a b)))
                })*
                _ => None,
            }
        };
    }
    for_each_op!(same_name)
}

/// Returns the instruction with a 16-byte vector immediate, and the immediate as a little-endian number.
pub(super) fn vector(operator: &Operator<'_>) -> Option<(Op, u128)> {
    match *operator {
        Operator::V128Const { value } => Some((Op::V128Const, value.i128() as u128)),
        Operator::I8x16Shuffle { lanes } => Some((Op::I8x16Shuffle, u128::from_le_bytes(lanes))),
        _ => None,
    }
}

/// The immediates of a memory access. There is one memory, and offsets have 32 bits.
fn mem(memarg: MemArg) -> Imm {
    Imm::mem(memarg.offset as u32)
}

/// Returns the type of a null reference of this heap type. Without function references there are only two.
pub(super) fn ref_type(heap: HeapType) -> ValType {
    match heap {
        HeapType::EXTERN => ValType::ExternRef,
        _ => ValType::FuncRef,
    }
}
