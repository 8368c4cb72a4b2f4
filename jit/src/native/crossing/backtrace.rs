//! The frames of native code that waits for the host, for a backtrace.

use std::ptr;

use slotvm_runtime::limits::TRACE_FRAMES_MAX;
use slotvm_runtime::native::NativePlace;
use slotvm_runtime::{Backtrace, Frame};

use crate::code::pctable::{PcTable, Place};
use crate::code::registry;

/// Lists the guest functions that are active from a place to the entry into native code, innermost first. Where functions
/// are inlined, each has a frame of its own.
///
/// # Safety
/// Native code is waiting at the place, below an entry of [`activation::enter`](super::activation::enter).
pub(crate) unsafe fn walk(place: NativePlace, backtrace: &mut Backtrace) {
    let on = |table: &PcTable, pc, _| {
        let Some(module) = &table.module else { return };
        let call = table.call_returning_to(pc).expect("the function waits for a call");
        let frame =
            |place: Place| Frame { module: module.clone(), func: place.func, offset: place.offset };
        let places = table.places(call.place);
        if backtrace.frames().len() < TRACE_FRAMES_MAX {
            backtrace.add_frames(places.map(frame), 0);
        } else {
            backtrace.add_frames([], places.count() as u64);
        }
    };
    // SAFETY: as this function demands.
    unsafe { each_frame(place, on) }
}

/// Calls a function with the table, the return address and the frame pointer of each native function that is active from a
/// place to the entry, innermost first.
///
/// # Safety
/// As for [`walk`].
pub(super) unsafe fn each_frame(place: NativePlace, mut on: impl FnMut(&PcTable, usize, usize)) {
    // SAFETY: every native function keeps a frame pointer, which points to the frame pointer of the caller and the return
    // address, on x86-64 and on aarch64.
    let caller = |fp| unsafe { ptr::with_exposed_provenance::<[usize; 2]>(fp).read() };
    let (mut pc, mut fp) = match place {
        NativePlace::CallerOf(fp) => {
            let [fp, pc] = caller(fp);
            (pc, fp)
        }
        NativePlace::Call { pc, fp } => (pc, fp),
    };
    let units = registry::read();
    // The entry trampoline belongs to no module, and what called it is not ours.
    // SAFETY: the function that the call at `pc` returns to is active, and whoever has entered it keeps its code.
    while let Some(table) = unsafe { units.lookup(pc) }
        && table.module.is_some()
    {
        on(table, pc, fp);
        [fp, pc] = caller(fp);
    }
}
