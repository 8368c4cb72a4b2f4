//! Our constructions: promotion of the IR, which also rewrites it; the constructions for any
//! representation, which say what to rewrite; and that of Braun et al.

use std::fmt::Write;
use std::time::Duration;

use slotvm_ssa::construction::braun::{Braun, BraunOptions};
use slotvm_ssa::construction::construct::{
    self, ConstructOptions, Construction, Renaming, SlotProgram, Undef, construct,
};
use slotvm_ssa::construction::promote::{PromoteOptions, Scratch, promote_with};
use slotvm_ssa::graphs::cfg::{Cfg, ControlFlow};
use slotvm_ssa::graphs::idf::Placement;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::parse;

use super::order::Order;
use super::{Contender, Input, Outcome, timed};
use crate::slot_graph::{Access, SlotGraph, Written};

/// The slot form of a graph that is numbered in dominator-tree preorder. A call at the end of each block
/// uses all values that the block read.
pub fn slot_form(graph: &SlotGraph) -> Function {
    let text = slot_text(graph);
    parse::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", graph.name))
}

fn slot_text(graph: &SlotGraph) -> String {
    let mut text = String::from("func f0(v0: i32) {\n");
    let mut emit = |args: std::fmt::Arguments<'_>| {
        text.write_fmt(args).expect("a string takes any text");
    };
    for slot in 0..graph.n_slots {
        emit(format_args!("slot s{slot}: i64 = local {slot}\n"));
    }
    // Value 0 is the parameter, then come the reads, then the constants.
    let mut next_read = 1;
    let mut next_constant = 1 + graph.n_reads();
    for block in 0..graph.n_blocks() as u32 {
        emit(format_args!("b{block}:\n"));
        let first_read = next_read;
        for &access in graph.accesses(block) {
            match access {
                Access::Read { slot } => {
                    emit(format_args!("v{next_read} = slot.get s{slot}\n"));
                    next_read += 1;
                }
                Access::Write { slot, value: Written::New } => {
                    emit(format_args!("v{next_constant} = i64.const {next_constant}\n"));
                    emit(format_args!("slot.set s{slot}, v{next_constant}\n"));
                    next_constant += 1;
                }
                Access::Write { slot, value: Written::Read(read) } => {
                    emit(format_args!("slot.set s{slot}, v{}\n", read + 1));
                }
            }
        }
        if first_read < next_read {
            emit(format_args!("call f1(v{first_read}"));
            (first_read + 1..next_read).for_each(|read| emit(format_args!(", v{read}")));
            emit(format_args!(")\n"));
        }
        match graph.cfg.succs(block) {
            [] => emit(format_args!("return\n")),
            [only] => emit(format_args!("br b{only}\n")),
            [taken, other] => emit(format_args!("br_if v0, b{taken}, b{other}\n")),
            [first, middle @ .., last] => {
                emit(format_args!("br_table v0, [b{first}"));
                middle.iter().for_each(|target| emit(format_args!(", b{target}")));
                emit(format_args!("], b{last}\n"));
            }
        }
    }
    text.push_str("}\n");
    text
}

/// Promotion as the compiler does it, the IR rewritten.
#[derive(Debug, Default)]
pub struct Promotion {
    scratch: Scratch,
}

impl Contender for Promotion {
    fn name(&self) -> &str {
        PROMOTION
    }

    fn run(&mut self, input: &Input, n_times: u32) -> Option<Outcome> {
        let mut functions = vec![input.slot_form.clone(); n_times as usize];
        let options =
            PromoteOptions { phi_operands_max: PHI_OPERANDS_MAX, ..PromoteOptions::default() };
        let (time, reports) = timed(|| {
            let reports = functions
                .iter_mut()
                .map(|function| promote_with(function, options, &mut self.scratch));
            reports.last().expect("it is run at least once")
        });
        let outcome = Outcome { time, other: Duration::ZERO, n_phis: reports.n_phis };
        reports.too_large.is_none().then_some(outcome)
    }
}

/// The name of [`Promotion`], the contender that the goals are for.
pub const PROMOTION: &str = "promote";

/// A construction for any representation. It finds phis and values, and rewrites
/// nothing.
#[derive(Debug)]
pub struct Constructed {
    name: &'static str,
    options: ConstructOptions<'static>,
    scratch: construct::Scratch,
}

impl Constructed {
    /// All forms, and the pruned one by all ways to place phis and to rename.
    pub fn all() -> Vec<Constructed> {
        let form = |form: Construction| (form.name(), form, Placement::Auto, Renaming::Undo);
        let forms = Construction::ALL.iter().rev().map(|&construction| form(construction));
        let pruned = |name, placement| (name, Construction::Pruned, placement, Renaming::Undo);
        let ways = [
            pruned("by frontiers", Placement::Frontiers),
            pruned("by priority queue", Placement::PriorityQueue),
            pruned("by level buckets", Placement::LevelBuckets),
            pruned("by words", Placement::Words),
            ("by chains", Construction::Pruned, Placement::Auto, Renaming::Chains),
        ];
        let new = |(name, construction, placement, renaming)| {
            let phi_operands_max = PHI_OPERANDS_MAX;
            let undef = Undef::default();
            let options =
                ConstructOptions { construction, placement, renaming, undef, phi_operands_max };
            Constructed { name, options, scratch: construct::Scratch::default() }
        };
        forms.chain(ways).map(new).collect()
    }
}

