//! The calls of a function that are to be inlined.
//!
//! A plan is a tree: its root is the function, and each other node is a call to inline, in the body of its parent.
//! Calls are taken in the order of expected gain: those in the deepest loops first, then those of the smallest
//! functions, until the limits are reached. A body that is chosen brings its own calls. The same function may occur
//! often; its form is made once, and kept for other callers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use slotvm_bytecode::{Op, VerifiedModule};

use super::forms::{Form, Forms, KeptForms, Site};
use super::limits::Limits;
use super::{BodyExits, InlineReport};
use crate::construction::build::{BuildOptions, BuildScratch};
use crate::ir::Function;
use crate::ir::entity::Inst;
use crate::ir::irop::Opcode;

/// The function, or a call to inline.
#[derive(Copy, Clone)]
pub(super) struct Node {
    /// The index of the form.
    form: usize,
    /// The node and the instruction in its form that call this one. The root has none.
    pub(super) caller: Option<(usize, Inst)>,
    /// Whether it replaces a tail call, so that it returns where its caller does.
    pub(super) is_tail: bool,
    /// The number of cells of the frames that wait for it, if they can be left for the interpreter.
    waiting_cells: Option<u32>,
    loop_depth: u32,
    depth: u32,
}

/// The order in which calls are considered: the highest first.
type Priority = (u32, Reverse<u32>, Reverse<usize>);

/// See the module documentation.
pub(super) struct Plan {
    forms: Vec<Arc<Form>>,
    /// The root first, and callers before the nodes that they call.
    pub(super) nodes: Vec<Node>,
    /// The node that replaces a call, by the caller's node.
    inlined: HashMap<(usize, Inst), usize>,
    limits: Limits,
    /// Whether the root has no loop, and at most the size of [`Limits::AROUND_LOOP_MAX`].
    is_small: bool,
    n_added: u32,
}

