//! Compares [`construct`] with `opt -passes=mem2reg` on random graphs whose blocks read and write slots.
//!
//! The entry writes all slots, and no two writes write the same value, so that LLVM has nothing to fold.
//! Phis, their operands and the values of reads must be equal one by one. LLVM names a phi after its
//! `alloca`.

use std::collections::BTreeMap;
use std::fmt::Write;

use slotvm_filetests::choices::{Choices, random_bytes};
use slotvm_filetests::opt::{LlvmFunction, Opt, functions};
use slotvm_filetests::seeds;
use slotvm_ssa::construction::construct::{
    Access, ConstructOptions, Scratch, SlotProgram, SsaForm, construct,
};
use slotvm_ssa::graphs::cfg::{Cfg, ControlFlow};
use slotvm_ssa::graphs::loops::LoopForest;

/// Number of functions in an ordinary run of the tests.
const FUNCTIONS_USUAL: u64 = 500;
/// Number of functions for one run of `opt`.
const BATCH_FUNCTIONS: u64 = 500;
/// Number of bytes that determine a function.
const FUNCTION_BYTES: usize = 3_000;

#[derive(Default)]
struct Counts {
    n_functions: usize,
    n_irreducible: usize,
    n_with_duplicate_edges: usize,
    n_blocks: usize,
    n_accesses: usize,
    n_phis: usize,
    n_operands: usize,
    n_reads: usize,
}

pub(crate) fn check(opt: Opt) -> Result<String, String> {
    let mut counts = Counts::default();
    let mut scratch = Scratch::default();
    let n = seeds::count_or(FUNCTIONS_USUAL);
    let mut seeds = 0..n;
    while !seeds.is_empty() {
        let batch: Vec<(u64, SlotProgram)> = seeds
            .by_ref()
            .take(BATCH_FUNCTIONS as usize)
            .map(|seed| (seed, program(&mut Choices::new(&random_bytes(seed, FUNCTION_BYTES)))))
            .collect();
        let mut text = String::from(DECLARATIONS);
        for (seed, program) in &batch {
            write_function(&mut text, *seed, program).expect("writing to a string works");
        }
        let promoted = opt.run("mem2reg", &text)?;
        let promoted = functions(&promoted)?;
        assert_eq!(promoted.len(), batch.len());
        for ((seed, program), llvms) in batch.iter().zip(&promoted) {
            let form = construct(program, &ConstructOptions::default(), &mut scratch)
                .map_err(|error| error.to_string())?;
            compare(program, &form, llvms, &mut counts)
                .map_err(|error| format!("seed {seed}: {error}"))?;
            counts.add(program, &form);
        }
    }
    let Counts { n_functions, n_irreducible, n_with_duplicate_edges, .. } = counts;
    let Counts { n_blocks, n_accesses, n_phis, n_operands, n_reads, .. } = counts;
    let is_varied = n_irreducible * 8 >= n_functions && n_with_duplicate_edges * 8 >= n_functions;
    if n >= FUNCTIONS_USUAL && !(is_varied && n_phis > 2 * n_functions) {
        return Err("the functions lack the intended properties".to_owned());
    }
    Ok(format!(
        "{n_functions} functions, {n_irreducible} of them irreducible and {n_with_duplicate_edges} with \
         duplicate edges, {n_blocks} blocks, {n_accesses} accesses: {n_phis} phis with {n_operands} \
         operands and {n_reads} reads are equal"
    ))
}

impl Counts {
    fn add(&mut self, program: &SlotProgram, form: &SsaForm) {
        let cfg = program.cfg();
        let blocks = || 0..cfg.n_blocks() as u32;
        let loops = LoopForest::new(cfg);
        let has_duplicates = |block: u32| {
            let mut succs = cfg.succs(block).to_vec();
            succs.sort_unstable();
            succs.windows(2).any(|pair| pair[0] == pair[1])
        };
        self.n_functions += 1;
        self.n_irreducible += usize::from(loops.loops().any(|it| loops.is_irreducible(it)));
        self.n_with_duplicate_edges += usize::from(blocks().any(has_duplicates));
        self.n_blocks += cfg.n_blocks();
        self.n_accesses += program.n_accesses();
        self.n_phis += form.phis().len();
        self.n_operands += form.n_operands();
    }
}

