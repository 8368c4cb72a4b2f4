//! Compiler from programs to bytecode: inline fast paths for integers, calls of the host for everything else.
//!
//! Each expression leaves one value, an `i64`, on the operand stack. What a fast path looks at twice goes
//! through locals; they cost nothing in native code, since they are promoted to registers.

use slotvm::builder::{BuildError, FuncId, FunctionBuilder, LabelId, LocalId, ModuleBuilder};
use slotvm::{Bytecode, Error, Linker, Op, ValType::I32, ValType::I64};

use crate::syntax::{Binary, Builtin, Expr, Function, Program};
use crate::value::{Heap, Value, Wrong};

/// The functions of the host, which do what compiled code leaves to them.
pub(crate) fn link(linker: &mut Linker<Heap>) -> Result<(), Error> {
    type Operation = fn(&mut Heap, Value, Value) -> Result<Value, Wrong>;
    let binary: [(&str, Operation); 7] = [
        ("add", Heap::add),
        ("sub", Heap::sub),
        ("mul", Heap::mul),
        ("div", Heap::div),
        ("rem", Heap::rem),
        ("get", Heap::get),
        ("push", Heap::push),
    ];
    for (name, operation) in binary {
        linker.func_wrap(
            "heap",
            name,
            move |mut caller: slotvm::Caller<'_, Heap>, a: i64, b: i64| {
                operation(caller.data_mut(), Value(a), Value(b))
                    .map(|value| value.0)
                    .map_err(Error::host)
            },
        )?;
    }
    linker.func_wrap("heap", "less", |mut caller: slotvm::Caller<'_, Heap>, a: i64, b: i64| {
        caller.data_mut().is_less(Value(a), Value(b)).map(i32::from).map_err(Error::host)
    })?;
    linker.func_wrap("heap", "equal", |caller: slotvm::Caller<'_, Heap>, a: i64, b: i64| {
        i32::from(caller.data().is_equal(Value(a), Value(b)))
    })?;
    linker.func_wrap(
        "heap",
        "put",
        |mut caller: slotvm::Caller<'_, Heap>, a: i64, b: i64, c: i64| {
            let put = caller.data_mut().put(Value(a), Value(b), Value(c));
            put.map(|value| value.0).map_err(Error::host)
        },
    )?;
    linker.func_wrap("heap", "list", |mut caller: slotvm::Caller<'_, Heap>| {
        caller.data_mut().new_list().map(|value| value.0).map_err(Error::host)
    })?;
    linker.func_wrap("heap", "len", |mut caller: slotvm::Caller<'_, Heap>, a: i64| {
        caller.data_mut().len(Value(a)).map(|value| value.0).map_err(Error::host)
    })?;
    linker.func_wrap("heap", "print", |mut caller: slotvm::Caller<'_, Heap>, a: i64| {
        caller.data_mut().print(Value(a)).0
    })?;
    Ok(())
}

/// The imports, by number.
#[derive(Debug)]
struct Imports {
    binary: [FuncId; 7],
    builtins: [FuncId; 5],
    list: FuncId,
}

impl Imports {
    fn declare(module: &mut ModuleBuilder) -> Imports {
        let mut import = |name, n_params, result| {
            module.import_func("heap", name, &[I64; 3][..n_params], &[result])
        };
        let binary = ["add", "sub", "mul", "div", "rem"].map(|name| import(name, 2, I64));
        let [add, sub, mul, div, rem] = binary;
        let binary = [add, sub, mul, div, rem, import("less", 2, I32), import("equal", 2, I32)];
        let builtins = Builtin::ALL.map(|(name, _, n_params)| import(name, n_params, I64));
        Imports { binary, builtins, list: import("list", 0, I64) }
    }
}

