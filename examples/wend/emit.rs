//! Bytecode of a program, by [`FunctionBuilder`].
//!
//! Numbers and truth values are `i32`. A function takes the addresses of the outer variables that it needs, as `i32`
//! in front of its own parameters. A function that needs more than [`ADDRESSES_MAX`] takes the address of a record of
//! them instead, which the caller writes. A variable whose address is passed to a call lies in memory, all others
//! become registers.
//!
//! The memory has the texts, the stack of frames, and at its end the records. Like the frames they are a stack: the
//! global `records` is its top, which a call raises and lowers again.

use std::collections::{BTreeSet, HashMap};

use slotvm::builder::{
    BuildError, FuncId as BcFunc, FunctionBuilder, GlobalId, LocalId, ModuleBuilder,
};
use slotvm::{Bytecode, Op, ValType::I32};
use slotvm_bytecode::module::ConstExpr;

use crate::program::{Expr, ExprKind, Func, FuncId, Program, Stmt, StmtKind, VarId};
use crate::syntax::{Operator, Type};

/// The memory for captured variables of active functions, in bytes.
const FRAMES_BYTES: u32 = 512 << 10;
/// The start of the texts, so that no address is 0.
pub const TEXTS_START: u32 = 16;
const PAGE_BYTES: u32 = 64 << 10;
/// The most addresses that a function takes as parameters.
pub const ADDRESSES_MAX: usize = 64;
/// The memory for records of addresses, in bytes.
const RECORDS_BYTES: u32 = 512 << 10;

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module; it exports `main`.
    pub module: Bytecode,
    /// The variables that lie in memory: function and local, by their indices in the module.
    pub captured: BTreeSet<(u32, u32)>,
}

/// Emits the code of a program.
///
/// # Errors
/// Fails if a function exceeds a limit of the bytecode.
pub fn emit(program: &Program) -> Result<Compiled, BuildError> {
    let mut module = ModuleBuilder::new();
    module.name("wend");
    let mut import = |name, n_params| module.import_func("env", name, &[I32; 2][..n_params], &[]);
    let print_i32 = import("print_i32", 1);
    let print_str = import("print_str", 2);
    let print_char = import("print_char", 1);
    let texts = Texts::new(program);
    let base = (TEXTS_START + texts.bytes.len() as u32).next_multiple_of(16);
    let has_records = program.functions.iter().any(takes_record);
    let records_base = base + FRAMES_BYTES;
    let end = if has_records { records_base + RECORDS_BYTES } else { records_base };
    let n_pages = end.div_ceil(PAGE_BYTES);
    let memory = module.memory("memory", n_pages, Some(n_pages));
    module.frame_stack(base, FRAMES_BYTES);
    let top = ConstExpr::i32(records_base as i32);
    let records = has_records.then(|| module.global("records", I32, true, top));
    let mut ids = Vec::with_capacity(program.functions.len());
    for function in &program.functions {
        let n_hidden = if takes_record(function) { 1 } else { function.needs.len() };
        let params = vec![I32; n_hidden + function.params.len()];
        let results = &[I32][..usize::from(function.result != Type::Void)];
        ids.push(module.declare_func(&function.name, &params, results));
    }
    let print_bool = module.declare_func("print_bool", &[I32], &[]);
    let host = Host { print_i32, print_str, print_char, print_bool, records };
    texts.define_print_bool(module.define(print_bool), print_str)?;
    let mut captured = BTreeSet::new();
    for (number, function) in program.functions.iter().enumerate() {
        let mut emitter = Emitter {
            program,
            id: FuncId(number),
            f: module.define(ids[number]),
            ids: &ids,
            host: &host,
            texts: &texts,
            places: HashMap::new(),
            captured: &mut captured,
        };
        emitter.body(function);
        emitter.f.finish()?;
    }
    module.data("texts", ConstExpr::i32(TEXTS_START as i32), texts.bytes);
    module.export_func("main", ids[0]);
    module.export_memory("memory", memory);
    Ok(Compiled { module: module.finish()?, captured })
}

/// The entities that all functions use.
struct Host {
    print_i32: BcFunc,
    print_str: BcFunc,
    print_char: BcFunc,
    /// Not of the host, but made of `print_str`.
    print_bool: BcFunc,
    /// The top of the stack of records, if there are any.
    records: Option<GlobalId>,
}

/// Whether a function takes a record of addresses.
fn takes_record(function: &Func) -> bool {
    function.needs.len() > ADDRESSES_MAX
}

/// The texts of a program, each once, and their places in memory.
struct Texts {
    bytes: Vec<u8>,
    places: HashMap<Vec<u8>, (u32, u32)>,
}

