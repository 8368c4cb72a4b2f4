//! Handlers of loads and stores, of globals, and of locals in the frame stack.

use slotvm_bytecode::TrapCode;
use slotvm_bytecode::module::PAGE_BYTES;
use slotvm_bytecode::numeric::Numeric;
use slotvm_bytecode::numeric::ops::I32Add;

use crate::interp::dispatch::{Dispatch, handlers};
use crate::interp::operands::{Operand, Shift, To, ToCell};
use crate::interp::regs::Regs;
use crate::steps::instr::Instr;
use crate::steps::state::State;

/// How an access finds its address, in `b` and `c`. `B` and `X` are where the operands in the cells `b` and `x` are.
pub(in crate::interp) trait Address {
    /// The slots of an instruction with such an address.
    const SLOTS: usize = 1;

    fn get<D: Dispatch>(r: &Regs<D>) -> u64;
}

/// `b + c`.
pub(in crate::interp) struct Plain<B>(B);

/// `c`.
pub(in crate::interp) enum Fixed {}

/// `b + (x << scale) + offset` without wrapping; `y` is the scale in two bits and the offset in the others.
pub(in crate::interp) struct Indexed<B, X>(B, X);

/// The same, with scale and offset in the two halves of the next slot.
pub(in crate::interp) enum IndexedFar {}

/// As [`Indexed`], but the sum of base and index wraps at 32 bits.
pub(in crate::interp) struct Wrapped<B, X>(B, X);

/// `b + c`, of 32 bits.
pub(in crate::interp) struct Moved<B>(B);

/// `c + (b << S)`, of 32 bits.
pub(in crate::interp) struct Scaled<S, B>(S, B);

/// The bits of `y` that are the offset of [`Indexed`] and [`Wrapped`].
pub(in crate::interp) const OFFSET_BITS: u32 = 14;

impl<B: Operand> Address for Plain<B> {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        u64::from(B::get::<I32Add, D>(r) as u32) + u64::from(r.instr().c)
    }
}

impl Address for Fixed {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        r.instr().c.into()
    }
}

impl<B: Operand, X: Operand> Address for Indexed<B, X> {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        let y = r.instr().y();
        let index = u64::from(X::get::<I32Add, D>(r) as u32) << (y >> OFFSET_BITS);
        let base = u64::from(B::get::<I32Add, D>(r) as u32);
        base + index + u64::from(y & ((1 << OFFSET_BITS) - 1))
    }
}

impl Address for IndexedFar {
    const SLOTS: usize = 2;

    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        let data = r.data(1);
        let index = u64::from(r.get(r.instr().x()) as u32) << (data >> 32 & 3);
        u64::from(r.get(r.instr().b) as u32) + index + u64::from(data as u32)
    }
}

impl<B: Operand, X: Operand> Address for Wrapped<B, X> {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        let y = r.instr().y();
        let index = (X::get::<I32Add, D>(r) as u32) << (y >> OFFSET_BITS);
        let sum = (B::get::<I32Add, D>(r) as u32).wrapping_add(index);
        u64::from(sum) + u64::from(y & ((1 << OFFSET_BITS) - 1))
    }
}

impl<B: Operand> Address for Moved<B> {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        (B::get::<I32Add, D>(r) as u32).wrapping_add(r.instr().c).into()
    }
}

impl<S: Shift, B: Operand> Address for Scaled<S, B> {
    #[inline(always)]
    fn get<D: Dispatch>(r: &Regs<D>) -> u64 {
        ((B::get::<I32Add, D>(r) as u32) << S::BITS).wrapping_add(r.instr().c).into()
    }
}

/// The value that a load makes of bytes.
pub(in crate::interp) trait Load {
    /// Whether it is a float of 64 bits.
    const IS_FLOAT: bool = false;

    fn load<D: Dispatch>(r: &Regs<D>, address: u64) -> Option<u64>;
}

macro_rules! loads {
    ($($name:ident: $narrow:ty as $wide:ty;)*) => {$(
        #[doc = concat!("A `", stringify!($narrow), "` as `", stringify!($wide), "`.")]
        pub(in crate::interp) enum $name {}

        impl Load for $name {
            #[inline(always)]
            fn load<D: Dispatch>(r: &Regs<D>, address: u64) -> Option<u64> {
                let value = <$narrow>::from_le_bytes(r.load(address)?);
                #[allow(
                    clippy::unnecessary_cast,
                    reason = "one of the types is that of the other side"
                )]
                Some(value as $wide as u64)
            }
        }
    )*};
}

loads! {
    Load8U: u8 as u64;
    Load8S32: i8 as u32;
    Load8S64: i8 as u64;
    Load16U: u16 as u64;
    Load16S32: i16 as u32;
    Load16S64: i16 as u64;
    Load32U: u32 as u64;
    Load32S64: i32 as u64;
    Load64: u64 as u64;
}

