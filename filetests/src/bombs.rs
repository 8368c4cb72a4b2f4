//! Compile bombs: small functions that would take a compiler much time or memory.
//!
//! Each [`Family`] has one parameter, its size, and one quantity that grows faster than its bytecode: live
//! values, operands of phis, depths of loops, steps of a walk up the dominator tree, operands of calls. The
//! test of the compile budget uses all of them, and so does its report, the example `bombs`.
//!
//! The first function is exported as [`NAME`], takes an `i32` and returns an `i64`; it ends soon.

use slotvm_bytecode::ValType::{I32, I64};
use slotvm_bytecode::builder::{FuncId, FunctionBuilder, LabelId, LocalId, ModuleBuilder};
use slotvm_bytecode::module::ConstExpr;
use slotvm_bytecode::{Imm, Module, Op, ValType};

/// The name by which the function is exported.
pub const NAME: &str = "bomb";

/// Number of operands and results of the widest functions.
const WIDE: usize = 1_000;

/// Bombs of one kind.
#[derive(Copy, Clone, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    write: fn(&mut FunctionBuilder<'_>, usize),
}

impl Family {
    /// A module with one bomb.
    pub fn module(&self, size: usize) -> Module {
        self.modules(size, 1)
    }

    /// A module with this many bombs.
    ///
    /// # Panics
    /// Panics if the size is too large for a function.
    pub fn modules(&self, size: usize, n_funcs: usize) -> Module {
        let mut module = ModuleBuilder::new();
        for i in 0..n_funcs {
            let name = if i == 0 { NAME } else { "" };
            let func = module.declare_func(name, &[I32], &[I64]);
            if i == 0 {
                module.export_func(NAME, func);
            }
            let mut f = module.define(func);
            (self.write)(&mut f, size);
            f.finish().expect("bombs are well-typed");
        }
        module.finish().expect("bombs are well-typed")
    }
}

/// All families.
pub const ALL: &[Family] = &[
    Family { name: "nested loops x locals", write: nested_loops_with_locals },
    Family { name: "ifs x locals", write: ifs_with_locals },
    Family { name: "nested loops", write: nested_loops },
    Family { name: "ifs", write: ifs },
    Family { name: "blocks", write: blocks },
    Family { name: "switch", write: switch },
    Family { name: "switch x locals", write: switch_with_locals },
    Family { name: "switches x shapes", write: switches_with_shapes },
    Family { name: "calls x locals", write: calls_with_locals },
    Family { name: "loop x locals", write: loop_with_locals },
    Family { name: "edges back", write: edges_back },
    Family { name: "irreducible ladder", write: irreducible_ladder },
    Family { name: "deep stack", write: deep_stack },
    Family { name: "straight code", write: straight_code },
    Family { name: "loads", write: loads },
    Family { name: "pile of loads", write: pile_of_loads },
    Family { name: "sum of loads", write: sum_of_loads },
    Family { name: "late sum", write: late_sum },
    Family { name: "wide calls", write: wide_calls },
    Family { name: "wide returns", write: wide_returns },
    Family { name: "common values", write: common_values },
    Family { name: "rotations", write: rotations },
    Family { name: "sums with constants", write: sums_with_constants },
    Family { name: "saturating lanes", write: saturating_lanes },
    Family { name: "calls by table", write: calls_by_table },
    Family { name: "targets", write: targets },
];

/// The family with a name.
///
/// # Panics
/// Panics if the name is unknown.
pub fn family(name: &str) -> Family {
    let found = ALL.iter().find(|family| family.name == name);
    *found.unwrap_or_else(|| panic!("unknown family `{name}`"))
}

const N: LocalId = LocalId(0);

fn locals(f: &mut FunctionBuilder<'_>, n: usize) -> Vec<LocalId> {
    (0..n).map(|_| f.local(I64)).collect()
}

/// Decrements the parameter, and pushes whether it is not 0.
fn count_down(f: &mut FunctionBuilder<'_>) {
    f.local_get(N).i32_const(1).op(Op::I32Sub).local_tee(N).i32_const(0).op(Op::I32GtS);
}

fn increment(f: &mut FunctionBuilder<'_>, local: LocalId) {
    f.local_get(local).i64_const(1).op(Op::I64Add).local_set(local);
}