impl Texts {
    fn new(program: &Program) -> Texts {
        let mut texts = Texts { bytes: Vec::new(), places: HashMap::new() };
        [&b"true"[..], b"false"].into_iter().for_each(|text| texts.add(text));
        program.functions.iter().for_each(|function| texts.add_all(&function.body));
        texts
    }

    fn add_all(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match &statement.kind {
                StmtKind::Print(Expr { kind: ExprKind::Text(text), .. }, _) => self.add(text),
                StmtKind::If(_, then, otherwise) => {
                    self.add_all(then);
                    self.add_all(otherwise);
                }
                StmtKind::While(_, body) => self.add_all(body),
                _ => {}
            }
        }
    }

    fn add(&mut self, text: &[u8]) {
        if !self.places.contains_key(text) {
            let start = TEXTS_START + self.bytes.len() as u32;
            self.places.insert(text.to_owned(), (start, text.len() as u32));
            self.bytes.extend(text);
        }
    }

    /// Pushes address and length of a text.
    fn push(&self, f: &mut FunctionBuilder<'_>, text: &[u8]) {
        let (start, length) = self.places[text];
        f.i32_const(start as i32).i32_const(length as i32);
    }

    fn define_print_bool(
        &self,
        mut f: FunctionBuilder<'_>,
        print_str: BcFunc,
    ) -> Result<(), BuildError> {
        let is_true = f.label();
        let value = f.param(0);
        f.local_get(value).br_if(is_true);
        self.push(&mut f, b"false");
        f.call(print_str).ret().bind(is_true);
        self.push(&mut f, b"true");
        f.call(print_str).ret();
        f.finish()
    }
}

/// The place of a variable, seen from a function.
#[derive(Copy, Clone)]
enum Place {
    /// A local of the function.
    Local(LocalId),
    /// In a function around it, at the address that a local holds.
    Outer(LocalId),
    /// In a function around it, at the address in a record that a local points to, at an offset.
    Record(LocalId, u32),
}

/// Emits the code of one function.
struct Emitter<'p, 'm> {
    program: &'p Program,
    id: FuncId,
    f: FunctionBuilder<'m>,
    ids: &'p [BcFunc],
    host: &'p Host,
    texts: &'p Texts,
    places: HashMap<VarId, Place>,
    captured: &'p mut BTreeSet<(u32, u32)>,
}

impl Emitter<'_, '_> {
    fn body(&mut self, function: &Func) {
        let name = |var: VarId| self.program.variables[var.0].name.as_str();
        let mut params = 0..;
        let mut next_param =
            |f: &FunctionBuilder<'_>| f.param(params.next().expect("it has no end"));
        if takes_record(function) {
            let record = next_param(&self.f);
            self.f.name_local(record, "record");
            let places = (0..).step_by(4).map(|offset| Place::Record(record, offset));
            self.places.extend(function.needs.iter().copied().zip(places));
        } else {
            for &var in &function.needs {
                let address = next_param(&self.f);
                self.f.name_local(address, &format!("{}_address", name(var)));
                self.places.insert(var, Place::Outer(address));
            }
        }
        for &var in &function.params {
            let param = next_param(&self.f);
            self.f.name_local(param, name(var));
            self.places.insert(var, Place::Local(param));
        }
        for &var in &function.locals {
            let local = self.f.named_local(name(var), I32);
            self.places.insert(var, Place::Local(local));
        }
        self.f.line(function.line);
        self.statements(&function.body);
        if self.f.is_reachable() {
            if function.result == Type::Void {
                self.f.ret()
            } else {
                self.f.unreachable()
            };
        }
    }

