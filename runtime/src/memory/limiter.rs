//! Host control over memories and tables that are made or grow: [`ResourceLimiter`], with wasmtime's names and
//! conventions.
//!
//! [`crate::Limits`] are fixed when a store is made and hold besides.

use std::any::Any;

use crate::error::Error;

/// Instances, memories and tables, each, unless a limiter says otherwise.
const DEFAULT_MAX: usize = 10_000;

/// Decides about the memories, tables and instances of a store, see [`crate::Store::set_limiter`].
///
/// It sees what guest code and the host ask for, when something is made and when it grows, unless it
/// grows by nothing. What it does not see is the memory that the store takes to keep track of all that.
pub trait ResourceLimiter: Send {
    /// A memory is about to have `desired` bytes, and has `current` bytes, 0 if it is about to be made.
    /// Its type allows `maximum` bytes, if it has a maximum; `desired` may be more.
    ///
    /// `Ok(true)` lets it have them, if nothing else speaks against it. `Ok(false)` refuses:
    /// `memory.grow` returns -1, the host gets an error.
    ///
    /// # Errors
    /// An error stops guest code in the place of `memory.grow`, and comes out of the call that the host
    /// has made, as if a host function had failed with it.
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error>;

    /// A memory that [`ResourceLimiter::memory_growing`] has let grow could not, and has its old size.
    /// The default takes no notice.
    ///
    /// # Errors
    /// An error has the same effect as one of `memory_growing`.
    fn memory_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        let _ = error;
        Ok(())
    }

    /// A table is about to have `desired` elements, and has `current`, 0 if it is about to be made. Its
    /// type allows `maximum` elements, if it has a maximum. An element takes 8 bytes.
    ///
    /// The result means what that of [`ResourceLimiter::memory_growing`] means.
    ///
    /// # Errors
    /// An error has the same effect as one of `memory_growing`.
    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error>;

    /// A table that [`ResourceLimiter::table_growing`] has let grow could not, and has its old size. The
    /// default takes no notice.
    ///
    /// # Errors
    /// An error has the same effect as one of `memory_growing`.
    fn table_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        let _ = error;
        Ok(())
    }

    /// The maximum number of instances in the store; 10,000 by default.
    fn instances(&self) -> usize {
        DEFAULT_MAX
    }

    /// The maximum number of tables in the store; 10,000 by default.
    fn tables(&self) -> usize {
        DEFAULT_MAX
    }

    /// The maximum number of memories in the store; 10,000 by default.
    fn memories(&self) -> usize {
        DEFAULT_MAX
    }
}

/// Finds the limiter in the embedder's data.
pub(crate) type FindLimiter =
    Box<dyn (FnMut(&mut (dyn Any + Send)) -> &mut dyn ResourceLimiter) + Send + Sync>;

/// A [`ResourceLimiter`] of fixed numbers. [`StoreLimitsBuilder`] makes it.
#[derive(Clone, Debug)]
pub struct StoreLimits {
    memory_bytes_max: Option<usize>,
    table_elems_max: Option<usize>,
    instances_max: usize,
    tables_max: usize,
    memories_max: usize,
    trap_on_grow_failure: bool,
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits {
            memory_bytes_max: None,
            table_elems_max: None,
            instances_max: DEFAULT_MAX,
            tables_max: DEFAULT_MAX,
            memories_max: DEFAULT_MAX,
            trap_on_grow_failure: false,
        }
    }
}

/// Makes [`StoreLimits`].
#[derive(Clone, Debug, Default)]
pub struct StoreLimitsBuilder(StoreLimits);

impl StoreLimitsBuilder {
    /// Starts with limits that allow what a [`ResourceLimiter`] allows by default.
    pub fn new() -> StoreLimitsBuilder {
        StoreLimitsBuilder::default()
    }

    /// Bytes of each memory; any number by default.
    pub fn memory_size(mut self, bytes_max: usize) -> StoreLimitsBuilder {
        self.0.memory_bytes_max = Some(bytes_max);
        self
    }

    /// Elements of each table; any number by default.
    pub fn table_elements(mut self, elems_max: usize) -> StoreLimitsBuilder {
        self.0.table_elems_max = Some(elems_max);
        self
    }

    /// The maximum number of instances; 10,000 by default.
    pub fn instances(mut self, max: usize) -> StoreLimitsBuilder {
        self.0.instances_max = max;
        self
    }

    /// The maximum number of tables; 10,000 by default.
    pub fn tables(mut self, max: usize) -> StoreLimitsBuilder {
        self.0.tables_max = max;
        self
    }

    /// The maximum number of memories; 10,000 by default.
    pub fn memories(mut self, max: usize) -> StoreLimitsBuilder {
        self.0.memories_max = max;
        self
    }

    /// Whether `memory.grow` and `table.grow` stop the program where they would give -1. Off by default,
    /// as it is not what the instructions are specified to do; it finds programs that do not look at the
    /// result.
    pub fn trap_on_grow_failure(mut self, trap: bool) -> StoreLimitsBuilder {
        self.0.trap_on_grow_failure = trap;
        self
    }

    /// The limits.
    pub fn build(self) -> StoreLimits {
        self.0
    }
}

/// Reason for which [`StoreLimits`] refuse a growth.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("growing {what} to {desired} {unit} exceeds a limit")]
    Refused { what: &'static str, desired: usize, unit: &'static str },
    #[error("cannot grow {what}")]
    Failed { what: &'static str, source: Error },
}

impl StoreLimits {
    fn decide(
        &self,
        (what, unit): (&'static str, &'static str),
        desired: usize,
        maxima: [Option<usize>; 2],
    ) -> Result<bool, Error> {
        let fits = maxima.into_iter().flatten().all(|max| desired <= max);
        if !fits && self.trap_on_grow_failure {
            return Err(Error::host(Stopped::Refused { what, desired, unit }));
        }
        Ok(fits)
    }

    fn failed(&self, what: &'static str, source: Error) -> Result<(), Error> {
        if self.trap_on_grow_failure {
            return Err(Error::host(Stopped::Failed { what, source }));
        }
        Ok(())
    }
}

impl ResourceLimiter for StoreLimits {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error> {
        self.decide(("a memory", "bytes"), desired, [self.memory_bytes_max, maximum])
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        self.failed("a memory", error)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, Error> {
        self.decide(("a table", "elements"), desired, [self.table_elems_max, maximum])
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        self.failed("a table", error)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.tables_max
    }

    fn memories(&self) -> usize {
        self.memories_max
    }
}
