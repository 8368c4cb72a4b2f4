//! The functions of the host: slow paths of compiled code, and the library.
//!
//! They get the bits of values, which are valid until something is allocated. What is used after that is [`Kept`].

use std::fmt::Write;

use slotvm::{Caller, Error, Linker, Rooted, TrapCode, Val};

use crate::heap::{
    self, Exports, Failure, Heap, allocate, failure, parts, set_u64, text, text_at, u32_at, u64_at,
};
use crate::value::{self, Value};

type Guest<'a> = Caller<'a, Heap>;

/// Arrays and objects within each other are written so deep.
const WRITTEN_DEPTH_MAX: u32 = 4;
/// Entries of a new map.
const MAP_ENTRIES_MIN: u32 = 4;

pub(crate) fn link(linker: &mut Linker<Heap>) -> Result<(), Error> {
    linker.func_wrap("host", "collect", |mut guest: Guest<'_>, bytes: u32| {
        crate::collector::collect(&mut guest, bytes)
    })?;
    linker.func_wrap("host", "text", |mut guest: Guest<'_>, index: u32| {
        let constant = guest.data().constant(index).to_owned();
        text(&mut guest, constant.as_bytes()).map(|text| text.0)
    })?;
    linker.func_wrap("host", "get_field", |mut guest: Guest<'_>, object: u64, site: u32| {
        get_field(&mut guest, Value(object), site).map(|value| value.0)
    })?;
    linker.func_wrap(
        "host",
        "set_field",
        |mut guest: Guest<'_>, object: u64, site: u32, value: u64| {
            set_field(&mut guest, Value(object), site, Value(value))
        },
    )?;
    linker.func_wrap(
        "host",
        "set_index",
        |mut guest: Guest<'_>, container: u64, index: u64, value: u64| {
            set_index(&mut guest, Value(container), Value(index), Value(value))
        },
    )?;
    linker.func_wrap("host", "push", |mut guest: Guest<'_>, array: u64, value: u64| {
        push(&mut guest, Value(array), Value(value))
    })?;
    linker.func_wrap("host", "bound", |value: u64| {
        let bound = Value(value).as_integer();
        bound.ok_or_else(|| {
            failure(format!("expected an integer of 32 bits, found {}", Value(value).kind()))
        })
    })?;
    linker.func_wrap("host", "no_number", |value: u64| {
        Err::<(), _>(expected("a number", Value(value)))
    })?;
    linker.func_wrap("host", "no_function", |value: u64| {
        Err::<(), _>(expected("a function", Value(value)))
    })?;
    linker.func_wrap("host", "less", |mut guest: Guest<'_>, a: u64, b: u64| {
        order(&mut guest, Value(a), Value(b)).map(|order| i32::from(order.is_lt()))
    })?;
    linker.func_wrap("host", "less_or_equal", |mut guest: Guest<'_>, a: u64, b: u64| {
        order(&mut guest, Value(a), Value(b)).map(|order| i32::from(order.is_le()))
    })?;
    linker.func_wrap("host", "equal", |a: u64, b: u64| {
        match [a, b].map(|bits| Value(bits).as_number()) {
            [Some(a), Some(b)] => i32::from(a == b),
            _ => i32::from(a == b),
        }
    })?;
    linker.func_wrap("host", "map", |mut guest: Guest<'_>| new_map(&mut guest).map(|map| map.0))?;
    linker.func_wrap("host", "clock", |guest: Guest<'_>| {
        Value::number(guest.data().start.elapsed().as_secs_f64()).0
    })?;
    let one: [(&str, fn(&mut Guest<'_>, Value) -> Result<Value, Error>); 9] = [
        ("len", len),
        ("floor", floor),
        ("pop", pop),
        ("keys", keys),
        ("print", print),
        ("str", string),
        ("num", number),
        ("char", character),
        ("error", throw),
    ];
    for (name, function) in one {
        linker.func_wrap("host", name, move |mut guest: Guest<'_>, a: u64| {
            function(&mut guest, Value(a)).map(|value| value.0)
        })?;
    }
    let two: [(&str, fn(&mut Guest<'_>, Value, Value) -> Result<Value, Error>); 4] =
        [("get_index", get_index), ("concat", concat), ("byte", byte), ("try", attempt)];
    for (name, function) in two {
        linker.func_wrap("host", name, move |mut guest: Guest<'_>, a: u64, b: u64| {
            function(&mut guest, Value(a), Value(b)).map(|value| value.0)
        })?;
    }
    linker.func_wrap("host", "substring", |mut guest: Guest<'_>, a: u64, from: u64, to: u64| {
        substring(&mut guest, Value(a), Value(from), Value(to)).map(|value| value.0)
    })?;
    Ok(())
}

/// A value that is used after something is allocated.
#[derive(Copy, Clone)]
struct Kept(Value, Option<Rooted>);

impl Kept {
    fn new(guest: &mut Guest<'_>, value: Value) -> Kept {
        Kept(value, value.is_in_heap().then(|| Rooted::new(guest, value.0)))
    }

    fn get(self, guest: &Guest<'_>) -> Value {
        self.1.map_or(self.0, |rooted| Value(rooted.bits(guest)))
    }
}

fn expected(what: &str, found: Value) -> Error {
    failure(format!("expected {what}, found {}", found.kind()))
}

fn check(value: Value, tag: u64, what: &str) -> Result<u32, Error> {
    if value.tag() == tag { Ok(value.address()) } else { Err(expected(what, value)) }
}

/// Where a field of an object is.
fn field(memory: &[u8], object: u32, room: u32, index: u32) -> u32 {
    match index.checked_sub(room) {
        None => object + 16 + 8 * index,
        Some(index) => Value(u64_at(memory, object + 8)).address() + 8 + 8 * index,
    }
}

/// Finds a field, and has the code that asks remember where it is. The result is its number.
fn find_field(guest: &mut Guest<'_>, object: u32, site: u32) -> Result<Option<u32>, Error> {
    let (memory, heap) = parts(guest);
    let number = u32_at(memory, object);
    let shape = heap.shape(number);
    let site = &heap.sites[site as usize];
    let Some(index) = shape.fields.iter().position(|&field| field == site.name) else {
        return Ok(None);
    };
    if let Some([shape_cache, offset]) = site.caches.filter(|_| index < shape.room as usize) {
        shape_cache.set(&mut *guest, Val::I32(number as i32))?;
        offset.set(&mut *guest, Val::I32(8 * index as i32))?;
    }
    Ok(Some(index as u32))
}

fn get_field(guest: &mut Guest<'_>, object: Value, site: u32) -> Result<Value, Error> {
    let object = check(object, value::OBJECT, "an object")?;
    let Some(index) = find_field(guest, object, site)? else { return Ok(Value::NIL) };
    let (memory, heap) = parts(guest);
    let room = heap.shape(u32_at(memory, object)).room;
    Ok(Value(u64_at(memory, field(memory, object, room, index))))
}

fn set_field(guest: &mut Guest<'_>, object: Value, site: u32, value: Value) -> Result<(), Error> {
    let address = check(object, value::OBJECT, "an object")?;
    let found = find_field(guest, address, site)?;
    let (memory, heap) = parts(guest);
    let shape = u32_at(memory, address);
    let room = heap.shape(shape).room;
    if let Some(index) = found {
        let place = field(memory, address, room, index);
        set_u64(memory, place, value.0);
        return Ok(());
    }
    let index = heap.shape(shape).fields.len() as u32;
    let shape = heap.extend(shape, heap.sites[site as usize].name)?;
    let (object, value) = (Kept::new(guest, object), Kept::new(guest, value));
    if index >= room && (index - room).is_multiple_of(8) {
        // The block of more fields is full, or there is none.
        let block = new_block(guest, index - room + 8)?;
        let object = object.get(guest).address();
        let (memory, _) = parts(guest);
        let old = Value(u64_at(memory, object + 8));
        if old != Value::NIL {
            let from = old.address() as usize + 8;
            memory.copy_within(from..from + 8 * (index - room) as usize, block as usize + 8);
        }
        set_u64(memory, object + 8, Value::tagged(value::FUNCTION, block).0);
    }
    let (object, value) = (object.get(guest).address(), value.get(guest));
    let (memory, _) = parts(guest);
    heap::set_u32(memory, object, shape);
    let place = field(memory, object, room, index);
    set_u64(memory, place, value.0);
    Ok(())
}

/// Allocates a block of `nil`s.
fn new_block(guest: &mut Guest<'_>, n_items: u32) -> Result<u32, Error> {
    filled_block(guest, n_items, Value::NIL)
}

fn filled_block(guest: &mut Guest<'_>, n_items: u32, item: Value) -> Result<u32, Error> {
    let address = allocate(guest, n_items.saturating_add(1))?;
    let (memory, _) = parts(guest);
    set_u64(memory, address, u64::from(n_items) << 32 | u64::from(heap::BLOCK));
    let items = &mut memory[address as usize + 8..][..8 * n_items as usize];
    items.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&item.0.to_le_bytes()));
    Ok(address)
}

