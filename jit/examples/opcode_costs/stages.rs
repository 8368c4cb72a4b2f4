//! Executed instructions and allocated bytes, by stage of a compilation.
//!
//! The library enters a span of `tracing` at each stage. Where one begins or ends, a marker is passed at which
//! callgrind notes what it has counted, and the bytes at the peak are counted anew. Callgrind takes long for
//! that, so stages are told apart only after [`watch`]; else all is of one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use slotvm_ssa::pipeline::TABLE;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The spans of the stages: rows of the pipeline, and the choice of a way to compile.
pub(crate) const STAGES: [&str; 6] = ["slots", "ssa", BUDGET, "clif", "asm", "place"];
const BUDGET: &str = "budget";
/// The number of everything else, which comes after the stages.
const REST: usize = STAGES.len();

/// A quantity of a compilation.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Split {
    /// The quantity in each stage, and between them. For bytes it is the peak beyond what was live when the stage
    /// began.
    pub(crate) stages: [f64; REST + 1],
    pub(crate) whole: f64,
}

impl Split {
    /// Counts more of a stage.
    pub(crate) fn add(&mut self, stage: usize, n: f64) {
        self.stages[stage] += n;
        self.whole += n;
    }

    /// The difference from another compilation, divided by `n` instructions.
    pub(crate) fn per(self, less: &Split, n: f64) -> Split {
        self.zip(less, |a, b| (a - b) / n)
    }

    /// The difference, but no less than nothing.
    pub(crate) fn beyond(self, less: Split) -> Split {
        self.zip(&less, |a, b| (a - b).max(0.0))
    }

    pub(crate) fn max(self, other: Split) -> Split {
        self.zip(&other, f64::max)
    }

    /// The line that [`from_line`](Split::from_line) reads.
    pub(crate) fn to_line(self) -> String {
        let numbers = self.stages.iter().chain([&self.whole]);
        numbers.map(f64::to_string).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn from_line(line: &str) -> Split {
        let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        let numbers = numbers.unwrap_or_else(|error| panic!("{line}: {error}"));
        let (whole, stages) = numbers.split_last().expect("a line has numbers");
        Split { stages: stages.try_into().expect("one of each stage"), whole: *whole }
    }

    fn zip(self, other: &Split, f: impl Fn(f64, f64) -> f64) -> Split {
        let stages = std::array::from_fn(|i| f(self.stages[i], other.stages[i]));
        Split { stages, whole: f(self.whole, other.whole) }
    }
}

/// The system's allocator, which counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most since the last marker.
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged, which keeps the contract of the trait;
// the counters beside it allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `start` came from `alloc` with this layout, so from the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Relaxed);
        add(bytes);
        // SAFETY: the caller keeps the contract of `realloc`, and `start` is a block of the system's.
        unsafe { System.realloc(start, layout, bytes) }
    }
}

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The compilations since [`clear`].
struct Passed {
    /// The stage that begins at each marker, with the number of the compilation.
    markers: Vec<(usize, usize)>,
    n_compilations: usize,
    stage: usize,
    /// Bytes allocated at the last marker, and at the start of the compilation.
    live: usize,
    live_at_start: usize,
    /// Peaks of the last compilation.
    peaks: Split,
}

static PASSED: Mutex<Passed> = Mutex::new(Passed {
    markers: Vec::new(),
    n_compilations: 0,
    stage: REST,
    live: 0,
    live_at_start: 0,
    peaks: Split { stages: [0.0; REST + 1], whole: 0.0 },
});

impl Passed {
    /// Passes a marker, at which a stage begins.
    fn marker(&mut self, stage: usize) {
        slotvm_cost_marker();
        let peak = PEAK.load(Relaxed);
        let beyond =
            |start: usize, peaks: &mut f64| *peaks = peaks.max(peak.saturating_sub(start) as f64);
        beyond(self.live, &mut self.peaks.stages[self.stage]);
        beyond(self.live_at_start, &mut self.peaks.whole);
        // There is room: what is pushed here is not to be counted.
        self.markers.push((self.n_compilations.wrapping_sub(1), stage));
        self.stage = stage;
        self.live = LIVE.load(Relaxed);
        PEAK.store(self.live, Relaxed);
    }
}

fn with<R>(f: impl FnOnce(&mut Passed) -> R) -> R {
    f(&mut PASSED.lock().expect("nothing panics in between"))
}

/// A place for callgrind to note what it has counted.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn slotvm_cost_marker() {
    std::hint::black_box(());
}

/// Forgets all markers and compilations.
pub(crate) fn clear() {
    const MARKERS_MAX: usize = 1 << 20;
    with(|passed| {
        passed.markers.clear();
        passed.markers.reserve(MARKERS_MAX);
        passed.n_compilations = 0;
    });
}

/// A compilation begins.
pub(crate) fn start() {
    with(|passed| {
        passed.n_compilations += 1;
        passed.marker(REST);
        passed.live_at_start = passed.live;
        passed.peaks = Split::default();
    });
}

/// The last compilation has ended.
pub(crate) fn end() {
    with(|passed| passed.marker(REST));
}

/// The compilation and the stage between each marker and the next since [`clear`].
pub(crate) fn passed() -> Vec<(usize, usize)> {
    with(|passed| {
        passed.markers.pop();
        std::mem::take(&mut passed.markers)
    })
}

/// The bytes at the peaks of the last compilation, which has ended.
pub(crate) fn peaks() -> Split {
    with(|passed| passed.peaks)
}

/// Tells stages apart from now on.
pub(crate) fn watch() {
    for stage in STAGES {
        let is_row = TABLE.iter().any(|row| row.name == stage);
        assert!(is_row || stage == BUDGET, "{stage} is not a row of the pipeline");
    }
    tracing::subscriber::set_global_default(Spans).expect("there is no other subscriber");
}

struct Spans;

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && STAGES.contains(&metadata.name())
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let stage = STAGES.iter().position(|&stage| stage == span.metadata().name());
        Id::from_u64(1 + stage.expect("no other is enabled") as u64)
    }

    fn enter(&self, span: &Id) {
        with(|passed| passed.marker(span.into_u64() as usize - 1));
    }

    fn exit(&self, _: &Id) {
        with(|passed| passed.marker(REST));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}
}
