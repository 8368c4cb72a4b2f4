//! The model of a store: its expected contents and the expected ends of calls, as a second, simple
//! implementation.

use std::collections::BTreeMap;

use slotvm::{ExternRef, Func, TrapCode, Val};

use super::world::{ELEMS_MAX, PAGES_MAX, WRITTEN, acts};

/// A value that can be compared.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Value {
    I32(i32),
    I64(i64),
    Func(Option<Func>),
    Ref(Option<ExternRef>),
}

impl Value {
    pub(super) fn of(val: &Val) -> Value {
        match *val {
            Val::I32(value) => Value::I32(value),
            Val::I64(value) => Value::I64(value),
            Val::FuncRef(func) => Value::Func(func),
            Val::ExternRef(object) => Value::Ref(object),
            _ => unreachable!("sequences use no other types"),
        }
    }

    pub(super) fn val(self) -> Val {
        match self {
            Value::I32(value) => Val::I32(value),
            Value::I64(value) => Val::I64(value),
            Value::Func(func) => Val::FuncRef(func),
            Value::Ref(object) => Val::ExternRef(object),
        }
    }

    /// Whether two values are of one type.
    pub(super) fn is_like(self, other: Value) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The expected end of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    Values(Vec<Value>),
    Trap(TrapCode),
    /// Any other error.
    Error,
    /// A panic whose message contains this.
    Panic(&'static str),
}

pub(super) const NONE: End = End::Values(Vec::new());

fn i32(value: i32) -> End {
    End::Values(vec![Value::I32(value)])
}

#[derive(Clone, Debug)]
pub(super) struct Mem {
    pub(super) pages: u32,
    pub(super) max: Option<u32>,
    /// The bytes that are not 0.
    pub(super) bytes: BTreeMap<u64, u8>,
}

impl Mem {
    pub(super) fn has(&self, address: u64, n: u64) -> bool {
        address.saturating_add(n) <= u64::from(self.pages) << 16
    }

    pub(super) fn byte(&self, address: u64) -> u8 {
        self.bytes.get(&address).copied().unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tab {
    pub(super) elems: Vec<Value>,
    pub(super) max: Option<u32>,
    /// The null reference of its type.
    pub(super) null: Value,
}

#[derive(Clone, Debug)]
pub(super) struct Glob {
    pub(super) mutable: bool,
    pub(super) value: Value,
}

/// An instance of the first module.
#[derive(Copy, Clone, Debug)]
pub(super) struct Inst {
    pub(super) mem: usize,
    pub(super) tab: usize,
    pub(super) refs: usize,
}

/// The behaviour of a function.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// The closure that adds.
    Add,
    /// The closure that acts, called by the host.
    Act,
    /// An export of an instance of the first module.
    Main(usize, &'static str),
    /// Reads a byte of a memory.
    Peek(usize),
}

impl Kind {
    /// Zeros of the types of its parameters and results.
    pub(super) fn ty(self) -> (&'static [Value], &'static [Value]) {
        const I: Value = Value::I32(0);
        const L: Value = Value::I64(0);
        const F: Value = Value::Func(None);
        const R: Value = Value::Ref(None);
        match self {
            Kind::Add | Kind::Main(_, "id" | "add" | "through") => (&[L], &[L]),
            Kind::Act | Kind::Peek(_) => (&[I], &[I]),
            Kind::Main(_, "spin" | "trap") => (&[], &[]),
            Kind::Main(_, "div" | "store") => (&[I, I], &[I]),
            Kind::Main(_, "call_at") => (&[I, L], &[L]),
            Kind::Main(_, "get_ref") => (&[I], &[R]),
            Kind::Main(_, "set_ref") => (&[I, R], &[]),
            Kind::Main(_, "get_func") => (&[I], &[F]),
            Kind::Main(_, "set_func") => (&[I, F], &[]),
            Kind::Main(..) => (&[I], &[I]),
        }
    }
}

/// The functions that the first module exports.
pub(super) const MAIN_FUNCS: [&str; 15] = [
    "id",
    "div",
    "load",
    "store",
    "rec",
    "grow",
    "grow_table",
    "call_at",
    "get_ref",
    "set_ref",
    "get_func",
    "set_func",
    "host",
    "add",
    "trap",
];

/// The expected contents of a store.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) mems: Vec<Mem>,
    pub(super) tabs: Vec<Tab>,
    pub(super) globs: Vec<Glob>,
    pub(super) insts: Vec<Inst>,
    /// Instances, including those whose start function has failed.
    pub(super) n_instances: u32,
    /// The limits that the limiter sets.
    pub(super) pages_max: Option<u32>,
    pub(super) elems_max: Option<u32>,
    pub(super) n_acts: u32,
    pub(super) has_foreign: bool,
    /// The functions, by number.
    pub(super) kinds: Vec<(Func, Kind)>,
}

impl Model {
    pub(super) fn kind(&self, func: Func) -> Option<Kind> {
        self.kinds.iter().find(|(known, _)| *known == func).map(|&(_, kind)| kind)
    }