/// Returns the sum of locals.
fn return_sum(f: &mut FunctionBuilder<'_>, locals: &[LocalId]) {
    f.i64_const(0);
    for &local in locals {
        f.local_get(local).op(Op::I64Add);
    }
    f.ret();
}

/// Each loop changes a local of its own, which lives in all others.
fn nested_loops_with_locals(f: &mut FunctionBuilder<'_>, n: usize) {
    let locals = locals(f, n);
    let heads: Vec<LabelId> = locals
        .iter()
        .map(|&local| {
            let head = f.label();
            f.bind(head);
            increment(f, local);
            head
        })
        .collect();
    for &head in heads.iter().rev() {
        count_down(f);
        f.br_if(head);
    }
    return_sum(f, &locals);
}

/// Each `if` changes a local of its own, which is read at the end.
fn ifs_with_locals(f: &mut FunctionBuilder<'_>, n: usize) {
    let locals = locals(f, n);
    for &local in &locals {
        let (otherwise, end) = (f.label(), f.label());
        f.local_get(N).br_if(otherwise);
        increment(f, local);
        f.br(end);
        f.bind(otherwise);
        f.i64_const(2).local_set(local);
        f.bind(end);
    }
    return_sum(f, &locals);
}

fn nested_loops(f: &mut FunctionBuilder<'_>, n: usize) {
    let heads: Vec<LabelId> = (0..n)
        .map(|_| {
            let head = f.label();
            f.bind(head);
            f.op(Op::Nop);
            head
        })
        .collect();
    for &head in heads.iter().rev() {
        count_down(f);
        f.br_if(head);
    }
    f.i64_const(7).ret();
}

/// A local that many blocks merge.
fn ifs(f: &mut FunctionBuilder<'_>, n: usize) {
    let local = f.local(I64);
    for _ in 0..n {
        let end = f.label();
        f.local_get(N).br_if(end);
        increment(f, local);
        f.bind(end);
    }
    f.local_get(local).ret();
}

/// Blocks of minimal size.
fn blocks(f: &mut FunctionBuilder<'_>, n: usize) {
    let end = f.label();
    for _ in 1..n {
        f.local_get(N).br_if(end);
    }
    f.bind(end);
    f.i64_const(7).ret();
}

/// Each target has its own block.
fn switch(f: &mut FunctionBuilder<'_>, n: usize) {
    let local = f.local(I64);
    let end = f.label();
    let targets: Vec<LabelId> = (0..n).map(|_| f.label()).collect();
    f.local_get(N).br_table(&targets, end);
    for target in targets {
        f.bind(target);
        increment(f, local);
    }
    f.bind(end);
    f.local_get(local).ret();
}

/// Many edges to one block, each with other values of the locals.
fn switch_with_locals(f: &mut FunctionBuilder<'_>, n: usize) {
    let locals = locals(f, n.min(1_000));
    let end = f.label();
    locals.iter().for_each(|&local| increment(f, local));
    f.local_get(N).br_if(end);
    locals.iter().for_each(|&local| increment(f, local));
    f.local_get(N).br_table(&vec![end; n], end);
    f.bind(end);
    return_sum(f, &locals);
}

/// Many switches, among blocks with many operands on the stack.
fn switches_with_shapes(f: &mut FunctionBuilder<'_>, n: usize) {
    let n_switches = n.isqrt();
    f.i64_const(1);
    for _ in 1..n_switches {
        f.op(Op::Dup);
    }
    let shape = vec![I64; n_switches];
    let blocks: Vec<LabelId> = (0..n_switches).map(|_| f.label_with_stack(&shape)).collect();
    for &block in &blocks {
        f.bind(block);
        f.i64_const(3).op(Op::I64Add).op(Op::Swap);
        count_down(f);
        let leave = f.label_with_stack(&shape);
        f.op(Op::I32Eqz).br_if(leave);
        f.local_get(N).br_table(&blocks, leave);
        f.bind(leave);
    }
    for _ in 1..n_switches {
        f.op(Op::I64Add);
    }
    f.ret();
}

