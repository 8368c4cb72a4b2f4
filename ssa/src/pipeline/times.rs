//! The time of each row.

use std::time::{Duration, Instant};

use tracing::Span;

use super::{Row, Stage, TABLE, stage};

/// The maximum number of rows.
pub const ROWS_MAX: usize = 32;

/// Wall-clock time by row; with several threads, the sum of theirs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    of_row: [Duration; ROWS_MAX],
}

impl Times {
    /// The time of the row at a place in the table.
    pub fn of_row(&mut self, place: usize) -> &mut Duration {
        &mut self.of_row[place]
    }

    /// The time of the row with a name, or zero if no row has it.
    pub fn of(&self, name: &str) -> Duration {
        self.rows().find(|(row, _)| row.name == name).map_or(Duration::ZERO, |(_, time)| time)
    }

    /// All rows with their times.
    pub fn rows(&self) -> impl Iterator<Item = (&'static Row, Duration)> + '_ {
        TABLE.iter().zip(self.of_row)
    }

    /// Runs a stage in its span and adds its time.
    pub fn stage<R>(&mut self, which: Stage, run: impl FnOnce() -> R) -> R {
        let (place, row) = stage(which);
        row.timed(self.of_row(place), run)
    }

    /// Does the same for the row with a name.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn named<R>(&mut self, name: &str, run: impl FnOnce() -> R) -> R {
        let found = TABLE.iter().enumerate().find(|(_, row)| row.name == name);
        let (place, row) = found.expect("the table has the row");
        row.timed(self.of_row(place), run)
    }

    /// Does the same for a stage of a whole module, whose span has a size: its `bytes` or `functions`.
    pub fn stage_of<R>(
        &mut self,
        which: Stage,
        field: &'static str,
        size: usize,
        run: impl FnOnce() -> R,
    ) -> R {
        let (place, row) = stage(which);
        let span = (row.span)();
        span.record(field, size);
        timed(span, self.of_row(place), run)
    }
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Times) {
        self.of_row.iter_mut().zip(other.of_row).for_each(|(time, other)| *time += other);
    }
}

impl Row {
    /// Runs the row in its span and adds its time.
    pub fn timed<R>(&self, time: &mut Duration, run: impl FnOnce() -> R) -> R {
        timed((self.span)(), time, run)
    }
}

fn timed<R>(span: Span, time: &mut Duration, run: impl FnOnce() -> R) -> R {
    let _entered = span.entered();
    let start = Instant::now();
    let result = run();
    *time += start.elapsed();
    result
}
