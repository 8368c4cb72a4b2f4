//! Where the guest code is that has called the host: a chain that leads from the host function that is running through all
//! activations of the store, for backtraces.
//!
//! Guest code notes its place when it calls something that may call guest code again or ask for a backtrace. Whoever enters
//! guest code keeps the note of its own caller on its frame, and restores it afterwards.

use std::ops::Range;

use super::{NativeHooks, Store};
use crate::backtrace::{Backtrace, Frame};
use crate::entities::InstanceId;
use crate::limits::TRACE_FRAMES_MAX;
use crate::steps::instr::Instr;
use crate::steps::target::CallTarget;

/// The place of the guest code that has called the host.
#[derive(Copy, Clone, Debug)]
pub(crate) enum CalledFrom {
    /// Nowhere: no guest code is active.
    Host,
    /// Native code, in the innermost [`NativeEntry`].
    Native(NativePlace),
    /// The interpreter.
    Interpreter(*const InterpretedPlace),
}

/// A place in native code.
#[derive(Copy, Clone, Debug)]
pub enum NativePlace {
    /// The function that has called the code that keeps this frame pointer.
    CallerOf(usize),
    /// A call that returns to `pc`, in a function with the frame pointer `fp`.
    Call {
        /// The return address.
        pc: usize,
        /// The frame pointer.
        fp: usize,
    },
}

/// The kind of place at which the active function of an activation of the interpreter waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// At a call, or at an instruction that takes long.
    Calling,
    /// At the start of a block, where it polls.
    Polling,
    /// It does not belong to backtraces: it is entered, or others say where it is.
    Elsewhere,
}

/// An activation of the interpreter that has called something.
#[derive(Debug)]
pub(crate) struct InterpretedPlace {
    /// The place of the guest code from which it was entered.
    pub(crate) entered_from: CalledFrom,
    /// The active function, where it is, and its instance, if it belongs to the backtrace.
    pub(crate) active: Option<ActivePlace>,
    /// Whether it polls there, at the start of a block.
    pub(crate) polls: bool,
    /// The frames of the activation that wait, in the list of the store.
    pub(crate) waiting: Range<usize>,
    /// The cell where the frame of the active function starts, or that of native code that runs in its place.
    pub(crate) fp: usize,
}

