//! Fuzz target: bytes as calls of the path functions of WASI, while the host changes the directory.
//!
//! The program has one directory open, `inside`. Beside it are a file and a directory that no path may reach,
//! though links inside point to them. In half of the sequences, a host thread repeatedly replaces a directory
//! inside by such a link. An escape shows in the contents of a file, in names, in an inode number, or in a
//! change outside at the end.

mod folder;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use slotvm::{Config, Engine, Instance, Linker, Memory, Module, Store, Tier, Val, ValType};
use slotvm_bytecode::builder::ModuleBuilder;
use slotvm_wasi::{WasiCtx, add_to_linker};

use super::{Verdict, ensure};
use crate::choices::Choices;
use folder::{Folder, SECRET, SECRET_NAME};

/// Functions, and their parameters: a descriptor, a path, flags, an `i32` or `i64` of any value, an address for
/// results, an array of one buffer.
const FUNCTIONS: [(&str, &str); 16] = [
    ("path_open", "dfpoIIer"),
    ("path_open", "dfpoIIer"),
    ("path_open", "dfpoIIer"),
    ("path_filestat_get", "dfpr"),
    ("path_filestat_set_times", "dfpIIt"),
    ("path_create_directory", "dp"),
    ("path_remove_directory", "dp"),
    ("path_unlink_file", "dp"),
    ("path_rename", "dpdp"),
    ("path_link", "dfpdp"),
    ("path_symlink", "pdp"),
    ("path_readlink", "dpblr"),
    ("fd_readdir", "dblCr"),
    ("fd_read", "dar"),
    ("fd_write", "dar"),
    ("fd_close", "d"),
];

/// The components of paths.
const PARTS: [&str; 16] = [
    "a",
    "b",
    "d",
    "e",
    "f",
    "up",
    "out",
    "far",
    "file",
    "..",
    "..",
    ".",
    "",
    "outside",
    "inside",
    SECRET_NAME,
];

/// Number of calls in a sequence.
const CALLS_MAX: usize = 40;
/// The number of the last error, `notcapable`.
const ERRNO_MAX: i32 = 76;
const MODULE: &str = "wasi_snapshot_preview1";

/// Addresses of results, of the array of buffers, of the buffer, and of two paths.
const RESULT: u32 = 0;
const BUFFERS: u32 = 128;
const BUFFER: u32 = 256;
const BUFFER_BYTES: u32 = 700;
const PATHS: [u32; 2] = [1024, 2048];

/// Runs a sequence of calls.
///
/// # Errors
/// Returns a call that has reached outside, or ended in a way that is not allowed.
///
/// # Panics
/// Panics if the host cannot make files.
pub fn check(bytes: &[u8]) -> Result<Verdict, String> {
    let mut choices = Choices::new(bytes);
    let folder = Folder::new();
    let before = folder.outside();
    let program = &programs()[choices.below(2)];
    let is_swapped = choices.percent(50);
    let is_done = AtomicBool::new(false);
    let n_succeeded = std::thread::scope(|scope| {
        if is_swapped {
            scope.spawn(|| folder.swap_until(&is_done));
        }
        let result = run(program, &folder, &mut choices);
        is_done.store(true, Ordering::Relaxed);
        result
    })?;
    ensure(folder.outside() == before, || "something outside has changed".to_owned())?;
    Ok(if n_succeeded == 0 { Verdict::Loaded } else { Verdict::Accepted })
}

/// A module that reexports its imports, in the interpreter and in native code.
fn programs() -> &'static [Module; 2] {
    static PROGRAMS: OnceLock<[Module; 2]> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        [Tier::Interpreter, Tier::Jit].map(|tier| {
            let engine = Engine::new(Config::new().tier(tier)).expect("the machine is supported");
            Module::from_bytecode(&engine, program()).expect("the program is well-typed")
        })
    })
}

fn program() -> slotvm_bytecode::Module {
    let mut module = ModuleBuilder::new();
    let mut names: Vec<(&str, &str)> = FUNCTIONS.to_vec();
    names.dedup();
    let types =
        |params: &str| -> Vec<ValType> { params.chars().flat_map(types).copied().collect() };
    let imports: Vec<_> = names
        .iter()
        .map(|(name, params)| module.import_func(MODULE, name, &types(params), &[ValType::I32]))
        .collect();
    for ((name, params), import) in names.into_iter().zip(imports) {
        let params = types(params);
        let func = module.declare_func("", &params, &[ValType::I32]);
        module.export_func(name, func);
        let mut f = module.define(func);
        for i in 0..params.len() as u32 {
            let param = f.param(i);
            f.local_get(param);
        }
        f.call(import).ret();
        f.finish().expect("it is well-typed");
    }
    let memory = module.memory("", 1, Some(1));
    module.export_memory("memory", memory);
    module.finish().expect("it is well-typed")
}

/// The types of a letter of [`FUNCTIONS`].
fn types(letter: char) -> &'static [ValType] {
    match letter {
        'p' | 'a' => &[ValType::I32, ValType::I32],
        'I' | 'C' => &[ValType::I64],
        _ => &[ValType::I32],
    }
}