/// Compiles a program. It exports `main`.
pub(crate) fn compile(program: &Program) -> Result<Bytecode, BuildError> {
    let mut module = ModuleBuilder::new();
    let imports = Imports::declare(&mut module);
    let mut functions = Vec::new();
    for function in &program.functions {
        let params = vec![I64; function.n_params];
        functions.push(module.declare_func(&function.name, &params, &[I64]));
    }
    for (function, &id) in program.functions.iter().zip(&functions) {
        compile_function(module.define(id), function, &functions, &imports)?;
    }
    module.export_func("main", functions[0]);
    module.finish()
}

fn compile_function(
    mut f: FunctionBuilder<'_>,
    function: &Function,
    functions: &[FuncId],
    imports: &Imports,
) -> Result<(), BuildError> {
    let mut locals: Vec<LocalId> = (0..function.n_params as u32).map(|i| f.param(i)).collect();
    for _ in function.n_params..function.n_locals {
        // All locals are nil at first.
        let local = f.local(I64);
        f.i64_const(Value::NIL.0).local_set(local);
        locals.push(local);
    }
    let temporaries = [f.local(I64), f.local(I64), f.local(I64)];
    let mut compiler = Compiler { f, locals, temporaries, functions, imports };
    compiler.value(&function.body);
    compiler.f.ret();
    compiler.f.finish()
}

/// Emits the code of one function.
struct Compiler<'m> {
    f: FunctionBuilder<'m>,
    locals: Vec<LocalId>,
    /// Two operands and a result. No expression is evaluated while they are in use.
    temporaries: [LocalId; 3],
    functions: &'m [FuncId],
    imports: &'m Imports,
}

