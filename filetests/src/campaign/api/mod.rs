//! Any bytes as a sequence of calls of the embedding API, on several stores of one engine.
//!
//! A model (`model`) of each store says how every call has to end: with which values, with which trap, with an
//! error, or, where the documentation says so, with a panic. At last everything in the stores is compared with
//! the models. Handles of all stores, of those too that are gone, are in one pool, and any of them may be
//! given to any store.

mod handles;
mod model;
mod world;

use std::time::Duration;

use slotvm::{
    Error, ExternRef, Func, Global, GlobalType, Instance, Memory, MemoryType, Module, Store,
    StoreLimitsBuilder, Table, TableType, TrapCode, ValType,
};

use super::Verdict;
use crate::choices::Choices;
use crate::seeds::quietly;
use handles::{Handles, Held};
use model::{End, Glob, Inst, Kind, MAIN_FUNCS, Mem, Model, NONE, Tab, Value};
use world::{Data, EPOCHS, FUEL, INSTANCES_MAX, WORLDS, World, act, acts};

const STORES: usize = 3;
/// Calls in a sequence.
const OPS_MAX: usize = 60;
const WRONG_STORE: &str = "object used with the wrong store";

/// Runs a sequence of calls.
///
/// # Errors
/// The call that ends otherwise than the model says.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let mut choices = Choices::new(bytes);
    let shared = &WORLDS[choices.below(WORLDS.len())];
    // Few sequences have an engine of their own, which their stores outlive.
    let own = choices.percent(1).then(|| world::world(choices.below(WORLDS.len())));
    let mut run = Run::new(own.as_ref().unwrap_or(shared));
    let mut n = 0;
    while n < OPS_MAX && !choices.is_exhausted() {
        run.step(&mut choices).map_err(|error| format!("call {n}: {error}"))?;
        n += 1;
    }
    run.compare_all()?;
    Ok(if n < 2 { Verdict::Loaded } else { Verdict::Accepted })
}

/// A store and its model.
struct Room {
    /// Which of all stores of the sequence it is.
    id: usize,
    store: Store<Data>,
    model: Model,
}

struct Run<'w> {
    world: &'w World,
    rooms: Vec<Room>,
    n_stores: usize,
    handles: Handles,
}

