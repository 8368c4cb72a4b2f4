//! The heap, in linear memory, so that code reads and writes fields itself; and what the host knows of it: strings that
//! exist, shapes of objects, and the caches of code.
//!
//! An object is a word of two numbers, a kind and a size or length, and then values:
//!
//! | kind | number | after it |
//! |---|---|---|
//! | `BLOCK` | values | the values |
//! | `ARRAY` | elements | a block, which may have room for more |
//! | `MAP` | entries | a block of keys, each with its value, or 0: a table with open addressing |
//! | `FUNCTION` | words after it | the place in the table of functions, captured values |
//! | `TEXT` | bytes | a hash in a word, the bytes |
//! | a shape | words after it | a block of more fields or `nil`, as many fields as the shape has room for |
//!
//! Equal strings are one object, so they are equal if their bits are.

use std::collections::HashMap;
use std::time::Instant;

use slotvm::{AsContextMut, Caller, Error, Global, Memory, Rooted, Table, Val};

use crate::collector;
use crate::value::{self, Value};

pub(crate) const BLOCK: u32 = 1;
pub(crate) const ARRAY: u32 = 2;
pub(crate) const MAP: u32 = 3;
pub(crate) const FUNCTION: u32 = 4;
pub(crate) const TEXT: u32 = 5;
/// Shapes have numbers from here.
pub(crate) const SHAPES: u32 = 16;
pub(crate) const TEXT_HASH_OFFSET: u32 = 8;

/// Fields of an object.
pub(crate) const FIELDS_MAX: usize = 250;
/// Shapes that a program makes when it adds fields; each takes up to a KiB.
const SHAPES_MAX: usize = 100_000;

/// Error of a running program.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// Whether the program has raised it by `error`; the value is then in [`Exports::thrown`].
    pub(crate) is_thrown: bool,
}

pub(crate) fn failure(message: impl Into<String>) -> Error {
    Error::host(Failure { message: message.into(), is_thrown: false })
}

/// Objects with the same fields in the same order have the same shape.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) fields: Vec<u32>,
    /// Fields that are in the object itself.
    pub(crate) room: u32,
    /// The shapes with one field more.
    next: HashMap<u32, u32>,
}

/// An access to a field in code, which remembers where the last one was.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: u32,
    /// The first of two globals of the code's module: the shape, and eight times the number of the field.
    pub(crate) cache: u32,
}

/// The exports of the first module that the host uses.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Exports {
    pub(crate) memory: Memory,
    pub(crate) next: Global,
    pub(crate) limit: Global,
    pub(crate) table: Table,
    /// The value of the last `error`.
    pub(crate) thrown: Global,
}

/// The data of the store.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) exports: Option<Exports>,
    pub(crate) space: collector::Space,
    pub(crate) texts: TextTable,
    /// Names of fields, and their numbers.
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, u32>,
    shapes: Vec<Shape>,
    /// The shapes without fields, by their room.
    roots: HashMap<u32, u32>,
    pub(crate) sites: Vec<Site>,
    /// Strings of programs.
    constants: Vec<String>,
    pub(crate) output: Box<dyn Output>,
    pub(crate) start: Instant,
}

/// The output of a program.
pub(crate) trait Output: Send + std::fmt::Debug {
    fn print(&mut self, line: &str) -> std::io::Result<()>;

    /// Has what was printed appear.
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Heap {
    pub(crate) fn new(is_stressed: bool, output: Box<dyn Output>) -> Heap {
        Heap {
            exports: None,
            space: collector::Space::new(is_stressed),
            texts: TextTable::default(),
            names: Vec::new(),
            numbers: HashMap::new(),
            shapes: Vec::new(),
            roots: HashMap::new(),
            sites: Vec::new(),
            constants: Vec::new(),
            output,
            start: Instant::now(),
        }
    }

    pub(crate) fn exports(&self) -> Exports {
        self.exports.expect("programs run when the first module has an instance")
    }

    pub(crate) fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.names.push(name.to_owned());
        let number = self.names.len() as u32 - 1;
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(crate) fn add_site(&mut self, name: &str, cache: u32) -> u32 {
        let name = self.name(name);
        self.sites.push(Site { name, cache });
        self.sites.len() as u32 - 1
    }

    pub(crate) fn add_text(&mut self, text: String) -> u32 {
        self.constants.push(text);
        self.constants.len() as u32 - 1
    }

    pub(crate) fn constant(&self, index: u32) -> &str {
        &self.constants[index as usize]
    }

    pub(crate) fn shape(&self, shape: u32) -> &Shape {
        &self.shapes[(shape - SHAPES) as usize]
    }

    /// The shape of objects with these fields, of which so many are in the object itself.
    pub(crate) fn shape_of<'n>(&mut self, names: impl Iterator<Item = &'n str>, room: u32) -> u32 {
        let root = match self.roots.get(&room) {
            Some(&root) => root,
            None => {
                let root = self.add_shape(Vec::new(), room);
                self.roots.insert(room, root);
                root
            }
        };
        names.fold(root, |shape, name| {
            let name = self.name(name);
            self.extended(shape, name)
        })
    }

    fn add_shape(&mut self, fields: Vec<u32>, room: u32) -> u32 {
        self.shapes.push(Shape { fields, room, next: HashMap::new() });
        SHAPES + self.shapes.len() as u32 - 1
    }

    /// The shape with another field.
    fn extended(&mut self, shape: u32, name: u32) -> u32 {
        let Shape { fields, room, next } = self.shape(shape);
        if let Some(&next) = next.get(&name) {
            return next;
        }
        let fields = fields.iter().copied().chain([name]).collect();
        let new = self.add_shape(fields, *room);
        self.shapes[(shape - SHAPES) as usize].next.insert(name, new);
        new
    }