/// An `f64`.
pub(in crate::interp) enum LoadF64 {}

impl Load for LoadF64 {
    const IS_FLOAT: bool = true;

    #[inline(always)]
    fn load<D: Dispatch>(r: &Regs<D>, address: u64) -> Option<u64> {
        Load64::load(r, address)
    }
}

/// The bytes of a value that a store writes.
pub(in crate::interp) trait StoreBytes {
    fn store<D: Dispatch>(r: &Regs<D>, address: u64, value: u64) -> bool;
}

macro_rules! stores {
    ($($name:ident: $narrow:ty;)*) => {$(
        #[doc = concat!("Those of a `", stringify!($narrow), "`.")]
        pub(in crate::interp) enum $name {}

        impl StoreBytes for $name {
            #[inline(always)]
            fn store<D: Dispatch>(r: &Regs<D>, address: u64, value: u64) -> bool {
                #[allow(
                    clippy::unnecessary_cast,
                    reason = "one of the types is that of the other side"
                )]
                r.store(address, (value as $narrow).to_le_bytes())
            }
        }
    )*};
}

stores! {
    Store8: u8;
    Store16: u16;
    Store32: u32;
    Store64: u64;
}

/// The address of a local in the frame stack: `c` bytes above its lowest byte.
#[inline(always)]
fn frame_address<D: Dispatch>(r: &Regs<D>) -> u64 {
    // SAFETY: the context is that of the active instance, which lives as long as its store.
    let frame_sp = unsafe { (*(*r.state).ctx).frame_sp };
    u64::from(frame_sp) + u64::from(r.instr().c)
}

handlers! {
    /// `a = ` memory at an address.
    fn load<L: Load, A: Address, T: To>(r) {
        match L::load(&r, A::get(&r)) {
            Some(value) if L::IS_FLOAT => r.finish_float::<T>(A::SLOTS, value),
            Some(value) => r.finish::<T>(A::SLOTS, value),
            None => r.trap(TrapCode::MemoryOutOfBounds),
        }
    }

    /// Memory at an address `=` a value; `N` is an operation on values in the same accumulator.
    fn store<S: StoreBytes, V: Operand, N: Numeric, A: Address>(r) {
        if S::store(&r, A::get(&r), V::get::<N, D>(&r)) {
            r.next(A::SLOTS)
        } else {
            r.trap(TrapCode::MemoryOutOfBounds)
        }
    }

    /// `a =` the address of a local in the frame stack.
    fn frame_addr(r) {
        let address = frame_address(&r);
        r.finish::<ToCell>(1, address)
    }

    /// `a =` a local in the frame stack.
    fn frame_get<L: Load>(r) {
        match L::load(&r, frame_address(&r)) {
            Some(value) => r.finish::<ToCell>(1, value),
            None => r.trap(TrapCode::MemoryOutOfBounds),
        }
    }

    /// A local in the frame stack `= a`.
    fn frame_set<S: StoreBytes>(r) {
        if S::store(&r, frame_address(&r), r.get(r.instr().a)) {
            r.next(1)
        } else {
            r.trap(TrapCode::MemoryOutOfBounds)
        }
    }

    /// `a =` the size of memory 0 in pages.
    fn memory_size(r) {
        let pages = r.bytes as u64 / PAGE_BYTES;
        r.finish::<ToCell>(1, pages)
    }

    /// `a =` the global whose cell is `c`.
    fn global_get(r) {
        // SAFETY: the cells are those of the active instance, and verified code names globals that exist.
        let value = unsafe { *(*r.state).globals.wrapping_add(r.instr().c as usize) };
        r.finish::<ToCell>(1, value)
    }

    /// The global whose cell is `c` is set to `a`.
    fn global_set(r) {
        let value = r.get(r.instr().a);
        // SAFETY: the cells are those of the active instance, and verified code names globals that exist.
        unsafe { *(*r.state).globals.wrapping_add(r.instr().c as usize) = value };
        r.next(1)
    }

    /// `a =` the imported global whose place is in the cell `c`.
    fn imported_global_get(r) {
        // SAFETY: the cells are those of the active instance. The cell of an imported global holds the address of a cell of the same store.
        let value = unsafe {
            let place = *(*r.state).globals.wrapping_add(r.instr().c as usize);
            *(place as *const u64)
        };
        r.finish::<ToCell>(1, value)
    }

    /// The imported global whose place is in the cell `c` is set to `a`.
    fn imported_global_set(r) {
        let value = r.get(r.instr().a);
        // SAFETY: the cells are those of the active instance. The cell of an imported global holds the address of a
        // cell of the same store.
        unsafe {
            let place = *(*r.state).globals.wrapping_add(r.instr().c as usize);
            *(place as *mut u64) = value;
        }
        r.next(1)
    }
}
