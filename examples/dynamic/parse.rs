//! Parser from text to [`Program`]: parentheses first, then names.
//!
//! ```text
//! (define (NAME PARAMETER...) EXPRESSION...)     at the top level, in any order
//! (let NAME EXPRESSION)  (set NAME EXPRESSION)   a local of the function
//! (if CONDITION THEN ELSE)  (while CONDITION EXPRESSION...)  (do EXPRESSION...)
//! (+ A B)  (- A B)  (* A B)  (/ A B)  (% A B)  (< A B)  (= A B)
//! (list ITEM...)  (get LIST I)  (put LIST I VALUE)  (push LIST VALUE)  (len LIST)  (print VALUE)
//! 12  -3  1.5  "text"  true  false  nil          and `;` comments
//! ```

use std::collections::{HashMap, HashSet};

use crate::syntax::{Binary, Builtin, Expr, Function, Program};
use crate::value::{Heap, Object, Value};

/// Forms with the syntax of calls.
const BUILTIN_FORMS: [&str; 7] = ["define", "let", "set", "if", "while", "do", "list"];
/// Parentheses may be nested so deep.
const NESTING_MAX: usize = 200;

/// Error in a program, with its place.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub(crate) struct SyntaxError {
    line: u32,
    message: String,
}

fn error<T>(line: u32, message: impl Into<String>) -> Result<T, SyntaxError> {
    Err(SyntaxError { line, message: message.into() })
}

/// Text by its parentheses.
#[derive(Debug)]
struct Node<'t> {
    line: u32,
    kind: Kind<'t>,
}

#[derive(Debug)]
enum Kind<'t> {
    Word(&'t str),
    Text(&'t str),
    List(Vec<Node<'t>>),
}

fn nodes(source: &str) -> Result<Vec<Node<'_>>, SyntaxError> {
    // The lists that are open, the top level first.
    let mut open = vec![(0, Vec::new())];
    for (line, text) in (1..).zip(source.lines()) {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let (kind, length) = match first {
                ';' => break,
                '(' if open.len() > NESTING_MAX => {
                    return error(line, format!("more than {NESTING_MAX} parentheses are open"));
                }
                '(' => {
                    open.push((line, Vec::new()));
                    rest = rest[1..].trim_start();
                    continue;
                }
                ')' if open.len() == 1 => return error(line, "no parenthesis is open"),
                ')' => (Kind::List(open.pop().expect("a list is open").1), 1),
                '"' => match rest[1..].find('"') {
                    Some(end) => (Kind::Text(&rest[1..=end]), end + 2),
                    None => return error(line, "the text has no end"),
                },
                _ => {
                    let is_end = |c: char| c.is_whitespace() || "();\"".contains(c);
                    let end = rest.find(is_end).unwrap_or(rest.len());
                    (Kind::Word(&rest[..end]), end)
                }
            };
            rest = rest[length..].trim_start();
            open.last_mut().expect("the top level is open").1.push(Node { line, kind });
        }
    }
    match open.len() {
        1 => Ok(open.remove(0).1),
        _ => error(open[open.len() - 1].0, "the parenthesis is never closed"),
    }
}

/// Parses a program. Its constants that are objects are added to the heap.
pub(crate) fn parse(source: &str, heap: &mut Heap) -> Result<Program, SyntaxError> {
    let nodes = nodes(source)?;
    let (definitions, rest): (Vec<Node<'_>>, Vec<Node<'_>>) =
        nodes.into_iter().partition(|node| head(node) == Some("define"));

    let mut names = HashMap::new();
    let mut headers = Vec::new();
    for node in &definitions {
        let Kind::List(parts) = &node.kind else { unreachable!("definitions are lists") };
        let [_, Node { kind: Kind::List(header), .. }, body @ ..] = &parts[..] else {
            return error(node.line, "a definition looks like (define (name parameter...) ...)");
        };
        let words: Option<Vec<&str>> = header.iter().map(word).collect();
        let Some([name, params @ ..]) = words.as_deref() else {
            return error(node.line, "a function has a name, and names of parameters");
        };
        let mut different = HashSet::new();
        if let Some(param) = params.iter().find(|param| !different.insert(**param)) {
            return error(node.line, format!("there is a parameter `{param}` already"));
        }
        let is_builtin = BUILTIN_FORMS.contains(name)
            || Binary::ALL.iter().any(|(operator, _)| operator == name)
            || Builtin::ALL.iter().any(|(builtin, ..)| builtin == name);
        if is_builtin || names.insert(*name, (headers.len() + 1, params.len())).is_some() {
            return error(node.line, format!("there is a function `{name}` already"));
        }
        headers.push((name.to_string(), params.to_vec(), body));
    }

    let mut resolver = Resolver { functions: &names, heap, locals: HashMap::new() };
    let mut functions = vec![resolver.function("main".to_owned(), &[], &rest)?];
    for (name, params, body) in headers {
        functions.push(resolver.function(name, &params, body)?);
    }
    Ok(Program { functions })
}

fn word<'t>(node: &Node<'t>) -> Option<&'t str> {
    match node.kind {
        Kind::Word(word) => Some(word),
        _ => None,
    }
}