impl Compiler<'_> {
    /// Leaves the value of an expression.
    fn value(&mut self, expr: &Expr) {
        match expr {
            Expr::Constant(value) => {
                self.f.i64_const(value.0);
            }
            Expr::Local(local) => {
                self.f.local_get(self.locals[*local]);
            }
            Expr::Set(local, value) => {
                self.value(value);
                self.f.local_tee(self.locals[*local]);
            }
            Expr::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                let (is_false, end) = (self.f.label(), self.f.label());
                self.branch_if_false(condition, is_false);
                self.value(then);
                self.f.br(end).bind(is_false);
                self.value(otherwise);
                self.f.bind(end);
            }
            Expr::While(condition, body) => {
                let (next, end) = (self.f.label(), self.f.label());
                self.f.bind(next);
                self.branch_if_false(condition, end);
                self.value(body);
                self.f.op(Op::Drop).br(next).bind(end).i64_const(Value::NIL.0);
            }
            Expr::Do(exprs) => match exprs.split_last() {
                Some((last, others)) => {
                    for expr in others {
                        self.value(expr);
                        self.f.op(Op::Drop);
                    }
                    self.value(last);
                }
                None => {
                    self.f.i64_const(Value::NIL.0);
                }
            },
            Expr::Call { line, function, args } => {
                args.iter().for_each(|arg| self.value(arg));
                self.f.line(*line).call(self.functions[*function]);
            }
            Expr::Builtin { line, builtin, args } => {
                args.iter().for_each(|arg| self.value(arg));
                self.f.line(*line).call(self.imports.builtins[*builtin as usize]);
            }
            Expr::List { line, items } => {
                self.f.line(*line).call(self.imports.list);
                for item in items {
                    self.value(item);
                    self.f.call(self.imports.builtins[Builtin::Push as usize]);
                }
            }
            Expr::Binary { line, operator, operands } => match operator {
                Binary::Less | Binary::Equal => {
                    self.f.i64_const(Value::TRUE.0).i64_const(Value::FALSE.0);
                    self.comparison(*line, *operator, operands);
                    self.f.op(Op::Select);
                }
                _ => self.arithmetic(*line, *operator, operands),
            },
        }
    }

    /// Goes to a label if an expression is nil or false.
    fn branch_if_false(&mut self, expr: &Expr, label: LabelId) {
        match expr {
            Expr::Binary {
                line,
                operator: operator @ (Binary::Less | Binary::Equal),
                operands,
            } => {
                self.comparison(*line, *operator, operands);
                self.f.op(Op::I32Eqz).br_if(label);
            }
            _ => {
                let [x, ..] = self.temporaries;
                self.value(expr);
                self.f.local_tee(x).i64_const(Value::NIL.0).op(Op::I64Eq).br_if(label);
                self.f.local_get(x).i64_const(Value::FALSE.0).op(Op::I64Eq).br_if(label);
            }
        }
    }

    /// Evaluates two operands into the temporaries, and goes to a label if they are not both integers.
    fn two_integers(&mut self, operands: &[Expr; 2], otherwise: LabelId) {
        let [x, y, _] = self.temporaries;
        self.value(&operands[0]);
        self.value(&operands[1]);
        self.f.local_set(y).local_set(x);
        self.f.local_get(x).local_get(y).op(Op::I64Or).i64_const(1).op(Op::I64And);
        self.f.op(Op::I32WrapI64).br_if(otherwise);
    }

    /// Emits the call of the host that computes the operation on the operands in the temporaries.
    fn slow_path(&mut self, line: u32, operator: Binary) {
        let [x, y, _] = self.temporaries;
        let function = self.imports.binary[operator as usize];
        self.f.local_get(x).local_get(y).line(line).call(function);
    }

    /// Leaves the value of an operator that is no comparison.
    fn arithmetic(&mut self, line: u32, operator: Binary, operands: &[Expr; 2]) {
        let (slow, end) = (self.f.label(), self.f.label());
        let [x, y, result] = self.temporaries;
        self.two_integers(operands, slow);
        match operator {
            Binary::Add | Binary::Sub => {
                // It has overflowed if the sign of the sum is that of neither operand; of a difference,
                // if the operands differ in sign and the result's is not that of the first one.
                let is_sum = operator == Binary::Add;
                self.f.local_get(x).local_get(y).op(if is_sum { Op::I64Add } else { Op::I64Sub });
                self.f.local_tee(result).local_get(x).op(Op::I64Xor);
                self.f.local_get(if is_sum { result } else { x }).local_get(y).op(Op::I64Xor);
                self.f.op(Op::I64And).i64_const(0).op(Op::I64LtS).br_if(slow);
                self.f.local_get(result);
            }
            Binary::Mul => {
                // The product of two numbers of 32 bits does not overflow. One of them is shifted back.
                for operand in [x, y] {
                    self.f.local_get(operand).op(Op::I64Extend32S);
                    self.f.local_get(operand).op(Op::I64Ne).br_if(slow);
                }
                self.f.local_get(x).local_get(y).i64_const(1).op(Op::I64ShrS).op(Op::I64Mul);
            }
            Binary::Div | Binary::Rem => {
                // The host takes negative operands, so that zero and overflow are not special here. What
                // is left of twice the numbers is twice what is left.
                self.f.local_get(y).i64_const(0).op(Op::I64LeS).br_if(slow);
                self.f.local_get(x).local_get(y);
                match operator {
                    Binary::Div => self.f.op(Op::I64DivS).i64_const(1).op(Op::I64Shl),
                    _ => self.f.op(Op::I64RemS),
                };
            }
            Binary::Less | Binary::Equal => unreachable!("these are comparisons"),
        }
        self.f.br(end).bind(slow);
        self.slow_path(line, operator);
        self.f.bind(end);
    }

    /// Leaves an `i32`: whether a comparison holds.
    fn comparison(&mut self, line: u32, operator: Binary, operands: &[Expr; 2]) {
        let (slow, end) = (self.f.label(), self.f.label());
        let [x, y, _] = self.temporaries;
        self.two_integers(operands, slow);
        let op = if operator == Binary::Less { Op::I64LtS } else { Op::I64Eq };
        self.f.local_get(x).local_get(y).op(op).br(end).bind(slow);
        self.slow_path(line, operator);
        self.f.bind(end);
    }
}
