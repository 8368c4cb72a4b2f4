//! A directory with the code of modules, for the next process that loads them.
//!
//! Files are written under another name first, and renamed when they are complete, so that many processes can use a
//! directory at the same time. What is in them is authenticated by a key that the directory has, which nobody but its owner
//! can read ([`crate::precompiled`]).

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use slotvm_runtime::Error;

use super::CacheConfig;

/// The name of the file with the key.
const KEY: &str = "key";
/// The prefix of names of files that are being written.
const UNFINISHED: &str = ".unfinished-";
/// The age of a file that nobody is writing any more.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(3600);
/// The part of the size that is left, in percent, when files are removed because it was exceeded.
const LEFT_PERCENT: u64 = 70;

/// A directory in which engines keep native code, see [`Config::cache`](crate::Config::cache). Cloning it is cheap and
/// returns the same cache.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    size_max: u64,
    key: [u8; 32],
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("directory", &self.0.directory).finish_non_exhaustive()
    }
}

impl Cache {
    /// Opens a cache. Its directory is made, with a new key, if it is not there.
    ///
    /// # Errors
    /// Fails if there is no directory to be used by default, if it cannot be made or read, or if others than the user
    /// could have written in it, or read the key.
    pub fn new(config: &CacheConfig) -> Result<Cache, Error> {
        let size_max = config.size_max;
        let Some(directory) = config.directory.clone().or_else(default_directory) else {
            return Err(Error::Usage("no directory for the cache: HOME is not set".to_owned()));
        };
        let key = prepare(&directory)
            .map_err(|source| Error::Cache { directory: directory.clone(), source })?;
        Ok(Cache(Arc::new(Inner { directory, size_max, key })))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// The key that its files are authenticated by, for [`Config::code_key`](crate::Config::code_key).
    pub fn key(&self) -> &[u8; 32] {
        &self.0.key
    }

    /// The file of a name, if it is there.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        let file = File::open(self.0.directory.join(name))?;
        // It was used now. Without that, it only stays for a shorter time.
        _ = file.set_modified(SystemTime::now());
        Ok(file)
    }

    /// Writes the file of a name, and removes those that were not used for the longest time if all are too large together.
    /// Without success, the file is not there.
    pub(crate) fn save(&self, name: &str, bytes: &[u8]) {
        if bytes.len() as u64 > self.0.size_max {
            return;
        }
        let save = || -> io::Result<()> {
            let mut builder = tempfile::Builder::new();
            let mut file = builder.prefix(UNFINISHED).tempfile_in(&self.0.directory)?;
            file.write_all(bytes)?;
            file.persist(self.0.directory.join(name))?;
            self.remove_unused()
        };
        if let Err(error) = save() {
            tracing::warn!(target: "slotvm::cache", name, %error, "file not written");
        }
    }

    /// Removes files if all are too large together. Other processes may be doing the same.
    fn remove_unused(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified()?;
            if name.ends_with(".vmc") {
                files.push((used, metadata.len(), entry.path()));
            } else if name.starts_with(UNFINISHED)
                && used.elapsed().is_ok_and(|age| age > UNFINISHED_AGE_MAX)
            {
                _ = fs::remove_file(entry.path());
            }
        }
        let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
        if size <= self.0.size_max {
            return Ok(());
        }
        files.sort();
        for (_, bytes, path) in files {
            if size <= self.0.size_max / 100 * LEFT_PERCENT {
                break;
            }
            _ = fs::remove_file(path);
            size -= bytes;
        }
        Ok(())
    }
}

/// The directory for the code of a user.
fn default_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let caches = variable("XDG_CACHE_HOME").filter(is_absolute);
    let caches = caches.or_else(|| Some(variable("HOME").filter(is_absolute)?.join(".cache")));
    Some(caches?.join("slotvm"))
}

/// Makes the directory and its key if they are not there, and returns the key.
fn prepare(directory: &Path) -> io::Result<[u8; 32]> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let metadata = fs::metadata(directory)?;
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    let check = |what: &str, metadata: &fs::Metadata, others: u32| {
        if metadata.uid() != user {
            return Err(io::Error::other(format!("another user owns {what}")));
        }
        if metadata.mode() & others != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(io::Error::other(format!("others may use {what}: its mode is {mode:o}")));
        }
        Ok(())
    };
    check("the directory", &metadata, 0o022)?;
    let path = directory.join(KEY);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_key(directory)?;
            File::open(&path)?
        }
        file => file?,
    };
    check("the key", &file.metadata()?, 0o077)?;
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| io::Error::other(format!("the key has {length} bytes, not 32")))
}

/// Writes a new key, unless another process was as fast.
fn make_key(directory: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    file.as_file().set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(&key)?;
    match file.persist_noclobber(directory.join(KEY)) {
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result.map(drop).map_err(|error| error.error),
    }
}
