//! Instructions.

use slotvm_bytecode::inst::check_lane;
use slotvm_bytecode::{BranchHint, Imm, ImmKind, Op, ValType};

use super::cursor::Cursor;
use super::{ParseError, Parser, Target, Use, frame_state, slot_use, value_type, value_use};
use crate::ir::branch_hints;
use crate::ir::entity::{Block, Value};
use crate::ir::irop::{IrOp, Opcode, is_in_ir};
use crate::ir::print::has_written_result_types;
use slotvm_bytecode::text::literal;

/// A result: the name, and its type if it is written.
type ResultName<'t> = (Use<'t>, Option<ValType>);

impl<'t> Parser<'t> {
    /// `v5 = i64.add v3, v4`
    pub(super) fn inst(
        &mut self,
        mut code: Cursor<'t>,
        comment: &'t str,
    ) -> Result<(), ParseError> {
        let names = result_names(&mut code)?;
        code.skip_spaces();
        let start = code;
        let opcode = opcode(&mut code)?;
        let first_operand = self.f.operand_pool.len();
        let imm = match opcode {
            Opcode::Op(op) => self.op(op, &mut code)?,
            Opcode::Ir(op) => self.ir_op(op, &mut code)?,
        };
        code.end()?;
        let results = self.result_types(opcode, imm, first_operand, &names, start)?;
        let n_operands = self.f.operand_pool.len() - first_operand;
        let loc = self.loc(comment);
        let inst = self.f.make_inst_of_pool(opcode, imm, n_operands as u32, &results, loc);
        self.f.layout.push(inst);
        if std::mem::take(&mut self.is_in_bounds) {
            self.f.mark_in_bounds(inst);
        }
        for ((name, _), value) in names.iter().zip(self.f.results(inst)) {
            self.define(name, value)?;
        }
        Ok(())
    }

    /// The immediates and operands of an operation of the opcode table.
    fn op(&mut self, op: Op, code: &mut Cursor<'t>) -> Result<Imm, ParseError> {
        match op {
            Op::Br | Op::BrIf | Op::BrTable => return self.branch(op, code),
            Op::Call | Op::ReturnCall => {
                let func = code.entity("f", "a function such as `f3`")?;
                self.args(code)?;
                return Ok(Imm::index(func));
            }
            Op::CallIndirect | Op::ReturnCallIndirect => {
                let ty = code.entity("type", "a type such as `type0`")?;
                let table = table(code)?;
                self.args(code)?;
                return Ok(Imm::pair(ty, table));
            }
            _ => {}
        }
        if let ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane = op.imm_kind() {
            return self.access(op, code);
        }
        let imm = match op.imm_kind() {
            ImmKind::V128 | ImmKind::Lanes => Some(self.vector(op, code)?),
            kind => plain_imm(kind, code)?,
        };
        self.operands(imm.is_some(), code)?;
        Ok(imm.unwrap_or(Imm::NONE))
    }

    fn ir_op(&mut self, op: IrOp, code: &mut Cursor<'t>) -> Result<Imm, ParseError> {
        if op == IrOp::Exit {
            let state = frame_state(code)?;
            self.args(code)?;
            self.f.exits.push(state);
            return Ok(Imm::index(self.f.exits.len() as u32 - 1));
        }
        let imm = match op.is_slot_access() {
            true => self.slot_number(code)?,
            false if op == IrOp::RefIsFunc => code.entity("f", "a function such as `f3`")?,
            false if op.has_imm() => code.number()?,
            false => 0,
        };
        if matches!(op, IrOp::RootGet | IrOp::RootSet) {
            self.f.n_root_cells = self.f.n_root_cells.max(imm.saturating_add(1));
        }
        self.operands(op.has_imm(), code)?;
        Ok(Imm::index(imm))
    }

    fn slot_number(&self, code: &mut Cursor<'t>) -> Result<u32, ParseError> {
        code.skip_spaces();
        let start = *code;
        let (key, _) = slot_use(code)?;
        match self.slots.get(key) {
            Some(&slot) => Ok(slot),
            None => start.error(format!("{key} is not defined")),
        }
    }

    /// Operands up to the end of the line.
    fn operands(&mut self, mut needs_comma: bool, code: &mut Cursor<'t>) -> Result<(), ParseError> {
        while !code.is_at_end() {
            if needs_comma {
                code.expect(",")?;
            }
            self.operand(code)?;
            needs_comma = true;
        }
        Ok(())
    }

    /// `(v1, v2)`
    fn args(&mut self, code: &mut Cursor<'t>) -> Result<(), ParseError> {
        for name in arg_names(code)? {
            self.push_operand(name);
        }
        Ok(())
    }

