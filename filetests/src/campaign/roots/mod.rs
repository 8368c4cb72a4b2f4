//! Fuzz target: bytes as a sequence of operations with references into a heap of the embedder and with handles of them.
//!
//! The host (`host`) has a heap that never uses an address again, and a collector that moves every object. A model (`model`)
//! knows by the numbers of objects what every handle, global and element is, what guest functions return, and how they end.
//! A handle must read as the address of the model's object. A handle that has ended, or is of another store, must
//! panic with the documented message. A root that is visited must be an address of this time, and no root is visited twice.

mod host;
mod model;

use slotvm::{
    AsContextMut, Error, Func, Global, GlobalType, Instance, RootScope, Rooted, Store,
    StoreContextMut, Table, Val, ValType,
};

use super::{Verdict, ensure};
use crate::choices::Choices;
use crate::seeds::quietly;
use host::{Collect, Host, WORLDS, World, read};
use model::{Act, ENDED, End, FOREIGN, Guest, Model, Obj};

/// Number of operations of a sequence.
const OPS_MAX: usize = 60;
/// Scopes in scopes.
const SCOPES_MAX: usize = 4;
/// Acts of the host that are planned at once.
const ACTS_MAX: usize = 12;

/// Runs a sequence of operations.
///
/// # Errors
/// Returns the first difference from the model.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let mut choices = Choices::new(bytes);
    let world = &WORLDS[choices.below(WORLDS.len())];
    let mut store = Store::new(&world.engine, Host::default());
    let mut other = Store::new(&world.engine, Host::default());
    let address = other.data_mut().heap.alloc(77);
    let foreign = Rooted::new(&mut other, address);
    store.data_mut().foreign = Some(foreign);
    let mut run = Run::new(world, &mut store, other, foreign)?;
    run.ops(&mut choices, store.as_context_mut(), 0)?;
    run.at_rest(store.as_context_mut())?;
    Ok(if run.n_ops < 2 { Verdict::Loaded } else { Verdict::Accepted })
}

/// A handle, and the object that it is of.
#[derive(Copy, Clone, Debug)]
struct Held {
    handle: Rooted,
    object: u64,
    has_ended: bool,
}

struct Run {
    model: Model,
    handles: Vec<Held>,
    funcs: Vec<(Guest, Func)>,
    global: Global,
    table: Table,
    /// Another store, with one object.
    other: Store<Host>,
    foreign: Rooted,
    n_ops: usize,
}

impl Run {
    fn new(
        world: &World,
        store: &mut Store<Host>,
        other: Store<Host>,
        foreign: Rooted,
    ) -> Result<Run, String> {
        let instance: Instance = (world.linker.instantiate(&mut *store, &world.module))
            .map_err(|error| error.to_string())?;
        let func = |&guest: &Guest| {
            (guest, instance.get_func(&*store, guest.name()).expect("it is exported"))
        };
        let funcs = Guest::ALL.iter().map(func).collect();
        let global = instance.get_global(&*store, "g").expect("it is exported");
        let table = instance.get_table(&*store, "t").expect("it is exported");
        store.data_mut().exports =
            Some((global, table, instance.get_func(&*store, "pass").expect("so is it")));
        Ok(Run {
            model: Model::default(),
            handles: Vec::new(),
            funcs,
            global,
            table,
            other,
            foreign,
            n_ops: 0,
        })
    }

    /// Makes operations until the scope is closed, or there are no more choices.
    fn ops(
        &mut self,
        choices: &mut Choices<'_>,
        mut store: StoreContextMut<'_, Host>,
        n_scopes: usize,
    ) -> Result<(), String> {
        while self.n_ops < OPS_MAX && !choices.is_exhausted() {
            self.n_ops += 1;
            let n = self.n_ops;
            match choices.below(16) {
                0 if n_scopes > 0 => return Ok(()),
                1 | 2 if n_scopes < SCOPES_MAX => {
                    let first = self.handles.len();
                    let mut scope = RootScope::new(store.as_context_mut());
                    self.ops(choices, scope.as_context_mut(), n_scopes + 1)?;
                    drop(scope);
                    self.handles[first..].iter_mut().for_each(|held| held.has_ended = true);
                    Ok(())
                }
                _ => self.op(choices, store.as_context_mut()),
            }
            .and_then(|()| self.check_all(store.as_context_mut()))
            .map_err(|error| format!("operation {n}: {error}"))?;
        }
        Ok(())
    }

