//! The functions of the host: slow paths of compiled code, and the library.
//!
//! They get the bits of values, which are valid until something is allocated: [`reserve`] makes room, and returns the values
//! as they are then.

use std::fmt::Write;

use slotvm::{Caller, Error, Linker, Rooted, TrapCode, Val};

use crate::heap::{
    self, Exports, Failure, Heap, Shape, Site, bump, failure, parts, reserve, set_u32, set_u64,
    text, text_at, u32_at, u64_at,
};
use crate::value::{self, Value};

type Guest<'a> = Caller<'a, Heap>;
type Done = Result<Value, Error>;

/// The caller of a function of the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Programs, by its name. Code in place does what most calls of some of them would.
    Library,
    /// Code of the compiler.
    Code,
    /// The same, rarely.
    SlowPath,
}

/// A function of the host: it takes values, and returns one.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) n_params: usize,
    pub(crate) users: Use,
    function: fn(&mut Guest<'_>, &[Value]) -> Done,
}

macro_rules! functions {
    ($($users:ident $name:literal $n_params:literal $function:expr;)*) => {
        pub(crate) static FUNCTIONS: &[Function] = &[
            $(Function { name: $name, n_params: $n_params, users: Use::$users, function: $function },)*
        ];
    };
}

functions! {
    Library "floor" 1 |_, args| map_number(args[0], f64::floor);
    Library "sqrt" 1 |_, args| map_number(args[0], f64::sqrt);
    Library "len" 1 |guest, args| len(guest, args[0]);
    Library "push" 2 |guest, args| push(guest, args[0], args[1]);
    Library "pop" 1 |guest, args| pop(guest, args[0]);
    Library "map" 0 |guest, _| new_map(guest);
    Library "keys" 1 |guest, args| keys(guest, args[0]);
    Library "print" 1 |guest, args| print(guest, args[0]);
    Library "str" 1 |guest, args| string(guest, args[0]);
    Library "num" 1 |guest, args| number(guest, args[0]);
    Library "substring" 3 |guest, args| substring(guest, args[0], args[1], args[2]);
    Library "byte" 2 |guest, args| byte(guest, args[0], args[1]);
    Library "char" 1 |guest, args| character(guest, args[0]);
    Library "clock" 0 |guest, _| Ok(Value::number(guest.data().start.elapsed().as_secs_f64()));
    Library "error" 1 |guest, args| throw(guest, args[0]);
    Library "try" 2 |guest, args| attempt(guest, args[0], args[1]);
    Code "text" 1 |guest, args| constant(guest, args[0]);
    Code "concat" 2 |guest, args| concat(guest, args[0], args[1]);
    Code "equal" 2 |_, args| Ok(Value::of(equal(args[0], args[1])));
    Code "less" 2 |guest, args| Ok(Value::of(order(guest, args[0], args[1])?.is_lt()));
    Code "less_or_equal" 2 |guest, args| Ok(Value::of(order(guest, args[0], args[1])?.is_le()));
    SlowPath "collect" 1 |guest, args| reserve(guest, args[0].address() / 8, []).map(|_| Value::NIL);
    SlowPath "get_field" 2 |guest, args| get_field(guest, args[0], args[1].address());
    SlowPath "set_field" 3 |guest, args| set_field(guest, args[0], args[1].address(), args[2]);
    SlowPath "get_index" 2 |guest, args| get_index(guest, args[0], args[1]);
    SlowPath "set_index" 3 |guest, args| set_index(guest, args[0], args[1], args[2]);
    SlowPath "bound" 1 |_, args| bound(args[0]);
    SlowPath "no_number" 1 |_, args| Err(expected("a number", args[0]));
    SlowPath "no_function" 1 |_, args| Err(expected("a function", args[0]));
}

/// Arrays and objects within each other are written so deep.
const WRITTEN_DEPTH_MAX: u32 = 4;
/// Of an array, no more elements are written than make so much text.
const WRITTEN_BYTES_MAX: usize = 1 << 16;
/// Entries of a new map.
const MAP_ENTRIES_MIN: u32 = 4;
/// By which the block of more fields of an object grows.
const FIELDS_MORE: u32 = 8;

