//! Host of a program: the same in all engines.

use std::fmt;

use slotvm::ValType;

use crate::value::Value;

/// Pages that a memory may have.
pub(crate) const MEMORY_PAGES_MAX: u32 = 10;
/// Elements that a table may have.
pub(crate) const TABLE_ELEMS_MAX: u32 = 500;
/// Bytes of the native stack that a program may use. It suffices for its [`FUEL`](crate::program::FUEL)
/// unless frames are very large.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// Number of calls of host functions for each one that fails.
const CALLS_PER_FAILURE: u64 = 16;

/// State of the host's functions. Any type of function can be imported; its behaviour depends on its arguments and
/// earlier calls.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// The arguments of all calls.
    pub(crate) log: Vec<Value>,
}

/// The error of a host function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host fails")
    }
}

impl std::error::Error for Failure {}

impl Host {
    /// Calls an imported function.
    pub(crate) fn call(
        &mut self,
        args: &[Value],
        types: &[ValType],
    ) -> Result<Vec<Value>, Failure> {
        self.log.push(Value::I64(args.len() as i64));
        self.log.extend(args);
        let mut hash = mix(self.log.len() as u64);
        for arg in args {
            hash = mix(hash ^ arg.bits());
        }
        if hash.is_multiple_of(CALLS_PER_FAILURE) {
            return Err(Failure);
        }
        let bits = |i: usize| mix(hash.wrapping_add(i as u64));
        Ok((0..).zip(types).map(|(i, &ty)| Value::of_bits(ty, bits(i))).map(without_nan).collect())
    }
}

/// The initial value of an imported global.
pub(crate) fn global(index: usize, ty: ValType) -> Value {
    match ty {
        // Nothing is exported yet.
        ValType::FuncRef => Value::Func(false),
        _ => without_nan(Value::of_bits(ty, mix(index as u64) & 0xffff)),
    }
}

/// Functions of the host give no function, since nothing is exported while an instance is made, and no
/// NaN.
fn without_nan(value: Value) -> Value {
    match value {
        Value::F32(bits) => Value::F32((bits as i8 as f32 / 4.0).to_bits()),
        Value::F64(bits) => Value::F64((bits as i16 as f64 / 16.0).to_bits()),
        Value::Func(_) => Value::Func(false),
        value => value,
    }
}

/// The finalizer of splitmix64, a bijection.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
