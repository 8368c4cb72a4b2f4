//! Functions are made from lists of reads and writes in the blocks of a graph. The oracle follows a
//! path through both forms and compares what the reads give.

use slotvm_bytecode::{FuncType, Imm, Op, ValType};

use super::*;
use crate::construction::braun::BraunOptions;
use crate::graphs::cfg::ControlFlow;
use crate::graphs::steps::within;
use crate::ir::entity::Block;
use crate::ir::verify::{Context, Form, verify};
use crate::ir::{LocData, SlotData, SlotOrigin};
use crate::tools::testing::{
    Bits, Rng, convergence, families, live_in, random_numbered_graph, size,
};

mod on_the_fly;

/// An operation of a block, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Do {
    /// Reads the slot, and shows the value.
    Get(u32),
    /// Writes a new constant to the slot.
    Set(u32),
    /// Writes to the first slot what it reads from the second.
    Copy(u32, u32),
}

/// A function under construction. Its parameter is the condition of all branches.
pub(super) struct FunctionOf(Function);

impl FunctionOf {
    /// A function with slots of these types.
    pub(super) fn start(slots: &[ValType]) -> FunctionOf {
        let slot = |(i, &ty)| SlotData::new(ty, SlotOrigin::Local(i));
        FunctionOf(Function {
            name: "f".into(),
            ty: FuncType::new([ValType::I32], []),
            slots: (0..).zip(slots).map(slot).collect(),
            locs: vec![LocData::default()],
            ..Function::default()
        })
    }

    pub(super) fn start_block(&mut self) {
        if self.0.start_block(None, 0) == Function::ENTRY {
            self.0.append_param(ValType::I32);
        }
    }

    /// Appends an instruction with one operand at most, and one result of type `i64` if it has none;
    /// returns the result.
    pub(super) fn emit(&mut self, op: Opcode, imm: Imm, operands: &[Value]) -> Option<Value> {
        let types: &[ValType] = match op {
            Opcode::Ir(IrOp::SlotGet) => &[self.0.slots[imm.low() as usize].ty],
            Opcode::Op(Op::I64Const) => &[ValType::I64],
            _ => &[],
        };
        let inst = self.0.make_inst(op, imm, operands, types, Loc(0));
        self.0.layout.push(inst);
        self.0.results(inst).next()
    }

    pub(super) fn get(&mut self, slot: u32) -> Value {
        self.emit(Opcode::Ir(IrOp::SlotGet), Imm::index(slot), &[]).expect("a result")
    }

    pub(super) fn set(&mut self, slot: u32, value: Value) {
        self.emit(Opcode::Ir(IrOp::SlotSet), Imm::index(slot), &[value]);
    }

    pub(super) fn constant(&mut self, value: i64) -> Value {
        self.emit(Opcode::Op(Op::I64Const), Imm::i64(value), &[]).expect("a result")
    }

    /// Writes a value to global 0, where tests can see it.
    pub(super) fn show(&mut self, value: Value) {
        self.emit(Opcode::Op(Op::GlobalSet), Imm::index(0), &[value]);
    }

    /// Ends the block with a branch to these blocks, or a return.
    pub(super) fn end_block(&mut self, succs: &[u32]) {
        let (op, operands) = match succs.len() {
            0 => (Op::Return, &[][..]),
            1 => (Op::Br, &[][..]),
            2 => (Op::BrIf, &[Value(0)][..]),
            _ => (Op::BrTable, &[Value(0)][..]),
        };
        self.emit(Opcode::Op(op), Imm::NONE, operands);
        self.0.end_block();
        for &succ in succs {
            self.0.append_edge(Block(succ));
        }
    }

    pub(super) fn finish(mut self) -> Function {
        self.0.compute_preds();
        self.0
    }
}

/// The function with the blocks of a graph that do these things, all slots having type `i64`. New
/// constants are 1, 2, … in the order of blocks.
fn make(cfg: &Cfg, n_slots: u32, actions: &[Vec<Do>]) -> Function {
    let mut f = FunctionOf::start(&vec![ValType::I64; n_slots as usize]);
    let mut constant = 0;
    for block in 0..cfg.n_blocks() as u32 {
        f.start_block();
        for &action in &actions[block as usize] {
            match action {
                Do::Get(slot) => {
                    let value = f.get(slot);
                    f.show(value);
                }
                Do::Set(slot) => {
                    constant += 1;
                    let value = f.constant(constant);
                    f.set(slot, value);
                }
                Do::Copy(to, from) => {
                    let value = f.get(from);
                    f.set(to, value);
                }
            }
        }
        f.end_block(cfg.succs(block));
    }
    f.finish()
}

