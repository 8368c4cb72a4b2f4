//! Host functions for programs under test: module `env`, as `vmrun` provides it, with the output kept
//! in a buffer.
//!
//! There is no input and there are no arguments, and the clock counts its readings, so that a program
//! does the same each time.

use slotvm::{Caller, Engine, FuncType, Linker, Trap, TrapCode, Val, ValType};
use slotvm_bytecode::module::{Import, ImportKind};

/// What the host functions work on.
#[derive(Debug, Default)]
pub struct Console {
    /// What was printed.
    pub output: Vec<u8>,
    clock_ns: u64,
}

/// A host function.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HostFunc {
    /// Prints an `i32`.
    PrintI32,
    /// Prints an `i64`.
    PrintI64,
    /// Prints an `f64`: the shortest decimal that reads back as the same number.
    PrintF64,
    /// Prints the character with a code point.
    PrintChar,
    /// Prints bytes of memory.
    PrintStr,
    /// Reads a line: there is none.
    ReadLine,
    /// Gets the program's arguments: there are none.
    Args,
    /// Counts its calls.
    ClockNs,
}

impl HostFunc {
    /// All functions.
    pub const ALL: &'static [HostFunc] = &[
        HostFunc::PrintI32,
        HostFunc::PrintI64,
        HostFunc::PrintF64,
        HostFunc::PrintChar,
        HostFunc::PrintStr,
        HostFunc::ReadLine,
        HostFunc::Args,
        HostFunc::ClockNs,
    ];

    /// The function that an import names, if it is one.
    pub fn from_import(import: &Import) -> Option<HostFunc> {
        let is_host = import.module == "env" && matches!(import.kind, ImportKind::Func(_));
        Self::ALL.iter().copied().find(|f| is_host && f.name() == import.name)
    }

    /// Its name in the module `env`.
    pub const fn name(self) -> &'static str {
        match self {
            HostFunc::PrintI32 => "print_i32",
            HostFunc::PrintI64 => "print_i64",
            HostFunc::PrintF64 => "print_f64",
            HostFunc::PrintChar => "print_char",
            HostFunc::PrintStr => "print_str",
            HostFunc::ReadLine => "read_line",
            HostFunc::Args => "args",
            HostFunc::ClockNs => "clock_ns",
        }
    }

    /// Its type.
    pub fn ty(self) -> FuncType {
        use ValType::{F64, I32, I64};
        let (params, results): (&[ValType], &[ValType]) = match self {
            HostFunc::PrintI32 | HostFunc::PrintChar => (&[I32], &[]),
            HostFunc::PrintI64 => (&[I64], &[]),
            HostFunc::PrintF64 => (&[F64], &[]),
            HostFunc::PrintStr => (&[I32, I32], &[]),
            HostFunc::ReadLine | HostFunc::Args => (&[I32, I32], &[I32]),
            HostFunc::ClockNs => (&[], &[I64]),
        };
        FuncType::new(params, results)
    }
}

impl Console {
    /// Runs a function of the host with arguments as cells. Returns its result, if it has one.
    ///
    /// # Errors
    /// If it accesses memory outside its bounds.
    pub fn run(
        &mut self,
        f: HostFunc,
        args: &[u64],
        memory: &[u8],
    ) -> Result<Option<u64>, TrapCode> {
        match f {
            HostFunc::PrintI32 => self.print(&(args[0] as i32).to_string()),
            HostFunc::PrintI64 => self.print(&(args[0] as i64).to_string()),
            HostFunc::PrintF64 => self.print(&f64::from_bits(args[0]).to_string()),
            HostFunc::PrintChar => {
                let char = char::from_u32(args[0] as u32);
                self.print(char.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
            }
            HostFunc::PrintStr => {
                let (start, len) = (args[0] as usize, args[1] as usize);
                let bytes = memory.get(start..start + len).ok_or(TrapCode::MemoryOutOfBounds)?;
                self.output.extend_from_slice(bytes);
            }
            HostFunc::ReadLine | HostFunc::Args => return Ok(Some(0)),
            HostFunc::ClockNs => {
                self.clock_ns += 1;
                return Ok(Some(self.clock_ns));
            }
        }
        Ok(None)
    }

    fn print(&mut self, text: &str) {
        self.output.extend_from_slice(text.as_bytes());
    }
}

/// A linker that provides all functions of the host.
///
/// # Panics
/// Never: their names differ.
pub fn linker(engine: &Engine) -> Linker<Console> {
    let mut linker = Linker::new(engine);
    for &f in HostFunc::ALL {
        let call = move |mut caller: Caller<'_, Console>, args: &[Val], results: &mut [Val]| {
            // The console steps aside, so that memory can be borrowed with it.
            let mut console = std::mem::take(caller.data_mut());
            let memory = caller.memory();
            let memory = memory.map_or(&[][..], |memory| memory.data(&caller));
            let args: Vec<u64> = args.iter().map(cell).collect();
            let result = console.run(f, &args, memory);
            *caller.data_mut() = console;
            if let Some(cell) = result.map_err(|code| Trap::new(code, []))? {
                results[0] = match results[0].ty() {
                    ValType::I64 => Val::I64(cell as i64),
                    _ => Val::I32(cell as i32),
                };
            }
            Ok(())
        };
        linker.func_new("env", f.name(), f.ty(), call).expect("the names differ");
    }
    linker
}

/// A number as a cell.
fn cell(value: &Val) -> u64 {
    match *value {
        Val::I32(value) => u64::from(value as u32),
        Val::I64(value) => value as u64,
        Val::F32(bits) => u64::from(bits),
        Val::F64(bits) => bits,
        _ => unreachable!("functions of the host take numbers"),
    }
}
