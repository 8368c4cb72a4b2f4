//! The parser: recursive descent, which resolves names on the way.

use std::collections::{HashMap, HashSet};

use crate::heap::FIELDS_MAX;
use crate::lexer::{Token, Word, error, words};
use crate::library::{self, FUNCTIONS, Use};
use crate::syntax::{
    Arithmetic, Comparison, Expr, ExprKind, Function, Local, Logic, Place, Program, Statement,
    SyntaxError, Variable,
};

/// Expressions, blocks and functions may be within each other so deep.
const DEPTH_MAX: u32 = 200;

type Parsed<T> = Result<T, SyntaxError>;

/// Parses a program.
pub(crate) fn parse(source: &str) -> Parsed<Program> {
    let mut parser = Parser {
        words: words(source)?,
        next: 0,
        depth: 0,
        scopes: vec![Scope::new("main")],
        functions: Vec::new(),
        globals: Vec::new(),
        declared: HashSet::new(),
        used: HashMap::new(),
        assigned: HashMap::new(),
    };
    let mut body = Vec::new();
    while !parser.is_at_end() {
        parser.top_level(&mut body)?;
    }
    for Function { name, .. } in &parser.functions {
        if let Some(&place) = parser.assigned.get(name) {
            return Err(error(place, format!("`{name}` is a function and cannot be assigned")));
        }
    }
    let main = Function { body, ..parser.scopes.remove(0).function };
    let Parser { functions, globals, used, .. } = parser;
    Ok(Program { main, functions, globals, used })
}

/// Checks that all globals that a program uses are declared.
pub(crate) fn check_names(program: &Program, declared: &HashSet<String>) -> Parsed<()> {
    let unknown = program.used.iter().filter(|(name, _)| !declared.contains(*name));
    match unknown.min_by_key(|(_, place)| (place.line, place.column)) {
        Some((name, place)) => Err(error(*place, format!("unknown variable `{name}`"))),
        None => Ok(()),
    }
}

/// A function that is being read.
struct Scope {
    function: Function,
    /// The locals that can be named, for each block.
    blocks: Vec<Vec<usize>>,
    /// The same by name, the innermost last.
    visible: HashMap<String, Vec<usize>>,
    /// The captures, as the function around it sees them.
    captures: HashMap<Variable, usize>,
    n_loops: u32,
}

impl Scope {
    fn new(name: &str) -> Scope {
        let function = Function {
            name: name.to_owned(),
            n_params: 0,
            locals: Vec::new(),
            captures: Vec::new(),
            body: Vec::new(),
        };
        let (visible, captures) = (HashMap::new(), HashMap::new());
        Scope { function, blocks: vec![Vec::new()], visible, captures, n_loops: 0 }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.visible.get(name)?.last().copied()
    }

    fn declare(&mut self, name: &str) -> usize {
        let local = self.function.locals.len();
        self.function.locals.push(Local { name: name.to_owned(), ..Local::default() });
        self.blocks.last_mut().expect("a block is open").push(local);
        self.visible.entry(name.to_owned()).or_default().push(local);
        local
    }

    fn end_block(&mut self) {
        for local in self.blocks.pop().expect("a block is open") {
            let name = &self.function.locals[local].name;
            self.visible.get_mut(name).expect("it is visible").pop();
        }
    }

    fn capture(&mut self, variable: Variable) -> Variable {
        let captures = &mut self.function.captures;
        let index = *self.captures.entry(variable.clone()).or_insert_with(|| {
            captures.push(variable);
            captures.len() - 1
        });
        Variable::Captured(index)
    }
}

struct Parser {
    words: Vec<Word>,
    next: usize,
    depth: u32,
    /// The main program, and the functions within it that are open.
    scopes: Vec<Scope>,
    functions: Vec<Function>,
    globals: Vec<String>,
    /// The names of `functions` and `globals`.
    declared: HashSet<String>,
    /// Globals, with the place of the first use and of the first assignment.
    used: HashMap<String, Place>,
    assigned: HashMap<String, Place>,
}

impl Parser {
    fn word(&self) -> &Word {
        &self.words[self.next]
    }

    fn place(&self) -> Place {
        self.word().place
    }

    fn is_at_end(&self) -> bool {
        self.word().token == Token::End
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the main program is open")
    }

