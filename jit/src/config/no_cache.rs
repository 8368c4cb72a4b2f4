//! Placeholder of `cache` in builds without the feature `jit`, of which no value can exist.

use std::path::Path;

use slotvm_runtime::Error;

use super::CacheConfig;

/// A directory for native code, of which this build has none.
#[derive(Clone, Debug)]
pub enum Cache {}

impl Cache {
    /// Fails.
    ///
    /// # Errors
    /// There is nothing to keep.
    pub fn new(_: &CacheConfig) -> Result<Cache, Error> {
        Err(Error::compile("this build of slotvm lacks the feature `jit`, which makes native code"))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        match *self {}
    }

    /// The key that its files are authenticated by.
    pub fn key(&self) -> &[u8; 32] {
        match *self {}
    }
}
