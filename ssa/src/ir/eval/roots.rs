//! References into the embedder's heap, as a host function visits them.
//!
//! A frame of a form with root cells has the references that its last safepoint lists, and no others. In a form without
//! them, which has no calls at which any wait or is one from before the [pass](mod@crate::passes::roots), all values and
//! slots of the type are references.

use slotvm_bytecode::{ValType, VerifiedModule};

use super::landing::UNKNOWN_CELL;
use super::run::Frame;
use super::state::Table;
use crate::ir::{ALL_ROOT_CELLS, Function};

/// All references that the program has while it waits for a host function.
#[derive(Debug)]
pub struct Roots<'a> {
    pub(super) module: &'a VerifiedModule,
    pub(super) functions: &'a [Function],
    pub(super) landings: &'a [Function],
    pub(super) frames: &'a [Frame],
    pub(super) bits: &'a mut [u128],
    pub(super) globals: &'a mut [u128],
    pub(super) tables: &'a mut [Table],
}

impl Roots<'_> {
    /// Calls `visit` with each reference that is not null.
    pub fn visit(&mut self, mut visit: impl FnMut(&mut u64)) {
        let mut visit = |bits: &mut u128| {
            if *bits != 0 && *bits != UNKNOWN_CELL {
                let mut reference = *bits as u64;
                visit(&mut reference);
                *bits = reference.into();
            }
        };
        for (ty, bits) in self.module.globals().iter().zip(&mut *self.globals) {
            if ty.ty == ValType::Ref {
                visit(bits);
            }
        }
        for (ty, table) in self.module.tables().iter().zip(&mut *self.tables) {
            for elem in table.elems.iter_mut().filter(|_| ty.elem == ValType::Ref) {
                let mut bits = u128::from(*elem);
                visit(&mut bits);
                *elem = bits as u64;
            }
        }
        for frame in self.frames {
            let f = match frame.function.checked_sub(self.functions.len()) {
                Some(landing) => &self.landings[landing],
                None => &self.functions[frame.function],
            };
            let (slots, cells) = (f.n_values(), f.n_values() + f.slots.len());
            let bits = &mut self.bits[frame.base..];
            if f.n_root_cells > 0 {
                for cell in 0..f.n_root_cells {
                    let is_listed = |mask| mask == ALL_ROOT_CELLS || mask >> cell & 1 == 1;
                    if frame.roots.is_some_and(is_listed) {
                        visit(&mut bits[cells + cell as usize]);
                    }
                }
                continue;
            }
            for (i, &ty) in f.value_types.iter().enumerate() {
                if ty == ValType::Ref {
                    visit(&mut bits[i]);
                }
            }
            for (i, slot) in f.slots.iter().enumerate() {
                if slot.ty == ValType::Ref {
                    visit(&mut bits[slots + i]);
                }
            }
        }
    }
}
