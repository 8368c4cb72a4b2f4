//! References into the embedder's heap in a frame that waits: which of its cells hold some.
//!
//! While a function waits at a call, its locals of the type hold references, and so do the operands of the type below the
//! arguments of the call. At the start of a block, where it may poll, all operands of the type do. One pass over the function finds the latter for all of its calls. Operands that lie below
//! others are shared between calls: each is a node that leads to the next one below. So the result is linear in the
//! function, however many operands wait at however many calls.

use crate::inst::Imm;
use crate::module::ShapeId;
use crate::op::Op;
use crate::types::ValType;
use crate::typing::{VerifiedStack, apply_verified};
use crate::verified::{Body, VerifiedModule};

/// The operands that hold references while a function waits at its calls.
#[derive(Debug)]
pub struct WaitingRefs {
    /// The calls, by code offset in ascending order.
    calls: Vec<(u32, List)>,
    nodes: Vec<Node>,
}

/// References of the operand stack, the topmost first.
#[derive(Copy, Clone, Debug)]
enum List {
    /// A node, and those below it.
    Node(u32),
    /// Those of a shape.
    Shape(ShapeId),
}

/// An operand that is a reference.
#[derive(Copy, Clone, Debug)]
struct Node {
    cell: u32,
    below: List,
}

impl WaitingRefs {
    /// Finds the references at all calls of a function that the module defines.
    ///
    /// # Panics
    /// Panics if the module does not define the function.
    pub fn of(module: &VerifiedModule, func: u32) -> WaitingRefs {
        let body = module.body(func).expect("the function is defined in the module");
        let mut stack = Stack {
            module,
            func,
            body,
            base: ShapeId::EMPTY,
            top: Vec::new(),
            found: WaitingRefs { calls: Vec::new(), nodes: Vec::new() },
        };
        for block in &body.blocks {
            stack.base = block.shape;
            stack.top.clear();
            for (offset, inst) in module.insts(func, block) {
                stack.inst(offset, inst.op, inst.imm);
            }
        }
        stack.found
    }

    /// The cells of the references that wait at a call, by its code offset; the topmost first.
    ///
    /// # Panics
    /// Panics if the function does not wait there.
    pub fn cells_at<'a>(
        &'a self,
        module: &'a VerifiedModule,
        body: &'a Body,
        call: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let at = self.calls.binary_search_by_key(&call, |&(offset, _)| offset);
        let (_, list) = self.calls[at.expect("the function waits at the call")];
        self.cells(module, body, list)
    }

    /// The cells of the references that are operands at the start of the block with a code offset; the topmost first.
    ///
    /// # Panics
    /// Panics if no block starts there.
    pub fn cells_at_start<'a>(
        &'a self,
        module: &'a VerifiedModule,
        body: &'a Body,
        start: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let at = body.blocks.binary_search_by_key(&start, |block| block.start);
        let shape = body.blocks[at.expect("a block starts there")].shape;
        self.cells(module, body, List::Shape(shape))
    }

    fn cells<'a>(
        &'a self,
        module: &'a VerifiedModule,
        body: &'a Body,
        mut list: List,
    ) -> impl Iterator<Item = u32> + 'a {
        std::iter::from_fn(move || {
            loop {
                match list {
                    List::Node(node) => {
                        let Node { cell, below } = self.nodes[node as usize];
                        list = below;
                        return Some(cell);
                    }
                    List::Shape(shape) => {
                        let (below, ty) = module.shape_top(shape)?;
                        list = List::Shape(below);
                        if ty == ValType::Ref {
                            return Some(body.n_local_cells() + module.shape_cells(below));
                        }
                    }
                }
            }
        })
    }
}

/// The operand stack: a shape, and the operands that were pushed since, each with the references at it and below.
struct Stack<'m> {
    module: &'m VerifiedModule,
    func: u32,
    body: &'m Body,
    base: ShapeId,
    top: Vec<Operand>,
    found: WaitingRefs,
}

#[derive(Copy, Clone)]
struct Operand {
    ty: ValType,
    refs: List,
    /// The cell after it.
    end: u32,
}

impl Stack<'_> {
    fn inst(&mut self, offset: u32, op: Op, imm: Imm) {
        let module = self.module;
        match op {
            Op::Call => self.call(offset, module.func_type(imm.low()), 0),
            Op::CallIndirect => {
                self.call(offset, &module.module().types[imm.low() as usize], 1);
            }
            _ => match op.signature() {
                Some(signature) => {
                    signature.params.iter().for_each(|_| self.pop());
                    signature.results.iter().for_each(|&ty| self.push(ty));
                }
                // What leaves the block needs no operands any more.
                None if op.is_terminator() => {}
                None => apply_verified(self, op, imm),
            },
        }
    }

    fn call(&mut self, offset: u32, ty: &crate::types::FuncType, n_more: usize) {
        (0..ty.params.len() + n_more).for_each(|_| self.pop());
        let waiting = self.refs();
        self.found.calls.push((offset, waiting));
        ty.results.iter().for_each(|&ty| self.push(ty));
    }

    fn refs(&self) -> List {
        self.top.last().map_or(List::Shape(self.base), |operand| operand.refs)
    }

    fn end(&self) -> u32 {
        let base = || self.body.n_local_cells() + self.module.shape_cells(self.base);
        self.top.last().map_or_else(base, |operand| operand.end)
    }
}

impl<'m> VerifiedStack<'m> for Stack<'m> {
    type Operand = ValType;

    fn module(&self) -> &'m VerifiedModule {
        self.module
    }

    fn func(&self) -> u32 {
        self.func
    }

    fn body(&self) -> &'m Body {
        self.body
    }

    fn pop(&mut self) {
        self.pop_any();
    }

    fn pop_any(&mut self) -> ValType {
        match self.top.pop() {
            Some(operand) => operand.ty,
            None => {
                let top = self.module.shape_top(self.base);
                let (below, ty) = top.expect("verified code pops what is there");
                self.base = below;
                ty
            }
        }
    }

    fn type_of(&self, ty: ValType) -> ValType {
        ty
    }

    fn push(&mut self, ty: ValType) {
        let (mut refs, cell) = (self.refs(), self.end());
        if ty == ValType::Ref {
            self.found.nodes.push(Node { cell, below: refs });
            refs = List::Node(self.found.nodes.len() as u32 - 1);
        }
        self.top.push(Operand { ty, refs, end: cell + ty.cells() as u32 });
    }
}
