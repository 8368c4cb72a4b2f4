//! Handles of what is in a store, and how the values of globals lie in cells.

use std::num::NonZeroU64;

use slotvm_bytecode::module::GlobalType;

use crate::context::FuncRecord;

/// A function of a store. As a cell it is what a `funcref` holds; the null reference is 0.
///
/// The number is the distance in bytes to the end of the function's record, so that native code has no number
/// of a record to multiply.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncHandle(NonZeroU64);

impl FuncHandle {
    /// The function that a `funcref` refers to, or `None` for null.
    pub fn from_cell(cell: u64) -> Option<FuncHandle> {
        NonZeroU64::new(cell).map(FuncHandle)
    }

    /// The `funcref` to the function.
    pub fn cell(self) -> u64 {
        self.0.get()
    }

    pub(crate) fn from_index(index: usize) -> FuncHandle {
        let end = (index + 1) * size_of::<FuncRecord>();
        FuncHandle(NonZeroU64::new(end as u64).expect("records are fewer than addresses"))
    }

    /// The index of its record.
    pub fn index(self) -> usize {
        (self.0.get() as usize / size_of::<FuncRecord>()).wrapping_sub(1)
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);
    )* };
}

handles! {
    /// A memory of a store.
    MemoryHandle
    /// A table of a store.
    TableHandle
    /// A global of a store.
    GlobalHandle
}

/// An instance of a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub(crate) u32);

impl InstanceId {
    /// The instance's number in its store; native code finds it in the context.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The instance with a number.
    pub fn from_number(number: u32) -> InstanceId {
        InstanceId(number)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whose function it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FuncTarget {
    /// A function of an instance, in the index space of its module.
    Guest {
        /// The instance.
        instance: InstanceId,
        /// The function.
        func: u32,
    },
    /// A function of the host.
    Host {
        /// The instance that imports it, if it was made for an import.
        instance: Option<InstanceId>,
    },
}

/// Something that a module can import and an instance can export.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extern {
    /// A function.
    Func(FuncHandle),
    /// A table.
    Table(TableHandle),
    /// A memory.
    Memory(MemoryHandle),
    /// A global.
    Global(GlobalHandle),
}

/// A global of a store.
#[derive(Copy, Clone)]
pub(crate) struct GlobalData {
    /// Address of the value: in the instance that defines it, or in `Store::host_globals`. A vector has a second cell
    /// after it.
    pub(crate) cell: *mut u64,
    pub(crate) ty: GlobalType,
}

/// The two cells of a number, the lower half first.
pub(crate) fn cells_of(value: u128) -> [u64; 2] {
    [value as u64, (value >> 64) as u64]
}

/// The number that two cells hold.
pub(crate) fn value_of([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}
