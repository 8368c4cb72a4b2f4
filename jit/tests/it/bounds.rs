//! Bounds of accesses in loops: the last index, and a memory that grows meanwhile.

use slotvm::{Engine, Linker, Module, Store, TrapCode, UpdateDeadline};

use crate::support::{for_all, for_all_with};

/// Reads elements from an index on, until it traps, and counts them. The base is the same in each iteration.
const COUNT: &str = "
    memory mem 1
    global n: mut i32 = i32.const 0
    export \"count\" func count
    export \"take\" func take
    func count(base: i32, i: i32) -> i32 {
      local sum: i32
    again:
      local.get base  local.get i  i32.load_indexed 4 8  local.get sum  i32.add  local.set sum
      global.get n  i32.const 1  i32.add  global.set n
      local.get i  i32.const 1  i32.add  local.tee i  br_if again
      local.get sum  return
    }
    func take() -> i32 {
      global.get n  i32.const 0  global.set n  return
    }";

#[test]
fn loops_read_up_to_the_last_element_in_bounds() {
    for_all(|engine| {
        let module = Module::from_text(engine, COUNT).unwrap();
        let mut store = Store::new(engine, ());
        let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
        let count = instance.get_typed_func::<(i32, i32), i32>(&store, "count").unwrap();
        let take = instance.get_typed_func::<(), i32>(&store, "take").unwrap();
        for base in [0, 1, 7, 65_504, 65_523, 65_524, 65_525, 65_536, u32::MAX - 3, u32::MAX] {
            for first in [0, 1, 16_000, 16_381, 16_382, 16_383, 1 << 30, u32::MAX - 1, u32::MAX] {
                let is_in = |i: u64| u64::from(base) + 4 * i + 12 <= 65_536;
                let expected = (u64::from(first)..).take_while(|&i| is_in(i)).count();
                let error = count.call(&mut store, (base as i32, first as i32)).unwrap_err();
                assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
                assert_eq!(take.call(&mut store, ()).unwrap(), expected as i32, "{base} {first}");
            }
        }
    });
}

/// Writes and reads the last element of page after page; `grow` stands before each.
fn pages(grow: &str) -> String {
    format!(
        "import \"env\" \"grow\" func grow()
        memory mem 1 20
        export \"mem\" memory mem
        export \"walk\" func walk
        func walk(n: i32) -> i32 {{
          local at: i32, i: i32, sum: i32
          i32.const 65532  local.set at
        again:
          {grow}
          local.get at  i32.const 65536  i32.add  local.tee at
          local.get i  i32.store 0
          local.get at  i32.load 0  local.get sum  i32.add  local.set sum
          local.get i  i32.const 1  i32.add  local.tee i
          local.get n  i32.lt_u  br_if again
          local.get sum  return
        }}"
    )
}

fn linker(engine: &Engine) -> Linker<()> {
    let mut linker = Linker::new(engine);
    let grow = |mut caller: slotvm::Caller<'_, ()>| {
        let memory = caller.get_export("mem").unwrap().into_memory().unwrap();
        memory.grow(&mut caller, 1).unwrap();
    };
    linker.func_wrap("env", "grow", grow).unwrap();
    linker
}

#[test]
fn a_memory_that_grows_in_a_loop_is_accessed_to_its_new_end() {
    for_all(|engine| {
        for grow in ["call grow", "i32.const 1  memory.grow  drop"] {
            let module = Module::from_text(engine, &pages(grow)).unwrap();
            let mut store = Store::new(engine, ());
            let instance = linker(engine).instantiate(&mut store, &module).unwrap();
            let walk = instance.get_typed_func::<i32, i32>(&store, "walk").unwrap();
            assert_eq!(walk.call(&mut store, 10).unwrap(), 45, "{grow}");
        }
        let module = Module::from_text(engine, &pages("")).unwrap();
        let mut store = Store::new(engine, ());
        let instance = linker(engine).instantiate(&mut store, &module).unwrap();
        let walk = instance.get_typed_func::<i32, i32>(&store, "walk").unwrap();
        let error = walk.call(&mut store, 10).unwrap_err();
        assert_eq!(error.trap_code(), Some(TrapCode::MemoryOutOfBounds));
    });
}

/// A poll calls the host, which may do as a function that is called.
#[test]
fn a_memory_that_grows_at_a_poll_is_accessed_to_its_new_end() {
    let configure = |config: &mut slotvm::Config| _ = config.epoch_interruption(true);
    for_all_with(configure, |engine| {
        let module = Module::from_text(engine, &pages("")).unwrap();
        let mut store = Store::new(engine, ());
        let instance = linker(engine).instantiate(&mut store, &module).unwrap();
        let walk = instance.get_typed_func::<i32, i32>(&store, "walk").unwrap();
        let memory = instance.get_memory(&store, "mem").unwrap();
        store.set_epoch_deadline(0);
        store.epoch_deadline_callback(move |mut context| {
            memory.grow(&mut context, 1)?;
            Ok(UpdateDeadline::Continue(0))
        });
        assert_eq!(walk.call(&mut store, 10).unwrap(), 45);
    });
}
