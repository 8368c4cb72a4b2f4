//! Configuration of kept code: the key of files, and the size and place of a cache.

use std::path::PathBuf;

/// A key, which is not shown.
#[derive(Clone)]
pub(crate) struct CodeKey(pub(crate) [u8; 32]);

impl std::fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeKey").finish_non_exhaustive()
    }
}

/// Place and size of a [`Cache`](super::Cache).
#[derive(Clone, Debug)]
pub struct CacheConfig {
    pub(crate) directory: Option<PathBuf>,
    pub(crate) size_max: u64,
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig { directory: None, size_max: 512 << 20 }
    }
}

impl CacheConfig {
    /// The user's directory for caches, and at most 512 MiB in it.
    pub fn new() -> CacheConfig {
        CacheConfig::default()
    }

    /// Sets the directory. By default it is `slotvm` in the directory that `XDG_CACHE_HOME` names, or in `~/.cache`. Nobody
    /// but the user may be able to write in it.
    pub fn with_directory(&mut self, directory: impl Into<PathBuf>) -> &mut CacheConfig {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the size of all files together in bytes. Beyond that, those that were not used for the longest time are removed
    /// when one is written. A larger file is not written.
    pub fn with_files_total_size_soft_limit(&mut self, bytes: u64) -> &mut CacheConfig {
        self.size_max = bytes;
        self
    }
}
