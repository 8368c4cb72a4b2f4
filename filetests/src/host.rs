//! Host functions for programs under test: module `env`, as `vmrun` provides it, with the output kept
//! in a buffer.
//!
//! There is no input and there are no arguments, and the clock counts its readings, so that a program
//! does the same each time.

use std::sync::Arc;

use slotvm_bytecode::module::ImportKind;
use slotvm_bytecode::{FuncType, ValType, VerifiedModule};
use slotvm_runtime::{Error, Extern, HostCall, HostFn, Store, Trap};

/// What the host functions work on: the data of the store.
#[derive(Debug, Default)]
pub struct Console {
    /// What was printed.
    pub output: Vec<u8>,
    clock_ns: u64,
}

/// Makes the functions that a module imports from `env`. The store's data are a [`Console`].
///
/// # Errors
/// If the module imports anything else.
pub fn imports(store: &mut Store, module: &VerifiedModule) -> Result<Vec<Extern>, Error> {
    let module = module.module();
    let mut externs = Vec::with_capacity(module.imports.len());
    for import in &module.imports {
        let known = match (import.module.as_str(), &import.kind) {
            ("env", ImportKind::Func(_)) => host_fn(&import.name),
            _ => None,
        };
        let Some((ty, f)) = known else {
            let (module, name) = (&import.module, &import.name);
            return Err(Error::Usage(format!("there is no host function `{module}` `{name}`")));
        };
        externs.push(Extern::Func(store.new_host_func(ty, f)?));
    }
    Ok(externs)
}

/// Takes what was printed so far out of a store whose data are a [`Console`].
///
/// # Panics
/// If the data are something else.
pub fn take_output(store: &mut Store) -> Vec<u8> {
    std::mem::take(&mut console(store).output)
}

fn console(store: &mut Store) -> &mut Console {
    store.data_mut().downcast_mut().expect("the store's data are a console")
}

/// The type and the behaviour of a host function.
fn host_fn(name: &str) -> Option<(FuncType, HostFn)> {
    use ValType::{F64, I32, I64};
    let (params, results, f): (&[ValType], &[ValType], HostFn) = match name {
        "print_i32" => (&[I32], &[], print(|cell| (cell as i32).to_string())),
        "print_i64" => (&[I64], &[], print(|cell| (cell as i64).to_string())),
        "print_f64" => (&[F64], &[], print(|cell| f64::from_bits(cell).to_string())),
        "print_char" => (&[I32], &[], print(character)),
        "print_str" => (&[I32, I32], &[], Arc::new(print_str)),
        "read_line" | "args" => (&[I32, I32], &[I32], Arc::new(nothing)),
        "clock_ns" => (&[], &[I64], Arc::new(clock_ns)),
        _ => return None,
    };
    Some((FuncType::new(params, results), f))
}

fn print(text: fn(u64) -> String) -> HostFn {
    Arc::new(move |call| {
        console(call.store).output.extend_from_slice(text(call.cells[0]).as_bytes());
        Ok(())
    })
}

fn character(cell: u64) -> String {
    char::from_u32(cell as u32).unwrap_or(char::REPLACEMENT_CHARACTER).into()
}

fn print_str(call: &mut HostCall<'_>) -> Result<(), Error> {
    let memory = call.instance.and_then(|instance| call.store.instance_memory(instance));
    let Some(memory) = memory else {
        return Err(Error::Usage("print_str needs a memory".into()));
    };
    let bytes = call.store.memory(memory).slice(call.cells[0], call.cells[1]);
    let bytes = bytes.map_err(|code| Trap::new(code, []))?.to_vec();
    console(call.store).output.extend_from_slice(&bytes);
    Ok(())
}

/// Reads nothing, since there is nothing to read.
fn nothing(call: &mut HostCall<'_>) -> Result<(), Error> {
    call.cells[0] = 0;
    Ok(())
}

fn clock_ns(call: &mut HostCall<'_>) -> Result<(), Error> {
    let console = console(call.store);
    console.clock_ns += 1;
    call.cells[0] = console.clock_ns;
    Ok(())
}