/// A place of guest code that waits.
enum GuestPlace<'a> {
    Native(&'a NativeHooks, NativePlace),
    Interpreter(&'a InterpretedPlace),
}

/// A function, an instruction of it, and the number of its instance.
pub(crate) type ActivePlace = (*const CallTarget, *const Instr, u32);

/// An entry into native code, on the frame of whoever has made it.
#[derive(Debug)]
pub(crate) struct NativeEntry {
    entered_from: CalledFrom,
    /// The one before.
    outer: *const NativeEntry,
}

/// Lists the guest frames of native code from a place to the entry, innermost first.
///
/// # Safety
/// Native code is waiting at the place, below an entry of the executor.
pub type WalkNative = unsafe fn(NativePlace, &mut Backtrace);

/// Appends the addresses of the references into the embedder's heap that the frames of native code have from a place to the
/// entry.
///
/// # Safety
/// As for [`WalkNative`].
pub type NativeRoots = unsafe fn(NativePlace, &mut Vec<*mut u64>);

impl NativeEntry {
    /// An entry that begins now. Its caller makes it the innermost one, and calls [`NativeEntry::end`].
    #[inline]
    pub(crate) fn new(store: &Store) -> NativeEntry {
        NativeEntry { entered_from: store.calls.from, outer: store.calls.native_entry }
    }

    /// Ends the entry, which is the innermost one.
    #[inline]
    pub(crate) fn end(self, store: &mut Store) {
        store.calls.from = self.entered_from;
        store.calls.native_entry = self.outer;
    }
}

impl Store {
    /// Calls a function with the place of each activation of guest code, the innermost first.
    fn each_place(&self, mut on: impl FnMut(GuestPlace<'_>)) {
        let (mut from, mut entry) = (self.calls.from, self.calls.native_entry);
        loop {
            match from {
                CalledFrom::Host => return,
                CalledFrom::Native(place) => {
                    let hooks = self.native.as_ref().expect("native code has called");
                    on(GuestPlace::Native(hooks, place));
                    // SAFETY: whoever has the store is code of the host. If guest code has called it, that has noted the
                    // place first, and waits there. If guest code has been entered and left since, whoever entered it has
                    // restored the note: `run_native`, `execute_from` or, after a panic, the end of the host's call. The
                    // entry lies on the frame of `run_native`, which is active as long as the code is.
                    (from, entry) = unsafe { ((*entry).entered_from, (*entry).outer) };
                }
                CalledFrom::Interpreter(place) => {
                    // SAFETY: it lies on the frame of the interpreter, which has noted it before it called the host and waits,
                    // as argued for native code.
                    let place = unsafe { &*place };
                    on(GuestPlace::Interpreter(place));
                    from = place.entered_from;
                }
            }
        }
    }

    /// The references into the embedder's heap that frames of guest code have: those of native code by their addresses, those
    /// of the interpreter by the numbers of their cells.
    pub(super) fn roots_of_frames(&self) -> (Vec<*mut u64>, Vec<usize>) {
        let (mut native, mut cells) = (Vec::new(), Vec::new());
        self.each_place(|place| match place {
            // SAFETY: native code waits at the place, as `each_place` argues.
            GuestPlace::Native(hooks, place) => unsafe { (hooks.roots)(place, &mut native) },
            GuestPlace::Interpreter(place) => self.interpreted_roots(place, &mut cells),
        });
        (native, cells)
    }

    /// Appends the cells of references in the frames of an activation of the interpreter.
    fn interpreted_roots(&self, place: &InterpretedPlace, cells: &mut Vec<usize>) {
        let mut fp = place.fp;
        if let Some((func, pc, instance)) = place.active
            && !pc.is_null()
        {
            self.roots_of_frame((func, pc, instance), place.polls, fp, cells);
        }
        for frame in self.interp.stack.frames[place.waiting.clone()].iter().rev() {
            fp -= frame.args as usize;
            let place = (frame.func, frame.ret.wrapping_sub(1), frame.instance);
            self.roots_of_frame(place, false, fp, cells);
        }
    }

    /// Appends those of the frame of a function that waits at a call, or polls.
    fn roots_of_frame(
        &self,
        (func, pc, instance): ActivePlace,
        polls: bool,
        fp: usize,
        cells: &mut Vec<usize>,
    ) {
        // SAFETY: it is a target of an instance, which the store keeps.
        let target = unsafe { &*func };
        let code = self.instance(InstanceId::from_number(instance)).code();
        if let Some(refs) = code.frame_refs(target) {
            let (module, offset) = (code.module(), code.offset(target, pc));
            let index = |cell: u32| fp + cell as usize;
            cells.extend(refs.locals.iter().copied().map(index));
            if polls {
                cells.extend(refs.polling_at(module, target.func, offset).map(index));
            } else {
                cells.extend(refs.waiting_at(module, target.func, offset).map(index));
            }
        }
    }

    /// The guest frames that are active while a host function runs, innermost first; none if the host has called it and no
    /// guest code is active.
    pub fn backtrace(&self) -> Backtrace {
        let mut backtrace = Backtrace::default();
        self.each_place(|place| match place {
            // SAFETY: native code waits at the place, as `each_place` argues.
            GuestPlace::Native(hooks, place) => unsafe { (hooks.walk)(place, &mut backtrace) },
            GuestPlace::Interpreter(place) => {
                let (frames, n_omitted) =
                    self.interpreted_frames(place.active, place.waiting.clone());
                backtrace.add_frames(frames, n_omitted);
            }
        });
        backtrace
    }

    /// The frames of an activation of the interpreter, as far as a backtrace lists them, and the number of the others. The
    /// frames that wait are in the list of the store.
    pub(crate) fn interpreted_frames(
        &self,
        active: Option<ActivePlace>,
        waiting: Range<usize>,
    ) -> (impl Iterator<Item = Frame>, u64) {
        let n_frames = waiting.len() + usize::from(active.is_some());
        let waiting = self.interp.stack.frames[waiting].iter().rev();
        // The instruction before the one to go on with is the call.
        let waiting = waiting.map(|frame| (frame.func, frame.ret.wrapping_sub(1), frame.instance));
        let frames = active.into_iter().chain(waiting).take(TRACE_FRAMES_MAX);
        let frames = frames.map(|(func, pc, instance)| {
            // SAFETY: it is a target of an instance, which the store keeps.
            let target = unsafe { &*func };
            let instance = InstanceId::from_number(instance);
            let code = self.instance(instance).code();
            // Where a function was to be entered, it has not begun.
            let offset = if pc.is_null() { 0 } else { code.offset(target, pc) };
            self.frame(instance, target.func, offset)
        });
        (frames, n_frames.saturating_sub(TRACE_FRAMES_MAX) as u64)
    }
}
