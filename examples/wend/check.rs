//! Names and types.
//!
//! A body sees its own names and those of the functions around it. Variables and functions have name spaces of their
//! own. A function is found by its name and the exact types of the arguments, from the inside out: an inner function
//! hides an outer one of the same types only. All functions of a body are known in all of it.

use std::collections::{BTreeSet, HashMap};

use crate::captures;
use crate::error::CompileError;
use crate::program::{Expr, ExprKind, Func, FuncId, Program, Stmt, StmtKind, Var, VarId};
use crate::syntax::{self, Call, Function, Name, Operator, Span, Statement, Type};

/// Resolves names and types.
///
/// # Errors
/// Fails at the first name that is unknown or declared twice, at types that do not fit, at a missing return, and if a
/// function needs too many variables of its surroundings.
pub fn check(source: &str, main: &Function) -> Result<Program, CompileError> {
    if main.name.text != "main" || main.result != Type::Void || !main.params.is_empty() {
        return Err(CompileError::new(
            &main.name.span,
            "expected a function `main()` without a type",
        )
        .with_help("a program is one function, which has all others inside: `main() { … }`"));
    }
    let mut checker = Checker::new(source);
    let mut outermost = Scope::default();
    let id = checker.declare(&mut outermost, main, "")?;
    checker.scopes.push(outermost);
    checker.function(id, main)?;
    let Checker { mut functions, variables, calls, passing, spans, .. } = checker;
    captures::propagate(&mut functions, &variables, &calls).map_err(|id| {
        let max = captures::NEEDS_MAX;
        let message =
            format!("functions use more than {max} variables of their surroundings (NEEDS_MAX)");
        CompileError::new(&spans[id.0], message)
    })?;
    if let Some((id, span)) = first_call_beyond(&functions, &passing) {
        let max = captures::NEEDS_MAX;
        let message =
            format!("calls pass more than {max} variables of their surroundings (NEEDS_MAX)");
        return Err(
            CompileError::new(&span, message).with_note(&spans[id.0], "needed by this function")
        );
    }
    Ok(Program { functions, variables })
}

/// The call with which all calls up to it pass more than [`captures::NEEDS_MAX`] addresses.
fn first_call_beyond(functions: &[Func], calls: &[(FuncId, Span)]) -> Option<(FuncId, Span)> {
    let mut n_passed = 0;
    let is_beyond = |(id, _): &&(FuncId, Span)| {
        n_passed += functions[id.0].needs.len();
        n_passed > captures::NEEDS_MAX
    };
    calls.iter().find(is_beyond).cloned()
}

/// The names that a body declares.
#[derive(Default)]
struct Scope {
    variables: HashMap<String, VarId>,
    functions: HashMap<String, HashMap<Vec<Type>, FuncId>>,
}

struct Checker {
    /// The starts of lines.
    lines: Vec<usize>,
    /// From the outside in.
    scopes: Vec<Scope>,
    /// The function whose body is checked.
    current: FuncId,
    functions: Vec<Func>,
    variables: Vec<Var>,
    /// The functions that each function calls.
    calls: Vec<BTreeSet<FuncId>>,
    /// All calls, with their places.
    passing: Vec<(FuncId, Span)>,
    /// The place of the name of each function.
    spans: Vec<Span>,
}

impl Checker {
    fn new(source: &str) -> Checker {
        let breaks =
            source.bytes().zip(1..).filter(|&(byte, _)| byte == b'\n').map(|(_, next)| next);
        Checker {
            lines: [0].into_iter().chain(breaks).collect(),
            scopes: Vec::new(),
            current: FuncId(0),
            functions: Vec::new(),
            variables: Vec::new(),
            calls: Vec::new(),
            passing: Vec::new(),
            spans: Vec::new(),
        }
    }

    fn line(&self, span: &Span) -> u32 {
        self.lines.partition_point(|&start| start <= span.start) as u32
    }

    /// Makes a function known in a scope.
    fn declare(
        &mut self,
        scope: &mut Scope,
        function: &Function,
        around: &str,
    ) -> Result<FuncId, CompileError> {
        let types: Vec<Type> = function.params.iter().map(|param| param.ty).collect();
        let id = FuncId(self.functions.len());
        let overloads = scope.functions.entry(function.name.text.clone()).or_default();
        if let Some(first) = overloads.insert(types.clone(), id) {
            let message = format!("duplicate function {}", signature(&function.name.text, &types));
            return Err(CompileError::new(&function.name.span, message)
                .with_note(&self.spans[first.0], "first defined here"));
        }
        self.functions.push(Func {
            name: format!("{around}{}", signature(&function.name.text, &types)),
            line: self.line(&function.name.span),
            result: function.result,
            params: Vec::new(),
            locals: Vec::new(),
            needs: BTreeSet::new(),
            body: Vec::new(),
        });
        self.calls.push(BTreeSet::new());
        self.spans.push(function.name.span.clone());
        Ok(id)
    }

