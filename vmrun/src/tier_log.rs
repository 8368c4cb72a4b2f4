//! `--tier-log`: the functions and loops that native code was made of while a program ran, and the reasons; at the end,
//! how many there were, and how many could not be compiled.

use std::fmt::{Debug, Write as _};
use std::time::Instant;

use slotvm::CompileStats;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, subscriber};

use crate::error::note;
use slotvm_views::names::demangled;

/// Prints a line to standard error for each function or loop of which native code is made, from now on.
pub fn start() {
    // There is no other subscriber: this is the only one, and it is set once.
    _ = subscriber::set_global_default(TierLog { start: Instant::now() });
}

/// Prints how many functions and loops were compiled, how many were not for which reason, and how often native code was left
/// for the interpreter.
pub fn end(stats: &CompileStats, n_exits: u64) {
    note(summary(stats, n_exits));
}

fn summary(stats: &CompileStats, n_exits: u64) -> String {
    let mut line = format!("tier: {} compiled", stats.compiled());
    for (reason, n) in stats.all_failures() {
        _ = write!(line, ", {n} refused: {} ({reason})", reason.name());
    }
    if stats.replaced() > 0 {
        _ = write!(line, ", {} kept and damaged", stats.replaced());
    }
    if n_exits > 0 {
        _ = write!(line, ", {n_exits} exits taken");
    }
    line
}

/// Takes the events of the target `slotvm::tiers`.
struct TierLog {
    start: Instant,
}

impl Subscriber for TierLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target() == "slotvm::tiers"
            && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        note(format_args!("{}", fields.line(self.start.elapsed().as_nanos() as u64)));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    name: String,
    offset: Option<u64>,
    is_made: bool,
    /// The name of the reason for which it was not.
    reason: String,
    count: Option<u64>,
    /// The versions before.
    version: u64,
    payback: u64,
    expected_ns: u64,
    spent_ns: u64,
    waited_ns: u64,
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "offset" => self.offset = Some(value),
            "count" => self.count = Some(value),
            "version" => self.version = value,
            "payback" => self.payback = value,
            "expected_ns" => self.expected_ns = value,
            "spent_ns" => self.spent_ns = value,
            "waited_ns" => self.waited_ns = value,
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "is_made" {
            self.is_made = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "name" => value.clone_into(&mut self.name),
            "reason" => value.clone_into(&mut self.reason),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Fields {
    fn line(&self, at_ns: u64) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let mut line = format!("tier: {:>9.3} ms  `{}`", ms(at_ns), demangled(&self.name));
        let unit = match self.offset {
            Some(offset) => {
                _ = write!(line, ", loop at {offset:#06x}");
                "rounds"
            }
            None => "calls",
        };
        let payback = self.payback;
        _ = match self.count {
            Some(count) if self.version > 0 => {
                write!(line, ", version {} after {count} exits: ", self.version + 1)
            }
            Some(count) => write!(line, ", after {count} {unit}: "),
            None => write!(line, ", which begins with a loop: "),
        };
        let spent = ms(self.spent_ns);
        let (waited, expected) = (ms(self.waited_ns), ms(self.expected_ns));
        let end = match self.is_made {
            true => format!("compiled in {spent:.3} ms"),
            false => format!("refused in {spent:.3} ms for {}", self.reason),
        };
        _ = write!(
            line,
            "{end} ({expected:.3} expected, waited {waited:.3}), pays after {payback} more"
        );
        line
    }
}
