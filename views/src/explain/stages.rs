//! The columns of the IR: what each row of the table leaves, by blocks and lines.

use std::collections::{BTreeMap, BTreeSet};

use slotvm_ssa::graphs::cfg::Cfg;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::ir::entity::{Block, Inst};
use slotvm_ssa::ir::graph::{control_flow, dom_tree};
use slotvm_ssa::ir::irop::Opcode;
use slotvm_ssa::ir::print::InstPrinter;
use slotvm_ssa::ir::verify::Form;
use slotvm_ssa::pipeline::Row;

use super::blocks::BlockNumbers;
use super::document::{Line, Loop, Stage, StageBlock};
use super::layout::Union;

/// A function after a stage, with the numbers of its blocks in the document.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) function: Function,
    pub(super) blocks: Vec<u32>,
}

/// The blocks of a stage by number: parameters and lines.
type Shown = BTreeMap<u32, (Vec<u32>, Vec<Line>)>;

/// Collects the stages of a function.
pub(super) struct Stages<'a> {
    numbers: &'a mut BlockNumbers,
    before: Option<Shown>,
    edges: BTreeSet<(u32, u32)>,
    collected: Collected,
}

/// The stages of a function.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) stages: Vec<Stage>,
    /// The numbers of the blocks of the slot form that the bytecode became.
    pub(super) slot_blocks: Vec<u32>,
    /// The slot form that promotion gets.
    pub(super) promotion_input: Snapshot,
    pub(super) union: Union,
}

impl<'a> Stages<'a> {
    pub(super) fn new(numbers: &'a mut BlockNumbers) -> Stages<'a> {
        let (before, edges) = (None, BTreeSet::new());
        Stages { numbers, before, edges, collected: Collected::default() }
    }

    /// Adds the function that a row leaves.
    pub(super) fn add(&mut self, row: &Row, f: &Function) {
        let blocks = self.numbers.of_stage(f);
        let shown = self.shown(f, &blocks);
        let form = if row.makes.form() == Some(Form::Slots) { "slots" } else { "ssa" };
        let is_first = self.before.is_none();
        let changed = is_first || self.before.as_ref() != Some(&shown);
        let mut stage = Stage {
            name: row.name.into(),
            summary: row.summary.into(),
            form: form.into(),
            changed,
            blocks: vec![],
            loops: vec![],
        };
        if changed {
            self.fill(&mut stage, f, &blocks, &shown);
        }
        if is_first {
            self.collected.slot_blocks.clone_from(&blocks);
        }
        self.keep(row, f, blocks);
        self.collected.stages.push(stage);
        self.before = Some(shown);
    }

    /// Ends with the graph of all stages.
    pub(super) fn finish(mut self) -> Collected {
        self.collected.union.n_blocks = self.numbers.origins.len();
        self.collected.union.edges = self.edges.into_iter().collect();
        let union = &mut self.collected.union;
        let mut succs = vec![vec![]; union.n_blocks];
        for &(from, to) in &union.edges {
            succs[from as usize].push(to);
        }
        let loops = LoopForest::new(&Cfg::new(0, succs));
        let parent = |of| loops.parent(of).map(|of| of.0);
        union.loops = loops.loops().map(|of| (loops.header(of), parent(of))).collect();
        let innermost = |block| loops.innermost(block).map(|of| of.0);
        union.innermost = (0..union.n_blocks as u32).map(innermost).collect();
        self.collected
    }

    fn shown(&self, f: &Function, blocks: &[u32]) -> Shown {
        let mut printer = InstPrinter::new(f, blocks.to_vec());
        let mut shown = Shown::new();
        for (block, &number) in f.blocks().zip(blocks) {
            let params = f.params(block).iter().map(|value| value.0).collect();
            let line = |&inst: &Inst| line(f, block, inst, printer.inst(block, inst));
            shown.insert(number, (params, f.insts(block).iter().map(line).collect()));
        }
        shown
    }

    fn fill(&mut self, stage: &mut Stage, f: &Function, blocks: &[u32], shown: &Shown) {
        let tree = dom_tree(f);
        let loops = LoopForest::new(&control_flow(f));
        stage.loops.extend(loops.loops().map(|of| Loop {
            header: blocks[loops.header(of) as usize],
            parent: loops.parent(of).map(|of| of.0),
            irreducible: loops.is_irreducible(of),
        }));
        for (block, &id) in f.blocks().zip(blocks) {
            let (params, lines) = &shown[&id];
            let before = self.before.as_ref().and_then(|before| before.get(&id));
            let same = before.is_some_and(|(p, l)| (p, l) == (params, lines));
            let succs: Vec<u32> =
                f.succ_edges(block).map(|edge| blocks[f.edge_dst(edge).index()]).collect();
            self.edges.extend(succs.iter().map(|&succ| (id, succ)));
            stage.blocks.push(StageBlock {
                id,
                same,
                params: if same { vec![] } else { params.clone() },
                lines: if same { vec![] } else { lines.clone() },
                succs,
                idom: tree.idom(block.0).map(|idom| blocks[idom as usize]),
                innermost: loops.innermost(block.0).map(|of| of.0),
            });
        }
    }

    /// Keeps what promotion gets.
    fn keep(&mut self, row: &Row, f: &Function, blocks: Vec<u32>) {
        if row.makes.form() == Some(Form::Slots) {
            self.collected.promotion_input = Snapshot { function: f.clone(), blocks };
        }
    }
}

fn line(f: &Function, block: Block, inst: Inst, text: String) -> Line {
    let mut uses: Vec<u32> = f.operands(inst).iter().map(|value| value.0).collect();
    if inst == f.terminator(block) {
        for edge in f.succ_edges(block) {
            uses.extend(f.edge_args(edge).iter().map(|value| value.0));
        }
    }
    let slot = match f.opcode(inst) {
        Opcode::Ir(op) if op.is_slot_access() => Some(f.imm(inst).low()),
        _ => None,
    };
    let defs = f.results(inst).map(|value| value.0).collect();
    Line { text, at: f.loc(inst).0, defs, uses, slot }
}