/// Allocates an array or a map with its block.
fn new_container(
    guest: &mut Guest<'_>,
    kind: u32,
    tag: u64,
    n_items: u32,
    item: Value,
) -> Result<Value, Error> {
    let block = filled_block(guest, n_items, item)?;
    let block = Kept::new(guest, Value::tagged(value::FUNCTION, block));
    let address = allocate(guest, 2)?;
    let block = block.get(guest);
    let (memory, _) = parts(guest);
    set_u64(memory, address, kind.into());
    set_u64(memory, address + 8, block.0);
    Ok(Value::tagged(tag, address))
}

fn push(guest: &mut Guest<'_>, array: Value, value: Value) -> Result<(), Error> {
    let address = check(array, value::ARRAY, "an array")?;
    let (memory, _) = parts(guest);
    let (length, mut block) = (u32_at(memory, address + 4), u32_at(memory, address + 8));
    let (array, value) = (Kept::new(guest, array), Kept::new(guest, value));
    if length == u32_at(parts(guest).0, block + 4) {
        let new = new_block(guest, (length * 2).max(4))?;
        let address = array.get(guest).address();
        let (memory, _) = parts(guest);
        block = u32_at(memory, address + 8);
        memory.copy_within(block as usize + 8..(block + 8 + 8 * length) as usize, new as usize + 8);
        set_u64(memory, address + 8, Value::tagged(value::FUNCTION, new).0);
        block = new;
    }
    let (address, value) = (array.get(guest).address(), value.get(guest));
    let (memory, _) = parts(guest);
    set_u64(memory, block + 8 + 8 * length, value.0);
    heap::set_u32(memory, address + 4, length + 1);
    Ok(())
}

