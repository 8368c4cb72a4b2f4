//! The calls of a function that are to be inlined.
//!
//! A plan is a tree: its root is the function, and each other node is a call to inline, in the body of its parent.
//! Calls are taken in the order of what they promise, those in the deepest loops first, then those of the smallest
//! functions, until the limits are reached. A body that is chosen brings its own calls. The same function may occur
//! often; its form is made once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use slotvm_bytecode::{Effect, Op, VerifiedModule};

use super::InlineReport;
use crate::construction::build::{
    BuildOptions, BuildScratch, build, n_kept_operands, n_wide_operands,
};
use crate::graphs::loops::LoopForest;
use crate::ir::Function;
use crate::ir::entity::Inst;
use crate::ir::graph::control_flow;
use crate::ir::irop::{IrOp, Opcode};

/// Limits of inlining in one function. Sizes count the instructions of slot form, except those that promotion
/// and code generation take no code for: accesses of slots, constants, and branches that always go one way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of all bodies together.
    pub added_max: u32,
    /// The maximum number of bytecode instructions of all functions that are looked at together.
    pub looked_at_max: u32,
}

impl Limits {
    /// The maximum number of bytecode instructions, of locals, and of operands of calls and branches of a function that
    /// may be inlined.
    pub const CALLEE_COST_MAX: u32 = 200;
    /// The maximum size of a body that is called in a loop.
    pub const IN_LOOP_MAX: u32 = 60;
    /// The maximum size of a body that is a function around the call again.
    pub const RECURSIVE_MAX: u32 = 30;
    /// The maximum size of a body that is called elsewhere.
    pub const ELSEWHERE_MAX: u32 = 12;
    /// The maximum number of calls around a body that are inlined.
    pub const DEPTH_MAX: u32 = 8;
    /// The maximum number of times that a function is inlined into itself, one body in the other.
    pub const RECURSION_MAX: u32 = 1;
    /// The maximum number of parameters and results of a function that may be inlined.
    pub const OPERANDS_MAX: usize = 32;
    /// The size that all functions of a module together may grow by beyond their own, in equal parts.
    const MODULE_ADDED: u32 = 4_000;
    /// The part of [`Limits::MODULE_ADDED`] that one function gets, at least and at most.
    const ADDED_PARTS: (u32, u32) = (8, 400);
    /// The part of its own size that a function may grow by beyond that.
    const OWN_PART: u32 = 4;

    /// The limits for a function of this size in a module with so many functions.
    fn of(size: u32, n_funcs: u32) -> Limits {
        let (least, most) = Self::ADDED_PARTS;
        let part = (Self::MODULE_ADDED / n_funcs.max(1)).clamp(least, most);
        let added_max = size / Self::OWN_PART + part;
        Limits { added_max, looked_at_max: added_max.saturating_mul(4) + Self::CALLEE_COST_MAX }
    }
}

/// A function that occurs in a plan.
pub(super) struct Form {
    function: Function,
    size: u32,
    sites: Vec<Site>,
    /// Whether it has a loop. A call takes little time beside one, and the values of the caller that live across the
    /// loop would take registers from it.
    has_loop: bool,
    /// Blocks that end in a tail call of the function itself.
    pub(super) n_self_calls: u32,
    /// Whether it can only replace a tail call of the root, since it makes an indirect one.
    is_for_tails: bool,
    /// Blocks that end in a return, or in a tail call of another function.
    pub(super) n_exits: u32,
}

/// A call that may be inlined.
#[derive(Copy, Clone)]
struct Site {
    inst: Inst,
    callee: u32,
    is_tail: bool,
    loop_depth: u32,
}

/// The function, or a call to inline.
#[derive(Copy, Clone)]
pub(super) struct Node {
    /// The index of the form.
    form: usize,
    /// The node and the instruction in its form that call this one. The root has none.
    pub(super) caller: Option<(usize, Inst)>,
    /// Whether it replaces a tail call, so that it returns where its caller does.
    pub(super) is_tail: bool,
    loop_depth: u32,
    depth: u32,
}

