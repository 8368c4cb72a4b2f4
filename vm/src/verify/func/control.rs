//! Branches and returns: the operands that they keep, and the shapes of labels.

use super::{Check, Checker, Operand};
use crate::limits;
use crate::module::ShapeId;
use crate::types::ValType;
use crate::verified::EscapeReason;
use crate::verify::error::{Rule, VerifyError};

impl Checker<'_, '_> {
    /// Checks that the operand stack is exactly `shape` and folds it into `base`.
    pub(super) fn flow_to(&mut self, label: u32, shape: ShapeId) -> Check {
        let mut below = shape;
        for i in (0..self.scratch.top.len()).rev() {
            let entry = below.0.checked_sub(1).map(|s| self.module.shapes[s as usize]);
            match entry {
                Some(entry) if entry.ty == self.scratch.top[i].ty => below = entry.parent,
                _ => return Err(self.shape_mismatch(label, shape)),
            }
        }
        if below != self.base {
            return Err(self.shape_mismatch(label, shape));
        }
        for i in 0..self.scratch.top.len() {
            self.escape(self.scratch.top[i], EscapeReason::LeavesBlock);
        }
        self.scratch.top.clear();
        self.base = shape;
        Ok(())
    }

    fn shape_mismatch(&self, label: u32, shape: ShapeId) -> VerifyError {
        let label = self.label_name(label);
        let found = self.describe(self.base, &self.scratch.top);
        let expected = self.describe(shape, &[]);
        let detail = format!("expected the stack ({expected}) of label {label}, found ({found})");
        self.error(Rule::ShapeMismatch, detail)
    }

    /// Returns the name of a label, or else its number.
    fn label_name(&self, label: u32) -> String {
        let name = self.module.names.label(self.func, label);
        name.map_or_else(|| label.to_string(), |name| format!("`{name}`"))
    }

    /// Returns the operand stack as text; the lowest operands of a deep one are elided.
    fn describe(&self, mut shape: ShapeId, top: &[Operand]) -> String {
        /// Operands of a stack that a message shows.
        const SHOWN_TYPES_MAX: usize = 16;
        let mut types: Vec<&str> =
            top.iter().rev().take(SHOWN_TYPES_MAX).map(|o| o.ty.name()).collect();
        while types.len() < SHOWN_TYPES_MAX && shape != ShapeId::EMPTY {
            let entry = self.module.shapes[shape.0 as usize - 1];
            types.push(entry.ty.name());
            shape = entry.parent;
        }
        if top.len() > SHOWN_TYPES_MAX || shape != ShapeId::EMPTY {
            types.push("…");
        }
        types.reverse();
        types.join(" ")
    }

    /// Checks a branch that keeps the topmost `n` operands.
    pub(super) fn branch_keeping(&mut self, label: u32, n: u32) -> Check {
        let max = limits::KEPT_OPERANDS_MAX;
        if n as usize > max {
            let detail = format!("{n} operands exceed KEPT_OPERANDS_MAX = {max}");
            return Err(self.error(Rule::Limit, detail));
        }
        let shape = self.def.labels[label as usize].shape;
        if !self.keeps(n as usize, shape) {
            let found = self.describe(self.base, &self.scratch.top);
            let expected = self.describe(shape, &[]);
            let label = self.label_name(label);
            let detail = format!(
                "the topmost {n} and the lowest operands of ({found}) do not match ({expected}), the \
                 stack of label {label}"
            );
            return Err(self.error(Rule::KeptOperands, detail));
        }
        self.scratch.blocks.branch(label);
        Ok(())
    }

    /// Whether the `n` topmost operands match the top of a shape, and the lowest operands its rest. Takes
    /// time linear in `n` and in the operands on top of `base`, which no later block checks again; plus the
    /// logarithmic time of [`Shapes::below`](super::Shapes::below).
    fn keeps(&self, n: usize, shape: ShapeId) -> bool {
        let top = &self.scratch.top;
        let n_lowest = match (self.shapes.depths[shape.0 as usize] as usize).checked_sub(n) {
            Some(n_lowest) if self.depth() >= n_lowest + n => n_lowest,
            _ => return false,
        };
        let (mut expected, mut found) = (shape, self.base);
        let pop = |shape: &mut ShapeId| {
            let entry = self.module.shapes[shape.0 as usize - 1];
            *shape = entry.parent;
            entry.ty
        };
        let n_of_top = n.min(top.len());
        let mut kept = top[top.len() - n_of_top..].iter().rev();
        let is_kept = (0..n).all(|_| {
            let ty = kept.next().map_or_else(|| pop(&mut found), |operand| operand.ty);
            ty == pop(&mut expected)
        });
        // The rest of `expected` may reach above `base`, into `top`.
        let n_in_top = n_lowest.saturating_sub(self.shapes.depths[self.base.0 as usize] as usize);
        let mut lowest = top[..n_in_top].iter().rev();
        is_kept
            && lowest.all(|operand| operand.ty == pop(&mut expected))
            && self.shapes.below(self.module, self.base, n_lowest as u32) == expected
    }

    /// Leaves the function with the topmost operands, which are of these types.
    pub(super) fn leave_with(&mut self, types: &[ValType], what: &str) -> Check {
        if self.depth() < types.len() {
            let detail =
                format!("expected {} {what}, found {} operands", types.len(), self.depth());
            return Err(self.error(Rule::ReturnStack, detail));
        }
        self.pop_all(types)
    }
}
