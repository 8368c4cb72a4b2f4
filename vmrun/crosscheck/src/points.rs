//! The points at which two engines are compared, and the observable state there.
//!
//! A point is a call of a host function, or the end of a call from the host. Of most points only hashes are kept; the
//! point that differs is run to again, and then described in full by a [`Detail`].

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use slotvm::{Error, Val};
use slotvm_cases::values;
use slotvm_runtime::{self as rt, FuncHandle, InstanceId};
use slotvm_runtime::{FuncTarget, TableHandle};

/// Bytes of memory that are hashed before only every second point of those so far has its memory hashed.
const HASHED_BYTES_MAX: u64 = 1 << 30;

/// A value as bits; a reference is 0 if null, else 1.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cell(pub(super) u128);

impl Cell {
    /// The cells of values.
    pub(super) fn all(values: &[Val]) -> Vec<Cell> {
        values.iter().map(|value| Cell(values::cell(value))).collect()
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Cell {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Cell, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map(Cell).map_err(serde::de::Error::custom)
    }
}

/// The event at a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Event {
    /// The guest calls a host function.
    Call {
        /// Its module and its name.
        import: String,
        /// The parameters.
        params: Vec<Cell>,
    },
    /// A call from the host ends.
    End {
        /// The name of the export, or "instantiation".
        of: String,
        /// Its end.
        end: End,
    },
}

/// The end of a call from the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum End {
    /// Results.
    Returned(Vec<Cell>),
    /// A trap.
    Trapped {
        /// The trap's message.
        message: String,
        /// The number of the trap.
        code: u8,
        /// Function and code offset of each frame, innermost first.
        frames: Vec<(u32, u32)>,
        /// The frames that are not listed.
        n_omitted: u64,
    },
    /// Another error.
    Failed(String),
}

impl End {
    /// The end that the result of a call is.
    pub(super) fn of(result: &Result<Vec<Val>, Error>) -> End {
        match result {
            Ok(results) => End::Returned(Cell::all(results)),
            Err(Error::Trap(trap)) => End::Trapped {
                message: trap.message(),
                code: trap.code.number(),
                frames: trap.frames().iter().map(|frame| (frame.func, frame.offset)).collect(),
                n_omitted: trap.backtrace().n_frames_omitted(),
            },
            Err(other) => End::Failed(other.to_string()),
        }
    }
}

/// A point in short.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// The hash of the event, the globals and the fuel.
    pub(super) digest: u64,
    /// The hash of memory and tables; only some points have one if the memory is large.
    pub(super) memory: Option<u64>,
}

/// The points of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    /// All points, in order.
    pub(super) points: Vec<Point>,
    /// Whether a call ended since the call stack was full.
    pub(super) overflows: bool,
    /// Whether a call ended for lack of fuel.
    pub(super) lacks_fuel: bool,
}

/// All that is observable at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Detail {
    /// The event.
    pub(super) event: Event,
    /// The globals.
    pub(super) globals: Vec<Cell>,
    /// The elements of each table: 0 for null, one more than the number of a function of the module, or the maximum
    /// for other references.
    pub(super) tables: Vec<Vec<u32>>,
    /// The fuel left, if it is limited.
    pub(super) fuel: Option<u64>,
    /// Memory 0. It is passed on in a file of its own.
    #[serde(skip)]
    pub(super) memory: Vec<u8>,
}

/// A store at a point. Without an instance there are only a memory and fuel: the start function runs.
#[derive(Copy, Clone)]
pub(super) struct Snapshot<'s> {
    pub(super) store: &'s rt::Store,
    pub(super) instance: Option<InstanceId>,
    pub(super) memory: &'s [u8],
    pub(super) fuel: Option<u64>,
}

impl Snapshot<'_> {
    /// The hash of an event, the globals and the fuel.
    pub(super) fn digest(&self, event: &Event) -> u64 {
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        self.globals().for_each(|cell| cell.hash(&mut hasher));
        self.fuel.hash(&mut hasher);
        hasher.finish()
    }

    /// The hash of memory and tables.
    pub(super) fn memory_digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.memory.hash(&mut hasher);
        self.tables().for_each(|table| {
            self.elems(table).for_each(|elem| elem.hash(&mut hasher));
        });
        hasher.finish()
    }

    /// Everything at the point of an event.
    pub(super) fn detail(&self, event: Event) -> Detail {
        Detail {
            event,
            globals: self.globals().collect(),
            tables: self.tables().map(|table| self.elems(table).collect()).collect(),
            fuel: self.fuel,
            memory: self.memory.to_vec(),
        }
    }

    fn globals(&self) -> impl Iterator<Item = Cell> + '_ {
        let handles = self.instance.map_or(&[][..], |id| self.store.instance_globals(id));
        handles.iter().map(|&global| {
            let cell = self.store.global(global);
            let is_ref = self.store.global_type(global).ty.is_ref();
            Cell(if is_ref { u128::from(cell != 0) } else { cell })
        })
    }

    fn tables(&self) -> impl Iterator<Item = TableHandle> + '_ {
        let handles = self.instance.map_or(&[][..], |id| self.store.instance_tables(id));
        handles.iter().copied()
    }

    /// The elements of a table. Engines have different handles for one function, so that its number counts.
    fn elems(&self, table: TableHandle) -> impl Iterator<Item = u32> + '_ {
        let table = self.store.table(table);
        let is_func = table.ty().elem == slotvm::ValType::FuncRef;
        (0..table.len()).map(move |i| {
            let cell = table.get(i).unwrap_or_default();
            let func = FuncHandle::from_cell(cell).filter(|_| is_func);
            match func.map(|func| self.store.func_target(func)) {
                Some(FuncTarget::Guest { func, .. }) => func + 1,
                _ if cell == 0 => 0,
                _ => u32::MAX,
            }
        })
    }
}

/// Decides which points have their memory hashed, by their numbers and the sizes of memory so far, so that a program
/// with a large memory that calls the host often is compared in reasonable time.
#[derive(Clone, Debug)]
pub(super) struct Strides {
    stride: u64,
    n_bytes: u64,
}

impl Default for Strides {
    fn default() -> Strides {
        Strides { stride: 1, n_bytes: 0 }
    }
}

impl Strides {
    /// Whether to hash a memory of this size at a point.
    pub(super) fn hashes(&mut self, point: usize, memory_bytes: usize) -> bool {
        if !(point as u64).is_multiple_of(self.stride) {
            return false;
        }
        self.n_bytes += memory_bytes as u64;
        if self.n_bytes > HASHED_BYTES_MAX {
            (self.stride, self.n_bytes) = (2 * self.stride, 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text_in_json() {
        let cells = vec![Cell(0), Cell(0xff), Cell(u128::MAX)];
        let text = serde_json::to_string(&cells).expect("it is plain data");
        assert_eq!(text, r#"["0","ff","ffffffffffffffffffffffffffffffff"]"#);
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&text).expect("it reads back"), cells);
    }

    #[test]
    fn large_memories_are_hashed_less_often() {
        let mut small = Strides::default();
        assert!((0..1_000).all(|point| small.hashes(point, 1 << 16)));
        let mut large = Strides::default();
        let hashed = (0..1_000).filter(|&point| large.hashes(point, 1 << 28)).count();
        assert!((10..100).contains(&hashed), "{hashed}");
    }
}
