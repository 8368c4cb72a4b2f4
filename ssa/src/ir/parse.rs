//! The parser of the text IR.
//!
//! The form is that of [`crate::ir::print`]; printing what was parsed gives the same text if the text was
//! printed before. People may write it more loosely: values and slots may have any numbers, names may be left out,
//! locations as well, and text after `;` that is not a location is a comment. A value has the name that its definition
//! has, and a slot that of its line.
//!
//! Guarantees that the tables of the [`Function`] are consistent, so that all of it can be accessed:
//! names are defined, edges have as many operands as their block has parameters. The verifier checks the
//! rest ([`crate::ir::verify`]). No input makes the parser panic, and it needs time
//! linear in the length of the text.

mod cursor;
mod inst;
mod location;

use std::collections::HashMap;
use std::fmt;

use slotvm_bytecode::{FuncType, ValType};

use self::cursor::Cursor;
use self::location::Label;
use crate::ir::entity::{Block, Loc, Slot, Value};
use crate::ir::frame::{FramePlace, FrameState};
use crate::ir::{Entry, Function, LocData, Names, SlotData, SlotOrigin};

/// An error in a text of the IR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The error message.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Parses one function.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    let mut lines = Lines::new(text);
    let Some(header) = lines.next() else { return lines.error_at_end("expected a function") };
    let function = parse_function(header, &mut lines)?;
    match lines.next() {
        Some(line) => line.code.error("expected nothing after the function"),
        None => Ok(function),
    }
}

/// Parses any number of functions, one after the other.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse_all(text: &str) -> Result<Vec<Function>, ParseError> {
    let mut lines = Lines::new(text);
    let mut functions = Vec::new();
    while let Some(header) = lines.next() {
        functions.push(parse_function(header, &mut lines)?);
    }
    Ok(functions)
}

/// The lines of a text that hold more than a comment.
struct Lines<'t> {
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
    n_lines: usize,
}

/// A line: its code, and the text after `;`.
struct Line<'t> {
    code: Cursor<'t>,
    comment: &'t str,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Lines<'t> {
        Lines { lines: text.lines().enumerate(), n_lines: 0 }
    }

    fn error_at_end<T>(&self, message: &str) -> Result<T, ParseError> {
        Err(ParseError { line: self.n_lines + 1, column: 1, message: message.to_owned() })
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        for (i, line) in self.lines.by_ref() {
            self.n_lines = i + 1;
            let (code, comment) = split_comment(line);
            if !code.trim().is_empty() {
                return Some(Line { code: Cursor::new(code, i + 1), comment });
            }
        }
        None
    }
}

/// Splits a line at the first `;` that is not in quotes.
fn split_comment(line: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (i, c) in line.char_indices() {
        match c {
            ';' if !is_quoted => return (&line[..i], &line[i + 1..]),
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = is_quoted && c == '\\' && !is_escaped;
    }
    (line, "")
}

/// A use of a name that is resolved when all of the function has been read.
struct Use<'t> {
    /// The number in the name.
    number: u32,
    /// The name after its dot.
    name: Option<String>,
    at: Cursor<'t>,
}

/// A branch target.
struct Target<'t> {
    block: Use<'t>,
    args: Vec<Use<'t>>,
}

struct Parser<'t> {
    f: Function,
    /// Slots by their keys, and values by the numbers that the text gives them.
    slots: HashMap<&'t str, u32>,
    values: HashMap<u32, Value>,
    /// Operands whose definition had not been read: the place in the operand pool, and the use.
    unresolved: Vec<(usize, Use<'t>)>,
    /// The targets of all edges.
    targets: Vec<Target<'t>>,
    /// Whether the access that is being read is marked.
    is_in_bounds: bool,
    /// The location of the last instruction, and the comment that it was read from.
    last_loc: Option<(Loc, &'t str)>,
}

fn parse_function<'t>(header: Line<'t>, lines: &mut Lines<'t>) -> Result<Function, ParseError> {
    let mut parser = Parser {
        f: Function::default(),
        slots: HashMap::new(),
        values: HashMap::new(),
        unresolved: Vec::new(),
        targets: Vec::new(),
        is_in_bounds: false,
        last_loc: None,
    };
    let params = parser.header(header.code)?;
    loop {
        let Some(line) = lines.next() else { return lines.error_at_end("expected `}`") };
        if !parser.line(line, &params)? {
            return parser.finish();
        }
    }
}

/// `f3 at 2, 5: cell 0, cell 4, frame, block`, with the states of callers after ` < `.
fn frame_state(code: &mut Cursor<'_>) -> Result<FrameState, ParseError> {
    let mut states = Vec::new();
    loop {
        let func = code.entity("f", "a function such as `f3`")?;
        let (mut blocks, mut call) = (Vec::new(), None);
        if code.eat("after") {
            call = Some(code.number()?);
        } else {
            code.expect("at")?;
            blocks.push(code.number()?);
            while code.eat(",") {
                blocks.push(code.number()?);
            }
        }
        code.expect(":")?;
        let mut places = Vec::new();
        while !code.is_at_end() && !code.at("<") && !code.at("(") {
            if !places.is_empty() {
                code.expect(",")?;
            }
            places.push(frame_place(code)?);
        }
        states.push(FrameState { func, blocks, call, places, caller: None });
        if !code.eat("<") {
            break;
        }
    }
    let with_caller = |caller, state| Some(Box::new(FrameState { caller, ..state }));
    let innermost = states.into_iter().rev().fold(None, with_caller);
    Ok(*innermost.expect("there is one at least"))
}

