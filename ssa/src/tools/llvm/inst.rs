//! Single instructions as LLVM IR.

use std::fmt::Write;

use slotvm_bytecode::pairs::is_pair;
use slotvm_bytecode::{Imm, ImmKind, Op, ValType};

use super::{Body, line, list, number, result_type, type_name, vector};
use crate::ir::entity::{Block, Value};
use crate::ir::irop::{IrOp, Opcode};

/// A numeric operation in LLVM IR; the strings are the instruction's or intrinsic's name.
enum Numeric {
    /// An instruction on operands of the result's type.
    Plain(&'static str),
    /// A shift, whose count must be below the width in LLVM.
    Shift(&'static str),
    /// A funnel shift of an operand concatenated with itself.
    Rotate(&'static str),
    /// A comparison, which returns an `i1`.
    Compare(&'static str),
    /// An intrinsic on operands of the result's type.
    Intrinsic(&'static str),
    /// A count of zero bits, defined for zero as well.
    ZeroBits(&'static str),
    /// An instruction from the operand's type to the result's.
    Convert(&'static str),
    /// A saturating conversion.
    Saturate(&'static str),
    /// The extension of the low bits.
    Extend(u32),
}

/// Maps a numeric operation to LLVM IR; `None` if the operation can trap or is not numeric.
fn numeric(op: Op) -> Option<Numeric> {
    use Numeric::*;
    use Op::*;
    Some(match op {
        I32Eqz | I64Eqz | I32Eq | I64Eq => Compare("icmp eq"),
        I32Ne | I64Ne => Compare("icmp ne"),
        I32LtS | I64LtS => Compare("icmp slt"),
        I32LtU | I64LtU => Compare("icmp ult"),
        I32GtS | I64GtS => Compare("icmp sgt"),
        I32GtU | I64GtU => Compare("icmp ugt"),
        I32LeS | I64LeS => Compare("icmp sle"),
        I32LeU | I64LeU => Compare("icmp ule"),
        I32GeS | I64GeS => Compare("icmp sge"),
        I32GeU | I64GeU => Compare("icmp uge"),
        F32Eq | F64Eq => Compare("fcmp oeq"),
        F32Ne | F64Ne => Compare("fcmp une"),
        F32Lt | F64Lt => Compare("fcmp olt"),
        F32Gt | F64Gt => Compare("fcmp ogt"),
        F32Le | F64Le => Compare("fcmp ole"),
        F32Ge | F64Ge => Compare("fcmp oge"),
        I32Clz | I64Clz => ZeroBits("ctlz"),
        I32Ctz | I64Ctz => ZeroBits("cttz"),
        I32Popcnt | I64Popcnt => Intrinsic("ctpop"),
        I32Add | I64Add => Plain("add"),
        I32Sub | I64Sub => Plain("sub"),
        I32Mul | I64Mul => Plain("mul"),
        I32And | I64And => Plain("and"),
        I32Or | I64Or => Plain("or"),
        I32Xor | I64Xor => Plain("xor"),
        I32Shl | I64Shl => Shift("shl"),
        I32ShrS | I64ShrS => Shift("ashr"),
        I32ShrU | I64ShrU => Shift("lshr"),
        I32Rotl | I64Rotl => Rotate("fshl"),
        I32Rotr | I64Rotr => Rotate("fshr"),
        F32Abs | F64Abs => Intrinsic("fabs"),
        F32Neg | F64Neg => Plain("fneg"),
        F32Ceil | F64Ceil => Intrinsic("ceil"),
        F32Floor | F64Floor => Intrinsic("floor"),
        F32Trunc | F64Trunc => Intrinsic("trunc"),
        F32Nearest | F64Nearest => Intrinsic("roundeven"),
        F32Sqrt | F64Sqrt => Intrinsic("sqrt"),
        F32Add | F64Add => Plain("fadd"),
        F32Sub | F64Sub => Plain("fsub"),
        F32Mul | F64Mul => Plain("fmul"),
        F32Div | F64Div => Plain("fdiv"),
        F32Min | F64Min => Intrinsic("minimum"),
        F32Max | F64Max => Intrinsic("maximum"),
        F32Copysign | F64Copysign => Intrinsic("copysign"),
        I32WrapI64 => Convert("trunc"),
        I64ExtendI32S => Convert("sext"),
        I64ExtendI32U => Convert("zext"),
        F32ConvertI32S | F32ConvertI64S | F64ConvertI32S | F64ConvertI64S => Convert("sitofp"),
        F32ConvertI32U | F32ConvertI64U | F64ConvertI32U | F64ConvertI64U => Convert("uitofp"),
        F32DemoteF64 => Convert("fptrunc"),
        F64PromoteF32 => Convert("fpext"),
        I32ReinterpretF32 | I64ReinterpretF64 | F32ReinterpretI32 | F64ReinterpretI64 => {
            Convert("bitcast")
        }
        RefReinterpretI64 => Convert("inttoptr"),
        I64ReinterpretRef => Convert("ptrtoint"),
        I32Extend8S | I64Extend8S => Extend(8),
        I32Extend16S | I64Extend16S => Extend(16),
        I64Extend32S => Extend(32),
        I32TruncSatF32S | I32TruncSatF64S | I64TruncSatF32S | I64TruncSatF64S => {
            Saturate("fptosi.sat")
        }
        I32TruncSatF32U | I32TruncSatF64U | I64TruncSatF32U | I64TruncSatF64U => {
            Saturate("fptoui.sat")
        }
        _ => return None,
    })
}

/// The kind of a callee.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Callee {
    /// Code of the module, with its calling convention.
    Module,
    /// Part of the runtime, or an intrinsic.
    Runtime,
}

impl Body<'_, '_, '_> {
    pub(super) fn inst(&mut self, block: Block) {
        let (f, inst) = (self.f, self.inst);
        let imm = f.imm(inst);
        match f.opcode(inst) {
            Opcode::Ir(IrOp::SlotGet) => {
                let value = f.result(inst);
                let (ty, name) = (type_name(f.value_type(value)), self.name(value));
                let slot = &self.slots[imm.0 as usize];
                line!(self, "%{name} = load {ty}, ptr %{slot}");
            }
            Opcode::Ir(IrOp::SlotSet) => {
                let (value, slot) = (self.typed(f.operands(inst)[0]), &self.slots[imm.0 as usize]);
                line!(self, "store {value}, ptr %{slot}");
            }
            Opcode::Ir(IrOp::Exit) => {
                // Each has values of its own.
                let args = self.operands();
                self.call_runtime(&format!("exit.{}.{}", f.func, imm.low()), args);
                line!(self, "unreachable");
            }
            Opcode::Ir(op) => {
                let mut args = self.operands();
                args.push((ValType::I64, imm.low().to_string()));
                self.call_runtime(op.mnemonic(), args);
            }
            Opcode::Op(
                Op::I32Const
                | Op::I64Const
                | Op::F32Const
                | Op::F64Const
                | Op::RefNull
                | Op::V128Const,
            ) => {}
            Opcode::Op(op) if op.is_terminator() => self.terminator(block, op),
            Opcode::Op(Op::Call) => self.call_func(imm.low()),
            Opcode::Op(Op::CallIndirect) => self.call_indirect(),
            Opcode::Op(Op::Select) => self.select(),
            Opcode::Op(Op::RefIsNull) => {
                let reference = self.value(f.operands(inst)[0]);
                self.compare(&format!("icmp eq ptr {reference}, null"));
            }
            Opcode::Op(op) if is_pair(op) => self.pair(op),
            Opcode::Op(op) => match numeric(op) {
                Some(how) => self.numeric(how),
                None => {
                    let mut args = self.operands();
                    args.extend(number_immediates(op, imm));
                    if op.imm_kind() == ImmKind::Lanes {
                        args.push((ValType::V128, vector(f.vector_imm(inst))));
                    }
                    let name = op.mnemonic().to_owned() + &name_immediates(op, imm);
                    self.call_runtime(&name, args);
                }
            },
        }
    }

    /// The operands of the instruction, with their types.
    fn operands(&self) -> Vec<(ValType, String)> {
        let operands = self.f.operands(self.inst).iter();
        operands.map(|&value| (self.f.value_type(value), self.value(value))).collect()
    }

    fn numeric(&mut self, how: Numeric) {
        let f = self.f;
        let result = f.result(self.inst);
        let ty = f.value_type(result);
        let (to, result) = (type_name(ty), self.name(result));
        let operands = self.operands();
        let (operand_ty, first) = &operands[0];
        let from = type_name(*operand_ty);
        let second = operands.get(1).map(|(_, second)| second.as_str());
        match how {
            Numeric::Plain(name) => {
                let operands = list(operands.iter().map(|(_, operand)| operand));
                line!(self, "%{result} = {name} {to} {operands}");
            }
            Numeric::Shift(name) => {
                let count = self.temporary();
                let second = second.expect("a shift has a count");
                line!(self, "{count} = and {to} {second}, {}", 8 * ty.bytes() - 1);
                line!(self, "%{result} = {name} {to} {first}, {count}");
            }
            Numeric::Rotate(name) => {
                let mut args = operands.clone();
                args.insert(0, operands[0].clone());
                self.call_intrinsic(&format!("{name}.{ty}"), args);
            }
            Numeric::Compare(name) => {
                // The test for zero has one operand.
                let second = second.unwrap_or("0");
                self.compare(&format!("{name} {from} {first}, {second}"));
            }
            Numeric::Intrinsic(name) => self.call_intrinsic(&format!("{name}.{ty}"), operands),
            Numeric::ZeroBits(name) => {
                let name = format!("llvm.{name}.{ty}");
                self.declare(&name, to, &format!("{to}, i1"));
                line!(self, "%{result} = call {to} @{name}({to} {first}, i1 false)");
            }
            Numeric::Convert(name) => line!(self, "%{result} = {name} {from} {first} to {to}"),
            Numeric::Saturate(name) => {
                self.call_intrinsic(&format!("{name}.{ty}.{operand_ty}"), operands);
            }
            Numeric::Extend(n_bits) => {
                let low = self.temporary();
                line!(self, "{low} = trunc {from} {first} to i{n_bits}");
                line!(self, "%{result} = sext i{n_bits} {low} to {to}");
            }
        }
    }

    /// The result is that of a comparison, as an `i32`.
    fn compare(&mut self, comparison: &str) {
        let bit = self.temporary();
        line!(self, "{bit} = {comparison}");
        line!(self, "%{} = zext i1 {bit} to i32", self.name(self.f.result(self.inst)));
    }

    /// Whether an `i32` is not zero.
    fn condition(&mut self, value: Value) -> String {
        let bit = self.temporary();
        line!(self, "{bit} = icmp ne i32 {}, 0", self.value(value));
        bit
    }

    fn select(&mut self) {
        let &[a, b, condition] = self.f.operands(self.inst) else {
            unreachable!("a select has three operands")
        };
        let condition = self.condition(condition);
        let (a, b) = (self.typed(a), self.typed(b));
        line!(self, "%{} = select i1 {condition}, {a}, {b}", self.name(self.f.result(self.inst)));
    }

    fn terminator(&mut self, block: Block, op: Op) {
        let (f, inst) = (self.f, self.inst);
        let labels: Vec<String> = f.succ_edges(block).map(|edge| self.label(edge)).collect();
        match op {
            Op::Br => line!(self, "br {}", labels[0]),
            Op::BrIf => {
                let condition = self.condition(f.operands(inst)[0]);
                line!(self, "br i1 {condition}, {}, {}", labels[0], labels[1]);
            }
            Op::BrTable => {
                let (default, labels) = labels.split_last().expect("there is a default");
                line!(self, "switch {}, {default} [", self.typed(f.operands(inst)[0]));
                for (i, label) in labels.iter().enumerate() {
                    line!(self, "  i32 {i}, {label}");
                }
                line!(self, "]");
            }
            Op::Return => self.return_operands(),
            Op::ReturnCall => {
                let func = f.imm(inst).low();
                self.printer.called.insert(func);
                let name = self.printer.func_name(func);
                self.tail_call(&name);
            }
            Op::ReturnCallIndirect => {
                // The callee is that of the plain call: the callees in the table are the same.
                let name = self.indirect_callee();
                self.tail_call(&name);
            }
            _ => {
                self.call_runtime(op.mnemonic(), Vec::new());
                line!(self, "unreachable");
            }
        }
    }

    fn return_operands(&mut self) {
        let operands = self.operands();
        let ty = result_type(&self.f.ty.results);
        match &operands[..] {
            [] => line!(self, "ret void"),
            [(_, value)] => line!(self, "ret {ty} {value}"),
            _ => {
                let mut all = "poison".to_owned();
                for (i, (operand_ty, operand)) in operands.iter().enumerate() {
                    let more = self.temporary();
                    let operand_ty = type_name(*operand_ty);
                    line!(self, "{more} = insertvalue {ty} {all}, {operand_ty} {operand}, {i}");
                    all = more;
                }
                line!(self, "ret {ty} {all}");
            }
        }
    }

    fn tail_call(&mut self, name: &str) {
        let ty = result_type(&self.f.ty.results);
        let args = typed_list(&self.operands());
        if self.f.ty.results.is_empty() {
            line!(self, "musttail call tailcc {ty} @{name}({args})");
            line!(self, "ret void");
        } else {
            let all = self.temporary();
            line!(self, "{all} = musttail call tailcc {ty} @{name}({args})");
            line!(self, "ret {ty} {all}");
        }
    }

    fn call_func(&mut self, func: u32) {
        self.printer.called.insert(func);
        let name = self.printer.func_name(func);
        self.call(Callee::Module, &name, &self.operands());
    }

    fn call_indirect(&mut self) {
        let name = self.indirect_callee();
        self.call(Callee::Module, &name, &self.operands());
    }

    /// Declares what calls the function of a type at an index of a table, the last operand.
    fn indirect_callee(&mut self) -> String {
        let imm = self.f.imm(self.inst);
        let ty = &self.printer.module.module().types[imm.low() as usize];
        let mut params = ty.params.clone();
        params.push(ValType::I32);
        let params = list(params.into_iter().map(type_name));
        let name = format!("slotvm.call_indirect{}", name_immediates(Op::CallIndirect, imm));
        self.declare_as("declare tailcc", &name, &result_type(&ty.results), &params);
        name
    }

    /// A call of a function of the runtime that has the operation's name.
    fn call_runtime(&mut self, name: &str, args: Vec<(ValType, String)>) {
        self.call_declared(&format!("slotvm.{name}"), args);
    }

    fn call_intrinsic(&mut self, name: &str, args: Vec<(ValType, String)>) {
        self.call_declared(&format!("llvm.{name}"), args);
    }

    fn call_declared(&mut self, name: &str, args: Vec<(ValType, String)>) {
        let types = list(args.iter().map(|&(ty, _)| type_name(ty)));
        let results = result_type(&self.result_types());
        self.declare(name, &results, &types);
        self.call(Callee::Runtime, name, &args);
    }

    /// Writes a call that returns the results of the instruction.
    fn call(&mut self, callee: Callee, name: &str, args: &[(ValType, String)]) {
        let ty = result_type(&self.result_types());
        let convention = if callee == Callee::Module { "tailcc " } else { "" };
        let call = format!("call {convention}{ty} @{name}({})", typed_list(args));
        let mut results = self.f.results(self.inst);
        match results.len() {
            0 => line!(self, "{call}"),
            1 => {
                let result = self.name(results.next().expect("there is one"));
                line!(self, "%{result} = {call}");
            }
            _ => {
                let all = self.temporary();
                line!(self, "{all} = {call}");
                for (i, result) in results.enumerate() {
                    let result = self.name(result);
                    line!(self, "%{result} = extractvalue {ty} {all}, {i}");
                }
            }
        }
    }

    fn result_types(&self) -> Vec<ValType> {
        self.f.results(self.inst).map(|value| self.f.value_type(value)).collect()
    }

    pub(super) fn declare(&mut self, name: &str, results: &str, params: &str) {
        self.declare_as("declare", name, results, params);
    }

    fn declare_as(&mut self, declare: &str, name: &str, results: &str, params: &str) {
        if !self.printer.declared.contains_key(name) {
            let declaration = format!("{declare} {results} @{name}({params})\n");
            self.printer.declared.insert(name.to_owned(), declaration);
        }
    }
}

fn typed_list(args: &[(ValType, String)]) -> String {
    list(args.iter().map(|(ty, value)| format!("{} {value}", type_name(*ty))))
}

/// The immediates that are indices, as the end of a function's name.
fn name_immediates(op: Op, imm: Imm) -> String {
    let (low, high) = (imm.low(), imm.high());
    match op.imm_kind() {
        ImmKind::Global => format!(".g{low}"),
        ImmKind::Func => format!(".f{low}"),
        ImmKind::TypeTable => format!(".type{low}.t{high}"),
        ImmKind::Table => format!(".t{low}"),
        ImmKind::TableTable => format!(".t{low}.t{high}"),
        ImmKind::ElemTable => format!(".elem{low}.t{high}"),
        ImmKind::Elem => format!(".elem{low}"),
        // There is one memory, so it is not written.
        ImmKind::DataMemory | ImmKind::Data => format!(".data{low}"),
        _ => String::new(),
    }
}

/// The immediates that are numbers: the scale's logarithm of an indexed access, and the offset of any.
fn number_immediates(op: Op, imm: Imm) -> Vec<(ValType, String)> {
    let offset = || (ValType::I64, imm.offset().to_string());
    let lane = |lane: u32| (ValType::I32, lane.to_string());
    let scale_log2 = || (ValType::I32, number(ValType::I32, imm.scale_log2().into()));
    match op.imm_kind() {
        ImmKind::Mem => vec![offset()],
        ImmKind::Indexed => vec![scale_log2(), offset()],
        ImmKind::MemLane => vec![lane(imm.access_lane()), offset()],
        ImmKind::Lane => vec![lane(imm.low())],
        _ => Vec::new(),
    }
}
