//! The text IR: the printer of a [`Function`].
//!
//! ```text
//! func f3 sum(v0.n: i64) -> i64 {
//!   slot s0.n: i64 = local 0
//! b0:                                     ; @0000
//!   slot.set s0.n, v0.n                   ; @0000
//!   v1 = i64.const 0                      ; @0000
//!   br b1(v1, v1)                         ; @0004
//! b1(v2: i64, v3: i64):                   ; label next @0006
//!   v4 = i64.add v2, v3                   ; @0006
//!   …
//! }
//! ```
//!
//! Values are numbered in the order in which they are printed, so that the text of a function does not
//! depend on how it was made; blocks have the numbers that they have, and slots those of what they stand for
//! ([`Function::slot_texts`]). Names of locals follow after a dot: `v7.x`, `slot.get s0.x`. SSA form lists only the
//! slots that are left. A function that is entered from a frame of the interpreter has a line before them with the place of
//! each parameter: `enter f3 at 2: cell 0, cell 4, frame` ([`crate::ir::frame`]). Result types are written where neither the operation nor its operands give them:
//! `v1: i64 = global.get g0`, and so for `table.get` and calls. Memory accesses read as addresses: `i32.load v1+8`,
//! `f64.store_indexed v1+v2*8+16, v3`.
//!
//! The origin of an instruction follows `;`: the code offset, with the function before it if it is
//! another one (`f4@0010`), and the call that it was inlined at after ` < `; for a block, the
//! label, by its name if the function knows it, and the code offset that it was made from. This is part
//! of the text, not a comment: [`crate::ir::parse`] reads it back.
//!
//! A function that the verifier refuses can be printed too: a value without a definition is written as
//! `v?` and its number, a slot that does not exist as `s?` and its number.

use std::fmt::{self, Write};

use slotvm_bytecode::text::literal;
use slotvm_bytecode::{ImmKind, Op, ValType};

use crate::ir::entity::{Block, Edge, Inst, Loc, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::names::write_suffix;
use crate::ir::{Entry, Function, SlotOrigin};

/// The column at which locations start, if the line is not longer.
const LOCATION_COLUMN: usize = 40;

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// The text of a function. It ends with a line feed.
pub fn print(function: &Function) -> String {
    let mut printer = Printer::new(function);
    printer.function().expect("writing to a string works");
    printer.out
}

/// Prints instructions one by one, with values under their ids, blocks under numbers of the caller's choice, and without
/// names. So an instruction that a pass leaves alone has the same text after it.
pub struct InstPrinter<'a>(Printer<'a>);

impl<'a> InstPrinter<'a> {
    /// A printer for a function whose blocks have these numbers.
    ///
    /// # Panics
    /// Panics if there is not one number for each block.
    pub fn new(f: &'a Function, blocks: Vec<u32>) -> InstPrinter<'a> {
        assert_eq!(blocks.len(), f.n_blocks(), "each block has a number");
        let numbers = (0..f.n_values() as u32).collect();
        InstPrinter(Printer {
            numbers,
            blocks,
            slots: f.slot_keys(),
            has_names: false,
            ..Printer::new(f)
        })
    }

    /// The text of an instruction of a block.
    pub fn inst(&mut self, block: Block, inst: Inst) -> String {
        self.0.out.clear();
        self.0.inst(block, inst).expect("writing to a string works");
        self.0.out.trim_start().to_owned()
    }
}

/// The parts of a block's text: its parameters in parentheses, if it has any and is not the entry, and its instructions,
/// without indentation and location.
pub(crate) struct BlockText {
    pub(crate) params: String,
    pub(crate) insts: Vec<String>,
}

/// The parts of the text of each block, as [`print()`] writes them.
pub(crate) fn print_blocks(function: &Function) -> Vec<BlockText> {
    const INFALLIBLE: &str = "writing to a string works";
    let mut printer = Printer::new(function);
    let mut texts = Vec::with_capacity(function.n_blocks());
    for block in function.blocks() {
        printer.block_params(block).expect(INFALLIBLE);
        let params = std::mem::take(&mut printer.out);
        let mut insts = Vec::with_capacity(function.insts(block).len());
        for &inst in function.insts(block) {
            printer.inst(block, inst).expect(INFALLIBLE);
            insts.push(printer.out.trim_start().to_owned());
            printer.out.clear();
        }
        texts.push(BlockText { params, insts });
    }
    texts
}

/// The slots that a text lists: all of slot form, and of SSA form those that are left. A function is in SSA form if it
/// accesses only slots that promotion has kept.
fn listed_slots(f: &Function) -> Vec<bool> {
    let mut is_accessed = vec![false; f.slots.len()];
    for &inst in &f.layout {
        if let Opcode::Ir(op) = f.opcode(inst)
            && op.is_slot_access()
            && let Some(is_accessed) = is_accessed.get_mut(f.imm(inst).low() as usize)
        {
            *is_accessed = true;
        }
    }
    let is_ssa = is_accessed.iter().zip(&f.slots).all(|(&is, slot)| !is || slot.kept.is_some());
    is_accessed.iter().map(|is| !is_ssa || *is).collect()
}

const UNDEFINED: u32 = u32::MAX;

/// The number of each value in the text.
fn number_values(f: &Function) -> Vec<u32> {
    let mut numbers = vec![UNDEFINED; f.n_values()];
    let mut next = 0;
    let mut define = |value: Value| {
        if let Some(number) = numbers.get_mut(value.index()) {
            *number = next;
            next += 1;
        }
    };
    for block in f.blocks() {
        f.params(block).iter().copied().for_each(&mut define);
        for &inst in f.insts(block) {
            f.results(inst).for_each(&mut define);
        }
    }
    numbers
}

struct Printer<'a> {
    f: &'a Function,
    numbers: Vec<u32>,
    /// The numbers of blocks in branches; empty if they have their own.
    blocks: Vec<u32>,
    slots: Vec<String>,
    /// Whether values are written with their names.
    has_names: bool,
    out: String,
}