    fn op(
        &mut self,
        choices: &mut Choices<'_>,
        mut store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        match choices.below(12) {
            0 | 1 => {
                let object = self.model.fresh();
                let handle = store.data_mut().fresh(object).handle(&mut store);
                self.hold(handle, object);
                Ok(())
            }
            2 => self.set_global(choices, store),
            3 => self.set_element(choices, store),
            4 => self.get(choices, store),
            5 => store.collect(),
            6 => self.visit_in_a_visit(store),
            7 => self.wrong(choices, store),
            _ => self.call(choices, store),
        }
    }

    fn hold(&mut self, handle: Rooted, object: u64) {
        self.handles.push(Held { handle, object, has_ended: false });
    }

    /// A handle that has not ended, or null.
    fn any(&self, choices: &mut Choices<'_>) -> (Option<Rooted>, Obj) {
        let live: Vec<&Held> = self.handles.iter().filter(|held| !held.has_ended).collect();
        match choices.below(live.len() + 1) {
            0 => (None, None),
            i => (Some(live[i - 1].handle), Some(live[i - 1].object)),
        }
    }

    fn set_global(
        &mut self,
        choices: &mut Choices<'_>,
        store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        let (handle, object) = self.any(choices);
        self.model.global = object;
        self.global.set(store, Val::Ref(handle)).map_err(|error| error.to_string())
    }

    fn set_element(
        &mut self,
        choices: &mut Choices<'_>,
        store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        let (handle, object) = self.any(choices);
        let index = choices.below(self.model.table.len() + 1);
        let set = self.table.set(store, index as u64, Val::Ref(handle));
        match self.model.table.get_mut(index) {
            Some(element) => {
                *element = object;
                set.map_err(|error| error.to_string())
            }
            None => ensure(set.is_err(), || "an element beyond the end was set".to_owned()),
        }
    }

    /// Reads the global or an element, whose handle is one more.
    fn get(
        &mut self,
        choices: &mut Choices<'_>,
        store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        let index = choices.below(self.model.table.len() + 1);
        let (value, expected) = match self.model.table.get(index) {
            Some(&object) => (self.table.get(&store, index as u64), object),
            None => (Some(self.global.get(&store)), self.model.global),
        };
        match (value.and_then(|value| value.unwrap_rooted()), expected) {
            (Some(handle), Some(object)) => self.hold(handle, object),
            (None, None) => {}
            (found, expected) => return Err(format!("expected {expected:?}, found {found:?}")),
        }
        Ok(())
    }

    /// Visits the other store from a visitor.
    fn visit_in_a_visit(&mut self, mut store: StoreContextMut<'_, Host>) -> Result<(), String> {
        let mut n_others = 0;
        let (mut n, other) = (0, &mut self.other);
        store
            .visit_roots(|_| {
                n += 1;
                n_others += usize::from(other.visit_roots(|_| {}).is_ok());
            })
            .map_err(|error| error.to_string())?;
        ensure(n == n_others, || "a visit in a visit failed".to_owned())?;
        self.other.as_context_mut().collect()?;
        let found = read(&self.other, self.foreign);
        ensure(found == Ok(77), || format!("the other store has {found:?}"))
    }

    /// Uses a handle that has ended, one of another store, or a reference of another type.
    fn wrong(
        &mut self,
        choices: &mut Choices<'_>,
        mut store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        let ended = self.handles.iter().rev().find(|held| held.has_ended);
        let (handle, message) = match ended {
            Some(held) if choices.percent(70) => (held.handle, ENDED),
            _ => (self.foreign, FOREIGN),
        };
        let value = Val::Ref(Some(handle));
        let pass = self.funcs[0].1;
        let what = choices.below(7);
        let found = quietly(|| match what {
            0 => drop(handle.bits(&store)),
            1 => _ = self.global.set(&mut store, value),
            2 => _ = self.table.set(&mut store, 1, value),
            3 => _ = self.table.grow(&mut store, 1, value),
            4 => _ = pass.call(&mut store, &[Val::Ref(None), value], &mut [Val::Ref(None)]),
            5 => {
                let ty = GlobalType { ty: ValType::Ref, mutable: true };
                _ = Global::new(&mut store, ty, value);
            }
            _ => {
                let pass = pass.typed::<(Option<Rooted>, Option<Rooted>), Option<Rooted>>(&store);
                _ = pass.expect("it has this type").call(&mut store, (Some(handle), None));
            }
        });
        let is_expected = found.as_ref().is_err_and(|found| found.contains(message));
        ensure(is_expected, || {
            format!("use {what} of {handle:?}: expected {message}, found {found:?}")
        })?;
        // A reference of another type is an error.
        let null = Val::ExternRef(None);
        let found = self.global.set(&mut store, null).is_err()
            && pass.call(&mut store, &[null, null], &mut [Val::Ref(None)]).is_err();
        ensure(found, || "a null of another type was accepted".to_owned())
    }

