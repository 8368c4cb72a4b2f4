//! Words of the source text.

use crate::syntax::{Place, SyntaxError};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Number(f64),
    Text(String),
    Name(String),
    /// A keyword or an operator.
    Symbol(&'static str),
    End,
}

/// A token with its place.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) token: Token,
    pub(crate) place: Place,
    /// Whether it is the first one of its line: it then does not continue an expression as `(` or `[` would.
    pub(crate) is_first: bool,
}

const KEYWORDS: [&str; 15] = [
    "let", "fn", "if", "else", "while", "for", "return", "break", "continue", "and", "or", "not",
    "nil", "true", "false",
];

/// Longer ones before those that they begin with.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "..", "//", "(", ")", "[", "]", "{", "}", "<", ">", "=", "+", "-", "*",
    "/", "%", ",", ".", ":", ";",
];

pub(crate) fn words(source: &str) -> Result<Vec<Word>, SyntaxError> {
    let mut words: Vec<Word> = Vec::new();
    for (number, text) in (1..).zip(source.lines()) {
        let (mut rest, mut column) = (text, 1);
        let mut is_first = true;
        loop {
            column += length(rest, rest.trim_start());
            rest = rest.trim_start();
            let place = Place { line: number, column };
            let Some(first) = rest.chars().next().filter(|&c| c != '#') else { break };
            let (token, after) = match first {
                '0'..='9' => number_at(rest, place)?,
                '"' => text_at(rest, place)?,
                _ if first.is_alphabetic() || first == '_' => name_at(rest),
                _ => {
                    let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
                    let unknown = || error(place, format!("unexpected character `{first}`"));
                    let symbol = symbol.ok_or_else(unknown)?;
                    (Token::Symbol(symbol), &rest[symbol.len()..])
                }
            };
            words.push(Word { token, place, is_first });
            column += length(rest, after);
            (rest, is_first) = (after, false);
        }
    }
    let line = source.lines().count().max(1) as u32;
    let column = source.lines().last().map_or(0, |text| text.chars().count()) as u32 + 1;
    words.push(Word { token: Token::End, place: Place { line, column }, is_first: true });
    Ok(words)
}

/// The number of characters of a text before its end `after`.
fn length(text: &str, after: &str) -> u32 {
    text[..text.len() - after.len()].chars().count() as u32
}

pub(crate) fn error(place: Place, message: impl Into<String>) -> SyntaxError {
    SyntaxError { place, message: message.into() }
}

fn name_at(rest: &str) -> (Token, &str) {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let keyword = KEYWORDS.into_iter().find(|&keyword| keyword == name);
    (keyword.map_or_else(|| Token::Name(name.to_owned()), Token::Symbol), after)
}

fn number_at(rest: &str, place: Place) -> Result<(Token, &str), SyntaxError> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(rest);
    // `1..2` joins two numbers.
    if rest[end..].starts_with('.') && digits(&rest[end + 1..]) > 0 {
        end += 1 + digits(&rest[end + 1..]);
    }
    let exponent = rest[end..].strip_prefix(['e', 'E']);
    if let Some(exponent) = exponent {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let n_digits = digits(&exponent[sign..]);
        if n_digits == 0 {
            return Err(error(place, "expected digits of the exponent"));
        }
        end += 1 + sign + n_digits;
    }
    let number = rest[..end].parse().map_err(|e| error(place, format!("not a number: {e}")))?;
    Ok((Token::Number(number), &rest[end..]))
}

fn text_at(rest: &str, place: Place) -> Result<(Token, &str), SyntaxError> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(text), &rest[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                _ => return Err(error(place, r#"expected `n`, `"` or `\` after `\` in a string"#)),
            },
            _ => text.push(c),
        }
    }
    Err(error(place, "the string does not end on its line"))
}