    fn operand(&mut self, code: &mut Cursor<'t>) -> Result<(), ParseError> {
        let name = value_use(code)?;
        self.push_operand(name);
        Ok(())
    }

    fn push_operand(&mut self, name: Use<'t>) {
        let value = self.values.get(&name.number).copied();
        if value.is_none() {
            self.unresolved.push((self.f.operand_pool.len(), name));
        }
        self.f.operand_pool.push(value.unwrap_or(UNRESOLVED));
    }

    /// A number of 128 bits, or the lanes of a shuffle.
    fn vector(&mut self, op: Op, code: &mut Cursor<'t>) -> Result<Imm, ParseError> {
        code.skip_spaces();
        let start = *code;
        if op.imm_kind() == ImmKind::V128 {
            return match literal::parse_u128(code.literal()) {
                Ok(vector) => Ok(self.f.add_vector(vector)),
                Err(message) => start.error(message),
            };
        }
        let mut lanes = [0; 16];
        for lane in &mut lanes {
            *lane = code.number()?;
        }
        Ok(self.f.add_vector(u128::from_le_bytes(lanes)))
    }

    /// `v1+v2*8+16, v3`, or `3, v1+16, v2` with a lane.
    fn access(&mut self, op: Op, code: &mut Cursor<'t>) -> Result<Imm, ParseError> {
        if op.imm_kind() == ImmKind::MemLane {
            let start = *code;
            let lane: u32 = code.number()?;
            if let Err(error) = check_lane(op, lane) {
                return start.error(error.to_string());
            }
            code.expect(",")?;
            self.operand(code)?;
            let offset = if code.eat("+") { code.number()? } else { 0 };
            let imm = Imm::mem_lane(offset, lane);
            self.is_in_bounds = code.eat("in_bounds");
            self.operands(true, code)?;
            return Ok(imm);
        }
        self.operand(code)?;
        let mut scale_log2 = 0;
        if op.imm_kind() == ImmKind::Indexed {
            code.expect("+")?;
            self.operand(code)?;
            code.expect("*")?;
            let start = *code;
            let scale: u32 = code.number()?;
            if !matches!(scale, 1 | 2 | 4 | 8) {
                return start.error("expected a scale: 1, 2, 4 or 8");
            }
            scale_log2 = scale.trailing_zeros();
        }
        let offset = if code.eat("+") { code.number()? } else { 0 };
        let imm = Imm::indexed(offset, scale_log2);
        self.is_in_bounds = code.eat("in_bounds");
        self.operands(true, code)?;
        Ok(imm)
    }

    fn branch(&mut self, op: Op, code: &mut Cursor<'t>) -> Result<Imm, ParseError> {
        if op != Op::Br {
            self.operand(code)?;
            code.expect(",")?;
        }
        match op {
            Op::Br => self.target(code)?,
            Op::BrIf => {
                self.target(code)?;
                code.expect(",")?;
                self.target(code)?;
                let hint = BranchHint::ALL.into_iter().find(|hint| code.eat(hint.name()));
                return Ok(branch_hints::imm_of(hint));
            }
            _ => {
                code.expect("[")?;
                let mut is_first = true;
                while !code.eat("]") {
                    if !is_first {
                        code.expect(",")?;
                    }
                    self.target(code)?;
                    is_first = false;
                }
                code.expect(",")?;
                self.target(code)?;
            }
        }
        Ok(Imm::NONE)
    }

    /// `b1(v2)`: an edge. Where it goes is filled in when all blocks are known.
    fn target(&mut self, code: &mut Cursor<'t>) -> Result<(), ParseError> {
        code.skip_spaces();
        let at = *code;
        let block = Use { number: code.entity("b", "a block such as `b1`")?, name: None, at };
        let args = if code.at("(") { arg_names(code)? } else { Vec::new() };
        self.f.append_edge(Block::default());
        self.targets.push(Target { block, args });
        Ok(())
    }

