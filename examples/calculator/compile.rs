//! Compiler from words to bytecode.
//!
//! The code of a stack machine is an expression in postfix order: first the operands, then the operator.
//! So no tree is needed: as soon as an operand is read, its code is emitted, and an operator is emitted
//! after its second operand. All values are `f64`; true is 1, false is 0.

use std::collections::HashMap;
use std::error::Error;

use slotvm::builder::{FuncId, FunctionBuilder, LocalId, ModuleBuilder};
use slotvm::{Op, ValType};

use crate::tokens::{SyntaxError, Token, Tokens};

/// A function that the host provides.
type MathFunction = fn(f64) -> f64;

/// These are linked under their names.
pub(crate) const MATH: [(&str, MathFunction); 4] =
    [("sin", f64::sin), ("cos", f64::cos), ("exp", f64::exp), ("ln", f64::ln)];

/// The functions that are an instruction.
const INSTRUCTIONS: [(&str, Op); 3] =
    [("sqrt", Op::F64Sqrt), ("abs", Op::F64Abs), ("floor", Op::F64Floor)];

/// Expressions may be nested so deep.
const NESTING_MAX: u32 = 200;

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) module: slotvm::Bytecode,
    /// The lines that are expressions. Each is an exported function without parameters.
    pub(crate) expressions: Vec<u32>,
}

/// The name under which the expression of a line is exported.
pub(crate) fn export_name(line: u32) -> String {
    format!("line {line}")
}

/// A function that expressions can call.
#[derive(Copy, Clone, Debug)]
struct Callee {
    code: Code,
    n_params: usize,
}

#[derive(Copy, Clone, Debug)]
enum Code {
    Instruction(Op),
    Function(FuncId),
}

/// Compiles a program.
pub(crate) fn compile(source: &str) -> Result<Program, Box<dyn Error>> {
    let mut module = ModuleBuilder::new();
    let mut callees: HashMap<&str, Callee> = HashMap::new();
    for (name, op) in INSTRUCTIONS {
        callees.insert(name, Callee { code: Code::Instruction(op), n_params: 1 });
    }
    for (name, _) in MATH {
        let func = module.import_func("math", name, &[ValType::F64], &[ValType::F64]);
        callees.insert(name, Callee { code: Code::Function(func), n_params: 1 });
    }
    let mut expressions = Vec::new();
    for (line, text) in (1..).zip(source.lines()) {
        let mut tokens = Tokens::new(line, text)?;
        if tokens.skip("def")? {
            define(&mut module, &mut callees, tokens)?;
        } else if tokens.current() != Token::End {
            let func = module.declare_func(&export_name(line), &[], &[ValType::F64]);
            function(&mut module, func, &callees, HashMap::new(), &mut tokens)?;
            module.export_func(&export_name(line), func);
            expressions.push(line);
        }
    }
    Ok(Program { module: module.finish()?, expressions })
}

/// `NAME(PARAMETERS) = EXPRESSION`, after `def`.
fn define<'t>(
    module: &mut ModuleBuilder,
    callees: &mut HashMap<&'t str, Callee>,
    mut tokens: Tokens<'t>,
) -> Result<(), SyntaxError> {
    let place = tokens.place();
    let name = tokens.name()?;
    let mut params: HashMap<&str, usize> = HashMap::new();
    tokens.expect("(")?;
    while !tokens.skip(")")? {
        if !params.is_empty() {
            tokens.expect(",")?;
        }
        let error = |name| tokens.error(format!("there is a parameter `{name}` already"));
        if let Token::Name(name) = tokens.current()
            && params.contains_key(name)
        {
            return Err(error(name));
        }
        params.insert(tokens.name()?, params.len());
    }
    tokens.expect("=")?;
    let func = module.declare_func(name, &vec![ValType::F64; params.len()], &[ValType::F64]);
    // It is known from here on, so that it can call itself.
    let callee = Callee { code: Code::Function(func), n_params: params.len() };
    if callees.insert(name, callee).is_some() {
        let message = format!("there is a function `{name}` already");
        return Err(tokens.error_at(place, message));
    }
    function(module, func, callees, params, &mut tokens)
}

/// The expression up to the end of the line, as the code of a function.
fn function<'t>(
    module: &mut ModuleBuilder,
    func: FuncId,
    callees: &HashMap<&str, Callee>,
    params: HashMap<&'t str, usize>,
    tokens: &mut Tokens<'t>,
) -> Result<(), SyntaxError> {
    let mut f = module.define(func);
    let params = params
        .into_iter()
        .map(|(name, index)| {
            let local = f.param(index as u32);
            f.name_local(local, name);
            (name, local)
        })
        .collect();
    // Traps name the line.
    f.line(tokens.line());
    let mut compiler = Compiler { f, callees, params, nesting: 0 };
    compiler.expression(tokens)?;
    if tokens.current() != Token::End {
        return Err(tokens.error(format!("an operator is expected, not {}", tokens.current())));
    }
    compiler.f.ret();
    compiler.f.finish().map_err(|error| tokens.error(error.to_string()))
}

