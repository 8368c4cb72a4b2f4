//! The slot forms of the functions in a plan, with the counts that decide about inlining.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use slotvm_bytecode::verified::ModuleId;
use slotvm_bytecode::{Effect, Inst as BytecodeInst, Op, VerifiedModule};

use super::BodyExits;
use super::leaf::leaf;
use super::limits::Limits;
use crate::construction::build::{
    BuildOptions, BuildScratch, OperandCounts, build, build_with_exits,
};
use crate::graphs::loops::LoopForest;
use crate::ir::Function;
use crate::ir::entity::Inst;
use crate::ir::graph::control_flow;
use crate::ir::irop::{IrOp, Opcode};

/// A function that occurs in a plan.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) function: Function,
    /// See [`Limits`].
    pub(super) size: u32,
    pub(super) sites: Vec<Site>,
    pub(super) has_loop: bool,
    /// Whether it tail calls itself, which is a loop as well.
    pub(super) calls_itself_last: bool,
    /// Whether it can only replace a tail call of the root, since it makes an indirect one.
    pub(super) is_for_tails: bool,
    /// Blocks that end in a return, or in a direct tail call.
    pub(super) n_exits: u32,
    /// Whether it is only the [leaf](super::leaf) of a function.
    pub(super) is_leaf: bool,
    /// The number of its exits for the interpreter.
    pub(super) n_left: u32,
    /// The maximum number of cells of the frame that one of these leaves.
    pub(super) exit_cells: u32,
}

/// A call that may be inlined.
#[derive(Copy, Clone, Debug)]
pub(super) struct Site {
    pub(super) inst: Inst,
    pub(super) callee: u32,
    pub(super) is_tail: bool,
    pub(super) loop_depth: u32,
}

/// Forms of the functions that functions of a module call, kept from one caller to the next. What is inlined does not depend
/// on them.
#[derive(Debug, Default)]
pub struct KeptForms {
    /// The origin of the forms.
    of: Option<Origin>,
    /// What is known of each function that was looked at.
    known: HashMap<u32, Known, RandomState>,
    /// The instructions of the forms.
    n_insts: usize,
}

/// What forms depend on besides their function: the module, the charges, and whether they have names.
type Origin = (ModuleId, BuildOptions, bool);

#[derive(Clone, Debug)]
enum Known {
    /// Never inlined.
    Refused,
    /// Its form is not made yet.
    Cost(Cost),
    Form(Cost, Arc<Form>),
}

/// The size of a function that may be inlined.
#[derive(Copy, Clone, Debug)]
struct Cost {
    /// The number of bytecode instructions.
    n_insts: u32,
    /// Whether it branches back, which is taken for a loop.
    has_loop: bool,
}

/// The maximum number of instructions of the forms that are kept; if there are more, all are made again.
const KEPT_INSTS_MAX: usize = 1 << 16;

impl KeptForms {
    /// Forgets forms of another origin.
    fn start(&mut self, of: Origin) {
        if self.of != Some(of) {
            *self = KeptForms { of: Some(of), ..KeptForms::default() };
        }
    }

    /// The size of a function, if it may be inlined.
    fn cost(&mut self, module: &VerifiedModule, func: u32) -> Option<Cost> {
        let look = || cost(module, func).map_or(Known::Refused, Known::Cost);
        match self.known.entry(func).or_insert_with(look) {
            Known::Refused => None,
            Known::Cost(cost) | Known::Form(cost, _) => Some(*cost),
        }
    }

    /// The form of a function of this size, which `make` makes if it is not known.
    fn form(&mut self, func: u32, cost: Cost, make: impl FnOnce() -> Form) -> Arc<Form> {
        if let Some(Known::Form(_, form)) = self.known.get(&func) {
            return form.clone();
        }
        let form = Arc::new(make());
        self.n_insts += form.function.n_insts();
        if self.n_insts > KEPT_INSTS_MAX {
            self.known.clear();
            self.n_insts = form.function.n_insts();
        }
        self.known.insert(func, Known::Form(cost, form.clone()));
        form
    }
}

/// Finds the forms of functions that are called.
pub(super) struct Forms<'a> {
    module: &'a VerifiedModule,
    options: &'a BuildOptions,
    scratch: &'a mut BuildScratch,
    kept: &'a mut KeptForms,
    /// The exits of bodies, if they have any.
    exits: Option<BodyExits<'a>>,
    /// The index of the form of each function that has one in the plan.
    found: HashMap<u32, usize, RandomState>,
    /// The same of forms with exits.
    with_exits: HashMap<u32, usize, RandomState>,
    /// The index of the form of each leaf that was asked for, if there is one.
    leaves: HashMap<u32, Option<usize>>,
    /// Bytecode instructions that may still be looked at.
    left: u32,
    /// Whether the root has names, so that the forms have them.
    has_names: bool,
}