/// All locals are live across all calls.
fn calls_with_locals(f: &mut FunctionBuilder<'_>, n: usize) {
    let locals = locals(f, n);
    for &local in &locals {
        f.local_get(N).op(Op::I64ExtendI32S).i64_const(1).op(Op::I64Add).local_set(local);
    }
    let callee = callee(f, &[], &[]);
    for _ in 0..n {
        f.call(callee);
    }
    return_sum(f, &locals);
}

/// A function that returns at once, defined after the current one.
fn callee(f: &mut FunctionBuilder<'_>, params: &[ValType], results: &[ValType]) -> FuncId {
    let module = f.module();
    let func = module.declare_func("", params, results);
    let mut g = module.define(func);
    if !results.is_empty() {
        g.i64_const(1);
    }
    for _ in 1..results.len() {
        g.op(Op::Dup);
    }
    g.ret();
    g.finish().expect("bombs are well-typed");
    func
}

/// Locals that live in many blocks of a loop, without any phi.
fn loop_with_locals(f: &mut FunctionBuilder<'_>, n: usize) {
    let locals = locals(f, n);
    for &local in &locals {
        f.local_get(N).op(Op::I64ExtendI32S).i64_const(1).op(Op::I64Add).local_set(local);
    }
    let head = f.label();
    f.bind(head);
    for _ in 0..n {
        let next = f.label();
        f.local_get(N).br_if(next);
        f.bind(next);
    }
    count_down(f);
    f.br_if(head);
    return_sum(f, &locals);
}

fn edges_back(f: &mut FunctionBuilder<'_>, n: usize) {
    let head = f.label();
    f.bind(head);
    for _ in 0..n {
        count_down(f);
        f.br_if(head);
    }
    f.i64_const(7).ret();
}

/// A ladder down one side and up the other, which can be entered at each step: iterative dominators
/// need many rounds.
fn irreducible_ladder(f: &mut FunctionBuilder<'_>, n: usize) {
    let steps: Vec<LabelId> = (0..n).map(|_| f.label()).collect();
    let end = f.label();
    f.local_get(N).br_if(steps[0]);
    for i in (0..n).rev() {
        f.bind(steps[i]);
        count_down(f);
        f.br_if(steps[(i + 1).min(n - 1)]);
        count_down(f);
        f.op(Op::I32Eqz).br_if(end);
    }
    f.bind(end);
    f.i64_const(7).ret();
}

fn deep_stack(f: &mut FunctionBuilder<'_>, n: usize) {
    for _ in 0..n {
        f.local_get(N);
    }
    let next = f.label_with_stack(&vec![I32; n]);
    f.bind(next);
    for _ in 1..n {
        f.op(Op::I32Sub);
    }
    f.op(Op::I64ExtendI32S).ret();
}

fn straight_code(f: &mut FunctionBuilder<'_>, n: usize) {
    f.local_get(N).op(Op::I64ExtendI32S);
    for _ in 0..n {
        f.op(Op::Dup).op(Op::I64Mul);
    }
    f.ret();
}

fn loads(f: &mut FunctionBuilder<'_>, n: usize) {
    f.module().memory("memory", 1, Some(1));
    f.i32_const(0);
    for _ in 0..n {
        f.load(Op::I32Load, 0);
    }
    f.op(Op::I64ExtendI32S).ret();
}

/// Loads whose results all stay on the stack until the first sum.
fn pile_of_loads(f: &mut FunctionBuilder<'_>, n: usize) {
    f.module().memory("memory", 1, Some(1));
    for i in 0..n {
        f.i32_const((8 * i % 60_000) as i32).load(Op::I64Load, 0);
    }
    for _ in 1..n {
        f.op(Op::I64Add);
    }
    f.ret();
}

/// Loads that wait only if an optimiser moves each sum to its use.
fn sum_of_loads(f: &mut FunctionBuilder<'_>, n: usize) {
    add_loads(f, n);
    f.ret();
}

fn add_loads(f: &mut FunctionBuilder<'_>, n: usize) {
    f.module().memory("memory", 1, Some(1));
    f.i64_const(0);
    for i in 0..n {
        f.i32_const((8 * i % 60_000) as i32).load(Op::I64Load, 0).op(Op::I64Add);
    }
}