/// The first word of a list.
fn head<'t>(node: &Node<'t>) -> Option<&'t str> {
    match &node.kind {
        Kind::List(parts) => parts.first().and_then(word),
        _ => None,
    }
}

/// Finds out what names mean.
struct Resolver<'r> {
    /// Number and number of parameters of each function.
    functions: &'r HashMap<&'r str, (usize, usize)>,
    heap: &'r mut Heap,
    /// The locals of the current function.
    locals: HashMap<&'r str, usize>,
}

impl<'r> Resolver<'r> {
    fn function(
        &mut self,
        name: String,
        params: &[&'r str],
        body: &[Node<'r>],
    ) -> Result<Function, SyntaxError> {
        self.locals = params.iter().copied().zip(0..).collect();
        let body = Expr::Do(self.exprs(body)?);
        Ok(Function { name, n_params: params.len(), n_locals: self.locals.len(), body })
    }

    fn exprs(&mut self, nodes: &[Node<'r>]) -> Result<Vec<Expr>, SyntaxError> {
        nodes.iter().map(|node| self.expr(node)).collect()
    }

    fn expr(&mut self, node: &Node<'r>) -> Result<Expr, SyntaxError> {
        let line = node.line;
        match &node.kind {
            Kind::Text(text) => self.object(line, Object::Text((*text).to_owned())),
            Kind::Word(word) => self.word(line, word),
            Kind::List(parts) => match &parts[..] {
                [Node { kind: Kind::Word(head), .. }, args @ ..] => self.form(line, head, args),
                _ => error(line, "a list starts with what is to be done"),
            },
        }
    }

    fn object(&mut self, line: u32, object: Object) -> Result<Expr, SyntaxError> {
        match self.heap.add_object(object) {
            Ok(value) => Ok(Expr::Constant(value)),
            Err(wrong) => error(line, wrong.to_string()),
        }
    }

    fn word(&mut self, line: u32, word: &str) -> Result<Expr, SyntaxError> {
        match word {
            "nil" => return Ok(Expr::Constant(Value::NIL)),
            "true" => return Ok(Expr::Constant(Value::TRUE)),
            "false" => return Ok(Expr::Constant(Value::FALSE)),
            _ => {}
        }
        if let Some(value) = word.parse().ok().and_then(Value::int) {
            return Ok(Expr::Constant(value));
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && let Ok(number) = word.parse()
        {
            return self.object(line, Object::Float(number));
        }
        match self.locals.get(word) {
            Some(&local) => Ok(Expr::Local(local)),
            None => error(line, format!("unknown variable `{word}`")),
        }
    }

    fn form(&mut self, line: u32, head: &str, args: &[Node<'r>]) -> Result<Expr, SyntaxError> {
        match (head, args) {
            ("let" | "set", [name, value]) => {
                let Some(name) = word(name) else {
                    return error(line, format!("`{head}` is followed by a name"));
                };
                let value = Box::new(self.expr(value)?);
                let next = self.locals.len();
                let local = match (head, self.locals.get(name)) {
                    (_, Some(&local)) => local,
                    ("let", None) => *self.locals.entry(name).or_insert(next),
                    _ => return error(line, format!("unknown variable `{name}`")),
                };
                Ok(Expr::Set(local, value))
            }
            ("if", [condition, then, otherwise]) => Ok(Expr::If(Box::new([
                self.expr(condition)?,
                self.expr(then)?,
                self.expr(otherwise)?,
            ]))),
            ("while", [condition, body @ ..]) => {
                let condition = Box::new(self.expr(condition)?);
                Ok(Expr::While(condition, Box::new(Expr::Do(self.exprs(body)?))))
            }
            ("do", exprs) => Ok(Expr::Do(self.exprs(exprs)?)),
            ("list", items) => Ok(Expr::List { line, items: self.exprs(items)? }),
            _ => self.call(line, head, args),
        }
    }

    fn call(&mut self, line: u32, head: &str, args: &[Node<'r>]) -> Result<Expr, SyntaxError> {
        let args = self.exprs(args)?;
        let binary = Binary::ALL.iter().find(|(name, _)| *name == head);
        let builtin = Builtin::ALL.iter().find(|(name, ..)| *name == head);
        let function = self.functions.get(head);
        let n_params = match (binary, builtin, function) {
            (Some(_), ..) => 2,
            (_, Some(&(_, _, n_params)), _) | (.., Some(&(_, n_params))) => n_params,
            _ => return error(line, format!("unknown function `{head}`")),
        };
        if args.len() != n_params {
            let n_args = args.len();
            return error(line, format!("`{head}` takes {n_params} operands, not {n_args}"));
        }
        Ok(match (binary, builtin, function) {
            (Some(&(_, operator)), ..) => {
                let operands = args.try_into().expect("there are two");
                Expr::Binary { line, operator, operands: Box::new(operands) }
            }
            (_, Some(&(_, builtin, _)), _) => Expr::Builtin { line, builtin, args },
            (.., Some(&(function, _))) => Expr::Call { line, function, args },
            _ => unreachable!("one of them was found"),
        })
    }
}
