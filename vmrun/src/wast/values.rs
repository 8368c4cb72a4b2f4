//! Values in scripts: arguments, and patterns of results.

use slotvm::{ExternRef, Store, Val};
use wast::core::{AbstractHeapType, HeapType, NanPattern, WastArgCore, WastRetCore};
use wast::{WastArg, WastRet};

use super::Reason;

/// An argument. Objects of the host are numbers.
pub(super) fn argument(arg: &WastArg<'_>, store: &mut Store<()>) -> Result<Val, Reason> {
    let WastArg::Core(arg) = arg else {
        return Err(Reason::Refused("components".into()));
    };
    Ok(match arg {
        WastArgCore::I32(value) => Val::I32(*value),
        WastArgCore::I64(value) => Val::I64(*value),
        WastArgCore::F32(value) => Val::F32(value.bits),
        WastArgCore::F64(value) => Val::F64(value.bits),
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

/// Compares results with what is expected.
pub(super) fn compare(
    found: &[Val],
    expected: &[WastRet<'_>],
    store: &Store<()>,
) -> Result<(), Reason> {
    if found.len() != expected.len() {
        return Err(Reason::Failed(format!(
            "{} results, {} expected",
            found.len(),
            expected.len()
        )));
    }
    for (val, pattern) in found.iter().zip(expected) {
        let WastRet::Core(pattern) = pattern else {
            return Err(Reason::Refused("components".into()));
        };
        if !matches(val, pattern, store)? {
            return Err(Reason::Failed(format!("the result is {val:?}, expected {pattern:?}")));
        }
    }
    Ok(())
}

fn matches(val: &Val, pattern: &WastRetCore<'_>, store: &Store<()>) -> Result<bool, Reason> {
    Ok(match (pattern, val) {
        (WastRetCore::I32(expected), Val::I32(value)) => expected == value,
        (WastRetCore::I64(expected), Val::I64(value)) => expected == value,
        (WastRetCore::F32(pattern), Val::F32(bits)) => match pattern {
            NanPattern::Value(expected) => expected.bits == *bits,
            NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
            NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        },
        (WastRetCore::F64(pattern), Val::F64(bits)) => match pattern {
            NanPattern::Value(expected) => expected.bits == *bits,
            NanPattern::CanonicalNan => bits & (u64::MAX >> 1) == 0x7ff8_0000_0000_0000,
            NanPattern::ArithmeticNan => bits & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        },
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
            WastRetCore::V128(_)
            | WastRetCore::RefHost(_)
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
