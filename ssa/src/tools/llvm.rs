//! LLVM IR: the text of a [`Function`] of either form for LLVM's tools.
//!
//! ```text
//! define tailcc i32 @f2.sum(i32 %v0) {
//! b0:                                     ; @0000
//!   %s0.n = alloca i32
//!   store i32 0, ptr %s0.n
//!   store i32 %v0, ptr %s0.n
//!   %v1 = load i32, ptr %s0.n
//!   …
//! }
//! ```
//!
//! The purpose is that anybody can compare promotion with LLVM's: `opt -passes=mem2reg` turns the text
//! of a slot form into the text of the SSA form, except the names of phis and those
//! phis that LLVM folds because all of their operands are one value. So a slot is an `alloca` of the
//! entry block that is only loaded and stored, starts with a store of zero, and no other access of
//! memory is in the text. LLVM 19 and later accept it (`opt -passes=verify`).
//!
//! *Names.* A value has the number of its id, which promotion keeps, so it has one name in both forms;
//! [`mod@crate::ir::print`] counts anew in each. Blocks and slots have their numbers as in the text IR, with the
//! name of the label or local after a dot if the module has one: `%b1.loop`, `%s0.n`. So have
//! functions: `@f2.sum`. Constants are operands, not instructions.
//!
//! *Types.* Numbers are `i32`, `i64`, `float` and `double`, both kinds of references are `ptr`, and
//! several results are a structure.
//!
//! *Operations.* Arithmetic, comparisons and conversions that cannot trap are LLVM's instructions and
//! intrinsics of the same meaning, with shift counts masked (NaN bits apart: LLVM leaves them open). All
//! others are calls of functions that are only declared, `@slotvm.` and the mnemonic: division and other
//! operations that can trap, linear memory, tables, globals, fuel. What indices among the immediates
//! name is part of the function's name (`@slotvm.global.get.g0`, `@slotvm.call_indirect.type1.t0`); numbers
//! follow the operands (`@slotvm.i32.load(i32 %v1, i64 16)` for the offset 16). Tail calls are `musttail`,
//! for which functions have the convention `tailcc`.
//!
//! LLVM's phis cannot have different operands for two edges from one block to another, ours can. Such an
//! edge goes through a block of its own, named as the edge.

mod inst;
mod name;
mod pairs;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use slotvm_bytecode::{Op, ValType, VerifiedModule};

use self::name::identifier;
use crate::ir::entity::{Block, Edge, Inst, Slot, Value};
use crate::ir::irop::Opcode;
use crate::ir::print::write_block_origin;
use crate::ir::{Function, SlotOrigin};

/// Writes functions of a module, one after the other, then declares what they call.
#[derive(Debug)]
pub struct Printer<'m> {
    module: &'m VerifiedModule,
    defined: BTreeSet<u32>,
    /// Functions of the module that are called.
    called: BTreeSet<u32>,
    /// Declarations of all else that is called, by name.
    declared: BTreeMap<String, String>,
}

impl<'m> Printer<'m> {
    /// A printer for functions of a module.
    pub fn new(module: &'m VerifiedModule) -> Printer<'m> {
        Printer {
            module,
            defined: BTreeSet::new(),
            called: BTreeSet::new(),
            declared: BTreeMap::new(),
        }
    }

    /// The definition of a function of the module, which the IR verifier accepts.
    pub fn define(&mut self, f: &Function) -> String {
        self.defined.insert(f.func);
        let mut body = Body {
            printer: self,
            f,
            slots: Vec::new(),
            blocks: Vec::new(),
            constants: vec![None; f.n_values()],
            own_blocks: vec![false; f.n_edges()],
            inst: Inst(0),
            n_temporaries: 0,
            out: String::new(),
        };
        body.prepare();
        body.define();
        body.out
    }

    /// The declarations of the functions that definitions call and that are not defined.
    pub fn declarations(&self) -> String {
        let mut out = String::new();
        for &func in self.called.difference(&self.defined) {
            let ty = self.module.func_type(func);
            let params = list(ty.params.iter().map(|&ty| type_name(ty)));
            let results = result_type(&ty.results);
            let name = self.func_name(func);
            out.push_str(&format!("declare tailcc {results} @{name}({params})\n"));
        }
        out.extend(self.declared.values().map(String::as_str));
        out
    }

    fn func_name(&self, func: u32) -> String {
        let name = self.module.func_name(func);
        let number = format!("f{func}");
        identifier(&number, (name != number).then_some(name.as_str()))
    }
}

/// LLVM's name of a type.
fn type_name(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "float",
        ValType::F64 => "double",
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => "ptr",
        ValType::V128 => "<2 x i64>",
    }
}

