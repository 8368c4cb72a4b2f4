//! Fuzz target: bytes as a sequence of calls of the embedding API, on several stores of one engine.
//!
//! A model (`model`) of each store predicts the end of every call: values, a trap, an error or, where it is
//! documented, a panic. At the end, the contents of the stores are compared with the models. Handles of all
//! stores, including dropped ones, are in one pool, and any of them may be passed to any store.

mod calls;
mod ends;
mod handles;
mod instances;
mod model;
mod objects;
mod world;

use slotvm::{Instance, Module, Store, StoreLimitsBuilder};

use super::Verdict;
use crate::choices::Choices;
use crate::seeds::quietly;
use ends::{end, equal};
use handles::{Handles, Held};
use model::{End, Kind, Mem, Model, Value};
use world::{Data, EPOCHS, FUEL, WORLDS, World, acts};

const STORES: usize = 3;
/// Number of calls in a sequence.
const OPS_MAX: usize = 60;
const WRONG_STORE: &str = "object used with the wrong store";

/// Runs a sequence of calls.
///
/// # Errors
/// Returns the call that does not end as the model predicts.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let mut choices = Choices::new(bytes);
    let shared = &WORLDS[choices.below(WORLDS.len())];
    // A few sequences have an engine of their own, which their stores outlive.
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
    /// The number of the store in the sequence.
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

    /// Makes one call.
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

    /// Any value; references may belong to any store.
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

    /// Whether a value can be passed to a store.
    fn is_of(&self, value: Value, room: usize) -> bool {
        match value {
            Value::Func(Some(func)) => self.handles.funcs.is_of(func, room),
            Value::Ref(Some(object)) => self.handles.refs.is_of(object, room),
            _ => true,
        }
    }

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

    /// Loads a module, which is dropped or instantiated in all stores.
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
