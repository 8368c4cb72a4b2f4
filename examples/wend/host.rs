//! Runs programs. They print by the functions that `vmrun` has, so `vmrun` runs them as well.

use std::io::Write;

use slotvm::{Caller, Engine, Error, Linker, Memory, MemoryAccessError, Module, Store, TypedFunc};

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
    let mut instance = Instance::new(engine, compiled, out)?;
    let result = instance.run();
    instance.out_mut().flush().map_err(Error::host)?;
    result
}

/// A program that is ready to run, any number of times, and prints to a `W`.
#[derive(Debug)]
pub struct Instance<W: Send + 'static> {
    store: Store<W>,
    main: TypedFunc<(), ()>,
}

impl<W: Write + Send + 'static> Instance<W> {
    /// Makes a program ready.
    ///
    /// # Errors
    /// Fails if the engine cannot compile it, or there is no memory for it.
    pub fn new(engine: &Engine, compiled: &Compiled, out: W) -> Result<Instance<W>, Error> {
        let module = Module::from_bytecode(engine, compiled.module.clone())?;
        let mut linker = Linker::new(engine);
        define(&mut linker)?;
        let mut store = Store::new(engine, out);
        let instance = linker.instantiate(&mut store, &module)?;
        let main = instance.get_typed_func(&store, "main")?;
        Ok(Instance { store, main })
    }

    /// Runs the program.
    ///
    /// # Errors
    /// Fails if it traps or its output cannot be written.
    pub fn run(&mut self) -> Result<(), Error> {
        self.main.call(&mut self.store, ())
    }

    /// Returns the output that the program prints to.
    pub fn out_mut(&mut self) -> &mut W {
        self.store.data_mut()
    }
}

fn define<W: Write + Send + 'static>(linker: &mut Linker<W>) -> Result<(), Error> {
    type C<'a, W> = Caller<'a, W>;
    linker.func_wrap("env", "print_i32", |mut c: C<'_, W>, number: i32| {
        write!(c.data_mut(), "{number}").map_err(Error::host)
    })?;
    linker.func_wrap("env", "print_char", |mut c: C<'_, W>, code: i32| {
        let printed = char::from_u32(code as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        c.data_mut().write_all(printed.encode_utf8(&mut [0; 4]).as_bytes()).map_err(Error::host)
    })?;
    linker.func_wrap("env", "print_str", |mut c: C<'_, W>, start: i32, length: i32| {
        let memory: Memory = c.memory().expect("programs have a memory");
        let (bytes, out) = memory.data_and_store_mut(&mut c);
        let (start, length) = (start as u32 as usize, length as u32 as usize);
        let text = bytes.get(start..).and_then(|bytes| bytes.get(..length));
        out.write_all(text.ok_or_else(|| Error::host(MemoryAccessError))?).map_err(Error::host)
    })?;
    Ok(())
}
