//! Parser, by the grammar in `wend.pest`.
//!
//! The parser of pest is recursive, so a scan refuses programs with deep nesting first ([`NESTING_MAX`]). It also
//! finds texts without an end, of which a grammar can only say that the end of the program comes too soon.

use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;

use crate::error::CompileError;
use crate::syntax::{
    Call, Expr, ExprKind, Function, Name, Operator, Span, Statement, Type, Variable,
};

/// The most braces and parentheses that may be open at once.
pub const NESTING_MAX: usize = 100;

use grammar::{Grammar, Rule};

mod grammar {
    //! The rules of the grammar.

    #[derive(pest_derive::Parser)]
    #[grammar = "wend/wend.pest"]
    pub(super) struct Grammar;
}

/// Parses a program, which is one function.
///
/// # Errors
/// Fails at the first place that does not follow the grammar, and at numbers out of range.
pub fn parse(source: &str) -> Result<Function, CompileError> {
    scan(source)?;
    let mut pairs = Grammar::parse(Rule::program, source).map_err(|error| syntax_error(&error))?;
    function(pairs.next().expect("a program has a function"))
}

/// Refuses deep nesting and texts without an end.
fn scan(source: &str) -> Result<(), CompileError> {
    let mut open = 0usize;
    let mut chars = source.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '/' if chars.peek().is_some_and(|&(_, next)| next == '/') => {
                chars.by_ref().find(|&(_, c)| c == '\n');
            }
            '"' => {
                let mut is_closed = false;
                while let Some((_, c)) = chars.next() {
                    if c == '\\' {
                        chars.next();
                    } else if c == '"' {
                        is_closed = true;
                        break;
                    }
                }
                if !is_closed {
                    return Err(CompileError::new(&(at..at + 1), "unterminated text").with_help(
                        "a text ends with a quotation mark; `\\\"` is one inside of it",
                    ));
                }
            }
            '(' | '{' if open == NESTING_MAX => {
                let message = format!("more than {NESTING_MAX} open braces and parentheses");
                return Err(CompileError::new(&(at..at + 1), message));
            }
            '(' | '{' => open += 1,
            ')' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn syntax_error(error: &pest::error::Error<Rule>) -> CompileError {
    let span = match error.location {
        InputLocation::Pos(at) => at..at,
        InputLocation::Span((start, end)) => start..end,
    };
    let message = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => {
            let mut expected: Vec<&str> = positives.iter().map(|&rule| described(rule)).collect();
            expected.sort_unstable();
            expected.dedup();
            match expected.split_last() {
                Some((last, [])) => format!("expected {last}"),
                Some((last, others)) => format!("expected {} or {last}", others.join(", ")),
                None => "unexpected text".to_owned(),
            }
        }
        ErrorVariant::CustomError { message } => message.clone(),
    };
    CompileError::new(&span, message)
}

/// Returns the description of a rule for messages.
fn described(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI => "the end of the program",
        Rule::ty | Rule::result | Rule::variable => "a type",
        Rule::name => "a name",
        Rule::params => "parameters",
        Rule::args => "arguments",
        Rule::end | Rule::close => "`}`",
        Rule::open => "`{`",
        Rule::left => "`(`",
        Rule::right => "`)`",
        Rule::semicolon => "`;`",
        Rule::or => "`||`",
        Rule::and => "`&&`",
        Rule::compare => "a comparison",
        Rule::add | Rule::multiply => "an arithmetic operator",
        Rule::function | Rule::functions | Rule::variables => "a declaration",
        Rule::statements
        | Rule::returning
        | Rule::printing
        | Rule::conditional
        | Rule::loop_
        | Rule::assignment
        | Rule::calling
        | Rule::return_
        | Rule::print
        | Rule::if_
        | Rule::while_ => "a statement",
        Rule::else_ => "`else`",
        Rule::integer => "a number",
        _ => "an expression",
    }
}

fn span(pair: &Pair<'_, Rule>) -> Span {
    let span = pair.as_span();
    span.start()..span.end()
}

/// The parts of a rule without its punctuation.
fn parts(pair: Pair<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    use Rule::{close, left, open, right, semicolon};
    pair.into_inner()
        .filter(|pair| !matches!(pair.as_rule(), left | right | open | close | semicolon))
}

fn function(pair: Pair<'_, Rule>) -> Result<Function, CompileError> {
    let mut parts = parts(pair);
    let mut next = || parts.next().expect("a function has seven parts");
    let result = next().into_inner().next().map_or(Type::Void, |pair| ty(&pair));
    let name = name(&next());
    let params = variables(next());
    let variables = variables(next());
    let functions = next().into_inner().map(function).collect::<Result<_, _>>()?;
    let body = statements(next())?;
    Ok(Function { result, name, params, variables, functions, body, end: span(&next()) })
}

fn ty(pair: &Pair<'_, Rule>) -> Type {
    if pair.as_str() == "int" { Type::Int } else { Type::Bool }
}

fn name(pair: &Pair<'_, Rule>) -> Name {
    Name { text: pair.as_str().to_owned(), span: span(pair) }
}

fn variables(pair: Pair<'_, Rule>) -> Vec<Variable> {
    let variable = |pair: Pair<'_, Rule>| {
        let mut parts = parts(pair);
        let ty = ty(&parts.next().expect("it has a type"));
        Variable { ty, name: name(&parts.next().expect("it has a name")) }
    };
    parts(pair).map(variable).collect()
}

