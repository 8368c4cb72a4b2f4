//! Devirtualisation: indirect calls through a table that never changes become direct calls.
//!
//! Relies on slot form, and guarantees it, so that the calls it makes can be inlined. A table that nobody can write once
//! the module has been instantiated has the same functions in each instance
//! ([`VerifiedModule::constant_entries`]). If few of them have the type of a call, a switch over the index
//! leads to a call of each. No other index leads to a function of the type, so the call itself stays for those alone:
//! it traps, with the code and at the place that it always had. With a constant index the call becomes a direct one.
//!
//! The calls have the location of the instruction that they replace. All else stays in its order, so nothing that a
//! program can observe changes.

use slotvm_bytecode::{Imm, Op, TableEntry, ValType, VerifiedModule};

use crate::ir::Function;
use crate::ir::analyses::Analyses;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::irop::{IrOp, Opcode};
use crate::ir::split::{Split, split_at};

/// The maximum number of functions that a call in a loop is compared with.
pub const IN_LOOP_MAX: usize = 8;
/// The maximum number of functions that a call elsewhere is compared with.
pub const ELSEWHERE_MAX: usize = 2;

/// Statistics of devirtualisation.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DevirtualisationReport {
    /// Indirect calls that became direct ones.
    pub n_calls: usize,
    /// Direct calls that they became.
    pub n_callees: usize,
}

/// Devirtualises the calls of a function in slot form.
pub fn devirtualise(
    f: &mut Function,
    module: &VerifiedModule,
    analyses: &mut Analyses,
) -> DevirtualisationReport {
    let sites = find_sites(f, module, analyses);
    let report = DevirtualisationReport {
        n_calls: sites.len(),
        n_callees: sites.iter().map(|site| site.callees.len()).sum(),
    };
    if sites.is_empty() {
        return report;
    }
    let mut sites = sites.iter().peekable();
    split_at(f, |split, part, inst| {
        let site = sites.next_if(|site| site.inst == inst)?;
        let mut rewriter = Rewriter { split };
        if site.is_constant {
            rewriter.replace_known(site);
            return Some(part);
        }
        Some(rewriter.replace(part, site))
    });
    report
}

/// A call to replace.
struct Site<'m> {
    block: Block,
    inst: Inst,
    /// The functions that it may call.
    callees: &'m [TableEntry],
    /// Whether its index is a constant, that of the only one of them.
    is_constant: bool,
}

/// The calls to replace, in the order of the code.
fn find_sites<'m>(
    f: &Function,
    module: &'m VerifiedModule,
    analyses: &mut Analyses,
) -> Vec<Site<'m>> {
    let mut sites = Vec::new();
    // The last constant: front ends push a constant index right before the call.
    let mut constant = None;
    for block in f.blocks() {
        for &inst in f.insts(block) {
            match f.opcode(inst) {
                Opcode::Op(Op::I32Const) => constant = Some((f.result(inst), f.imm(inst).low())),
                // After these the function is left: others are called most of the time.
                Opcode::Op(Op::CallIndirect) if ends_with_exit(f, block) => {}
                Opcode::Op(Op::CallIndirect | Op::ReturnCallIndirect) => {
                    let constant = constant.filter(|&(value, _)| value == index(f, inst));
                    let index = constant.map(|(_, index)| index);
                    sites.extend(site(f, module, block, inst, index));
                }
                _ => {}
            }
        }
    }
    if sites.iter().any(|site: &Site<'_>| site.callees.len() > ELSEWHERE_MAX) {
        let (loops, _) = analyses.loops(f);
        let is_in_loop = |site: &Site<'_>| loops.depth_of_block(site.block.0) > 0;
        sites.retain(|site| site.callees.len() <= ELSEWHERE_MAX || is_in_loop(site));
    }
    sites
}

fn ends_with_exit(f: &Function, block: Block) -> bool {
    f.opcode(f.terminator(block)) == Opcode::Ir(IrOp::Exit)
}

/// An indirect call, if it may be replaced. `index` is its index, if that is known.
fn site<'m>(
    f: &Function,
    module: &'m VerifiedModule,
    block: Block,
    inst: Inst,
    index: Option<u32>,
) -> Option<Site<'m>> {
    let imm = f.imm(inst);
    let mut callees = module.constant_entries(imm.high(), imm.low())?;
    if let Some(index) = index {
        let i = callees.binary_search_by_key(&index, |entry| entry.index).ok()?;
        callees = &callees[i..=i];
    }
    let is_constant = index.is_some();
    let replaces = (1..=IN_LOOP_MAX).contains(&callees.len());
    replaces.then_some(Site { block, inst, callees, is_constant })
}

/// The index of an indirect call.
fn index(f: &Function, call: Inst) -> Value {
    *f.operands(call).last().expect("an indirect call has an index")
}

/// The blocks of a function that are put together anew.
struct Rewriter<'s, 'f> {
    split: &'s mut Split<'f>,
}

impl Rewriter<'_, '_> {
    /// Turns a call with a constant index into a direct one.
    fn replace_known(&mut self, site: &Site<'_>) {
        let inst = site.inst;
        self.split.f.ops[inst.index()] = Opcode::Op(direct(self.split.f.opcode(inst)));
        self.split.f.imms[inst.index()] = Imm::index(site.callees[0].func);
        // The index is the last operand.
        self.split.f.operands[inst.index()].1 -= 1;
        self.split.blocks.push(inst);
    }