/// The order in which calls are considered: the highest first.
type Priority = (u32, Reverse<u32>, Reverse<usize>);

/// See the module documentation.
pub(super) struct Plan {
    forms: Vec<Form>,
    /// The root first, and callers before the nodes that they call.
    pub(super) nodes: Vec<Node>,
    /// The node that replaces a call, by the caller's node.
    pub(super) inlined: HashMap<(usize, Inst), usize>,
    n_added: u32,
}

impl Plan {
    pub(super) fn new(
        root: Function,
        module: &VerifiedModule,
        options: &BuildOptions,
        scratch: &mut BuildScratch,
    ) -> Plan {
        let n_funcs = module.n_funcs() - module.n_imported_funcs();
        let mut known = HashMap::from([(root.func, Some(0))]);
        let root = Form::new(root, module);
        let limits = Limits::of(root.size, n_funcs);
        let node = Node { form: 0, caller: None, is_tail: false, loop_depth: 0, depth: 0 };
        let mut plan =
            Plan { forms: vec![root], nodes: vec![node], inlined: HashMap::new(), n_added: 0 };
        let mut forms =
            Forms { module, options, scratch, known: &mut known, left: limits.looked_at_max };
        let mut queue = BinaryHeap::new();
        let mut candidates = Vec::new();
        plan.consider(0, &mut forms, &mut queue, &mut candidates);
        while let Some((_, _, Reverse(candidate))) = queue.pop() {
            let node: Node = candidates[candidate];
            let size = plan.forms[node.form].size;
            if plan.n_added + size > limits.added_max {
                continue;
            }
            plan.n_added += size;
            let (caller, inst) = node.caller.expect("the root is no candidate");
            let number = plan.nodes.len();
            plan.inlined.insert((caller, inst), number);
            plan.nodes.push(node);
            plan.consider(number, &mut forms, &mut queue, &mut candidates);
        }
        plan
    }

    /// Queues the calls of a node that may be inlined.
    fn consider(
        &mut self,
        number: usize,
        forms: &mut Forms<'_>,
        queue: &mut BinaryHeap<Priority>,
        candidates: &mut Vec<Node>,
    ) {
        let node = self.nodes[number];
        if node.depth == Limits::DEPTH_MAX {
            return;
        }
        for i in 0..self.forms[node.form].sites.len() {
            let Site { inst, callee, is_tail, loop_depth } = self.forms[node.form].sites[i];
            let Some(form) = forms.find(callee, &mut self.forms) else { continue };
            let loop_depth = node.loop_depth + loop_depth;
            let Form { size, is_for_tails, has_loop, .. } = self.forms[form];
            let n_recursions = self.n_recursions(number, form);
            let size_max = match (loop_depth, n_recursions) {
                (1.., _) => Limits::IN_LOOP_MAX,
                (0, 1..) => Limits::RECURSIVE_MAX,
                (0, 0) => Limits::ELSEWHERE_MAX,
            };
            if size > size_max
                || has_loop
                || n_recursions > Limits::RECURSION_MAX
                || (is_for_tails && !(is_tail && self.returning(number) == 0))
            {
                continue;
            }
            let caller = Some((number, inst));
            let depth = node.depth + 1;
            queue.push((loop_depth, Reverse(size), Reverse(candidates.len())));
            candidates.push(Node { form, caller, is_tail, loop_depth, depth });
        }
    }

    /// The number of times that a form occurs from a node up to the root.
    fn n_recursions(&self, node: usize, form: usize) -> u32 {
        let caller = |&node: &usize| self.nodes[node].caller.map(|(caller, _)| caller);
        let around = std::iter::successors(Some(node), caller);
        around.filter(|&node| self.nodes[node].form == form).count() as u32
    }

    pub(super) fn form_of(&self, node: usize) -> &Form {
        &self.forms[self.nodes[node].form]
    }

    /// The slot form of a node's function.
    pub(super) fn form(&self, node: usize) -> &Function {
        &self.form_of(node).function
    }