    /// Emits statements up to one after which none is reached.
    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if !self.f.is_reachable() {
                return;
            }
            self.f.line(statement.line);
            self.statement(&statement.kind);
        }
    }

    fn statement(&mut self, statement: &StmtKind) {
        match statement {
            StmtKind::Drop(value) => {
                self.expr(value);
                if value.ty != Type::Void {
                    self.f.op(Op::Drop);
                }
            }
            StmtKind::Assign(var, value) => match self.places[var] {
                Place::Local(local) => {
                    self.expr(value);
                    self.f.local_set(local);
                }
                Place::Outer(_) | Place::Record(..) => {
                    self.address(*var);
                    self.expr(value);
                    self.f.store(Op::I32Store, 0);
                }
            },
            StmtKind::Return(value) => {
                value.iter().for_each(|value| self.expr(value));
                self.f.ret();
            }
            StmtKind::Print(value, newline) => self.print(value, *newline),
            StmtKind::If(condition, then, otherwise) => {
                self.conditional(condition, then, otherwise)
            }
            StmtKind::While(condition, body) => {
                let (next, end) = (self.f.label(), self.f.label());
                self.f.bind(next);
                self.expr(condition);
                self.f.op(Op::I32Eqz).br_if(end);
                self.statements(body);
                if self.f.is_reachable() {
                    self.f.br(next);
                }
                self.f.bind(end);
            }
        }
    }

    fn print(&mut self, value: &Expr, newline: bool) {
        let Host { print_i32, print_str, print_char, print_bool, .. } = *self.host;
        match &value.kind {
            ExprKind::Text(text) => {
                self.texts.push(&mut self.f, text);
                self.f.call(print_str);
            }
            _ => {
                self.expr(value);
                self.f.call(if value.ty == Type::Bool { print_bool } else { print_i32 });
            }
        }
        if newline {
            self.f.i32_const('\n' as i32).call(print_char);
        }
    }

    fn conditional(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let (other, end) = (self.f.label(), self.f.label());
        self.expr(condition);
        self.f.op(Op::I32Eqz).br_if(other);
        self.statements(then);
        let goes_on = self.f.is_reachable();
        if goes_on {
            self.f.br(end);
        }
        self.f.bind(other);
        self.statements(otherwise);
        if goes_on {
            self.f.bind(end);
        }
    }

    /// Pushes the value of an expression, if it has one.
    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(number) => drop(self.f.i32_const(*number)),
            ExprKind::Bool(value) => drop(self.f.i32_const(i32::from(*value))),
            ExprKind::Text(_) => unreachable!("texts are printed only"),
            ExprKind::Variable(var) => match self.places[var] {
                Place::Local(local) => drop(self.f.local_get(local)),
                Place::Outer(_) | Place::Record(..) => {
                    self.address(*var);
                    self.f.load(Op::I32Load, 0);
                }
            },
            ExprKind::Call(id, args) => self.call(*id, args, expr.line),
            ExprKind::Not(operand) => {
                self.expr(operand);
                self.f.op(Op::I32Eqz);
            }
            ExprKind::Negate(operand) => {
                self.f.i32_const(0);
                self.expr(operand);
                self.f.op(Op::I32Sub);
            }
            ExprKind::Chain(first, rest) => {
                self.expr(first);
                for (operator, operand) in rest {
                    self.expr(operand);
                    self.f.line(operand.line).op(opcode(*operator));
                }
            }
        }
    }

    /// Pushes the address of a variable.
    fn address(&mut self, var: VarId) {
        match self.places[&var] {
            Place::Local(local) => {
                self.captured.insert((self.ids[self.id.0].0, local.0));
                self.f.local_addr(local);
            }
            Place::Outer(address) => drop(self.f.local_get(address)),
            Place::Record(record, offset) => {
                self.f.local_get(record).load(Op::I32Load, offset);
            }
        }
    }

    fn call(&mut self, id: FuncId, args: &[Expr], line: u32) {
        let function = &self.program.functions[id.0];
        let record = takes_record(function).then(|| self.write_record(function));
        match record {
            Some(record) => drop(self.f.local_get(record)),
            None => function.needs.iter().for_each(|&var| self.address(var)),
        }
        args.iter().for_each(|arg| self.expr(arg));
        self.f.line(line).call(self.ids[id.0]);
        if let (Some(record), Some(records)) = (record, self.host.records) {
            self.f.local_get(record).global_set(records);
        }
    }

    /// Writes the addresses that a function needs to a record. Returns the local that points to it. If there is no
    /// room, a store traps, since records lie at the end of the memory.
    fn write_record(&mut self, function: &Func) -> LocalId {
        let records = self.host.records.expect("a function takes a record");
        let record = self.f.local(I32);
        self.f.global_get(records).local_set(record);
        for (&var, offset) in function.needs.iter().zip((0..).step_by(4)) {
            self.f.local_get(record);
            self.address(var);
            self.f.store(Op::I32Store, offset);
        }
        let bytes = 4 * function.needs.len() as i32;
        self.f.local_get(record).i32_const(bytes).op(Op::I32Add).global_set(records);
        record
    }
}

/// The instruction of an operator. `&&` and `||` evaluate both operands.
fn opcode(operator: Operator) -> Op {
    match operator {
        Operator::Add => Op::I32Add,
        Operator::Sub => Op::I32Sub,
        Operator::Mul => Op::I32Mul,
        Operator::Div => Op::I32DivS,
        Operator::Rem => Op::I32RemS,
        Operator::Equal => Op::I32Eq,
        Operator::NotEqual => Op::I32Ne,
        Operator::Less => Op::I32LtS,
        Operator::LessEqual => Op::I32LeS,
        Operator::Greater => Op::I32GtS,
        Operator::GreaterEqual => Op::I32GeS,
        Operator::And => Op::I32And,
        Operator::Or => Op::I32Or,
    }
}