impl Contender for Constructed {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self, input: &Input, n_times: u32) -> Option<Outcome> {
        let program = slot_program(&input.graph);
        let mut forms = Vec::with_capacity(n_times as usize);
        let (time, ()) = timed(|| {
            for _ in 0..n_times {
                forms.push(construct(&program, &self.options, &mut self.scratch));
            }
        });
        let n_phis = forms[0].as_ref().ok()?.phis().len();
        Some(Outcome { time, other: Duration::ZERO, n_phis })
    }
}

/// The operands that phis of a construction may have in the bench.
const PHI_OPERANDS_MAX: usize = 1 << 26;

/// The graph as [`construct`](mod@construct) has it. Reads make values from 0, the values written
/// follow.
fn slot_program(graph: &SlotGraph) -> SlotProgram<Cfg> {
    let mut next_read = 0;
    let mut next_new = graph.n_reads() as u32;
    let mut access = |&access: &Access| match access {
        Access::Read { slot } => {
            next_read += 1;
            construct::Access::Read { slot, value: next_read - 1 }
        }
        Access::Write { slot, value: Written::Read(value) } => {
            construct::Access::Write { slot, value }
        }
        Access::Write { slot, value: Written::New } => {
            next_new += 1;
            construct::Access::Write { slot, value: next_new - 1 }
        }
    };
    let lists: Vec<Vec<construct::Access>> = (0..graph.n_blocks() as u32)
        .map(|block| graph.accesses(block).iter().map(&mut access).collect())
        .collect();
    SlotProgram::new(graph.cfg.clone(), graph.n_slots, next_new, lists)
}

/// The construction of Braun et al. Blocks are filled in reverse postorder, and sealed as soon as all
/// their predecessors are filled.
#[derive(Debug)]
pub struct OnTheFly {
    name: &'static str,
    options: BraunOptions,
    braun: Braun,
}

impl OnTheFly {
    /// Both variants: with and without the removal of redundant sets of phis.
    pub fn all() -> Vec<OnTheFly> {
        let new = |name, scc_removal| {
            let options = BraunOptions { scc_removal, ..BraunOptions::default() };
            OnTheFly { name, options, braun: Braun::default() }
        };
        vec![new("Braun", true), new("Braun without SCCs", false)]
    }

    /// Returns the number of phis, and the value of each read.
    fn construct(&mut self, graph: &SlotGraph, order: &Order, reads: &mut [u32]) -> Option<usize> {
        let braun = &mut self.braun;
        let mut undefined = |_| UNDEFINED;
        braun.start(self.options);
        let mut next_new = reads.len() as u32;
        let mut sealed = order.sealed.iter();
        for &(block, n_sealed) in &order.filled {
            if block == 0 {
                braun.seal_block(0, [], &mut undefined);
            }
            let mut read = order.first_reads[block as usize] as usize;
            for &access in graph.accesses(block) {
                match access {
                    Access::Read { slot } => {
                        reads[read] = braun.read_variable(slot, block, &mut undefined);
                        read += 1;
                    }
                    Access::Write { slot, value: Written::New } => {
                        braun.write_variable(slot, block, next_new);
                        next_new += 1;
                    }
                    Access::Write { slot, value: Written::Read(read) } => {
                        braun.write_variable(slot, block, reads[read as usize]);
                    }
                }
            }
            for &block in sealed.by_ref().take(n_sealed as usize).filter(|&&block| block != 0) {
                let preds = graph.cfg.preds(block).iter().copied();
                braun.seal_block(block, preds, &mut undefined);
            }
        }
        let report = braun.finish(&mut undefined);
        for read in reads {
            *read = braun.resolve(*read);
        }
        (!braun.is_exhausted()).then_some(report.n_left)
    }
}

/// Value of a read that no write reaches.
const UNDEFINED: u32 = (1 << 31) - 1;

impl Contender for OnTheFly {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self, input: &Input, n_times: u32) -> Option<Outcome> {
        let order = Order::new(&input.graph);
        let mut reads = vec![0; input.graph.n_reads()];
        let (time, n_phis) = timed(|| {
            let mut n_phis = None;
            for _ in 0..n_times {
                n_phis = self.construct(&input.graph, &order, &mut reads);
            }
            n_phis
        });
        Some(Outcome { time, other: Duration::ZERO, n_phis: n_phis? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph_text;

    #[test]
    fn slot_form_has_the_accesses_of_the_graph() {
        let text = "\
function f
slots 2
block 0 -> 1 2 1
  w 0
  r 0
  r 1
block 1 -> 1 2
  w 1 r0
block 2
";
        let graph = graph_text::parse(text).expect("it is a graph").remove(0);
        let expected = "\
func f0(v0: i32) {
  slot s0: i64 = local 0
  slot s1: i64 = local 1
b0:
  v1 = i64.const 3
  slot.set s0, v1
  v2 = slot.get s0
  v3 = slot.get s1
  call f1(v2, v3)
  br_table v0, [b1, b2], b1
b1:
  slot.set s1, v2
  br_if v0, b1, b2
b2:
  return
}
";
        let printed = slot_form(&graph).to_string();
        let without_comments =
            printed.lines().map(|line| line.split(';').next().unwrap().trim_end());
        assert_eq!(without_comments.collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn promotion_places_the_phis_that_are_needed() {
        let text = "\
function f
slots 1
block 0 -> 1 2
  w 0
block 1 -> 2
  w 0
block 2
  r 0
";
        let input = Input::new(&graph_text::parse(text).expect("it is a graph")[0]);
        let outcome = Promotion::default().run(&input, 2).expect("it is small");
        assert_eq!(outcome.n_phis, 1);
    }
}