impl<'w> Run<'w> {
    fn new(world: &'w World) -> Run<'w> {
        let mut run = Run { world, rooms: Vec::new(), n_stores: 0, handles: Handles::default() };
        for _ in 0..STORES {
            let room = run.room();
            run.rooms.push(room);
        }
        run
    }

    /// A new store.
    fn room(&mut self) -> Room {
        let limits = StoreLimitsBuilder::new().build();
        let mut store = Store::new(&self.world.engine, Data { limits, n_acts: 0, foreign: None });
        store.limiter(|data| &mut data.limits);
        store.set_epoch_deadline(EPOCHS);
        self.n_stores += 1;
        let mut room = Room { id: self.n_stores, store, model: Model::default() };
        refuel(&mut room.store, FUEL);
        room
    }

    /// One call.
    fn step(&mut self, choices: &mut Choices<'_>) -> Result<(), String> {
        let at = choices.below(STORES);
        match choices.below(24) {
            0 | 1 => self.instantiate_main(at, choices),
            2 => self.instantiate_user(at, choices),
            3 => self.instantiate_starts(at, choices),
            4..=9 => self.call(at, choices),
            10 => self.run_out(at, choices),
            11 => self.memory(at, choices),
            12 => self.access(at, choices),
            13 | 14 => self.table(at, choices),
            15 | 16 => self.global(at, choices),
            17 => self.make(at, choices),
            18 => self.limit(at, choices),
            19 => self.replace_store(at, choices),
            20 => self.typed(at, choices),
            21 => self.module(choices),
            22 => self.reference(at, choices),
            _ => self.host_func(at, choices),
        }
    }

    /// Any value; of a reference, one of any store.
    fn value(&self, like: Option<Value>, choices: &mut Choices<'_>) -> Value {
        match like {
            Some(Value::I32(_)) => Value::I32(choices.pick(&[
                0,
                1,
                2,
                3,
                5,
                8,
                33,
                -1,
                65_535,
                65_536,
                i32::MIN,
                99_999,
            ])),
            Some(Value::I64(_)) => Value::I64(choices.bits() as i64 >> choices.below(64)),
            Some(Value::Func(_)) => Value::Func(self.handles.funcs.any(choices).map(|f| f.it)),
            Some(Value::Ref(_)) => Value::Ref(self.handles.refs.any(choices).map(|r| r.it)),
            None => {
                let zeros = [Value::I32(0), Value::I64(0), Value::Func(None), Value::Ref(None)];
                self.value(Some(choices.pick(&zeros)), choices)
            }
        }
    }

    /// Arguments for a function, mostly of the right types and store.
    fn args(&self, kind: Kind, at: usize, choices: &mut Choices<'_>) -> Vec<Value> {
        let is_wild = choices.percent(10);
        let mut args: Vec<Value> = Vec::new();
        for &like in kind.ty().0 {
            let mut value = self.value(Some(like), choices);
            if !is_wild && !self.is_of(value, self.rooms[at].id) {
                value = like;
            }
            args.push(value);
        }
        match (kind, args.as_mut_slice()) {
            (Kind::Main(_, "rec"), [n]) => *n = Value::I32(choices.pick(&[0, 10, 100_000])),
            (Kind::Main(_, "host") | Kind::Act, [n]) => {
                *n = Value::I32(choices.below(acts::N + 1) as i32);
            }
            _ => {}
        }
        if choices.percent(4) {
            args.pop();
        } else if choices.percent(4) {
            args.push(self.value(None, choices));
        }
        args
    }

    /// Whether a value can be given to a store.
    fn is_of(&self, value: Value, room: usize) -> bool {
        match value {
            Value::Func(Some(func)) => self.handles.funcs.is_of(func, room),
            Value::Ref(Some(object)) => self.handles.refs.is_of(object, room),
            _ => true,
        }
    }

    // --- Instances -----------------------------------------------------------------------------------

    fn instantiate_main(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let by_linker = choices.percent(60);
        let foreign = (!by_linker).then(|| self.handles.funcs.any(choices)).flatten();
        let world = self.world;
        let Room { id, store, model } = &mut self.rooms[at];
        let fits = model.n_instances < INSTANCES_MAX
            && model.allows_pages(0, 1, Some(4))
            && model.allows_elems(0, 3, Some(20));
        let mut expected = if fits { NONE } else { End::Error };
        let found = quietly(|| match foreign {
            None => world.linker.instantiate(&mut *store, &world.main),
            // As an import of the type of the first one, which it may not have.
            Some(add) => {
                let act = Func::wrap(&mut *store, act)?;
                Instance::new(&mut *store, &world.main, &[add.it.into(), act.into()])
            }
        });
        if let Some(add) = foreign {
            if add.room != *id {
                expected = End::Panic(WRONG_STORE);
            } else if add.kind != Kind::Add {
                let is_like = add.kind.ty() == Kind::Add.ty();
                // The model knows no other function in this place.
                return if is_like { Ok(()) } else { end("Instance::new", found, &End::Error) };
            }
        }
        let instance = match ended("instantiate", found, &expected)? {
            Some(instance) => instance,
            None => return Ok(()),
        };
        model.n_instances += 1;
        self.add_main(at, instance)
    }

    /// Makes handles of all that an instance of the first module exports.
    fn add_main(&mut self, at: usize, instance: Instance) -> Result<(), String> {
        let Room { id, store, model } = &mut self.rooms[at];
        let inst = model.insts.len();
        let (mem, tab) = (model.mems.len(), model.tabs.len());
        model.insts.push(Inst { mem, tab, refs: tab + 1 });
        model.mems.push(Mem { pages: 1, max: Some(4), bytes: Default::default() });
        let none = "an export is missing";
        for name in MAIN_FUNCS {
            let func = instance.get_func(&*store, name).ok_or(none)?;
            model.kinds.push((func, Kind::Main(inst, name)));
            self.handles.funcs.add(*id, Kind::Main(inst, name), func);
        }
        let func = |name| Value::Func(instance.get_func(&*store, name));
        let elems = vec![func("id"), func("div"), Value::Func(None)];
        model.tabs.push(Tab { elems, max: Some(20), null: Value::Func(None) });
        let elems = vec![Value::Ref(None); 2];
        model.tabs.push(Tab { elems, max: Some(6), null: Value::Ref(None) });
        model.globs.push(Glob { mutable: true, value: Value::I64(5) });
        model.globs.push(Glob { mutable: false, value: Value::I32(42) });
        let n = model.globs.len();
        self.handles.mems.add(*id, mem, instance.get_memory(&*store, "m").ok_or(none)?);
        self.handles.tabs.add(*id, tab, instance.get_table(&*store, "t").ok_or(none)?);
        self.handles.tabs.add(*id, tab + 1, instance.get_table(&*store, "x").ok_or(none)?);
        self.handles.globs.add(*id, n - 2, instance.get_global(&*store, "g").ok_or(none)?);
        self.handles.globs.add(*id, n - 1, instance.get_global(&*store, "c").ok_or(none)?);
        self.handles.spins.add(*id, (), instance.get_func(&*store, "spin").ok_or(none)?);
        Ok(())
    }

    fn instantiate_user(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let handles = &self.handles;
        let (Some(mem), Some(tab)) = (handles.mems.any(choices), handles.tabs.any(choices)) else {
            return Ok(());
        };
        let (Some(glob), Some(func)) = (handles.globs.any(choices), handles.funcs.any(choices))
        else {
            return Ok(());
        };
        let world = self.world;
        let Room { id, store, model } = &mut self.rooms[at];
        let imports = [mem.it.into(), tab.it.into(), glob.it.into(), func.it.into()];
        let is_here = [mem.room, tab.room, glob.room, func.room].iter().all(|room| room == id);
        let fits = is_here
            && model.n_instances < INSTANCES_MAX
            && model.mems[mem.kind].pages >= 1
            && model.tabs[tab.kind].null == Value::Func(None)
            && !model.tabs[tab.kind].elems.is_empty()
            && matches!(model.globs[glob.kind], Glob { mutable: true, value: Value::I64(_) })
            && func.kind.ty() == Kind::Add.ty();
        let expected = match (is_here, fits) {
            (false, _) => End::Panic(WRONG_STORE),
            (true, true) => NONE,
            (true, false) => End::Error,
        };
        let found = quietly(|| Instance::new(&mut *store, &world.user, &imports));
        let Some(instance) = ended("Instance::new", found, &expected)? else { return Ok(()) };
        model.n_instances += 1;
        model.mems[mem.kind].bytes.insert(70, b'x');
        if let Value::I64(value) = &mut model.globs[glob.kind].value {
            *value = value.wrapping_add(1);
        }
        let exports = [("peek", Kind::Peek(mem.kind)), ("through", func.kind)];
        for (name, kind) in exports {
            let func = instance.get_func(&*store, name).ok_or("an export is missing")?;
            model.kinds.push((func, kind));
            self.handles.funcs.add(*id, kind, func);
        }
        Ok(())
    }

    /// The start function runs once, whatever the host does.
    fn instantiate_starts(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let what = match choices.below(acts::N + 1) as i32 {
            acts::ADDRESS_SPACE => acts::FAIL,
            what => what,
        };
        let world = self.world;
        let Room { store, model, .. } = &mut self.rooms[at];
        let made = quietly(|| {
            let act = Func::wrap(&mut *store, act)?;
            let ty = GlobalType { ty: ValType::I64, mutable: true };
            let count = Global::new(&mut *store, ty, Value::I64(0).val())?;
            let ty = GlobalType { ty: ValType::I32, mutable: false };
            let what = Global::new(&mut *store, ty, Value::I32(what).val())?;
            Ok::<_, Error>((act, count, what))
        })?;
        let (act, count, what_global) = made.map_err(|error| error.to_string())?;
        let fits = model.n_instances < INSTANCES_MAX;
        let mut expected = End::Error;
        if fits {
            model.n_instances += 1;
            expected = match model.act(what, None) {
                End::Values(_) => NONE,
                end => end,
            };
        }
        let imports = [act.into(), count.into(), what_global.into()];
        let found = quietly(|| Instance::new(&mut *store, &world.starts, &imports));
        ended("Instance::new with a start function", found, &expected)?;
        let n = Value::of(&count.get(&*store));
        let runs = Value::I64(i64::from(fits));
        equal("runs of the start function", &n, &runs)
    }

    // --- Calls ---------------------------------------------------------------------------------------

    fn call(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        // Mostly a function of the store.
        let func = match choices.percent(92) {
            true => self.handles.funcs.any_of(self.rooms[at].id, choices),
            false => self.handles.funcs.any(choices),
        };
        let Some(Held { room, kind, it: func }) = func else { return Ok(()) };
        let args = self.args(kind, at, choices);
        let n_results = kind.ty().1.len() + usize::from(choices.percent(3));
        let id = self.rooms[at].id;
        let is_here = args.iter().all(|&arg| self.is_of(arg, id));
        let Room { store, model, .. } = &mut self.rooms[at];
        let (params, results) = kind.ty();
        let fits = args.len() == params.len()
            && args.iter().zip(params).all(|(arg, &param)| arg.is_like(param))
            && n_results == results.len();
        let expected = if room != id {
            End::Panic(WRONG_STORE)
        } else if !fits {
            End::Error
        } else if !is_here {
            End::Panic(WRONG_STORE)
        } else {
            model.call(kind, &args)
        };
        refuel(store, FUEL);
        let params: Vec<_> = args.iter().map(|arg| arg.val()).collect();
        let mut results = vec![Value::I32(0).val(); n_results];
        let found = quietly(|| func.call(&mut *store, &params, &mut results));
        let what = || format!("call of {kind:?} with {args:?}");
        if let End::Values(values) = &expected {
            ended(&what(), found, &NONE)?;
            let found: Vec<Value> = results.iter().map(Value::of).collect();
            return equal(&what(), &found, values);
        }
        end(&what(), found, &expected)
    }

    fn typed(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind, it: func }) = self.handles.funcs.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let is_here = room == *id;
        refuel(store, FUEL);
        let a = choices.pick(&[0, 1, -1, 70_000]);
        let wrong = |fits: bool| match (is_here, fits) {
            (false, _) => Some(End::Panic(WRONG_STORE)),
            (true, false) => Some(End::Error),
            (true, true) => None,
        };
        let call = |model: &mut Model, args: &[Value]| model.call(kind, args);
        match choices.below(3) {
            0 => {
                let args = [Value::I32(7), Value::I32(a)];
                let ty: (&[Value], &[Value]) = (&[Value::I32(0), Value::I32(0)], &[Value::I32(0)]);
                let expected = wrong(kind.ty() == ty).unwrap_or_else(|| call(model, &args));
                let found =
                    quietly(|| func.typed::<(i32, i32), i32>(&*store)?.call(&mut *store, (7, a)));
                values("a typed call", found.map(|r| r.map(|v| vec![Value::I32(v)])), &expected)
            }
            1 => {
                let args = [Value::I64(a.into())];
                let expected =
                    wrong(kind.ty() == Kind::Add.ty()).unwrap_or_else(|| call(model, &args));
                let found =
                    quietly(|| func.typed::<i64, i64>(&*store)?.call(&mut *store, a.into()));
                values("a typed call", found.map(|r| r.map(|v| vec![Value::I64(v)])), &expected)
            }
            _ => {
                let is_unit = kind.ty().0.is_empty() && kind.ty().1.is_empty();
                let expected = wrong(is_unit).unwrap_or_else(|| call(model, &[]));
                let found = quietly(|| func.typed::<(), ()>(&*store)?.call(&mut *store, ()));
                values("a typed call", found.map(|r| r.map(|()| Vec::new())), &expected)
            }
        }
    }

    /// A program that does not end is stopped by fuel, epoch or time.
    fn run_out(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let World { has_fuel, has_epochs, .. } = *self.world;
        let Some(Held { room, it: spin, .. }) = self.handles.spins.any(choices) else {
            return Ok(());
        };
        let Room { id, store, .. } = &mut self.rooms[at];
        let is_here = room == *id;
        let mut code = TrapCode::Interrupted;
        match choices.below(if has_epochs { 8 } else { 4 }) {
            0..=3 if has_fuel => {
                code = TrapCode::OutOfFuel;
                refuel(store, choices.below(3_000) as u64);
            }
            4 if has_epochs => {
                refuel(store, u64::MAX);
                let set = store.set_timeout(Some(Duration::from_micros(100)));
                set.map_err(|error| error.to_string())?;
            }
            5 if has_epochs => {
                refuel(store, u64::MAX);
                store.epoch_deadline_callback(|mut context| {
                    context.data_mut().n_acts += 1;
                    Err(Error::host("the callback fails"))
                });
                store.set_epoch_deadline(0);
            }
            6 | 7 if has_epochs => {
                refuel(store, u64::MAX);
                store.set_epoch_deadline(0);
            }
            _ => return Ok(()),
        }
        let n_acts = store.data().n_acts;
        let found = quietly(|| spin.call(&mut *store, &[], &mut []));
        let by_callback = store.data().n_acts > n_acts;
        store.data_mut().n_acts = n_acts;
        let expected = match is_here {
            false => End::Panic(WRONG_STORE),
            true if by_callback => End::Error,
            true => End::Trap(code),
        };
        if has_epochs {
            store.epoch_deadline_trap();
            store.set_epoch_deadline(EPOCHS);
            store.set_timeout(None).map_err(|error| error.to_string())?;
        }
        let left = store.get_fuel().ok();
        refuel(store, FUEL);
        if code == TrapCode::OutOfFuel && is_here {
            // A round of the loop costs one.
            equal("fuel left", &left, &Some(0))?;
        }
        end("an endless loop", found, &expected)
    }

    // --- Memories, tables, globals -------------------------------------------------------------------

    fn memory(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: mem, it: memory }) = self.handles.mems.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let more = choices.pick(&[0, 1, 2, 9, 65_536, 1 << 32, u64::MAX]);
        let found = quietly(|| memory.grow(&mut *store, more));
        let found = found.map(|result| result.map(|old| vec![Value::I64(old as i64)]));
        let expected = match room == *id {
            false => End::Panic(WRONG_STORE),
            true if more > u64::from(u32::MAX) => End::Error,
            true => old_size(model.grow_memory(mem, more)),
        };
        values("Memory::grow", found, &expected)
    }

    /// Reads and writes bytes at an address.
    fn access(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: mem, it: memory }) = self.handles.mems.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let address = choices.pick(&[0, 8, 70, 65_533, 65_536, 131_071, 1 << 32, usize::MAX - 1]);
        let bytes = [choices.byte(), choices.byte(), choices.byte()];
        let is_write = choices.percent(50);
        let mut read = [0; 3];
        let found = quietly(|| match is_write {
            true => memory.write(&mut *store, address, &bytes),
            false => memory.read(&*store, address, &mut read),
        });
        let found = found.map(|result| result.map_err(Error::from));
        if room != *id {
            return end("an access", found, &End::Panic(WRONG_STORE));
        }
        let mem = &mut model.mems[mem];
        let places = (address as u64..).take(3);
        if !mem.has(address as u64, 3) {
            return end("an access", found, &End::Error);
        }
        end("an access", found, &NONE)?;
        match is_write {
            true => mem.bytes.extend(places.zip(bytes)),
            false => equal("bytes", &read.to_vec(), &places.map(|at| mem.byte(at)).collect())?,
        }
        Ok(())
    }

    fn table(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: tab, it: table }) = self.handles.tabs.any(choices) else {
            return Ok(());
        };
        let null = Value::Func(None);
        let like = if choices.percent(90) { Some(null) } else { None };
        let value = self.value(like, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        if room != *id {
            let found = quietly(|| table.get(&*store, 0));
            let found = found.map(|elem| Ok::<_, Error>(elem.is_some()));
            return end("Table::get", found, &End::Panic(WRONG_STORE));
        }
        let fits = value.is_like(model.tabs[tab].null);
        let wrong = match (fits, is_value_here) {
            (false, _) => Some(End::Error),
            (true, false) => Some(End::Panic(WRONG_STORE)),
            (true, true) => None,
        };
        let index = choices.pick(&[0, 1, 2, 3, 7, 1 << 32, u64::MAX]);
        match choices.below(3) {
            0 => {
                let found = table.get(&*store, index).map(|elem| Value::of(&elem));
                let elem = usize::try_from(index).ok().and_then(|i| model.tabs[tab].elems.get(i));
                equal("an element", &found, &elem.copied())
            }
            1 => {
                let elem = model.tabs[tab].elems.get_mut(index as usize);
                let expected = wrong.unwrap_or_else(|| match elem {
                    None => End::Error,
                    Some(elem) => {
                        *elem = value;
                        NONE
                    }
                });
                end("Table::set", quietly(|| table.set(&mut *store, index, value.val())), &expected)
            }
            _ => {
                let expected = wrong.unwrap_or_else(|| match index > u64::from(u32::MAX) {
                    true => End::Error,
                    false => old_size(model.grow_table(tab, index, value)),
                });
                let found = quietly(|| table.grow(&mut *store, index, value.val()));
                let found = found.map(|result| result.map(|old| vec![Value::I64(old as i64)]));
                values("Table::grow", found, &expected)
            }
        }
    }

    fn global(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: glob, it: global }) = self.handles.globs.any(choices) else {
            return Ok(());
        };
        let like = if choices.percent(80) { Some(Value::I64(0)) } else { None };
        let value = self.value(like, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        let found = quietly(|| Ok::<_, Error>(vec![Value::of(&global.get(&*store))]));
        if room != *id {
            return values("Global::get", found, &End::Panic(WRONG_STORE));
        }
        let glob = &mut model.globs[glob];
        values("Global::get", found, &End::Values(vec![glob.value]))?;
        let expected = if !value.is_like(glob.value) {
            End::Error
        } else if !is_value_here {
            End::Panic(WRONG_STORE)
        } else if !glob.mutable {
            End::Error
        } else {
            glob.value = value;
            NONE
        };
        end("Global::set", quietly(|| global.set(&mut *store, value.val())), &expected)
    }

    // --- What the host makes -------------------------------------------------------------------------

    fn make(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let value = self.value(None, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        let min = choices.pick(&[0, 1, 2, 9, 41]);
        let max = choices.percent(50).then_some(min + 1);
        match choices.below(3) {
            0 => {
                let expected =
                    if model.allows_pages(0, min.into(), max) { NONE } else { End::Error };
                let found = quietly(|| Memory::new(&mut *store, MemoryType { min, max }));
                if let Some(memory) = ended("Memory::new", found, &expected)? {
                    self.handles.mems.add(*id, model.mems.len(), memory);
                    model.mems.push(Mem { pages: min, max, bytes: Default::default() });
                }
            }
            1 => {
                let null = Value::Ref(None);
                let ty = TableType { elem: ValType::ExternRef, min, max };
                let expected = if !value.is_like(null) {
                    End::Error
                } else if !is_value_here {
                    End::Panic(WRONG_STORE)
                } else if model.allows_elems(0, min.into(), max) {
                    NONE
                } else {
                    End::Error
                };
                let found = quietly(|| Table::new(&mut *store, ty, value.val()));
                if let Some(table) = ended("Table::new", found, &expected)? {
                    self.handles.tabs.add(*id, model.tabs.len(), table);
                    model.tabs.push(Tab { elems: vec![value; min as usize], max, null });
                }
            }
            _ => {
                let mutable = choices.percent(70);
                let ty = GlobalType { ty: value.val().ty(), mutable };
                let expected = if is_value_here { NONE } else { End::Panic(WRONG_STORE) };
                let found = quietly(|| Global::new(&mut *store, ty, value.val()));
                if let Some(global) = ended("Global::new", found, &expected)? {
                    self.handles.globs.add(*id, model.globs.len(), global);
                    model.globs.push(Glob { mutable, value });
                }
            }
        }
        Ok(())
    }

    fn reference(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Room { id, store, .. } = &mut self.rooms[at];
        let number = choices.byte();
        let found = quietly(|| ExternRef::new(&mut *store, number));
        if let Some(object) = ended("ExternRef::new", found, &NONE)? {
            self.handles.refs.add(*id, number, object);
        }
        let Some(Held { room, kind: number, it: object }) = self.handles.refs.any(choices) else {
            return Ok(());
        };
        let found = quietly(|| Ok::<_, Error>(object.data(&*store).downcast_ref::<u8>().copied()));
        let expected = if room == *id { NONE } else { End::Panic(WRONG_STORE) };
        match ended("ExternRef::data", found, &expected)? {
            Some(data) => equal("the object", &data, &Some(number)),
            None => Ok(()),
        }
    }

    fn host_func(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let foreign = self.handles.funcs.any(choices);
        let Room { id, store, model } = &mut self.rooms[at];
        match choices.below(3) {
            0 => {
                let func = Func::wrap(&mut *store, |x: i64| x.wrapping_add(1));
                let func = func.map_err(|error| error.to_string())?;
                model.kinds.push((func, Kind::Add));
                self.handles.funcs.add(*id, Kind::Add, func);
            }
            1 => {
                let func = Func::wrap(&mut *store, act).map_err(|error| error.to_string())?;
                model.kinds.push((func, Kind::Act));
                self.handles.funcs.add(*id, Kind::Act, func);
            }
            _ => {
                let foreign = foreign.filter(|func| func.room != *id);
                store.data_mut().foreign = foreign.map(|func| func.it);
                model.has_foreign = foreign.is_some();
            }
        }
        Ok(())
    }

    // --- Stores, modules -----------------------------------------------------------------------------

    fn limit(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Room { store, model, .. } = &mut self.rooms[at];
        let mut limits = StoreLimitsBuilder::new();
        (model.pages_max, model.elems_max) = (None, None);
        if choices.percent(40) {
            let pages = choices.below(5) as u32;
            (model.pages_max, limits) = (Some(pages), limits.memory_size((pages as usize) << 16));
        }
        if choices.percent(40) {
            let elems = choices.below(9) as u32;
            (model.elems_max, limits) = (Some(elems), limits.table_elements(elems as usize));
        }
        store.data_mut().limits = limits.build();
        Ok(())
    }

    fn replace_store(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        if choices.percent(60) {
            return Ok(());
        }
        self.compare(at)?;
        let room = self.room();
        let old = std::mem::replace(&mut self.rooms[at], room);
        if choices.percent(50) {
            let n_acts = old.store.into_data().n_acts;
            equal("calls of the host", &n_acts, &old.model.n_acts)?;
        }
        Ok(())
    }

    /// Loads a module, which nobody keeps or all stores are asked to take.
    fn module(&mut self, choices: &mut Choices<'_>) -> Result<(), String> {
        if choices.percent(80) {
            return Ok(());
        }
        let text = choices.pick(&[world::USER, world::STARTS]);
        let module = Module::from_text(&self.world.engine, text).map_err(|e| e.to_string())?;
        if choices.percent(50) {
            let at = choices.below(STORES);
            let store = &mut self.rooms[at].store;
            let found = quietly(|| Instance::new(&mut *store, &module, &[]));
            end("Instance::new without imports", found, &End::Error)?;
            let found = quietly(|| self.world.linker.instantiate(&mut *store, &module));
            end("Linker::instantiate without definitions", found, &End::Error)?;
        }
        let other = &WORLDS[choices.below(WORLDS.len())];
        if !other.engine.same(&self.world.engine) {
            let store = &mut self.rooms[0].store;
            let found = quietly(|| Instance::new(&mut *store, &other.main, &[]));
            end("Instance::new of another engine's module", found, &End::Error)?;
        }
        Ok(())
    }

    // --- What is left --------------------------------------------------------------------------------

    fn compare_all(&mut self) -> Result<(), String> {
        (0..STORES).try_for_each(|at| self.compare(at))
    }

    /// Compares a store with its model.
    fn compare(&self, at: usize) -> Result<(), String> {
        let Room { id, store, model } = &self.rooms[at];
        equal("calls of the host", &store.data().n_acts, &model.n_acts)?;
        for &Held { kind, it, .. } in self.handles.mems.all_of(*id) {
            let Mem { pages, bytes, .. } = &model.mems[kind];
            equal("pages", &it.size(store), &u64::from(*pages))?;
            let data = it.data(store);
            for (&address, &byte) in bytes {
                equal("a byte", &data[address as usize], &byte)?;
            }
            let n_set = bytes.values().filter(|&&byte| byte != 0).count();
            equal("bytes set", &data.iter().filter(|&&byte| byte != 0).count(), &n_set)?;
        }
        for &Held { kind, it, .. } in self.handles.tabs.all_of(*id) {
            let elems = (0..it.size(store)).filter_map(|i| it.get(store, i));
            let elems: Vec<Value> = elems.map(|elem| Value::of(&elem)).collect();
            equal("elements", &elems, &model.tabs[kind].elems)?;
        }
        for &Held { kind, it, .. } in self.handles.globs.all_of(*id) {
            equal("a global", &Value::of(&it.get(store)), &model.globs[kind].value)?;
        }
        Ok(())
    }
}

