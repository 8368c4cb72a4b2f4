//! A program that grows line by line, as under a REPL: a report.
//!
//! Each line is a module that extends the instance ([`slotvm::Instance::extend`]): it changes a variable by a function of an
//! earlier line, and every hundredth line defines that function anew. The lines are all made by the builder, loaded, linked
//! and run once. The table has the cost of a line at the beginning, in the middle and at the end of all of them: growing
//! figures would be seen. Bytes are those of the process, divided by the lines. Each table is that of a process of its own.
//! The rest of the time, beside user mode, is the system's, which may take longer for memory beyond some size.
//!
//! `--quick` runs a tenth of the lines; a filter selects tables by their titles.

use std::process::Command;
use std::time::Instant;

use slotvm::builder::{BuildError, ModuleBuilder};
use slotvm::{
    Bytecode, Config, Engine, Error, Instance, Limits, Linker, Module, Op, Store, Tier,
    ValType::I64,
};
use slotvm_benches::Args;
use vmrun::error::CliError;
use vmrun::table::table;

const LINES: u32 = 1_000_000;
/// Titles and tiers; the divisor of the number of lines; whether each line has a loop that is worth native code.
const KINDS: [(&str, Tier, u32, bool); 4] = [
    ("interpreter", Tier::Interpreter, 1, false),
    ("default tier", Tier::Auto, 1, false),
    ("lines with loops", Tier::Auto, 50, true),
    ("eager native code", Tier::Jit, 50, false),
];
/// Rounds of such a loop.
const ROUNDS: i64 = 100_000;
/// Rows of the table.
const ROWS: u32 = 5;
/// Every so many lines the function is another one.
const LINES_PER_FUNCTION: u32 = 100;

fn main() -> Result<(), CliError> {
    let args = Args::from_env();
    let n_lines = match (args.is_test, args.is_quick) {
        (true, _) => 1_000,
        (_, true) => LINES / 10,
        _ => LINES,
    };
    for (title, tier, part, has_loops) in KINDS {
        if args.is_test || args.has_filters() && args.selects(title) {
            let n_lines = n_lines / part;
            println!("{n_lines} lines: {title}\n{}\n", report(tier, n_lines, has_loops)?);
        } else if args.selects(title) {
            in_process(title)?;
        }
    }
    Ok(())
}

/// Lines of one tier would use the memory that those of another one have left.
fn in_process(title: &str) -> Result<(), CliError> {
    let program = std::env::current_exe()?;
    let status = Command::new(program).args(std::env::args().skip(1)).arg(title).status()?;
    assert!(status.success(), "{title}: {status}");
    Ok(())
}

fn report(tier: Tier, n_lines: u32, has_loops: bool) -> Result<comfy_table::Table, CliError> {
    let mut table = table(0, ["lines", "ns for each", "in user mode", "bytes for each"]);
    // A line is an instance.
    let limits =
        Limits { instances_max: LINES + LINES / LINES_PER_FUNCTION + 1, ..Limits::default() };
    let engine = Engine::new(Config::new().tier(tier).limits(limits))?;
    let mut program = Program::new(&engine)?;
    let per_row = n_lines / ROWS;
    for row in 0..ROWS {
        let (start, user, bytes) = (Instant::now(), user_ns(), resident_bytes()?);
        for line in row * per_row..(row + 1) * per_row {
            program.line(line, has_loops)?;
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(per_row);
        let user = (user_ns() - user) as f64 / f64::from(per_row);
        let bytes = (resident_bytes()? as f64 - bytes as f64) / f64::from(per_row);
        table.add_row([
            format!("{}", (row + 1) * per_row),
            format!("{ns:.0}"),
            format!("{user:.0}"),
            format!("{bytes:.0}"),
        ]);
    }
    Ok(table)
}

/// An instance that grows.
struct Program {
    engine: Engine,
    linker: Linker<()>,
    store: Store<()>,
    instance: Instance,
    /// The value of the variable.
    expected: i64,
}

impl Program {
    fn new(engine: &Engine) -> Result<Program, Error> {
        let mut store = Store::new(engine, ());
        let linker = Linker::new(engine);
        let first = r#"export "x" global x
            global x: mut i64 = i64.const 0"#;
        let instance = linker.instantiate(&mut store, &Module::from_text(engine, first)?)?;
        Ok(Program { engine: engine.clone(), linker, store, instance, expected: 0 })
    }

    fn line(&mut self, line: u32, has_loop: bool) -> Result<(), CliError> {
        let factor = i64::from(line / LINES_PER_FUNCTION);
        if line.is_multiple_of(LINES_PER_FUNCTION) {
            self.extend(definition(factor))?;
        }
        self.extend(statement(has_loop))?;
        let run = self.instance.get_typed_func::<(), i64>(&self.store, "line")?;
        self.expected = self.expected.wrapping_add(1).wrapping_mul(factor);
        assert_eq!(run.call(&mut self.store, ())?, self.expected);
        Ok(())
    }

    fn extend(&mut self, module: Result<Bytecode, BuildError>) -> Result<(), Error> {
        let module = module.expect("the module is valid");
        let module = Module::from_bytecode(&self.engine, module)?;
        self.instance.extend(&mut self.store, &module, &self.linker)?;
        Ok(())
    }
}

/// Defines `scale` for the lines to come.
fn definition(factor: i64) -> Result<Bytecode, BuildError> {
    let mut module = ModuleBuilder::new();
    let scale = module.declare_func("scale", &[I64], &[I64]);
    let mut f = module.define(scale);
    let x = f.param(0);
    f.local_get(x).i64_const(factor).op(Op::I64Mul).ret();
    f.finish()?;
    module.export_func("scale", scale);
    module.finish()
}

/// `x = scale(x + 1)`, after a loop that does nothing or without one; and returns it.
fn statement(has_loop: bool) -> Result<Bytecode, BuildError> {
    let mut module = ModuleBuilder::new();
    let x = module.import_global(Instance::SELF, "x", I64, true);
    let scale = module.import_func(Instance::SELF, "scale", &[I64], &[I64]);
    let line = module.declare_func("line", &[], &[I64]);
    let mut f = module.define(line);
    if has_loop {
        let (i, next) = (f.local(I64), f.label());
        f.bind(next).local_get(i).i64_const(1).op(Op::I64Add).local_tee(i);
        f.i64_const(ROUNDS).op(Op::I64LtS).br_if(next);
    }
    f.global_get(x).i64_const(1).op(Op::I64Add).call(scale).global_set(x).global_get(x).ret();
    f.finish()?;
    module.export_func("line", line);
    module.finish()
}

/// The time that the process has spent in user mode, in steps of 10 ms.
fn user_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The name of the program, in parentheses, is the second field.
    let fields = stat.rsplit(')').next().expect("there is one part at least");
    let ticks = fields.split_whitespace().nth(11).and_then(|n| n.parse::<u64>().ok());
    ticks.expect("a number") * 10_000_000
}

fn resident_bytes() -> Result<u64, CliError> {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = status.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
    Ok(pages * 4096)
}
