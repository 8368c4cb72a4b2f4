//! The `Variable`s of cranelift-frontend.
//!
//! Their cost cannot be measured alone, so a function is built twice: with variables, and with neither
//! reads nor writes. Blocks are filled in reverse postorder and sealed as soon as all their predecessors
//! are.

use cranelift_codegen::ir::{
    AbiParam, Block, BlockCall, Function, InstBuilder, JumpTableData, Signature, UserFuncName,
    Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use slotvm_ssa::graphs::cfg::ControlFlow;
use target_lexicon::PointerWidth;

use super::order::Order;
use super::{Contender, Input, Outcome, timed};
use crate::slot_graph::{Access, SlotGraph, Written};

/// Construction by variables.
#[derive(Default)]
pub struct Variables {
    context: FunctionBuilderContext,
}

/// The name of [`Variables`].
pub const VARIABLES: &str = "cranelift-frontend";

impl Contender for Variables {
    fn name(&self) -> &str {
        VARIABLES
    }

    fn run(&mut self, input: &Input, n_times: u32) -> Option<Outcome> {
        let order = Order::new(&input.graph);
        let mut functions = empty_functions(n_times);
        let (time, ()) = timed(|| {
            for function in &mut functions {
                let builder = FunctionBuilder::new(function, &mut self.context);
                build::<true>(&input.graph, &order, builder);
            }
        });
        let n_phis = n_phis(&functions[0]);
        drop(functions);
        let mut functions = empty_functions(n_times);
        let (other, ()) = timed(|| {
            for function in &mut functions {
                let builder = FunctionBuilder::new(function, &mut self.context);
                build::<false>(&input.graph, &order, builder);
            }
        });
        Some(Outcome { time, other, n_phis })
    }
}

fn empty_functions(n: u32) -> Vec<Function> {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.push(AbiParam::new(types::I32));
    let empty = || Function::with_name_signature(UserFuncName::default(), signature.clone());
    (0..n).map(|_| empty()).collect()
}

fn n_phis(function: &Function) -> usize {
    let blocks = function.layout.blocks().skip(1);
    blocks.map(|block| function.dfg.num_block_params(block)).sum()
}

/// Builds the function. Without variables a value read is the parameter, and values written are made
/// and forgotten.
fn build<const HAS_VARIABLES: bool>(
    graph: &SlotGraph,
    order: &Order,
    mut builder: FunctionBuilder<'_>,
) {
    let variables: Vec<Variable> = match HAS_VARIABLES {
        true => (0..graph.n_slots).map(|_| builder.declare_var(types::I64)).collect(),
        false => Vec::new(),
    };
    let blocks: Vec<Block> = (0..graph.n_blocks()).map(|_| builder.create_block()).collect();
    builder.append_block_params_for_function_params(blocks[0]);
    let param = builder.block_params(blocks[0])[0];
    let mut reads = vec![param; graph.n_reads()];
    let mut next_constant = 0;
    let mut sealed = order.sealed.iter();
    for &(block, n_sealed) in &order.filled {
        builder.switch_to_block(blocks[block as usize]);
        let mut read = order.first_reads[block as usize] as usize;
        for &access in graph.accesses(block) {
            match access {
                Access::Read { slot } => {
                    if HAS_VARIABLES {
                        reads[read] = builder.use_var(variables[slot as usize]);
                    }
                    read += 1;
                }
                Access::Write { slot, value } => {
                    let value = match value {
                        Written::Read(read) => reads[read as usize],
                        Written::New => {
                            next_constant += 1;
                            builder.ins().iconst(types::I64, next_constant)
                        }
                    };
                    if HAS_VARIABLES {
                        builder.def_var(variables[slot as usize], value);
                    }
                }
            }
        }
        branch(&mut builder, param, graph.cfg.succs(block), &blocks);
        for &block in sealed.by_ref().take(n_sealed as usize) {
            builder.seal_block(blocks[block as usize]);
        }
    }
    std::hint::black_box(&reads);
    builder.finalize(TargetFrontendConfig {
        default_call_conv: CallConv::SystemV,
        pointer_width: PointerWidth::U64,
        page_size_align_log2: 12,
    });
}

fn branch(builder: &mut FunctionBuilder<'_>, param: Value, succs: &[u32], blocks: &[Block]) {
    let block = |succ: u32| blocks[succ as usize];
    match *succs {
        [] => builder.ins().return_(&[]),
        [only] => builder.ins().jump(block(only), &[]),
        [taken, other] => builder.ins().brif(param, block(taken), &[], block(other), &[]),
        [ref targets @ .., last] => {
            let lists = &mut builder.func.dfg.value_lists;
            let mut call = |succ| BlockCall::new(block(succ), [], lists);
            let targets: Vec<_> = targets.iter().map(|&target| call(target)).collect();
            let table = JumpTableData::new(call(last), &targets);
            let table = builder.create_jump_table(table);
            builder.ins().br_table(param, table)
        }
    };
}
