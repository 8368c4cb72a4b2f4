//! A limiter of the embedder: what it is asked, and what its answers do.

use slotvm::{
    Config, Engine, Error, Instance, Linker, Memory, ResourceLimiter, Store, StoreLimits,
    StoreLimitsBuilder, Table, Tier, TrapCode, Val,
};
use slotvm_bytecode::ValType;
use slotvm_bytecode::module::{MemoryType, TableType};

use crate::support::{for_all, frames, instance_with, marked, module};

const PAGE: usize = 1 << 16;

const SOURCE: &str = r#"
    export "m" memory m
    memory m 1 5
    export "t" table t
    table t funcref 3 9
    export "grow_memory" func grow_memory
    func grow_memory(n: i32) -> i32 {
      local.get n
      memory.grow ; memory
      return
    }
    export "grow_table" func grow_table
    func grow_table(n: i32) -> i32 {
      ref.null funcref local.get n
      table.grow t ; table
      return
    }
    export "outer" func outer
    func outer(n: i32) -> i32 {
      local.get n
      call grow_memory ; outer
      return
    }"#;

/// Requests to a test's limiter, and its answers.
#[derive(Default)]
struct Asked {
    requests: Vec<(&'static str, usize, usize, Option<usize>)>,
    failures: Vec<String>,
    answer: Answer,
}

#[derive(Default)]
enum Answer {
    #[default]
    Yes,
    No,
    Fail,
    Trap,
    Panic,
    /// Lets things grow, and fails when that fails.
    FailLater,
}

#[derive(Debug, thiserror::Error)]
#[error("that is too much")]
struct TooMuch;

impl Asked {
    fn answer(
        &mut self,
        request: (&'static str, usize, usize, Option<usize>),
    ) -> Result<bool, Error> {
        self.requests.push(request);
        match self.answer {
            Answer::Yes | Answer::FailLater => Ok(true),
            Answer::No => Ok(false),
            Answer::Fail => Err(Error::host(TooMuch)),
            Answer::Trap => Err(slotvm::Trap::new(TrapCode::Unreachable, []).into()),
            Answer::Panic => panic!("by the limiter"),
        }
    }

    fn failed(&mut self, error: Error) -> Result<(), Error> {
        self.failures.push(error.to_string());
        match self.answer {
            Answer::FailLater => Err(Error::host(TooMuch)),
            _ => Ok(()),
        }
    }
}

impl ResourceLimiter for Asked {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error> {
        self.answer(("memory", current, desired, maximum))
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        self.failed(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error> {
        self.answer(("table", current, desired, maximum))
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        self.failed(error)
    }
}

/// An instance in a store whose data are its limiter.
fn limited<T: ResourceLimiter + 'static>(engine: &Engine, limiter: T) -> (Store<T>, Instance) {
    let mut store = Store::new(engine, limiter);
    store.limiter(|limiter| limiter);
    let instance = Linker::new(engine).instantiate(&mut store, &module(engine, SOURCE)).unwrap();
    (store, instance)
}

fn call<T>(store: &mut Store<T>, instance: &Instance, name: &str, n: i32) -> Result<i32, Error> {
    instance.get_typed_func::<i32, i32>(&*store, name).unwrap().call(store, n)
}

#[test]
fn it_hears_of_what_is_made_and_of_what_grows() {
    for_all(|engine| {
        let (mut store, instance) = limited(engine, Asked::default());
        let memory = ("memory", 0, PAGE, Some(5 * PAGE));
        let table = ("table", 0, 3, Some(9));
        assert_eq!(std::mem::take(&mut store.data_mut().requests), [memory, table]);

        assert_eq!(call(&mut store, &instance, "grow_memory", 2).unwrap(), 1);
        assert_eq!(call(&mut store, &instance, "grow_memory", 0).unwrap(), 3);
        assert_eq!(call(&mut store, &instance, "grow_memory", 3).unwrap(), -1);
        assert_eq!(call(&mut store, &instance, "grow_table", 5).unwrap(), 3);
        assert_eq!(call(&mut store, &instance, "grow_table", 0).unwrap(), 8);
        assert_eq!(call(&mut store, &instance, "grow_table", -1).unwrap(), -1);
        let memory = instance.get_memory(&store, "m").unwrap();
        assert_eq!(memory.grow(&mut store, 1).unwrap(), 3);
        let table = instance.get_table(&store, "t").unwrap();
        assert_eq!(table.grow(&mut store, 1, Val::FuncRef(None)).unwrap(), 8);
        Memory::new(&mut store, MemoryType { min: 2, max: None }).unwrap();
        let ty = TableType { elem: ValType::ExternRef, min: 7, max: None };
        Table::new(&mut store, ty, Val::ExternRef(None)).unwrap();

        let max = Some(5 * PAGE);
        let requests = [
            ("memory", PAGE, 3 * PAGE, max),
            ("memory", 3 * PAGE, 6 * PAGE, max),
            ("table", 3, 8, Some(9)),
            ("table", 8, 8 + u32::MAX as usize, Some(9)),
            ("memory", 3 * PAGE, 4 * PAGE, max),
            ("table", 8, 9, Some(9)),
            ("memory", 0, 2 * PAGE, None),
            ("table", 0, 7, None),
        ];
        assert_eq!(store.data().requests, requests);
        let failures = [
            "limit of the type (327680) exceeded: 393216 wanted",
            "limit of the type (9) exceeded: 4294967303 wanted",
        ];
        assert_eq!(store.data().failures, failures);
    });
}

#[test]
fn what_it_refuses_does_not_happen() {
    for_all(|engine| {
        let (mut store, instance) = limited(engine, Asked::default());
        store.data_mut().answer = Answer::No;
        assert_eq!(call(&mut store, &instance, "grow_memory", 1).unwrap(), -1);
        assert_eq!(call(&mut store, &instance, "grow_table", 1).unwrap(), -1);
        let memory = instance.get_memory(&store, "m").unwrap();
        let table = instance.get_table(&store, "t").unwrap();
        let error = memory.grow(&mut store, 1).unwrap_err();
        assert_eq!(error.to_string(), "the memory cannot grow by 1 pages");
        let error = table.grow(&mut store, 1, Val::FuncRef(None)).unwrap_err();
        assert_eq!(error.to_string(), "the table cannot grow by 1 elements");
        assert_eq!((memory.size(&store), table.size(&store)), (1, 3));
        let error = Memory::new(&mut store, MemoryType { min: 2, max: None }).unwrap_err();
        let expected = "the store's limiter refused a memory of 131072 bytes";
        assert_eq!(error.to_string(), expected);
        let module = module(engine, "table t funcref 6");
        let error = Instance::new(&mut store, &module, &[]).unwrap_err();
        let expected = "the store's limiter refused a table of 6 elements";
        assert_eq!(error.to_string(), expected);
        assert!(store.data().failures.is_empty());
    });
}

#[test]
fn its_errors_are_errors_of_the_host() {
    let too_much = |error: Error| {
        let Error::Host(source) = error else { panic!("{error:?}") };
        assert!(source.is::<TooMuch>(), "{source:?}");
    };
    for_all(|engine| {
        let (mut store, instance) = limited(engine, Asked::default());
        let memory = instance.get_memory(&store, "m").unwrap();
        store.data_mut().answer = Answer::Fail;
        for name in ["grow_memory", "grow_table", "outer"] {
            too_much(call(&mut store, &instance, name, 1).unwrap_err());
        }
        too_much(memory.grow(&mut store, 1).unwrap_err());
        too_much(Instance::new(&mut store, &module(engine, SOURCE), &[]).unwrap_err());
        assert!(store.data().failures.is_empty());

        store.data_mut().answer = Answer::FailLater;
        too_much(call(&mut store, &instance, "grow_memory", 5).unwrap_err());
        too_much(call(&mut store, &instance, "grow_table", 7).unwrap_err());
        too_much(memory.grow(&mut store, 5).unwrap_err());
        assert_eq!(store.data().failures.len(), 3);
        // Nothing is left of the failures.
        assert_eq!(call(&mut store, &instance, "outer", 4).unwrap(), 1);
    });
}

#[test]
fn its_traps_have_the_place_of_the_instruction() {
    for_all(|engine| {
        let (mut store, instance) = limited(engine, Asked::default());
        store.data_mut().answer = Answer::Trap;
        let line = |mark| marked(SOURCE, mark)[0];
        let error = call(&mut store, &instance, "outer", 1).unwrap_err();
        let expected =
            [("grow_memory".to_owned(), line("memory")), ("outer".to_owned(), line("outer"))];
        assert_eq!(frames(&error), expected);
        let error = call(&mut store, &instance, "grow_table", 1).unwrap_err();
        assert_eq!(frames(&error), [("grow_table".to_owned(), line("table"))]);
    });
}

#[test]
fn its_panics_reach_the_host() {
    for_all(|engine| {
        let (mut store, instance) = limited(engine, Asked::default());
        store.data_mut().answer = Answer::Panic;
        for name in ["outer", "grow_table"] {
            let run = || call(&mut store, &instance, name, 1);
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"by the limiter"));
        }
        store.data_mut().answer = Answer::Yes;
        assert_eq!(call(&mut store, &instance, "outer", 1).unwrap(), 1);
    });
}

#[test]
fn fixed_limits() {
    for_all(|engine| {
        let limits = || StoreLimitsBuilder::new().memory_size(2 * PAGE).table_elements(4);
        let (mut store, instance) = limited(engine, limits().build());
        assert_eq!(call(&mut store, &instance, "grow_memory", 2).unwrap(), -1);
        assert_eq!(call(&mut store, &instance, "grow_memory", 1).unwrap(), 1);
        assert_eq!(call(&mut store, &instance, "grow_table", 2).unwrap(), -1);
        assert_eq!(call(&mut store, &instance, "grow_table", 1).unwrap(), 3);

        let stopping = limits().trap_on_grow_failure(true).build();
        let (mut store, instance) = limited(engine, stopping);
        let error = call(&mut store, &instance, "grow_memory", 2).unwrap_err();
        let expected = "growing a memory to 196608 bytes exceeds a limit";
        assert_eq!(error.to_string(), expected);
        let error = call(&mut store, &instance, "grow_table", 2).unwrap_err();
        assert_eq!(error.to_string(), "growing a table to 5 elements exceeds a limit");
        assert_eq!(call(&mut store, &instance, "outer", 1).unwrap(), 1);
    });
}

#[test]
fn the_failure_that_becomes_a_trap_is_its_source() {
    let limits = slotvm::Limits { memory_pages_max: 3, ..slotvm::Limits::default() };
    crate::support::for_all_with(
        |config| {
            config.limits(limits.clone());
        },
        |engine| {
            let stopping = StoreLimitsBuilder::new().trap_on_grow_failure(true).build();
            let (mut store, instance) = limited(engine, stopping);
            let error = call(&mut store, &instance, "grow_memory", 3).unwrap_err();
            assert_eq!(error.to_string(), "cannot grow a memory");
            let source = std::error::Error::source(&error).expect("why it failed");
            let expected = "limit memory_pages_max in bytes (196608) exceeded: 262144 wanted";
            assert_eq!(source.to_string(), expected);
        },
    );
}

#[test]
fn numbers_of_things_are_limited() {
    let refused = |limits: StoreLimits, source: &str| {
        let engine = Engine::new(Config::new().tier(Tier::BEST)).unwrap();
        let mut store = Store::new(&engine, limits);
        store.limiter(|limits| limits);
        let module = module(&engine, source);
        Instance::new(&mut store, &module, &[]).unwrap();
        Instance::new(&mut store, &module, &[]).unwrap_err().to_string()
    };
    let builder = StoreLimitsBuilder::new;
    assert_eq!(
        refused(builder().instances(1).build(), "memory m 1"),
        "limit ResourceLimiter::instances (1) exceeded: 2 wanted"
    );
    assert_eq!(
        refused(builder().memories(1).build(), "memory m 1"),
        "limit ResourceLimiter::memories (1) exceeded: 2 wanted"
    );
    assert_eq!(
        refused(builder().tables(3).build(), "table t funcref 1 table u externref 1"),
        "limit ResourceLimiter::tables (3) exceeded: 4 wanted"
    );
}

#[test]
fn without_a_limiter_nobody_is_asked() {
    for_all(|engine| {
        let (mut store, instance) =
            instance_with(engine, SOURCE, &Linker::new(engine), Asked::default());
        assert_eq!(call(&mut store, &instance, "grow_memory", 4).unwrap(), 1);
        assert!(store.data().requests.is_empty());
    });
}