pub(crate) fn link(linker: &mut Linker<Heap>) -> Result<(), Error> {
    for &Function { name, n_params, function, .. } in FUNCTIONS {
        let call = move |mut guest: Guest<'_>, args: &[u64]| {
            let mut values = [Value::NIL; 3];
            values.iter_mut().zip(args).for_each(|(value, bits)| *value = Value(*bits));
            function(&mut guest, &values[..args.len()]).map(|value| value.0)
        };
        match n_params {
            0 => linker.func_wrap("host", name, move |guest: Guest<'_>| call(guest, &[])),
            1 => linker.func_wrap("host", name, move |guest: Guest<'_>, a: u64| call(guest, &[a])),
            2 => linker.func_wrap("host", name, move |guest: Guest<'_>, a: u64, b: u64| {
                call(guest, &[a, b])
            }),
            _ => linker.func_wrap("host", name, move |guest: Guest<'_>, a: u64, b: u64, c: u64| {
                call(guest, &[a, b, c])
            }),
        }?;
    }
    Ok(())
}

fn expected(what: &str, found: Value) -> Error {
    failure(format!("expected {what}, found {}", found.kind()))
}

fn check(value: Value, tag: u64, what: &str) -> Result<u32, Error> {
    if value.tag() == tag { Ok(value.address()) } else { Err(expected(what, value)) }
}

fn map_number(value: Value, function: fn(f64) -> f64) -> Done {
    Ok(Value::number(function(value.as_number().ok_or_else(|| expected("a number", value))?)))
}

fn bound(value: Value) -> Done {
    let bound = value.as_integer().ok_or_else(|| expected("an integer of 32 bits", value))?;
    Ok(Value::integer(bound))
}

fn equal(a: Value, b: Value) -> bool {
    match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The address of a field of an object.
fn field(memory: &[u8], object: u32, shape: &Shape, index: u32) -> u32 {
    match index.checked_sub(shape.room) {
        None => object + 16 + 8 * index,
        Some(index) => u32_at(memory, object + 8) + 8 + 8 * index,
    }
}

/// The address of a field that an object has. The code that asks remembers where it is in such objects.
fn find_field(guest: &mut Guest<'_>, object: u32, site: u32) -> Result<Option<u32>, Error> {
    let (memory, heap) = parts(guest);
    let number = u32_at(memory, object);
    let (shape, &Site { name, cache }) = (heap.shape(number), &heap.sites[site as usize]);
    let Some(index) = shape.fields.iter().position(|&field| field == name) else {
        return Ok(None);
    };
    let place = field(memory, object, shape, index as u32);
    if index < shape.room as usize {
        for (global, value) in (cache..).zip([number, 8 * index as u32]) {
            let global = guest.global_at(global).expect("the calling module declares its caches");
            global.set(&mut *guest, Val::I32(value as i32))?;
        }
    }
    Ok(Some(place))
}

fn get_field(guest: &mut Guest<'_>, object: Value, site: u32) -> Done {
    let object = check(object, value::OBJECT, "an object")?;
    let found = find_field(guest, object, site)?;
    Ok(found.map_or(Value::NIL, |place| Value(u64_at(parts(guest).0, place))))
}

fn set_field(guest: &mut Guest<'_>, object: Value, site: u32, value: Value) -> Done {
    let address = check(object, value::OBJECT, "an object")?;
    if let Some(place) = find_field(guest, address, site)? {
        set_u64(parts(guest).0, place, value.0);
        return Ok(Value::NIL);
    }
    let (memory, heap) = parts(guest);
    let old = u32_at(memory, address);
    let new = heap.extend(old, heap.sites[site as usize].name)?;
    let (index, room) = (heap.shape(old).fields.len() as u32, heap.shape(old).room);
    let [mut object, mut value] = [object, value];
    if let Some(n) = index.checked_sub(room).filter(|n| n.is_multiple_of(FIELDS_MORE)) {
        // The block of more fields is full, or there is none.
        [object, value] = reserve(guest, 1 + n + FIELDS_MORE, [object, value])?;
        let block = new_block(guest, n + FIELDS_MORE, Value::NIL)?;
        replace_block(parts(guest).0, object.address(), n, block);
    }
    let (memory, heap) = parts(guest);
    set_u32(memory, object.address(), new);
    let place = field(memory, object.address(), heap.shape(new), index);
    set_u64(memory, place, value.0);
    Ok(Value::NIL)
}

/// Makes a block, for which there is room.
fn new_block(guest: &mut Guest<'_>, n_items: u32, item: Value) -> Result<u32, Error> {
    let address = bump(guest, 1 + n_items)?;
    let (memory, _) = parts(guest);
    set_u64(memory, address, u64::from(n_items) << 32 | u64::from(heap::BLOCK));
    let items = &mut memory[address as usize + 8..][..8 * n_items as usize];
    items.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&item.0.to_le_bytes()));
    Ok(address)
}