/// A module with one mutable global.
struct OneGlobal(FuncType);

impl Context for OneGlobal {
    fn func_type(&self, _: u32) -> Option<&FuncType> {
        Some(&self.0)
    }
    fn type_at(&self, _: u32) -> Option<&FuncType> {
        None
    }
    fn global(&self, _: u32) -> Option<slotvm_bytecode::module::GlobalType> {
        Some(slotvm_bytecode::module::GlobalType { ty: ValType::I64, mutable: true })
    }
    fn table(&self, _: u32) -> Option<ValType> {
        None
    }
    fn elem(&self, _: u32) -> Option<ValType> {
        None
    }
    fn n_memories(&self) -> usize {
        0
    }
    fn n_datas(&self) -> usize {
        0
    }
}

pub(super) fn assert_valid(f: &Function, form: Form) {
    if let Err(violation) = verify(f, form, &OneGlobal(f.ty.clone())) {
        panic!("{violation}\n{}", crate::ir::print::print(f));
    }
}

/// The state of an execution along a path.
struct Path<'f> {
    f: &'f Function,
    slots: Vec<u64>,
    values: Vec<Option<u64>>,
    shown: Vec<u64>,
}

impl<'f> Path<'f> {
    fn new(f: &'f Function) -> Path<'f> {
        let mut values = vec![None; f.n_values()];
        values[0] = Some(0);
        Path { f, slots: vec![0; f.slots.len()], values, shown: vec![] }
    }

    fn value(&self, value: Value) -> u64 {
        self.values[value.index()].expect("a value is defined before its use")
    }

    /// Executes a block.
    fn block(&mut self, block: Block) {
        let f = self.f;
        for &inst in f.insts(block) {
            match f.opcode(inst) {
                Opcode::Ir(IrOp::SlotGet) => {
                    let value = self.slots[f.imm(inst).low() as usize];
                    self.values[f.result(inst).index()] = Some(value);
                }
                Opcode::Ir(IrOp::SlotSet) => {
                    self.slots[f.imm(inst).low() as usize] = self.value(f.operands(inst)[0]);
                }
                Opcode::Op(Op::I64Const) => {
                    self.values[f.result(inst).index()] = Some(f.imm(inst).0);
                }
                Opcode::Op(Op::GlobalSet) => {
                    let value = self.value(f.operands(inst)[0]);
                    self.shown.push(value);
                }
                op => assert!(op.is_terminator(), "{}", op.mnemonic()),
            }
        }
    }

    /// Follows the out-edge of a block with this number among them; returns its target.
    fn follow(&mut self, block: Block, i: usize) -> Block {
        let f = self.f;
        let edge = f.succ_edges(block).nth(i).expect("the edge exists");
        let dst = f.edge_dst(edge);
        // Phis are parallel.
        let args: Vec<u64> = f.edge_args(edge).iter().map(|&arg| self.value(arg)).collect();
        for (&param, arg) in f.params(dst).iter().zip(args) {
            self.values[param.index()] = Some(arg);
        }
        dst
    }
}

/// Follows the same random path through both forms.
fn assert_same_on_a_path(rng: &mut Rng, slots: &Function, ssa: &Function) {
    let (mut a, mut b) = (Path::new(slots), Path::new(ssa));
    let mut block = Function::ENTRY;
    for _ in 0..60 {
        a.block(block);
        b.block(block);
        let n = slots.succ_edges(block).len() as u32;
        if n == 0 {
            break;
        }
        let i = rng.below(n) as usize;
        let next = a.follow(block, i);
        assert_eq!(next, b.follow(block, i));
        block = next;
    }
    assert_eq!(
        a.shown,
        b.shown,
        "{}{}",
        crate::ir::print::print(slots),
        crate::ir::print::print(ssa)
    );
}

fn random_actions(rng: &mut Rng, n_blocks: usize, n_slots: u32) -> Vec<Vec<Do>> {
    let max = 1 + rng.below(6);
    let action = |rng: &mut Rng| {
        let slot = rng.below(n_slots);
        match rng.below(5) {
            0 | 1 => Do::Get(slot),
            2 | 3 => Do::Set(slot),
            _ => Do::Copy(slot, rng.below(n_slots)),
        }
    };
    (0..n_blocks).map(|_| (0..rng.below(max)).map(|_| action(rng)).collect()).collect()
}

/// The blocks that write a slot, and those that read it before they write it.
fn writes_and_reads(actions: &[Vec<Do>], slot: u32) -> (Bits, Bits) {
    let (mut writes, mut reads) = (0, 0);
    for (block, actions) in actions.iter().enumerate() {
        for action in actions {
            let (is_read, is_written) = match *action {
                Do::Get(s) => (s == slot, false),
                Do::Set(s) => (false, s == slot),
                Do::Copy(to, from) => (from == slot, to == slot),
            };
            if is_read && writes >> block & 1 == 0 {
                reads |= 1 << block;
            }
            if is_written {
                writes |= 1 << block;
            }
        }
    }
    (writes, reads)
}

fn count(actions: &[Vec<Do>]) -> (usize, usize) {
    let all = || actions.iter().flatten();
    let n_gets = all().filter(|action| matches!(action, Do::Get(_) | Do::Copy(..))).count();
    let n_sets = all().filter(|action| matches!(action, Do::Set(_) | Do::Copy(..))).count();
    (n_gets, n_sets)
}

/// The blocks where a construction has phis of a slot, by its definition.
fn sites_by_definition(
    construction: Construction,
    cfg: &Cfg,
    actions: &[Vec<Do>],
    slot: u32,
) -> Bits {
    let (writes, reads) = writes_and_reads(actions, slot);
    let joins = || (0..cfg.n_blocks() as u32).filter(|&block| cfg.preds(block).len() >= 2);
    match construction {
        Construction::Maximal => joins().fold(0, |set, block| set | 1 << block),
        Construction::SemiPruned if reads == 0 => 0,
        Construction::Minimal | Construction::SemiPruned => convergence(cfg, writes | 1),
        Construction::Pruned => convergence(cfg, writes | 1) & live_in(cfg, writes, reads),
        Construction::Braun(_) => unreachable!("it is none of those in the list"),
    }
}

/// Promotes the function and checks the result by the definition.
fn check(
    rng: &mut Rng,
    scratch: &mut Scratch,
    options: PromoteOptions,
    cfg: &Cfg,
    n_slots: u32,
    actions: &[Vec<Do>],
) {
    let slots = make(cfg, n_slots, actions);
    assert_valid(&slots, Form::Slots);
    let mut ssa = slots.clone();
    let report = promote_with(&mut ssa, options, scratch);
    assert_valid(&ssa, Form::Ssa);

    let mut n_params = vec![0; cfg.n_blocks()];
    for slot in 0..n_slots {
        let sites = sites_by_definition(options.construction, cfg, actions, slot);
        for (block, n) in n_params.iter_mut().enumerate() {
            *n += (sites >> block & 1) as usize;
        }
    }
    for block in ssa.blocks().skip(1) {
        assert_eq!(ssa.params(block).len(), n_params[block.index()], "{block} {options:?}");
    }
    assert_eq!(report.n_phis, ssa.n_phis());
    assert_eq!(report.n_slots, n_slots as usize);
    assert_eq!(report.counts.n_slots(), n_slots as usize);
    assert_eq!((report.n_gets, report.n_sets), count(actions));
    for _ in 0..5 {
        assert_same_on_a_path(rng, &slots, &ssa);
    }
}

/// All ways to promote.
pub(super) fn all_options() -> Vec<PromoteOptions> {
    let mut all = vec![];
    for &construction in Construction::ALL {
        for placement in Placement::ALL {
            for renaming in Renaming::ALL {
                let other = PromoteOptions::default();
                all.push(PromoteOptions { construction, placement, renaming, ..other });
            }
        }
    }
    all
}

#[test]
fn random_functions_compute_the_same_with_the_phis_of_the_definition() {
    let mut rng = Rng(11);
    let mut scratch = Scratch::default();
    let options = all_options();
    for i in 0..20_000 {
        let n = 1 + rng.below(10);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let n_slots = 1 + rng.below(4);
        let actions = random_actions(&mut rng, cfg.n_blocks(), n_slots);
        check(&mut rng, &mut scratch, options[i % options.len()], &cfg, n_slots, &actions);
    }
}

#[test]
fn ways_to_place_and_to_rename_give_the_same_function() {
    let mut rng = Rng(14);
    let mut scratch = Scratch::default();
    for _ in 0..300 {
        let n = 1 + rng.below(30);
        let (cfg, _) = random_numbered_graph(&mut rng, n);
        let actions = random_actions(&mut rng, cfg.n_blocks(), 5);
        for of_construction in all_options().chunk_by(|a, b| a.construction == b.construction) {
            let mut texts = of_construction.iter().map(|&options| {
                let mut f = make(&cfg, 5, &actions);
                promote_with(&mut f, options, &mut scratch);
                crate::ir::print::print(&f)
            });
            let first = texts.next();
            assert!(texts.all(|text| Some(text) == first), "{:?}", of_construction[0]);
        }
    }
}

/// Promotes and returns the printed function.
fn promoted(cfg: &Cfg, n_slots: u32, actions: &[Vec<Do>]) -> (Function, PromotionReport) {
    let mut f = make(cfg, n_slots, actions);
    let report = promote(&mut f, &mut Scratch::default());
    assert_valid(&f, if report.too_large.is_some() { Form::Slots } else { Form::Ssa });
    (f, report)
}

#[test]
fn each_fast_path_is_taken_and_counted() {
    use Do::*;
    // A loop: 0 -> 1 <-> 2, 1 -> 3.
    let cfg = Cfg::new(0, [vec![1], vec![3, 2], vec![1], vec![]]);
    let actions = [
        vec![Set(0), Set(3), Set(5), Set(6), Get(6)],
        vec![Get(2), Get(3), Set(4)],
        vec![Set(1), Get(1), Set(5), Get(4)],
        vec![Set(1), Get(4), Get(5)],
    ];
    let (f, report) = promoted(&cfg, 7, &actions);
    let counts = SlotCounts {
        n_dead: 1,
        n_single_block: 1,
        n_local: 1,
        n_unwritten: 1,
        n_one_writer: 2,
        n_placed: 1,
    };
    let expected = PromotionReport {
        too_large: None,
        n_slots: 7,
        n_kept: 0,
        counts,
        n_phis: 1,
        n_gets: 7,
        n_sets: 8,
    };
    assert_eq!(report, expected);
    assert_eq!(f.params(Block(1)).len(), 1);
}

#[test]
fn there_is_one_zero_for_each_type_that_needs_one() {
    // Each type has a slot that is read unwritten and one that is read after a write on one path only.
    let types = [ValType::ALL, ValType::ALL].concat();
    let mut g = FunctionOf::start(&types);
    g.start_block();
    g.end_block(&[1, 2]);
    g.start_block();
    for slot in 0..8 {
        let value = g.get(slot);
        g.set(slot + 8, value);
    }
    g.end_block(&[2]);
    g.start_block();
    let values: Vec<Value> = (0..16).map(|slot| g.get(slot)).collect();
    for value in values {
        g.emit(Opcode::Op(Op::Drop), Imm::NONE, &[value]);
    }
    g.end_block(&[]);
    let mut g = g.finish();

    let report = promote(&mut g, &mut Scratch::default());
    assert_eq!((report.counts.n_unwritten, report.counts.n_placed, report.n_phis), (8, 8, 8));
    let entry = g.insts(Block(0)).to_vec();
    let types: Vec<ValType> = entry[..8].iter().map(|&inst| g.value_type(g.result(inst))).collect();
    assert_eq!(types, ValType::ALL);
    assert_eq!(g.vector_imm(entry[6]), 0);
    assert_eq!(g.opcode(entry[4]), Opcode::Op(Op::RefNull));
    assert_eq!(g.imm(entry[5]).as_ref_type(), ValType::ExternRef);
    assert_eq!(entry.len(), 9);
    // All reads and phi operands are these constants.
    for edge in [0, 1, 2].map(crate::ir::entity::Edge) {
        for &arg in g.edge_args(edge) {
            assert!(entry[..8].iter().any(|&inst| g.result(inst) == arg));
        }
    }
    assert_eq!(g.insts(Block(1)).len(), 1);
    assert_eq!(g.insts(Block(2)).len(), 17);
}

#[test]
fn parameters_that_are_there_stay_before_the_new_ones() {
    // Slot 0 joins in block 3, which already has a parameter made from reads of slot 1.
    let mut f = FunctionOf::start(&[ValType::I64; 2]);
    let mut args = vec![];
    for (block, succs) in [(0, &[2, 1][..]), (1, &[3]), (2, &[3])] {
        f.start_block();
        let value = f.constant(block);
        f.set(1, value);
        let value = f.constant(10 + block);
        f.set(0, value);
        if block > 0 {
            args.push(f.get(1));
        }
        f.end_block(succs);
    }
    f.start_block();
    let old = f.0.append_param(ValType::I64);
    let new = f.get(0);
    f.show(old);
    f.show(new);
    f.end_block(&[]);
    let mut f = f.finish();
    // Edges 2 and 3 enter block 3.
    (f.edges[2].args, f.edges[3].args) = (0, 1);
    f.edge_args = args;
    assert_valid(&f, Form::Slots);

    let slots = f.clone();
    let report = promote(&mut f, &mut Scratch::default());
    assert_valid(&f, Form::Ssa);
    assert_eq!(report.n_phis, 1);
    assert_eq!(f.params(Block(3)).len(), 2);
    assert_eq!(f.params(Block(3))[0], old);
    let mut rng = Rng(12);
    for _ in 0..10 {
        assert_same_on_a_path(&mut rng, &slots, &f);
    }
}

#[test]
fn a_function_without_accesses_stays_as_it_is() {
    let cfg = Cfg::new(0, [vec![1, 1], vec![]]);
    let slots = make(&cfg, 3, &[vec![], vec![]]);
    let (ssa, report) = promoted(&cfg, 3, &[vec![], vec![]]);
    let counts = SlotCounts { n_dead: 3, ..SlotCounts::default() };
    assert_eq!(report, PromotionReport { n_slots: 3, counts, ..PromotionReport::default() });
    assert_eq!(crate::ir::print::print(&ssa), crate::ir::print::print(&slots));
}

/// Checks that a function is left unchanged, and that the report states it.
fn assert_too_large(cfg: &Cfg, n_slots: u32, actions: &[Vec<Do>], limit: TooLarge) {
    let slots = make(cfg, n_slots, actions);
    let (left, report) = promoted(cfg, n_slots, actions);
    let n_slots = n_slots as usize;
    let too_large = Some(limit);
    assert_eq!(report, PromotionReport { too_large, n_slots, ..PromotionReport::default() });
    assert!(left.has_slot_accesses());
    assert!(crate::ir::print::print(&left) == crate::ir::print::print(&slots), "it has changed");
}

#[test]
fn too_many_phi_operands_are_refused() {
    // One block or the other writes all slots, and a switch goes to one block by many edges.
    const SLOTS: u32 = 100;
    let cfg = |n_edges| Cfg::new(0, [vec![2, 1], vec![3], vec![3; n_edges], vec![]]);
    let set: Vec<Do> = (0..SLOTS).map(Do::Set).collect();
    let get = (0..SLOTS).map(Do::Get).collect();
    let actions = [vec![], set.clone(), set, get];
    let most = PHI_OPERANDS_MAX / SLOTS as usize - 1;
    let (ssa, report) = promoted(&cfg(most), SLOTS, &actions);
    assert!(report.too_large.is_none() && !ssa.has_slot_accesses());
    assert_eq!(report.n_phis, SLOTS as usize);
    assert_too_large(&cfg(most + 1), SLOTS, &actions, TooLarge::PhiOperands(PHI_OPERANDS_MAX));
}

#[test]
fn too_many_live_slots_in_too_many_blocks_are_refused() {
    // All slots live in all blocks of a chain.
    const BLOCKS: usize = 1 << 14;
    const SLOTS: u32 = 1 << 16;
    let chain = (1..BLOCKS as u32).map(|next| vec![next]).chain([vec![]]);
    let cfg = Cfg::new(0, chain);
    let mut actions = vec![vec![]; BLOCKS];
    for block in [0, 1] {
        actions[block] = (0..SLOTS).map(Do::Set).collect();
    }
    actions[BLOCKS - 1] = (0..SLOTS).map(Do::Get).collect();
    let n_most = SLOTS as usize - 64;
    assert!(live_words(&make(&cfg, 1, &vec![vec![]; BLOCKS]), n_most) < LIVE_WORDS_MAX);
    assert!(live_words(&make(&cfg, 1, &vec![vec![]; BLOCKS]), n_most + 65) > LIVE_WORDS_MAX);
    actions[0].push(Do::Set(SLOTS));
    actions[1].push(Do::Set(SLOTS));
    actions[BLOCKS - 1].push(Do::Get(SLOTS));
    assert_too_large(&cfg, SLOTS + 1, &actions, TooLarge::LiveWords(LIVE_WORDS_MAX));
}

#[test]
fn steps_on_large_families_are_linear() {
    let mut scratch = Scratch::default();
    for (name, cfg) in families(200_000) {
        let tree = crate::graphs::dominators::DomTree::semi_nca(&cfg);
        let (cfg, _) = tree.renumber(&cfg);
        let mut rng = Rng(13);
        let actions = random_actions(&mut rng, cfg.n_blocks(), 10);
        let slots = make(&cfg, 10, &actions);
        let mut ssa = slots.clone();
        within(3 * 10 * size(&cfg), name, || promote(&mut ssa, &mut scratch));
        assert!(!ssa.has_slot_accesses());
        assert_same_on_a_path(&mut rng, &slots, &ssa);
    }
}
