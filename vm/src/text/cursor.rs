//! The parser's token stream: lookahead, expected tokens, and error messages.

use std::borrow::Cow;

use super::error::Problem;
use super::lexer::{Lexer, Token, TokenKind};
use super::{literal, words};
use crate::limits;
use crate::types::ValType;

/// Result of a parsing step.
pub(super) type Parse<T> = Result<T, Problem>;

/// A reference to an entity in the text.
#[derive(Copy, Clone, Debug)]
pub(super) enum Ref {
    /// A number.
    Number(u32),
    /// A name, which is a token.
    Name(Token),
}

/// A position in the tokens of a source that consists of valid tokens only. The last token is `End` and is
/// never passed.
pub(super) struct Cursor<'s> {
    pub(super) source: &'s str,
    /// The lexer, after the lookahead tokens.
    lexer: Lexer<'s>,
    /// The last token taken.
    last: Option<Token>,
    /// The next two tokens.
    next: [Token; 2],
}

impl<'s> Cursor<'s> {
    pub(super) fn new(source: &'s str) -> Cursor<'s> {
        let mut lexer = Lexer::new(source);
        let next = [lexer.next(), lexer.next()];
        Cursor { source, lexer, last: None, next }
    }

    /// Returns the token after the next one.
    pub(super) fn peek_second(&self) -> Token {
        self.next[1]
    }

    pub(super) fn peek(&self) -> Token {
        self.next[0]
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.last = Some(token);
            self.next = [self.next[1], self.lexer.next()];
        }
        token
    }

    /// Returns the last token taken, or the first token at the start.
    pub(super) fn last(&self) -> Token {
        self.last.unwrap_or(self.peek())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.peek().kind == TokenKind::End
    }

