//! Values of the guest, as the host sees them.

use std::any::Any;

use slotvm_bytecode::{FuncType, ValType};
use slotvm_runtime::{self as rt, Error, FuncHandle};

use crate::api::func::Func;
use crate::api::rooted::Rooted;
use crate::api::store::{AsContextMut, StoreContext, StoreId};

/// A value of any type.
#[derive(Copy, Clone, Debug)]
pub enum Val {
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// The bits of a binary32 number.
    F32(u32),
    /// The bits of a binary64 number.
    F64(u64),
    /// A vector of 128 bits.
    V128(V128),
    /// A reference to a function, or null.
    FuncRef(Option<Func>),
    /// A reference to a host object, or null.
    ExternRef(Option<ExternRef>),
    /// A reference into the embedder's heap, or null.
    Ref(Option<Rooted>),
}

/// A vector of 128 bits; the lowest ones are lane 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct V128(u128);

impl V128 {
    /// The bits.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl From<u128> for V128 {
    fn from(bits: u128) -> V128 {
        V128(bits)
    }
}

impl From<V128> for u128 {
    fn from(vector: V128) -> u128 {
        vector.0
    }
}

impl From<V128> for Val {
    fn from(vector: V128) -> Val {
        Val::V128(vector)
    }
}

/// A reference to a host object that a store owns. Guest code can keep it and hand it back, but not
/// look into it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternRef {
    store: StoreId,
    cell: u64,
}

impl ExternRef {
    /// Gives an object to a store. It lives as long as the store.
    ///
    /// # Errors
    /// Fails if the store has too many.
    pub fn new(mut store: impl AsContextMut, object: impl Any + Send) -> Result<ExternRef, Error> {
        let store = store.as_context_mut().inner;
        let cell = store.new_extern(Box::new(object))?;
        Ok(ExternRef { store: StoreId::of(store), cell })
    }

    /// The object.
    ///
    /// # Panics
    /// Panics if the store is another one than that of the object.
    pub fn data<'a, T: 'static>(
        &self,
        store: impl Into<StoreContext<'a, T>>,
    ) -> &'a (dyn Any + Send) {
        let store = store.into().inner;
        self.store.check(store);
        store.extern_object(self.cell).expect("the store keeps its objects")
    }
}

macro_rules! accessors {
    ($($doc:literal $variant:ident $get:ident $unwrap:ident $ty:ty = $convert:expr;)*) => { $(
        #[doc = concat!("The value, if it is ", $doc, ".")]
        pub fn $get(&self) -> Option<$ty> {
            match *self {
                Val::$variant(value) => Some($convert(value)),
                _ => None,
            }
        }

        #[doc = concat!("The value, which is ", $doc, ".")]
        ///
        /// # Panics
        /// Panics if it is of another type.
        #[track_caller]
        pub fn $unwrap(&self) -> $ty {
            match self.$get() {
                Some(value) => value,
                None => panic!("the value is {:?}, not {}", self, $doc),
            }
        }
    )* };
}

impl Val {
    accessors! {
        "an `i32`" I32 i32 unwrap_i32 i32 = std::convert::identity;
        "an `i64`" I64 i64 unwrap_i64 i64 = std::convert::identity;
        "an `f32`" F32 f32 unwrap_f32 f32 = f32::from_bits;
        "an `f64`" F64 f64 unwrap_f64 f64 = f64::from_bits;
        "a `v128`" V128 v128 unwrap_v128 V128 = std::convert::identity;
        "a function reference" FuncRef func_ref unwrap_func_ref Option<Func> = std::convert::identity;
        "an external reference" ExternRef extern_ref unwrap_extern_ref Option<ExternRef> = std::convert::identity;
        "a reference into the embedder's heap" Ref rooted unwrap_rooted Option<Rooted> = std::convert::identity;
    }

    /// Zero, or the null reference.
    pub fn default_for(ty: ValType) -> Val {
        match ty {
            ValType::I32 => Val::I32(0),
            ValType::I64 => Val::I64(0),
            ValType::F32 => Val::F32(0),
            ValType::F64 => Val::F64(0),
            ValType::V128 => Val::V128(V128(0)),
            ValType::FuncRef => Val::FuncRef(None),
            ValType::ExternRef => Val::ExternRef(None),
            ValType::Ref => Val::Ref(None),
        }
    }

    /// Its type.
    pub fn ty(&self) -> ValType {
        match self {
            Val::I32(_) => ValType::I32,
            Val::I64(_) => ValType::I64,
            Val::F32(_) => ValType::F32,
            Val::F64(_) => ValType::F64,
            Val::V128(_) => ValType::V128,
            Val::FuncRef(_) => ValType::FuncRef,
            Val::ExternRef(_) => ValType::ExternRef,
            Val::Ref(_) => ValType::Ref,
        }
    }

