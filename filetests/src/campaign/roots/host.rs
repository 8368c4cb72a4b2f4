//! The host: a heap in which every object moves, and what it does when the guest calls it.

use std::collections::HashMap;
use std::sync::LazyLock;

use slotvm::{
    AsContext, AsContextMut, Caller, Config, Engine, Error, Func, Global, Linker, Module,
    RootScope, Rooted, SlotMode, StoreContextMut, Table, Tier, TierCompilation, TierThresholds,
    Val,
};

use super::model::{ACTIVE_MAX, Act, Obj, PLANNED};
use crate::seeds::quietly;

const MODULE: &str = r#"
import "env" "act" func act(ref, ref) -> ref
import "env" "seldom" cold func seldom(ref, ref) -> ref
global g: mut ref = ref.null ref
table t ref 4 4
table f funcref 1 1
elem e f at i32.const 0 func act
export "g" global g
export "t" table t
export "pass" func pass
export "loop" func loop
export "deep" func deep_4
export "both" func both
export "tail" func tail
export "rare" func rare
export "trap" func trap_after
func pass(a: ref, b: ref) -> ref {
  local.get a  local.get b  call act
  local.get a  global.set g
  i32.const 1  local.get b  table.set t
  return
}
func loop(a: ref, b: ref) -> ref {
  local n: i32, before: ref
again:
  local.get a  local.set before
  local.get a  local.get b  i32.const 0  call_indirect (ref, ref) -> ref f  local.set a
  local.get before  local.set b
  local.get n  i32.const 1  i32.add  local.tee n  i32.const 5  i32.lt_s  br_if again
  i32.const 2  local.get b  table.set t
  local.get a  return
}
func deep_4(a: ref, b: ref) -> ref { local.get a  local.get b  i32.const 4  return_call deep }
func deep(a: ref, b: ref, depth: i32) -> ref {
  local c: ref
  local.get a  local.get b  call act  local.set c
  local.get depth  i32.eqz  br_if end
  i32.const 3
  local.get b  local.get c  local.get depth  i32.const 1  i32.sub  call deep
  table.set t
end:
  local.get c  global.set g
  local.get a  return
}
func both(a: ref, b: ref) -> (ref, ref, ref) {
  local.get b
  local.get b  local.get a  call act
  global.get g  call act
  local.get a  return
}
func tail(a: ref, b: ref) -> ref { local.get b  local.get a  return_call act }
func rare(a: ref, b: ref) -> ref {
  local n: i32, last: ref
again:
  local.get n  i32.const 2  i32.ne  .likely br_if next
  local.get a  local.get b  call seldom  local.set last
next:
  local.get n  i32.const 1  i32.add  local.tee n  i32.const 5  i32.lt_s  br_if again
  i32.const 3  local.get a  table.set t
  local.get b  global.set g
  local.get last  return
}
func trap_after(a: ref, b: ref) -> ref {
  i32.const 0  local.get a  local.get b  call act  table.set t
  unreachable
}
"#;

/// An engine, with the module compiled for it.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) module: Module,
    pub(super) linker: Linker<Host>,
}

/// Engines that all threads share.
pub(super) static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| (0..6).map(world).collect());

fn world(n: usize) -> World {
    let mut config = Config::new();
    match n {
        0 => _ = config.tier(Tier::Interpreter),
        1 => _ = config.tier(Tier::BEST),
        2 => _ = config.tier(Tier::BEST).slots(SlotMode::Memory),
        3 => _ = config.tier(Tier::BEST).signals_based_traps(false),
        _ => {
            config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
            config.tier_thresholds(Some(TierThresholds { calls: 2, rounds: 3 }));
            _ = config.tier_exits(if n == 4 { 0 } else { 2 }, n == 5);
        }
    }
    let engine = Engine::new(&config).expect("there is such an engine");
    let module = Module::from_text(&engine, MODULE).unwrap_or_else(|error| panic!("{error}"));
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "act", act).expect("the name is free");
    linker.func_wrap("env", "seldom", act).expect("the name is free");
    World { engine, module, linker }
}