    /// The types of an instruction's results. Those that nothing else gives are written.
    fn result_types(
        &self,
        opcode: Opcode,
        imm: Imm,
        first_operand: usize,
        names: &[ResultName<'t>],
        at: Cursor<'t>,
    ) -> Result<Vec<ValType>, ParseError> {
        if has_written_result_types(opcode) {
            let types = names.iter().map(|(name, ty)| match ty {
                Some(ty) => Ok(*ty),
                None => name.at.error(format!("expected `: ` and the type of v{}", name.number)),
            });
            return types.collect();
        }
        if let Some((name, _)) = names.iter().find(|(_, ty)| ty.is_some()) {
            return name.at.error(format!("unexpected type; {} determines it", opcode.mnemonic()));
        }
        let types = match opcode {
            Opcode::Op(Op::Select) => vec![self.operand_type(first_operand, at)?],
            Opcode::Op(Op::RefNull) => vec![imm.as_ref_type()],
            Opcode::Op(Op::RefIsNull | Op::TableGrow) => vec![ValType::I32],
            Opcode::Op(op) => op.signature().map_or(Vec::new(), |s| s.results.to_vec()),
            Opcode::Ir(IrOp::SlotGet) => vec![self.f.slots[imm.low() as usize].ty],
            Opcode::Ir(op) => vec![ValType::I32; op.n_results()],
        };
        if names.len() != types.len() {
            let (n, mnemonic) = (types.len(), opcode.mnemonic());
            return at.error(format!("{mnemonic} has {n} results, not {}", names.len()));
        }
        Ok(types)
    }

    fn operand_type(&self, place: usize, at: Cursor<'t>) -> Result<ValType, ParseError> {
        match self.f.operand_pool.get(place) {
            Some(&value) if value != UNRESOLVED => Ok(self.f.value_type(value)),
            _ => at.error("the first operand determines the type and must be defined before"),
        }
    }
}

/// Stands in the operand pool for a value that is not defined yet.
const UNRESOLVED: Value = Value(u32::MAX);

/// `v1, v2: i32 =`, or nothing.
fn result_names<'t>(code: &mut Cursor<'t>) -> Result<Vec<ResultName<'t>>, ParseError> {
    let mut names = Vec::new();
    if !code.at_entity("v") {
        return Ok(names);
    }
    loop {
        let name = value_use(code)?;
        let ty = if code.eat(":") { Some(value_type(code)?) } else { None };
        names.push((name, ty));
        if !code.eat(",") {
            code.expect("=")?;
            return Ok(names);
        }
    }
}

fn opcode(code: &mut Cursor<'_>) -> Result<Opcode, ParseError> {
    let start = *code;
    let mnemonic = code.word();
    let opcode = Op::from_mnemonic(mnemonic).map(Opcode::Op);
    match opcode.or_else(|| IrOp::from_mnemonic(mnemonic).map(Opcode::Ir)) {
        Some(Opcode::Op(op)) if !is_in_ir(op) => {
            start.error(format!("{mnemonic} exists only in bytecode"))
        }
        Some(opcode) => Ok(opcode),
        None => start.error("expected an instruction"),
    }
}

fn arg_names<'t>(code: &mut Cursor<'t>) -> Result<Vec<Use<'t>>, ParseError> {
    let mut names = Vec::new();
    code.expect("(")?;
    while !code.eat(")") {
        if !names.is_empty() {
            code.expect(",")?;
        }
        names.push(value_use(code)?);
    }
    Ok(names)
}

fn table(code: &mut Cursor<'_>) -> Result<u32, ParseError> {
    code.entity("t", "a table such as `t0`")
}

fn elem(code: &mut Cursor<'_>) -> Result<u32, ParseError> {
    code.entity("elem", "an element segment such as `elem0`")
}

fn data(code: &mut Cursor<'_>) -> Result<u32, ParseError> {
    code.entity("data", "a data segment such as `data0`")
}

/// The immediates that stand before the operands; `None` if the operation has none there.
fn plain_imm(kind: ImmKind, code: &mut Cursor<'_>) -> Result<Option<Imm>, ParseError> {
    code.skip_spaces();
    let start = *code;
    let float = |bits: Result<u64, String>| match bits {
        Ok(bits) => Ok(Imm(bits)),
        Err(message) => start.error(message),
    };
    Ok(Some(match kind {
        ImmKind::I32 => Imm::i32(code.number()?),
        ImmKind::I64 => Imm::i64(code.number()?),
        ImmKind::F32 => float(literal::parse_f32(code.literal()).map(u64::from))?,
        ImmKind::F64 => float(literal::parse_f64(code.literal()))?,
        ImmKind::Lane => Imm::lane(code.number()?),
        ImmKind::Number => Imm::index(code.number()?),
        ImmKind::Global => Imm::index(code.entity("g", "a global such as `g0`")?),
        ImmKind::Func => Imm::index(code.entity("f", "a function such as `f3`")?),
        ImmKind::RefType => match value_type(code)? {
            ty if ty.is_ref() => Imm::ref_type(ty),
            _ => return start.error("expected a reference type"),
        },
        ImmKind::Table => Imm::index(table(code)?),
        ImmKind::TableTable => {
            let dst = table(code)?;
            code.expect(",")?;
            Imm::pair(dst, table(code)?)
        }
        ImmKind::ElemTable => {
            let segment = elem(code)?;
            code.expect(",")?;
            Imm::pair(segment, table(code)?)
        }
        ImmKind::Elem => Imm::index(elem(code)?),
        ImmKind::DataMemory | ImmKind::Data => Imm::index(data(code)?),
        _ => return Ok(None),
    }))
}
