//! Turns the code of a function into steps: decoded, branches resolved, the storage of locals decided.
//! One instruction is one step; with fuel, each basic block starts with one more that charges for it, and
//! where programs can be interrupted, some start with one that polls, before that.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use slotvm_bytecode::module::Label;
use slotvm_bytecode::verified::{Block, Body, Storage};
use slotvm_bytecode::{
    Imm, Inst, Op, ValType, VectorAccess, VerifiedModule, inst, n_cells, numeric,
};

/// The operation of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepOp {
    /// An instruction of the opcode table. The immediates are packed as in [`Imm`], but those of branches are
    /// steps: `br` and `br_if` have one, `br_table` the number of its labels without the default and their start
    /// in [`FuncCode::targets`]; `br_keep` has its number in [`FuncCode::keeps`]. Those of numeric instructions are
    /// the number of operands; those of locals and globals are their cells. `local.addr` is that of a promotable
    /// local: it pushes a token that is never looked at.
    Op(Op),
    /// Lets the host interrupt the program.
    Poll,
    /// Charges the immediate for a block.
    Fuel,
    /// A load through the token of a promotable local: pops it, pushes the local.
    DirectLoad,
    /// A store through such a token: pops a value and the token, sets the local.
    DirectStore,
    /// `local.addr` of a local that lives in the frame stack. The immediate of this and the following
    /// is its offset in the frame, and the bytes of its type in bits 32..64.
    FrameAddr,
    /// `local.get` of such a local.
    FrameGet,
    /// `local.set` of such a local.
    FrameSet,
    /// `local.tee` of such a local.
    FrameTee,
    /// Operation on operands of two cells: the immediate is its number in [`FuncCode::vectors`].
    Vector,
}

/// A step that concerns operands of two cells.
#[derive(Copy, Clone, Debug)]
pub(crate) enum VectorStep {
    /// Pushes the constant.
    Const(u128),
    /// An instruction on vectors alone, with its immediate as [`slotvm_bytecode::vector::eval`] takes it.
    Op(Op, u128),
    /// Loads 16 bytes.
    Load(Imm),
    /// Stores 16 bytes.
    Store(Imm),
    /// Loads or stores a part of a vector.
    Part(VectorAccess, Imm),
    /// Pushes a local, by its first cell.
    LocalGet(u32),
    /// Pops a local.
    LocalSet(u32),
    /// Copies the top into a local.
    LocalTee(u32),
    /// Pushes a global, by its first cell.
    GlobalGet(u32),
    /// Pops a global.
    GlobalSet(u32),
    /// A stack shuffle, `drop` or `select`, and which of its operands take two cells: see
    /// [`slotvm_bytecode::verified::WideOperands`].
    Shuffle(Op, u8),
}

/// A `br_keep`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Keep {
    /// The step that it goes to.
    pub(crate) target: u32,
    /// The number of cells that it takes along, and the first of the frame's cells that they get into.
    pub(crate) n_cells: u32,
    pub(crate) to: u32,
}

/// A step.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Step {
    /// Its operation.
    pub(crate) op: StepOp,
    /// The code offset of its instruction; of a [`StepOp::Poll`] or
    /// [`StepOp::Fuel`], that of its block.
    pub(crate) offset: u32,
    /// Its immediates.
    pub(crate) imm: Imm,
}

/// A function of a module as the interpreter runs it.
#[derive(Debug)]
pub(crate) struct FuncCode {
    pub(crate) steps: Vec<Step>,
    /// The steps that `br_table`s go to.
    pub(crate) targets: Vec<u32>,
    /// The operations of the `br_keep`s.
    pub(crate) keeps: Vec<Keep>,
    /// The operations of the [`StepOp::Vector`]s.
    pub(crate) vectors: Vec<VectorStep>,
    /// Cells of the parameters, of the results, and of all locals.
    pub(crate) n_params: usize,
    pub(crate) n_results: usize,
    pub(crate) n_locals: usize,
    /// Cells of its frame: locals and operand stack.
    pub(crate) n_cells: usize,
    /// Cells that a call takes from the deterministic call stack.
    pub(crate) call_cells: u32,
    /// Bytes of its frame in the frame stack.
    pub(crate) frame_bytes: u32,
    /// The parameters that live there: cell, and immediate as of [`StepOp::FrameSet`].
    pub(crate) frame_params: Vec<(usize, Imm)>,
}

/// The steps that are no instructions.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ExtraSteps {
    /// Blocks charge fuel.
    pub(crate) fuel: bool,
    /// Blocks poll if [`slotvm_bytecode::verified::Block::polls`] is set.
    pub(crate) polls: bool,
}

