//! A JavaScript engine for embedders evaluates a script in every slotvm engine.
//!
//! It is an instance with functions to call, not a program, and imports WASI and functions of its embedder,
//! which do nothing here. The interpreter and mode `ssa` always run it, all modes with `SLOTVM_FULL=1`.

use std::io::{Write, stderr};
use std::panic::resume_unwind;
use std::thread::Builder;

use slotvm::{Config, Engine, Instance, Linker, Module, SlotMode, Store, Tier, Values};
use slotvm_filetests::packages::QUICKJS;
use slotvm_wasi::WasiCtx;

const SCRIPT: &str = include_str!("script/script.js");

/// The result of the script in V8.
const RESULT: &str = include_str!("script/result.json");

/// Limit of the engine's own stack for a script, less than there is.
const STACK_BYTES_MAX: u32 = 200_000;

/// The native stack of guest code: frames with their slots in memory are larger than others.
const NATIVE_STACK_BYTES: usize = 16 << 20;

/// The engine, instantiated.
struct QuickJs {
    store: Store<WasiCtx>,
    instance: Instance,
}

impl QuickJs {
    fn new(config: &Config, bytes: &[u8]) -> QuickJs {
        let engine = Engine::new(config).expect("the configuration is valid");
        let module = Module::new(&engine, bytes).unwrap_or_else(|error| panic!("{error}"));
        let mut linker = Linker::new(&engine);
        slotvm_wasi::add_to_linker(&mut linker, |ctx| ctx).expect("no name is taken");
        linker.define_unknown_imports_as_default_values(&module);
        let mut store = Store::new(&engine, WasiCtx::builder().build());
        let instance = linker.instantiate(&mut store, &module).expect("all imports are there");
        let mut this = QuickJs { store, instance };
        this.call::<(), ()>("_initialize", ());
        assert_eq!(this.call::<(), i32>("qjs_init", ()), 0);
        this.call::<u32, ()>("qjs_set_max_stack_size", STACK_BYTES_MAX);
        this
    }

    fn call<P: Values, R: Values>(&mut self, name: &str, args: P) -> R {
        let func = self.instance.get_typed_func::<P, R>(&self.store, name);
        func.expect("it is exported").call(&mut self.store, args).expect("no trap")
    }

    /// Writes a text to the memory, followed by a zero byte.
    fn send(&mut self, text: &str) -> u32 {
        let at = self.call::<u32, u32>("wasm_malloc", text.len() as u32 + 1);
        let memory = self.instance.get_memory(&self.store, "memory").expect("it is exported");
        memory.write(&mut self.store, at as usize, text.as_bytes()).expect("there is room");
        memory.write(&mut self.store, at as usize + text.len(), &[0]).expect("there is room");
        at
    }

    fn memory(&self) -> &[u8] {
        let memory = self.instance.get_memory(&self.store, "memory").expect("it is exported");
        memory.data(&self.store)
    }

    /// Returns the value of a script as text, and whether it is an exception.
    fn evaluate(&mut self, script: &str) -> (String, bool) {
        let (code, name) = (self.send(script), self.send("script.js"));
        let mut value = self.call::<_, u32>("qjs_eval", (code, script.len() as u32, name, 0_u32));
        let is_exception = self.call::<_, i32>("qjs_is_exception", value) != 0;
        if is_exception {
            value = self.call("qjs_get_exception", ());
        }
        let at = self.call::<_, u32>("qjs_get_string", value) as usize;
        let text = self.memory()[at..].split(|&byte| byte == 0).next().unwrap_or_default();
        (String::from_utf8(text.to_vec()).expect("it is text"), is_exception)
    }
}

/// Evaluates scripts, including endless recursion and a malformed script.
fn run(config: &Config, bytes: &[u8]) {
    let mut engine = QuickJs::new(config, bytes);
    assert_eq!(engine.evaluate(SCRIPT), (RESULT.to_owned(), false), "{config:?}");
    let (error, is_exception) = engine.evaluate("(function f() { f(); })()");
    assert!(is_exception && error.starts_with("RangeError"), "{config:?}: {error}");
    let (error, is_exception) = engine.evaluate("let = ;");
    assert!(is_exception && error.starts_with("SyntaxError"), "{config:?}: {error}");
    assert_eq!(engine.evaluate("words.length + 1"), ("13".to_owned(), false), "{config:?}");
}

#[test]
fn an_engine_of_javascript_evaluates_in_every_engine() {
    let bytes = match QUICKJS.read() {
        Ok(bytes) => bytes,
        Err(reason) => {
            // Not captured, so that it is always visible.
            let _ = writeln!(stderr(), "QuickJS is left out: {reason}");
            return;
        }
    };
    assert_eq!(bytes.len(), 637_405);
    let run_all = move || {
        run(Config::new().tier(Tier::Interpreter), &bytes);
        let is_full = std::env::var("SLOTVM_FULL").as_deref() == Ok("1");
        for slots in SlotMode::ALL {
            if is_full || slots == SlotMode::Ssa {
                let mut config = Config::new();
                config.tier(Tier::Jit).slots(slots).max_native_stack(NATIVE_STACK_BYTES);
                run(&config, &bytes);
            }
        }
    };
    let thread = Builder::new().stack_size(2 * NATIVE_STACK_BYTES).spawn(run_all);
    thread.expect("there is a thread").join().unwrap_or_else(|panic| resume_unwind(panic));
}
