//! A line as words.

/// A word of a line.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    Number(f64),
    /// A name or a keyword.
    Name(&'t str),
    /// An operator, a parenthesis or a comma.
    Symbol(&'t str),
    /// The line ends.
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Name(text) | Token::Symbol(text) => write!(f, "`{text}`"),
            Token::End => f.write_str("the end of the line"),
        }
    }
}

/// Error in a program, with its place.
#[derive(Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(crate) struct SyntaxError {
    line: u32,
    /// Counted from 1.
    column: usize,
    message: String,
}

/// The words of a line, one after the other.
#[derive(Debug)]
pub(crate) struct Tokens<'t> {
    text: &'t str,
    line: u32,
    /// Start and end of the current word.
    start: usize,
    end: usize,
    current: Token<'t>,
}

/// Longer ones first, so that `<=` is not taken for `<`.
const SYMBOLS: [&str; 14] =
    ["<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "(", ")", ","];

impl<'t> Tokens<'t> {
    /// Starts with the first word. A comment ends the line.
    pub(crate) fn new(line: u32, text: &'t str) -> Result<Tokens<'t>, SyntaxError> {
        let text = text.split('#').next().unwrap_or_default();
        let mut tokens = Tokens { text, line, start: 0, end: 0, current: Token::End };
        tokens.advance()?;
        Ok(tokens)
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// The current word.
    pub(crate) fn current(&self) -> Token<'t> {
        self.current
    }

    /// The place of the current word, for [`Tokens::error_at`].
    pub(crate) fn place(&self) -> usize {
        self.start
    }

    /// Advances to the next word, and returns the one before.
    pub(crate) fn advance(&mut self) -> Result<Token<'t>, SyntaxError> {
        let before = self.current;
        let rest = self.text[self.end..].trim_start();
        self.start = self.text.len() - rest.len();
        let word = |is_part: fn(char) -> bool| {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            &rest[..end]
        };
        let length;
        (self.current, length) = match rest.chars().next() {
            None => (Token::End, 0),
            Some('0'..='9' | '.') => {
                let digits = word(|c| c.is_ascii_digit() || c == '.');
                let number =
                    digits.parse().map_err(|_| self.error(format!("invalid number `{digits}`")))?;
                (Token::Number(number), digits.len())
            }
            Some(c) if c.is_alphabetic() => {
                let name = word(|c| c.is_alphanumeric() || c == '_');
                (Token::Name(name), name.len())
            }
            Some(c) => match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
                Some(symbol) => (Token::Symbol(&rest[..symbol.len()]), symbol.len()),
                None => return Err(self.error(format!("`{c}` means nothing here"))),
            },
        };
        self.end = self.start + length;
        Ok(before)
    }

    /// Advances if the current word is this one, and returns whether it was.
    pub(crate) fn skip(&mut self, word: &str) -> Result<bool, SyntaxError> {
        let is_it = matches!(self.current, Token::Name(text) | Token::Symbol(text) if text == word);
        if is_it {
            self.advance()?;
        }
        Ok(is_it)
    }

    /// Goes on if the current word is this one.
    pub(crate) fn expect(&mut self, word: &str) -> Result<(), SyntaxError> {
        match self.skip(word)? {
            true => Ok(()),
            false => Err(self.error(format!("`{word}` is expected, not {}", self.current))),
        }
    }

    /// A name, which is no keyword.
    pub(crate) fn name(&mut self) -> Result<&'t str, SyntaxError> {
        match self.current {
            Token::Name(name) if !["def", "if", "then", "else"].contains(&name) => {
                self.advance()?;
                Ok(name)
            }
            other => Err(self.error(format!("a name is expected, not {other}"))),
        }
    }

    /// An error at the current word.
    pub(crate) fn error(&self, message: String) -> SyntaxError {
        self.error_at(self.start, message)
    }

    /// An error at a place of the line.
    pub(crate) fn error_at(&self, place: usize, message: String) -> SyntaxError {
        let column = self.text[..place].chars().count() + 1;
        SyntaxError { line: self.line, column, message }
    }
}
