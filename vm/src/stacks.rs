//! Hash-consed operand stacks, as a trie: the root is the empty stack, and the edges are pushed types.
//! Pushing, popping and comparing take constant time.
//!
//! A function has a trie of all stacks that it has had. The module has one of the stacks of all labels,
//! including the stacks below them. A call of two bytes may push a thousand operands, so the function's trie
//! is not kept.

use crate::module::{Func, Label, Shape, ShapeId};
use crate::types::ValType;

/// An operand stack: the types of its operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackId(u32);

impl StackId {
    pub(crate) const EMPTY: StackId = StackId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The number as a shape, as labels hold it until the module is finished.
    pub(crate) fn to_shape(self) -> ShapeId {
        ShapeId(self.0)
    }

    pub(crate) fn from_shape(shape: ShapeId) -> StackId {
        StackId(shape.0)
    }
}

#[derive(Debug)]
pub(crate) struct Stacks {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    below: StackId,
    /// The topmost operand; meaningless for the empty stack.
    top: ValType,
    depth: u32,
    /// The jump pointer of [`Stacks::below`]: a stack further down.
    jump: StackId,
    /// The first in the list of stacks with one more operand; the empty stack ends the list.
    above: StackId,
    /// The next in that list: a stack that differs in the topmost operand only.
    beside: StackId,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let none = StackId::EMPTY;
        let top = ValType::I32;
        let root = Node { below: none, top, depth: 0, jump: none, above: none, beside: none };
        Stacks { nodes: vec![root] }
    }
}