impl<'a> Forms<'a> {
    /// Knows the form of the root, which is the first one, if calls enter it.
    pub(super) fn new(
        module: &'a VerifiedModule,
        options: &'a BuildOptions,
        exits: Option<BodyExits<'a>>,
        scratch: &'a mut BuildScratch,
        kept: &'a mut KeptForms,
        root: &Function,
        looked_at_max: u32,
    ) -> Forms<'a> {
        // A call that is inlined needs a form of its own: the exits of the root leave for one frame.
        let called_as = root.called_as().filter(|_| root.exits.is_empty());
        let found = called_as.into_iter().map(|root| (root, 0)).collect();
        let has_names = root.names.is_some();
        kept.start((module.id(), *options, has_names));
        let (left, leaves) = (looked_at_max, HashMap::new());
        let with_exits = HashMap::default();
        Forms { module, options, scratch, kept, exits, found, with_exits, leaves, left, has_names }
    }

    /// The index of the form with exits of a function that may be inlined, as [`Forms::find`] returns it, if there is one. The
    /// frames that wait for it have so many cells.
    pub(super) fn find_with_exits(
        &mut self,
        func: u32,
        waiting_cells: u32,
        size_max: impl Fn(bool) -> u32,
        forms: &mut Vec<Arc<Form>>,
    ) -> Option<usize> {
        let exits = self.exits?;
        let form = match self.with_exits.get(&func) {
            Some(&form) => form,
            None => {
                let exits = exits.of_funcs.get(&func)?;
                let Cost { n_insts, has_loop } = self.kept.cost(self.module, func)?;
                if n_insts > self.left.min(Limits::COST_PER_SIZE * size_max(has_loop)) {
                    return None;
                }
                self.left -= n_insts;
                let (module, scratch) = (self.module, &mut *self.scratch);
                let mut function = build_with_exits(module, func, exits, self.options, scratch);
                if self.has_names {
                    function.take_names(self.module);
                }
                forms.push(Arc::new(Form::new(function, self.module)));
                let form = forms.len() - 1;
                self.with_exits.insert(func, form);
                form
            }
        };
        let fits = waiting_cells + forms[form].exit_cells <= exits.cells_max;
        fits.then_some(form)
    }

    /// Whether the form with exits of a function compares its indirect calls with functions.
    pub(super) fn compares_calls(&self, func: u32) -> bool {
        let exits = self.exits.and_then(|exits| exits.of_funcs.get(&func));
        exits.is_some_and(|exits| !exits.calls.is_empty())
    }

    /// The index of the form of a function that may be inlined, unless its size surely exceeds the limit,
    /// which depends on whether it has a loop.
    pub(super) fn find(
        &mut self,
        func: u32,
        size_max: impl Fn(bool) -> u32,
        forms: &mut Vec<Arc<Form>>,
    ) -> Option<usize> {
        if let Some(&form) = self.found.get(&func) {
            return Some(form);
        }
        let cost @ Cost { n_insts, has_loop } = self.kept.cost(self.module, func)?;
        if n_insts > self.left.min(Limits::COST_PER_SIZE * size_max(has_loop)) {
            return None;
        }
        self.left -= n_insts;
        let (module, has_names) = (self.module, self.has_names);
        let form = self.kept.form(func, cost, || {
            let built = build(module, func, self.options, self.scratch);
            // A copy has no more memory than it needs.
            let mut function = built.clone();
            self.scratch.reuse(built);
            if has_names {
                function.take_names(module);
            }
            Form::new(function, module)
        });
        forms.push(form);
        self.found.insert(func, forms.len() - 1);
        Some(forms.len() - 1)
    }

    /// The index of the form of the leaf of a function whose own form is there.
    pub(super) fn find_leaf(&mut self, func: u32, forms: &mut Vec<Arc<Form>>) -> Option<usize> {
        let &whole = self.found.get(&func)?;
        if let Some(&known) = self.leaves.get(&func) {
            return known;
        }
        let found = leaf(&forms[whole].function).map(|mut function| {
            if self.has_names {
                function.take_names(self.module);
            }
            // The call of the whole function stays one.
            let form = Form::new(function, self.module);
            let (has_loop, calls_itself_last, is_leaf) = (false, false, true);
            forms.push(Arc::new(Form { has_loop, calls_itself_last, is_leaf, ..form }));
            forms.len() - 1
        });
        self.leaves.insert(func, found);
        found
    }
}

/// Whether calls of a function that the module defines may be inlined at all.
pub fn may_be_inlined(module: &VerifiedModule, func: u32) -> bool {
    cost(module, func).is_some()
}

/// Whether direct calls of a function that the module defines are inlined, in a loop or elsewhere, where the caller may grow
/// by as much. Judged by its bytecode, so nearly as a plan does.
pub fn is_small_enough(module: &VerifiedModule, func: u32, is_in_loop: bool) -> bool {
    let n_funcs = module.n_funcs() - module.n_imported_funcs();
    let limits = Limits::of(0, n_funcs);
    cost(module, func).is_some_and(|Cost { has_loop, .. }| {
        let size_max = match (is_in_loop, has_loop) {
            (true, true) => Limits::WITH_LOOP_MAX,
            (true, false) => limits.in_loop_max,
            (false, true) => 0,
            (false, false) => limits.elsewhere_max,
        };
        size(module, func) <= size_max
    })
}

