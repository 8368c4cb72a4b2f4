//! Imports and exports of instances: memories, tables and globals, and [`Extern`], which is any of these or a
//! function.

use std::fmt;

use slotvm_bytecode::ValType;
use slotvm_bytecode::module::{GlobalType, MemoryType, TableType};
use slotvm_runtime::{self as rt, Error, GlobalHandle, MemoryHandle, MemoryPlan, TableHandle};

use crate::api::func::Func;
use crate::api::store::{
    AsContext, AsContextMut, Embedding, StoreContext, StoreContextMut, StoreId,
};
use crate::api::types::ExternType;
use crate::api::val::Val;

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident $handle:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            store: StoreId,
            handle: $handle,
        }

        impl $name {
            pub(crate) fn from_handle(store: &rt::Store, handle: $handle) -> $name {
                $name { store: StoreId::of(store), handle }
            }

            /// The handle in the store.
            ///
            /// # Panics
            /// Panics if the store is another one.
            #[track_caller]
            pub(crate) fn handle(&self, store: &rt::Store) -> $handle {
                self.store.check(store);
                self.handle
            }
        }
    };
}

entity! {
    /// A linear memory of a store.
    ///
    /// All methods panic if the store is another one.
    Memory MemoryHandle
}

entity! {
    /// A table of a store.
    ///
    /// All methods panic if the store is another one.
    Table TableHandle
}

entity! {
    /// A global of a store.
    ///
    /// All methods panic if the store is another one.
    Global GlobalHandle
}

/// An access beyond the end of a memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryAccessError;

impl fmt::Display for MemoryAccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of bounds memory access")
    }
}

impl std::error::Error for MemoryAccessError {}

impl From<MemoryAccessError> for Error {
    fn from(error: MemoryAccessError) -> Error {
        Error::host(error)
    }
}

impl Memory {
    /// Makes a memory of zeros that instances can import.
    ///
    /// # Errors
    /// Fails if it exceeds a limit, or the system gives no memory.
    pub fn new(mut store: impl AsContextMut, ty: MemoryType) -> Result<Memory, Error> {
        let store = store.as_context_mut().inner;
        let plan = Embedding::of(store).engine().config().memory.unwrap_or(MemoryPlan::PLAIN);
        let handle = store.new_memory(ty, plan)?;
        Ok(Memory::from_handle(store, handle))
    }

    /// Its type; the minimum is its present size.
    pub fn ty(&self, store: impl AsContext) -> MemoryType {
        let store = store.as_context().inner;
        store.memory(self.handle(store)).ty()
    }

    /// Its size in pages of 64 KiB.
    pub fn size(&self, store: impl AsContext) -> u64 {
        let store = store.as_context().inner;
        store.memory(self.handle(store)).pages().into()
    }

    /// Its size in bytes.
    pub fn data_size(&self, store: impl AsContext) -> usize {
        let store = store.as_context().inner;
        store.memory(self.handle(store)).bytes() as usize
    }

    /// Its contents.
    pub fn data<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> &'a [u8] {
        let store = store.into().inner;
        store.memory(self.handle(store)).data()
    }

    /// Its contents, to be written.
    pub fn data_mut<'a, T: 'static>(
        &self,
        store: impl Into<StoreContextMut<'a, T>>,
    ) -> &'a mut [u8] {
        let store = store.into().inner;
        let handle = self.handle(store);
        store.memory_data_mut(handle)
    }

    /// Copies bytes from the memory, starting at an address.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then copied.
    pub fn read(
        &self,
        store: impl AsContext,
        address: usize,
        into: &mut [u8],
    ) -> Result<(), MemoryAccessError> {
        let store = store.as_context().inner;
        let memory = store.memory(self.handle(store));
        memory.read(address as u64, into).map_err(|_| MemoryAccessError)
    }

    /// Copies bytes to the memory, starting at an address.
    ///
    /// # Errors
    /// Fails if the bytes do not all lie inside the memory; nothing is then copied.
    pub fn write(
        &self,
        mut store: impl AsContextMut,
        address: usize,
        from: &[u8],
    ) -> Result<(), MemoryAccessError> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let end = address.checked_add(from.len()).ok_or(MemoryAccessError)?;
        let bytes = store.memory_data_mut(handle).get_mut(address..end);
        bytes.ok_or(MemoryAccessError)?.copy_from_slice(from);
        Ok(())
    }

    /// Its contents to be written, together with the embedder's data.
    pub fn data_and_store_mut<'a, T: 'static>(
        &self,
        store: impl Into<StoreContextMut<'a, T>>,
    ) -> (&'a mut [u8], &'a mut T) {
        let store = store.into().inner;
        let handle = self.handle(store);
        let (bytes, data) = store.memory_and_data_mut(handle);
        (bytes, Embedding::data_mut(data))
    }

    /// Reads a number at an address, little-endian as guest code does; the address need not be aligned.
    ///
    /// ```
    /// # use slotvm::{Engine, Memory, MemoryType, Store};
    /// let mut store = Store::new(&Engine::default(), ());
    /// let memory = Memory::new(&mut store, MemoryType { min: 1, max: None })?;
    /// memory.write_value(&mut store, 65_532, 7_i32)?;
    /// assert_eq!(memory.read_value::<u16>(&store, 65_532)?, 7);
    /// assert!(memory.read_value::<f64>(&store, 65_532).is_err());
    /// # Ok::<(), slotvm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails if it does not lie inside the memory.
    pub fn read_value<V: MemoryValue>(
        &self,
        store: impl AsContext,
        address: usize,
    ) -> Result<V, MemoryAccessError> {
        let mut bytes = V::Bytes::default();
        self.read(store, address, bytes.as_mut())?;
        Ok(V::from_bytes(bytes))
    }

    /// Writes a number to an address, little-endian as guest code does; the address need not be aligned.
    ///
    /// # Errors
    /// Fails if it does not lie inside the memory; nothing is then written.
    pub fn write_value<V: MemoryValue>(
        &self,
        store: impl AsContextMut,
        address: usize,
        value: V,
    ) -> Result<(), MemoryAccessError> {
        self.write(store, address, value.to_bytes().as_ref())
    }

    /// Adds pages of zeros. Returns the old size in pages.
    ///
    /// # Errors
    /// Fails if there is no room, or the store's [limiter](crate::Store::limiter) refuses or fails.
    pub fn grow(&self, mut store: impl AsContextMut, pages: u64) -> Result<u64, Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let refused = || Error::Usage(format!("the memory cannot grow by {pages} pages"));
        let pages = u32::try_from(pages).map_err(|_| refused())?;
        store.memory_grow(handle, pages)?.map(u64::from).ok_or_else(refused)
    }
}

