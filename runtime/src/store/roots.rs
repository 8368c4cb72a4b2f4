//! References into the embedder's heap: where a store has them, and how the embedder visits them.
//!
//! The embedder may visit and update them whenever it has the store: before and after calls, in host functions, and when guest
//! code polls. A call and a poll are thus where they may change (*safepoints*), in all frames that wait. They are in
//!
//! * globals and elements of tables,
//! * the frames of interpreted functions ([`crate::interp`]) and of native ones, which the crate that makes native code
//!   visits,
//! * and handles, which are all that a host function gets of them.
//!
//! Handles are given back in the reverse order in which they were made: those that are made during a call of a host
//! function end with it.

use slotvm_bytecode::ValType;

use super::Store;
use crate::error::Error;

/// The handles of a store.
#[derive(Default)]
pub(crate) struct Handles {
    /// The references, each with the generation in which its handle was made.
    entries: Vec<(u64, u64)>,
    /// How often handles were given back. A place that is used again has another generation.
    generation: u64,
}

/// A handle of a reference, for one store.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootHandle {
    index: u32,
    generation: u64,
}

/// The number of handles at some time.
#[derive(Copy, Clone, Debug)]
pub struct RootMark(usize);

impl Store {
    /// Makes a handle of a reference.
    ///
    /// # Panics
    /// Panics if there are more than 2^32, which is more than 64 GiB of them.
    pub fn new_root(&self, bits: u64) -> RootHandle {
        let mut handles = self.handles.borrow_mut();
        let index = u32::try_from(handles.entries.len()).expect("there are fewer handles");
        let generation = handles.generation;
        handles.entries.push((bits, generation));
        RootHandle { index, generation }
    }

    /// The present bits of a reference, if its handle has not ended.
    pub fn root(&self, handle: RootHandle) -> Option<u64> {
        let handles = self.handles.borrow();
        let &(bits, generation) = handles.entries.get(handle.index as usize)?;
        (generation == handle.generation).then_some(bits)
    }

    /// The handles that there are.
    #[inline]
    pub fn root_mark(&mut self) -> RootMark {
        RootMark(self.handles.get_mut().entries.len())
    }

    /// Ends the handles that were made since.
    #[inline]
    pub fn end_roots(&mut self, RootMark(n): RootMark) {
        let handles = self.handles.get_mut();
        if handles.entries.len() > n {
            handles.entries.truncate(n);
            handles.generation += 1;
        }
    }

    /// Calls `visit` with each reference that is not null of handles, globals, tables and frames of the interpreter.
    ///
    /// # Errors
    /// Fails, before anything is visited, in the callback of a poll inside of an operation.
    pub fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut u64)) -> Result<(), Error> {
        if self.calls.n_polls_inside > 0 {
            let what = "references cannot be visited while a program polls inside of an operation";
            return Err(Error::Usage(what.to_owned()));
        }
        let (native, cells) = self.roots_of_frames();
        let visit = &mut |cell: &mut u64| {
            if *cell != 0 {
                visit(cell);
            }
        };
        for (bits, _) in &mut self.handles.get_mut().entries {
            visit(bits);
        }
        for global in &self.objects.globals {
            if global.ty.ty == ValType::Ref {
                // SAFETY: the cell belongs to an instance or to `host_globals`, which live as long as the store; guest code
                // does not run while the store is borrowed.
                visit(unsafe { &mut *global.cell });
            }
        }
        for table in &mut self.objects.tables {
            if table.ty().elem == ValType::Ref {
                table.elems_mut().iter_mut().for_each(&mut *visit);
            }
        }
        for cell in cells {
            visit(&mut self.interp.stack.cells[cell]);
        }
        for address in native {
            // SAFETY: it is that of a root cell in the frame of native code that waits for the host function which has the
            // store, on this thread. Nothing else refers to it, and each is there once.
            visit(unsafe { &mut *address });
        }
        Ok(())
    }
}