    /// Whether a declaration here is one of a global.
    fn is_outermost(&self) -> bool {
        self.scopes.len() == 1 && self.scopes[0].blocks.len() == 1
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let is_next = self.word().token == Token::Symbol(symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match &self.word().token {
            Token::Number(n) => format!("{n}"),
            Token::Text(_) => "a string".to_owned(),
            Token::Name(name) => format!("`{name}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end".to_owned(),
        };
        error(self.place(), format!("expected {expected}, found {found}"))
    }

    fn expect(&mut self, symbol: &'static str) -> Parsed<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn name(&mut self) -> Parsed<String> {
        let Token::Name(name) = &self.word().token else {
            return Err(self.unexpected("a name"));
        };
        let name = name.clone();
        self.next += 1;
        Ok(name)
    }

    fn deeper(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX { Ok(()) } else { Err(too_deep(self.place())) }
    }

    fn top_level(&mut self, body: &mut Vec<Statement>) -> Parsed<()> {
        let is_named =
            matches!(self.words.get(self.next + 1), Some(Word { token: Token::Name(_), .. }));
        if !(self.word().token == Token::Symbol("fn") && is_named) {
            body.push(self.statement()?);
            return Ok(());
        }
        self.next += 1;
        let place = self.place();
        let name = self.name()?;
        self.declare_global(&name, place)?;
        let function = self.function(&name)?;
        self.functions.push(function);
        Ok(())
    }

    fn declare_global(&mut self, name: &str, place: Place) -> Parsed<()> {
        if library_function(name).is_some() {
            return Err(error(place, format!("`{name}` is a function of the library")));
        }
        if !self.declared.insert(name.to_owned()) {
            return Err(error(place, format!("`{name}` is declared already")));
        }
        Ok(())
    }

    /// Parses parameters and body of a function.
    fn function(&mut self, name: &str) -> Parsed<Function> {
        self.scopes.push(Scope::new(name));
        self.expect("(")?;
        while !self.take(")") {
            let place = self.place();
            let param = self.name()?;
            if self.scope().find(&param).is_some() {
                return Err(error(place, format!("there is a parameter `{param}` already")));
            }
            self.scope().declare(&param);
            self.scope().function.n_params += 1;
            if self.word().token != Token::Symbol(")") {
                self.expect(",")?;
            }
        }
        let body = self.block()?;
        let scope = self.scopes.pop().expect("the function is open");
        Ok(Function { body, ..scope.function })
    }

    fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.deeper()?;
        self.expect("{")?;
        self.scope().blocks.push(Vec::new());
        let mut body = Vec::new();
        while !self.take("}") {
            if self.is_at_end() {
                return Err(self.unexpected("`}`"));
            }
            body.push(self.statement()?);
        }
        self.scope().end_block();
        self.depth -= 1;
        Ok(body)
    }

    fn loop_block(&mut self) -> Parsed<Vec<Statement>> {
        self.scope().n_loops += 1;
        let body = self.block()?;
        self.scope().n_loops -= 1;
        Ok(body)
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let place = self.place();
        let Token::Symbol(symbol) = self.word().token else { return self.expr_statement() };
        self.next += 1;
        let statement = match symbol {
            "let" => self.declaration()?,
            "fn" if matches!(self.word().token, Token::Name(_)) => {
                let name = self.name()?;
                // Its own body may name it, before it has a value.
                let local = self.scope().declare(&name);
                self.scope().function.locals[local].is_assigned = true;
                let function = ExprKind::Function(Box::new(self.function(&name)?));
                Statement::Fn(local, self.node(place, 0, function)?)
            }
            "if" => self.branches()?,
            "while" => Statement::While(self.expr()?, self.loop_block()?),
            "for" => self.count()?,
            "return" => {
                let is_last = matches!(self.word().token, Token::Symbol("}" | ";") | Token::End);
                let has_value = !is_last && !self.word().is_first;
                Statement::Return(if has_value { Some(self.expr()?) } else { None })
            }
            "break" | "continue" => {
                if self.scope().n_loops == 0 {
                    return Err(error(place, format!("`{symbol}` outside a loop")));
                }
                if symbol == "break" { Statement::Break } else { Statement::Continue }
            }
            _ => {
                self.next -= 1;
                return self.expr_statement();
            }
        };
        self.take(";");
        Ok(statement)
    }

    fn declaration(&mut self) -> Parsed<Statement> {
        let place = self.place();
        let name = self.name()?;
        self.expect("=")?;
        let value = self.expr()?;
        if !self.is_outermost() {
            return Ok(Statement::Let(Variable::Local(self.scope().declare(&name)), value));
        }
        self.declare_global(&name, place)?;
        self.globals.push(name.clone());
        Ok(Statement::Let(Variable::Global(name), value))
    }

    fn branches(&mut self) -> Parsed<Statement> {
        let mut branches = vec![(self.expr()?, self.block()?)];
        while self.take("else") {
            if !self.take("if") {
                return Ok(Statement::If(branches, self.block()?));
            }
            branches.push((self.expr()?, self.block()?));
        }
        Ok(Statement::If(branches, Vec::new()))
    }

    fn count(&mut self) -> Parsed<Statement> {
        let name = self.name()?;
        self.expect("=")?;
        let from = self.expr()?;
        if self.word().token != Token::Name("to".to_owned()) {
            return Err(self.unexpected("`to`"));
        }
        self.next += 1;
        let to = self.expr()?;
        self.scope().blocks.push(Vec::new());
        let local = self.scope().declare(&name);
        let body = self.loop_block()?;
        self.scope().end_block();
        Ok(Statement::For(local, from, to, body))
    }

    fn expr_statement(&mut self) -> Parsed<Statement> {
        let target = self.expr()?;
        let statement = if self.take("=") {
            let value = self.expr()?;
            match target.kind {
                ExprKind::Variable(variable) => {
                    self.note_assignment(&variable, target.place);
                    Statement::Assign(variable, value)
                }
                ExprKind::Field(object, name) => Statement::AssignField(*object, name, value),
                ExprKind::Index(parts) => {
                    let [container, index] = *parts;
                    Statement::AssignIndex(container, index, value)
                }
                _ => return Err(error(target.place, "this cannot be assigned")),
            }
        } else {
            Statement::Expr(target)
        };
        self.take(";");
        Ok(statement)
    }

    fn note_assignment(&mut self, variable: &Variable, place: Place) {
        if let Variable::Global(name) = variable {
            self.assigned.entry(name.clone()).or_insert(place);
            return;
        }
        let mut variable = variable.clone();
        for scope in self.scopes.iter_mut().rev() {
            match variable {
                Variable::Captured(index) => variable = scope.function.captures[index].clone(),
                Variable::Local(local) => return scope.function.locals[local].is_assigned = true,
                Variable::Global(_) => unreachable!("globals are not captured"),
            }
        }
    }

    /// Finds a variable, and captures it in all functions between.
    fn resolve(&mut self, name: &str, place: Place) -> Variable {
        let found =
            self.scopes.iter().enumerate().rev().find_map(|(i, s)| Some((i, s.find(name)?)));
        let Some((level, local)) = found else {
            self.used.entry(name.to_owned()).or_insert(place);
            return Variable::Global(name.to_owned());
        };
        let mut variable = Variable::Local(local);
        if level + 1 < self.scopes.len() {
            self.scopes[level].function.locals[local].is_captured = true;
        }
        for scope in &mut self.scopes[level + 1..] {
            variable = scope.capture(variable);
        }
        variable
    }

    fn node(&self, place: Place, depth: u32, kind: ExprKind) -> Parsed<Expr> {
        let depth = depth + 1;
        if depth <= DEPTH_MAX { Ok(Expr { place, depth, kind }) } else { Err(too_deep(place)) }
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.deeper()?;
        let expr = self.binary(0)?;
        self.depth -= 1;
        Ok(expr)
    }

    /// Parses operators that bind at least so strongly.
    fn binary(&mut self, least: u32) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Token::Symbol(symbol) = self.word().token
            && let Some(strength) = strength(symbol).filter(|&strength| strength >= least)
        {
            let place = self.place();
            self.next += 1;
            let right = self.binary(strength + 1)?;
            let depth = left.depth.max(right.depth);
            let operands = Box::new([left, right]);
            left = self.node(place, depth, operation(symbol, operands))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let place = self.place();
        let is_not = self.take("not");
        if !is_not && !self.take("-") {
            return self.postfix();
        }
        self.deeper()?;
        let operand = Box::new(if is_not { self.binary(3)? } else { self.unary()? });
        self.depth -= 1;
        let depth = operand.depth;
        let kind = match operand.kind {
            ExprKind::Number(n) if !is_not => ExprKind::Number(-n),
            _ if is_not => ExprKind::Not(operand),
            _ => ExprKind::Negate(operand),
        };
        self.node(place, depth, kind)
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        loop {
            let place = self.place();
            let (continues, mut depth) = (!self.word().is_first, expr.depth);
            let kind = if self.take(".") {
                ExprKind::Field(Box::new(expr), self.name()?)
            } else if continues && self.take("[") {
                let index = self.expr()?;
                self.expect("]")?;
                depth = depth.max(index.depth);
                ExprKind::Index(Box::new([expr, index]))
            } else if continues && self.take("(") {
                let args = self.exprs(")")?;
                depth = args.iter().map(|arg| arg.depth).fold(depth, u32::max);
                ExprKind::Call(Box::new(expr), args)
            } else {
                return Ok(expr);
            };
            expr = self.node(place, depth, kind)?;
        }
    }

    /// Parses the arguments of a function of the library, which is no value.
    fn library_call(&mut self, function: &'static library::Function, place: Place) -> Parsed<Expr> {
        self.expect("(")?;
        let args = self.exprs(")")?;
        if args.len() != function.n_params {
            let library::Function { name, n_params, .. } = function;
            let message = format!("`{name}` takes {n_params} arguments, found {}", args.len());
            return Err(error(place, message));
        }
        let depth = args.iter().map(|arg| arg.depth).max().unwrap_or(0);
        self.node(place, depth, ExprKind::Library(function, args))
    }

    fn exprs(&mut self, end: &'static str) -> Parsed<Vec<Expr>> {
        let mut exprs = Vec::new();
        while !self.take(end) {
            exprs.push(self.expr()?);
            if self.word().token != Token::Symbol(end) {
                self.expect(",")?;
            }
        }
        Ok(exprs)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let place = self.place();
        let Word { token, .. } = self.word().clone();
        self.next += 1;
        let mut depth = 0;
        let kind = match token {
            Token::Number(n) => ExprKind::Number(n),
            Token::Text(text) => ExprKind::Text(text),
            Token::Name(name) => {
                let is_local = self.scopes.iter().any(|scope| scope.find(&name).is_some());
                if let Some(function) = library_function(&name).filter(|_| !is_local) {
                    return self.library_call(function, place);
                }
                ExprKind::Variable(self.resolve(&name, place))
            }
            Token::Symbol("nil") => ExprKind::Nil,
            Token::Symbol(word @ ("true" | "false")) => ExprKind::Bool(word == "true"),
            Token::Symbol("fn") => ExprKind::Function(Box::new(self.function("fn")?)),
            Token::Symbol("(") => {
                let expr = self.expr()?;
                self.expect(")")?;
                return Ok(expr);
            }
            Token::Symbol("[") => {
                let items = self.exprs("]")?;
                depth = items.iter().map(|item| item.depth).max().unwrap_or(0);
                ExprKind::Array(items)
            }
            Token::Symbol("{") => {
                let fields = self.fields()?;
                depth = fields.iter().map(|(_, value)| value.depth).max().unwrap_or(0);
                ExprKind::Object(fields)
            }
            _ => {
                self.next -= 1;
                return Err(self.unexpected("an expression"));
            }
        };
        self.node(place, depth, kind)
    }

    fn fields(&mut self) -> Parsed<Vec<(String, Expr)>> {
        let mut fields: Vec<(String, Expr)> = Vec::new();
        while !self.take("}") {
            let place = self.place();
            let name = self.name()?;
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(error(place, format!("there is a field `{name}` already")));
            }
            if fields.len() == FIELDS_MAX {
                return Err(error(
                    place,
                    format!("an object has at most {FIELDS_MAX} fields; use a map"),
                ));
            }
            self.expect(":")?;
            fields.push((name, self.expr()?));
            if self.word().token != Token::Symbol("}") {
                self.expect(",")?;
            }
        }
        Ok(fields)
    }
}