impl ExtraSteps {
    /// Their number at the start of a block.
    fn of(self, block: &Block) -> u32 {
        u32::from(self.fuel) + u32::from(self.polls && block.polls)
    }
}

/// A module as the interpreter runs it. Functions are prepared when they are first called.
pub(crate) struct ModuleCode {
    module: Arc<VerifiedModule>,
    extra: ExtraSteps,
    /// Those that the module defines. The list itself is made when the first one is called: native code
    /// never does.
    funcs: OnceLock<Box<[OnceLock<Box<FuncCode>>]>>,
    exports: OnceLock<HashMap<String, usize>>,
}

impl ModuleCode {
    /// Prepares nothing yet.
    pub(crate) fn new(module: Arc<VerifiedModule>, extra: ExtraSteps) -> ModuleCode {
        ModuleCode { module, extra, funcs: OnceLock::new(), exports: OnceLock::new() }
    }

    pub(crate) fn module(&self) -> &Arc<VerifiedModule> {
        &self.module
    }

    /// A function that the module defines.
    pub(crate) fn func(&self, func: u32) -> &FuncCode {
        let n_imported = self.module.n_imported_funcs();
        let funcs = self
            .funcs
            .get_or_init(|| (n_imported..self.module.n_funcs()).map(|_| OnceLock::new()).collect());
        funcs[(func - n_imported) as usize]
            .get_or_init(|| Box::new(prepare(&self.module, func, self.extra)))
    }

    /// The number of the export with a name.
    pub(crate) fn export(&self, name: &str) -> Option<usize> {
        let exports = self.exports.get_or_init(|| {
            let exports = self.module.module().exports.iter();
            exports.enumerate().map(|(i, export)| (export.name.clone(), i)).collect()
        });
        exports.get(name).copied()
    }
}

fn prepare(module: &VerifiedModule, func: u32, extra: ExtraSteps) -> FuncCode {
    let body = module.body(func).expect("the function is defined in the module");
    let ty = module.func_type(func);
    let mut out = Preparation {
        body,
        module,
        func,
        block_steps: block_steps(body, extra),
        steps: Vec::new(),
        targets: Vec::new(),
        keeps: Vec::new(),
        vectors: Vec::new(),
    };
    for block in &body.blocks {
        if extra.polls && block.polls {
            out.steps.push(Step { op: StepOp::Poll, offset: block.start, imm: Imm::NONE });
        }
        if extra.fuel {
            let imm = Imm::index(block.cost);
            out.steps.push(Step { op: StepOp::Fuel, offset: block.start, imm });
        }
        for (offset, inst) in module.insts(func, block) {
            let (op, imm) = out.translate(offset, inst);
            out.steps.push(Step { op, offset, imm });
        }
    }
    let frame_param =
        |i: usize| Some((body.local_cell(i as u32) as usize, frame_place(body, i as u32)?));
    FuncCode {
        steps: out.steps,
        targets: out.targets,
        keeps: out.keeps,
        vectors: out.vectors,
        n_params: n_cells(&ty.params),
        n_results: n_cells(&ty.results),
        n_locals: body.n_local_cells() as usize,
        n_cells: body.n_cells() as usize,
        call_cells: body.call_cells(),
        frame_bytes: body.frame_bytes,
        frame_params: (0..ty.params.len()).filter_map(frame_param).collect(),
    }
}

/// The step at which each block starts.
fn block_steps(body: &Body, extra: ExtraSteps) -> Vec<u32> {
    let mut next = 0;
    let starts = body.blocks.iter().map(|block| {
        let start = next;
        next += block.cost + extra.of(block);
        start
    });
    starts.collect()
}

/// Returns the place of a local in the frame stack, packed as for [`StepOp::FrameAddr`], if it lives there.
fn frame_place(body: &Body, local: u32) -> Option<Imm> {
    let local = &body.locals[local as usize];
    match local.storage {
        Storage::Promotable => None,
        Storage::Escapes { frame_offset, .. } => Some(Imm::pair(frame_offset, local.ty.bytes())),
    }
}

struct Preparation<'a> {
    body: &'a Body,
    module: &'a VerifiedModule,
    func: u32,
    block_steps: Vec<u32>,
    steps: Vec<Step>,
    targets: Vec<u32>,
    keeps: Vec<Keep>,
    vectors: Vec<VectorStep>,
}

