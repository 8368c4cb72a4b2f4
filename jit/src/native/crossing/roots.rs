//! References into the embedder's heap in the frames of native code that waits for the host.

use std::ptr;

use slotvm_runtime::native::NativePlace;

use super::backtrace::each_frame;

/// Appends the addresses of the root cells that the active functions list at their calls, from a place to the entry into
/// native code.
///
/// # Safety
/// As for [`walk`](super::backtrace::walk).
pub(crate) unsafe fn roots(place: NativePlace, roots: &mut Vec<*mut u64>) {
    // SAFETY: as this function demands.
    unsafe {
        each_frame(place, |table, pc, fp| {
            if let Some(site) = table.roots_returning_to(pc) {
                roots.extend(site.addresses(fp).map(ptr::with_exposed_provenance_mut::<u64>));
            }
        });
    }
}