/// About the size in the sense of [`Limits`] that the form of a function will have.
fn size(module: &VerifiedModule, func: u32) -> u32 {
    let blocks = module.body(func).map_or(&[][..], |body| &body.blocks);
    let insts = blocks.iter().flat_map(|block| module.insts(func, block));
    let sizes = insts.map(|(_, BytecodeInst { op, imm })| match op {
        Op::Call | Op::ReturnCall => 1 + module.func_type(imm.low()).params.len() as u32,
        Op::LocalGet | Op::LocalSet | Op::LocalTee | Op::LocalAddr => 0,
        Op::I32Const | Op::I64Const | Op::F32Const | Op::F64Const | Op::V128Const | Op::RefNull => {
            0
        }
        Op::Nop | Op::Drop | Op::Dup | Op::Swap | Op::Over | Op::Rot | Op::Br => 0,
        _ => 1,
    });
    sizes.sum()
}

/// The size of a function that may be inlined.
fn cost(module: &VerifiedModule, func: u32) -> Option<Cost> {
    let ty = module.func_type(func);
    let body = module.body(func)?;
    if ty.params.len() + ty.results.len() > Limits::SIGNATURE_VALUES_MAX
        || body.locals.len() > Limits::CALLEE_COST_MAX as usize
    {
        return None;
    }
    let (mut n_insts, mut has_loop): (u32, bool) = (0, false);
    for (i, block) in body.blocks.iter().enumerate() {
        n_insts = n_insts.saturating_add(block.cost.max(1));
        has_loop |= body.succs(i).iter().any(|&succ| succ as usize <= i);
        if n_insts > Limits::callee_cost_max(has_loop) {
            return None;
        }
    }
    // What keeps or passes many operands is larger than its bytecode.
    let operands = OperandCounts::new(module, func);
    let n_operands = operands.n_kept() + operands.n_wide();
    (n_operands <= u64::from(Limits::CALLEE_COST_MAX)).then_some(Cost { n_insts, has_loop })
}

impl Form {
    pub(super) fn new(function: Function, module: &VerifiedModule) -> Form {
        let mut form = Form {
            function: Function::default(),
            size: 0,
            sites: Vec::new(),
            has_loop: false,
            calls_itself_last: false,
            is_for_tails: false,
            n_exits: 0,
            is_leaf: false,
            n_left: 0,
            exit_cells: 0,
        };
        let mut blocks = Vec::new();
        for block in function.blocks() {
            for &inst in function.insts(block) {
                form.count(&function, inst, module);
            }
            blocks.resize(form.sites.len(), block);
            // Blocks are numbered so that only what closes a loop leads back.
            form.has_loop |=
                function.succ_edges(block).any(|edge| function.edge_dst(edge) <= block);
        }
        if form.has_loop && !form.sites.is_empty() {
            let loops = LoopForest::new(&control_flow(&function));
            for (site, block) in form.sites.iter_mut().zip(blocks) {
                site.loop_depth = loops.depth_of_block(block.0);
            }
        }
        form.has_loop |= form.calls_itself_last;
        Form { function, ..form }
    }

    /// Its size where frames of so many cells wait for it: each exit writes them all.
    pub(super) fn size_below(&self, waiting_cells: Option<u32>) -> u32 {
        self.size.saturating_add(self.n_left.saturating_mul(waiting_cells.unwrap_or(0)))
    }

    fn count(&mut self, f: &Function, inst: Inst, module: &VerifiedModule) {
        let opcode = f.opcode(inst);
        let Opcode::Op(op) = opcode else {
            if opcode == Opcode::Ir(IrOp::Exit) {
                let cells =
                    f.operands(inst).iter().map(|&value| f.value_type(value).cells() as u32);
                self.exit_cells = self.exit_cells.max(cells.sum());
                self.n_left += 1;
            }
            self.size += u32::from(!matches!(opcode, Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet)));
            return;
        };
        let is_free = op == Op::Br || (op.effect() == Effect::Pure && f.operands(inst).is_empty());
        self.size += u32::from(!is_free);
        match op {
            Op::Return => self.n_exits += 1,
            Op::ReturnCallIndirect => self.is_for_tails = true,
            Op::ReturnCall if f.tail_calls_itself(inst) => {
                self.calls_itself_last = true;
                // Where the function is inlined, that is a call and a return.
                self.n_exits += 1;
            }
            Op::Call | Op::ReturnCall => {
                let is_tail = op == Op::ReturnCall;
                // Each operand is moved to where the callee takes it.
                self.size += f.operands(inst).len() as u32;
                self.n_exits += u32::from(is_tail);
                let callee = f.imm(inst).low();
                if callee >= module.n_imported_funcs() {
                    self.sites.push(Site { inst, callee, is_tail, loop_depth: 0 });
                }
            }
            _ => {}
        }
    }
}
