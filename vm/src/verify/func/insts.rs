//! Instructions that go on behind themselves: their operands and results, and the entities that they name.

use super::{Check, Checker, Operand};
use crate::inst::{Imm, Inst, labels};
use crate::op::{Access, Effect, ImmKind, Op};
use crate::types::ValType;
use crate::verified::{DirectAccess, EscapeReason};
use crate::verify::error::Rule;

impl Checker<'_, '_> {
    /// Checks an instruction: its immediates, its operands, where it goes.
    pub(super) fn inst(&mut self, inst: Inst) -> Check {
        let Inst { op, imm } = inst;
        self.check_indices(op.imm_kind(), imm)?;
        self.scratch.found.uses_vectors |= op.is_vector();
        match op {
            _ if op.access().is_some() => self.access(op.access().expect("just tested"), imm),
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot => self.shuffle(op),
            Op::LocalGet | Op::LocalSet | Op::LocalTee | Op::LocalAddr => self.local(op, imm.low()),
            Op::Select => {
                self.pop(ValType::I32)?;
                let b = self.pop_any()?;
                self.escape(b, EscapeReason::Consumed);
                self.pop(b.ty)?;
                self.note_wide(&[b]);
                self.push(b.ty)
            }
            Op::GlobalGet => self.push(self.spaces.globals[imm.low() as usize].ty),
            Op::GlobalSet => {
                let global = self.spaces.globals[imm.low() as usize];
                if !global.mutable {
                    let detail = format!("global {} is immutable", imm.low());
                    return Err(self.error(Rule::GlobalMutable, detail));
                }
                self.pop(global.ty)
            }
            Op::RefNull => self.push(imm.as_ref_type()),
            Op::RefFunc => {
                self.scratch.found.referenced_funcs.push(imm.low());
                self.push(ValType::FuncRef)
            }
            Op::RefIsNull => {
                let operand = self.pop_any()?;
                if !operand.ty.is_ref() {
                    let detail = format!("the operand is {}, not a reference", operand.ty);
                    return Err(self.error(Rule::OperandType, detail));
                }
                self.push(ValType::I32)
            }
            Op::TableGet
            | Op::TableSet
            | Op::TableGrow
            | Op::TableFill
            | Op::TableCopy
            | Op::TableInit => self.table(op, imm),
            Op::Call => {
                let ty = self.func_type(imm.low());
                self.pop_all(&ty.params)?;
                self.push_all(&ty.results)
            }
            Op::CallIndirect => {
                let ty = self.indirect_type(imm)?;
                self.pop(ValType::I32)?;
                self.pop_all(&ty.params)?;
                self.push_all(&ty.results)
            }
            _ if op.effect() == Effect::Control => self.control(op, imm),
            _ => {
                let sig = op.signature().expect("all others have fixed signatures");
                self.pop_all(sig.params)?;
                self.push_all(sig.results)
            }
        }
    }