    /// Whether a memory of `current` pages may get `more` pages; a new one has 0.
    pub(super) fn allows_pages(&self, current: u64, more: u64, max: Option<u32>) -> bool {
        let wanted = current + more;
        let limit = u64::from(max.unwrap_or(PAGES_MAX).min(PAGES_MAX));
        let limiter = self.pages_max.is_none_or(|max| wanted <= u64::from(max));
        more == 0 || wanted <= limit && limiter
    }

    pub(super) fn allows_elems(&self, current: u64, more: u64, max: Option<u32>) -> bool {
        let wanted = current + more;
        let limit = u64::from(max.unwrap_or(ELEMS_MAX).min(ELEMS_MAX));
        let limiter = self.elems_max.is_none_or(|max| wanted <= u64::from(max));
        more == 0 || wanted <= limit && limiter
    }

    /// Adds pages. Returns the old number.
    pub(super) fn grow_memory(&mut self, mem: usize, more: u64) -> Option<u32> {
        let Mem { pages, max, .. } = self.mems[mem];
        self.allows_pages(pages.into(), more, max).then(|| {
            self.mems[mem].pages += more as u32;
            pages
        })
    }

    /// Adds elements. Returns the old number.
    pub(super) fn grow_table(&mut self, tab: usize, more: u64, value: Value) -> Option<u32> {
        let (len, max) = (self.tabs[tab].elems.len(), self.tabs[tab].max);
        self.allows_elems(len as u64, more, max).then(|| {
            self.tabs[tab].elems.resize(len + more as usize, value);
            len as u32
        })
    }

