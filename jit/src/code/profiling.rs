//! Reports the names of native functions to profilers, in a perf map or a jitdump file.
//!
//! Both file names contain the process id, so all engines of a process share the files. The first engine
//! that needs a file creates it, and replaces one left by an earlier process with the same id. Neither
//! format can record that code was freed: a profiler takes the last function placed at an address.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::config::ProfilingStrategy;

/// The files that function names are written to.
#[derive(Debug)]
pub(crate) enum Profiler {
    None,
    PerfMap(&'static Mutex<File>),
    JitDump(&'static Mutex<JitDump>),
}

impl Profiler {
    /// # Errors
    /// Fails if the file cannot be created.
    pub(crate) fn new(strategy: ProfilingStrategy) -> io::Result<Profiler> {
        static PERF_MAP: OnceLock<io::Result<Mutex<File>>> = OnceLock::new();
        static JIT_DUMP: OnceLock<io::Result<Mutex<JitDump>>> = OnceLock::new();
        let pid = std::process::id();
        let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        Ok(match strategy {
            ProfilingStrategy::None => Profiler::None,
            ProfilingStrategy::PerfMap => {
                let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
                let file = PERF_MAP.get_or_init(|| Ok(Mutex::new(new_file(&path)?)));
                Profiler::PerfMap(file.as_ref().map_err(copy)?)
            }
            ProfilingStrategy::JitDump => {
                let path = PathBuf::from(format!("jit-{pid}.dump"));
                let dump = JIT_DUMP.get_or_init(|| Ok(Mutex::new(JitDump::new(&path)?)));
                Profiler::JitDump(dump.as_ref().map_err(copy)?)
            }
        })
    }

    /// Whether anybody wants to know.
    pub(crate) fn listens(&self) -> bool {
        !matches!(self, Profiler::None)
    }

    /// Reports placed functions, each with its name. Functions that cannot be written are missing from the
    /// profile.
    pub(crate) fn report(&self, mut funcs: impl Iterator<Item = (Range<usize>, String)>) {
        let _: io::Result<()> = match self {
            Profiler::None => Ok(()),
            Profiler::PerfMap(file) => {
                let mut text = String::new();
                for (code, name) in funcs {
                    // One line each; perf accepts any other character in a name.
                    let name = name.replace('\n', " ");
                    text += &format!("{:x} {:x} {name}\n", code.start, code.len());
                }
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(text.as_bytes())
            }
            Profiler::JitDump(dump) => {
                let mut dump = dump.lock().unwrap_or_else(PoisonError::into_inner);
                funcs.try_for_each(|(code, name)| dump.code_load(code, &name))
            }
        };
    }
}

/// Creates an append-only file that belongs to this process alone.
fn new_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // In a directory that all can write to, `create_new` follows no link that another user has put there.
    OpenOptions::new().read(true).append(true).create_new(true).open(path)
}

/// A file in the format that the kernel's `tools/perf/Documentation/jitdump-specification.txt` defines.
#[derive(Debug)]
pub(crate) struct JitDump {
    file: File,
    n_funcs: u64,
}

const HEADER_BYTES: u32 = 40;
/// Size of a code-load record without name and code.
const CODE_LOAD_BYTES: usize = 56;
#[cfg(target_arch = "x86_64")]
const ELF_MACHINE: u32 = 62;
#[cfg(target_arch = "aarch64")]
const ELF_MACHINE: u32 = 183;

impl JitDump {
    fn new(path: &Path) -> io::Result<JitDump> {
        let mut file = new_file(path)?;
        let mut header = Vec::with_capacity(HEADER_BYTES as usize);
        for word in [0x4a69_5444, 1, HEADER_BYTES, ELF_MACHINE, 0, std::process::id()] {
            header.extend(word.to_ne_bytes());
        }
        header.extend(timestamp().to_ne_bytes());
        header.extend(0u64.to_ne_bytes());
        file.write_all(&header)?;
        // `perf inject` finds the file by an executable mapping of it among the events.
        // SAFETY: a new mapping at an address that the system chooses; it is never accessed.
        let mapping = unsafe {
            let protection = libc::PROT_READ | libc::PROT_EXEC;
            let bytes = HEADER_BYTES as usize;
            libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(JitDump { file, n_funcs: 0 })
    }

    fn code_load(&mut self, code: Range<usize>, name: &str) -> io::Result<()> {
        let name = name.replace('\0', " ");
        let bytes = CODE_LOAD_BYTES + name.len() + 1 + code.len();
        let mut record = Vec::with_capacity(bytes);
        // SAFETY: the call has no preconditions.
        let thread = unsafe { libc::gettid() } as u32;
        for word in [0, bytes as u32] {
            record.extend(word.to_ne_bytes());
        }
        record.extend(timestamp().to_ne_bytes());
        for word in [std::process::id(), thread] {
            record.extend(word.to_ne_bytes());
        }
        let address = code.start as u64;
        for word in [address, address, code.len() as u64, self.n_funcs] {
            record.extend(word.to_ne_bytes());
        }
        record.extend(name.as_bytes());
        record.push(0);
        // SAFETY: the caller has placed the code there and keeps it alive during the call.
        record.extend(unsafe {
            std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(code.start), code.len())
        });
        self.n_funcs += 1;
        self.file.write_all(&record)
    }
}

/// The clock of `perf record -k mono`, in nanoseconds.
fn timestamp() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a test, removed on drop.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Temporary {
            Temporary(std::env::temp_dir().join(format!("slotvm-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }

    /// Bytes that stand for code.
    static CODE: [u8; 24] = [7; 24];

    fn range(from: usize, to: usize) -> Range<usize> {
        let base = CODE.as_ptr().expose_provenance();
        base + from..base + to
    }

    #[test]
    fn a_perf_map_has_a_line_for_each_function() {
        let path = Temporary::new("map");
        std::fs::write(&path.0, "left behind").unwrap();
        let file: &'static _ = Box::leak(Box::new(Mutex::new(new_file(&path.0).unwrap())));
        let profiler = Profiler::PerfMap(file);
        let name = String::from;
        profiler.report([(range(0, 8), name("a b")), (range(8, 24), name("c\nd"))].into_iter());
        profiler.report([(range(4, 5), name("e"))].into_iter());
        let base = range(0, 0).start;
        let expected = format!("{:x} 8 a b\n{:x} 10 c d\n{:x} 1 e\n", base, base + 8, base + 4);
        assert_eq!(std::fs::read_to_string(&path.0).unwrap(), expected);
    }

    #[test]
    fn a_jitdump_has_a_record_for_each_function() {
        let path = Temporary::new("dump");
        let dump: &'static _ = Box::leak(Box::new(Mutex::new(JitDump::new(&path.0).unwrap())));
        let profiler = Profiler::JitDump(dump);
        let funcs = [(range(0, 8), "f"), (range(8, 24), "longer")];
        profiler.report(funcs.iter().map(|(code, name)| (code.clone(), name.to_string())));

        let bytes = std::fs::read(&path.0).unwrap();
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!([u32_at(0), u32_at(4), u32_at(8)], [0x4a69_5444, 1, 40]);
        assert_eq!([u32_at(12), u32_at(20)], [ELF_MACHINE, std::process::id()]);
        let (mut at, mut time) = (40, u64_at(24));
        for (i, (code, name)) in funcs.iter().enumerate() {
            assert_eq!(u32_at(at), 0, "a record of code that was placed");
            assert!(u64_at(at + 8) >= time);
            time = u64_at(at + 8);
            assert_eq!(u32_at(at + 16), std::process::id());
            let words = [24, 32, 40, 48].map(|offset| u64_at(at + offset));
            let start = code.start as u64;
            assert_eq!(words, [start, start, code.len() as u64, i as u64]);
            let end = at + u32_at(at + 4) as usize;
            assert_eq!(bytes[at + 56..end - code.len()], *format!("{name}\0").as_bytes());
            assert_eq!(bytes[end - code.len()..end], CODE[..code.len()]);
            at = end;
        }
        assert_eq!(at, bytes.len());
    }
}
