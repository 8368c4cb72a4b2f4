//! Runs programs. They print by the functions that `vmrun` has, so `vmrun` runs them as well.

use std::io::Write;

use slotvm::{Caller, Engine, Error, Linker, Memory, Module, Store};

use crate::emit::Compiled;

/// Runs a program, which prints to `out`. What it has printed before it fails is written, too.
///
/// # Errors
/// Fails if the program traps or the output cannot be written.
pub fn run<W: Write + Send + 'static>(
    engine: &Engine,
    compiled: &Compiled,
    out: W,
) -> Result<(), Error> {
    let module = Module::from_bytecode(engine, compiled.module.clone())?;
    let mut linker = Linker::new(engine);
    define(&mut linker)?;
    let mut store = Store::new(engine, out);
    let instance = linker.instantiate(&mut store, &module)?;
    let main = instance.get_typed_func::<(), ()>(&store, "main")?;
    let result = main.call(&mut store, ());
    store.data_mut().flush().map_err(Error::host)?;
    result
}

fn define<W: Write + Send + 'static>(linker: &mut Linker<W>) -> Result<(), Error> {
    type C<'a, W> = Caller<'a, W>;
    linker.func_wrap("env", "print_i32", |mut c: C<'_, W>, number: i32| {
        write!(c.data_mut(), "{number}").map_err(Error::host)
    })?;
    linker.func_wrap("env", "print_char", |mut c: C<'_, W>, code: i32| {
        let c_or_not = char::from_u32(code as u32);
        let printed = c_or_not.unwrap_or(char::REPLACEMENT_CHARACTER);
        write!(c.data_mut(), "{printed}").map_err(Error::host)
    })?;
    linker.func_wrap("env", "print_str", |mut c: C<'_, W>, start: i32, length: i32| {
        let memory: Memory = c.memory().expect("programs have a memory");
        let mut bytes = vec![0; length as usize];
        memory.read(&c, start as u32 as usize, &mut bytes).map_err(Error::host)?;
        c.data_mut().write_all(&bytes).map_err(Error::host)
    })?;
    Ok(())
}
