//! Lexer of the text form.
//!
//! Splits the source into tokens with their positions. Literals are parsed where they are used. Comments and
//! white space are dropped, but tokens keep their line, since an instruction's optional operands must be on
//! the same line.

use super::error::{DIAGNOSTICS_MAX, Problem};

/// Kinds of tokens.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A bare word: a keyword, a mnemonic or a name.
    Word,
    /// `$"…"`, always a name.
    QuotedName,
    /// `"…"`
    Str,
    /// `'…'`
    Char,
    /// An integer or float, with its sign.
    Number,
    /// One of `( ) { } [ ] , : = #`.
    Punct(u8),
    /// `->`
    Arrow,
    /// The end of the source.
    End,
}

/// A token and its place in the source.
#[derive(Copy, Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Byte range in the source.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Line number, from 1.
    pub(super) line: u32,
}

impl Token {
    /// Returns the token's text.
    pub(super) fn text(self, source: &str) -> &str {
        &source[self.start as usize..self.end as usize]
    }
}

/// Whether a bare name can start with the byte.
pub(super) fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'.')
}

/// Whether a bare name can contain the byte after its first.
pub(super) fn is_word_byte(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || matches!(byte, b'!' | b'?' | b'-')
}

/// Returns the first invalid tokens of the source, at most [`DIAGNOSTICS_MAX`]. The source must be shorter
/// than 4 GiB.
pub(super) fn problems(source: &str) -> Vec<Problem> {
    let mut lexer = Lexer::new(source);
    while lexer.problems.len() < DIAGNOSTICS_MAX && lexer.next().kind != TokenKind::End {}
    lexer.problems
}

/// A position in the source from which tokens are read. The text is read twice: once to check that it
/// consists of tokens, then by the parser, which does not store tokens.
#[derive(Clone)]
pub(super) struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    pos: usize,
    line: u32,
    problems: Vec<Problem>,
}

impl<'s> Lexer<'s> {
    /// Creates a lexer at the start of a source.
    pub(super) fn new(source: &'s str) -> Lexer<'s> {
        Lexer { source, bytes: source.as_bytes(), pos: 0, line: 1, problems: Vec::new() }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// Returns the next token, or `End` after the last one. Skips invalid tokens.
    pub(super) fn next(&mut self) -> Token {
        loop {
            self.skip_space();
            let start = self.pos;
            if let Some(kind) = self.token() {
                let (start, end) = (start as u32, self.pos as u32);
                return Token { kind, start, end, line: self.line };
            }
        }
    }

    fn skip_space(&mut self) {
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                b';' => {
                    self.pos += self.bytes[self.pos..].iter().take_while(|&&b| b != b'\n').count();
                    continue;
                }
                _ => return,
            }
            self.pos += 1;
        }
    }

    /// Reads a token. Returns `None` for an invalid token, which it reports and skips.
    fn token(&mut self) -> Option<TokenKind> {
        let Some(&byte) = self.bytes.get(self.pos) else { return Some(TokenKind::End) };
        match byte {
            b'(' | b')' | b'{' | b'}' | b'[' | b']' | b',' | b':' | b'=' | b'#' => {
                self.pos += 1;
                Some(TokenKind::Punct(byte))
            }
            b'"' => self.quoted(1, b'"', TokenKind::Str),
            b'\'' => self.quoted(1, b'\'', TokenKind::Char),
            b'$' if self.peek(1) == b'"' => self.quoted(2, b'"', TokenKind::QuotedName),
            b'-' if self.peek(1) == b'>' => {
                self.pos += 2;
                Some(TokenKind::Arrow)
            }
            b'0'..=b'9' => Some(self.number()),
            b'-' | b'+' if self.peek(1).is_ascii_digit() => Some(self.number()),
            b'-' | b'+' if self.peek(1).is_ascii_alphabetic() => {
                self.pos += 1;
                self.word();
                Some(TokenKind::Number)
            }
            _ if is_word_start(byte) => Some(self.word()),
            _ => {
                let c = self.source[self.pos..].chars().next().expect("a character starts here");
                let end = self.pos + c.len_utf8();
                let place = self.pos..end;
                self.report(|| Problem::new(place, format!("unexpected character {c:?}")));
                self.pos = end;
                None
            }
        }
    }

    /// Reads up to the closing quote, which is on the same line; `open` bytes come before the text.
    fn quoted(&mut self, open: usize, quote: u8, kind: TokenKind) -> Option<TokenKind> {
        let start = self.pos;
        self.pos += open;
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                _ if byte == quote => {
                    self.pos += 1;
                    return Some(kind);
                }
                b'\n' => break,
                b'\\' if self.peek(1) != b'\n' => self.pos += 2,
                _ => self.pos += 1,
            }
        }
        self.pos = self.pos.min(self.bytes.len());
        let message = "missing closing quote on this line";
        self.report(|| Problem::new(start..start + open, message));
        None
    }

    fn report(&mut self, problem: impl FnOnce() -> Problem) {
        if self.problems.len() < DIAGNOSTICS_MAX {
            self.problems.push(problem());
        }
    }

    fn number(&mut self) -> TokenKind {
        self.pos += usize::from(matches!(self.bytes[self.pos], b'-' | b'+'));
        let hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        loop {
            match self.peek(0) {
                b'e' | b'E' if !hex && matches!(self.peek(1), b'-' | b'+') => self.pos += 2,
                b'p' | b'P' if hex && matches!(self.peek(1), b'-' | b'+') => self.pos += 2,
                b'.' | b'_' => self.pos += 1,
                byte if byte.is_ascii_alphanumeric() => self.pos += 1,
                _ => return TokenKind::Number,
            }
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.pos;
        while is_word_byte(self.peek(0)) && !(self.peek(0) == b'-' && self.peek(1) == b'>') {
            self.pos += 1;
        }
        if &self.source[start..self.pos] == "nan" && self.bytes[self.pos..].starts_with(b":0x") {
            self.pos += 1;
            self.word();
            return TokenKind::Number;
        }
        TokenKind::Word
    }
}
