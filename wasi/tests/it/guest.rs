//! A program that forwards calls to WASI, and helpers for tests that call it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use slotvm::{
    Config, Engine, Error, Func, Linker, Memory, Module, SlotMode, Store, Tier, Val, ValType,
};
use slotvm_wasi::{MODULE, WasiCtx, WasiCtxBuilder, add_to_linker};
use tempfile::TempDir;

use crate::errnos::SUCCESS;

/// All functions with their parameters (`i` is an i32, `I` an i64), from the specification. All except
/// `proc_exit` return an i32.
pub(crate) const FUNCTIONS: [(&str, &str); 46] = [
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "iIi"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("fd_advise", "iIIi"),
    ("fd_allocate", "iII"),
    ("fd_close", "i"),
    ("fd_datasync", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "iII"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "iI"),
    ("fd_filestat_set_times", "iIIi"),
    ("fd_pread", "iiiIi"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_prestat_get", "ii"),
    ("fd_pwrite", "iiiIi"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiiIi"),
    ("fd_renumber", "ii"),
    ("fd_seek", "iIii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiiIIi"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiiIIii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("poll_oneoff", "iiii"),
    ("proc_exit", "i"),
    ("proc_raise", "i"),
    ("random_get", "ii"),
    ("sched_yield", ""),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
];

/// The size of the program's memory in bytes.
pub(crate) const MEMORY_BYTES: u32 = 2 << 16;

/// An address after the end of the memory.
pub(crate) const OUTSIDE: i64 = MEMORY_BYTES as i64;

/// The time after which the engine interrupts a call. Only tests of interruption come near it.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The program as WebAssembly text.
fn source(memory: &str) -> String {
    let (mut imports, mut exports) = (String::new(), String::new());
    for (name, params) in FUNCTIONS {
        let types: String =
            params.chars().map(|p| if p == 'i' { " i32" } else { " i64" }).collect();
        let ty = match name {
            "proc_exit" => format!("(param{types})"),
            _ => format!("(param{types}) (result i32)"),
        };
        let args: String = (0..params.len()).map(|i| format!(" (local.get {i})")).collect();
        writeln!(imports, "(import \"{MODULE}\" \"{name}\" (func ${name} {ty}))").unwrap();
        writeln!(exports, "(func (export \"{name}\") {ty} (call ${name}{args}))").unwrap();
    }
    format!("(module {imports} {memory} {exports})")
}

/// An engine and the program compiled for it.
#[derive(Debug)]
pub(crate) struct TestEngine {
    pub(crate) module: Module,
}

impl TestEngine {
    pub(crate) fn new(tier: Tier, timeout: Duration, memory: &str) -> TestEngine {
        let mut config = Config::new();
        config.tier(tier).slots(SlotMode::Ssa).timeout(Some(timeout));
        let engine = Engine::new(&config).expect("the configuration is supported");
        let binary = wat::parse_str(source(memory)).expect("valid text");
        TestEngine { module: Module::new(&engine, binary).expect("the module compiles") }
    }
}

/// Returns the engines: the interpreter, and native code with slots in registers.
pub(crate) fn engines() -> &'static [TestEngine] {
    static ENGINES: OnceLock<[TestEngine; 2]> = OnceLock::new();
    ENGINES.get_or_init(|| {
        let memory = "(memory (export \"memory\") 2 2)";
        [Tier::Interpreter, Tier::Jit].map(|tier| TestEngine::new(tier, TIMEOUT, memory))
    })
}

/// A running program.
pub(crate) struct Guest {
    pub(crate) store: Store<WasiCtx>,
    funcs: HashMap<&'static str, Func>,
    memory: Option<Memory>,
    /// The address of the next bytes that a test writes.
    next: u32,
}

/// The address of results: the start of the memory.
pub(crate) const OUT: i64 = 0;
/// The address of a second result.
pub(crate) const OUT_2: i64 = 512;
/// The first address that tests write to.
const FIRST: u32 = 4096;

impl Guest {
    pub(crate) fn new(engine: &TestEngine, ctx: WasiCtx) -> Guest {
        let module = &engine.module;
        let mut linker = Linker::new(module.engine());
        add_to_linker(&mut linker, |ctx: &mut WasiCtx| ctx).expect("the names are free");
        let mut store = Store::new(module.engine(), ctx);
        let instance = linker.instantiate(&mut store, module).expect("all imports are defined");
        let func = |name| instance.get_func(&store, name).expect("it is exported");
        let funcs = FUNCTIONS.iter().map(|&(name, _)| (name, func(name))).collect();
        let memory = instance.get_memory(&store, "memory");
        Guest { store, funcs, memory, next: FIRST }
    }

    /// Calls a function. Returns its error number, or the error that ends the program.
    pub(crate) fn try_call(&mut self, name: &str, args: &[i64]) -> Result<u32, Error> {
        let func = self.funcs[name];
        let ty = func.ty(&self.store);
        assert_eq!(ty.params.len(), args.len(), "{name}");
        let params: Vec<Val> = (ty.params.iter().zip(args))
            .map(
                |(ty, &arg)| if *ty == ValType::I32 { Val::I32(arg as i32) } else { Val::I64(arg) },
            )
            .collect();
        let mut results = vec![Val::I32(0); ty.results.len()];
        func.call(&mut self.store, &params, &mut results)?;
        Ok(results.first().map_or(SUCCESS, |result| match result {
            Val::I32(errno) => *errno as u32,
            other => panic!("expected an i32 error number, found {other:?}"),
        }))
    }

    /// Calls a function that does not end the program. Returns its error number.
    #[track_caller]
    pub(crate) fn call(&mut self, name: &str, args: &[i64]) -> u32 {
        self.try_call(name, args).unwrap_or_else(|error| panic!("{name}{args:?}: {error}"))
    }

    /// Calls a function that must succeed.
    #[track_caller]
    pub(crate) fn ok(&mut self, name: &str, args: &[i64]) {
        let errno = self.call(name, args);
        assert_eq!(errno, SUCCESS, "{name}{args:?}");
    }

    pub(crate) fn memory(&mut self) -> &mut [u8] {
        match self.memory {
            Some(memory) => memory.data_mut(&mut self.store),
            None => &mut [],
        }
    }

    /// Returns a copy of bytes of the memory.
    pub(crate) fn bytes(&mut self, address: i64, len: usize) -> Vec<u8> {
        self.memory()[address as usize..][..len].to_vec()
    }

    pub(crate) fn u16(&mut self, address: i64) -> u16 {
        u16::from_le_bytes(self.bytes(address, 2).try_into().unwrap())
    }

    pub(crate) fn u32(&mut self, address: i64) -> u32 {
        u32::from_le_bytes(self.bytes(address, 4).try_into().unwrap())
    }

    pub(crate) fn u64(&mut self, address: i64) -> u64 {
        u64::from_le_bytes(self.bytes(address, 8).try_into().unwrap())
    }

    /// Writes bytes to a fresh place. Returns their address.
    pub(crate) fn put(&mut self, bytes: impl AsRef<[u8]>) -> i64 {
        let (bytes, at) = (bytes.as_ref(), self.next as usize);
        self.memory()[at..][..bytes.len()].copy_from_slice(bytes);
        // Leave a gap of one byte, so that the next address is not aligned: addresses need not be.
        self.next += bytes.len() as u32 + 1;
        at as i64
    }

    /// Writes text to a fresh place. Returns its address and length.
    pub(crate) fn text(&mut self, text: &str) -> [i64; 2] {
        [self.put(text), text.len() as i64]
    }

    /// Writes an array of buffers to a fresh place. Returns its address and length.
    pub(crate) fn buffers(&mut self, buffers: &[[i64; 2]]) -> [i64; 2] {
        let words = buffers.as_flattened().iter().flat_map(|&word| (word as u32).to_le_bytes());
        [self.put(words.collect::<Vec<u8>>()), buffers.len() as i64]
    }

    /// Returns an array of one buffer with these bytes.
    pub(crate) fn buffer(&mut self, bytes: impl AsRef<[u8]>) -> [i64; 2] {
        let len = bytes.as_ref().len() as i64;
        let at = self.put(bytes);
        self.buffers(&[[at, len]])
    }

    /// Writes to a descriptor. Returns the error number.
    pub(crate) fn write(&mut self, fd: i64, bytes: impl AsRef<[u8]>) -> u32 {
        let [at, n] = self.buffer(bytes);
        self.call("fd_write", &[fd, at, n, OUT])
    }

    /// Reads from a descriptor.
    #[track_caller]
    pub(crate) fn read(&mut self, fd: i64, len: usize) -> Vec<u8> {
        let into = self.put(vec![0; len]);
        let [at, n] = self.buffers(&[[into, len as i64]]);
        self.ok("fd_read", &[fd, at, n, OUT]);
        let n = self.u32(OUT) as usize;
        self.bytes(into, n)
    }

    /// Opens a path below a directory. Returns the descriptor or the error number.
    pub(crate) fn open(&mut self, dir: i64, path: &str, how: Open) -> Result<i64, u32> {
        let [at, len] = self.text(path);
        let Open { follow, flags, rights, inheriting, fd_flags } = how;
        let args = [dir, follow.into(), at, len, flags, rights, inheriting, fd_flags, OUT];
        match self.call("path_open", &args) {
            SUCCESS => Ok(self.u32(OUT).into()),
            errno => Err(errno),
        }
    }

    /// Calls a function with a descriptor and a path. Returns the error number.
    pub(crate) fn at(&mut self, name: &str, dir: i64, path: &str) -> u32 {
        let [at, len] = self.text(path);
        self.call(name, &[dir, at, len])
    }

    /// Creates a symbolic link. Returns the error number.
    pub(crate) fn symlink(&mut self, target: &str, dir: i64, path: &str) -> u32 {
        let [target, target_len] = self.text(target);
        let [path, len] = self.text(path);
        self.call("path_symlink", &[target, target_len, dir, path, len])
    }

    /// Calls a function with two descriptors and paths. Returns the error number.
    pub(crate) fn rename(&mut self, dir: i64, old: &str, new_dir: i64, new: &str) -> u32 {
        let [old, old_len] = self.text(old);
        let [new, new_len] = self.text(new);
        self.call("path_rename", &[dir, old, old_len, new_dir, new, new_len])
    }

    /// Creates a hard link. Returns the error number.
    pub(crate) fn link(&mut self, dir: i64, old: &str, new_dir: i64, new: &str) -> u32 {
        let [old, old_len] = self.text(old);
        let [new, new_len] = self.text(new);
        self.call("path_link", &[dir, 0, old, old_len, new_dir, new, new_len])
    }

    /// Returns the type, size and number of links of a path's target, or the error number.
    pub(crate) fn stat(
        &mut self,
        dir: i64,
        path: &str,
        follow: bool,
    ) -> Result<(u8, u64, u64), u32> {
        let [at, len] = self.text(path);
        match self.call("path_filestat_get", &[dir, follow.into(), at, len, OUT]) {
            SUCCESS => Ok((self.bytes(OUT + 16, 1)[0], self.u64(OUT + 32), self.u64(OUT + 24))),
            errno => Err(errno),
        }
    }
}

/// The arguments of `path_open`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Open {
    pub(crate) follow: bool,
    pub(crate) flags: i64,
    pub(crate) rights: i64,
    pub(crate) inheriting: i64,
    pub(crate) fd_flags: i64,
}

pub(crate) const CREAT: i64 = 1;
pub(crate) const DIRECTORY: i64 = 2;
pub(crate) const EXCL: i64 = 4;
pub(crate) const TRUNC: i64 = 8;

/// All rights.
pub(crate) const ALL: i64 = (1 << 30) - 1;
/// The rights to write, to allocate, and to set the size.
pub(crate) const WRITES: i64 = 1 << 6 | 1 << 8 | 1 << 22;

impl Open {
    /// Open for reading and writing.
    pub(crate) const ALL: Open =
        Open { follow: false, flags: 0, rights: ALL, inheriting: ALL, fd_flags: 0 };
    /// Open for everything except writing.
    pub(crate) const READ: Open = Open { rights: ALL & !WRITES, ..Open::ALL };
    /// Open a file, which is created if necessary.
    pub(crate) const CREATE: Open = Open { flags: CREAT, ..Open::ALL };
    /// Open a directory.
    pub(crate) const DIR: Open = Open { flags: DIRECTORY, ..Open::READ };
}

/// The first preopened directory of a program.
pub(crate) const DIR: i64 = 3;

/// A folder of the host. It contains the folder `inside`, which the program has open, and other things that
/// the program must not touch.
pub(crate) struct Folder {
    pub(crate) root: TempDir,
    /// A place to which the test itself moves things.
    pub(crate) elsewhere: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        let [root, elsewhere] =
            [(), ()].map(|()| TempDir::new().expect("temporary folders can be created"));
        std::fs::create_dir(root.path().join("inside")).unwrap();
        std::fs::create_dir(root.path().join("outside")).unwrap();
        std::fs::write(root.path().join("outside/secret"), "secret").unwrap();
        std::fs::write(root.path().join("beside"), "beside").unwrap();
        Folder { root, elsewhere }
    }

    pub(crate) fn inside(&self) -> std::path::PathBuf {
        self.root.path().join("inside")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, contents: &str) {
        std::fs::write(self.inside().join(path), contents).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.inside().join(path)).unwrap()
    }

    pub(crate) fn builder(&self) -> WasiCtxBuilder {
        let mut builder = WasiCtx::builder();
        builder.preopened_dir(self.inside(), "/").expect("the folder can be opened");
        builder
    }

    /// Returns everything outside of the program's folder, as text.
    pub(crate) fn others(&self) -> String {
        let mut lines = Vec::new();
        for folder in [self.root.path().to_owned(), self.root.path().join("outside")] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path != self.inside() {
                    lines.push(format!("{}: {}", path.display(), describe(&path)));
                }
            }
        }
        lines.sort();
        lines.join("\n")
    }
}

/// Returns everything that a program can change about a file or directory. The access time is left out,
/// since this function reads files; setting it would show in the change time.
fn describe(path: &Path) -> String {
    let metadata = path.symlink_metadata().unwrap();
    let contents = if metadata.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
    let times =
        [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
    format!("{contents:?} {:o} {} {} {times:?}", metadata.mode(), metadata.ino(), metadata.nlink())
}

/// Runs a test in each engine, with a folder of its own. Everything outside of the folder must stay the
/// same.
pub(crate) fn with_folder(test: impl Fn(&mut Guest, &Folder)) {
    with_ctx(WasiCtxBuilder::build, test);
}

/// Does the same, with a WASI state that the test configures.
pub(crate) fn with_ctx(
    build: impl Fn(&mut WasiCtxBuilder) -> WasiCtx,
    test: impl Fn(&mut Guest, &Folder),
) {
    for engine in engines() {
        let folder = Folder::new();
        let others = folder.others();
        let mut guest = Guest::new(engine, build(&mut folder.builder()));
        test(&mut guest, &folder);
        assert_eq!(folder.others(), others, "something outside of the folder has changed");
    }
}