/// A random function.
fn program(choices: &mut Choices<'_>) -> SlotProgram {
    let n_blocks_max = choices.pick(&[4, 8, 8, 16, 16, 16, 40, 80]);
    let n_blocks = 1 + choices.below(n_blocks_max);
    let mut succs = if choices.percent(40) {
        any_graph(choices, n_blocks)
    } else {
        let mut succs = structured_graph(choices, n_blocks);
        for _ in 0..choices.pick(&[0, 0, 1, 3]) {
            add_edge(choices, &mut succs);
        }
        succs
    };
    if choices.percent(40) {
        duplicate_edges(choices, &mut succs);
    }
    let numbers = shuffled(choices, succs.len());
    let mut lists = vec![Vec::new(); succs.len()];
    for (block, list) in succs.into_iter().enumerate() {
        lists[numbers[block] as usize] = list.into_iter().map(|s| numbers[s as usize]).collect();
    }

    let n_slots = 1 + choices.below(6) as u32;
    let mut n_values = 0;
    let mut new_value = || {
        n_values += 1;
        n_values - 1
    };
    let mut accesses = vec![Vec::new(); lists.len()];
    accesses[0].extend((0..n_slots).map(|slot| Access::Write { slot, value: new_value() }));
    for list in &mut accesses {
        for _ in 0..choices.below(4) {
            let (slot, value) = (choices.below(n_slots as usize) as u32, new_value());
            list.push(match choices.percent(40) {
                true => Access::Write { slot, value },
                false => Access::Read { slot, value },
            });
        }
    }
    SlotProgram::new(Cfg::new(0, lists), n_slots, n_values, accesses)
}

/// A graph with only reachable blocks, and without edges to the entry.
fn any_graph(choices: &mut Choices<'_>, n_blocks: usize) -> Vec<Vec<u32>> {
    let mut succs = vec![Vec::new(); n_blocks];
    for block in 1..n_blocks {
        succs[choices.below(block)].push(block as u32);
    }
    if n_blocks > 1 {
        for _ in 0..choices.below(2 * n_blocks) {
            add_edge(choices, &mut succs);
        }
    }
    succs
}

/// A graph of sequences, branches, loops and switches, made by repeatedly replacing a block by one of them.
fn structured_graph(choices: &mut Choices<'_>, n_blocks: usize) -> Vec<Vec<u32>> {
    let mut succs: Vec<Vec<u32>> = vec![Vec::new()];
    while succs.len() < n_blocks {
        let block = choices.below(succs.len());
        let after = std::mem::take(&mut succs[block]);
        let new = succs.len() as u32;
        match choices.below(5) {
            // Another block after it.
            0 => {
                succs[block] = vec![new];
                succs.push(after);
            }
            // One branch or two.
            1 => {
                succs[block] = vec![new, new + 1];
                succs.extend([vec![new + 1], after]);
            }
            2 => {
                succs[block] = vec![new, new + 1];
                succs.extend([vec![new + 2], vec![new + 2], after]);
            }
            // A loop that is tested at its top.
            3 => {
                succs[block] = vec![new];
                succs.extend([vec![new + 1, new + 2], vec![new], after]);
            }
            // A switch.
            _ => {
                let n_cases = 1 + choices.below(4) as u32;
                let end = new + n_cases;
                succs[block] = (new..=end).collect();
                succs.extend((0..n_cases).map(|_| vec![end]));
                succs.push(after);
            }
        }
    }
    succs
}

fn add_edge(choices: &mut Choices<'_>, succs: &mut [Vec<u32>]) {
    if succs.len() > 1 {
        let target = 1 + choices.below(succs.len() - 1) as u32;
        succs[choices.below(succs.len())].push(target);
    }
}

fn duplicate_edges(choices: &mut Choices<'_>, succs: &mut [Vec<u32>]) {
    for _ in 0..1 + choices.below(3) {
        let list = &mut succs[choices.below(succs.len())];
        if !list.is_empty() {
            list.push(choices.pick(list));
        }
    }
}

/// New numbers for blocks except the entry.
fn shuffled(choices: &mut Choices<'_>, n_blocks: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..n_blocks as u32).collect();
    for i in (2..n_blocks).rev() {
        numbers.swap(i, 1 + choices.below(i));
    }
    numbers
}

/// The functions that blocks call: for a branch, for a switch, and with the value of a read.
const DECLARATIONS: &str = "\
declare i1 @branch()
declare i32 @switch()
declare void @read(i32, i32)
";