    /// Performs a call on the model, and returns its expected end. The arguments have the function's types.
    pub(super) fn call(&mut self, kind: Kind, args: &[Value]) -> End {
        let int = |i: usize| match args[i] {
            Value::I32(value) => value,
            _ => unreachable!("arguments are of the types of the function"),
        };
        let (inst, name) = match kind {
            Kind::Add => return add(args[0]),
            Kind::Act => return self.act(int(0), None),
            Kind::Peek(mem) => return self.load(mem, int(0)),
            Kind::Main(inst, name) => (inst, name),
        };
        let Inst { mem, tab, refs } = self.insts[inst];
        let at = || int(0) as u32 as usize;
        match name {
            "id" | "through" => End::Values(vec![args[0]]),
            "add" => add(args[0]),
            "div" => div(int(0), int(1)),
            "load" => self.load(mem, int(0)),
            "store" => {
                let address = u64::from(int(0) as u32);
                if !self.mems[mem].has(address, 1) {
                    return End::Trap(TrapCode::MemoryOutOfBounds);
                }
                self.mems[mem].bytes.insert(address, int(1) as u8);
                i32(int(1))
            }
            "rec" if (0..=10).contains(&int(0)) => i32(int(0)),
            "rec" => End::Trap(TrapCode::StackOverflow),
            "grow" => {
                let old = self.grow_memory(mem, u64::from(int(0) as u32));
                i32(old.map_or(-1, |old| old as i32))
            }
            "grow_table" => {
                let old = self.grow_table(tab, u64::from(int(0) as u32), Value::Func(None));
                i32(old.map_or(-1, |old| old as i32))
            }
            "call_at" => match self.tabs[tab].elems.get(at()) {
                None => End::Trap(TrapCode::TableOutOfBounds),
                Some(Value::Func(Some(func))) => {
                    let kind = self.kind(*func).expect("the model knows all functions");
                    match kind.ty() {
                        ([Value::I64(_)], [Value::I64(_)]) => self.call(kind, &args[1..]),
                        _ => End::Trap(TrapCode::BadSignature),
                    }
                }
                Some(_) => End::Trap(TrapCode::IndirectCallToNull),
            },
            "get_ref" | "get_func" => {
                let tab = if name == "get_ref" { refs } else { tab };
                match self.tabs[tab].elems.get(at()) {
                    Some(&value) => End::Values(vec![value]),
                    None => End::Trap(TrapCode::TableOutOfBounds),
                }
            }
            "set_ref" | "set_func" => {
                let tab = if name == "set_ref" { refs } else { tab };
                match self.tabs[tab].elems.get_mut(at()) {
                    Some(elem) => *elem = args[1],
                    None => return End::Trap(TrapCode::TableOutOfBounds),
                }
                NONE
            }
            "host" => self.act(int(0), Some(inst)),
            "trap" => End::Trap(TrapCode::Unreachable),
            _ => unreachable!("unknown function {name}"),
        }
    }

    fn load(&self, mem: usize, address: i32) -> End {
        let address = u64::from(address as u32);
        match self.mems[mem].has(address, 1) {
            true => i32(self.mems[mem].byte(address).into()),
            false => End::Trap(TrapCode::MemoryOutOfBounds),
        }
    }

    /// The outcome of the host function, whether an instance or the host calls it.
    pub(super) fn act(&mut self, what: i32, inst: Option<usize>) -> End {
        self.n_acts += 1;
        match what {
            acts::FAIL | acts::ADDRESS_SPACE => End::Error,
            acts::PANIC => End::Panic(super::world::PLANNED),
            acts::TRAP => End::Trap(TrapCode::IntegerOverflow),
            acts::FOREIGN if self.has_foreign => End::Panic(super::WRONG_STORE),
            acts::FOREIGN => i32(-2),
            acts::INTERRUPT => i32(0),
            acts::GROW | acts::REENTER | acts::REENTER_TRAP | acts::WRITE | acts::NESTED => {
                let Some(inst) = inst else { return i32(-2) };
                self.act_on(what, inst)
            }
            _ => i32(what),
        }
    }

    fn act_on(&mut self, what: i32, inst: usize) -> End {
        let mem = self.insts[inst].mem;
        match what {
            acts::GROW => i32(self.grow_memory(mem, 1).map_or(-1, |old| old as i32)),
            acts::WRITE => {
                self.mems[mem].bytes.insert(WRITTEN.0 as u64, WRITTEN.1);
                i32(WRITTEN.1.into())
            }
            acts::REENTER => div(6, 1),
            acts::REENTER_TRAP => div(6, 0),
            _ => {
                self.n_acts += 1;
                div(6, 1)
            }
        }
    }
}

fn add(value: Value) -> End {
    match value {
        Value::I64(value) => End::Values(vec![Value::I64(value.wrapping_add(1))]),
        _ => unreachable!("it has the type of the function"),
    }
}

fn div(a: i32, b: i32) -> End {
    match (a, b) {
        (_, 0) => End::Trap(TrapCode::IntegerDivisionByZero),
        (i32::MIN, -1) => End::Trap(TrapCode::IntegerOverflow),
        _ => i32(a / b),
    }
}
