//! A place in the code of a line.

use std::str::FromStr;

use slotvm_bytecode::text::literal::{self, is_name_char};

use super::ParseError;

/// A place in the code of a line, and what can be read there. What is read may have spaces before it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Cursor<'t> {
    code: &'t str,
    pos: usize,
    line: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(code: &'t str, line: usize) -> Cursor<'t> {
        Cursor { code, pos: 0, line }
    }

    fn rest(&self) -> &'t str {
        &self.code[self.pos..]
    }

    pub(super) fn skip_spaces(&mut self) {
        self.pos = self.code.len() - self.rest().trim_start().len();
    }

    /// An error here.
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        let mut at = *self;
        at.skip_spaces();
        // A line that ends too early is wrong where its code ends, not after the spaces there.
        let pos = if at.rest().is_empty() { self.code.trim_end().len() } else { at.pos };
        let column = self.code[..pos].chars().count() + 1;
        Err(ParseError { line: self.line, column, message: message.into() })
    }

    /// The characters of a word, which may be none.
    pub(super) fn word(&mut self) -> &'t str {
        self.take_while(is_name_char)
    }

    /// Takes the text before the next space, comma or parenthesis.
    pub(super) fn literal(&mut self) -> &'t str {
        self.take_while(|c| !c.is_whitespace() && !matches!(c, ',' | '(' | ')'))
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.pos += end;
        &rest[..end]
    }

    /// Whether this token comes next. One of letters must end where it ends.
    pub(super) fn at(&self, token: &str) -> bool {
        let mut ahead = *self;
        if token.starts_with(|c: char| c.is_ascii_alphabetic()) {
            ahead.word() == token
        } else {
            ahead.skip_spaces();
            ahead.rest().starts_with(token)
        }
    }

    /// Reads this token if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let is_next = self.at(token);
        if is_next {
            self.skip_spaces();
            self.pos += token.len();
        }
        is_next
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.eat(token) { Ok(()) } else { self.error(format!("expected `{token}`")) }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().trim_start().is_empty()
    }

    pub(super) fn end(&self) -> Result<(), ParseError> {
        if self.is_at_end() { Ok(()) } else { self.error("expected the end of the line") }
    }

    /// A number that fits its type.
    pub(super) fn number<T: FromStr>(&mut self) -> Result<T, ParseError> {
        let start = *self;
        match self.word().parse() {
            Ok(number) => Ok(number),
            Err(_) => start.error("expected a number in range"),
        }
    }

    /// A code offset, such as `@001c`.
    pub(super) fn offset(&mut self) -> Result<u32, ParseError> {
        let start = *self;
        self.expect("@")?;
        let digits = self.word();
        u32::from_str_radix(digits, 16)
            .or_else(|_| start.error("expected a code offset such as `@001c`"))
    }

    /// Whether a prefix and a number come next, with or without a name.
    pub(super) fn at_entity(&self, prefix: &str) -> bool {
        let digits = { *self }.word_before_dot().strip_prefix(prefix).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    }

    /// A prefix and a number, as one word.
    pub(super) fn entity(&mut self, prefix: &str, what: &str) -> Result<u32, ParseError> {
        let start = *self;
        match self.named_entity(prefix, what)? {
            (number, None) => Ok(number),
            (_, Some(_)) => start.error(format!("expected {what}")),
        }
    }

    /// A prefix and a number, as one word, and the name after a dot, if there is one: `v7`, `v7.x`.
    pub(super) fn named_entity(
        &mut self,
        prefix: &str,
        what: &str,
    ) -> Result<(u32, Option<String>), ParseError> {
        let start = *self;
        let digits = self.word_before_dot().strip_prefix(prefix).unwrap_or_default();
        match digits.parse() {
            Ok(number) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Ok((number, self.suffix()?))
            }
            _ => {
                *self = start;
                self.error(format!("expected {what}"))
            }
        }
    }

    /// The characters of a word up to its first dot.
    pub(super) fn word_before_dot(&mut self) -> &'t str {
        self.take_while(|c| is_name_char(c) && c != '.')
    }

    /// A dot and a name, or nothing.
    pub(super) fn suffix(&mut self) -> Result<Option<String>, ParseError> {
        if !self.rest().starts_with('.') {
            return Ok(None);
        }
        self.pos += 1;
        self.name().map(Some)
    }

    /// A name, as [`literal::write_name`] writes it.
    pub(super) fn name(&mut self) -> Result<String, ParseError> {
        let start = *self;
        if !self.eat("$\"") {
            let name = self.word();
            return if name.is_empty() { start.error("expected a name") } else { Ok(name.into()) };
        }
        let Some(quoted) = until_quote(self.rest()) else {
            return start.error("unterminated name; expected a closing quote");
        };
        let open = *self;
        self.pos += quoted.len() + 1;
        match literal::unescape(quoted).map(String::from_utf8) {
            Ok(Ok(name)) => Ok(name),
            Ok(Err(_)) => start.error("the name is not UTF-8"),
            Err((range, message)) => Cursor { pos: open.pos + range.start, ..open }.error(message),
        }
    }
}

/// Returns the text before the first quote that no backslash escapes.
fn until_quote(text: &str) -> Option<&str> {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    Some(&text[..end?])
}