    /// The node whose call a node returns from: itself, or the one whose tail call it replaces.
    pub(super) fn returning(&self, mut node: usize) -> usize {
        while self.nodes[node].is_tail {
            node = self.nodes[node].caller.expect("the root replaces no tail call").0;
        }
        node
    }

    /// Whether the tail calls of itself in a node's function become a loop.
    pub(super) fn has_loop(&self, node: usize) -> bool {
        !self.nodes[node].is_tail && self.form_of(node).n_self_calls > 0
    }

    pub(super) fn report(&self) -> InlineReport {
        InlineReport {
            n_calls: self.nodes.len() - 1,
            n_loops: (0..self.nodes.len()).filter(|&node| self.has_loop(node)).count(),
            n_added: self.n_added,
        }
    }

    /// The function as it was given.
    pub(super) fn into_root(mut self) -> Function {
        self.forms.swap_remove(0).function
    }
}

/// Makes the forms of functions that are called.
struct Forms<'a> {
    module: &'a VerifiedModule,
    options: &'a BuildOptions,
    scratch: &'a mut BuildScratch,
    /// The form of each function that was looked at, unless it cannot be inlined.
    known: &'a mut HashMap<u32, Option<usize>>,
    /// Bytecode instructions that may still be looked at.
    left: u32,
}

impl Forms<'_> {
    /// The form of a function, unless it is too large.
    fn find(&mut self, func: u32, forms: &mut Vec<Form>) -> Option<usize> {
        if let Some(&known) = self.known.get(&func) {
            return known;
        }
        let form = self.cost(func).filter(|&cost| cost <= self.left).map(|cost| {
            self.left -= cost;
            let function = build(self.module, func, self.options, self.scratch);
            forms.push(Form::new(function, self.module));
            forms.len() - 1
        });
        self.known.insert(func, form);
        form
    }

    /// The number of bytecode instructions of a function that is small enough to be inlined.
    fn cost(&self, func: u32) -> Option<u32> {
        let ty = self.module.func_type(func);
        let body = self.module.body(func)?;
        if ty.params.len() + ty.results.len() > Limits::OPERANDS_MAX
            || body.locals.len() > Limits::CALLEE_COST_MAX as usize
        {
            return None;
        }
        let mut cost: u32 = 0;
        for block in &body.blocks {
            cost = cost.saturating_add(block.cost.max(1));
            if cost > Limits::CALLEE_COST_MAX {
                return None;
            }
        }
        // What keeps or passes many operands is larger than its bytecode.
        let n_operands = n_kept_operands(self.module, func) + n_wide_operands(self.module, func);
        let is_small = n_operands <= u64::from(Limits::CALLEE_COST_MAX);
        is_small.then_some(cost)
    }
}

impl Form {
    fn new(function: Function, module: &VerifiedModule) -> Form {
        let mut form = Form {
            function: Function::default(),
            size: 0,
            sites: Vec::new(),
            has_loop: false,
            n_self_calls: 0,
            is_for_tails: false,
            n_exits: 0,
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
        if !form.sites.is_empty() {
            let loops = LoopForest::new(&control_flow(&function));
            for (site, block) in form.sites.iter_mut().zip(blocks) {
                site.loop_depth = loops.depth_of_block(block.0);
            }
        }
        Form { function, ..form }
    }

    fn count(&mut self, f: &Function, inst: Inst, module: &VerifiedModule) {
        let opcode = f.opcode(inst);
        let Opcode::Op(op) = opcode else {
            self.size += u32::from(!matches!(opcode, Opcode::Ir(IrOp::SlotGet | IrOp::SlotSet)));
            return;
        };
        let is_free = op == Op::Br || (op.effect() == Effect::Pure && f.operands(inst).is_empty());
        self.size += u32::from(!is_free);
        match op {
            Op::Return => self.n_exits += 1,
            Op::ReturnCallIndirect => self.is_for_tails = true,
            Op::ReturnCall if f.imm(inst).low() == f.func => self.n_self_calls += 1,
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