fn pop(guest: &mut Guest<'_>, array: Value) -> Result<Value, Error> {
    let address = check(array, value::ARRAY, "an array")?;
    let (memory, _) = parts(guest);
    let Some(last) = u32_at(memory, address + 4).checked_sub(1) else { return Ok(Value::NIL) };
    let place = u32_at(memory, address + 8) + 8 + 8 * last;
    heap::set_u32(memory, address + 4, last);
    let popped = Value(u64_at(memory, place));
    set_u64(memory, place, Value::NIL.0);
    Ok(popped)
}

fn len(guest: &mut Guest<'_>, of: Value) -> Result<Value, Error> {
    if !matches!(of.tag(), value::TEXT | value::ARRAY | value::MAP) {
        return Err(expected("a string, an array or a map", of));
    }
    Ok(Value::number(u32_at(parts(guest).0, of.address() + 4).into()))
}

fn floor(_: &mut Guest<'_>, number: Value) -> Result<Value, Error> {
    Ok(Value::number(number.as_number().ok_or_else(|| expected("a number", number))?.floor()))
}

fn new_map(guest: &mut Guest<'_>) -> Result<Value, Error> {
    new_container(guest, heap::MAP, value::MAP, 2 * MAP_ENTRIES_MIN, Value(0))
}