/// Gives an object or array another block, with so many items of the old one.
fn replace_block(memory: &mut [u8], object: u32, n_items: u32, block: u32) {
    let old = u32_at(memory, object + 8) as usize + 8;
    if n_items > 0 {
        memory.copy_within(old..old + 8 * n_items as usize, block as usize + 8);
    }
    set_u64(memory, object + 8, Value::tagged(value::FUNCTION, block).0);
}

/// Makes an array or a map with its block. Returns it, and other values as they are then.
fn new_container<const N: usize>(
    guest: &mut Guest<'_>,
    kind: u32,
    tag: u64,
    n_items: u32,
    item: Value,
    others: [Value; N],
) -> Result<(Value, [Value; N]), Error> {
    let others = reserve(guest, n_items.saturating_add(3), others)?;
    let address = bump(guest, 2)?;
    let block = new_block(guest, n_items, item)?;
    let (memory, _) = parts(guest);
    set_u64(memory, address, kind.into());
    set_u64(memory, address + 8, Value::tagged(value::FUNCTION, block).0);
    Ok((Value::tagged(tag, address), others))
}

fn new_map(guest: &mut Guest<'_>) -> Done {
    let n_items = 2 * MAP_ENTRIES_MIN;
    let (map, []) = new_container(guest, heap::MAP, value::MAP, n_items, Value(0), [])?;
    Ok(map)
}

fn push(guest: &mut Guest<'_>, array: Value, value: Value) -> Done {
    let address = check(array, value::ARRAY, "an array")?;
    let length = u32_at(parts(guest).0, address + 4);
    // Code in place has found it full.
    let room = (length * 2).max(4);
    let [array, value] = reserve(guest, room + 1, [array, value])?;
    let block = new_block(guest, room, Value::NIL)?;
    let (memory, _) = parts(guest);
    replace_block(memory, array.address(), length, block);
    set_u64(memory, block + 8 + 8 * length, value.0);
    set_u32(memory, array.address() + 4, length + 1);
    Ok(Value::NIL)
}

fn pop(guest: &mut Guest<'_>, array: Value) -> Done {
    let address = check(array, value::ARRAY, "an array")?;
    let (memory, _) = parts(guest);
    let Some(last) = u32_at(memory, address + 4).checked_sub(1) else { return Ok(Value::NIL) };
    let place = u32_at(memory, address + 8) + 8 + 8 * last;
    let popped = Value(u64_at(memory, place));
    set_u32(memory, address + 4, last);
    set_u64(memory, place, Value::NIL.0);
    Ok(popped)
}

fn len(guest: &mut Guest<'_>, of: Value) -> Done {
    if !matches!(of.tag(), value::TEXT | value::ARRAY | value::MAP) {
        return Err(expected("a string, an array or a map", of));
    }
    Ok(Value::number(u32_at(parts(guest).0, of.address() + 4).into()))
}

/// The key as maps have it. Numbers are equal if their values are.
fn key(value: Value) -> Done {
    match value.as_number() {
        Some(n) if n.is_nan() => Err(failure("NaN is no key")),
        // Not -0, either.
        Some(n) => Ok(Value::number(n + 0.0)),
        None if value.tag() == value::TEXT => Ok(value),
        None => Err(expected("a string or a number as the key", value)),
    }
}