fn library_function(name: &str) -> Option<&'static library::Function> {
    FUNCTIONS.iter().find(|function| function.users == Use::Library && function.name == name)
}

fn too_deep(place: Place) -> SyntaxError {
    error(place, format!("nested more than {DEPTH_MAX} deep"))
}

/// The precedence of a binary operator.
fn strength(symbol: &str) -> Option<u32> {
    Some(match symbol {
        "or" => 1,
        "and" => 2,
        "==" | "!=" | "<" | "<=" | ">" | ">=" => 3,
        ".." => 4,
        "+" | "-" => 5,
        "*" | "/" | "//" | "%" => 6,
        _ => return None,
    })
}

fn operation(symbol: &str, operands: Box<[Expr; 2]>) -> ExprKind {
    match symbol {
        "or" => ExprKind::Logic(Logic::Or, operands),
        "and" => ExprKind::Logic(Logic::And, operands),
        "==" => ExprKind::Equal { negated: false, operands },
        "!=" => ExprKind::Equal { negated: true, operands },
        "<" => ExprKind::Compare(Comparison::Less, operands),
        "<=" => ExprKind::Compare(Comparison::LessOrEqual, operands),
        ">" => ExprKind::Compare(Comparison::Greater, operands),
        ">=" => ExprKind::Compare(Comparison::GreaterOrEqual, operands),
        ".." => ExprKind::Concat(operands),
        "+" => ExprKind::Arithmetic(Arithmetic::Add, operands),
        "-" => ExprKind::Arithmetic(Arithmetic::Sub, operands),
        "*" => ExprKind::Arithmetic(Arithmetic::Mul, operands),
        "/" => ExprKind::Arithmetic(Arithmetic::Div, operands),
        "//" => ExprKind::Arithmetic(Arithmetic::FloorDiv, operands),
        "%" => ExprKind::Arithmetic(Arithmetic::Rem, operands),
        _ => unreachable!("only operators have a strength"),
    }
}
