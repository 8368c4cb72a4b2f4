//! Entering native code, and what is known when it does not return.
//!
//! Every entry has an [`Activation`] on the native stack. The entry trampoline stores there how to
//! continue when the code traps; the signal handler ([`crate::native::crossing::signals`]) finds it through a
//! thread-local variable, records where the trap happened and continues in the trampoline, which
//! returns 0. [`enter`] then reads the record. Code that traps by a call ([`crate::native::crossing::raise`]) comes back
//! in the same way.

use std::cell::Cell;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;
use std::sync::Arc;

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::limits::TRACE_FRAMES_MAX;
use slotvm_runtime::native::{EntryTrampoline, Shared, VmCtx};

use crate::code::pctable::{PcTable, Place, PlaceId, TrapReason};
use crate::code::registry;

/// Frames that are recorded at most: what calls the host is one, too, and so is what a cold call goes by. They have no place
/// in a backtrace.
const PCS_MAX: usize = 2 * TRACE_FRAMES_MAX + 1;

/// An entry into native code.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Activation {
    /// Address to continue at after a trap: the trampoline stores its handler's address and its stack and frame
    /// pointers here before it calls.
    pub(crate) handler_pc: usize,
    pub(crate) handler_sp: usize,
    pub(crate) handler_fp: usize,
    /// The state that the instances of the store share.
    shared: *const Shared,
    /// Reason of a trap raised by a call. For other traps the faulting instruction tells the reason.
    raised: Option<TrapReason>,
    /// The number of native frames that were recorded when the code trapped; 0 if it has not.
    n_pcs: usize,
    /// The number of active functions of the guest beyond these.
    n_frames_omitted: u64,
    /// The innermost native frames: the pc of the trap, or where the call by which the code trapped would have
    /// returned to, then return addresses.
    pcs: [MaybeUninit<usize>; PCS_MAX],
}

/// Byte offsets of the fields that the trampoline writes.
pub(crate) mod offsets {
    use super::{Activation, offset_of};
    pub(crate) const HANDLER_PC: i32 = offset_of!(Activation, handler_pc) as i32;
    pub(crate) const HANDLER_SP: i32 = offset_of!(Activation, handler_sp) as i32;
    pub(crate) const HANDLER_FP: i32 = offset_of!(Activation, handler_fp) as i32;
}

thread_local! {
    /// The innermost activation. It needs no destructor, so the signal handler may read it.
    static CURRENT: Cell<*mut Activation> = const { Cell::new(ptr::null_mut()) };
}

/// The innermost activation of the thread, or null.
pub(crate) fn current() -> *mut Activation {
    CURRENT.get()
}

/// Reason and place of a trap in native code.
#[derive(Debug)]
pub(crate) struct NativeTrap {
    /// The reason.
    pub(crate) reason: TrapReason,
    /// The active functions, innermost first; the first one trapped. Where functions are inlined,
    /// each has a frame of its own. There may be more than [`TRACE_FRAMES_MAX`].
    pub(crate) frames: Vec<NativeFrame>,
    /// Frames that are not listed, because there were more than [`PCS_MAX`].
    pub(crate) n_frames_omitted: u64,
}

/// A place in an active function.
#[derive(Clone, Debug)]
pub(crate) struct NativeFrame {
    /// The module.
    pub(crate) module: Arc<VerifiedModule>,
    /// The place in it.
    pub(crate) place: Place,
}

/// Calls native code: reads the parameters from `cells` and writes the results there.
///
/// # Safety
/// `trampoline` is an entry trampoline for the type of `code`, `ctx` is its context, whose `shared`
/// leads to live structures of one store with a stack limit, and `cells` has room for the parameters
/// and for the results. All code that can be reached stays alive meanwhile. Signal handlers are
/// installed, or the code traps by calls only; what it calls to trap is [`crate::native::crossing::raise::raise`].
#[inline]
pub(crate) unsafe fn enter(
    trampoline: EntryTrampoline,
    ctx: *mut VmCtx,
    code: *const u8,
    cells: *mut u64,
) -> Result<(), NativeTrap> {
    let mut activation = MaybeUninit::uninit();
    let activation = activation.as_mut_ptr();
    // SAFETY: there is room on this frame until the function returns, which ends the activation before. The
    // context is that of a guest function, as this function demands.
    let previous = unsafe { Activation::start(activation, (*ctx).shared) };
    // SAFETY: trampoline, code, context and cells fit each other, as this function demands; `native::execute` gets
    // them from the store. The trampoline stores where to continue before it calls.
    let returned = unsafe { trampoline(ctx, code, cells, activation.cast()) };
    Activation::end(previous);
    if returned != 0 {
        return Ok(());
    }
    // SAFETY: the record lives on this frame, and the code is alive.
    Err(unsafe { (*activation).trap() })
}

impl Activation {
    /// Makes an activation the innermost one of the thread. Returns the one that was it before.
    ///
    /// # Safety
    /// There is room for an activation at `at`, until [`Activation::end`] ends it; nothing else is there.
    #[inline]
    pub(crate) unsafe fn start(at: *mut Activation, shared: *const Shared) -> *mut Activation {
        // SAFETY: there is room at `at`, as this function demands: `enter` has it on its frame, and the entries of
        // C functions have it on theirs. The addresses are left out: they are written when there is a trap.
        unsafe {
            (&raw mut (*at).handler_pc).write(0);
            (&raw mut (*at).handler_sp).write(0);
            (&raw mut (*at).handler_fp).write(0);
            (&raw mut (*at).shared).write(shared);
            (&raw mut (*at).raised).write(None);
            (&raw mut (*at).n_pcs).write(0);
            (&raw mut (*at).n_frames_omitted).write(0);
        }
        CURRENT.replace(at)
    }

