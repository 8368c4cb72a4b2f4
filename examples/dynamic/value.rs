//! Values, and all that can be done to them: what the interpreter does for each operation, and compiled
//! code where its fast paths end.
//!
//! A value is 64 bits. An integer of 63 bits is shifted left by one, so that its lowest bit is 0; then
//! sums and comparisons work on the bits as they are. Everything else is an object of the [`Heap`]: its
//! number, shifted left by one, with the lowest bit 1.

use std::cmp::Ordering;
use std::fmt::Write;

/// A value of the language.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value(pub(crate) i64);

impl Value {
    pub(crate) const NIL: Value = Value::object(0);
    pub(crate) const FALSE: Value = Value::object(1);
    pub(crate) const TRUE: Value = Value::object(2);

    const fn object(index: i64) -> Value {
        Value(index << 1 | 1)
    }

    /// The integer, if it fits.
    pub(crate) fn int(n: i64) -> Option<Value> {
        let shifted = n << 1;
        (shifted >> 1 == n).then_some(Value(shifted))
    }

    fn as_int(self) -> Option<i64> {
        (self.0 & 1 == 0).then_some(self.0 >> 1)
    }

    pub(crate) fn of(is_true: bool) -> Value {
        if is_true { Value::TRUE } else { Value::FALSE }
    }

    /// Everything is true but `nil` and `false`.
    pub(crate) fn is_true(self) -> bool {
        self != Value::NIL && self != Value::FALSE
    }
}

/// A value other than an integer.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Nil,
    Bool(bool),
    Float(f64),
    Text(String),
    List(Vec<Value>),
}

/// Error of a running program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("{operation} cannot be applied to {left} and {right}")]
    Operands { operation: &'static str, left: String, right: String },
    #[error("{operation} needs a list, not {found}")]
    NoList { operation: &'static str, found: String },
    #[error("index {index} is out of bounds of a list of {length}")]
    Index { index: String, length: usize },
    #[error("division by zero")]
    DivisionByZero,
    #[error("there are more than {} objects", OBJECTS_MAX)]
    TooManyObjects,
    #[error("calls are nested more than {} deep", CALLS_MAX)]
    TooManyCalls,
}

/// Objects are never freed: an implementation in earnest would collect those that no value leads to.
const OBJECTS_MAX: usize = 10_000_000;
/// Calls of the interpreter may be nested so deep.
pub(crate) const CALLS_MAX: u32 = 2_000;
/// Lists within lists are printed down to this depth; a list may contain itself.
const PRINTED_DEPTH_MAX: u32 = 10;

/// The objects, and what was printed.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    objects: Vec<Object>,
    pub(crate) output: String,
}

impl Heap {
    pub(crate) fn new() -> Heap {
        let objects = vec![Object::Nil, Object::Bool(false), Object::Bool(true)];
        Heap { objects, output: String::new() }
    }

    pub(crate) fn add_object(&mut self, object: Object) -> Result<Value, Wrong> {
        if self.objects.len() >= OBJECTS_MAX {
            return Err(Wrong::TooManyObjects);
        }
        self.objects.push(object);
        Ok(Value::object(self.objects.len() as i64 - 1))
    }

    /// The object of a value that is no integer.
    fn object(&self, value: Value) -> Option<&Object> {
        (value.0 & 1 == 1).then(|| &self.objects[(value.0 >> 1) as usize])
    }

    fn as_float(&self, value: Value) -> Option<f64> {
        match (value.as_int(), self.object(value)) {
            (Some(n), _) => Some(n as f64),
            (_, Some(&Object::Float(x))) => Some(x),
            _ => None,
        }
    }