    /// Calls a guest function, while the host does what is planned.
    fn call(
        &mut self,
        choices: &mut Choices<'_>,
        mut store: StoreContextMut<'_, Host>,
    ) -> Result<(), String> {
        let (guest, func) = self.funcs[choices.below(self.funcs.len())];
        let (a, of_a) = self.any(choices);
        let (b, of_b) = self.any(choices);
        let plan: Vec<Act> = (0..choices.below(ACTS_MAX)).map(|_| choices.pick(Act::ALL)).collect();
        self.model.plan(&plan);
        let expected = self.model.call(guest, of_a, of_b);
        self.model.end_all();
        store.data_mut().plan = plan.into_iter().rev().collect();
        let mut results = vec![Val::Ref(None); guest.n_results()];
        let found = quietly(|| func.call(&mut store, &[Val::Ref(a), Val::Ref(b)], &mut results));
        let host = store.data_mut();
        let (log, errors) = (std::mem::take(&mut host.log), std::mem::take(&mut host.errors));
        ensure(errors.is_empty(), || format!("{guest:?}: {}", errors.join("; ")))?;
        let expected_log = std::mem::take(&mut self.model.log);
        ensure(log == expected_log, || {
            format!("{guest:?}: expected calls of the host with {expected_log:?}, found {log:?}")
        })?;
        let end = match &found {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Error::Trap(_))) => Err(End::Trap),
            Ok(Err(_)) => Err(End::Fail),
            Err(message) => Err(End::of_panic(message)),
        };
        match (end, expected) {
            (Ok(()), Ok(objects)) => {
                for (value, object) in results.iter().zip(objects) {
                    match (value.unwrap_rooted(), object) {
                        (Some(handle), Some(object)) => self.hold(handle, object),
                        (None, None) => {}
                        (found, expected) => {
                            return Err(format!(
                                "{guest:?}: expected {expected:?}, found {found:?}"
                            ));
                        }
                    }
                }
                Ok(())
            }
            (Err(end), Err(expected)) if end == expected => Ok(()),
            (_, expected) => Err(format!("{guest:?}: expected {expected:?}, found {found:?}")),
        }
    }

    /// Reads all handles.
    fn check_all(&self, store: StoreContextMut<'_, Host>) -> Result<(), String> {
        for &Held { handle, object, has_ended } in &self.handles {
            let found = read(&store, handle);
            let is_expected = match &found {
                Ok(found) => !has_ended && *found == object,
                Err(message) => has_ended && message.contains(ENDED),
            };
            ensure(is_expected, || {
                format!("object {object}, ended: {has_ended}; a handle has {found:?}")
            })?;
        }
        let found = quietly(|| self.foreign.bits(&store));
        ensure(found.is_err_and(|message| message.contains(FOREIGN)), || "a foreign handle".into())
    }

    /// Where no guest function waits, exactly the references are visited that the model knows.
    fn at_rest(&mut self, mut store: StoreContextMut<'_, Host>) -> Result<(), String> {
        let mut visited = 0;
        store.visit_roots(|_| visited += 1).map_err(|error| error.to_string())?;
        let in_objects = self.model.table.iter().chain([&self.model.global]).flatten().count();
        let expected = self.handles.iter().filter(|held| !held.has_ended).count() + in_objects;
        ensure(visited == expected, || {
            format!("expected {expected} references at rest, found {visited}")
        })
    }
}