fn refuel(store: &mut Store<Data>, fuel: u64) {
    // Some engines have none.
    let _ = store.set_fuel(fuel);
}

fn old_size(old: Option<u32>) -> End {
    old.map_or(End::Error, |old| End::Values(vec![Value::I64(old.into())]))
}

fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    super::ensure(found == expected, || format!("{what}: {found:?} instead of {expected:?}"))
}

/// The result of an operation that is expected to return one. Values are not compared.
fn ended<T>(
    what: &str,
    found: Result<Result<T, Error>, String>,
    expected: &End,
) -> Result<Option<T>, String> {
    let (end, value) = match found {
        Ok(Ok(value)) => (NONE, Some(value)),
        Ok(Err(error)) => match error.trap_code() {
            Some(code) => (End::Trap(code), None),
            None => (End::Error, None),
        },
        Err(message) => match expected {
            End::Panic(part) if message.contains(part) => (expected.clone(), None),
            _ => return Err(format!("{what}: panic `{message}` instead of {expected:?}")),
        },
    };
    equal(what, &end, expected)?;
    Ok(value)
}

fn end<T>(
    what: &str,
    found: Result<Result<T, Error>, String>,
    expected: &End,
) -> Result<(), String> {
    ended(what, found, expected).map(drop)
}

/// As [`end`], with values.
fn values(
    what: &str,
    found: Result<Result<Vec<Value>, Error>, String>,
    expected: &End,
) -> Result<(), String> {
    let End::Values(values) = expected else { return end(what, found, expected) };
    match ended(what, found, &NONE)? {
        Some(found) => equal(what, &found, values),
        None => Ok(()),
    }
}
