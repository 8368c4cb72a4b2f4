//! Placeholder in builds without native code: no value of it can exist.

use slotvm_runtime::Error;

use super::input::Input;
use crate::native::ownership::engine::NativeEngine;

/// Code of a unit, which this build cannot make.
pub(super) enum NativeCode {}

impl NativeCode {
    pub(super) fn compile(native: &NativeEngine, _: Input) -> Result<NativeCode, Error> {
        match *native {}
    }

    pub(super) fn entry(&self, _: usize) -> *const u8 {
        match *self {}
    }

    pub(super) fn bytes(&self) -> usize {
        match *self {}
    }
}
