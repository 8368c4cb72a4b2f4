//! Host functions of `vmrun`, which programs import from module `env`.
//!
//! | function | effect |
//! |---|---|
//! | `print_i32(i32)`, `print_i64(i64)` | prints the number, signed, in decimal |
//! | `print_f64(f64)` | prints the shortest decimal that reads back as the same number |
//! | `print_char(i32)` | prints the character with this code point |
//! | `print_str(ptr: i32, len: i32)` | prints bytes of memory 0 |
//! | `read_line(ptr: i32, cap: i32) -> i32` | reads a line including its end, like `fgets`: at most `cap` bytes, the rest with the next call; returns the number of bytes, 0 at the end of the input |
//! | `clock_ns() -> i64` | nanoseconds since the program started, monotonic |
//! | `args(ptr: i32, cap: i32) -> i32` | writes the program's arguments, each followed by a zero byte, cut at `cap` bytes; returns the number of bytes needed |
//!
//! Output is buffered, and written before `vmrun` exits, even after a trap.
//!
//! Programs can also import WASI preview 1 from `wasi_snapshot_preview1`.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use slotvm::{Caller, Engine, Error, Linker, Memory, Trap, TrapCode};
use slotvm_wasi::WasiCtx;

/// The state of the host functions.
pub struct Host {
    out: Box<dyn Write + Send>,
    input: Box<dyn BufRead + Send>,
    /// The unread rest of the current input line.
    line: Vec<u8>,
    args: Vec<u8>,
    start: Instant,
    wasi: WasiCtx,
}

impl Host {
    /// The state of host functions that print to `out`, read from `input` and pass on these arguments.
    pub fn new(
        out: impl Write + Send + 'static,
        input: impl BufRead + Send + 'static,
        args: &[String],
    ) -> Host {
        let args = args.iter().flat_map(|arg| arg.bytes().chain([0])).collect();
        Host {
            out: Box::new(out),
            input: Box::new(input),
            line: Vec::new(),
            args,
            start: Instant::now(),
            wasi: WasiCtx::builder().build(),
        }
    }

    /// Replaces the empty WASI context.
    pub fn with_wasi(self, wasi: WasiCtx) -> Host {
        Host { wasi, ..self }
    }

    /// Flushes buffered output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints a value.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn print(&mut self, value: impl std::fmt::Display) -> Result<(), Error> {
        write!(self.out, "{value}").map_err(Error::host)
    }

    /// Prints the character with a code point, or the replacement character if there is no such character.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn print_char(&mut self, code: u32) -> Result<(), Error> {
        self.print(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Prints bytes.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::host)
    }

    /// Returns up to `cap` bytes of the current line, reading the next line if it is used up.
    fn read_line(&mut self, cap: usize) -> Result<Vec<u8>, Error> {
        if self.line.is_empty() {
            // A prompt should be visible before the program waits for the answer.
            self.out.flush().map_err(Error::host)?;
            self.input.read_until(b'\n', &mut self.line).map_err(Error::host)?;
        }
        let n = self.line.len().min(cap);
        Ok(self.line.drain(..n).collect())
    }
}

impl AsMut<Host> for Host {
    fn as_mut(&mut self) -> &mut Host {
        self
    }
}

/// A linker with the functions, for stores whose data is a [`Host`]. They are compiled with this package, not with each
/// that runs programs.
///
/// # Errors
/// Fails if a function is defined twice, which is a fault of this package.
pub fn linker(engine: &Engine) -> Result<Linker<Host>, Error> {
    let mut linker = Linker::new(engine);
    define(&mut linker)?;
    Ok(linker)
}

/// Defines the functions in a linker.
///
/// # Errors
/// Fails if the linker already defines one of them.
pub fn define<T: AsMut<Host> + 'static>(linker: &mut Linker<T>) -> Result<(), Error> {
    type C<'a, T> = Caller<'a, T>;
    slotvm_wasi::add_to_linker(linker, |data: &mut T| &mut data.as_mut().wasi)?;
    linker
        .func_wrap("env", "print_i32", |mut c: C<'_, T>, v: i32| c.data_mut().as_mut().print(v))?;
    linker
        .func_wrap("env", "print_i64", |mut c: C<'_, T>, v: i64| c.data_mut().as_mut().print(v))?;
    linker
        .func_wrap("env", "print_f64", |mut c: C<'_, T>, v: f64| c.data_mut().as_mut().print(v))?;
    linker.func_wrap("env", "print_char", |mut c: C<'_, T>, code: i32| {
        c.data_mut().as_mut().print_char(code as u32)
    })?;
    linker.func_wrap("env", "print_str", |mut c: C<'_, T>, ptr: i32, len: i32| {
        let bytes = bytes_at(memory(&c)?.data(&c), ptr as u32, len as u32)?.to_vec();
        c.data_mut().as_mut().print_bytes(&bytes)
    })?;
    linker.func_wrap("env", "read_line", |mut c: C<'_, T>, ptr: i32, cap: i32| {
        let memory = memory(&c)?;
        let bytes = c.data_mut().as_mut().read_line(cap as u32 as usize)?;
        memory.write(&mut c, ptr as u32 as usize, &bytes).map_err(|_| out_of_bounds())?;
        Ok::<i32, Error>(bytes.len() as i32)
    })?;
    linker.func_wrap("env", "clock_ns", |mut c: C<'_, T>| {
        c.data_mut().as_mut().start.elapsed().as_nanos() as i64
    })?;
    linker.func_wrap("env", "args", |mut c: C<'_, T>, ptr: i32, cap: i32| {
        let memory = memory(&c)?;
        let args = c.data_mut().as_mut().args.clone();
        let n = args.len().min(cap as u32 as usize);
        memory.write(&mut c, ptr as u32 as usize, &args[..n]).map_err(|_| out_of_bounds())?;
        Ok::<i32, Error>(args.len() as i32)
    })?;
    Ok(())
}

/// Memory 0 of the calling instance.
fn memory<T>(caller: &Caller<'_, T>) -> Result<Memory, Error> {
    caller.memory().ok_or_else(|| Error::host("the program has no memory"))
}

/// Bytes of a memory.
///
/// # Errors
/// Returns a trap if they are not all in the memory.
pub fn bytes_at(memory: &[u8], ptr: u32, len: u32) -> Result<&[u8], Error> {
    let (start, len) = (ptr as usize, len as usize);
    memory.get(start..start + len).ok_or_else(out_of_bounds)
}

/// A trap at the place of the call.
fn out_of_bounds() -> Error {
    Trap::new(TrapCode::MemoryOutOfBounds, []).into()
}