/// A number that can be read from a [`Memory`] and written to it: an integer or floating-point number of
/// Rust of at most 64 bits.
pub trait MemoryValue: Copy + private::Sealed {
    /// Its bytes.
    #[doc(hidden)]
    type Bytes: Default + AsRef<[u8]> + AsMut<[u8]>;

    /// The number that bytes stand for.
    #[doc(hidden)]
    fn from_bytes(bytes: Self::Bytes) -> Self;

    /// The bytes of the number.
    #[doc(hidden)]
    fn to_bytes(self) -> Self::Bytes;
}

mod private {
    pub trait Sealed {}
}

macro_rules! memory_values {
    ($($ty:ident)*) => { $(
        impl private::Sealed for $ty {}

        impl MemoryValue for $ty {
            type Bytes = [u8; size_of::<$ty>()];

            #[inline]
            fn from_bytes(bytes: Self::Bytes) -> $ty {
                $ty::from_le_bytes(bytes)
            }

            #[inline]
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
        }
    )* };
}

memory_values! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl Table {
    /// Makes a table of copies of a reference that instances can import.
    ///
    /// # Errors
    /// Fails if it exceeds a limit, there is not enough memory, or the reference is of another type.
    pub fn new(mut store: impl AsContextMut, ty: TableType, init: Val) -> Result<Table, Error> {
        let store = store.as_context_mut().inner;
        let init = cell_of_type(ty.elem, init, store)?;
        let handle = store.new_table(ty, init)?;
        Ok(Table::from_handle(store, handle))
    }

    /// Its type; the minimum is its present size.
    pub fn ty(&self, store: impl AsContext) -> TableType {
        let store = store.as_context().inner;
        store.table(self.handle(store)).ty()
    }

    /// The number of its elements.
    pub fn size(&self, store: impl AsContext) -> u64 {
        let store = store.as_context().inner;
        store.table(self.handle(store)).len().into()
    }

    /// An element; `None` if the table does not have it.
    pub fn get(&self, store: impl AsContext, index: u64) -> Option<Val> {
        let store = store.as_context().inner;
        let table = store.table(self.handle(store));
        let cell = table.get(u32::try_from(index).ok()?).ok()?;
        Some(Val::from_bits(table.ty().elem, cell.into(), store))
    }

    /// Replaces an element.
    ///
    /// # Errors
    /// Fails if the table does not have it, or the reference is of another type.
    pub fn set(&self, mut store: impl AsContextMut, index: u64, value: Val) -> Result<(), Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let cell = cell_of_type(store.table(handle).ty().elem, value, store)?;
        let none = |_| Error::Usage(format!("index {index} is out of bounds of the table"));
        store.table_set(handle, u32::try_from(index).map_err(none)?, cell)
    }

    /// Adds copies of a reference. Returns the old size.
    ///
    /// # Errors
    /// Fails if there is no room, the store's [limiter](crate::Store::limiter) refuses or fails, or the
    /// reference is of another type.
    pub fn grow(&self, mut store: impl AsContextMut, n: u64, value: Val) -> Result<u64, Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let cell = cell_of_type(store.table(handle).ty().elem, value, store)?;
        let refused = || Error::Usage(format!("the table cannot grow by {n} elements"));
        let n = u32::try_from(n).map_err(|_| refused())?;
        store.table_grow(handle, cell, n)?.map(u64::from).ok_or_else(refused)
    }
}