    /// Integers that overflow become floats.
    fn arithmetic(
        &mut self,
        operation: &'static str,
        left: Value,
        right: Value,
        of_ints: impl Fn(i64, i64) -> Option<i64>,
        of_floats: impl Fn(f64, f64) -> f64,
    ) -> Result<Value, Wrong> {
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int())
            && let Some(value) = of_ints(a, b).and_then(Value::int)
        {
            return Ok(value);
        }
        match (self.as_float(left), self.as_float(right)) {
            (Some(a), Some(b)) => self.add_object(Object::Float(of_floats(a, b))),
            _ => Err(self.wrong(operation, left, right)),
        }
    }

    /// The sum of numbers; texts are joined.
    pub(crate) fn add(&mut self, left: Value, right: Value) -> Result<Value, Wrong> {
        if let (Some(Object::Text(a)), Some(Object::Text(b))) =
            (self.object(left), self.object(right))
        {
            let joined = format!("{a}{b}");
            return self.add_object(Object::Text(joined));
        }
        self.arithmetic("+", left, right, i64::checked_add, |a, b| a + b)
    }

    pub(crate) fn sub(&mut self, left: Value, right: Value) -> Result<Value, Wrong> {
        self.arithmetic("-", left, right, i64::checked_sub, |a, b| a - b)
    }

    pub(crate) fn mul(&mut self, left: Value, right: Value) -> Result<Value, Wrong> {
        self.arithmetic("*", left, right, i64::checked_mul, |a, b| a * b)
    }

    pub(crate) fn div(&mut self, left: Value, right: Value) -> Result<Value, Wrong> {
        if right.as_int() == Some(0) {
            return Err(Wrong::DivisionByZero);
        }
        self.arithmetic("/", left, right, i64::checked_div, |a, b| a / b)
    }

    pub(crate) fn rem(&mut self, left: Value, right: Value) -> Result<Value, Wrong> {
        if right.as_int() == Some(0) {
            return Err(Wrong::DivisionByZero);
        }
        self.arithmetic("%", left, right, i64::checked_rem, |a, b| a % b)
    }

    pub(crate) fn is_less(&mut self, left: Value, right: Value) -> Result<bool, Wrong> {
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
            return Ok(a < b);
        }
        match (self.object(left), self.object(right)) {
            (Some(Object::Text(a)), Some(Object::Text(b))) => Ok(a < b),
            _ => match (self.as_float(left), self.as_float(right)) {
                (Some(a), Some(b)) => Ok(a.partial_cmp(&b) == Some(Ordering::Less)),
                _ => Err(self.wrong("<", left, right)),
            },
        }
    }

    /// Lists are equal if they are the same list.
    pub(crate) fn is_equal(&self, left: Value, right: Value) -> bool {
        match (self.object(left), self.object(right)) {
            (Some(Object::Text(a)), Some(Object::Text(b))) => a == b,
            (Some(Object::Float(_)), _) | (_, Some(Object::Float(_))) => {
                self.as_float(left).is_some_and(|a| self.as_float(right) == Some(a))
            }
            _ => left == right,
        }
    }

    pub(crate) fn new_list(&mut self) -> Result<Value, Wrong> {
        self.add_object(Object::List(Vec::new()))
    }

    fn list(&mut self, operation: &'static str, list: Value) -> Result<&mut Vec<Value>, Wrong> {
        if !matches!(self.object(list), Some(Object::List(_))) {
            return Err(Wrong::NoList { operation, found: self.text(list) });
        }
        match &mut self.objects[(list.0 >> 1) as usize] {
            Object::List(items) => Ok(items),
            _ => unreachable!("it is a list"),
        }
    }

    fn element(
        &mut self,
        operation: &'static str,
        list: Value,
        index: Value,
    ) -> Result<&mut Value, Wrong> {
        let length = self.list(operation, list)?.len();
        let place = index.as_int().and_then(|index| usize::try_from(index).ok());
        match place.filter(|&place| place < length) {
            Some(place) => Ok(&mut self.list(operation, list)?[place]),
            None => Err(Wrong::Index { index: self.text(index), length }),
        }
    }

    pub(crate) fn get(&mut self, list: Value, index: Value) -> Result<Value, Wrong> {
        self.element("get", list, index).map(|element| *element)
    }

    /// Returns the value that was put.
    pub(crate) fn put(&mut self, list: Value, index: Value, value: Value) -> Result<Value, Wrong> {
        *self.element("put", list, index)? = value;
        Ok(value)
    }

    /// Returns the list.
    pub(crate) fn push(&mut self, list: Value, value: Value) -> Result<Value, Wrong> {
        self.list("push", list)?.push(value);
        Ok(list)
    }

    pub(crate) fn len(&mut self, list: Value) -> Result<Value, Wrong> {
        let length = self.list("len", list)?.len();
        Ok(Value(length as i64 * 2))
    }

    /// Prints a line.
    pub(crate) fn print(&mut self, value: Value) -> Value {
        let text = self.text(value);
        self.output += &text;
        self.output.push('\n');
        Value::NIL
    }

    fn wrong(&self, operation: &'static str, left: Value, right: Value) -> Wrong {
        Wrong::Operands { operation, left: self.text(left), right: self.text(right) }
    }

    /// A value as it is printed.
    pub(crate) fn text(&self, value: Value) -> String {
        let mut text = String::new();
        self.write(&mut text, value, 0).expect("a string takes any text");
        text
    }

    fn write(&self, text: &mut String, value: Value, depth: u32) -> std::fmt::Result {
        match self.object(value) {
            None => write!(text, "{}", value.0 >> 1),
            Some(Object::Nil) => text.write_str("nil"),
            Some(Object::Bool(b)) => write!(text, "{b}"),
            Some(Object::Float(x)) => write!(text, "{x:?}"),
            Some(Object::Text(t)) => text.write_str(t),
            Some(Object::List(_)) if depth == PRINTED_DEPTH_MAX => text.write_str("(...)"),
            Some(Object::List(items)) => {
                text.push('(');
                for (i, &item) in items.iter().enumerate() {
                    if i > 0 {
                        text.push(' ');
                    }
                    self.write(text, item, depth + 1)?;
                }
                text.write_str(")")
            }
        }
    }
}
