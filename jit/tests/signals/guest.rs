//! Guest code that traps in every way.

use slotvm::{
    Config, Engine, Instance, IntoFunc, Linker, MemoryPlan, Module, Store, Tier, TrapCode,
    TypedFunc,
};

/// Functions that trap if the parameter is 0, and the host function `host`.
const SOURCE: &str = r#"
    import "env" "host" func host(i32) -> i32
    memory mem 1 1
    export "mem" memory mem
    export "load" func load
    export "store" func store
    export "divide" func divide
    export "overflow" func overflow
    export "stop" func stop
    export "deep" func deep
    export "through" func through
    func load(n: i32) -> i32 {
      local.get n i32.eqz i32.const 65536 i32.mul
      i32.load return
    }
    func store(n: i32) -> i32 {
      local.get n i32.eqz i32.const -4 i32.mul
      local.get n i32.store 16
      i32.const 16 i32.load return
    }
    func divide(n: i32) -> i32 {
      local.get n local.get n i32.div_u return
    }
    func overflow(n: i32) -> i32 {
      i32.const -2147483648 local.get n i32.const 1 i32.sub i32.div_s return
    }
    func stop(n: i32) -> i32 {
      local.get n br_if on
      unreachable
    on:
      local.get n return
    }
    func deep(n: i32) -> i32 {
      local.get n br_if on
      local.get n call deep i32.const 1 i32.add return
    on:
      local.get n return
    }
    func through(n: i32) -> i32 {
      local.get n call host return
    }"#;

/// An instance of the guest code, with the name of each function that traps and its trap.
pub(crate) struct Guest {
    pub(crate) store: Store<()>,
    pub(crate) instance: Instance,
    traps: Vec<(TypedFunc<i32, i32>, TrapCode)>,
}

impl Guest {
    /// An instance whose `host` returns its argument, in a new engine.
    pub(crate) fn new() -> Guest {
        Guest::with_host(|n: i32| n)
    }

    /// An instance with a host function, in a new engine.
    pub(crate) fn with_host<P, R>(host: impl IntoFunc<(), P, R>) -> Guest {
        Guest::with_config(Config::new().tier(Tier::BEST), host)
    }

    /// Returns an instance that relies on guard pages and one that checks each access.
    pub(crate) fn of_both_kinds() -> [Guest; 2] {
        let mut guarded = Config::new();
        guarded.tier(Tier::BEST);
        let mut checked = guarded.clone();
        checked.memory(Some(MemoryPlan::CHECKED));
        [guarded, checked].map(|config| Guest::with_config(&config, |n: i32| n))
    }

    fn with_config<P, R>(config: &Config, host: impl IntoFunc<(), P, R>) -> Guest {
        let engine = Engine::new(config).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_wrap("env", "host", host).unwrap();
        let mut store = Store::new(&engine, ());
        let module = Module::from_text(&engine, SOURCE).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let traps = [
            ("load", TrapCode::MemoryOutOfBounds),
            ("store", TrapCode::MemoryOutOfBounds),
            ("divide", TrapCode::IntegerDivisionByZero),
            ("stop", TrapCode::Unreachable),
        ];
        let func = |name| instance.get_typed_func(&store, name).unwrap();
        let traps = traps.into_iter().map(|(name, code)| (func(name), code)).collect();
        Guest { store, instance, traps }
    }

    /// Calls an exported function.
    pub(crate) fn call(&mut self, name: &str, n: i32) -> Result<i32, slotvm::Error> {
        let func = self.instance.get_typed_func::<i32, i32>(&self.store, name).unwrap();
        func.call(&mut self.store, n)
    }

    /// Traps `n` times, each time in the next way, and lets functions return in between.
    pub(crate) fn trap(&mut self, n: usize) {
        for (func, code) in self.traps.iter().cycle().take(n) {
            let error = func.call(&mut self.store, 0).unwrap_err();
            assert_eq!(error.trap_code(), Some(*code), "{error}");
            assert!((0..=1).contains(&func.call(&mut self.store, 1).unwrap()));
        }
    }

    /// Traps in the ways that are too slow for [`Guest::trap`], or depend on the machine.
    pub(crate) fn trap_in_other_ways(&mut self) {
        for (name, code) in
            [("deep", TrapCode::StackOverflow), ("overflow", TrapCode::IntegerOverflow)]
        {
            assert_eq!(self.call(name, 0).unwrap_err().trap_code(), Some(code), "{name}");
        }
        assert_eq!(self.call("overflow", 2).unwrap(), i32::MIN);
        assert_eq!(self.call("deep", 1).unwrap(), 1);
    }

    /// The first byte of the memory.
    pub(crate) fn memory(&mut self) -> *mut u8 {
        let memory = self.instance.get_memory(&self.store, "mem").unwrap();
        memory.data_mut(&mut self.store).as_mut_ptr()
    }
}