/// Objects by address, each with its number. An address is never used again.
#[derive(Debug, Default)]
pub(super) struct Heap {
    objects: HashMap<u64, u64>,
    last: u64,
}

impl Heap {
    /// Makes an object. Returns its address.
    pub(super) fn alloc(&mut self, number: u64) -> u64 {
        self.last += 8;
        self.objects.insert(self.last, number);
        self.last
    }
}

/// The data of a store.
#[derive(Default)]
pub(super) struct Host {
    pub(super) heap: Heap,
    n_objects: u64,
    /// The acts that are left, the next one last.
    pub(super) plan: Vec<Act>,
    /// The references with which the guest has called.
    pub(super) log: Vec<(Obj, Obj)>,
    /// Differences from the model.
    pub(super) errors: Vec<String>,
    n_active: usize,
    kept: Option<Rooted>,
    pub(super) foreign: Option<Rooted>,
    pub(super) exports: Option<(Global, Table, Func)>,
}

/// A new object, which has no handle yet.
pub(super) struct Fresh(u64);

impl Fresh {
    pub(super) fn handle(self, store: impl AsContextMut<Data = Host>) -> Rooted {
        Rooted::new(store, self.0)
    }
}

impl Host {
    /// Makes the next object, which has this number.
    pub(super) fn fresh(&mut self, number: u64) -> Fresh {
        self.n_objects = number;
        Fresh(self.heap.alloc(number))
    }
}

/// The object of a handle, or the message of the panic.
pub(super) fn read(store: impl AsContext<Data = Host>, handle: Rooted) -> Result<u64, String> {
    let bits = quietly(|| handle.bits(&store))?;
    let store = store.as_context();
    let number = store.data().heap.objects.get(&bits);
    number.copied().ok_or_else(|| format!("{bits:#x} is no address of this time"))
}

/// Operations on a store that all of its contexts have.
pub(super) trait Collect {
    /// Moves all objects that roots name, and forgets the others.
    fn collect(&mut self) -> Result<(), String>;
    /// Begins with that, and panics at a root.
    fn collect_until(&mut self, n_roots: usize) -> Result<(), String>;
}

impl Collect for StoreContextMut<'_, Host> {
    fn collect(&mut self) -> Result<(), String> {
        let mut heap = std::mem::take(&mut self.data_mut().heap);
        let mut moved = HashMap::new();
        let (mut objects, mut lost) = (HashMap::new(), Vec::new());
        let visited = self.visit_roots(|root| {
            let Some(&number) = heap.objects.get(root) else { return lost.push(*root) };
            *root = *moved.entry(*root).or_insert_with(|| {
                heap.last += 8;
                objects.insert(heap.last, number);
                heap.last
            });
        });
        heap.objects = objects;
        self.data_mut().heap = heap;
        visited.map_err(|error| error.to_string())?;
        match &lost[..] {
            [] => Ok(()),
            _ => Err(format!("roots {lost:x?} are no addresses of this time, or visited twice")),
        }
    }

    fn collect_until(&mut self, n_roots: usize) -> Result<(), String> {
        let mut heap = std::mem::take(&mut self.data_mut().heap);
        let mut n = 0;
        let visited = quietly(|| {
            self.visit_roots(|root| {
                if n == n_roots {
                    panic!("{PLANNED}");
                }
                n += 1;
                // Both addresses are of this time: the objects of other roots have not moved.
                if let Some(&number) = heap.objects.get(root) {
                    *root = heap.alloc(number);
                }
            })
        });
        self.data_mut().heap = heap;
        match visited {
            Ok(visited) => visited.map_err(|error| error.to_string()),
            Err(message) if message == PLANNED => Ok(()),
            Err(message) => Err(message),
        }
    }
}