/// The address of the entry of a key, less 8, or of the free one where it would be. The code of `map_get` does the same.
fn entry(memory: &[u8], block: u32, key: Value) -> u32 {
    let mask = u32_at(memory, block + 4) / 2 - 1;
    let hash = match key.tag() {
        value::TEXT => u32_at(memory, key.address() + heap::TEXT_HASH_OFFSET),
        _ => key.0 as u32,
    };
    // Integers that follow each other remain neighbours, and multiples of powers of two are spread.
    let mut at = hash ^ hash >> 7 ^ hash >> 15;
    loop {
        let entry = block + 16 * (at & mask);
        let found = u64_at(memory, entry + 8);
        if found == key.0 || found == 0 {
            return entry;
        }
        at = at.wrapping_add(1);
    }
}

fn get_index(guest: &mut Guest<'_>, container: Value, index: Value) -> Done {
    let (memory, _) = parts(guest);
    match container.tag() {
        value::ARRAY => Ok(Value(u64_at(memory, element(memory, container, index)?))),
        value::MAP => {
            let entry = entry(memory, u32_at(memory, container.address() + 8), key(index)?);
            Ok(if u64_at(memory, entry + 8) == 0 {
                Value::NIL
            } else {
                Value(u64_at(memory, entry + 16))
            })
        }
        _ => Err(expected("an array or a map", container)),
    }
}

/// The address of an element of an array.
fn element(memory: &[u8], array: Value, index: Value) -> Result<u32, Error> {
    let length = u32_at(memory, array.address() + 4);
    let number = index.as_integer().ok_or_else(|| match index.as_number() {
        Some(n) => failure(format!("index {n} of an array is not an integer")),
        None => expected("an integer as the index", index),
    })?;
    match u32::try_from(number) {
        Ok(at) if at < length => Ok(u32_at(memory, array.address() + 8) + 8 + 8 * at),
        _ => Err(failure(format!("index {number} is out of bounds of an array of {length}"))),
    }
}

fn set_index(guest: &mut Guest<'_>, container: Value, index: Value, value: Value) -> Done {
    match container.tag() {
        value::ARRAY => {
            let (memory, _) = parts(guest);
            let place = element(memory, container, index)?;
            set_u64(memory, place, value.0);
        }
        value::MAP => set_entry(guest, container, key(index)?, value)?,
        _ => return Err(expected("an array or a map", container)),
    }
    Ok(Value::NIL)
}

fn set_entry(
    guest: &mut Guest<'_>,
    mut map: Value,
    mut key: Value,
    mut value: Value,
) -> Result<(), Error> {
    let (memory, _) = parts(guest);
    let (n, block) = (u32_at(memory, map.address() + 4), u32_at(memory, map.address() + 8));
    let mut place = entry(memory, block, key);
    let n_items = u32_at(memory, block + 4);
    let is_new = u64_at(memory, place + 8) == 0;
    if is_new && (n + 1) * 8 > n_items * 3 {
        // More than three quarters would be in use.
        [map, key, value] = reserve(guest, 1 + 2 * n_items, [map, key, value])?;
        let new = new_block(guest, 2 * n_items, Value(0))?;
        let (memory, _) = parts(guest);
        let old = u32_at(memory, map.address() + 8);
        for from in (old..old + 8 * n_items).step_by(16) {
            let moved = Value(u64_at(memory, from + 8));
            if moved != Value(0) {
                let to = entry(memory, new, moved);
                memory.copy_within(from as usize + 8..from as usize + 24, to as usize + 8);
            }
        }
        replace_block(memory, map.address(), 0, new);
        place = entry(memory, new, key);
    }
    let (memory, _) = parts(guest);
    set_u64(memory, place + 8, key.0);
    set_u64(memory, place + 16, value.0);
    set_u32(memory, map.address() + 4, n + u32::from(is_new));
    Ok(())
}

/// The keys of a map, in no particular order.
fn keys(guest: &mut Guest<'_>, map: Value) -> Done {
    let n = u32_at(parts(guest).0, check(map, value::MAP, "a map")? + 4);
    let (array, [map]) = new_container(guest, heap::ARRAY, value::ARRAY, n, Value::NIL, [map])?;
    let (memory, _) = parts(guest);
    let (from, mut to) = (u32_at(memory, map.address() + 8), u32_at(memory, array.address() + 8));
    for entry in (from..from + 8 * u32_at(memory, from + 4)).step_by(16) {
        let key = u64_at(memory, entry + 8);
        if key != 0 {
            to += 8;
            set_u64(memory, to, key);
        }
    }
    set_u32(memory, array.address() + 4, n);
    Ok(array)
}

