//! Costs of each opcode in the code generator: makes `jit/src/compile/budget/weights.rs`, or checks it.
//!
//! ```text
//! cargo build --release --workspace --example opcode_costs
//! target/release/examples/opcode_costs write
//! target/release/examples/opcode_costs check
//! target/release/examples/opcode_costs print i64.rotr i64.add
//! ```
//!
//! Each opcode is compiled alone, also in a block of its own, and in chains, in which each instruction takes the
//! result of the one before ([`Shape`]), with the optimiser, without it, and with registers in one pass ([`Effort`]).
//! The cost is the slope between functions of different lengths: instructions executed, which valgrind's callgrind
//! counts, and bytes at the peak, which the allocator counts. No other load of the machine changes either. Vector
//! extensions of the processor do: both are counted in valgrind, which has AVX2 and hides what a processor has beyond
//! it. With AVX-512 most of what differs takes less; `i64x2.extmul_high_i32x4_u` takes 7,300 bytes.
//!
//! `check` measures again and fails if an entry has moved by more than 10%. `print` prints the measurements of
//! some opcodes, and how they divide between the stages of compiling. It takes some minutes, and needs valgrind
//! and objcopy.

mod measure;
mod shapes;
mod stages;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::{Effort, Subject};
use shapes::Shape;
use slotvm_bytecode::Op;
use stages::Split;

/// Relative change of an entry that is tolerated.
const TOLERANCE: f64 = 0.10;
/// Differences that do not count: executed instructions and bytes for each instruction compiled.
const NOISE: [f64; 2] = [1_500.0, 150.0];

/// The columns of the table: what is measured, of the shapes in which that is most.
const COLUMNS: &[(&str, Effort, &[Shape])] = &[
    ("alone", Effort::Optimised, &Shape::ALONE),
    ("chained", Effort::Optimised, &Shape::CHAINS),
    ("chained_with_consts", Effort::Optimised, &Shape::CONST_CHAINS),
    ("unoptimised", Effort::Unoptimised, &UNOPTIMISED),
    ("in_one_pass", Effort::OnePass, &UNOPTIMISED),
];

const UNOPTIMISED: [Shape; 4] = [Shape::Chained, Shape::Alone, Shape::Parted, Shape::ConstLength];

/// The costs of an opcode, by column: instructions and bytes, or nothing where it cannot stand so.
type Row = Vec<Option<[Split; 2]>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, names) = args.split_first().expect("expected write, check or print");
    let named = |op: &&Op| names.is_empty() || names.iter().any(|name| name == op.mnemonic());
    let ops: Vec<Op> = Op::ALL.iter().filter(named).copied().collect();
    let rows = |counts: [&str; 2]| rows(&ops, counts, names);
    match command.as_str() {
        "write" => {
            std::fs::write(table(), print(&rows(["count", "bytes"])))
                .expect("the table can be written");
        }
        "check" => return check(&rows(["count", "bytes"])),
        "print" => {
            stages::watch();
            print!("{}", print_stages(&rows(["count-stages", "bytes-stages"])));
        }
        // What the others run in valgrind.
        "count" => measure::compile_all(&subjects(&ops)),
        "count-stages" => {
            stages::watch();
            measure::compile_all(&subjects(&ops));
        }
        "bytes" => measure::print_bytes(&subjects(&ops)),
        "bytes-stages" => {
            stages::watch();
            measure::print_bytes(&subjects(&ops));
        }
        _ => panic!("expected write, check or print"),
    }
    ExitCode::SUCCESS
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/compile/budget/weights.rs")
}

/// All subjects that are measured for these opcodes.
fn subjects(ops: &[Op]) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for &op in ops {
        for &(_, effort, shapes) in COLUMNS {
            for &shape in fitting(op, effort, shapes) {
                let there = Subject { op, is_there: true, shape, effort };
                subjects.extend([there].into_iter().chain(there.around()));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    subjects.retain(|&subject| seen.insert(subject));
    subjects
}

/// The shapes in which an opcode is measured; without the optimiser the first in one block is as good as any.
fn fitting(op: Op, effort: Effort, shapes: &'static [Shape]) -> Vec<&'static Shape> {
    let mut fitting: Vec<_> = shapes.iter().filter(|&&shape| shapes::fits(op, shape)).collect();
    if effort != Effort::Optimised {
        let first = fitting.first().copied();
        let other = [Shape::Parted, Shape::ConstLength];
        fitting.retain(|&shape| Some(shape) == first || other.contains(shape));
    }
    fitting
}

/// Measures these opcodes. This program counts instructions and bytes when it is called with one of `counts` and
/// the names of the opcodes.
fn rows(ops: &[Op], counts: [&str; 2], names: &[String]) -> Vec<(Op, Row)> {
    let subjects = subjects(ops);
    let of_each = |costs: Vec<Split>| subjects.iter().copied().zip(costs).collect();
    let [of_count, of_bytes] = counts.map(|count| {
        let names = names.iter().map(String::as_str);
        [count].into_iter().chain(names).collect::<Vec<_>>()
    });
    let [instructions, bytes]: [BTreeMap<Subject, Split>; 2] = std::thread::scope(|scope| {
        let bytes = scope.spawn(|| measure::bytes(&subjects, &of_bytes));
        let instructions = measure::instructions(&subjects, &of_count);
        [instructions, bytes.join().expect("the bytes are counted")].map(of_each)
    });
    let column = |op, &(_, effort, shapes): &(&str, Effort, &'static [Shape])| {
        let costs = fitting(op, effort, shapes).into_iter().map(|&shape| {
            let there = Subject { op, is_there: true, shape, effort };
            [&instructions, &bytes].map(|costs| {
                let around = there.around().map(|around| costs[&around]);
                costs[&there].beyond(around.unwrap_or_default())
            })
        });
        costs.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])])
    };
    ops.iter().map(|&op| (op, COLUMNS.iter().map(|shape| column(op, shape)).collect())).collect()
}