/// LLVM's type of what a function returns.
fn result_type(types: &[ValType]) -> String {
    match types {
        [] => "void".to_owned(),
        [ty] => type_name(*ty).to_owned(),
        _ => format!("{{ {} }}", list(types.iter().map(|&ty| type_name(ty)))),
    }
}

fn list<S: AsRef<str>>(items: impl Iterator<Item = S>) -> String {
    let mut out = String::new();
    for item in items {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(item.as_ref());
    }
    out
}

/// Writes one line into the output of a [`Body`], indented as an instruction.
macro_rules! line {
    ($body:expr, $($format:tt)*) => {{
        $body.out.push_str("  ");
        writeln!($body.out, $($format)*).expect("writing to a string works");
    }};
}
use line;

/// A function that is being written.
struct Body<'p, 'm, 'f> {
    printer: &'p mut Printer<'m>,
    f: &'f Function,
    /// The names of slots and blocks, ready to use after a `%`.
    slots: Vec<String>,
    blocks: Vec<String>,
    /// Text of the values that are constants.
    constants: Vec<Option<String>>,
    /// Whether an edge goes through a block of its own.
    own_blocks: Vec<bool>,
    /// The instruction that is being written, and how many names it has taken for what it computes on
    /// the way to its results.
    inst: Inst,
    n_temporaries: u32,
    out: String,
}