/// A string of the program.
fn constant(guest: &mut Guest<'_>, index: Value) -> Done {
    let constant = guest.data().constant(index.address()).to_owned();
    text(guest, constant.as_bytes())
}

/// A value as `print` writes it.
pub(crate) fn written(memory: &[u8], heap: &Heap, value: Value) -> String {
    let mut out = String::new();
    write(&mut out, memory, heap, value, 0).expect("a string takes any text");
    out
}

fn write(
    out: &mut String,
    memory: &[u8],
    heap: &Heap,
    value: Value,
    depth: u32,
) -> std::fmt::Result {
    if let Some(n) = value.as_number() {
        return write!(out, "{n}");
    }
    let address = value.address();
    match value.tag() {
        value::TEXT => out.write_str(&String::from_utf8_lossy(text_at(memory, value))),
        value::FUNCTION => out.write_str("function"),
        value::ARRAY | value::OBJECT | value::MAP if depth == WRITTEN_DEPTH_MAX => {
            out.write_str("...")
        }
        value::MAP => write!(out, "map of {}", u32_at(memory, address + 4)),
        value::ARRAY => {
            let (length, block) = (u32_at(memory, address + 4), u32_at(memory, address + 8));
            out.write_str("[")?;
            for i in 0..length {
                out.write_str(if i == 0 { "" } else { ", " })?;
                if out.len() > WRITTEN_BYTES_MAX {
                    return out.write_str("...]");
                }
                write(out, memory, heap, Value(u64_at(memory, block + 8 + 8 * i)), depth + 1)?;
            }
            out.write_str("]")
        }
        value::OBJECT => {
            let shape = heap.shape(u32_at(memory, address));
            out.write_str("{")?;
            for (i, &name) in (0..).zip(&shape.fields) {
                let place = field(memory, address, shape, i);
                write!(out, "{}{}: ", if i == 0 { "" } else { ", " }, heap.names[name as usize])?;
                write(out, memory, heap, Value(u64_at(memory, place)), depth + 1)?;
            }
            out.write_str("}")
        }
        _ if value == Value::NIL => out.write_str("nil"),
        _ => write!(out, "{}", value == Value::TRUE),
    }
}

fn string(guest: &mut Guest<'_>, value: Value) -> Done {
    let (memory, heap) = parts(guest);
    let written = written(memory, heap, value);
    text(guest, written.as_bytes())
}

fn print(guest: &mut Guest<'_>, value: Value) -> Done {
    let (memory, heap) = parts(guest);
    let line = written(memory, heap, value);
    heap.output.print(&line).map_err(Error::host)?;
    Ok(Value::NIL)
}

fn number(guest: &mut Guest<'_>, value: Value) -> Done {
    check(value, value::TEXT, "a string")?;
    let (memory, _) = parts(guest);
    let parsed =
        std::str::from_utf8(text_at(memory, value)).ok().and_then(|text| text.trim().parse().ok());
    Ok(parsed.map_or(Value::NIL, Value::number))
}

/// Joins strings; numbers become strings.
fn concat(guest: &mut Guest<'_>, a: Value, b: Value) -> Done {
    let (memory, heap) = parts(guest);
    let mut joined = Vec::new();
    for value in [a, b] {
        match value.tag() {
            value::TEXT => joined.extend_from_slice(text_at(memory, value)),
            _ if value.as_number().is_some() => joined.extend(written(memory, heap, value).bytes()),
            _ => return Err(expected("a string or a number", value)),
        }
    }
    text(guest, &joined)
}

fn order(guest: &mut Guest<'_>, a: Value, b: Value) -> Result<std::cmp::Ordering, Error> {
    let (memory, _) = parts(guest);
    if [a, b].iter().all(|value| value.tag() == value::TEXT) {
        return Ok(text_at(memory, a).cmp(text_at(memory, b)));
    }
    Err(failure(format!("{} cannot be compared with {}", a.kind(), b.kind())))
}

