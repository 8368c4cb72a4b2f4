//! Properties 15 to 17: values, across blocks.

use super::{Violation, require};
use crate::graphs::dominators::DomTree;
use crate::ir::Function;
use crate::ir::entity::{Block, Inst, Value};

/// Place of a value's definition: the block, and the position among its instructions plus one; 0 for a parameter.
type Def = Option<(Block, u32)>;

/// Checks definitions, uses and edge operands. Blocks are numbered in preorder of `dom`.
pub(super) fn check_values(f: &Function, dom: &DomTree) -> Result<(), Violation> {
    let defs = collect_defs(f)?;
    for block in f.blocks() {
        for (i, &inst) in f.insts(block).iter().enumerate() {
            for &value in f.operands(inst) {
                let dominates = def_dominates(dom, defs[value.index()], block, i as u32);
                require!(
                    dominates,
                    DefsDominate,
                    "{inst} in {block} uses {value}, whose definition does not dominate it"
                );
            }
        }
        check_edge_args(f, dom, &defs, block)?;
    }
    Ok(())
}

fn check_edge_args(
    f: &Function,
    dom: &DomTree,
    defs: &[Def],
    block: Block,
) -> Result<(), Violation> {
    for edge in f.succ_edges(block) {
        let dst = f.edge_dst(edge);
        let start = f.edges[edge.index()].args as usize;
        let n_params = f.params(dst).len();
        require!(
            start + n_params <= f.edge_args.len(),
            EdgeArguments,
            "{edge} to {dst} has fewer than {n_params} operands"
        );
        for (&arg, &param) in f.edge_args(edge).iter().zip(f.params(dst)) {
            let ty = f.value_type(param);
            let fits = f.value_types.get(arg.index()) == Some(&ty);
            require!(fits, EdgeArguments, "{edge} has {arg} for {param}, which is {ty}");
            let at_end = f.insts(block).len() as u32;
            let dominates = def_dominates(dom, defs[arg.index()], block, at_end);
            require!(
                dominates,
                DefsDominate,
                "{edge} out of {block} uses {arg}, whose definition does not dominate it"
            );
        }
    }
    Ok(())
}

fn collect_defs(f: &Function) -> Result<Vec<Def>, Violation> {
    let mut defs = vec![None; f.n_values()];
    for block in f.blocks() {
        for &param in f.params(block) {
            define(&mut defs, param, block, 0)?;
        }
        for (i, &inst) in f.insts(block).iter().enumerate() {
            define_results(f, &mut defs, inst, block, i as u32 + 1)?;
        }
    }
    Ok(defs)
}

fn define_results(
    f: &Function,
    defs: &mut [Def],
    inst: Inst,
    block: Block,
    position: u32,
) -> Result<(), Violation> {
    for value in f.results(inst) {
        define(defs, value, block, position)?;
    }
    Ok(())
}

fn define(defs: &mut [Def], value: Value, block: Block, position: u32) -> Result<(), Violation> {
    let again = defs[value.index()].replace((block, position));
    require!(
        again.is_none(),
        DefinedOnce,
        "{value} is defined in {block}, and before in {again:?}"
    );
    Ok(())
}

/// Whether a definition dominates the instruction at a position of a block.
fn def_dominates(dom: &DomTree, def: Def, block: Block, position: u32) -> bool {
    match def {
        Some((def_block, def_position)) if def_block == block => def_position <= position,
        Some((def_block, _)) => dom.dominates(def_block.0, block.0),
        None => false,
    }
}