fn statements(pair: Pair<'_, Rule>) -> Result<Vec<Statement>, CompileError> {
    pair.into_inner().map(statement).collect()
}

fn statement(pair: Pair<'_, Rule>) -> Result<Statement, CompileError> {
    let rule = pair.as_rule();
    let mut parts = parts(pair);
    let first = parts.next().expect("a statement has parts");
    Ok(match rule {
        Rule::returning => {
            let value = parts.next().map(expr).transpose()?;
            Statement::Return(value, span(&first))
        }
        Rule::printing => Statement::Print {
            value: expr(parts.next().expect("it has a value"))?,
            newline: first.as_str() == "println",
        },
        Rule::conditional => {
            let condition = expr(parts.next().expect("it has a condition"))?;
            let then = statements(parts.next().expect("it has statements"))?;
            // The keyword `else`, then the statements.
            let otherwise = parts.nth(1).map(statements).transpose()?.unwrap_or_default();
            Statement::If { condition, then, otherwise }
        }
        Rule::loop_ => {
            let condition = expr(parts.next().expect("it has a condition"))?;
            Statement::While(condition, statements(parts.next().expect("it has statements"))?)
        }
        Rule::assignment => {
            Statement::Assign(name(&first), expr(parts.next().expect("it has a value"))?)
        }
        _ => Statement::Call(call(first)?),
    })
}

fn call(pair: Pair<'_, Rule>) -> Result<Call, CompileError> {
    let mut parts = parts(pair);
    let name = name(&parts.next().expect("a call has a name"));
    let args = self::parts(parts.next().expect("a call has arguments"));
    Ok(Call { name, args: args.map(expr).collect::<Result<_, _>>()? })
}

/// Parses an expression of any strength.
fn expr(pair: Pair<'_, Rule>) -> Result<Expr, CompileError> {
    let span = span(&pair);
    let kind = match pair.as_rule() {
        Rule::boolean => ExprKind::Bool(pair.as_str() == "true"),
        Rule::integer => ExprKind::Int(number(&pair, &span)?),
        Rule::text => ExprKind::Text(text(pair.as_str())),
        Rule::name => ExprKind::Variable(pair.as_str().to_owned()),
        Rule::call => ExprKind::Call(call(pair)?),
        Rule::negation | Rule::factor => {
            let mut parts = parts(pair);
            let first = parts.next().expect("it has an operand");
            match (first.as_str(), parts.next()) {
                (_, None) => return expr(first),
                ("!", Some(operand)) => ExprKind::Not(Box::new(expr(operand)?)),
                ("-", Some(operand)) => ExprKind::Negate(Box::new(expr(operand)?)),
                (_, Some(operand)) => expr(operand)?.kind,
            }
        }
        _ => {
            let mut parts = parts(pair);
            let first = expr(parts.next().expect("it has an operand"))?;
            let mut rest = Vec::new();
            while let (Some(symbol), Some(operand)) = (parts.next(), parts.next()) {
                let is_it = |&&(_, name): &&(Operator, &str)| name == symbol.as_str();
                let (operator, _) = Operator::ALL.iter().find(is_it).expect("an operator");
                rest.push((*operator, expr(operand)?));
            }
            if rest.is_empty() {
                return Ok(first);
            }
            ExprKind::Chain(Box::new(first), rest)
        }
    };
    Ok(Expr { kind, span })
}

/// The number of a literal: up to 2147483648, which wraps to the least number, so that its negative is itself.
fn number(pair: &Pair<'_, Rule>, span: &Span) -> Result<i32, CompileError> {
    match pair.as_str().parse::<u32>() {
        Ok(number) if number <= 1 << 31 => Ok(number as i32),
        _ => Err(CompileError::new(span, format!("number {} out of range", pair.as_str()))
            .with_help("the greatest number is 2147483647, and 2147483648 wraps to -2147483648")),
    }
}

/// Decodes the escapes of a text, which are those of C. As in the original, a backslash stands for itself before any
/// other character.
fn text(quoted: &str) -> Vec<u8> {
    let mut rest = &quoted[1..quoted.len() - 1];
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        decoded.extend(rest[..at].bytes());
        let (byte, length) = escape(&rest[at + 1..]).unwrap_or((b'\\', 0));
        decoded.push(byte);
        rest = &rest[at + 1 + length..];
    }
    decoded.extend(rest.bytes());
    decoded
}

/// The byte of an escape without its backslash, and the length of that.
fn escape(text: &str) -> Option<(u8, usize)> {
    let digits = |from: usize, radix, max| {
        let is_digit = |c: &char| c.is_digit(radix);
        let n = text[from..].chars().take(max).take_while(is_digit).count();
        let number = u8::from_str_radix(&text[from..from + n], radix).ok()?;
        Some((number, from + n))
    };
    Some(match text.as_bytes().first()? {
        b'n' => (b'\n', 1),
        b't' => (b'\t', 1),
        b'r' => (b'\r', 1),
        b'a' => (7, 1),
        b'b' => (8, 1),
        b'f' => (12, 1),
        b'v' => (11, 1),
        &byte @ (b'\\' | b'"' | b'\'') => (byte, 1),
        b'0'..=b'7' => digits(0, 8, 3)?,
        b'x' => digits(1, 16, 2)?,
        _ => return None,
    })
}