/// The bytes from one index up to another one, exclusively.
fn substring(guest: &mut Guest<'_>, of: Value, from: Value, to: Value) -> Done {
    check(of, value::TEXT, "a string")?;
    let (memory, _) = parts(guest);
    let bytes = text_at(memory, of);
    let bound = |value: Value| {
        let n = value.as_integer().ok_or_else(|| expected("an integer", value))?;
        Ok::<_, Error>((n.max(0) as usize).min(bytes.len()))
    };
    let (from, to) = (bound(from)?, bound(to)?);
    let part = bytes[from..to.max(from)].to_vec();
    text(guest, &part)
}

fn byte(guest: &mut Guest<'_>, of: Value, index: Value) -> Done {
    check(of, value::TEXT, "a string")?;
    let (memory, _) = parts(guest);
    let at = index.as_integer().and_then(|n| usize::try_from(n).ok());
    let byte = at.and_then(|at| text_at(memory, of).get(at));
    Ok(byte.map_or(Value::NIL, |&byte| Value::integer(byte.into())))
}

fn character(guest: &mut Guest<'_>, value: Value) -> Done {
    let character = value.as_integer().and_then(|n| char::from_u32(n as u32));
    let character = character.ok_or_else(|| failure("expected the number of a character"))?;
    text(guest, character.encode_utf8(&mut [0; 4]).as_bytes())
}

/// Raises an error with a value.
fn throw(guest: &mut Guest<'_>, value: Value) -> Done {
    let thrown = guest.data().exports().thrown;
    let reference = reference(guest, value);
    thrown.set(&mut *guest, reference)?;
    let (memory, heap) = parts(guest);
    let message = written(memory, heap, value);
    Err(Error::host(Failure { message, is_thrown: true }))
}

/// Calls a function without arguments, and if that fails, another one with the error.
fn attempt(guest: &mut Guest<'_>, function: Value, handler: Value) -> Done {
    check(handler, value::FUNCTION, "a function")?;
    let handler = Rooted::new(&mut *guest, handler.0);
    let error = match call(guest, function, &[]) {
        Err(error) => error,
        done => return done,
    };
    let value = match &error {
        Error::Host(host) => match host.downcast_ref::<Failure>() {
            Some(Failure { is_thrown: true, .. }) => {
                let thrown = guest.data().exports().thrown;
                returned(guest, thrown.get(&*guest))
            }
            Some(Failure { message, .. }) => text(guest, message.as_bytes())?,
            None => return Err(error),
        },
        // Fuel and deadlines end programs; programs cannot catch them.
        Error::Trap(trap)
            if !matches!(trap.code, TrapCode::StackOverflow | TrapCode::BadSignature) =>
        {
            return Err(error);
        }
        Error::Trap(_) | Error::Limit { .. } => text(guest, message(&error).as_bytes())?,
        _ => return Err(error),
    };
    let handler = Value(handler.bits(&*guest));
    call(guest, handler, &[value])
}

/// The message of an error, without its backtrace.
pub(crate) fn message(error: &Error) -> String {
    match error.trap_code() {
        Some(TrapCode::BadSignature) => "the function takes another number of arguments".to_owned(),
        Some(code) => code.to_string(),
        None => error.to_string(),
    }
}

fn returned(guest: &Guest<'_>, value: Val) -> Value {
    match value {
        Val::Ref(rooted) => Value(rooted.map_or(0, |rooted| rooted.bits(guest))),
        _ => unreachable!("functions return values"),
    }
}

fn call(guest: &mut Guest<'_>, function: Value, args: &[Value]) -> Done {
    let address = check(function, value::FUNCTION, "a function")?;
    let Exports { table, .. } = guest.data().exports();
    let index = u32_at(parts(guest).0, address + 8);
    let Some(Val::FuncRef(Some(func))) = table.get(&*guest, index.into()) else {
        unreachable!("each function is in the table")
    };
    if func.ty(&*guest).params.len() != 1 + args.len() {
        return Err(failure("the function takes another number of arguments"));
    }
    let args =
        [function].iter().chain(args).map(|value| reference(guest, *value)).collect::<Vec<_>>();
    let mut results = [Val::Ref(None)];
    func.call(&mut *guest, &args, &mut results)?;
    let [result] = results;
    Ok(returned(guest, result))
}

/// A value as code has it; the double 0 has the bits of null.
fn reference(guest: &mut Guest<'_>, value: Value) -> Val {
    Val::Ref((value.0 != 0).then(|| Rooted::new(guest, value.0)))
}