impl Preparation<'_> {
    fn translate(&mut self, offset: u32, Inst { op, imm }: Inst) -> (StepOp, Imm) {
        if let Some(step) = self.vector_step(offset, op, imm) {
            self.vectors.push(step);
            return (StepOp::Vector, Imm::index(self.vectors.len() as u32 - 1));
        }
        let in_frame = |frame_op| match frame_place(self.body, imm.low()) {
            Some(place) => (frame_op, place),
            None => (StepOp::Op(op), Imm::index(self.body.local_cell(imm.low()))),
        };
        match op {
            Op::GlobalGet | Op::GlobalSet => {
                (StepOp::Op(op), Imm::index(self.module.global_cell(imm.low())))
            }
            Op::LocalAddr => in_frame(StepOp::FrameAddr),
            Op::LocalGet => in_frame(StepOp::FrameGet),
            Op::LocalSet => in_frame(StepOp::FrameSet),
            Op::LocalTee => in_frame(StepOp::FrameTee),
            Op::Br | Op::BrIf => (StepOp::Op(op), Imm::index(self.target(imm.low()))),
            Op::BrKeep => {
                self.keeps.push(self.keep(imm));
                (StepOp::Op(op), Imm::index(self.keeps.len() as u32 - 1))
            }
            Op::BrTable => {
                let first = self.targets.len() as u32;
                let code = &self.module.func(self.func).expect("defined here").code;
                for label in inst::labels(code, imm) {
                    self.targets.push(self.target(label));
                }
                (StepOp::Op(op), Imm::pair(imm.low(), first))
            }
            _ if numeric::is_numeric(op) => {
                let signature = op.signature().expect("numeric instructions have one");
                (StepOp::Op(op), Imm::index(signature.params.len() as u32))
            }
            _ => match (op.access(), self.body.direct_access(offset)) {
                (Some(access), Some(local)) if access.store => {
                    (StepOp::DirectStore, Imm::index(self.body.local_cell(local)))
                }
                (Some(_), Some(local)) => {
                    (StepOp::DirectLoad, Imm::index(self.body.local_cell(local)))
                }
                _ => (StepOp::Op(op), imm),
            },
        }
    }

    /// The step of an instruction that concerns operands of two cells.
    fn vector_step(&self, offset: u32, op: Op, imm: Imm) -> Option<VectorStep> {
        let body = self.body;
        let is_wide_local = || body.locals[imm.low() as usize].ty == ValType::V128;
        let is_wide_global = || self.module.globals()[imm.low() as usize].ty == ValType::V128;
        let code = || &self.module.func(self.func).expect("defined here").code;
        Some(match op {
            Op::LocalGet if is_wide_local() => VectorStep::LocalGet(body.local_cell(imm.low())),
            Op::LocalSet if is_wide_local() => VectorStep::LocalSet(body.local_cell(imm.low())),
            Op::LocalTee if is_wide_local() => VectorStep::LocalTee(body.local_cell(imm.low())),
            Op::GlobalGet if is_wide_global() => {
                VectorStep::GlobalGet(self.module.global_cell(imm.low()))
            }
            Op::GlobalSet if is_wide_global() => {
                VectorStep::GlobalSet(self.module.global_cell(imm.low()))
            }
            Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot | Op::Select => {
                let wide = body.wide_operands(offset);
                return (wide != 0).then_some(VectorStep::Shuffle(op, wide));
            }
            Op::V128Const => VectorStep::Const(inst::vector(code(), imm)),
            Op::I8x16Shuffle => VectorStep::Op(op, inst::vector(code(), imm)),
            Op::V128Load => VectorStep::Load(imm),
            Op::V128Store => VectorStep::Store(imm),
            _ if op.is_vector() => match op.vector_access() {
                Some(access) => VectorStep::Part(access, imm),
                None => VectorStep::Op(op, imm.low().into()),
            },
            _ => return None,
        })
    }

    fn target(&self, label: u32) -> u32 {
        self.block_steps[self.body.block_at(self.label(label).offset)]
    }

    fn label(&self, label: u32) -> Label {
        self.module.func(self.func).expect("defined here").labels[label as usize]
    }

    fn keep(&self, imm: Imm) -> Keep {
        let mut below = self.label(imm.low()).shape;
        for _ in 0..imm.high() {
            (below, _) = self.module.shape_top(below).expect("the label has what it takes along");
        }
        let n_lowest = self.module.shape_cells(below);
        Keep {
            target: self.target(imm.low()),
            n_cells: self.module.shape_cells(self.label(imm.low()).shape) - n_lowest,
            to: self.body.n_local_cells() + n_lowest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_compact() {
        assert_eq!(size_of::<StepOp>(), 2);
        assert_eq!(size_of::<Step>(), 16);
    }
}