fn frame_place(code: &mut Cursor<'_>) -> Result<FramePlace, ParseError> {
    if code.eat("frame") {
        return Ok(FramePlace::FrameSp);
    }
    if code.eat("block") {
        return Ok(FramePlace::Block);
    }
    if code.eat("callee") {
        return Ok(FramePlace::Callee);
    }
    code.expect("cell")?;
    Ok(FramePlace::Cell(code.number()?))
}

/// A parameter: the use of its name stands for its definition.
type Param<'t> = (Use<'t>, ValType);

impl<'t> Parser<'t> {
    /// `func f3 sum(v0: i64) -> i64 {`; returns the parameters.
    fn header(&mut self, mut code: Cursor<'t>) -> Result<Vec<Param<'t>>, ParseError> {
        code.expect("func")?;
        self.f.func = code.entity("f", "a function such as `f3`")?;
        if !code.at("(") {
            self.f.name = code.name()?;
        }
        let params = self.params(&mut code)?;
        let results = match code.eat("->") {
            true => result_types(&mut code)?,
            false => Vec::new(),
        };
        let types: Vec<ValType> = params.iter().map(|&(_, ty)| ty).collect();
        self.f.ty = FuncType::new(types, results);
        code.expect("{")?;
        code.end()?;
        Ok(params)
    }

    /// `(v3: i64, v4: i64)`, or nothing.
    fn params(&mut self, code: &mut Cursor<'t>) -> Result<Vec<Param<'t>>, ParseError> {
        let mut params = Vec::new();
        if !code.eat("(") {
            return Ok(params);
        }
        while !code.eat(")") {
            if !params.is_empty() {
                code.expect(",")?;
            }
            let value = value_use(code)?;
            code.expect(":")?;
            params.push((value, value_type(code)?));
        }
        Ok(params)
    }

    /// Parses a line inside a function; returns whether the function continues after it.
    fn line(&mut self, line: Line<'t>, params: &[Param<'t>]) -> Result<bool, ParseError> {
        let mut code = line.code;
        let is_in_block = self.f.n_blocks() > 0;
        if code.eat("}") {
            code.end()?;
            if !is_in_block {
                return code.error("expected the block `b0`");
            }
            self.f.end_block();
            return Ok(false);
        }
        if code.at_entity("b") {
            let own = self.block(code, line.comment)?;
            let params = if is_in_block { &own[..] } else { params };
            for (value, ty) in params {
                let param = self.f.append_param(*ty);
                self.define(value, param)?;
            }
        } else if is_in_block {
            self.inst(code, line.comment)?;
        } else if code.eat("enter") {
            self.f.entry = Entry::Frame(frame_state(&mut code)?);
            code.end()?;
        } else {
            self.slot(code)?;
        }
        Ok(true)
    }

    /// `slot s0: i64 = local 0`, with `kept @0012` if it stays in memory for the sake of the loop there
    fn slot(&mut self, mut code: Cursor<'t>) -> Result<(), ParseError> {
        code.expect("slot")?;
        let start = code;
        let slot = Slot::new(self.f.slots.len());
        let (key, name) = slot_use(&mut code)?;
        if self.slots.insert(key, slot.0).is_some() {
            return start.error(format!("{key} is defined twice"));
        }
        if let Some(name) = name {
            self.names().name_slot(slot, &name);
        }
        code.expect(":")?;
        let ty = value_type(&mut code)?;
        code.expect("=")?;
        let origin = if code.eat("local") {
            SlotOrigin::Local(code.number()?)
        } else if code.eat("inlined") {
            SlotOrigin::Inlined(code.number()?)
        } else {
            code.expect("stack")?;
            SlotOrigin::Stack(code.number()?)
        };
        let kept = if code.eat("kept") { Some(code.offset()?) } else { None };
        self.f.slots.push(SlotData { ty, origin, kept });
        code.end()
    }

    /// `b1(v3: i64, v4: i64):` and the label and code offset after it; returns the parameters.
    fn block(&mut self, mut code: Cursor<'t>, comment: &str) -> Result<Vec<Param<'t>>, ParseError> {
        let start = code;
        let number = code.entity("b", "a block such as `b1`")?;
        let next = self.f.n_blocks();
        if number as usize != next {
            return start.error(format!("expected b{next}: blocks are numbered in order"));
        }
        if next > 0 {
            self.f.end_block();
        }
        let params = self.params(&mut code)?;
        if next == 0 && !params.is_empty() {
            return start.error(
                "unexpected parameters of the entry; expected them after the function's name",
            );
        }
        code.expect(":")?;
        code.end()?;
        let (label, offset) = location::parse_block(comment);
        let label = label.map(|label| self.label_number(label));
        self.f.start_block(label, offset);
        Ok(params)
    }

    /// A number for a label. The text omits the numbers of labels with names. They get the highest
    /// numbers, which no label that is written as a number has.
    fn label_number(&mut self, label: Label) -> u32 {
        match label {
            Label::Number(number) => number,
            Label::Name(name) => {
                let number = u32::MAX - 1 - self.f.label_names.len() as u32;
                self.f.label_names.insert(number, name);
                number
            }
        }
    }

    fn names(&mut self) -> &mut Names {
        self.f.names.get_or_insert_default()
    }

    fn define(&mut self, name: &Use<'t>, value: Value) -> Result<(), ParseError> {
        if let Some(name) = &name.name {
            self.names().name_value(value, name);
        }
        match self.values.insert(name.number, value) {
            None => Ok(()),
            Some(_) => name.at.error(format!("v{} is defined twice", name.number)),
        }
    }

    /// The location in a comment; without one, that of the instruction before.
    fn loc(&mut self, comment: &'t str) -> Loc {
        let chain = match self.last_loc {
            Some((loc, last)) if last == comment => return loc,
            _ => location::parse(comment),
        };
        let mut loc = None;
        // The text goes outwards from the instruction to the calls that it is inlined at.
        for &(func, offset) in chain.iter().rev() {
            let func = func.unwrap_or(self.f.func);
            loc = Some(self.new_loc(LocData { func, offset, inlined_at: loc }));
        }
        let last = self.last_loc.map(|(loc, _)| loc);
        let start = LocData { func: self.f.func, offset: 0, inlined_at: None };
        let loc = loc.or(last).unwrap_or_else(|| self.new_loc(start));
        self.last_loc = Some((loc, comment));
        loc
    }

    fn new_loc(&mut self, data: LocData) -> Loc {
        self.f.locs.push(data);
        Loc::new(self.f.locs.len() - 1)
    }

    /// Resolves what was used before it was defined.
    fn finish(mut self) -> Result<Function, ParseError> {
        for (place, name) in std::mem::take(&mut self.unresolved) {
            self.f.operand_pool[place] = self.resolve(&name)?;
        }
        let targets = std::mem::take(&mut self.targets);
        for (edge, target) in targets.iter().enumerate() {
            let Target { block, args } = target;
            if block.number as usize >= self.f.n_blocks() {
                return block.at.error(format!("b{} is not defined", block.number));
            }
            let dst = Block(block.number);
            let (n_params, n_args) = (self.f.params(dst).len(), args.len());
            if n_params != n_args {
                return block.at.error(format!("{dst} takes {n_params} operands, not {n_args}"));
            }
            self.f.edges[edge].dst = dst;
            self.f.edges[edge].args = self.f.edge_args.len() as u32;
            for arg in args {
                let value = self.resolve(arg)?;
                self.f.edge_args.push(value);
            }
        }
        self.f.compute_preds();
        Ok(self.f)
    }

    fn resolve(&self, name: &Use<'t>) -> Result<Value, ParseError> {
        match self.values.get(&name.number) {
            Some(&value) => Ok(value),
            None => name.at.error(format!("v{} is not defined", name.number)),
        }
    }
}

fn value_use<'t>(code: &mut Cursor<'t>) -> Result<Use<'t>, ParseError> {
    code.skip_spaces();
    let at = *code;
    let (number, name) = code.named_entity("v", "a value such as `v1`")?;
    Ok(Use { number, name, at })
}

