//! The frames of native code that waits for the host, for a backtrace.

use std::ptr;

use slotvm_runtime::limits::TRACE_FRAMES_MAX;
use slotvm_runtime::native::NativePlace;
use slotvm_runtime::{Backtrace, Frame};

use crate::code::pctable::Place;
use crate::code::registry;

/// Lists the guest functions that are active from a place to the entry into native code, innermost first. Where functions
/// are inlined, each has a frame of its own.
///
/// # Safety
/// Native code is waiting at the place, below an entry of [`activation::enter`](super::activation::enter).
pub(crate) unsafe fn walk(place: NativePlace, backtrace: &mut Backtrace) {
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
        && let Some(module) = &table.module
    {
        let call = table.call_returning_to(pc).expect("the function waits for a call");
        let frame =
            |place: Place| Frame { module: module.clone(), func: place.func, offset: place.offset };
        let places = table.places(call.place);
        if backtrace.frames().len() < TRACE_FRAMES_MAX {
            backtrace.add_frames(places.map(frame), 0);
        } else {
            backtrace.add_frames([], places.count() as u64);
        }
        [fp, pc] = caller(fp);
    }
}