    /// Replaces a call, which ends a part of a block. Returns the part that goes on after it, or that ends with it.
    fn replace(&mut self, part: u32, site: &Site<'_>) -> u32 {
        let call = site.inst;
        let is_tail = self.split.f.opcode(call) == Opcode::Op(Op::ReturnCallIndirect);
        let heres: Vec<u32> = site.callees.iter().map(|_| self.split.add_block(call)).collect();
        let elsewhere = match is_dense(site.callees) {
            true => self.switch(part, site, &heres),
            false => self.compare(part, site, &heres),
        };
        let join = self.split.add_block(call);
        for (&here, callee) in heres.iter().zip(site.callees) {
            self.split.blocks.open(here);
            let results = self.call(call, callee.func);
            if !is_tail {
                self.emit(Op::Br, Imm::NONE, &[], &[], call);
                self.split.blocks.push_edge(join, results);
            }
            self.split.blocks.close(here);
        }
        self.split.blocks.open(elsewhere);
        if is_tail {
            self.split.blocks.push(call);
            return elsewhere;
        }
        self.trap(call);
        self.split.blocks.close(elsewhere);
        self.split.blocks.set_params(join, self.split.f.results(call));
        self.split.blocks.open(join);
        join
    }

    /// Ends a part of a block with a switch between the blocks of the functions. Returns the block for other indices.
    fn switch(&mut self, part: u32, site: &Site<'_>, heres: &[u32]) -> u32 {
        let elsewhere = self.split.add_block(site.inst);
        let (first, last) = first_and_last(site.callees);
        let mut selector = vec![index(self.split.f, site.inst)];
        if first > 0 {
            let first = self.constant(first, site.inst);
            let operands = [selector[0], first];
            selector = self.emit(Op::I32Sub, Imm::NONE, &operands, &[ValType::I32], site.inst);
        }
        self.emit(Op::BrTable, Imm::NONE, &selector, &[], site.inst);
        let mut callees = site.callees.iter().zip(heres).peekable();
        for index in first..=last {
            let here = callees.next_if(|(callee, _)| callee.index == index);
            self.split.blocks.push_edge(here.map_or(elsewhere, |(_, &here)| here), []);
        }
        self.split.blocks.push_edge(elsewhere, []);
        self.split.blocks.close(part);
        elsewhere
    }

    /// Ends a part of a block with comparisons that lead to the blocks of the functions. Returns the block for other
    /// indices.
    fn compare(&mut self, mut part: u32, site: &Site<'_>, heres: &[u32]) -> u32 {
        let (call, index) = (site.inst, index(self.split.f, site.inst));
        for (callee, &here) in site.callees.iter().zip(heres) {
            let number = self.constant(callee.index, call);
            let is_same = self.emit(Op::I32Eq, Imm::NONE, &[index, number], &[ValType::I32], call);
            self.emit(Op::BrIf, Imm::NONE, &is_same, &[], call);
            let elsewhere = self.split.add_block(call);
            self.split.blocks.push_edge(here, []);
            self.split.blocks.push_edge(elsewhere, []);
            self.split.blocks.close(part);
            part = elsewhere;
            self.split.blocks.open(part);
        }
        part
    }

    fn constant(&mut self, value: u32, call: Inst) -> Value {
        self.emit(Op::I32Const, Imm::index(value), &[], &[ValType::I32], call)[0]
    }

    /// Calls a function directly, with the arguments of an indirect call.
    fn call(&mut self, call: Inst, func: u32) -> Vec<Value> {
        let (_, args) =
            self.split.f.operands(call).split_last().expect("the last one is the index");
        let (op, args) = (direct(self.split.f.opcode(call)), args.to_vec());
        let types = self.split.result_types(call);
        self.emit(op, Imm::index(func), &args, &types, call)
    }

    /// Copies a call that traps.
    fn trap(&mut self, call: Inst) {
        let types = self.split.result_types(call);
        let (imm, operands) = (self.split.f.imm(call), self.split.f.operands(call).to_vec());
        self.emit(Op::CallIndirect, imm, &operands, &types, call);
        self.emit(Op::Unreachable, Imm::NONE, &[], &[], call);
    }

    /// Appends an instruction at the location of a call.
    fn emit(
        &mut self,
        op: Op,
        imm: Imm,
        operands: &[Value],
        results: &[ValType],
        call: Inst,
    ) -> Vec<Value> {
        self.split.emit(Opcode::Op(op), imm, operands, results, call)
    }
}

/// Whether the indices of functions lie so close together that a table of all from the first to the last one is small.
fn is_dense(callees: &[TableEntry]) -> bool {
    let (first, last) = first_and_last(callees);
    (last - first) as usize <= 2 * callees.len()
}

fn first_and_last(callees: &[TableEntry]) -> (u32, u32) {
    let [first, .., last] = callees else { return (callees[0].index, callees[0].index) };
    (first.index, last.index)
}

/// The direct call in place of an indirect one.
fn direct(op: Opcode) -> Op {
    match op {
        Opcode::Op(Op::ReturnCallIndirect) => Op::ReturnCall,
        _ => Op::Call,
    }
}

#[cfg(test)]
mod tests;