    fn check_indices(&mut self, kind: ImmKind, imm: Imm) -> Check {
        let spaces = self.spaces;
        let (low, high) = (imm.low(), imm.high());
        let (n_tables, n_memories) = (spaces.tables.len(), spaces.memories.len());
        match kind {
            ImmKind::None
            | ImmKind::I32
            | ImmKind::I64
            | ImmKind::F32
            | ImmKind::F64
            | ImmKind::V128
            | ImmKind::Lanes
            | ImmKind::Lane
            | ImmKind::RefType => Ok(()),
            ImmKind::Local => self.index(Rule::LocalIndex, low, self.locals.len()),
            ImmKind::Global => self.index(Rule::GlobalIndex, low, spaces.globals.len()),
            ImmKind::Func => self.index(Rule::FuncIndex, low, spaces.funcs.len()),
            ImmKind::Label | ImmKind::LabelCount => {
                self.index(Rule::LabelIndex, low, self.def.labels.len())
            }
            ImmKind::Labels => {
                let def = self.def;
                labels(&def.code, imm)
                    .try_for_each(|label| self.index(Rule::LabelIndex, label, def.labels.len()))
            }
            ImmKind::TypeTable => {
                self.index(Rule::TypeIndex, low, self.module.types.len())?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::Table => self.index(Rule::TableIndex, low, n_tables),
            ImmKind::TableTable => {
                self.index(Rule::TableIndex, low, n_tables)?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::ElemTable => {
                self.index(Rule::ElemIndex, low, self.module.elems.len())?;
                self.index(Rule::TableIndex, high, n_tables)
            }
            ImmKind::Elem => self.index(Rule::ElemIndex, low, self.module.elems.len()),
            ImmKind::Memory => self.index(Rule::MemoryIndex, low, n_memories),
            ImmKind::MemoryMemory => {
                self.index(Rule::MemoryIndex, low, n_memories)?;
                self.index(Rule::MemoryIndex, high, n_memories)
            }
            ImmKind::DataMemory => {
                self.index(Rule::DataIndex, low, self.module.datas.len())?;
                self.index(Rule::MemoryIndex, high, n_memories)
            }
            ImmKind::Data => self.index(Rule::DataIndex, low, self.module.datas.len()),
            ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane => {
                self.index(Rule::MemoryIndex, imm.memory(), n_memories)
            }
        }
    }

    #[inline]
    fn index(&self, rule: Rule, index: u32, len: usize) -> Check {
        if (index as usize) < len {
            return Ok(());
        }
        Err(self.error(rule, format!("index {index} is not below {len}")))
    }

    /// A load or store; through a token it may be an access of the local itself.
    fn access(&mut self, access: Access, imm: Imm) -> Check {
        if access.store {
            let value = self.pop_expecting(access.ty)?;
            self.escape(value, EscapeReason::Stored);
        }
        if access.indexed {
            self.scratch.found.uses_indexed = true;
            let index = self.pop_expecting(ValType::I32)?;
            self.escape(index, EscapeReason::Stored);
        }
        let address = self.pop_expecting(ValType::I32)?;
        if let Some(local) = address.token.checked_sub(1) {
            let same_type = access.ty == self.locals[local as usize] && access.is_full();
            let reason = match () {
                () if access.indexed => Some(EscapeReason::Stored),
                () if !same_type => Some(EscapeReason::OtherType),
                () if imm.offset() != 0 => Some(EscapeReason::Offset),
                () => None,
            };
            match reason {
                Some(reason) => self.escape(address, reason),
                None => self.direct.push(DirectAccess { offset: self.offset, local }),
            }
        }
        if access.store { Ok(()) } else { self.push(access.ty) }
    }

    fn local(&mut self, op: Op, local: u32) -> Check {
        let ty = self.locals[local as usize];
        match op {
            Op::LocalGet => self.push(ty),
            Op::LocalSet => self.pop(ty),
            Op::LocalTee => {
                self.pop(ty)?;
                self.push(ty)
            }
            Op::LocalAddr => {
                if self.module.frame_stack.is_none() {
                    let detail = "the module has no frame stack".into();
                    return Err(self.error(Rule::LocalAddr, detail));
                }
                // Each local has 8 bytes of the frame stack.
                if !ty.is_num() || ty.bytes() > 8 {
                    let detail = format!("local {local} is {ty}");
                    return Err(self.error(Rule::LocalAddr, detail));
                }
                self.push_operand(Operand { ty: ValType::I32, token: local + 1 })
            }
            _ => unreachable!("{op:?} is no local access"),
        }
    }

    fn table(&mut self, op: Op, imm: Imm) -> Check {
        let elem_of = |table: u32| self.spaces.tables[table as usize].elem;
        let elem = elem_of(if op == Op::TableInit { imm.high() } else { imm.low() });
        let (params, results): (&[ValType], &[ValType]) = match op {
            Op::TableGet => (&[ValType::I32], &[elem]),
            Op::TableSet => (&[ValType::I32, elem], &[]),
            Op::TableGrow => (&[elem, ValType::I32], &[ValType::I32]),
            Op::TableFill => (&[ValType::I32, elem, ValType::I32], &[]),
            Op::TableCopy | Op::TableInit => {
                let source = match op {
                    Op::TableCopy => elem_of(imm.high()),
                    _ => self.module.elems[imm.low() as usize].ty,
                };
                if source != elem {
                    let detail = format!("elements of {source} go to a table of {elem}");
                    return Err(self.error(Rule::OperandType, detail));
                }
                (&[ValType::I32; 3], &[])
            }
            _ => unreachable!("{op:?} is no table access"),
        };
        self.pop_all(params)?;
        self.push_all(results)
    }
}
