//! Direct evaluator of syntax trees, written from the description of the language. It shares the parser with the
//! compiler, and nothing else: names are looked up when they are used, by the values that there are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::syntax::{Call, Expr, ExprKind, Function, Operator, Statement, Type};

/// Stack for calls that nest as deeply as in the programs of the tests.
const STACK_BYTES: usize = 512 << 20;

/// The reason why a program does not end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    DivisionByZero,
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Nothing,
    Int(i32),
    Bool(bool),
    Text(Vec<u8>),
}

impl Value {
    fn ty(&self) -> Type {
        match self {
            Value::Nothing => Type::Void,
            Value::Int(_) => Type::Int,
            Value::Bool(_) => Type::Bool,
            Value::Text(_) => Type::Text,
        }
    }

    fn int(self) -> i32 {
        let Value::Int(number) = self else { panic!("{self:?} is not a number") };
        number
    }

    fn bool(self) -> bool {
        let Value::Bool(value) = self else { panic!("{self:?} is not a truth value") };
        value
    }
}

/// An active function, and the one around it that was active when its name was found.
struct Frame<'p> {
    function: &'p Function,
    variables: RefCell<HashMap<&'p str, Value>>,
    around: Option<Rc<Frame<'p>>>,
}

/// Whether a list of statements has returned, and with what.
enum Flow {
    Next,
    Return(Value),
}

struct Evaluator<'p> {
    main: &'p Function,
    out: RefCell<Vec<u8>>,
}

/// The output of a program, and the reason if it stops.
pub(crate) fn evaluate(main: &Function) -> (Vec<u8>, Option<Stop>) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let run = || {
            let evaluator = Evaluator { main, out: RefCell::new(Vec::new()) };
            let stop = evaluator.enter(main, Vec::new(), None).err();
            (evaluator.out.into_inner(), stop)
        };
        thread
            .spawn_scoped(scope, run)
            .expect("there is a thread")
            .join()
            .expect("it does not panic")
    })
}

impl<'p> Evaluator<'p> {
    fn enter(
        &self,
        function: &'p Function,
        args: Vec<Value>,
        around: Option<Rc<Frame<'p>>>,
    ) -> Result<Value, Stop> {
        let zero = |ty| if ty == Type::Int { Value::Int(0) } else { Value::Bool(false) };
        let params = function.params.iter().map(|param| param.name.text.as_str()).zip(args);
        let locals =
            function.variables.iter().map(|local| (local.name.text.as_str(), zero(local.ty)));
        let variables = RefCell::new(params.chain(locals).collect());
        match self.statements(&function.body, &Rc::new(Frame { function, variables, around }))? {
            Flow::Next => Ok(Value::Nothing),
            Flow::Return(value) => Ok(value),
        }
    }

