//! Values in scripts: arguments and result patterns.

use slotvm::{ExternRef, Store, Val};
use wast::core::{AbstractHeapType, HeapType, NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::token::{F32, F64};
use wast::{WastArg, WastRet};

use super::Reason;

/// Converts an argument. Host objects are numbers.
pub(super) fn argument(arg: &WastArg<'_>, store: &mut Store<()>) -> Result<Val, Reason> {
    let WastArg::Core(arg) = arg else {
        return Err(Reason::Refused("components".into()));
    };
    Ok(match arg {
        WastArgCore::I32(value) => Val::I32(*value),
        WastArgCore::I64(value) => Val::I64(*value),
        WastArgCore::F32(value) => Val::F32(value.bits),
        WastArgCore::F64(value) => Val::F64(value.bits),
        WastArgCore::V128(value) => Val::V128(u128::from_le_bytes(value.to_le_bytes()).into()),
        WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Func, .. }) => {
            Val::FuncRef(None)
        }
        WastArgCore::RefNull(HeapType::Abstract { ty: AbstractHeapType::Extern, .. }) => {
            Val::ExternRef(None)
        }
        WastArgCore::RefExtern(number) => {
            Val::ExternRef(Some(ExternRef::new(store, *number).map_err(Reason::failed)?))
        }
        other => return Err(Reason::Refused(format!("a value {other:?}"))),
    })
}

/// Compares results with the expected patterns.
pub(super) fn compare(
    found: &[Val],
    expected: &[WastRet<'_>],
    store: &Store<()>,
) -> Result<(), Reason> {
    if found.len() != expected.len() {
        return Err(Reason::Failed(format!(
            "expected {} results, found {}",
            expected.len(),
            found.len()
        )));
    }
    for (val, pattern) in found.iter().zip(expected) {
        let WastRet::Core(pattern) = pattern else {
            return Err(Reason::Refused("components".into()));
        };
        if !matches(val, pattern, store)? {
            return Err(Reason::Failed(format!("expected {pattern:?}, found {val:?}")));
        }
    }
    Ok(())
}

fn matches(val: &Val, pattern: &WastRetCore<'_>, store: &Store<()>) -> Result<bool, Reason> {
    Ok(match (pattern, val) {
        (WastRetCore::I32(expected), Val::I32(value)) => expected == value,
        (WastRetCore::I64(expected), Val::I64(value)) => expected == value,
        (WastRetCore::F32(pattern), Val::F32(bits)) => matches_f32(*bits, pattern),
        (WastRetCore::F64(pattern), Val::F64(bits)) => matches_f64(*bits, pattern),
        (WastRetCore::V128(pattern), Val::V128(vector)) => {
            matches_vector(vector.as_u128(), pattern)
        }
        (WastRetCore::RefNull(None), Val::FuncRef(None) | Val::ExternRef(None)) => true,
        (WastRetCore::RefNull(Some(HeapType::Abstract { ty, .. })), val) => match val {
            Val::FuncRef(None) => {
                matches!(ty, AbstractHeapType::Func | AbstractHeapType::NoFunc)
            }
            Val::ExternRef(None) => {
                matches!(ty, AbstractHeapType::Extern | AbstractHeapType::NoExtern)
            }
            _ => false,
        },
        (WastRetCore::RefExtern(expected), Val::ExternRef(Some(object))) => {
            expected.is_none_or(|n| object.data(store).downcast_ref::<u32>() == Some(&n))
        }
        (WastRetCore::RefFunc(None), Val::FuncRef(Some(_))) => true,
        (WastRetCore::Either(patterns), val) => {
            let mut any = patterns.iter().map(|pattern| matches(val, pattern, store));
            any.try_fold(false, |any, one| one.map(|one| any || one))?
        }
        (
            WastRetCore::RefHost(_)
            | WastRetCore::RefFunc(Some(_))
            | WastRetCore::RefAny
            | WastRetCore::RefEq
            | WastRetCore::RefArray
            | WastRetCore::RefStruct
            | WastRetCore::RefI31
            | WastRetCore::RefI31Shared,
            _,
        ) => return Err(Reason::Refused(format!("a result {pattern:?}"))),
        _ => false,
    })
}

fn matches_f32(bits: u32, pattern: &NanPattern<F32>) -> bool {
    match pattern {
        NanPattern::Value(expected) => expected.bits == bits,
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
    }
}

fn matches_f64(bits: u64, pattern: &NanPattern<F64>) -> bool {
    match pattern {
        NanPattern::Value(expected) => expected.bits == bits,
        NanPattern::CanonicalNan => bits & (u64::MAX >> 1) == 0x7ff8_0000_0000_0000,
        NanPattern::ArithmeticNan => bits & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
    }
}

fn matches_vector(bits: u128, pattern: &V128Pattern) -> bool {
    // Lane `i` of lanes of `width` bits.
    let lane = |i: usize, width: usize| (bits >> (i * width)) as u64;
    match pattern {
        V128Pattern::I8x16(lanes) => (0..).zip(lanes).all(|(i, &x)| lane(i, 8) as i8 == x),
        V128Pattern::I16x8(lanes) => (0..).zip(lanes).all(|(i, &x)| lane(i, 16) as i16 == x),
        V128Pattern::I32x4(lanes) => (0..).zip(lanes).all(|(i, &x)| lane(i, 32) as i32 == x),
        V128Pattern::I64x2(lanes) => (0..).zip(lanes).all(|(i, &x)| lane(i, 64) as i64 == x),
        V128Pattern::F32x4(lanes) => {
            (0..).zip(lanes).all(|(i, pattern)| matches_f32(lane(i, 32) as u32, pattern))
        }
        V128Pattern::F64x2(lanes) => {
            (0..).zip(lanes).all(|(i, pattern)| matches_f64(lane(i, 64), pattern))
        }
    }
}
