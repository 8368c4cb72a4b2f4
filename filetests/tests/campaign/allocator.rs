//! The allocator of the campaign.

use slotvm_filetests::allocator::{self, Counting};
use slotvm_filetests::campaign::Meter;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The memory that a thread uses.
pub(crate) const METER: Meter = Meter { reset: allocator::reset_peak, peak: allocator::peak };
