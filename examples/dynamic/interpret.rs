//! The interpreter: what the language's implementer had before.

use crate::syntax::{Binary, Builtin, Expr, Program};
use crate::value::{CALLS_MAX, Heap, Value, Wrong};

/// Runs a program.
pub(crate) fn interpret(program: &Program, heap: &mut Heap) -> Result<(), Wrong> {
    let mut interpreter = Interpreter { program, heap, n_calls: 0 };
    interpreter.call(0, Vec::new())?;
    Ok(())
}

struct Interpreter<'p> {
    program: &'p Program,
    heap: &'p mut Heap,
    n_calls: u32,
}

impl Interpreter<'_> {
    fn call(&mut self, function: usize, mut locals: Vec<Value>) -> Result<Value, Wrong> {
        self.n_calls += 1;
        if self.n_calls > CALLS_MAX {
            return Err(Wrong::TooManyCalls);
        }
        let function = &self.program.functions[function];
        locals.resize(function.n_locals, Value::NIL);
        let value = self.eval(&function.body, &mut locals)?;
        self.n_calls -= 1;
        Ok(value)
    }

    fn eval(&mut self, expr: &Expr, locals: &mut [Value]) -> Result<Value, Wrong> {
        Ok(match expr {
            Expr::Constant(value) => *value,
            Expr::Local(local) => locals[*local],
            Expr::Set(local, value) => {
                locals[*local] = self.eval(value, locals)?;
                locals[*local]
            }
            Expr::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                match self.eval(condition, locals)?.is_true() {
                    true => self.eval(then, locals)?,
                    false => self.eval(otherwise, locals)?,
                }
            }
            Expr::While(condition, body) => {
                while self.eval(condition, locals)?.is_true() {
                    self.eval(body, locals)?;
                }
                Value::NIL
            }
            Expr::Do(exprs) => {
                let mut last = Value::NIL;
                for expr in exprs {
                    last = self.eval(expr, locals)?;
                }
                last
            }
            Expr::Call { function, args, .. } => {
                let args: Result<_, _> = args.iter().map(|arg| self.eval(arg, locals)).collect();
                self.call(*function, args?)?
            }
            Expr::Binary { operator, operands, .. } => {
                let left = self.eval(&operands[0], locals)?;
                let right = self.eval(&operands[1], locals)?;
                match operator {
                    Binary::Add => self.heap.add(left, right)?,
                    Binary::Sub => self.heap.sub(left, right)?,
                    Binary::Mul => self.heap.mul(left, right)?,
                    Binary::Div => self.heap.div(left, right)?,
                    Binary::Rem => self.heap.rem(left, right)?,
                    Binary::Less => Value::of(self.heap.is_less(left, right)?),
                    Binary::Equal => Value::of(self.heap.is_equal(left, right)),
                }
            }
            Expr::List { items, .. } => {
                let list = self.heap.new_list()?;
                for item in items {
                    let item = self.eval(item, locals)?;
                    self.heap.push(list, item)?;
                }
                list
            }
            Expr::Builtin { builtin, args, .. } => {
                let mut values = [Value::NIL; 3];
                for (value, arg) in values.iter_mut().zip(args) {
                    *value = self.eval(arg, locals)?;
                }
                let [a, b, c] = values;
                match builtin {
                    Builtin::Get => self.heap.get(a, b)?,
                    Builtin::Put => self.heap.put(a, b, c)?,
                    Builtin::Push => self.heap.push(a, b)?,
                    Builtin::Len => self.heap.len(a)?,
                    Builtin::Print => self.heap.print(a),
                }
            }
        })
    }
}
