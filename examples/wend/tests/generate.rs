//! Random programs without errors: nested and overloaded functions that use variables of all functions around them,
//! hidden names, calls before definitions, and loops.
//!
//! Every program ends: loops count up to a constant with a variable that nothing else assigns, and each call takes 1
//! from a variable of `main`, below 0 of which functions return at once. So some functions of any program use a
//! variable that lies in memory.

use std::fmt::Write as _;

use slotvm_filetests::choices::Choices;

use crate::syntax::Type;

/// The most functions inside a function, and the most levels of them.
const FUNCTIONS_MAX: usize = 3;
const LEVELS_MAX: usize = 3;
const NAMES: [&str; 5] = ["a", "b", "c", "x", "y"];
const FUNCTION_NAMES: [&str; 3] = ["f", "g", "h"];

/// A random program.
pub(crate) fn generate(bytes: &[u8]) -> String {
    let mut generator =
        Generator { choices: Choices::new(bytes), out: String::new(), scopes: Vec::new() };
    generator.out += "main() {\n";
    generator.body(Type::Void, Vec::new(), 0);
    generator.out += "}\n";
    generator.out
}

#[derive(Clone)]
struct Signature {
    name: &'static str,
    params: Vec<Type>,
    result: Type,
}

/// The names of a body.
#[derive(Default)]
struct Scope {
    variables: Vec<(String, Type)>,
    functions: Vec<Signature>,
    /// Counters of loops, of which so many are in use. Nothing else assigns them.
    n_counters: usize,
    n_used: usize,
}

struct Generator<'c> {
    choices: Choices<'c>,
    out: String,
    scopes: Vec<Scope>,
}

