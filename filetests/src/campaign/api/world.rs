//! Engines, modules and host functions that the sequences use.

use std::sync::LazyLock;

use slotvm::{
    Caller, Compile, Config, Engine, Error, Func, Limits, Linker, MemoryPlan, Module, SlotMode,
    StoreLimits, Tier, TierCompilation, TierThresholds, Trap, TrapCode, Val,
};

/// The limits of the stores of a sequence.
pub(super) const PAGES_MAX: u32 = 8;
pub(super) const ELEMS_MAX: u32 = 40;
pub(super) const INSTANCES_MAX: u32 = 12;
/// Fuel that suffices for every call except those that are to run out.
pub(super) const FUEL: u64 = 1 << 40;
/// An epoch deadline that is never reached.
pub(super) const EPOCHS: u64 = 1 << 60;

/// The first module, which exports everything that it defines.
pub(super) const MAIN: &str = r#"
import "env" "add" func add_host(i64) -> i64
import "env" "act" func act(i32) -> i32
memory m 1 4
table t funcref 3 20
table x externref 2 6
global g: mut i64 = i64.const 5
global c: i32 = i32.const 42
export "m" memory m
export "t" table t
export "x" table x
export "g" global g
export "c" global c
export "id" func id
export "div" func div
export "load" func load
export "store" func store
export "spin" func spin
export "rec" func rec
export "grow" func grow
export "grow_table" func grow_table
export "call_at" func call_at
export "get_ref" func get_ref
export "set_ref" func set_ref
export "get_func" func get_func
export "set_func" func set_func
export "host" func host
export "add" func add
export "trap" func trap
elem e t at i32.const 0 func id, div
func id(x: i64) -> i64 { local.get x return }
func div(a: i32, b: i32) -> i32 { local.get a local.get b i32.div_s return }
func load(a: i32) -> i32 { local.get a i32.load8_u return }
func store(a: i32, v: i32) -> i32 { local.get a local.get v i32.store8 local.get v return }
func spin() { again: br again }
func rec(n: i32) -> i32 {
  local.get n i32.eqz br_if end
  local.get n i32.const 1 i32.sub call rec i32.const 1 i32.add return
end:
  i32.const 0 return
}
func grow(n: i32) -> i32 { local.get n memory.grow return }
func grow_table(n: i32) -> i32 { ref.null funcref local.get n table.grow t return }
func call_at(i: i32, x: i64) -> i64 { local.get x local.get i call_indirect (i64) -> i64 return }
func get_ref(i: i32) -> externref { local.get i table.get x return }
func set_ref(i: i32, r: externref) { local.get i local.get r table.set x return }
func get_func(i: i32) -> funcref { local.get i table.get t return }
func set_func(i: i32, f: funcref) { local.get i local.get f table.set t return }
func host(k: i32) -> i32 { local.get k call act return }
func add(x: i64) -> i64 { local.get x call add_host return }
func trap() { unreachable }
"#;

/// A module that imports exports of the first one. Its start function counts.
pub(super) const USER: &str = r#"
import "main" "m" memory m 1
import "main" "t" table t funcref 1
import "main" "g" global g: mut i64
import "main" "id" func id(i64) -> i64
export "peek" func peek
export "through" func through
start count
data d at i32.const 70 "x"
func count() { global.get g i64.const 1 i64.add global.set g return }
func peek(a: i32) -> i32 { local.get a i32.load8_u return }
func through(x: i64) -> i64 { local.get x call id return }
"#;

/// A module whose start function asks the host to do something.
pub(super) const STARTS: &str = r#"
import "env" "act" func act(i32) -> i32
import "main" "g" global g: mut i64
import "main" "c" global c: i32
start run
func run() {
  global.get g i64.const 1 i64.add global.set g
  global.get c call act drop return
}
"#;

/// An engine, and the modules compiled for it.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) main: Module,
    pub(super) user: Module,
    pub(super) starts: Module,
    pub(super) has_fuel: bool,
    pub(super) has_epochs: bool,
    pub(super) linker: Linker<Data>,
}

/// Engines that all threads share.
pub(super) static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| (0..9).map(world).collect());