impl Body<'_, '_, '_> {
    fn prepare(&mut self) {
        let f = self.f;
        let names = &self.printer.module.module().names;
        if f.has_slot_accesses() {
            let slots = f.slots.iter().zip(f.slot_keys()).enumerate();
            self.slots.extend(slots.map(|(i, (slot, key))| {
                let local = match slot.origin {
                    SlotOrigin::Local(local) => names.local(f.func, local),
                    SlotOrigin::Stack(_) | SlotOrigin::Inlined(_) => None,
                };
                identifier(&key, f.slot_name(Slot::new(i)).or(local))
            }));
        }
        for block in f.blocks() {
            let label = f.label(block).and_then(|label| f.label_names.get(&label));
            self.blocks.push(identifier(&block.to_string(), label.map(String::as_str)));
            for &inst in f.insts(block) {
                if let Some(constant) = constant(f, inst) {
                    self.constants[f.result(inst).index()] = Some(constant);
                }
            }
            self.find_own_blocks(block);
        }
    }

    /// Finds the out-edges of a block that lead where an earlier one leads, with other operands.
    fn find_own_blocks(&mut self, block: Block) {
        let mut first_edges = HashMap::new();
        for edge in self.f.succ_edges(block) {
            let first = *first_edges.entry(self.f.edge_dst(edge)).or_insert(edge);
            self.own_blocks[edge.index()] = self.f.edge_args(edge) != self.f.edge_args(first);
        }
    }

    fn define(&mut self) {
        let f = self.f;
        let params = f.params(Function::ENTRY).iter().map(|&value| self.typed(value));
        let params = list(params);
        let results = result_type(&f.ty.results);
        let name = self.printer.func_name(f.func);
        self.out.push_str(&format!("define tailcc {results} @{name}({params}) {{\n"));
        for block in f.blocks() {
            self.block(block);
        }
        self.out.push_str("}\n");
    }

    fn block(&mut self, block: Block) {
        let f = self.f;
        self.out.push_str(&format!("{:<40}; ", format!("{}:", self.blocks[block.index()])));
        write_block_origin(&mut self.out, f, block);
        self.out.push('\n');
        if block == Function::ENTRY {
            self.slots();
        } else {
            for (i, &param) in f.params(block).iter().enumerate() {
                self.phi(block, i, param);
            }
        }
        for &inst in f.insts(block) {
            self.inst = inst;
            self.n_temporaries = 0;
            self.inst(block);
        }
        for edge in f.succ_edges(block).filter(|edge| self.own_blocks[edge.index()]) {
            self.out.push_str(&format!("{edge}:\n"));
            line!(self, "br label %{}", self.blocks[f.edge_dst(edge).index()]);
        }
    }

    /// The slots, which start as zero.
    fn slots(&mut self) {
        for (name, slot) in self.slots.iter().zip(&self.f.slots) {
            line!(self, "%{name} = alloca {}", type_name(slot.ty));
        }
        for (name, slot) in self.slots.iter().zip(&self.f.slots) {
            let (ty, zero) = (type_name(slot.ty), number(slot.ty, 0));
            line!(self, "store {ty} {zero}, ptr %{name}");
        }
    }

    /// The `i`th phi of a block.
    fn phi(&mut self, block: Block, i: usize, param: Value) {
        let f = self.f;
        let operand = |&edge: &Edge| {
            let source = match self.own_blocks[edge.index()] {
                true => edge.to_string(),
                false => self.blocks[f.edge_src(edge).index()].clone(),
            };
            format!("[ {}, %{source} ]", self.value(f.edge_args(edge)[i]))
        };
        let operands = list(f.pred_edges(block).iter().map(operand));
        let name = self.name(param);
        line!(self, "%{name} = phi {} {operands}", type_name(f.value_type(param)));
    }

    /// A value as an operand.
    fn value(&self, value: Value) -> String {
        match &self.constants[value.index()] {
            Some(constant) => constant.clone(),
            None => format!("%{}", self.name(value)),
        }
    }

    /// The name of a value, ready to use after a `%`.
    fn name(&self, value: Value) -> String {
        identifier(&value.to_string(), self.f.value_name(value))
    }

    /// A value as an operand, with its type.
    fn typed(&self, value: Value) -> String {
        format!("{} {}", type_name(self.f.value_type(value)), self.value(value))
    }

    /// The label that an edge leads to.
    fn label(&self, edge: Edge) -> String {
        match self.own_blocks[edge.index()] {
            true => format!("label %{edge}"),
            false => format!("label %{}", self.blocks[self.f.edge_dst(edge).index()]),
        }
    }

    /// A name for something that the instruction computes on the way to its results.
    fn temporary(&mut self) -> String {
        self.n_temporaries += 1;
        format!("%{}.{}", self.inst, self.n_temporaries)
    }
}

/// Returns the text of an instruction's result if that is a constant.
fn constant(f: &Function, inst: Inst) -> Option<String> {
    let Opcode::Op(op) = f.opcode(inst) else { return None };
    let ty = match op {
        Op::I32Const => ValType::I32,
        Op::I64Const => ValType::I64,
        Op::F32Const => ValType::F32,
        Op::F64Const => ValType::F64,
        Op::RefNull => return Some(number(ValType::FuncRef, 0)),
        Op::V128Const => return Some(vector(f.vector_imm(inst))),
        _ => return None,
    };
    Some(number(ty, f.imm(inst).0))
}

/// A constant: its cell holds `bits`. The null reference is that of zero.
fn number(ty: ValType, bits: u64) -> String {
    match ty {
        ValType::I32 => (bits as i32).to_string(),
        ValType::I64 => (bits as i64).to_string(),
        // A float is written as the double of the same value, a NaN by its bits: a conversion can
        // change them.
        ValType::F32 => match f32::from_bits(bits as u32) {
            value if value.is_nan() => format!("bitcast (i32 {} to float)", bits as i32),
            value => format!("0x{:016x}", f64::from(value).to_bits()),
        },
        ValType::F64 => format!("0x{bits:016x}"),
        ValType::FuncRef | ValType::ExternRef | ValType::Ref => "null".to_owned(),
        ValType::V128 => vector(bits.into()),
    }
}

/// A constant vector.
fn vector(bits: u128) -> String {
    format!("<i64 {}, i64 {}>", bits as i64, (bits >> 64) as i64)
}

#[cfg(test)]
mod tests;