/// The key as maps have it. Numbers are equal if their values are.
fn key(value: Value) -> Result<Value, Error> {
    match value.as_number() {
        Some(n) if n.is_nan() => Err(failure("NaN is no key")),
        // Not -0, either.
        Some(n) => Ok(Value::number(n + 0.0)),
        None if matches!(value.tag(), value::TEXT) => Ok(value),
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

fn get_index(guest: &mut Guest<'_>, container: Value, index: Value) -> Result<Value, Error> {
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

fn set_index(
    guest: &mut Guest<'_>,
    container: Value,
    index: Value,
    value: Value,
) -> Result<(), Error> {
    let (memory, _) = parts(guest);
    match container.tag() {
        value::ARRAY => {
            let place = element(memory, container, index)?;
            set_u64(memory, place, value.0);
        }
        value::MAP => set_entry(guest, container, key(index)?, value)?,
        _ => return Err(expected("an array or a map", container)),
    }
    Ok(())
}

fn set_entry(guest: &mut Guest<'_>, map: Value, key: Value, value: Value) -> Result<(), Error> {
    let (memory, _) = parts(guest);
    let (n, block) = (u32_at(memory, map.address() + 4), u32_at(memory, map.address() + 8));
    let place = entry(memory, block, key);
    if u64_at(memory, place + 8) != 0 {
        set_u64(memory, place + 16, value.0);
        return Ok(());
    }
    let n_items = u32_at(memory, block + 4);
    let [map, key, value] = [map, key, value].map(|value| Kept::new(guest, value));
    if (n + 1) * 8 > n_items * 3 {
        // More than three quarters would be in use.
        let new = filled_block(guest, 2 * n_items, Value(0))?;
        let map = map.get(guest).address();
        let (memory, _) = parts(guest);
        let old = u32_at(memory, map + 8);
        for from in (old..old + 8 * n_items).step_by(16) {
            let moved = Value(u64_at(memory, from + 8));
            if moved != Value(0) {
                let to = entry(memory, new, moved);
                memory.copy_within(from as usize + 8..from as usize + 24, to as usize + 8);
            }
        }
        set_u64(memory, map + 8, Value::tagged(value::FUNCTION, new).0);
    }
    let [map, key, value] = [map, key, value].map(|kept| kept.get(guest));
    let (memory, _) = parts(guest);
    let place = entry(memory, u32_at(memory, map.address() + 8), key);
    set_u64(memory, place + 8, key.0);
    set_u64(memory, place + 16, value.0);
    heap::set_u32(memory, map.address() + 4, n + 1);
    Ok(())
}

/// The keys of a map, in no particular order.
fn keys(guest: &mut Guest<'_>, map: Value) -> Result<Value, Error> {
    let address = check(map, value::MAP, "a map")?;
    let n = u32_at(parts(guest).0, address + 4);
    let map = Kept::new(guest, map);
    let array = new_container(guest, heap::ARRAY, value::ARRAY, n, Value::NIL)?;
    let map = map.get(guest).address();
    let (memory, _) = parts(guest);
    let (from, mut to) = (u32_at(memory, map + 8), u32_at(memory, array.address() + 8));
    for entry in (from..from + 8 * u32_at(memory, from + 4)).step_by(16) {
        let key = u64_at(memory, entry + 8);
        if key != 0 {
            to += 8;
            set_u64(memory, to, key);
        }
    }
    heap::set_u32(memory, array.address() + 4, n);
    Ok(array)
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
            let block = u32_at(memory, address + 8);
            for i in 0..u32_at(memory, address + 4) {
                out.write_str(if i == 0 { "[" } else { ", " })?;
                write(out, memory, heap, Value(u64_at(memory, block + 8 + 8 * i)), depth + 1)?;
            }
            out.write_str(if u32_at(memory, address + 4) == 0 { "[]" } else { "]" })
        }
        value::OBJECT => {
            let shape = u32_at(memory, address);
            out.write_str("{")?;
            for (i, name) in (0..).zip(heap.names_of(shape)) {
                let at = field(memory, address, heap.shape(shape).room, i);
                write!(out, "{}{name}: ", if i == 0 { "" } else { ", " })?;
                write(out, memory, heap, Value(u64_at(memory, at)), depth + 1)?;
            }
            out.write_str("}")
        }
        _ if value == Value::NIL => out.write_str("nil"),
        _ => write!(out, "{}", value == Value::TRUE),
    }
}

fn string(guest: &mut Guest<'_>, value: Value) -> Result<Value, Error> {
    let (memory, heap) = parts(guest);
    let written = written(memory, heap, value);
    text(guest, written.as_bytes())
}

fn print(guest: &mut Guest<'_>, value: Value) -> Result<Value, Error> {
    let (memory, heap) = parts(guest);
    let line = written(memory, heap, value);
    heap.output.print(&line).map_err(Error::host)?;
    Ok(Value::NIL)
}

fn number(guest: &mut Guest<'_>, value: Value) -> Result<Value, Error> {
    check(value, value::TEXT, "a string")?;
    let (memory, _) = parts(guest);
    let parsed =
        std::str::from_utf8(text_at(memory, value)).ok().and_then(|text| text.trim().parse().ok());
    Ok(parsed.map_or(Value::NIL, Value::number))
}

/// Joins strings; numbers become strings.
fn concat(guest: &mut Guest<'_>, a: Value, b: Value) -> Result<Value, Error> {
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
fn substring(guest: &mut Guest<'_>, of: Value, from: Value, to: Value) -> Result<Value, Error> {
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

fn byte(guest: &mut Guest<'_>, of: Value, index: Value) -> Result<Value, Error> {
    check(of, value::TEXT, "a string")?;
    let (memory, _) = parts(guest);
    let at = index.as_integer().and_then(|n| usize::try_from(n).ok());
    let byte = at.and_then(|at| text_at(memory, of).get(at));
    Ok(byte.map_or(Value::NIL, |&byte| Value::integer(byte.into())))
}

fn character(guest: &mut Guest<'_>, value: Value) -> Result<Value, Error> {
    let character = value.as_integer().and_then(|n| char::from_u32(n as u32));
    let character = character.ok_or_else(|| failure("expected the number of a character"))?;
    text(guest, character.encode_utf8(&mut [0; 4]).as_bytes())
}

/// Raises an error with a value.
fn throw(guest: &mut Guest<'_>, value: Value) -> Result<Value, Error> {
    let thrown = guest.data().exports().thrown;
    let reference = reference(guest, value);
    thrown.set(&mut *guest, reference)?;
    let (memory, heap) = parts(guest);
    let message = written(memory, heap, value);
    Err(Error::host(Failure { message, is_thrown: true }))
}

/// Calls a function without arguments, and if that fails, another one with the error.
fn attempt(guest: &mut Guest<'_>, function: Value, handler: Value) -> Result<Value, Error> {
    let handler = Kept::new(guest, handler);
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
        // What ends programs from outside is not for them.
        _ if matches!(
            error.trap_code(),
            Some(TrapCode::StackOverflow | TrapCode::BadSignature)
        ) =>
        {
            let message = message(&error);
            text(guest, message.as_bytes())?
        }
        _ => return Err(error),
    };
    let handler = handler.get(guest);
    call(guest, handler, &[value])
}

/// What is wrong, without the backtrace.
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

fn call(guest: &mut Guest<'_>, function: Value, args: &[Value]) -> Result<Value, Error> {
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