/// Emits the code of one function.
struct Compiler<'t, 'm> {
    f: FunctionBuilder<'m>,
    callees: &'m HashMap<&'m str, Callee>,
    params: HashMap<&'t str, LocalId>,
    nesting: u32,
}

/// The operators, from those that bind least. The result of a comparison is an `i32`, of the others an
/// `f64`.
const LEVELS: [&[(&str, Op)]; 3] = [
    &[
        ("<", Op::F64Lt),
        ("<=", Op::F64Le),
        (">", Op::F64Gt),
        (">=", Op::F64Ge),
        ("==", Op::F64Eq),
        ("!=", Op::F64Ne),
    ],
    &[("+", Op::F64Add), ("-", Op::F64Sub)],
    &[("*", Op::F64Mul), ("/", Op::F64Div)],
];

impl<'t> Compiler<'t, '_> {
    /// Any expression.
    fn expression(&mut self, tokens: &mut Tokens<'t>) -> Result<(), SyntaxError> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            let message = format!("expressions are nested more than {NESTING_MAX} deep");
            return Err(tokens.error(message));
        }
        match tokens.skip("if")? {
            true => self.conditional(tokens)?,
            false => self.operators(0, tokens)?,
        }
        self.nesting -= 1;
        Ok(())
    }

    /// `CONDITION then VALUE else VALUE`, after `if`. Both branches leave their value on the operand
    /// stack where they meet.
    fn conditional(&mut self, tokens: &mut Tokens<'t>) -> Result<(), SyntaxError> {
        let (otherwise, end) = (self.f.label(), self.f.label());
        self.expression(tokens)?;
        tokens.expect("then")?;
        self.f.f64_const(0.0).op(Op::F64Eq).br_if(otherwise);
        self.expression(tokens)?;
        tokens.expect("else")?;
        self.f.br(end).bind(otherwise);
        self.expression(tokens)?;
        self.f.bind(end);
        Ok(())
    }

    /// Operands with operators of this level, or that bind more, between them.
    fn operators(&mut self, level: usize, tokens: &mut Tokens<'t>) -> Result<(), SyntaxError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.operand(tokens);
        };
        self.operators(level + 1, tokens)?;
        while let Token::Symbol(symbol) = tokens.current()
            && let Some(&(_, op)) = operators.iter().find(|(name, _)| *name == symbol)
        {
            tokens.advance()?;
            self.operators(level + 1, tokens)?;
            self.f.op(op);
            if level == 0 {
                self.f.op(Op::F64ConvertI32S);
            }
        }
        Ok(())
    }

    fn operand(&mut self, tokens: &mut Tokens<'t>) -> Result<(), SyntaxError> {
        if tokens.skip("(")? {
            self.expression(tokens)?;
            return tokens.expect(")");
        }
        let mut is_negative = false;
        while tokens.skip("-")? {
            is_negative = !is_negative;
        }
        if is_negative {
            self.operand(tokens)?;
            self.f.op(Op::F64Neg);
            return Ok(());
        }
        let place = tokens.place();
        match tokens.current() {
            Token::Number(number) => {
                tokens.advance()?;
                self.f.f64_const(number);
                Ok(())
            }
            Token::Name(_) => {
                let name = tokens.name()?;
                match tokens.skip("(")? {
                    true => self.call(name, place, tokens),
                    false => self.param(name, place, tokens),
                }
            }
            other => Err(tokens.error(format!("an expression is expected, not {other}"))),
        }
    }

    fn param(&mut self, name: &str, place: usize, tokens: &Tokens<'t>) -> Result<(), SyntaxError> {
        match self.params.get(name) {
            Some(&local) => {
                self.f.local_get(local);
                Ok(())
            }
            None => {
                let message = format!("unknown parameter `{name}`");
                Err(tokens.error_at(place, message))
            }
        }
    }

    /// `ARGUMENTS)`, after the name and the parenthesis.
    fn call(
        &mut self,
        name: &str,
        place: usize,
        tokens: &mut Tokens<'t>,
    ) -> Result<(), SyntaxError> {
        let Some(&Callee { code, n_params }) = self.callees.get(name) else {
            let message = format!("unknown function `{name}`");
            return Err(tokens.error_at(place, message));
        };
        let mut n_args = 0;
        while !tokens.skip(")")? {
            if n_args > 0 {
                tokens.expect(",")?;
            }
            self.expression(tokens)?;
            n_args += 1;
        }
        if n_args != n_params {
            let arguments = if n_params == 1 { "argument" } else { "arguments" };
            let message = format!("`{name}` takes {n_params} {arguments}, not {n_args}");
            return Err(tokens.error_at(place, message));
        }
        match code {
            Code::Instruction(op) => self.f.op(op),
            Code::Function(func) => self.f.call(func),
        };
        Ok(())
    }
}