    fn statements(&self, statements: &'p [Statement], frame: &Rc<Frame<'p>>) -> Result<Flow, Stop> {
        for statement in statements {
            if let Flow::Return(value) = self.statement(statement, frame)? {
                return Ok(Flow::Return(value));
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&self, statement: &'p Statement, frame: &Rc<Frame<'p>>) -> Result<Flow, Stop> {
        match statement {
            Statement::Call(call) => drop(self.call(call, frame)?),
            Statement::Assign(name, value) => {
                let value = self.expr(value, frame)?;
                let mut place = frame;
                while !place.variables.borrow().contains_key(name.text.as_str()) {
                    place = place.around.as_ref().expect("the variable is declared");
                }
                let mut variables = place.variables.borrow_mut();
                *variables.get_mut(name.text.as_str()).expect("it is there") = value;
            }
            Statement::Return(None, _) => return Ok(Flow::Return(Value::Nothing)),
            Statement::Return(Some(value), _) => return Ok(Flow::Return(self.expr(value, frame)?)),
            Statement::Print { value, newline } => {
                let value = self.expr(value, frame)?;
                let mut out = self.out.borrow_mut();
                match value {
                    Value::Int(number) => out.extend(number.to_string().bytes()),
                    Value::Bool(value) => out.extend(value.to_string().bytes()),
                    Value::Text(text) => out.extend(text),
                    Value::Nothing => panic!("nothing is printed"),
                }
                out.extend(newline.then_some(b'\n'));
            }
            Statement::If { condition, then, otherwise } => {
                let taken = if self.expr(condition, frame)?.bool() { then } else { otherwise };
                return self.statements(taken, frame);
            }
            Statement::While(condition, body) => {
                while self.expr(condition, frame)?.bool() {
                    if let Flow::Return(value) = self.statements(body, frame)? {
                        return Ok(Flow::Return(value));
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    fn expr(&self, expr: &'p Expr, frame: &Rc<Frame<'p>>) -> Result<Value, Stop> {
        Ok(match &expr.kind {
            ExprKind::Int(number) => Value::Int(*number),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Text(text) => Value::Text(text.clone()),
            ExprKind::Variable(name) => {
                let mut frames = std::iter::successors(Some(frame), |frame| frame.around.as_ref());
                let found =
                    frames.find_map(|frame| frame.variables.borrow().get(name.as_str()).cloned());
                found.expect("the variable is declared")
            }
            ExprKind::Call(call) => self.call(call, frame)?,
            ExprKind::Not(operand) => Value::Bool(!self.expr(operand, frame)?.bool()),
            ExprKind::Negate(operand) => {
                Value::Int(0i32.wrapping_sub(self.expr(operand, frame)?.int()))
            }
            ExprKind::Chain(first, rest) => {
                let mut value = self.expr(first, frame)?;
                for (operator, operand) in rest {
                    value = operate(*operator, value, self.expr(operand, frame)?)?;
                }
                value
            }
        })
    }

    fn call(&self, call: &'p Call, frame: &Rc<Frame<'p>>) -> Result<Value, Stop> {
        let mut args = Vec::new();
        for arg in &call.args {
            args.push(self.expr(arg, frame)?);
        }
        let is_it = |function: &&Function| {
            let types = function.params.iter().map(|param| param.ty);
            function.name.text == call.name.text && types.eq(args.iter().map(Value::ty))
        };
        let mut frames = std::iter::successors(Some(frame), |frame| frame.around.as_ref());
        let found = frames.find_map(|frame| {
            frame
                .function
                .functions
                .iter()
                .find(is_it)
                .map(|function| (function, Some(frame.clone())))
        });
        let (function, around) = found.unwrap_or((self.main, None));
        assert!(is_it(&function), "a function is found");
        self.enter(function, args, around)
    }
}

fn operate(operator: Operator, a: Value, b: Value) -> Result<Value, Stop> {
    Ok(match operator {
        Operator::Equal => Value::Bool(a == b),
        Operator::NotEqual => Value::Bool(a != b),
        Operator::And => Value::Bool(a.bool() & b.bool()),
        Operator::Or => Value::Bool(a.bool() | b.bool()),
        Operator::Less => Value::Bool(a.int() < b.int()),
        Operator::LessEqual => Value::Bool(a.int() <= b.int()),
        Operator::Greater => Value::Bool(a.int() > b.int()),
        Operator::GreaterEqual => Value::Bool(a.int() >= b.int()),
        Operator::Add => Value::Int((i64::from(a.int()) + i64::from(b.int())) as i32),
        Operator::Sub => Value::Int((i64::from(a.int()) - i64::from(b.int())) as i32),
        Operator::Mul => Value::Int((i64::from(a.int()) * i64::from(b.int())) as i32),
        Operator::Div | Operator::Rem => {
            let (a, b) = (i64::from(a.int()), i64::from(b.int()));
            match (operator, b) {
                (_, 0) => return Err(Stop::DivisionByZero),
                (Operator::Rem, _) => Value::Int((a % b) as i32),
                _ => Value::Int(i32::try_from(a / b).map_err(|_| Stop::Overflow)?),
            }
        }
    })
}
