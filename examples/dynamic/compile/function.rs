//! The code of one function: variables, values, and expressions that need no code of their own.

use slotvm::builder::{
    BuildError, FuncId, FunctionBuilder, GlobalId, LabelId, LocalId, ModuleBuilder,
};
use slotvm::{
    ConstExpr, Op, SourcePlace, ValType, ValType::F64, ValType::I32, ValType::I64, ValType::Ref,
};

use super::{Unit, declare};
use crate::syntax::{Expr, ExprKind, Function, Logic, Place, Statement, Variable};
use crate::value::{self, Value};

/// A function that has no code yet.
pub(crate) struct Job<'p> {
    pub(crate) id: FuncId,
    pub(crate) function: &'p Function,
    /// Which of its captures are cells.
    pub(crate) cells: Vec<bool>,
    /// Whether it is the main program, which has the value of its last expression.
    pub(crate) is_program: bool,
}

/// The place of a local of the program.
#[derive(Copy, Clone)]
pub(crate) enum Storage {
    Value(LocalId),
    /// In a block of one item, since closures share it and it changes.
    Cell(LocalId),
    /// A counter of a loop, as an `i32`.
    Integer(LocalId),
}

pub(crate) struct Code<'m, 'u, 'p> {
    pub(crate) f: FunctionBuilder<'m>,
    pub(crate) unit: &'m mut Unit<'u>,
    pub(crate) jobs: &'m mut Vec<Job<'p>>,
    pub(crate) function: &'p Function,
    cells: Vec<bool>,
    pub(crate) locals: Vec<Option<Storage>>,
    /// Where `continue` and `break` go, for each loop.
    pub(crate) loops: Vec<(LabelId, LabelId)>,
    /// Locals for a moment, by type; the first so many are in use.
    temporaries: [Vec<LocalId>; 4],
    pub(crate) n_used: [usize; 4],
}

/// Compiles a function. Those within it become jobs.
pub(crate) fn compile<'p>(
    module: &mut ModuleBuilder,
    unit: &mut Unit<'_>,
    jobs: &mut Vec<Job<'p>>,
    job: Job<'p>,
) -> Result<(), BuildError> {
    let Job { id, function, cells, is_program } = job;
    let mut code = Code::new(module, unit, jobs, function, id);
    code.cells = cells;
    for (index, local) in function.locals[..function.n_params].iter().enumerate() {
        let param = code.f.param(index as u32 + 1);
        code.f.name_local(param, &local.name);
        code.f.local_get(param);
        code.declare(index);
    }
    match function.body.split_last() {
        Some((Statement::Expr(last), body)) if is_program => {
            code.statements(body);
            if code.f.is_reachable() {
                code.value(last);
                code.f.ret();
            }
        }
        _ => code.statements(&function.body),
    }
    if code.f.is_reachable() {
        code.constant(Value::NIL);
        code.f.ret();
    }
    code.f.finish()
}