    /// Ends the innermost activation, before which `previous` was the innermost.
    #[inline]
    pub(crate) fn end(previous: *mut Activation) {
        CURRENT.set(previous);
    }

    /// Returns the shared state of the instances whose code is running.
    pub(crate) fn shared(&self) -> *const Shared {
        self.shared
    }

    /// Records which functions are active. The signal handler calls it while their frames are intact,
    /// so it allocates nothing.
    ///
    /// # Safety
    /// `pc` and `fp` are the pc and the frame pointer of a native function of this activation, or of its
    /// trampoline, where what it called was never entered.
    pub(crate) unsafe fn record_trap(&mut self, pc: usize, fp: usize) {
        let (mut pc, mut fp) = (pc, fp);
        self.n_pcs = 0;
        if fp == self.handler_fp {
            self.pcs[0].write(pc);
            self.n_pcs = 1;
            return;
        }
        let mut omitted = Omitted::default();
        loop {
            match self.pcs.get_mut(self.n_pcs) {
                Some(slot) => {
                    slot.write(pc);
                    self.n_pcs += 1;
                }
                // SAFETY: the function that the call at `pc` returns to is active.
                None => unsafe { omitted.add(pc) },
            }
            // SAFETY: every native function keeps a frame pointer, which points to the frame pointer
            // of the caller and the return address, on x86-64 and on aarch64.
            [fp, pc] = unsafe { ptr::with_exposed_provenance::<[usize; 2]>(fp).read() };
            if fp == self.handler_fp {
                // The caller is the trampoline.
                break;
            }
        }
        self.n_frames_omitted = omitted.n_frames;
    }

    /// Records why and where the code trapped by a call that returns to `pc`.
    ///
    /// # Safety
    /// As for [`Activation::record_trap`].
    pub(crate) unsafe fn record_raised(&mut self, reason: TrapReason, pc: usize, fp: usize) {
        self.raised = Some(reason);
        // SAFETY: the caller, `raise`, got both from the code that called it.
        unsafe { self.record_trap(pc, fp) }
    }

    /// Describes the trap that was recorded.
    ///
    /// # Safety
    /// A trap was recorded, and the code of the functions that were active is alive.
    #[cold]
    pub(crate) unsafe fn trap(&self) -> NativeTrap {
        // SAFETY: the first `n_pcs` are written.
        let mut pcs = self.pcs[..self.n_pcs].iter().map(|pc| unsafe { pc.assume_init() });
        let trap_pc = pcs.next().expect("the function that trapped is a frame");
        let units = registry::read();
        // SAFETY: the code that was active is alive, as this function demands: `enter` and the entries of C functions,
        // which call it, are called with code that lives as long as the call.
        let table = unsafe { units.lookup(trap_pc) };
        let table = table.expect("code that traps is registered");
        let (reason, place) = match self.raised {
            Some(reason) => {
                let call = table.call_returning_to(trap_pc).expect("it trapped by a call");
                (reason, call.place)
            }
            None => {
                let site = table.trap_at(trap_pc).expect("the signal handler looked the trap up");
                (site.reason, site.place)
            }
        };
        let mut frames = Vec::new();
        push_frames(&mut frames, table, place);
        for pc in pcs {
            // SAFETY: the code that was active is alive, as argued at the lookup of the trap.
            if let Some(table) = unsafe { units.lookup(pc) }
                && let Some(call) = table.call_returning_to(pc)
            {
                push_frames(&mut frames, table, call.place);
            }
        }
        NativeTrap { reason, frames, n_frames_omitted: self.n_frames_omitted }
    }
}

/// Counts the functions of the guest that native frames belong to: where functions are inlined, a frame has several.
#[derive(Default)]
struct Omitted {
    n_frames: u64,
    /// Return addresses with their numbers of functions, since deep recursion has few of them.
    known: [(usize, u64); 16],
}

impl Omitted {
    /// Adds the functions of a frame, by the address that its call returns to. Allocates nothing.
    ///
    /// # Safety
    /// The code at `pc` is alive.
    unsafe fn add(&mut self, pc: usize) {
        let known = &mut self.known[pc / 4 % 16];
        if known.0 != pc {
            // SAFETY: the code is alive, as this function demands.
            let table = unsafe { registry::read().lookup(pc) };
            let call = table.and_then(|table| Some((table, table.call_returning_to(pc)?)));
            let n_frames = call.map_or(0, |(table, call)| match &table.module {
                Some(_) => table.places(call.place).count() as u64,
                None => 0,
            });
            *known = (pc, n_frames);
        }
        self.n_frames += known.1;
    }
}

/// Appends the functions at a place. The trampolines belong to no module and have no frame.
fn push_frames(frames: &mut Vec<NativeFrame>, table: &PcTable, place: PlaceId) {
    let Some(module) = &table.module else { return };
    let frame = |place| NativeFrame { module: module.clone(), place };
    frames.extend(table.places(place).map(frame));
}