    /// Whether the next token is the first of its line.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.last.is_none_or(|last| last.line != self.peek().line)
    }

    /// Whether the next token is on the same line as the previous one.
    pub(super) fn is_on_same_line(&self) -> bool {
        !self.is_at_line_start() && !self.is_at_end()
    }

    pub(super) fn text(&self, token: Token) -> &'s str {
        token.text(self.source)
    }

    pub(super) fn is_punct(&self, punct: u8) -> bool {
        self.peek().kind == TokenKind::Punct(punct)
    }

    /// Takes the punctuation if it is next.
    pub(super) fn take_punct(&mut self, punct: u8) -> bool {
        let found = self.is_punct(punct);
        if found {
            self.take();
        }
        found
    }

    pub(super) fn expect_punct(&mut self, punct: u8) -> Parse<Token> {
        let token = self.peek();
        if self.take_punct(punct) {
            return Ok(token);
        }
        Err(self.unexpected(&format!("`{}`", char::from(punct))))
    }

    /// Whether the next token is this bare word.
    pub(super) fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && self.text(token) == word
    }

    /// Takes the bare word if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.take();
        }
        found
    }

    /// Returns the problem that the next token is not `expected`.
    pub(super) fn unexpected(&self, expected: &str) -> Problem {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_string(),
            TokenKind::Str => "a string".to_string(),
            _ => {
                let text: String = self.text(token).chars().take(40).collect();
                format!("`{text}`")
            }
        };
        self.problem(token, format!("expected {expected}, found {found}"))
    }

    /// A problem at a token.
    pub(super) fn problem(&self, token: Token, message: impl Into<String>) -> Problem {
        Problem::new(token.start as usize..token.end as usize, message)
    }

    /// Whether a label definition is next: `name:` or `name(…):`. The name may also be a number or a
    /// mnemonic.
    pub(super) fn is_label(&self) -> bool {
        let token = self.peek();
        if !matches!(token.kind, TokenKind::Word | TokenKind::QuotedName | TokenKind::Number) {
            return false;
        }
        match self.peek_second().kind {
            TokenKind::Punct(b':') => true,
            TokenKind::Punct(b'(') => {
                token.kind != TokenKind::Word
                    || words::op_of(self.text(token)).is_none()
                    || self.is_shape_ahead()
            }
            _ => false,
        }
    }

    /// Whether the next token is followed by a label's shape and colon, not by an instruction's type.
    fn is_shape_ahead(&self) -> bool {
        let is_inside = |token: &Token| match token.kind {
            TokenKind::Word | TokenKind::Number => true,
            TokenKind::Punct(punct) => matches!(punct, b',' | b'#'),
            _ => false,
        };
        let mut ahead = self.lexer.clone();
        let mut rest = std::iter::from_fn(|| Some(ahead.next())).skip_while(is_inside);
        let kinds = [rest.next(), rest.next()].map(|token| token.map(|token| token.kind));
        kinds == [b')', b':'].map(|punct| Some(TokenKind::Punct(punct)))
    }

    /// Whether an optional operand is next: a name or number on the same line that does not start a
    /// statement.
    pub(super) fn is_optional_ref(&self) -> bool {
        let token = self.peek();
        let can_be = match token.kind {
            TokenKind::Word => !words::is_reserved(self.text(token)),
            TokenKind::QuotedName | TokenKind::Number => true,
            _ => false,
        };
        can_be && self.is_on_same_line() && !self.is_label()
    }

    /// A name or number of an entity.
    pub(super) fn entity(&mut self, what: &str) -> Parse<Ref> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word | TokenKind::QuotedName => Ok(Ref::Name(self.take())),
            TokenKind::Number => Ok(Ref::Number(self.number(what)?)),
            _ => Err(self.unexpected(what)),
        }
    }

    /// Takes an entity on the line of its instruction.
    pub(super) fn operand(&mut self, what: &str) -> Parse<Ref> {
        self.expect_same_line(what)?;
        self.entity(what)
    }

    /// Fails if an instruction's operand is not on the same line.
    pub(super) fn expect_same_line(&self, what: &str) -> Parse<()> {
        if self.is_on_same_line() {
            return Ok(());
        }
        let last = self.last();
        let text = self.text(last);
        Err(self.problem(last, format!("expected {what} after `{text}` on the same line")))
    }

    /// An unsigned 32-bit number.
    pub(super) fn number(&mut self, what: &str) -> Parse<u32> {
        let token = self.peek();
        if token.kind != TokenKind::Number {
            return Err(self.unexpected(what));
        }
        self.take();
        literal::parse_u32(self.text(token)).map_err(|message| self.problem(token, message))
    }

    /// Takes the next number if it is on the same line and not a label.
    pub(super) fn optional_number(&mut self) -> Parse<Option<u32>> {
        if self.peek().kind == TokenKind::Number && self.is_optional_ref() {
            return self.number("a number").map(Some);
        }
        Ok(None)
    }

    /// The bytes of a string.
    pub(super) fn bytes(&mut self, what: &str) -> Parse<Vec<u8>> {
        if self.peek().kind != TokenKind::Str {
            return Err(self.unexpected(what));
        }
        let token = self.take();
        self.unescape(token, 1)
    }

    /// A string of valid UTF-8.
    pub(super) fn string(&mut self, what: &str) -> Parse<String> {
        let bytes = self.bytes(what)?;
        self.utf8(self.last(), bytes)
    }

    fn unescape(&self, token: Token, open: usize) -> Parse<Vec<u8>> {
        let text = self.text(token);
        literal::unescape(&text[open..text.len() - 1]).map_err(|(range, message)| {
            let start = token.start as usize + open;
            Problem::new(start + range.start..start + range.end, message)
        })
    }

    /// Checks the length and encoding of a name.
    fn utf8(&self, token: Token, bytes: Vec<u8>) -> Parse<String> {
        if bytes.len() > limits::NAME_BYTES_MAX {
            let message = format!("name too long; at most {} bytes", limits::NAME_BYTES_MAX);
            return Err(self.problem(token, message));
        }
        String::from_utf8(bytes).map_err(|_| self.problem(token, "a name must be valid UTF-8"))
    }

    /// Returns the name in a name token.
    pub(super) fn name(&self, token: Token) -> Parse<Cow<'s, str>> {
        if token.kind == TokenKind::QuotedName {
            let bytes = self.unescape(token, 2)?;
            return Ok(Cow::Owned(self.utf8(token, bytes)?));
        }
        let text = self.text(token);
        if text.len() > limits::NAME_BYTES_MAX {
            return self.utf8(token, text.into()).map(Cow::Owned);
        }
        Ok(Cow::Borrowed(text))
    }

    /// Takes a value type if one is next.
    pub(super) fn optional_type(&mut self) -> Option<ValType> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return None;
        }
        let ty = ValType::from_name(self.text(token))?;
        self.take();
        Some(ty)
    }

    pub(super) fn val_type(&mut self) -> Parse<ValType> {
        if let Some(ty) = self.optional_type() {
            return Ok(ty);
        }
        let names = ValType::ALL.map(ValType::name);
        let text = self.text(self.peek());
        let help = super::error::suggest(text, names).unwrap_or_else(|| {
            format!("the types are {}", names.map(|n| format!("`{n}`")).join(", "))
        });
        Err(self.unexpected("a type").with_help(Some(help)))
    }

    pub(super) fn ref_type(&mut self) -> Parse<ValType> {
        let token = self.peek();
        match self.optional_type() {
            Some(ty) if ty.is_ref() => Ok(ty),
            Some(_) => Err(self
                .problem(token, "expected a reference type")
                .with_help(Some("the reference types are `funcref` and `externref`".to_string()))),
            None => Err(self.unexpected("`funcref` or `externref`")),
        }
    }

    /// Skips the tokens up to the end of a line, or up to a `}`.
    pub(super) fn skip_line(&mut self, line: u32) {
        while !self.is_at_end() && !self.is_punct(b'}') && self.peek().line <= line {
            self.take();
        }
    }

    /// Skips to the next line that starts an item.
    pub(super) fn skip_to_item(&mut self) {
        while !self.is_at_end() {
            let token = self.peek();
            let starts_item = token.kind == TokenKind::Word
                && self.is_at_line_start()
                && self.peek_second().kind != TokenKind::Punct(b':')
                && words::is_item(self.text(token));
            if starts_item {
                return;
            }
            self.take();
        }
    }
}