    /// The cells that hold the value in guest code, as a number with the first one lowest.
    ///
    /// # Panics
    /// Panics if it is a reference of another store.
    pub(crate) fn bits(&self, store: &rt::Store) -> u128 {
        match *self {
            Val::V128(vector) => vector.0,
            _ => self.cell(store).into(),
        }
    }

    /// The cell that holds the value in guest code; of a vector the first one.
    ///
    /// # Panics
    /// Panics if it is a reference of another store.
    pub(crate) fn cell(&self, store: &rt::Store) -> u64 {
        match *self {
            Val::I32(value) => u64::from(value as u32),
            Val::I64(value) => value as u64,
            Val::F32(bits) => u64::from(bits),
            Val::F64(bits) => bits,
            Val::V128(vector) => vector.0 as u64,
            Val::FuncRef(func) => func.map_or(0, |func| func.handle(store).cell()),
            Val::ExternRef(object) => object.map_or(0, |object| {
                object.store.check(store);
                object.cell
            }),
            Val::Ref(object) => object.map_or(0, |object| object.cell(store)),
        }
    }

    /// Makes a value of a type from the bits of [`Val::bits`].
    pub(crate) fn from_bits(ty: ValType, bits: u128, store: &rt::Store) -> Val {
        match ty {
            ValType::V128 => Val::V128(V128(bits)),
            _ => Val::from_cell(ty, bits as u64, store),
        }
    }

    /// Reads values of types from their cells.
    #[inline]
    pub(crate) fn read_cells(
        vals: &mut [Val],
        types: &[ValType],
        cells: &[u64],
        store: &rt::Store,
    ) {
        let mut cells = cells.iter().copied();
        let mut next = || cells.next().expect("there are cells for all values");
        for (val, &ty) in vals.iter_mut().zip(types) {
            *val = match ty {
                ValType::V128 => {
                    let low = next();
                    Val::V128(V128(u128::from(low) | u128::from(next()) << 64))
                }
                _ => Val::from_cell(ty, next(), store),
            };
        }
    }

    /// The value of a type that a cell holds in guest code. The type is not that of vectors.
    fn from_cell(ty: ValType, cell: u64, store: &rt::Store) -> Val {
        match ty {
            ValType::I32 => Val::I32(cell as u32 as i32),
            ValType::I64 => Val::I64(cell as i64),
            ValType::F32 => Val::F32(cell as u32),
            ValType::F64 => Val::F64(cell),
            ValType::V128 => unreachable!("a vector has two cells"),
            ValType::FuncRef => {
                Val::FuncRef(FuncHandle::from_cell(cell).map(|func| Func::from_handle(store, func)))
            }
            ValType::ExternRef => {
                let reference = || ExternRef { store: StoreId::of(store), cell };
                Val::ExternRef((cell != 0).then(reference))
            }
            ValType::Ref => Val::Ref(Rooted::from_cell(cell, store)),
        }
    }

    /// Writes values into cells.
    ///
    /// # Errors
    /// Fails if they are not of the types.
    pub(crate) fn write_cells(
        vals: &[Val],
        types: &[ValType],
        cells: &mut [u64],
        store: &rt::Store,
    ) -> Result<(), Error> {
        if !vals.iter().map(Val::ty).eq(types.iter().copied()) {
            let found: Vec<_> = vals.iter().map(Val::ty).collect();
            return Err(Error::Usage(format!(
                "expected values of types {types:?}, found {found:?}"
            )));
        }
        let mut cells = cells.iter_mut();
        let mut write = |cell| *cells.next().expect("there are cells for all values") = cell;
        for val in vals {
            write(val.cell(store));
            if let Val::V128(vector) = val {
                write((vector.0 >> 64) as u64);
            }
        }
        Ok(())
    }
}

/// The number of cells that a call of a function of a type needs.
pub(crate) fn n_cells(ty: &FuncType) -> usize {
    let n_cells = slotvm_bytecode::n_cells;
    n_cells(&ty.params).max(n_cells(&ty.results))
}

impl From<i32> for Val {
    fn from(value: i32) -> Val {
        Val::I32(value)
    }
}

impl From<i64> for Val {
    fn from(value: i64) -> Val {
        Val::I64(value)
    }
}

impl From<f32> for Val {
    fn from(value: f32) -> Val {
        Val::F32(value.to_bits())
    }
}

impl From<f64> for Val {
    fn from(value: f64) -> Val {
        Val::F64(value.to_bits())
    }
}

impl From<Func> for Val {
    fn from(func: Func) -> Val {
        Val::FuncRef(Some(func))
    }
}

impl From<Rooted> for Val {
    fn from(object: Rooted) -> Val {
        Val::Ref(Some(object))
    }
}

impl From<ExternRef> for Val {
    fn from(object: ExternRef) -> Val {
        Val::ExternRef(Some(object))
    }
}