/// The same over many blocks.
fn late_sum(f: &mut FunctionBuilder<'_>, n: usize) {
    let sum = f.local(I64);
    add_loads(f, n);
    f.local_set(sum);
    for _ in 0..n {
        let next = f.label();
        f.local_get(N).br_if(next);
        f.i32_const(0).i32_const(1).store(Op::I32Store, 0);
        f.bind(next);
    }
    f.local_get(sum).ret();
}

/// Each call has many operands and results.
fn wide_calls(f: &mut FunctionBuilder<'_>, n: usize) {
    let types = [I64; WIDE];
    let wide = callee(f, &types, &types);
    f.i64_const(1);
    for _ in 1..WIDE {
        f.op(Op::Dup);
    }
    for _ in 0..n {
        f.call(wide);
    }
    for _ in 1..WIDE {
        f.op(Op::I64Add);
    }
    f.ret();
}

/// A function that returns many operands at many places.
fn wide_returns(f: &mut FunctionBuilder<'_>, n: usize) {
    let types = [I64; WIDE];
    let module = f.module();
    let func = module.declare_func("", &[I32], &types);
    let mut g = module.define(func);
    g.i64_const(1);
    for _ in 1..WIDE {
        g.op(Op::Dup);
    }
    for _ in 0..n {
        let next = g.label_with_stack(&types);
        g.local_get(N).br_if(next);
        g.ret();
        g.bind(next);
    }
    g.ret();
    g.finish().expect("bombs are well-typed");
    f.local_get(N).call(func);
    for _ in 1..WIDE {
        f.op(Op::I64Add);
    }
    f.ret();
}

/// Values that an optimiser finds to be equal far away, and keeps live over all blocks between.
fn common_values(f: &mut FunctionBuilder<'_>, n: usize) {
    let sum = f.local(I64);
    let m = f.local(I64);
    f.local_get(N).op(Op::I64ExtendI32S).local_set(m);
    for round in 0..2 {
        for i in 0..n {
            f.local_get(m).i64_const(i as i64 + 3).op(Op::I64Mul);
            f.local_get(sum).op(Op::I64Add).local_set(sum);
        }
        for _ in 0..if round == 0 { n } else { 0 } {
            let next = f.label();
            f.local_get(N).br_if(next);
            f.bind(next);
        }
    }
    f.local_get(sum).ret();
}

/// Nested rotations, which an optimiser combines into one, by the sum of their counts.
fn rotations(f: &mut FunctionBuilder<'_>, n: usize) {
    f.local_get(N).op(Op::I64ExtendI32S);
    for _ in 0..n {
        f.op(Op::Dup).op(Op::I64Rotr);
    }
    f.ret();
}

/// Nested sums with constants, which an optimiser combines likewise.
fn sums_with_constants(f: &mut FunctionBuilder<'_>, n: usize) {
    f.local_get(N).op(Op::I64ExtendI32S);
    for i in 0..n {
        f.i64_const((i % 64) as i64).op(Op::I64Add);
    }
    f.ret();
}

/// An instruction that is lowered to many.
fn saturating_lanes(f: &mut FunctionBuilder<'_>, n: usize) {
    f.local_get(N).op(Op::I32x4Splat);
    for _ in 0..n {
        f.op(Op::I32x4TruncSatF32x4U);
    }
    f.inst(Op::I64x2ExtractLane, Imm::lane(0)).ret();
}

/// Indirect calls, which are lowered to checks of the index and the type.
fn calls_by_table(f: &mut FunctionBuilder<'_>, n: usize) {
    let callee = callee(f, &[], &[]);
    let module = f.module();
    let ty = module.func_type(&[], &[]);
    let table = module.table("table", ValType::FuncRef, 1, Some(1));
    // Calls through a table that nobody can change become direct ones.
    module.export_table(&format!("table {}", table.0), table);
    module.elem("", table, ConstExpr::i32(0), &[callee]);
    for _ in 0..n {
        f.i32_const(0).call_indirect(ty, table);
    }
    f.i64_const(7).ret();
}

/// A switch with many equal targets.
fn targets(f: &mut FunctionBuilder<'_>, n: usize) {
    let end = f.label();
    f.local_get(N).br_table(&vec![end; n], end);
    f.bind(end);
    f.i64_const(7).ret();
}
