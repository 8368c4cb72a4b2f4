//! The fuzzing campaign: the checks of the targets in `fuzz/`, with inputs made here from seeds.
//!
//! In every run of the tests each target takes about a second. `SLOTVM_GENERATED=1000000` runs that many
//! inputs, `SLOTVM_SEED` sets the first seed, and `-- --nocapture` shows the figures. A failing input is
//! reported with its bytes, shrunk, and the command that runs it again.

mod allocator;
mod climb;
mod corpus;
mod given;
mod loops;
mod mutate;
mod rng;
mod sections;
mod words;

use slotvm_filetests::campaign;
use slotvm_filetests::campaign::cost::{FOUND, measure};
use slotvm_filetests::choices::random_bytes;
use slotvm_filetests::generate::case_of_seed;
use slotvm_filetests::seeds;

use climb::{Aim, Found, climb};
use corpus::Corpus;
use loops::Target;
use rng::Rng;
use sections::Form;

/// Number of WebAssembly modules for each one so large that several threads import it.
const LARGE_ONE_IN: usize = 2_000;

#[test]
fn bytecode() {
    let corpus = Corpus::bytecode();
    let input = |seed| {
        let mut rng = Rng::new(seed);
        let (input, other) = (corpus.pick(&mut rng), corpus.pick(&mut rng));
        sections::mutant(&mut rng, Form::Bytecode, input, other)
    };
    Target { name: "bytecode", input: &input, check: campaign::bytecode::check }.run(20_000);
}

#[test]
fn text() {
    let corpus = Corpus::text();
    let input = |seed| {
        let mut rng = Rng::new(seed);
        let (input, other) = (corpus.pick(&mut rng), corpus.pick(&mut rng));
        words::mutant(&mut rng, input, other)
    };
    Target { name: "text", input: &input, check: campaign::text::check }.run(5_000);
}

#[test]
fn wasm() {
    let corpus = Corpus::wasm();
    let input = |seed| {
        let mut rng = Rng::new(seed);
        let (input, other) = (corpus.pick(&mut rng), corpus.pick(&mut rng));
        let mut bytes = sections::mutant(&mut rng, Form::Wasm, input, other);
        if rng.one_in(LARGE_ONE_IN) {
            sections::enlarge(&mut bytes, campaign::wasm::PARALLEL_BYTES_MIN * 3);
        }
        bytes
    };
    Target { name: "wasm", input: &input, check: campaign::wasm::check }.run(20_000);
}

/// Modules that verify, with some opcodes replaced by others that fit.
#[test]
fn engines() {
    let corpus = Corpus::bytecode();
    let input = |seed| {
        let mut rng = Rng::new(seed);
        let mut bytes = match rng.one_in(2) {
            true => corpus.pick(&mut rng).to_vec(),
            false => slotvm_bytecode::encode(&case_of_seed(rng.bits() >> 8).module),
        };
        if rng.one_in(5) {
            bytes =
                sections::mutant(&mut rng, Form::Bytecode, &bytes, corpus.pick(&mut Rng::new(0)));
        }
        for _ in 0..rng.few() {
            sections::opcode(&mut rng, &mut bytes);
        }
        bytes
    };
    Target { name: "engines", input: &input, check: campaign::engines::check }.run_apart(100);
}

#[test]
fn api() {
    let input = |seed| random_bytes(seed, 40 + seed as usize % 500);
    Target { name: "api", input: &input, check: campaign::api::check }.run_apart(500);
}

#[test]
fn roots() {
    let input = |seed| random_bytes(seed, 40 + seed as usize % 300);
    Target { name: "roots", input: &input, check: campaign::roots::check }.run_apart(2_000);
}

#[test]
fn wasi() {
    let input = |seed| random_bytes(seed, 30 + seed as usize % 400);
    Target { name: "wasi", input: &input, check: campaign::wasi::check }.run_apart(150);
}

/// The genomes that the search has found take at most half of the promised memory.
#[test]
fn found_costs() {
    campaign::set_meter(allocator::METER);
    let mut broken = Vec::new();
    for (name, digits) in FOUND {
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        let genome: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        let cost = measure(&genome).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = Found { genome, cost };
        println!("{name}: {found}");
        if found.cost.of_memory() > 0.5 {
            broken.push(format!("{name}: {found}"));
        }
    }
    assert!(
        broken.is_empty(),
        "more than half of the memory that is promised:\n{}",
        broken.join("\n")
    );
}

/// No module takes more memory to compile than promised. The costliest ones are shown.
#[test]
fn cost() {
    const MEASURED_PER_CLIMBER: u64 = 400;
    campaign::set_meter(allocator::METER);
    let n = seeds::count_or(40);
    let n_climbers = n.div_ceil(MEASURED_PER_CLIMBER).max(2);
    let found = seeds::on_all_cores(0..n_climbers, |seed| {
        let aim = if seed % 2 == 0 { Aim::Time } else { Aim::Memory };
        let tops = climb(aim, loops::first_seed() + seed, (n / n_climbers) as usize)?;
        tops.iter().take(4).for_each(|top| println!("{aim:?} {top}"));
        Ok(tops)
    });
    let found: Vec<Found> =
        found.unwrap_or_else(|report| panic!("{report}")).into_iter().flatten().collect();
    let worst = |aim: Aim| {
        let worst = found.iter().max_by(|a, b| aim.of(&a.cost).total_cmp(&aim.of(&b.cost)));
        worst.expect("something was measured")
    };
    println!(
        "the worst for time: {}\nthe worst for memory: {}",
        worst(Aim::Time),
        worst(Aim::Memory)
    );
    let worst = worst(Aim::Memory);
    assert!(worst.cost.of_memory() <= 1.0, "more memory than promised: {worst}");
}