/// The function of the host.
fn act(
    mut caller: Caller<'_, Host>,
    a: Option<Rooted>,
    b: Option<Rooted>,
) -> Result<Option<Rooted>, Error> {
    let objects = [a, b].map(|handle| handle.map(|handle| read(&caller, handle)).transpose());
    let host = caller.data_mut();
    match objects {
        [Ok(a), Ok(b)] => host.log.push((a, b)),
        objects => host.errors.push(format!("the guest passes {objects:?}")),
    }
    host.n_active += 1;
    let next = host.plan.pop().unwrap_or(Act::First);
    let n_active = host.n_active;
    let ended = quietly(|| does(&mut caller, next, a, b));
    let host = caller.data_mut();
    host.n_active = n_active - 1;
    match ended {
        Ok(result) => result,
        Err(message) => panic!("{message}"),
    }
}

fn does(
    caller: &mut Caller<'_, Host>,
    what: Act,
    a: Option<Rooted>,
    b: Option<Rooted>,
) -> Result<Option<Rooted>, Error> {
    let (global, table, pass) = caller.data().exports.expect("there is an instance");
    let may_call = caller.data().n_active <= ACTIVE_MAX;
    match what {
        Act::First => {}
        Act::Second => return Ok(b),
        Act::Null => return Ok(None),
        Act::Fresh => {
            let number = caller.data().n_objects + 1;
            let fresh = caller.data_mut().fresh(number);
            return Ok(Some(fresh.handle(caller)));
        }
        Act::Collect => collect(caller),
        Act::Scope => {
            let mut scope = RootScope::new(caller.as_context_mut());
            let inner = global.get(&scope).unwrap_rooted();
            let before = inner.map(|handle| read(&scope, handle));
            let collected = scope.as_context_mut().collect();
            let after = inner.map(|handle| read(&scope, handle));
            drop(scope);
            note(caller, collected);
            if before != after || matches!(before, Some(Err(_))) {
                note(caller, Err(format!("in a scope, {before:?} became {after:?}")));
            }
            if let Some(Ok(number)) = inner.map(|handle| read(&*caller, handle)) {
                note(caller, Err(format!("a handle of {number} outlives its scope")));
            }
            return Ok(b);
        }
        Act::VisitorPanics => {
            let n_roots = caller.data().log.len() % 5;
            let panicked = caller.as_context_mut().collect_until(n_roots);
            note(caller, panicked);
            collect(caller);
        }
        Act::Exchange => {
            let value = global.get(&caller);
            let element = table.get(&caller, 0).expect("there is an element");
            collect(caller);
            global.set(&mut *caller, element)?;
            table.set(&mut *caller, 0, value)?;
        }
        Act::Fail => return Err(Error::host("the host fails")),
        Act::Panic => panic!("{PLANNED}"),
        Act::Reenter | Act::Survive if may_call => {
            let mut results = [Val::Ref(None)];
            let args = [Val::Ref(b), Val::Ref(a)];
            let called = quietly(|| pass.call(&mut *caller, &args, &mut results));
            if what == Act::Survive {
                collect(caller);
                return Ok(a);
            }
            match called {
                Ok(called) => called?,
                Err(message) => panic!("{message}"),
            }
            return Ok(results[0].unwrap_rooted());
        }
        Act::Reenter | Act::Survive => {}
        Act::Keep => {
            caller.data_mut().kept = a;
            return Ok(b);
        }
        Act::Kept => {
            if let Some(kept) = caller.data().kept {
                return Ok(Some(kept));
            }
        }
        Act::Foreign => return Ok(caller.data().foreign),
    }
    Ok(a)
}

fn collect(caller: &mut Caller<'_, Host>) {
    let collected = caller.as_context_mut().collect();
    note(caller, collected);
}

fn note(caller: &mut Caller<'_, Host>, happened: Result<(), String>) {
    caller.data_mut().errors.extend(happened.err());
}