    /// The shape with another field, for an object that gets one.
    pub(crate) fn extend(&mut self, shape: u32, name: u32) -> Result<u32, Error> {
        if self.shape(shape).fields.len() >= FIELDS_MAX {
            return Err(failure(format!("an object has at most {FIELDS_MAX} fields; use a map")));
        }
        if self.shapes.len() >= SHAPES_MAX {
            return Err(failure("fields are added in too many orders; use maps"));
        }
        Ok(self.extended(shape, name))
    }
}

pub(crate) fn u32_at(bytes: &[u8], address: u32) -> u32 {
    let at = address as usize;
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], address: u32) -> u64 {
    let at = address as usize;
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

pub(crate) fn set_u32(bytes: &mut [u8], address: u32, number: u32) {
    bytes[address as usize..][..4].copy_from_slice(&number.to_le_bytes());
}

pub(crate) fn set_u64(bytes: &mut [u8], address: u32, number: u64) {
    bytes[address as usize..][..8].copy_from_slice(&number.to_le_bytes());
}

/// The bytes of a string.
pub(crate) fn text_at(bytes: &[u8], text: Value) -> &[u8] {
    let length = u32_at(bytes, text.address() + 4);
    &bytes[text.address() as usize + 16..][..length as usize]
}

/// The strings that exist, by their hashes: addresses, in a table with open addressing.
#[derive(Debug, Default)]
pub(crate) struct TextTable {
    pub(crate) addresses: Vec<u32>,
    n: usize,
}

impl TextTable {
    fn find(&self, memory: &[u8], hash: u32, text: &[u8]) -> Option<Value> {
        let mask = self.addresses.len().checked_sub(1)?;
        let probes = (0..).map(|i| self.addresses[(hash as usize + i) & mask]);
        let used = probes.take_while(|&address| address != 0);
        let is_it = |text_value: &Value| text_at(memory, *text_value) == text;
        used.map(|address| Value::tagged(value::TEXT, address)).find(is_it)
    }

    pub(crate) fn insert(&mut self, memory: &[u8], address: u32) {
        if self.n * 2 >= self.addresses.len() {
            let old = std::mem::take(self);
            self.addresses = vec![0; (old.addresses.len() * 2).max(64)];
            for address in old.addresses.into_iter().filter(|&address| address != 0) {
                self.insert(memory, address);
            }
        }
        let mask = self.addresses.len() - 1;
        let mut at = u32_at(memory, address + TEXT_HASH_OFFSET) as usize & mask;
        while self.addresses[at] != 0 {
            at = (at + 1) & mask;
        }
        self.addresses[at] = address;
        self.n += 1;
    }
}

/// FNV-1a.
fn text_hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The memory, and what the host knows of it.
pub(crate) fn parts<'a>(caller: &'a mut Caller<'_, Heap>) -> (&'a mut [u8], &'a mut Heap) {
    let memory = caller.data().exports().memory;
    memory.data_and_store_mut(caller.as_context_mut())
}

pub(crate) fn get_u32(store: &mut Caller<'_, Heap>, global: Global) -> u32 {
    match global.get(&mut *store) {
        Val::I32(n) => n as u32,
        _ => unreachable!("the compiler makes it an i32"),
    }
}

/// Makes room for so many words. Everything may move; the result is the values as they are then.
pub(crate) fn reserve<const N: usize>(
    caller: &mut Caller<'_, Heap>,
    n_words: u32,
    values: [Value; N],
) -> Result<[Value; N], Error> {
    let Exports { next, limit, .. } = caller.data().exports();
    let bytes = n_words.checked_mul(8).filter(|&bytes| bytes <= collector::SPACE_BYTES_MAX);
    let bytes = bytes.ok_or_else(|| failure("out of memory"))?;
    if get_u32(caller, limit) - get_u32(caller, next) >= bytes {
        return Ok(values);
    }
    // The double 0 has the bits of null, which has no handle.
    let kept =
        values.map(|value| (value, value.is_in_heap().then(|| Rooted::new(&mut *caller, value.0))));
    collector::collect(caller, bytes)?;
    Ok(kept.map(|(value, kept)| kept.map_or(value, |kept| Value(kept.bits(&*caller)))))
}

/// Takes words for which there is room.
pub(crate) fn bump(caller: &mut Caller<'_, Heap>, n_words: u32) -> Result<u32, Error> {
    let next = caller.data().exports().next;
    let address = get_u32(caller, next);
    next.set(&mut *caller, Val::I32((address + 8 * n_words) as i32))?;
    Ok(address)
}

/// Returns the string of these bytes.
pub(crate) fn text(caller: &mut Caller<'_, Heap>, text: &[u8]) -> Result<Value, Error> {
    let hash = text_hash(text);
    let (memory, heap) = parts(caller);
    if let Some(known) = heap.texts.find(memory, hash, text) {
        return Ok(known);
    }
    let length = u32::try_from(text.len()).map_err(|_| failure("the string is too long"))?;
    reserve(caller, 2 + length.div_ceil(8), [])?;
    let address = bump(caller, 2 + length.div_ceil(8))?;
    let (memory, heap) = parts(caller);
    set_u64(memory, address, u64::from(length) << 32 | u64::from(TEXT));
    set_u64(memory, address + TEXT_HASH_OFFSET, hash.into());
    memory[address as usize + 16..][..text.len()].copy_from_slice(text);
    heap.texts.insert(memory, address);
    Ok(Value::tagged(value::TEXT, address))
}