    fn function(&mut self, id: FuncId, function: &Function) -> Result<(), CompileError> {
        let mut scope = Scope::default();
        let mut places: HashMap<&str, &Span> = HashMap::new();
        for (i, variable) in function.params.iter().chain(&function.variables).enumerate() {
            let Name { text, span } = &variable.name;
            if let Some(first) = places.insert(text, span) {
                return Err(CompileError::new(span, format!("duplicate variable `{text}`"))
                    .with_note(first, "first declared here"));
            }
            let var = VarId(self.variables.len());
            self.variables.push(Var { name: text.clone(), ty: variable.ty, owner: id });
            scope.variables.insert(text.clone(), var);
            let func = &mut self.functions[id.0];
            let is_param = i < function.params.len();
            if is_param { func.params.push(var) } else { func.locals.push(var) }
        }
        let (name, _) = self.functions[id.0].name.split_once('(').expect("names have types");
        // The types of overloaded functions around would make names long.
        let around = format!("{name}.");
        let mut ids = Vec::with_capacity(function.functions.len());
        for nested in &function.functions {
            ids.push(self.declare(&mut scope, nested, &around)?);
        }
        self.scopes.push(scope);
        for (&nested, function) in ids.iter().zip(&function.functions) {
            self.function(nested, function)?;
        }
        self.current = id;
        let body = self.statements(&function.body)?;
        if function.result != Type::Void && !always_returns(&body) {
            let message =
                format!("missing return in a function of type {}", function.result.name());
            return Err(CompileError::new(&function.end, message)
                .with_note(&function.name.span, "of this function"));
        }
        self.functions[id.0].body = body;
        self.scopes.pop();
        Ok(())
    }

    fn statements(&mut self, statements: &[Statement]) -> Result<Vec<Stmt>, CompileError> {
        statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, statement: &Statement) -> Result<Stmt, CompileError> {
        let (span, kind) = match statement {
            Statement::Call(call) => {
                (&call.name.span, StmtKind::Drop(self.call(call, &call.name.span)?))
            }
            Statement::Assign(name, value) => {
                let checked = self.value(value)?;
                let var = self.variable(&name.text, &name.span)?;
                self.expect(checked.ty, self.variables[var.0].ty, &value.span, "assigned value")?;
                (&name.span, StmtKind::Assign(var, checked))
            }
            Statement::Return(value, span) => (span, StmtKind::Return(self.returned(value, span)?)),
            Statement::Print { value, newline } => {
                let checked = self.expr(value)?;
                if checked.ty == Type::Void {
                    return Err(CompileError::new(
                        &value.span,
                        "cannot print a call without a value",
                    ));
                }
                (&value.span, StmtKind::Print(checked, *newline))
            }
            Statement::If { condition, then, otherwise } => {
                let checked = self.condition(condition)?;
                let then = self.statements(then)?;
                (&condition.span, StmtKind::If(checked, then, self.statements(otherwise)?))
            }
            Statement::While(condition, body) => {
                let checked = self.condition(condition)?;
                (&condition.span, StmtKind::While(checked, self.statements(body)?))
            }
        };
        Ok(Stmt { kind, line: self.line(span) })
    }

    fn returned(
        &mut self,
        value: &Option<syntax::Expr>,
        span: &Span,
    ) -> Result<Option<Expr>, CompileError> {
        let result = self.functions[self.current.0].result;
        match value {
            None if result == Type::Void => Ok(None),
            None => {
                let message = format!("expected a value of type {} to return", result.name());
                Err(CompileError::new(span, message))
            }
            Some(value) => {
                let checked = self.expr(value)?;
                self.expect(checked.ty, result, &value.span, "returned value")?;
                Ok(Some(checked))
            }
        }
    }

    fn condition(&mut self, condition: &syntax::Expr) -> Result<Expr, CompileError> {
        let checked = self.expr(condition)?;
        self.expect(checked.ty, Type::Bool, &condition.span, "condition")?;
        Ok(checked)
    }

    /// An expression with a value that is no text.
    fn value(&mut self, expr: &syntax::Expr) -> Result<Expr, CompileError> {
        let checked = self.expr(expr)?;
        match checked.ty {
            Type::Int | Type::Bool => Ok(checked),
            Type::Text => {
                Err(CompileError::new(&expr.span, "only `print` and `println` take texts"))
            }
            Type::Void => {
                Err(CompileError::new(&expr.span, "expected a value, found a call without one"))
            }
        }
    }

