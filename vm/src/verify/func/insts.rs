//! Checks of instructions: operands, results, and the entities that they name.

use super::{Check, Checker};
use crate::inst::{Imm, Inst, labels};
use crate::op::{Access, ImmKind, Op, Signature};
use crate::types::ValType;
use crate::typing;
use crate::verified::{DirectAccess, EscapeReason};
use crate::verify::error::Rule;

impl Checker<'_, '_> {
    /// Checks an instruction: its immediates, operands and branch targets.
    pub(super) fn inst(&mut self, inst: Inst) -> Check {
        let Inst { op, imm } = inst;
        self.check_indices(op.imm_kind(), imm)?;
        self.scratch.found.note(op, imm);
        let Some(signature) = op.signature() else { return typing::apply(self, op, imm) };
        match op {
            Op::TableCopy => {
                let elem_of = |table: u32| self.spaces.tables[table as usize].elem;
                self.copies_elements(signature, elem_of(imm.high()), elem_of(imm.low()))
            }
            Op::TableInit => {
                let source = self.module.elems[imm.low() as usize].ty;
                let elem = self.spaces.tables[imm.high() as usize].elem;
                self.copies_elements(signature, source, elem)
            }
            _ => match op.access() {
                Some(access) => self.access(access, imm),
                None => self.fixed(signature),
            },
        }
    }

    fn fixed(&mut self, signature: Signature) -> Check {
        self.pop_all(signature.params)?;
        self.push_all(signature.results)
    }

    /// Checks an instruction that copies elements to a table, both of the same type.
    fn copies_elements(&mut self, signature: Signature, source: ValType, elem: ValType) -> Check {
        if source != elem {
            let detail = format!("expected elements of type {elem}, found {source}");
            return Err(self.error(Rule::OperandType, detail));
        }
        self.fixed(signature)
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
            | ImmKind::Number
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
        Err(self.error(rule, format!("index {index} out of range; expected less than {len}")))
    }

    /// Checks a load or store. Its address may be a token, for an access of the local itself.
    fn access(&mut self, access: Access, imm: Imm) -> Check {
        if access.store {
            let value = self.pop_expecting(access.ty)?;
            self.escape(value, EscapeReason::Stored);
        }
        if access.indexed {
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
}