impl Generator<'_> {
    fn ty(&mut self) -> Type {
        self.choices.pick(&[Type::Int, Type::Bool])
    }

    fn indent(&self) -> String {
        "  ".repeat(self.scopes.len())
    }

    /// The inside of a function with these parameters, which are declared.
    fn body(&mut self, result: Type, params: Vec<(String, Type)>, level: usize) {
        let mut scope = Scope { variables: params, n_counters: 2, ..Scope::default() };
        self.scopes.push(Scope::default());
        let indent = self.indent();
        if level == 0 {
            writeln!(self.out, "{indent}int calls_left;").expect("it is memory");
        }
        self.out += &format!("{indent}int i0; int i1;\n");
        for _ in 0..self.choices.below(4) {
            let (name, ty) = (self.choices.pick(&NAMES), self.ty());
            if scope.variables.iter().all(|(other, _)| other != name) {
                self.out += &format!("{indent}{} {name};\n", ty.name());
                scope.variables.push((name.to_owned(), ty));
            }
        }
        let n_functions =
            if level < LEVELS_MAX { self.choices.below(FUNCTIONS_MAX + 1) } else { 0 };
        for _ in 0..n_functions {
            let name = self.choices.pick(&FUNCTION_NAMES);
            let params: Vec<Type> = (0..self.choices.below(4)).map(|_| self.ty()).collect();
            let result = self.choices.pick(&[Type::Int, Type::Bool, Type::Void]);
            let is_new = |other: &Signature| other.name != name || other.params != params;
            if scope.functions.iter().all(is_new) {
                scope.functions.push(Signature { name, params, result });
            }
        }
        let functions = scope.functions.clone();
        *self.scopes.last_mut().expect("it was pushed") = scope;
        for function in functions {
            self.function(&function, level + 1);
        }
        if level == 0 {
            self.out += &format!("{indent}calls_left = 60;\n");
        } else {
            let value = self.literal(result);
            self.out += &format!("{indent}calls_left = calls_left - 1;\n");
            self.out += &format!("{indent}if calls_left < 0 {{ return{value}; }}\n");
        }
        let n_statements = 1 + self.choices.below(6);
        self.statements(n_statements, result, 0);
        if result != Type::Void {
            let value = self.expr(result, 3);
            self.out += &format!("{indent}return {value};\n");
        }
        self.scopes.pop();
    }

    fn function(&mut self, Signature { name, params, result }: &Signature, level: usize) {
        let indent = self.indent();
        let names = NAMES.iter().zip(params).map(|(name, &ty)| ((*name).to_owned(), ty));
        let variables: Vec<(String, Type)> = names.collect();
        let list: Vec<String> =
            variables.iter().map(|(name, ty)| format!("{} {name}", ty.name())).collect();
        let ty = if *result == Type::Void { String::new() } else { format!("{} ", result.name()) };
        self.out += &format!("{indent}{ty}{name}({}) {{\n", list.join(", "));
        self.body(*result, variables, level);
        self.out += &format!("{indent}}}\n");
    }

    /// A literal after a space, or nothing.
    fn literal(&mut self, ty: Type) -> String {
        match ty {
            Type::Int => format!(" {}", self.choices.below(100)),
            Type::Bool => " true".to_owned(),
            _ => String::new(),
        }
    }

    fn statements(&mut self, n: usize, result: Type, nesting: usize) {
        for _ in 0..n {
            self.statement(result, nesting);
        }
    }

    fn statement(&mut self, result: Type, nesting: usize) {
        let indent = self.indent() + &"  ".repeat(nesting);
        match self.choices.below(if nesting < 2 { 10 } else { 7 }) {
            0 => {
                let ty = self.ty();
                let value = self.expr(ty, 2);
                self.out += &format!("{indent}println {value};\n");
            }
            1..=3 => {
                let Some((name, ty)) = self.variable(None) else { return };
                let value = self.expr(ty, 3);
                self.out += &format!("{indent}{name} = {value};\n");
            }
            4 | 5 => {
                let Some(call) = self.call(None, 2) else { return };
                self.out += &format!("{indent}{call};\n");
            }
            6 => {
                let word = self.choices.pick(&["-", "*", "\\\"", "\\n"]);
                self.out += &format!("{indent}print \"{word}\";\n");
            }
            7 | 8 => {
                let condition = self.expr(Type::Bool, 2);
                self.out += &format!("{indent}if {condition} {{\n");
                let n = self.choices.below(3);
                self.statements(n, result, nesting + 1);
                if self.choices.percent(15) {
                    let value =
                        if result == Type::Void { String::new() } else { self.expr(result, 1) };
                    self.out += &format!("{indent}  return {value};\n");
                }
                if self.choices.percent(50) {
                    self.out += &format!("{indent}}} else {{\n");
                    let n = self.choices.below(3);
                    self.statements(n, result, nesting + 1);
                }
                self.out += &format!("{indent}}}\n");
            }
            _ => {
                let scope = self.scopes.last_mut().expect("there is a body");
                if scope.n_used == scope.n_counters {
                    return;
                }
                let counter = format!("i{}", scope.n_used);
                scope.n_used += 1;
                let n = 1 + self.choices.below(4);
                self.out += &format!("{indent}{counter} = 0;\n{indent}while {counter} < {n} {{\n");
                let n = self.choices.below(4);
                self.statements(n, result, nesting + 1);
                self.out += &format!("{indent}  {counter} = {counter} + 1;\n{indent}}}\n");
                self.scopes.last_mut().expect("there is a body").n_used -= 1;
            }
        }
    }

    /// A variable of a type, or of any, that is not hidden.
    fn variable(&mut self, ty: Option<Type>) -> Option<(String, Type)> {
        let mut seen: Vec<&(String, Type)> = Vec::new();
        for variable in self.scopes.iter().rev().flat_map(|scope| &scope.variables) {
            if seen.iter().all(|(name, _)| *name != variable.0) {
                seen.push(variable);
            }
        }
        seen.retain(|(_, other)| ty.is_none_or(|ty| ty == *other));
        if seen.is_empty() { None } else { Some(seen[self.choices.below(seen.len())].clone()) }
    }

    /// A call of a function with a result of a type, or with any or none, that is not hidden.
    fn call(&mut self, ty: Option<Type>, depth: usize) -> Option<String> {
        let mut seen: Vec<&Signature> = Vec::new();
        for function in self.scopes.iter().rev().flat_map(|scope| &scope.functions) {
            if seen
                .iter()
                .all(|other| other.name != function.name || other.params != function.params)
            {
                seen.push(function);
            }
        }
        seen.retain(|function| ty.is_none_or(|ty| ty == function.result));
        if seen.is_empty() {
            return None;
        }
        let Signature { name, params, .. } = seen[self.choices.below(seen.len())].clone();
        let args: Vec<String> =
            params.iter().map(|&ty| self.expr(ty, depth.saturating_sub(1))).collect();
        Some(format!("{name}({})", args.join(", ")))
    }

    /// An expression in parentheses where it has operators.
    fn expr(&mut self, ty: Type, depth: usize) -> String {
        let leaf = depth == 0 || self.choices.percent(25);
        let found = match (leaf, self.choices.below(4)) {
            (true, _) | (false, 0) => self.variable(Some(ty)).map(|(name, _)| name),
            (false, 1) => self.call(Some(ty), depth),
            _ => Some(self.operation(ty, depth - 1)),
        };
        found.unwrap_or_else(|| match ty {
            Type::Int => {
                let numbers = ["0", "1", "2", "3", "7", "255", "65536", "2147483647", "2147483648"];
                self.choices.pick(&numbers).to_owned()
            }
            _ => self.choices.pick(&["true", "false"]).to_owned(),
        })
    }

    fn operation(&mut self, ty: Type, depth: usize) -> String {
        if ty == Type::Int {
            let a = self.expr(Type::Int, depth);
            return match self.choices.below(7) {
                0..=3 => {
                    let (operator, b) =
                        (self.choices.pick(&["+", "-", "*"]), self.expr(Type::Int, depth));
                    format!("({a} {operator} {b})")
                }
                4 => format!("(-{a})"),
                _ => {
                    let operator = self.choices.pick(&["/", "%"]);
                    let any = self.choices.percent(10);
                    let b = if any {
                        self.expr(Type::Int, depth)
                    } else {
                        self.choices.pick(&["2", "3", "-7"]).into()
                    };
                    format!("({a} {operator} {b})")
                }
            };
        }
        match self.choices.below(4) {
            0 => {
                let (a, b) = (self.expr(Type::Int, depth), self.expr(Type::Int, depth));
                let operator = self.choices.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({a} {operator} {b})")
            }
            1 => format!("(!{})", self.expr(Type::Bool, depth)),
            _ => {
                let (a, b) = (self.expr(Type::Bool, depth), self.expr(Type::Bool, depth));
                let operator = self.choices.pick(&["&&", "||", "==", "!="]);
                format!("({a} {operator} {b})")
            }
        }
    }
}