impl<'m, 'u, 'p> Code<'m, 'u, 'p> {
    pub(crate) fn new(
        module: &'m mut ModuleBuilder,
        unit: &'m mut Unit<'u>,
        jobs: &'m mut Vec<Job<'p>>,
        function: &'p Function,
        id: FuncId,
    ) -> Code<'m, 'u, 'p> {
        let locals = vec![None; function.locals.len()];
        let f = module.define(id);
        Code {
            f,
            unit,
            jobs,
            function,
            cells: Vec::new(),
            locals,
            loops: Vec::new(),
            temporaries: Default::default(),
            n_used: [0; 4],
        }
    }

    /// A local until the end of the statement.
    pub(crate) fn temporary(&mut self, ty: ValType) -> LocalId {
        let kind = [I32, I64, F64].iter().position(|other| *other == ty).unwrap_or(3);
        let (pool, n_used) = (&mut self.temporaries[kind], &mut self.n_used[kind]);
        if *n_used == pool.len() {
            pool.push(self.f.local(ty));
        }
        *n_used += 1;
        pool[*n_used - 1]
    }

    /// Binds a label, unless it cannot be reached.
    pub(crate) fn bind(&mut self, label: LabelId) {
        if self.f.is_reachable() || self.f.operands_at(label).is_some() {
            self.f.bind(label);
        }
    }

    pub(crate) fn place(&mut self, place: Place) {
        let file = self.unit.file;
        let file = self.f.module().source_file(file);
        self.f.source_place(SourcePlace { file, line: place.line, column: place.column });
    }

    /// Calls a function of the host with the operands.
    pub(crate) fn host(&mut self, name: &str) {
        let function = self.unit.imports[name];
        self.f.call(function);
    }

    /// The same for one that returns whether something holds.
    pub(crate) fn host_holds(&mut self, name: &str) {
        self.host(name);
        self.f.i64_const(Value::TRUE.0 as i64).op(Op::I64Eq);
    }

    /// Leaves the bits of an integer.
    pub(crate) fn number(&mut self, n: u32) {
        self.f.i64_const(Value::integer(n as i32).0 as i64);
    }

    pub(crate) fn constant(&mut self, value: Value) {
        self.f.i64_const(value.0 as i64).op(Op::RefReinterpretI64);
    }

    /// The bits of a value in a local.
    pub(crate) fn bits(&mut self, local: LocalId) {
        self.f.local_get(local).op(Op::I64ReinterpretRef);
    }

    /// The address of what a value in a local names.
    pub(crate) fn address(&mut self, local: LocalId) {
        self.bits(local);
        self.f.op(Op::I32WrapI64);
    }

    /// Makes a value of an integer, an `i32`, on the stack.
    pub(crate) fn integer(&mut self) {
        self.tagged(value::INTEGER);
    }

    /// Makes a value of an address, or an integer, on the stack.
    pub(crate) fn tagged(&mut self, tag: u64) {
        self.f.op(Op::I64ExtendI32U).i64_const((tag << 48) as i64).op(Op::I64Or);
        self.f.op(Op::RefReinterpretI64);
    }

    /// Branches if a value in a local has not this tag.
    pub(crate) fn unless_tag(&mut self, local: LocalId, tag: u64, label: LabelId) {
        self.bits(local);
        self.f.i64_const(48).op(Op::I64ShrU).i64_const(tag as i64).op(Op::I64Ne).br_if(label);
    }

    /// Gives a local of the program the value on the stack, as its declaration.
    pub(crate) fn declare(&mut self, index: usize) {
        let local = &self.function.locals[index];
        let storage = match self.locals[index] {
            Some(Storage::Value(id) | Storage::Cell(id)) => id,
            _ => self.f.named_local(&local.name, Ref),
        };
        let is_cell = local.is_captured && local.is_assigned;
        self.locals[index] =
            Some(if is_cell { Storage::Cell(storage) } else { Storage::Value(storage) });
        self.f.local_set(storage);
        if is_cell {
            let address = self.block(1);
            self.f
                .local_get(address)
                .local_get(storage)
                .op(Op::I64ReinterpretRef)
                .store(Op::I64Store, 8);
            self.f.local_get(address);
            self.tagged(value::FUNCTION);
            self.f.local_set(storage);
        }
    }

    /// Leaves the closure's cell or value of a capture.
    fn captured(&mut self, index: usize) {
        let closure = self.f.param(0);
        self.address(closure);
        self.f.load(Op::I64Load, 16 + 8 * index as u32).op(Op::RefReinterpretI64);
    }

    /// Leaves what a closure takes of a variable: its cell if it is one.
    fn capture(&mut self, variable: &Variable) -> bool {
        match variable {
            Variable::Local(local) => match self.locals[*local] {
                Some(Storage::Cell(id)) => {
                    self.f.local_get(id);
                    true
                }
                _ => {
                    self.variable(variable);
                    false
                }
            },
            Variable::Captured(index) => {
                self.captured(*index);
                self.cells[*index]
            }
            Variable::Global(_) => unreachable!("globals are not captured"),
        }
    }

    pub(crate) fn variable(&mut self, variable: &Variable) {
        match variable {
            Variable::Local(local) => match self.locals[*local] {
                Some(Storage::Value(id)) => {
                    self.f.local_get(id);
                }
                Some(Storage::Integer(id)) => {
                    self.f.local_get(id);
                    self.integer();
                }
                Some(Storage::Cell(id)) => {
                    self.address(id);
                    self.f.load(Op::I64Load, 8).op(Op::RefReinterpretI64);
                }
                None => unreachable!("a local is declared before it can be named"),
            },
            Variable::Captured(index) => {
                self.captured(*index);
                if self.cells[*index] {
                    self.f.op(Op::I64ReinterpretRef).op(Op::I32WrapI64);
                    self.f.load(Op::I64Load, 8).op(Op::RefReinterpretI64);
                }
            }
            Variable::Global(name) => {
                let global = self.unit.globals[name];
                self.f.global_get(global);
            }
        }
    }

    pub(crate) fn assign(&mut self, variable: &Variable, value: &'p Expr) {
        self.value(value);
        match variable {
            Variable::Global(name) => {
                let global = self.unit.globals[name];
                self.f.global_set(global);
                return;
            }
            Variable::Local(local) => {
                if let Some(Storage::Value(id)) = self.locals[*local] {
                    self.f.local_set(id);
                    return;
                }
            }
            Variable::Captured(_) => {}
        }
        let (value, cell) = (self.temporary(Ref), self.temporary(Ref));
        self.f.local_set(value);
        assert!(self.capture(variable), "what is assigned and captured is in a cell");
        self.f.local_set(cell);
        self.address(cell);
        self.bits(value);
        self.f.store(Op::I64Store, 8);
    }

    /// Leaves the value of an expression in a local that is not to be written.
    pub(crate) fn in_local(&mut self, expr: &'p Expr) -> LocalId {
        if let ExprKind::Variable(Variable::Local(local)) = &expr.kind
            && let Some(Storage::Value(id)) = self.locals[*local]
        {
            return id;
        }
        self.value(expr);
        let local = self.temporary(Ref);
        self.f.local_set(local);
        local
    }

    /// Leaves the value of an expression.
    pub(crate) fn value(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Nil => self.constant(Value::NIL),
            ExprKind::Bool(b) => self.constant(Value::of(*b)),
            ExprKind::Number(n) => self.constant(Value::number(*n)),
            ExprKind::Text(text) => {
                let global = self.text(text);
                self.f.global_get(global);
            }
            ExprKind::Variable(variable) => self.variable(variable),
            ExprKind::Function(function) => self.closure(expr.place, function),
            ExprKind::Array(items) => self.array(expr.place, items),
            ExprKind::Object(fields) => self.object(expr.place, fields),
            ExprKind::Field(object, name) => self.get_field(expr.place, object, name),
            ExprKind::Index(parts) => self.get_index(expr.place, &parts[0], &parts[1]),
            ExprKind::Call(callee, args) => self.call(expr.place, callee, args),
            ExprKind::Library(function, args) => self.library(expr, function.name, args),
            ExprKind::Arithmetic(..) | ExprKind::Negate(_) => self.arithmetic(expr),
            ExprKind::Concat(operands) => self.host_call(expr.place, "concat", &operands[..]),
            ExprKind::Compare(..) | ExprKind::Equal { .. } | ExprKind::Not(_) => {
                self.f.i64_const(Value::TRUE.0 as i64).i64_const(Value::FALSE.0 as i64);
                self.condition(expr);
                self.f.op(Op::Select).op(Op::RefReinterpretI64);
            }
            ExprKind::Logic(logic, operands) => self.logic(*logic, operands),
        }
    }

    fn logic(&mut self, logic: Logic, operands: &'p [Expr; 2]) {
        let (left, end) = (self.temporary(Ref), self.f.label());
        self.value(&operands[0]);
        self.f.local_set(left).local_get(left);
        self.is_false(left);
        if logic == Logic::Or {
            self.f.op(Op::I32Eqz);
        }
        self.f.br_if(end).op(Op::Drop);
        self.value(&operands[1]);
        self.f.bind(end);
    }

    /// Calls a function of the host with values. All are evaluated before the bits of any are taken.
    pub(crate) fn host_call(&mut self, place: Place, name: &str, args: &'p [Expr]) {
        let locals: Vec<_> = args.iter().map(|arg| self.in_local(arg)).collect();
        for local in locals {
            self.bits(local);
        }
        self.place(place);
        self.host(name);
        self.f.op(Op::RefReinterpretI64);
    }

    /// The global that has a string of the program.
    fn text(&mut self, text: &str) -> GlobalId {
        if let Some(&global) = self.unit.texts.get(text) {
            return global;
        }
        let global = self.f.module().global("", Ref, true, ConstExpr::ref_null(Ref));
        self.unit.texts.insert(text.to_owned(), global);
        global
    }

    /// Makes a closure.
    fn closure(&mut self, place: Place, function: &'p Function) {
        let id = declare(self.f.module(), &function.name, function.n_params);
        let index = self.unit.in_table(id);
        let mut captures = Vec::new();
        let cells = function.captures.iter().map(|variable| {
            let is_cell = self.capture(variable);
            let local = self.temporary(Ref);
            self.f.local_set(local);
            captures.push(local);
            is_cell
        });
        let cells = cells.collect();
        self.jobs.push(Job { id, function, cells, is_program: false });
        let n_captures = captures.len() as u32;
        self.place(place);
        let address = self.allocate(2 + n_captures);
        self.header(address, crate::heap::FUNCTION, 1 + n_captures);
        self.f.local_get(address).i64_const(index.into()).store(Op::I64Store, 8);
        for (i, capture) in captures.into_iter().enumerate() {
            self.f.local_get(address);
            self.bits(capture);
            self.f.store(Op::I64Store, 16 + 8 * i as u32);
        }
        self.f.local_get(address);
        self.tagged(value::FUNCTION);
    }

    /// Leaves whether a value in a local is `nil` or `false`.
    pub(crate) fn is_false(&mut self, local: LocalId) {
        self.bits(local);
        self.f.i64_const(1).op(Op::I64ShrU);
        self.f.i64_const((Value::FALSE.0 >> 1) as i64).op(Op::I64Eq);
    }

    pub(crate) fn bits_local(&mut self, local: LocalId) -> LocalId {
        let bits = self.temporary(I64);
        self.bits(local);
        self.f.local_set(bits);
        bits
    }
}