    fn expect(
        &self,
        found: Type,
        expected: Type,
        span: &Span,
        what: &str,
    ) -> Result<(), CompileError> {
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (expected.name(), found.name());
        Err(CompileError::new(
            span,
            format!("wrong type of the {what}: expected {expected}, found {found}"),
        ))
    }

    fn expr(&mut self, expr: &syntax::Expr) -> Result<Expr, CompileError> {
        let (ty, kind) = match &expr.kind {
            syntax::ExprKind::Int(number) => (Type::Int, ExprKind::Int(*number)),
            syntax::ExprKind::Bool(value) => (Type::Bool, ExprKind::Bool(*value)),
            syntax::ExprKind::Text(text) => (Type::Text, ExprKind::Text(text.clone())),
            syntax::ExprKind::Variable(name) => {
                let var = self.variable(name, &expr.span)?;
                (self.variables[var.0].ty, ExprKind::Variable(var))
            }
            syntax::ExprKind::Call(call) => return self.call(call, &expr.span),
            syntax::ExprKind::Not(operand) => {
                let checked = self.expr(operand)?;
                self.expect(checked.ty, Type::Bool, &operand.span, "operand of `!`")?;
                (Type::Bool, ExprKind::Not(Box::new(checked)))
            }
            syntax::ExprKind::Negate(operand) => {
                let checked = self.expr(operand)?;
                self.expect(checked.ty, Type::Int, &operand.span, "operand of `-`")?;
                (Type::Int, ExprKind::Negate(Box::new(checked)))
            }
            syntax::ExprKind::Chain(first, rest) => self.chain(first, rest)?,
        };
        Ok(Expr { kind, ty, line: self.line(&expr.span) })
    }

    fn chain(
        &mut self,
        first: &syntax::Expr,
        rest: &[(Operator, syntax::Expr)],
    ) -> Result<(Type, ExprKind), CompileError> {
        let first_checked = self.value(first)?;
        let mut ty = first_checked.ty;
        let mut left = first.span.clone();
        let mut checked = Vec::with_capacity(rest.len());
        for (operator, operand) in rest {
            let what = format!("operand of `{}`", operator.symbol());
            let right = self.value(operand)?;
            let expected = operator.operands().unwrap_or(ty);
            self.expect(ty, expected, &left, &what)?;
            self.expect(right.ty, expected, &operand.span, &what)?;
            ty = operator.result();
            left.end = operand.span.end;
            checked.push((*operator, right));
        }
        Ok((ty, ExprKind::Chain(Box::new(first_checked), checked)))
    }

    fn call(&mut self, call: &Call, span: &Span) -> Result<Expr, CompileError> {
        let args: Vec<Expr> =
            call.args.iter().map(|arg| self.value(arg)).collect::<Result<_, _>>()?;
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        let name = &call.name.text;
        let overloads = || self.scopes.iter().rev().filter_map(|scope| scope.functions.get(name));
        let Some(&id) = overloads().find_map(|overloads| overloads.get(&types)) else {
            let mut known: Vec<String> = overloads()
                .flat_map(|overloads| overloads.keys())
                .map(|types| signature(name, types))
                .collect();
            known.sort_unstable();
            known.dedup();
            return Err(if known.is_empty() {
                CompileError::new(&call.name.span, format!("unknown function `{name}`"))
            } else {
                let message =
                    format!("no function {} among the overloads", signature(name, &types));
                CompileError::new(&call.name.span, message)
                    .with_help(format!("known are {}", known.join(", ")))
            });
        };
        self.calls[self.current.0].insert(id);
        self.passing.push((id, span.clone()));
        let ty = self.functions[id.0].result;
        Ok(Expr { kind: ExprKind::Call(id, args), ty, line: self.line(span) })
    }

    fn variable(&mut self, name: &str, span: &Span) -> Result<VarId, CompileError> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.variables.get(name));
        let Some(&var) = found else {
            return Err(CompileError::new(span, format!("unknown variable `{name}`")));
        };
        if self.variables[var.0].owner != self.current {
            self.functions[self.current.0].needs.insert(var);
        }
        Ok(var)
    }
}

/// The name of a function with the types of its parameters.
fn signature(name: &str, types: &[Type]) -> String {
    let types: Vec<&str> = types.iter().map(|ty| ty.name()).collect();
    format!("{name}({})", types.join(", "))
}

/// Whether control never reaches the end of these statements. A loop on `true` never ends.
fn always_returns(statements: &[Stmt]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StmtKind::Return(_) => true,
        StmtKind::If(_, then, otherwise) => always_returns(then) && always_returns(otherwise),
        StmtKind::While(condition, _) => matches!(condition.kind, ExprKind::Bool(true)),
        _ => false,
    })
}
