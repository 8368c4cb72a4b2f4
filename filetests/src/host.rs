//! Host functions for programs under test: module `env`, as `vmrun` provides it, with the output kept
//! in a buffer.
//!
//! There is no input and there are no arguments, and the clock counts its readings, so that a program
//! does the same each time.

use std::sync::Arc;

use slotvm_bytecode::module::{Import, ImportKind};
use slotvm_bytecode::{FuncType, TrapCode, ValType, VerifiedModule};
use slotvm_runtime::{Error, Extern, HostFn, Store, Trap};

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
    /// The function that an import names, if it is one.
    pub fn from_import(import: &Import) -> Option<HostFunc> {
        use HostFunc::*;
        let ("env", ImportKind::Func(_)) = (import.module.as_str(), &import.kind) else {
            return None;
        };
        Some(match import.name.as_str() {
            "print_i32" => PrintI32,
            "print_i64" => PrintI64,
            "print_f64" => PrintF64,
            "print_char" => PrintChar,
            "print_str" => PrintStr,
            "read_line" => ReadLine,
            "args" => Args,
            "clock_ns" => ClockNs,
            _ => return None,
        })
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

/// Makes the functions that a module imports from `env`. The store's data are a [`Console`].
///
/// # Errors
/// If the module imports anything else.
pub fn imports(store: &mut Store, module: &VerifiedModule) -> Result<Vec<Extern>, Error> {
    let mut externs = Vec::with_capacity(module.module().imports.len());
    for import in &module.module().imports {
        let Some(f) = HostFunc::from_import(import) else {
            let (module, name) = (&import.module, &import.name);
            return Err(Error::Usage(format!("there is no host function `{module}` `{name}`")));
        };
        externs.push(Extern::Func(store.new_host_func(f.ty(), closure(f))?));
    }
    Ok(externs)
}

fn closure(f: HostFunc) -> HostFn {
    Arc::new(move |call| {
        let mut console = std::mem::take(self::console(call.store));
        let memory = call.instance.and_then(|instance| call.store.instance_memory(instance));
        let memory = memory.map_or(&[][..], |memory| call.store.memory(memory).data());
        let result = console.run(f, call.cells, memory);
        *self::console(call.store) = console;
        if let Some(cell) = result.map_err(|code| Trap::new(code, []))? {
            call.cells[0] = cell;
        }
        Ok(())
    })
}

/// The console that is a store's data.
///
/// # Panics
/// If the data are something else.
pub fn console(store: &mut Store) -> &mut Console {
    store.data_mut().downcast_mut().expect("the store's data are a console")
}