/// The configuration of an engine, by number.
fn config(n: usize) -> Config {
    let mut config = Config::new();
    let limits = Limits {
        memory_pages_max: PAGES_MAX,
        table_elems_max: ELEMS_MAX,
        instances_max: INSTANCES_MAX,
        ..Limits::default()
    };
    config.limits(limits).deterministic_stack(Some(3_000));
    config.consume_fuel(n != 3).epoch_interruption(n != 4);
    match n {
        0 | 4 => _ = config.tier(Tier::Interpreter),
        1 => _ = config.compile(Compile::Lazy),
        2 => _ = config.compile(Compile::Eager).memory(Some(MemoryPlan::CHECKED)),
        3 => _ = config.compile(Compile::Eager).slots(SlotMode::Memory),
        5 => _ = config.compile(Compile::Lazy).signals_based_traps(false),
        6 => _ = config.compile(Compile::Eager).slots(SlotMode::Variables),
        8 => {
            config.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
            _ = config.tier_thresholds(Some(TierThresholds { calls: 2, rounds: 3 }));
        }
        _ => {
            _ = config
                .compile(Compile::Lazy)
                .slots(SlotMode::Memory)
                .memory(Some(MemoryPlan::PLAIN))
        }
    }
    config
}

/// Makes an engine and compiles the modules.
pub(super) fn world(n: usize) -> World {
    let engine = Engine::new(&config(n)).expect("there is such an engine");
    let module = |text| Module::from_text(&engine, text).unwrap_or_else(|e| panic!("{e}"));
    let (main, user, starts) = (module(MAIN), module(USER), module(STARTS));
    let mut linker = Linker::new(&engine);
    linker.func_wrap("env", "add", |x: i64| x.wrapping_add(1)).expect("the name is free");
    linker.func_wrap("env", "act", act).expect("the name is free");
    World { engine, main, user, starts, has_fuel: n != 3, has_epochs: n != 4, linker }
}

/// The embedder's data.
pub(super) struct Data {
    pub(super) limits: StoreLimits,
    /// Number of calls of `act`.
    pub(super) n_acts: u32,
    /// A function of another store.
    pub(super) foreign: Option<Func>,
}

/// The behaviour of the host function, by its argument.
pub(super) mod acts {
    pub(crate) const FAIL: i32 = 1;
    pub(crate) const PANIC: i32 = 2;
    pub(crate) const TRAP: i32 = 3;
    pub(crate) const GROW: i32 = 4;
    pub(crate) const REENTER: i32 = 5;
    pub(crate) const REENTER_TRAP: i32 = 6;
    pub(crate) const WRITE: i32 = 7;
    pub(crate) const FOREIGN: i32 = 8;
    pub(crate) const ADDRESS_SPACE: i32 = 9;
    pub(crate) const NESTED: i32 = 10;
    pub(crate) const INTERRUPT: i32 = 11;
    pub(crate) const N: usize = 12;
}

/// The message of the deliberate panic of `act`.
pub(super) const PLANNED: &str = "planned panic";
/// The address and the byte that `act` writes.
pub(super) const WRITTEN: (usize, u8) = (33, 99);

pub(super) fn act(mut caller: Caller<'_, Data>, what: i32) -> Result<i32, Error> {
    caller.data_mut().n_acts += 1;
    let exported = |caller: &Caller<'_, Data>, name: &str| {
        caller.get_export(name).and_then(slotvm::Extern::into_func)
    };
    match what {
        acts::FAIL => Err(Error::host("the host fails")),
        acts::PANIC => panic!("{PLANNED}"),
        acts::TRAP => Err(Trap::new(TrapCode::IntegerOverflow, []).into()),
        acts::ADDRESS_SPACE => Err(Error::AddressSpace { needed: 9, found: 8 }),
        acts::GROW => match caller.memory() {
            Some(memory) => Ok(memory.grow(&mut caller, 1).map_or(-1, |old| old as i32)),
            None => Ok(-2),
        },
        acts::WRITE => match caller.memory() {
            Some(memory) => {
                memory.write(&mut caller, WRITTEN.0, &[WRITTEN.1])?;
                Ok(i32::from(memory.data(&caller)[WRITTEN.0]))
            }
            None => Ok(-2),
        },
        acts::REENTER | acts::REENTER_TRAP => match exported(&caller, "div") {
            Some(div) => {
                let by = i32::from(what == acts::REENTER);
                let mut results = [Val::I32(0)];
                div.call(&mut caller, &[Val::I32(6), Val::I32(by)], &mut results)?;
                Ok(results[0].unwrap_i32())
            }
            None => Ok(-2),
        },
        acts::NESTED => match exported(&caller, "host") {
            Some(host) => {
                let host = host.typed::<i32, i32>(&caller)?;
                host.call(&mut caller, acts::REENTER)
            }
            None => Ok(-2),
        },
        acts::FOREIGN => match caller.data().foreign {
            Some(foreign) => Ok(foreign.ty(&caller).params.len() as i32),
            None => Ok(-2),
        },
        acts::INTERRUPT => caller.check_interrupt().map(|()| 0),
        _ => Ok(what),
    }
}
