//! Tables of types and shapes of the text form: in the order of first use, unless `type` and `shape` lines
//! specify another order.
//!
//! The assembler builds a module's tables with it. The disassembler runs it along with printing, to find out
//! whether the assembler would build the same tables.

use std::collections::HashMap;

use crate::module::{Shape, ShapeId};
use crate::types::{FuncType, ValType};

/// The tables so far, with the first index of each entry.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) types: Vec<FuncType>,
    type_ids: HashMap<FuncType, u32>,
    pub(super) shapes: Vec<Shape>,
    shape_ids: HashMap<Shape, ShapeId>,
}

impl Tables {
    /// Appends a type, even if an equal one exists.
    pub(super) fn define_type(&mut self, ty: FuncType) {
        let id = self.types.len() as u32;
        self.type_ids.entry(ty.clone()).or_insert(id);
        self.types.push(ty);
    }

    /// Returns the first type equal to `ty`; appends it if there is none.
    pub(super) fn use_type(&mut self, ty: &FuncType) -> u32 {
        if let Some(&id) = self.type_ids.get(ty) {
            return id;
        }
        let id = self.types.len() as u32;
        self.define_type(ty.clone());
        id
    }

    /// Appends a shape, even if an equal one exists.
    pub(super) fn define_shape(&mut self, shape: Shape) {
        self.shapes.push(shape);
        let id = ShapeId(self.shapes.len() as u32);
        self.shape_ids.entry(shape).or_insert(id);
    }

    /// Returns the shape of a stack with one more operand; appends it if there is none.
    pub(super) fn push(&mut self, parent: ShapeId, ty: ValType) -> ShapeId {
        let shape = Shape { parent, ty };
        if let Some(&id) = self.shape_ids.get(&shape) {
            return id;
        }
        self.define_shape(shape);
        ShapeId(self.shapes.len() as u32)
    }

    /// Returns the first shape equal to `shape`, if any.
    pub(super) fn find_shape(&self, shape: Shape) -> Option<ShapeId> {
        self.shape_ids.get(&shape).copied()
    }
}