/// Makes calls until the choices are exhausted. Returns how many have succeeded.
fn run(program: &Module, folder: &Folder, choices: &mut Choices<'_>) -> Result<usize, String> {
    let mut linker = Linker::new(program.engine());
    add_to_linker(&mut linker, |ctx: &mut WasiCtx| ctx).expect("the names are free");
    let mut builder = WasiCtx::builder();
    builder.preopened_dir(folder.inside(), "/").expect("the folder can be opened");
    let mut store = Store::new(program.engine(), builder.build());
    let instance = linker.instantiate(&mut store, program).map_err(|error| error.to_string())?;
    let memory = instance.get_memory(&store, "memory").expect("it is exported");
    let mut guest = Guest { store, instance, memory };
    let (mut n, mut n_succeeded) = (0, 0);
    while n < CALLS_MAX && !choices.is_exhausted() {
        n_succeeded += usize::from(guest.call(folder, choices)?);
        n += 1;
    }
    Ok(n_succeeded)
}

struct Guest {
    store: Store<WasiCtx>,
    instance: Instance,
    memory: Memory,
}

impl Guest {
    /// Makes a call. Returns whether it has succeeded.
    fn call(&mut self, folder: &Folder, choices: &mut Choices<'_>) -> Result<bool, String> {
        let (name, params) = choices.pick(&FUNCTIONS);
        let mut shown = Vec::new();
        let args = self.args(params, choices, &mut shown);
        let what = || format!("{name}{args:?} {shown:?}");
        self.write(BUFFER, &[0; BUFFER_BYTES as usize]);
        let func = self.instance.get_func(&self.store, name).expect("it is exported");
        let mut results = [Val::I32(-1)];
        func.call(&mut self.store, &args, &mut results)
            .map_err(|error| format!("{}: {error}", what()))?;
        let [Val::I32(errno)] = results else { return Err(format!("{}: {results:?}", what())) };
        ensure((0..=ERRNO_MAX).contains(&errno), || format!("{}: {errno}", what()))?;
        let memory = self.memory.data(&self.store);
        if errno == 0 && matches!(name, "fd_read" | "fd_readdir") {
            let buffer = &memory[BUFFER as usize..][..BUFFER_BYTES as usize];
            let shows = buffer.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes());
            ensure(!shows, || format!("{} shows something outside", what()))?;
        }
        if errno == 0 && name == "path_filestat_get" {
            let inode = memory[RESULT as usize + 8..][..8].try_into().expect("eight bytes");
            let is_outside = folder.inodes().contains(&u64::from_le_bytes(inode));
            ensure(!is_outside, || format!("{} returns the inode of something outside", what()))?;
        }
        Ok(errno == 0)
    }

    fn write(&mut self, at: u32, bytes: &[u8]) {
        self.memory.data_mut(&mut self.store)[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn args(
        &mut self,
        params: &str,
        choices: &mut Choices<'_>,
        shown: &mut Vec<String>,
    ) -> Vec<Val> {
        let mut args = Vec::new();
        let mut n_paths = 0;
        for param in params.chars() {
            let number = |n: u32| Val::I32(n as i32);
            match param {
                // The preopened directory, or a descriptor that was opened.
                'd' => args.push(number(choices.pick(&[3, 3, 3, 3, 4, 4, 5, 6, 7, 2]))),
                'p' => {
                    let path = path(choices, folder::ROOT);
                    self.write(PATHS[n_paths], path.as_bytes());
                    args.extend([number(PATHS[n_paths]), number(path.len() as u32)]);
                    shown.push(path);
                    n_paths += 1;
                }
                'f' => args.push(number(choices.below(2) as u32)),
                // Create, directory, exclusive, truncate.
                'o' => args.push(number(choices.pick(&[0, 0, 1, 2, 3, 8, 9, 5, 15]))),
                // The flags of a descriptor.
                'e' => args.push(number(choices.pick(&[0, 0, 0, 1, 4]))),
                't' => args.push(number(choices.pick(&[0, 5, 10, 1, 4, 15]))),
                'I' => args.push(Val::I64(choices.pick(&[(1 << 30) - 1, -1, 0, 1, 1 << 13]))),
                'C' => args.push(Val::I64(choices.below(4) as i64)),
                'b' => args.push(number(BUFFER)),
                'l' => args.push(number(BUFFER_BYTES)),
                'a' => {
                    let buffer = [BUFFER, BUFFER_BYTES.min(64)].map(u32::to_le_bytes);
                    self.write(BUFFERS, buffer.as_flattened());
                    args.extend([number(BUFFERS), number(1)]);
                }
                _ => args.push(number(RESULT)),
            }
        }
        args
    }
}

/// A path, mostly of a few components.
fn path(choices: &mut Choices<'_>, root: &str) -> String {
    let n = choices.pick(&[1, 1, 2, 2, 2, 3, 4, 12]);
    let parts: Vec<&str> = (0..n).map(|_| choices.pick(&PARTS)).collect();
    let path = parts.join("/");
    match choices.below(16) {
        0 => format!("/{path}"),
        1 => format!("{path}/"),
        2 => format!("{root}/{path}"),
        3 => format!("{path}\0"),
        _ => path,
    }
}