impl Global {
    /// Makes a global that instances can import.
    ///
    /// # Errors
    /// Fails if there are too many, or the value is of another type.
    pub fn new(mut store: impl AsContextMut, ty: GlobalType, value: Val) -> Result<Global, Error> {
        let store = store.as_context_mut().inner;
        let bits = bits_of_type(ty.ty, value, store)?;
        let handle = store.new_global(ty, bits)?;
        Ok(Global::from_handle(store, handle))
    }

    /// Its type.
    pub fn ty(&self, store: impl AsContext) -> GlobalType {
        let store = store.as_context().inner;
        store.global_type(self.handle(store))
    }

    /// Its value.
    pub fn get(&self, store: impl AsContext) -> Val {
        let store = store.as_context().inner;
        let handle = self.handle(store);
        Val::from_bits(store.global_type(handle).ty, store.global(handle), store)
    }

    /// Sets its value.
    ///
    /// # Errors
    /// Fails if it is immutable, or the value is of another type.
    pub fn set(&self, mut store: impl AsContextMut, value: Val) -> Result<(), Error> {
        let store = store.as_context_mut().inner;
        let handle = self.handle(store);
        let bits = bits_of_type(store.global_type(handle).ty, value, store)?;
        store.set_global(handle, bits)
    }
}

/// The cells of a value that is of a type, as a number with the first one lowest.
fn bits_of_type(ty: ValType, value: Val, store: &rt::Store) -> Result<u128, Error> {
    if value.ty() != ty {
        let found = value.ty();
        return Err(Error::Usage(format!("expected values of types [{ty}], found [{found}]")));
    }
    Ok(value.bits(store))
}

/// The cell of a reference that is of a type.
fn cell_of_type(ty: ValType, value: Val, store: &rt::Store) -> Result<u64, Error> {
    Ok(bits_of_type(ty, value, store)? as u64)
}

/// An object that a module can import and an instance can export.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extern {
    /// A function.
    Func(Func),
    /// A table.
    Table(Table),
    /// A memory.
    Memory(Memory),
    /// A global.
    Global(Global),
}

impl Extern {
    pub(crate) fn new(store: &rt::Store, entity: rt::Extern) -> Extern {
        match entity {
            rt::Extern::Func(func) => Extern::Func(Func::from_handle(store, func)),
            rt::Extern::Table(table) => Extern::Table(Table::from_handle(store, table)),
            rt::Extern::Memory(memory) => Extern::Memory(Memory::from_handle(store, memory)),
            rt::Extern::Global(global) => Extern::Global(Global::from_handle(store, global)),
        }
    }

    /// Its type; the minimum size of a memory or table is its present one.
    ///
    /// # Panics
    /// Panics if the store is another one.
    pub fn ty(&self, store: impl AsContext) -> ExternType {
        match self {
            Extern::Func(func) => ExternType::Func(func.ty(store)),
            Extern::Table(table) => ExternType::Table(table.ty(store)),
            Extern::Memory(memory) => ExternType::Memory(memory.ty(store)),
            Extern::Global(global) => ExternType::Global(global.ty(store)),
        }
    }

    /// The object in the store.
    ///
    /// # Panics
    /// Panics if the store is another one.
    #[track_caller]
    pub(crate) fn entity(&self, store: &rt::Store) -> rt::Extern {
        match self {
            Extern::Func(func) => rt::Extern::Func(func.handle(store)),
            Extern::Table(table) => rt::Extern::Table(table.handle(store)),
            Extern::Memory(memory) => rt::Extern::Memory(memory.handle(store)),
            Extern::Global(global) => rt::Extern::Global(global.handle(store)),
        }
    }

    /// The function, if it is one.
    pub fn into_func(self) -> Option<Func> {
        if let Extern::Func(func) = self { Some(func) } else { None }
    }

    /// The table, if it is one.
    pub fn into_table(self) -> Option<Table> {
        if let Extern::Table(table) = self { Some(table) } else { None }
    }

    /// The memory, if it is one.
    pub fn into_memory(self) -> Option<Memory> {
        if let Extern::Memory(memory) = self { Some(memory) } else { None }
    }

    /// The global, if it is one.
    pub fn into_global(self) -> Option<Global> {
        if let Extern::Global(global) = self { Some(global) } else { None }
    }
}

macro_rules! from {
    ($($name:ident)*) => { $(
        impl From<$name> for Extern {
            fn from(entity: $name) -> Extern {
                Extern::$name(entity)
            }
        }
    )* };
}

from! { Func Table Memory Global }
