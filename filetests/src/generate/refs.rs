//! References into the embedder's heap, in modules that have them.
//!
//! Bits of a reference are the address of an object, which differs between engines and changes at each call of the host,
//! or an odd number, which names no object. So programs look only at what is the same everywhere: whether two
//! references are equal, whether they are odd, and what the host knows of an object.

use slotvm_bytecode::module::{Global, GlobalType, TableType};
use slotvm_bytecode::{FuncType, Imm, Op, ValType};

use super::{Generator, const_op};

/// The imported function that makes an object of its first parameter, and returns a number of the object of its second.
const ANY: u32 = 2;
/// The table of references.
const TABLE: u32 = 2;
/// Its elements at the beginning.
const TABLE_LEN: usize = 4;

impl Generator<'_> {
    /// The type of the function that makes objects.
    pub(super) fn object_func_type() -> FuncType {
        use ValType::{I64, Ref};
        FuncType::new([I64, Ref], [Ref, I64])
    }

    /// Adds the table, after those of all modules.
    pub(super) fn ref_table(&mut self) {
        let (min, max) = (TABLE_LEN as u32, Some(TABLE_LEN as u32 + 4));
        self.module.tables.push(TableType { elem: ValType::Ref, min, max });
    }

    /// Adds globals.
    pub(super) fn ref_globals(&mut self) {
        use slotvm_bytecode::module::ConstExpr;
        for mutable in [true, true, false] {
            let (ty, init) = (ValType::Ref, ConstExpr::ref_null(ValType::Ref));
            let ty = GlobalType { ty, mutable };
            self.module.globals.push(Global { ty, init });
            self.globals.push(ty);
        }
    }

    /// Pushes a reference that comes from neither a local nor a global. The caller tracks the stack.
    pub(super) fn new_ref(&mut self) {
        match self.choices.below(4) {
            0 => self.raw(Op::RefNull, Imm::ref_type(ValType::Ref)),
            1 => {
                let odd = self.choices.bits() | 1;
                self.raw(const_op(ValType::I64), Imm(odd));
                self.raw(Op::RefReinterpretI64, Imm::NONE);
            }
            _ => {
                let number = self.choices.below(50) as u64 + 20;
                self.raw(const_op(ValType::I64), Imm(number));
                match self.writable_locals(ValType::Ref).first() {
                    Some(&local) => self.raw(Op::LocalGet, Imm::index(local)),
                    None => self.raw(Op::RefNull, Imm::ref_type(ValType::Ref)),
                }
                self.raw(Op::Call, Imm::index(ANY));
                self.raw(Op::Drop, Imm::NONE);
            }
        }
    }

    /// Something with references.
    pub(super) fn ref_step(&mut self) {
        use ValType::{I32, I64, Ref};
        match self.choices.below(8) {
            0 | 1 => {
                let locals = self.writable_locals(Ref);
                if !locals.is_empty() {
                    let local = self.choices.pick(&locals);
                    self.new_ref();
                    self.raw(Op::LocalSet, Imm::index(local));
                }
            }
            2 => {
                // What the host knows of an object.
                let number = self.choices.below(50) as u64 + 20;
                self.raw(const_op(I64), Imm(number));
                self.stack.push(I64);
                self.value(Ref);
                self.raw(Op::Call, Imm::index(ANY));
                let n = self.stack.len();
                self.stack[n - 2..].copy_from_slice(&[Ref, I64]);
            }
            3 => {
                // Both lie on the stack before their bits are compared.
                self.operands(&[Ref, Ref]);
                let n = self.stack.len();
                self.raw(Op::I64ReinterpretRef, Imm::NONE);
                self.stack[n - 1] = I64;
                self.compare_below();
            }
            4 => {
                self.operands(&[Ref]);
                self.raw(Op::I64ReinterpretRef, Imm::NONE);
                self.raw(const_op(I64), Imm(1));
                self.raw(Op::I64And, Imm::NONE);
                let n = self.stack.len();
                self.stack[n - 1] = I64;
            }
            5 => self.apply(Op::RefIsNull, Imm::NONE, &[Ref], &[I32]),
            _ => self.ref_element(),
        }
    }

    /// Compares the bits on top with the reference below.
    fn compare_below(&mut self) {
        self.raw(Op::Swap, Imm::NONE);
        self.raw(Op::I64ReinterpretRef, Imm::NONE);
        self.raw(Op::I64Eq, Imm::NONE);
        self.stack.pop();
        let n = self.stack.len();
        self.stack[n - 1] = ValType::I32;
    }

    /// Something with the table.
    fn ref_element(&mut self) {
        use ValType::{I32, Ref};
        match self.choices.below(5) {
            0 | 1 => {
                self.const_below(TABLE_LEN);
                self.raw(Op::TableGet, Imm::index(TABLE));
                self.stack.push(Ref);
            }
            2 => {
                self.const_below(TABLE_LEN);
                self.value(Ref);
                self.stack.pop();
                self.raw(Op::TableSet, Imm::index(TABLE));
            }
            3 => {
                self.value(Ref);
                self.stack.pop();
                self.const_below(2);
                self.raw(Op::TableGrow, Imm::index(TABLE));
                self.stack.push(I32);
            }
            _ => {
                self.const_below(TABLE_LEN);
                self.const_below(TABLE_LEN);
                self.const_below(2);
                self.raw(Op::TableCopy, Imm::pair(TABLE, TABLE));
            }
        }
    }
}
