//! The cost of compiling a module, compared with the promise for its size.
//!
//! [`genome`] makes functions of any shape from bytes. `tests/campaign` searches for those that cost the most
//! for their size; [`FOUND`] has the results.

mod found;
pub mod genome;

use std::sync::Arc;

use slotvm::compiler::Work;
use slotvm::{Compile, Config, Engine, Instance, MemoryPlan, Module, SlotMode, Store, Tier};
use slotvm_bytecode::{VerifiedModule, encode, verify};

use super::metered;
pub use found::FOUND;
use genome::{Head, NAME};

/// The promised time for compiling a module of this many bytes, in milliseconds.
pub fn promised_ms(n_bytes: usize) -> f64 {
    let kb = n_bytes as f64 / 1024.0;
    100.0 * kb.min(64.0) + 10.0 * (kb - 64.0).max(0.0)
}

/// The promised memory for compiling a module of this many bytes, in bytes.
pub fn promised_bytes(n_bytes: usize) -> u64 {
    (128 << 20) + 1024 * n_bytes as u64
}

/// The cost of a module.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Size of the module in bytes.
    pub n_bytes: usize,
    /// CPU time of all functions in milliseconds, each of which takes as long as the first.
    pub ms: f64,
    /// Peak memory in bytes, if it is counted.
    pub peak: u64,
    /// The compile work of the function, or `None` if it was refused.
    pub work: Option<Work>,
    /// The mode.
    pub slots: SlotMode,
}

impl Cost {
    /// Whether costs are promised for the mode. They are not for modes that exist for comparisons.
    pub fn is_promised(&self) -> bool {
        matches!(self.slots, SlotMode::Ssa | SlotMode::Memory)
    }

    /// Its time as a fraction of the promised time.
    pub fn of_time(&self) -> f64 {
        self.ms / promised_ms(self.n_bytes)
    }

    /// Its memory as a fraction of the promised memory.
    pub fn of_memory(&self) -> f64 {
        self.peak as f64 / promised_bytes(self.n_bytes) as f64
    }
}

/// Compiles the function of a genome once, and returns the cost of the whole module.
///
/// # Errors
/// Fails if anything except compilation fails.
pub fn measure(genome: &[u8]) -> Result<Cost, String> {
    let head = Head::of(genome);
    let module = genome::module(genome);
    let n_bytes = encode(&module).len();
    let module = Arc::new(verify(module).map_err(|error| error.to_string())?);
    let (slots, config) = config(head);
    let engine = Engine::new(&config).map_err(|error| error.to_string())?;
    let before = cpu_ms();
    let (work, peak) = metered(|| compile(&engine, &module));
    let ms = (cpu_ms() - before) * head.n_copies as f64;
    Ok(Cost { n_bytes, ms, peak, work: work?, slots })
}

/// Settings that change the generated code.
fn config(head: Head) -> (SlotMode, Config) {
    let slots = match head.mode % 8 {
        mode @ 0..=4 => SlotMode::ALL[mode as usize % SlotMode::ALL.len()],
        _ => SlotMode::Ssa,
    };
    let is_set = |bit: u8| head.settings >> bit & 1 == 1;
    let mut config = Config::new();
    config.tier(Tier::Jit).slots(slots).verify_passes(false).parallel_compilation(false);
    config.consume_fuel(is_set(0)).canonical_nans(is_set(2));
    match head.n_copies {
        1 => config.epoch_interruption(is_set(1)),
        _ => config.compile(Compile::Lazy),
    };
    if is_set(3) {
        config.memory(Some(MemoryPlan::PLAIN)).signals_based_traps(false);
    }
    if is_set(4) {
        config.deterministic_stack(Some(1 << 20));
    }
    (slots, config)
}

/// Compiles the function, alone or by its first call, which returns at once. Returns no work if it is
/// refused.
fn compile(engine: &Engine, module: &Arc<VerifiedModule>) -> Result<Option<Work>, String> {
    let compiled = Module::from_verified(engine, module.clone()).and_then(|module| {
        if module.functions().is_empty() {
            let mut store = Store::new(engine, ());
            // An engine without fuel refuses to set it.
            let _ = store.set_fuel(1_000);
            let instance = Instance::new(&mut store, &module, &[])?;
            let func = instance.get_typed_func::<i32, i64>(&store, NAME)?;
            // The compiled function's frame may be larger than the stack.
            func.call(&mut store, 1)
                .or_else(|error| if module.functions().is_empty() { Err(error) } else { Ok(0) })?;
        }
        Ok(module.functions().first().map(|function| function.work))
    });
    compiled.or_else(|error| match error.to_string() {
        error if error.contains("compile work") => Ok(None),
        error => Err(error),
    })
}

/// CPU time of the thread, in milliseconds.
fn cpu_ms() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: Option<f64> =
        times.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e6
}