/// The key of a slot, such as `s0`, `stack1` or `inlined5`, with a type or more as a suffix if need be, and its name.
fn slot_use<'t>(code: &mut Cursor<'t>) -> Result<(&'t str, Option<String>), ParseError> {
    let start = *code;
    let key = code.word_before_dot();
    let rest = ["stack", "inlined", "s"].iter().find_map(|prefix| key.strip_prefix(prefix));
    let number = rest.and_then(|rest| rest.split('_').next()).unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return start.error("expected a slot such as `s0`");
    }
    Ok((key, code.suffix()?))
}

fn value_type(code: &mut Cursor<'_>) -> Result<ValType, ParseError> {
    code.skip_spaces();
    let start = *code;
    match ValType::from_name(code.word()) {
        Some(ty) => Ok(ty),
        None => start.error("expected a type"),
    }
}

/// `i64` or `(i64, i32)`
fn result_types(code: &mut Cursor<'_>) -> Result<Vec<ValType>, ParseError> {
    if !code.eat("(") {
        return Ok(vec![value_type(code)?]);
    }
    let mut types = Vec::new();
    while !code.eat(")") {
        if !types.is_empty() {
            code.expect(",")?;
        }
        types.push(value_type(code)?);
    }
    Ok(types)
}

#[cfg(test)]
mod tests;
