//! A real module of 4.2 MB, a TypeScript formatter, formats in every engine.
//!
//! `npm` fetches it. If that fails, the test reports it and does nothing. The interpreter always runs; the
//! slot modes need `SLOTVM_FULL=1`, since unoptimised builds take long to compile.

mod programs;
mod script;

use std::io::{Write, stderr};

use slotvm::{
    CompileFailure, Config, Engine, Instance, Module, SlotMode, Store, Tier, TierCompilation,
    TierThresholds, Values,
};
use slotvm_filetests::packages::TYPESCRIPT_FORMATTER;

const UNFORMATTED: &str = "\
import {b,a} from './module'
interface Point{x:number,y?:string}
export async function* f<T extends Point>( p:T,...rest:number[] ):AsyncGenerator<number>{
for(const n of rest){if(n>1){yield n*2}else yield await g(p?.y??`${n}`)}
}
const table={one:1,'two':2,[a]:(x:number)=>x**2,get b(){return b}}
switch(a){case 1:f();break
default:throw new Error('no')}
";

/// The result of the same module in V8.
const FORMATTED: &str = include_str!("real.formatted.ts");

/// The formatter, instantiated.
struct Formatter {
    store: Store<()>,
    instance: Instance,
}

impl Formatter {
    fn new(config: &Config, bytes: &[u8]) -> Formatter {
        let engine = Engine::new(config).expect("the configuration is valid");
        let module = Module::new(&engine, bytes).unwrap_or_else(|error| panic!("{error}"));
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("it imports nothing");
        Formatter { store, instance }
    }

    fn call<P: Values, R: Values>(&mut self, name: &str, args: P) -> R {
        let func = self.instance.get_typed_func::<P, R>(&self.store, name);
        func.expect("it is exported").call(&mut self.store, args).expect("no trap")
    }

    /// Writes a text to the place where the next call expects it.
    fn send(&mut self, text: &str) {
        let at = self.call::<u32, u32>("clear_shared_bytes", text.len() as u32);
        let memory = self.instance.get_memory(&self.store, "memory").expect("it is exported");
        memory.write(&mut self.store, at as usize, text.as_bytes()).expect("there is room");
    }

    /// Reads a text that a call has left behind.
    fn receive(&mut self, len: u32) -> String {
        let at = self.call::<(), u32>("get_shared_bytes_ptr", ()) as usize;
        let bytes = self.memory()[at..at + len as usize].to_vec();
        String::from_utf8(bytes).expect("it is text")
    }

    fn memory(&self) -> &[u8] {
        let memory = self.instance.get_memory(&self.store, "memory").expect("it is exported");
        memory.data(&self.store)
    }

    fn format(&mut self, source: &str) -> Result<String, String> {
        self.send("example.ts");
        self.call::<(), ()>("set_file_path", ());
        self.send(source);
        match self.call::<u32, u32>("format", 1) {
            0 => Ok(source.to_owned()),
            1 => {
                let len = self.call("get_formatted_text", ());
                Ok(self.receive(len))
            }
            _ => {
                let len = self.call("get_error_text", ());
                Err(self.receive(len))
            }
        }
    }
}

/// The compared outcome: texts, and the memory at the end.
fn run(config: &Config, bytes: &[u8]) -> (Vec<Result<String, String>>, Vec<u8>) {
    let mut formatter = Formatter::new(config, bytes);
    assert_eq!(formatter.call::<(), u32>("dprint_plugin_version_4", ()), 4);
    formatter.send(r#"{"global":{"lineWidth":80},"plugin":{"quoteStyle":"preferSingle"}}"#);
    formatter.call::<u32, ()>("register_config", 1);
    let info = formatter.call("get_plugin_info", ());
    let info = formatter.receive(info);
    assert!(info.contains("dprint-plugin-typescript"), "{info}");
    let sources = [UNFORMATTED, FORMATTED, "let x = ;"];
    let texts = sources.iter().map(|source| formatter.format(source)).collect();
    let memory = formatter.memory().to_vec();
    let engine = formatter.store.engine().clone();
    drop(formatter);
    let stats = engine.compile_stats();
    let mut failures = stats.all_failures();
    let unexpected = failures.find(|&(reason, _)| reason != CompileFailure::DifferentOperands);
    assert_eq!(unexpected, None, "not everything was compiled");
    (texts, memory)
}

#[test]
fn a_formatter_of_megabytes_formats_in_every_engine() {
    let bytes = match TYPESCRIPT_FORMATTER.read() {
        Ok(bytes) => bytes,
        Err(reason) => {
            // Not captured, so that it is always visible.
            let _ = writeln!(stderr(), "the formatter is left out: {reason}");
            return;
        }
    };
    let expected = run(Config::new().tier(Tier::Interpreter), &bytes);
    assert_eq!(expected.0[0].as_deref(), Ok(FORMATTED));
    assert_eq!(expected.0[1].as_deref(), Ok(FORMATTED), "it is formatted already");
    assert!(expected.0[2].as_ref().is_err_and(|error| error.contains("Expression expected")));
    assert!(run(&Config::new(), &bytes) == expected, "the default configuration differs");
    let mut tiered = Config::new();
    tiered.tier(Tier::Auto).tier_compilation(TierCompilation::Synchronous);
    // Unoptimised builds would take long to compile each function that is called.
    let (calls, rounds) = if cfg!(debug_assertions) { (50, 200) } else { (1, 1) };
    let found = run(tiered.tier_thresholds(Some(TierThresholds { calls, rounds })), &bytes);
    assert!(found == expected, "all tiers in one program differ");
    if std::env::var("SLOTVM_FULL").as_deref() != Ok("1") {
        return;
    }
    for slots in SlotMode::ALL {
        let found = run(Config::new().tier(Tier::Jit).slots(slots), &bytes);
        assert_eq!(found.0, expected.0, "{slots}");
        assert!(found.1 == expected.1, "{slots}: the memory differs");
    }
}