impl Plan {
    pub(super) fn new(
        root: Function,
        module: &VerifiedModule,
        options: &BuildOptions,
        exits: Option<BodyExits<'_>>,
        scratch: &mut BuildScratch,
        kept: &mut KeptForms,
    ) -> Plan {
        let n_funcs = module.n_funcs() - module.n_imported_funcs();
        let root = Form::new(root, module);
        let limits = Limits::of(root.size, n_funcs);
        let is_small = !root.has_loop && root.size <= Limits::AROUND_LOOP_MAX;
        let waiting_cells = Some(0);
        let (caller, is_tail, loop_depth, depth) = (None, false, 0, 0);
        let node = Node { form: 0, caller, is_tail, waiting_cells, loop_depth, depth };
        let (forms, nodes) = (vec![Arc::new(root)], vec![node]);
        let mut plan = Plan { forms, nodes, inlined: HashMap::new(), limits, is_small, n_added: 0 };
        if plan.forms[0].sites.is_empty() {
            return plan;
        }
        let root = &plan.forms[0].function;
        let mut forms =
            Forms::new(module, options, exits, scratch, kept, root, limits.looked_at_max);
        let mut queue = BinaryHeap::new();
        let mut candidates = Vec::new();
        plan.consider(0, &mut forms, &mut queue, &mut candidates);
        while let Some((_, _, Reverse(candidate))) = queue.pop() {
            let node: Node = candidates[candidate];
            let size = plan.forms[node.form].size_below(node.waiting_cells);
            let (caller, inst) = node.caller.expect("the root is no candidate");
            if plan.n_added + size > limits.added_max {
                let callee = plan.forms[node.form].function.func;
                let leaf = plan.leaf(caller, callee, node.is_tail, &mut forms);
                if let Some(form) = leaf.filter(|&leaf| leaf != node.form) {
                    plan.queue(Node { form, ..node }, &mut queue, &mut candidates);
                }
                continue;
            }
            plan.n_added += size;
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
        if node.depth == Limits::NESTED_CALLS_MAX {
            return;
        }
        for i in 0..self.forms[node.form].sites.len() {
            let site @ Site { inst, callee, is_tail, loop_depth } = self.forms[node.form].sites[i];
            let waiting_cells = self.waiting_cells(number, site);
            let form = self.body(number, site, waiting_cells, forms);
            let form = form.or_else(|| self.leaf(number, callee, is_tail, forms));
            if let Some(form) = form {
                let caller = Some((number, inst));
                let (loop_depth, depth) = (node.loop_depth + loop_depth, node.depth + 1);
                let callee = Node { form, caller, is_tail, waiting_cells, loop_depth, depth };
                self.queue(callee, queue, candidates);
            }
        }
    }

    fn queue(&self, node: Node, queue: &mut BinaryHeap<Priority>, candidates: &mut Vec<Node>) {
        let size = self.forms[node.form].size_below(node.waiting_cells);
        queue.push((node.loop_depth, Reverse(size), Reverse(candidates.len())));
        candidates.push(node);
    }

    /// The number of cells of the frames that wait for a call, if they can be left for the interpreter.
    fn waiting_cells(&self, number: usize, site: Site) -> Option<u32> {
        let outer = self.nodes[number].waiting_cells?;
        if site.is_tail {
            // The frame of what makes the call is gone.
            return Some(outer);
        }
        let f = self.form(number);
        let values = f.waiting_at(site.inst)?.values.iter();
        let cells = values.map(|&(_, value)| f.waiting_type(value).cells() as u32);
        Some(outer + cells.sum::<u32>())
    }

    /// The form of the function that a node calls, if its body may be inlined. It has exits if it can.
    fn body(
        &mut self,
        number: usize,
        site: Site,
        waiting_cells: Option<u32>,
        forms: &mut Forms<'_>,
    ) -> Option<usize> {
        let Site { callee, is_tail, .. } = site;
        let loop_depth = self.nodes[number].loop_depth + site.loop_depth;
        let n_recursions = self.n_recursions(number, callee);
        if n_recursions > Limits::RECURSION_MAX {
            return None;
        }
        let size_max = |has_loop| match (loop_depth, n_recursions) {
            (1.., _) if has_loop => Limits::WITH_LOOP_MAX,
            _ if has_loop && self.is_small => Limits::WITH_LOOP_MAX,
            _ if has_loop => 0,
            (1.., _) => self.limits.in_loop_max,
            (0, 1..) => Limits::RECURSIVE_MAX,
            (0, 0) => self.limits.elsewhere_max,
        };
        let waiting_cells = waiting_cells.filter(|_| n_recursions == 0);
        let with_exits = waiting_cells
            .and_then(|cells| forms.find_with_exits(callee, cells, size_max, &mut self.forms))
            .filter(|&form| {
                let form = &self.forms[form];
                form.size_below(waiting_cells) <= size_max(form.has_loop)
            });
        let form = match with_exits {
            Some(form) => form,
            // Its own code compares what it calls, and a body without exits would not.
            None if forms.compares_calls(callee) => return None,
            None => forms.find(callee, size_max, &mut self.forms)?,
        };
        let Form { size, has_loop, is_for_tails, ref sites, .. } = *self.forms[form];
        let is_refused = size > size_max(has_loop)
            || (has_loop && !sites.is_empty())
            || (is_for_tails && !(is_tail && self.returning(number) == 0));
        (!is_refused).then_some(form)
    }

    /// The form of the leaf of a function that a node calls, if the call is recursive and the leaf may be inlined.
    fn leaf(
        &mut self,
        number: usize,
        callee: u32,
        is_tail: bool,
        forms: &mut Forms<'_>,
    ) -> Option<usize> {
        if is_tail || self.n_recursions(number, callee) == 0 {
            return None;
        }
        let form = forms.find_leaf(callee, &mut self.forms)?;
        (self.forms[form].size <= self.limits.elsewhere_max).then_some(form)
    }

    /// The number of times that a function occurs from a node up to the root.
    fn n_recursions(&self, node: usize, func: u32) -> u32 {
        let caller = |&node: &usize| self.nodes[node].caller.map(|(caller, _)| caller);
        let around = std::iter::successors(Some(node), caller);
        around.filter(|&node| self.form(node).func == func).count() as u32
    }

    /// The node that replaces an instruction, which only calls have.
    pub(super) fn inlined_at(&self, node: usize, inst: Inst) -> Option<usize> {
        let is_call = matches!(self.form(node).opcode(inst), Opcode::Op(Op::Call | Op::ReturnCall));
        if is_call { self.inlined.get(&(node, inst)).copied() } else { None }
    }

    pub(super) fn form_of(&self, node: usize) -> &Form {
        &self.forms[self.nodes[node].form]
    }

    /// The slot form of a node's function.
    pub(super) fn form(&self, node: usize) -> &Function {
        &self.form_of(node).function
    }

    /// The calls that wait for a node, each by its node and instruction, the innermost first.
    pub(super) fn waiting(&self, node: usize) -> impl Iterator<Item = (usize, Inst)> + '_ {
        let call = |node| self.nodes[self.returning(node)].caller;
        std::iter::successors(call(node), move |&(caller, _)| call(caller))
    }

    /// The node whose call a node returns from: itself, or the one whose tail call it replaces.
    pub(super) fn returning(&self, mut node: usize) -> usize {
        while self.nodes[node].is_tail {
            node = self.nodes[node].caller.expect("the root replaces no tail call").0;
        }
        node
    }

    /// Whether a call of a function from a node becomes a branch to the root's first block, if it is a tail call: where
    /// the node returns, the root does. There is no such block in a root that is entered in a loop.
    pub(super) fn enters_root(&self, node: usize, callee: u32) -> bool {
        self.form(0).called_as() == Some(callee) && self.returning(node) == 0
    }

    /// Whether tail calls of the root become a loop: its own, and those of bodies that replace its tail calls.
    pub(super) fn has_loop(&self) -> bool {
        (0..self.nodes.len()).any(|node| {
            let form = self.form_of(node);
            let mut sites = form.sites.iter().filter(|site| site.is_tail);
            sites.any(|site| self.enters_root(node, site.callee))
                || form.calls_itself_last && self.enters_root(node, form.function.func)
        })
    }

    pub(super) fn report(&self) -> InlineReport {
        let inlined = self.nodes.iter().skip(1);
        let mut functions: Vec<u32> =
            inlined.map(|node| self.forms[node.form].function.func).collect();
        functions.sort_unstable();
        functions.dedup();
        InlineReport {
            n_calls: self.nodes.len() - 1,
            functions,
            has_loop: self.has_loop(),
            n_added: self.n_added,
        }
    }

    /// The functions of the plan that are not kept; the first one is that which was given.
    pub(super) fn into_functions(self) -> impl Iterator<Item = Function> {
        self.forms.into_iter().filter_map(Arc::into_inner).map(|form| form.function)
    }
}