impl Stacks {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Leaves only the empty stack.
    pub(crate) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.nodes[0].above = StackId::EMPTY;
    }

    /// Takes the allocation of unused stacks for new ones.
    pub(crate) fn take_empty(&mut self) -> Stacks {
        let mut stacks = std::mem::take(self);
        stacks.clear();
        stacks
    }

    #[inline]
    pub(crate) fn push(&mut self, stack: StackId, ty: ValType) -> StackId {
        let first = self.nodes[stack.index()].above;
        // The list has at most one stack for each type.
        let mut known = first;
        while known != StackId::EMPTY {
            let node = &self.nodes[known.index()];
            if node.top == ty {
                return known;
            }
            known = node.beside;
        }
        let above = StackId(self.nodes.len() as u32);
        let (depth, jump) = (self.depth(stack) + 1, self.jump_over(stack));
        let none = StackId::EMPTY;
        self.nodes.push(Node { below: stack, top: ty, depth, jump, above: none, beside: first });
        self.nodes[stack.index()].above = above;
        above
    }

    /// Returns the jump pointer of a stack on top of `parent`. If the parent's jump and the next one from
    /// there are equally long, it spans both.
    fn jump_over(&self, parent: StackId) -> StackId {
        let near = self.nodes[parent.index()].jump;
        let far = self.nodes[near.index()].jump;
        let length = |from, to| self.depth(from) - self.depth(to);
        if length(parent, near) == length(near, far) { far } else { parent }
    }

    /// Returns the stack of the lowest `depth` operands of a stack, which has at least that many. Takes
    /// logarithmic time in the number of operands above them: Myers, An applicative random-access stack
    /// (1983).
    pub(crate) fn below(&self, stack: StackId, depth: u32) -> StackId {
        let mut stack = stack;
        while self.depth(stack) > depth {
            let node = &self.nodes[stack.index()];
            stack = if self.depth(node.jump) >= depth { node.jump } else { node.below };
        }
        stack
    }

    /// Whether a branch that keeps the `n` topmost operands of `stack`, and drops others below them, fits a
    /// label with the stack `label`.
    pub(crate) fn keeps(&self, stack: StackId, n: u32, label: StackId) -> bool {
        let n_lowest = match self.depth(label).checked_sub(n) {
            Some(n_lowest) if self.depth(stack) >= self.depth(label) => n_lowest,
            _ => return false,
        };
        let n = n as usize;
        self.types(stack).take(n).eq(self.types(label).take(n))
            && self.below(stack, n_lowest) == self.below(label, n_lowest)
    }

    pub(crate) fn push_all(&mut self, stack: StackId, types: &[ValType]) -> StackId {
        types.iter().fold(stack, |stack, &ty| self.push(stack, ty))
    }

    /// The stack below the topmost operand, and its type.
    #[inline]
    pub(crate) fn top(&self, stack: StackId) -> Option<(StackId, ValType)> {
        let node = &self.nodes[stack.index()];
        (stack != StackId::EMPTY).then_some((node.below, node.top))
    }

    #[inline]
    pub(crate) fn depth(&self, stack: StackId) -> u32 {
        self.nodes[stack.index()].depth
    }

    /// The depth of the stack with the number of a shape.
    pub(crate) fn shape_depth(&self, shape: ShapeId) -> u32 {
        self.depth(StackId::from_shape(shape))
    }

    /// The top of the stack with the number of a shape.
    pub(crate) fn shape_top(&self, shape: ShapeId) -> Option<(ShapeId, ValType)> {
        let (below, ty) = self.top(StackId::from_shape(shape))?;
        Some((below.to_shape(), ty))
    }

    /// The types of the operands, topmost first.
    pub(crate) fn types(&self, stack: StackId) -> impl Iterator<Item = ValType> + '_ {
        let mut stack = stack;
        std::iter::from_fn(move || {
            let (below, ty) = self.top(stack)?;
            stack = below;
            Some(ty)
        })
    }

    /// Renumbers the shapes of labels, which are numbers of stacks. `add` returns the new number, given that
    /// of the stack below and the topmost operand. It is called once for each stack that a label needs.
    pub(crate) fn renumber<'l>(
        &self,
        labels: impl Iterator<Item = &'l mut Label>,
        mut add: impl FnMut(ShapeId, ValType) -> ShapeId,
    ) {
        let mut ids = vec![None; self.len()];
        ids[StackId::EMPTY.index()] = Some(ShapeId::EMPTY);
        let mut path = Vec::new();
        for label in labels {
            let mut stack = StackId::from_shape(label.shape);
            while ids[stack.index()].is_none() {
                let (below, ty) = self.top(stack).expect("the empty stack has a shape");
                path.push((stack, below, ty));
                stack = below;
            }
            for (stack, below, ty) in path.drain(..).rev() {
                let parent = ids[below.index()].expect("shapes are numbered from below");
                ids[stack.index()] = Some(add(parent, ty));
            }
            let stack = StackId::from_shape(label.shape);
            label.shape = ids[stack.index()].expect("the loop above has numbered it");
        }
    }

    /// Adds the stacks of labels, whose shapes are numbers of `others`. They become numbers of these stacks.
    pub(crate) fn take_labels(&mut self, labels: &mut [Label], others: &Stacks) {
        if labels.iter().any(|label| label.shape != ShapeId::EMPTY) {
            others.renumber(labels.iter_mut(), |below, ty| {
                self.push(StackId::from_shape(below), ty).to_shape()
            });
        }
    }

    /// Returns the topmost operands as text for an error message, deepest first.
    pub(crate) fn describe(&self, stack: StackId) -> String {
        const SHOWN: usize = 8;
        let mut names: Vec<&str> = self.types(stack).take(SHOWN).map(ValType::name).collect();
        let hidden = self.depth(stack) as usize - names.len();
        let more = format!("{hidden} more");
        if hidden > 0 {
            names.push(&more);
        }
        names.reverse();
        format!("[{}]", names.join(" "))
    }
}

/// Returns the table of the shapes that labels use, including the shapes below them, in the order of first
/// use. Replaces the shapes of labels, which are numbers of `stacks`, by numbers of the table.
pub(crate) fn number_shapes(stacks: &Stacks, funcs: &mut [Func]) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let labels = funcs.iter_mut().flat_map(|func| &mut func.labels);
    stacks.renumber(labels, |parent, ty| {
        shapes.push(Shape { parent, ty });
        ShapeId(shapes.len() as u32)
    });
    shapes
}