impl Printer<'_> {
    fn new(f: &Function) -> Printer<'_> {
        Printer {
            f,
            numbers: number_values(f),
            blocks: Vec::new(),
            slots: f.slot_texts(),
            has_names: true,
            out: String::new(),
        }
    }

    fn function(&mut self) -> fmt::Result {
        write!(self.out, "func f{}", self.f.func)?;
        if !self.f.name.is_empty() {
            self.out.push(' ');
            literal::write_name(&mut self.out, &self.f.name);
        }
        self.out.push('(');
        if self.f.n_blocks() > 0 {
            self.params(Function::ENTRY)?;
        }
        self.out.push(')');
        match &self.f.ty.results[..] {
            [] => {}
            [ty] => write!(self.out, " -> {ty}")?,
            types => {
                let types = types.iter().map(|ty| ty.name()).collect::<Vec<_>>();
                write!(self.out, " -> ({})", types.join(", "))?;
            }
        }
        self.out.push_str(" {\n");
        if let Entry::Frame(state) = &self.f.entry {
            writeln!(self.out, "  enter {state}")?;
        }
        let slots = self.f.slots.iter().zip(&self.slots).zip(listed_slots(self.f));
        for ((slot, text), _) in slots.filter(|&(_, is_listed)| is_listed) {
            write!(self.out, "  slot {text}: {} = ", slot.ty)?;
            match slot.origin {
                SlotOrigin::Local(local) => write!(self.out, "local {local}")?,
                SlotOrigin::Stack(depth) => write!(self.out, "stack {depth}")?,
                SlotOrigin::Inlined(number) => write!(self.out, "inlined {number}")?,
            }
            match slot.kept {
                Some(at) => writeln!(self.out, " kept @{at:04x}")?,
                None => self.out.push('\n'),
            }
        }
        for block in self.f.blocks() {
            self.block(block)?;
        }
        self.out.push_str("}\n");
        Ok(())
    }

    fn block(&mut self, block: Block) -> fmt::Result {
        let start = self.out.len();
        write!(self.out, "{block}")?;
        self.block_params(block)?;
        self.out.push(':');
        self.pad(start);
        self.out.push(' ');
        write_block_origin(&mut self.out, self.f, block);
        self.out.push('\n');
        for &inst in self.f.insts(block) {
            let start = self.out.len();
            self.inst(block, inst)?;
            self.pad(start);
            self.loc(self.f.loc(inst))?;
            self.out.push('\n');
        }
        Ok(())
    }

    fn block_params(&mut self, block: Block) -> fmt::Result {
        if block != Function::ENTRY && !self.f.params(block).is_empty() {
            self.out.push('(');
            self.params(block)?;
            self.out.push(')');
        }
        Ok(())
    }

    /// Fills the line that started at a position of the output, and starts its location.
    fn pad(&mut self, start: usize) {
        let width = self.out.len() - start;
        for _ in width..LOCATION_COLUMN.max(width + 2) {
            self.out.push(' ');
        }
        self.out.push(';');
    }

    fn loc(&mut self, loc: Loc) -> fmt::Result {
        let mut next = Some(loc);
        let mut separator = " ";
        while let Some(loc) = next {
            let Some(data) = self.f.locs.get(loc.index()) else {
                return write!(self.out, "{separator}?{loc}");
            };
            self.out.push_str(separator);
            if data.func != self.f.func {
                write!(self.out, "f{}", data.func)?;
            }
            write!(self.out, "@{:04x}", data.offset)?;
            // A location is inlined at an earlier one; a chain that is not so has no end.
            next = data.inlined_at.filter(|&at| at < loc);
            separator = " < ";
        }
        Ok(())
    }

    fn value(&mut self, value: Value) -> fmt::Result {
        match self.numbers.get(value.index()) {
            Some(&UNDEFINED) | None => write!(self.out, "v?{}", value.0),
            Some(number) => {
                write!(self.out, "v{number}")?;
                let name = self.f.value_name(value).filter(|_| self.has_names);
                write_suffix(&mut self.out, name);
                Ok(())
            }
        }
    }

    fn slot(&mut self, slot: u32) -> fmt::Result {
        match self.slots.get(slot as usize) {
            Some(text) => write!(self.out, " {text}"),
            None => write!(self.out, " s?{slot}"),
        }
    }

    fn values(&mut self, values: &[Value]) -> fmt::Result {
        for (i, &value) in values.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.value(value)?;
        }
        Ok(())
    }

    fn typed_values(&mut self, values: impl Iterator<Item = Value>) -> fmt::Result {
        for (i, value) in values.enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.value(value)?;
            match self.f.value_types.get(value.index()) {
                Some(ty) => write!(self.out, ": {ty}")?,
                None => self.out.push_str(": ?"),
            }
        }
        Ok(())
    }

    fn params(&mut self, block: Block) -> fmt::Result {
        self.typed_values(self.f.params(block).iter().copied())
    }

    fn inst(&mut self, block: Block, inst: Inst) -> fmt::Result {
        let f = self.f;
        self.out.push_str("  ");
        let opcode = f.opcode(inst);
        if f.results(inst).len() > 0 {
            if has_written_result_types(opcode) {
                self.typed_values(f.results(inst))?;
            } else {
                self.values(&f.results(inst).collect::<Vec<_>>())?;
            }
            self.out.push_str(" = ");
        }
        self.out.push_str(opcode.mnemonic());
        let operands = f.operands(inst);
        match opcode {
            Opcode::Op(Op::Br | Op::BrIf | Op::BrTable) => self.branch(block, inst),
            Opcode::Op(op) => match op.imm_kind() {
                ImmKind::Mem | ImmKind::Indexed | ImmKind::MemLane => self.access(op, inst),
                ImmKind::TypeTable => {
                    let imm = f.imm(inst);
                    write!(self.out, " type{} t{}(", imm.low(), imm.high())?;
                    self.values(operands)?;
                    self.out.push(')');
                    Ok(())
                }
                ImmKind::Func if op != Op::RefFunc => {
                    write!(self.out, " f{}(", f.imm(inst).low())?;
                    self.values(operands)?;
                    self.out.push(')');
                    Ok(())
                }
                kind => {
                    let has_imm = self.plain_imm(kind, inst)?;
                    self.plain_operands(has_imm, operands)
                }
            },
            Opcode::Ir(IrOp::Exit) => {
                match f.exits.get(f.imm(inst).0 as usize) {
                    Some(state) => write!(self.out, " {state} (")?,
                    None => write!(self.out, " ?{} (", f.imm(inst).0)?,
                }
                self.values(operands)?;
                self.out.push(')');
                Ok(())
            }
            Opcode::Ir(op) => {
                let imm = f.imm(inst).low();
                if op.is_slot_access() {
                    self.slot(imm)?;
                } else if op == IrOp::RefIsFunc {
                    write!(self.out, " f{imm}")?;
                } else if op.has_imm() {
                    write!(self.out, " {imm}")?;
                }
                self.plain_operands(op.has_imm(), operands)
            }
        }
    }

    /// Writes operands after the immediates.
    fn plain_operands(&mut self, has_imm: bool, operands: &[Value]) -> fmt::Result {
        if !operands.is_empty() {
            self.out.push_str(if has_imm { ", " } else { " " });
        }
        self.values(operands)
    }

    /// The immediates of an operation that lists them before its operands; whether it has any.
    fn plain_imm(&mut self, kind: ImmKind, inst: Inst) -> Result<bool, fmt::Error> {
        let imm = self.f.imm(inst);
        let out = &mut self.out;
        match kind {
            ImmKind::I32 => write!(out, " {}", imm.0 as u32 as i32)?,
            ImmKind::I64 => write!(out, " {}", imm.0 as i64)?,
            ImmKind::F32 => {
                out.push(' ');
                literal::write_f32(out, imm.low());
            }
            ImmKind::F64 => {
                out.push(' ');
                literal::write_f64(out, imm.0);
            }
            ImmKind::V128 => match self.f.vectors.get(imm.low() as usize) {
                Some(vector) => write!(out, " {vector:#034x}")?,
                None => write!(out, " ?{}", imm.0)?,
            },
            ImmKind::Lanes => match self.f.vectors.get(imm.low() as usize) {
                Some(lanes) => {
                    lanes.to_le_bytes().iter().try_for_each(|lane| write!(out, " {lane}"))?;
                }
                None => write!(out, " ?{}", imm.0)?,
            },
            ImmKind::Lane | ImmKind::Number => write!(out, " {}", imm.low())?,
            ImmKind::Global => write!(out, " g{}", imm.low())?,
            ImmKind::Func => write!(out, " f{}", imm.low())?,
            ImmKind::RefType => match ValType::from_code(imm.0 as u8) {
                Some(ty) => write!(out, " {ty}")?,
                None => write!(out, " ?{}", imm.0)?,
            },
            ImmKind::Table => write!(out, " t{}", imm.low())?,
            ImmKind::TableTable => write!(out, " t{}, t{}", imm.low(), imm.high())?,
            ImmKind::ElemTable => write!(out, " elem{}, t{}", imm.low(), imm.high())?,
            ImmKind::Elem => write!(out, " elem{}", imm.low())?,
            // There is one memory, so it is not written.
            ImmKind::DataMemory | ImmKind::Data => write!(out, " data{}", imm.low())?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `v1+v2*8+16, v3` of a load or store; `3, v1+16, v2` if it names a lane.
    fn access(&mut self, op: Op, inst: Inst) -> fmt::Result {
        let imm = self.f.imm(inst);
        let operands = self.f.operands(inst);
        let is_indexed = op.imm_kind() == ImmKind::Indexed;
        let names_lane = op.imm_kind() == ImmKind::MemLane;
        if names_lane {
            write!(self.out, " {},", imm.access_lane())?;
        }
        for (i, &operand) in operands.iter().enumerate() {
            let is_index = i == 1 && is_indexed;
            self.out.push_str(match i {
                0 => " ",
                _ if is_index => "+",
                _ => ", ",
            });
            self.value(operand)?;
            if is_index {
                write!(self.out, "*{}", 1 << imm.scale_log2())?;
            }
            let ends_address = i == usize::from(is_indexed);
            if ends_address && imm.offset() != 0 {
                write!(self.out, "+{}", imm.offset())?;
            }
            if ends_address && self.f.is_in_bounds(inst) {
                self.out.push_str(" in_bounds");
            }
        }
        Ok(())
    }

    fn branch(&mut self, block: Block, inst: Inst) -> fmt::Result {
        let edges = self.f.succ_edges(block);
        let is_table = self.f.opcode(inst) == Opcode::Op(Op::BrTable);
        let operands = self.f.operands(inst);
        let n_edges = edges.len();
        self.out.push(' ');
        self.values(operands)?;
        if is_table {
            self.out.push_str(if operands.is_empty() { "[" } else { ", [" });
        }
        for (i, edge) in edges.enumerate() {
            if is_table && i + 1 == n_edges {
                self.out.push_str("], ");
            } else if i > 0 || (!is_table && !operands.is_empty()) {
                self.out.push_str(", ");
            }
            self.target(edge)?;
        }
        if let Some(hint) = self.f.branch_hint(inst) {
            write!(self.out, " {}", hint.name())?;
        }
        Ok(())
    }

    fn target(&mut self, edge: Edge) -> fmt::Result {
        let dst = self.f.edge_dst(edge);
        let shown = self.blocks.get(dst.index()).map_or(dst, |&number| Block(number));
        write!(self.out, "{shown}")?;
        let has_args = self.f.blocks.get(dst.index()).is_some_and(|b| b.params.0 < b.params.1);
        if has_args {
            self.out.push('(');
            self.values(self.f.edge_args(edge))?;
            self.out.push(')');
        }
        Ok(())
    }
}

/// The label of a block, if it has one, by name or number, and the code offset that it was made from.
pub(crate) fn write_block_origin(out: &mut String, f: &Function, block: Block) {
    if let Some(label) = f.label(block) {
        out.push_str("label ");
        match f.label_names.get(&label) {
            Some(name) => literal::write_name(out, name),
            None => out.push_str(&label.to_string()),
        }
        out.push(' ');
    }
    write!(out, "@{:04x}", f.block_offset(block)).expect("writing to a string works");
}

/// Whether the types of results are written, since nothing else in the text gives them.
pub(crate) fn has_written_result_types(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Op(Op::Call | Op::CallIndirect | Op::GlobalGet | Op::TableGet))
}
