//! Limits against hostile code: programs that want to hang, to take all memory or to reach out of their
//! own, and what stops each of them.
//!
//! ```text
//! cargo run --release --bin sandbox
//! ```
//!
//! The host chooses a budget of fuel, a size of memory and a depth of calls. What exceeds them ends with an
//! error that says so, and the next program runs in a store that nothing has happened to.

use std::process::ExitCode;

use slotvm::{
    Config, Engine, Error, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
};

/// Limits of each program.
const FUEL_MAX: u64 = 10_000_000;
const MEMORY_BYTES_MAX: usize = 1 << 20;
const TABLE_ELEMS_MAX: usize = 1_000;
const STACK_CELLS_MAX: u64 = 100_000;

/// Programs with what they want; each exports `run`.
const PROGRAMS: &[(&str, &str)] = &[
    ("computes 6 * 7", "i32.const 6 i32.const 7 i32.mul return"),
    ("loops for ever", "again: br again"),
    ("calls itself for ever", "call run return"),
    ("divides by zero", "i32.const 1 i32.const 0 i32.div_s return"),
    ("reads behind its memory", "i32.const 65536 i32.load return"),
    (
        "fills memory that it does not have",
        "
        i32.const 0 i32.const 1 i32.const 65537 memory.fill i32.const 0 return",
    ),
    (
        "takes memory until there is none left",
        "
        again: i32.const 1 memory.grow i32.const -1 i32.ne br_if again memory.size return",
    ),
    (
        "takes a table of a million elements",
        "ref.null funcref i32.const 1000000 table.grow t return",
    ),
    ("jumps to where no function is", "i32.const 7 call_indirect () -> i32 return"),
];

fn module_text(body: &str) -> String {
    format!(
        "memory m 1\ntable t funcref 1\nexport \"run\" func run\nfunc run() -> i32 {{ {body} }}"
    )
}

fn sandbox() -> Result<Engine, Error> {
    Engine::new(Config::new().consume_fuel(true).deterministic_stack(Some(STACK_CELLS_MAX)))
}

/// Runs a program within the limits.
fn run(engine: &Engine, body: &str) -> Result<i32, Error> {
    let module = Module::from_text(engine, &module_text(body))?;
    let limits = StoreLimitsBuilder::new()
        .memory_size(MEMORY_BYTES_MAX)
        .table_elements(TABLE_ELEMS_MAX)
        .instances(1)
        .build();
    let mut store: Store<StoreLimits> = Store::new(engine, limits);
    store.limiter(|limits| limits);
    store.set_fuel(FUEL_MAX)?;
    let instance = Linker::new(engine).instantiate(&mut store, &module)?;
    instance.get_typed_func::<(), i32>(&store, "run")?.call(&mut store, ())
}

/// Describes the outcome of a program.
fn outcome(result: &Result<i32, Error>) -> String {
    match result {
        Ok(value) => format!("gives {value}"),
        Err(error) => match error.trap_code() {
            Some(TrapCode::OutOfFuel) => format!("stopped after {FUEL_MAX} instructions"),
            Some(code) => format!("stopped: {code}"),
            None => format!("refused: {error}"),
        },
    }
}

fn main() -> ExitCode {
    let engine = match sandbox() {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    for (wish, body) in PROGRAMS {
        println!("{wish:40} {}", outcome(&run(&engine, body)));
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wish_ends_as_it_should() {
        let engine = sandbox().unwrap();
        let outcomes: Vec<_> = PROGRAMS
            .iter()
            .map(|(_, body)| run(&engine, body).map_err(|e| e.trap_code()))
            .collect();
        let pages = (MEMORY_BYTES_MAX >> 16) as i32;
        assert_eq!(
            outcomes,
            [
                Ok(42),
                Err(Some(TrapCode::OutOfFuel)),
                Err(Some(TrapCode::StackOverflow)),
                Err(Some(TrapCode::IntegerDivisionByZero)),
                Err(Some(TrapCode::MemoryOutOfBounds)),
                Err(Some(TrapCode::MemoryOutOfBounds)),
                Ok(pages),
                Ok(-1),
                Err(Some(TrapCode::TableOutOfBounds)),
            ]
        );
    }
}