/// Compares what is measured with the table.
fn check(rows: &[(Op, Row)]) -> ExitCode {
    let text = std::fs::read_to_string(table()).expect("the table is there");
    let old: BTreeMap<&str, Vec<f64>> = text.lines().filter_map(entry).collect();
    let mut n_moved = 0;
    for (op, row) in rows {
        let name = op.mnemonic();
        let new: Vec<f64> = numbers(row).map(f64::from).collect();
        let old = old.get(name).unwrap_or_else(|| panic!("no entry for {name}"));
        let has_moved = |i: usize| {
            let (a, b) = (old[i], new[i]);
            (a - b).abs() > NOISE[i % 2].max(TOLERANCE * a.min(b))
        };
        if old.len() != new.len() || (0..new.len()).any(has_moved) {
            println!("{name}: {old:?} in the table, {new:?} measured");
            n_moved += 1;
        }
    }
    println!("{n_moved} of {} entries have moved by more than 10%", rows.len());
    if n_moved == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The entry of a line of the table.
fn entry(line: &str) -> Option<(&str, Vec<f64>)> {
    let (numbers, name) = line.trim().strip_prefix('[')?.split_once("], // ")?;
    let numbers = numbers.split(", ").map(str::parse);
    Some((name, numbers.collect::<Result<_, _>>().ok()?))
}

fn numbers(row: &Row) -> impl Iterator<Item = u32> {
    row.iter().flat_map(|cost| cost.unwrap_or_default()).map(|cost| cost.whole.round() as u32)
}

fn print(rows: &[(Op, Row)]) -> String {
    let columns: Vec<&str> = COLUMNS.iter().map(|&(name, ..)| name).collect();
    let mut out = format!(
        "//! Costs of each opcode in the code generator, as measured: made by the example `opcode_costs`, where it\n\
         //! says how.\n\n\
         /// The costs of one instruction of each opcode, in the order of the table of opcodes: executed\n\
         /// instructions and bytes {}. Zeros where it is not measured.\n\
         #[rustfmt::skip]\n\
         pub(super) static COSTS: [[u32; {}]; {}] = [\n",
        columns.join(", ").replace('_', " "),
        2 * columns.len(),
        rows.len(),
    );
    for (op, row) in rows {
        let numbers: Vec<String> = numbers(row).map(|number| number.to_string()).collect();
        writeln!(out, "    [{}], // {}", numbers.join(", "), op.mnemonic()).expect("it is memory");
    }
    out + "];\n"
}

/// The costs of each opcode in each column: of the whole, and of each stage.
fn print_stages(rows: &[(Op, Row)]) -> String {
    let mut out = format!("{:60}{:>10}", "", "whole");
    for stage in stages::STAGES.iter().chain(&["between"]) {
        write!(out, "{stage:>10}").expect("it is memory");
    }
    out.push('\n');
    let cost = |op: &Op, column: usize, cost: [Split; 2]| {
        let line = |(unit, Split { stages, whole }): (&str, Split)| {
            let name = format!("{}, {}", op.mnemonic(), COLUMNS[column].0.replace('_', " "));
            let costs = [whole].into_iter().chain(stages).map(|cost| format!("{cost:10.0}"));
            format!("{name:<50}{unit:<10}{}\n", costs.collect::<String>())
        };
        ["executed", "bytes"].into_iter().zip(cost).map(line).collect::<String>()
    };
    for (op, row) in rows {
        let costs = row.iter().enumerate();
        out.extend(costs.filter_map(|(i, split)| split.map(|split| cost(op, i, split))));
    }
    out
}
