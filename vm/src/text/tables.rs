//! The tables of types and shapes as the text form builds them: in the order of first use, unless
//! `type` and `shape` lines say otherwise.
//!
//! The assembler fills a module's tables with it; the disassembler runs it beside what it prints, and
//! so knows whether the assembler would come to the same tables.

use std::collections::HashMap;

use crate::module::{Shape, ShapeId};
use crate::types::{FuncType, ValType};

/// The tables so far, and where each entry stands first.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) types: Vec<FuncType>,
    type_ids: HashMap<FuncType, u32>,
    pub(super) shapes: Vec<Shape>,
    shape_ids: HashMap<Shape, ShapeId>,
}

impl Tables {
    /// Appends a type, even if an equal one is there.
    pub(super) fn define_type(&mut self, ty: FuncType) {
        let id = self.types.len() as u32;
        self.type_ids.entry(ty.clone()).or_insert(id);
        self.types.push(ty);
    }

    /// The first type equal to `ty`, appended if there is none.
    pub(super) fn use_type(&mut self, ty: &FuncType) -> u32 {
        if let Some(&id) = self.type_ids.get(ty) {
            return id;
        }
        let id = self.types.len() as u32;
        self.define_type(ty.clone());
        id
    }

    /// Appends a shape, even if an equal one is there.
    pub(super) fn define_shape(&mut self, shape: Shape) {
        self.shapes.push(shape);
        let id = ShapeId(self.shapes.len() as u32);
        self.shape_ids.entry(shape).or_insert(id);
    }

    /// The shape of a stack with an operand more, appended if it is not there.
    pub(super) fn push(&mut self, parent: ShapeId, ty: ValType) -> ShapeId {
        let shape = Shape { parent, ty };
        if let Some(&id) = self.shape_ids.get(&shape) {
            return id;
        }
        self.define_shape(shape);
        ShapeId(self.shapes.len() as u32)
    }

    /// The first shape of a stack with an operand more.
    pub(super) fn find_shape(&self, shape: Shape) -> Option<ShapeId> {
        self.shape_ids.get(&shape).copied()
    }
}