/// The function as LLVM IR. Its values are numbers.
fn write_function(out: &mut String, seed: u64, program: &SlotProgram) -> std::fmt::Result {
    writeln!(out, "define void @f{seed}() {{")?;
    for block in 0..program.cfg().n_blocks() as u32 {
        writeln!(out, "b{block}:")?;
        if block == program.cfg().entry() {
            for slot in 0..program.n_slots() {
                writeln!(out, "  %s{slot} = alloca i32")?;
            }
        }
        for access in program.accesses(block) {
            match access {
                Access::Write { slot, value } => {
                    writeln!(out, "  store i32 {value}, ptr %s{slot}")?
                }
                Access::Read { slot, value } => {
                    writeln!(out, "  %r{value} = load i32, ptr %s{slot}")?;
                    writeln!(out, "  call void @read(i32 {value}, i32 %r{value})")?;
                }
            }
        }
        match program.cfg().succs(block) {
            [] => writeln!(out, "  ret void")?,
            [to] => writeln!(out, "  br label %b{to}")?,
            [to, other] => {
                writeln!(out, "  %c{block} = call i1 @branch()")?;
                writeln!(out, "  br i1 %c{block}, label %b{to}, label %b{other}")?;
            }
            [default, cases @ ..] => {
                writeln!(out, "  %c{block} = call i32 @switch()")?;
                writeln!(out, "  switch i32 %c{block}, label %b{default} [")?;
                for (i, to) in cases.iter().enumerate() {
                    writeln!(out, "    i32 {i}, label %b{to}")?;
                }
                writeln!(out, "  ]")?;
            }
        }
    }
    writeln!(out, "}}")
}

/// A value that both sides use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Written(u32),
    /// The phi of a slot in a block.
    Phi {
        block: u32,
        slot: u32,
    },
}

/// The result of a construction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The operands of each phi, with the blocks that they come from, in order.
    phis: BTreeMap<(u32, u32), Vec<(u32, Value)>>,
    /// The value of each read.
    reads: BTreeMap<u32, Value>,
}

fn compare(
    program: &SlotProgram,
    form: &SsaForm,
    llvms: &LlvmFunction<'_>,
    counts: &mut Counts,
) -> Result<(), String> {
    let ours = our_outcome(program, form);
    let llvms = outcome_of_llvm(llvms).ok_or("the text is not understood")?;
    counts.n_reads += ours.reads.len();
    match ours == llvms {
        true => Ok(()),
        false => Err(format!("{program:?}\nwe have {ours:#?}\nLLVM has {llvms:#?}")),
    }
}

fn our_outcome(program: &SlotProgram, form: &SsaForm) -> Outcome {
    let value = |number: u32| match number.checked_sub(program.n_values()) {
        None => Value::Written(number),
        Some(phi) => {
            let phi = form.phis()[phi as usize];
            Value::Phi { block: phi.block, slot: phi.slot }
        }
    };
    let mut outcome = Outcome::default();
    for (i, phi) in form.phis().iter().enumerate() {
        let preds = program.cfg().preds(phi.block).iter().copied();
        let mut operands: Vec<_> = preds.zip(form.operands(i).map(value)).collect();
        operands.sort_unstable();
        outcome.phis.insert((phi.block, phi.slot), operands);
    }
    for block in 0..program.cfg().n_blocks() as u32 {
        for access in program.accesses(block) {
            if let &Access::Read { value: read, .. } = access {
                outcome.reads.insert(read, value(form.value(read)));
            }
        }
    }
    outcome
}

/// Parses LLVM's result; `None` if its form is unexpected.
fn outcome_of_llvm(f: &LlvmFunction<'_>) -> Option<Outcome> {
    let number = |name: &str| name.strip_prefix('b')?.parse::<u32>().ok();
    let mut phis = BTreeMap::new();
    for block in &f.blocks {
        for phi in &block.phis {
            // `%s2.1` is the second phi of slot 2.
            let (slot, _) = phi.name.strip_prefix("%s")?.split_once('.')?;
            let (block, slot) = (number(block.name)?, slot.parse().ok()?);
            phis.insert(phi.name, Value::Phi { block, slot });
        }
    }
    let value = |text: &str| match phis.get(text) {
        Some(&phi) => Some(phi),
        None => text.parse().ok().map(Value::Written),
    };
    let mut outcome = Outcome::default();
    for block in &f.blocks {
        for phi in &block.phis {
            let Some(&Value::Phi { block, slot }) = phis.get(phi.name) else { return None };
            let operand = |&(text, from): &(&str, &str)| Some((number(from)?, value(text)?));
            let mut operands = phi.operands.iter().map(operand).collect::<Option<Vec<_>>>()?;
            operands.sort_unstable();
            // A block has at most one phi for a slot.
            if outcome.phis.insert((block, slot), operands).is_some() {
                return None;
            }
        }
        for line in &block.rest {
            if let Some(args) = line.strip_prefix("call void @read(i32 ") {
                let (read, given) = args.strip_suffix(')')?.split_once(", i32 ")?;
                outcome.reads.insert(read.parse().ok()?, value(given)?);
            }
        }
    }
    Some(outcome)
}
