//! Registration of the functions in a linker.

use rustix::event::PollFlags;
use slotvm::{Caller, Error, Linker};

use crate::ctx::WasiCtx;
use crate::errno::{Errno, Result};
use crate::limits::{RANDOM_BYTES_MAX, WAIT_MAX};
use crate::memory::{GuestMemory, Span};
use crate::open::How;
use crate::path::Times;
use crate::process::I32Exit;
use crate::table::Kind;
use crate::types::FdFlags;
use crate::{args, clock, fd, io, open, path, poll, process, random, readdir, socket, stdio};

/// The name of the module from which programs import the functions.
pub const MODULE: &str = "wasi_snapshot_preview1";

/// The embedder's access to the WASI state.
trait GetCtx<T>: Fn(&mut T) -> &mut WasiCtx + Clone + Send + Sync + 'static {}

impl<T, F: Fn(&mut T) -> &mut WasiCtx + Clone + Send + Sync + 'static> GetCtx<T> for F {}

/// Returns the memory of the program and its WASI state.
fn parts<'a, T: 'static>(
    caller: &'a mut Caller<'_, T>,
    get: &impl GetCtx<T>,
) -> (GuestMemory<'a>, &'a mut WasiCtx) {
    let (bytes, data): (&mut [u8], &mut T) = match caller.memory() {
        Some(memory) => memory.data_and_store_mut(caller),
        None => (&mut [], caller.data_mut()),
    };
    (GuestMemory::new(bytes), get(data))
}

/// Converts a result to the number that a function returns to the program.
fn code(result: Result<()>) -> u32 {
    result.map_or_else(Errno::code, |()| Errno::SUCCESS)
}

macro_rules! functions {
    ($($name:ident($($param:ident: $ty:ty),*) => $module:ident($($arg:expr),*);)*) => {
        /// Defines the functions that never wait and always return.
        fn define_simple<T: 'static>(
            linker: &mut Linker<T>,
            get: &impl GetCtx<T>,
        ) -> std::result::Result<(), Error> {
            $(
                let get_ctx = get.clone();
                linker.func_wrap(
                    MODULE,
                    stringify!($name),
                    move |mut caller: Caller<'_, T> $(, $param: $ty)*| -> u32 {
                        let (mut memory, ctx) = parts(&mut caller, &get_ctx);
                        code($module::$name(ctx, &mut memory $(, $arg)*))
                    },
                )?;
            )*
            Ok(())
        }
    };
}

functions! {
    args_get(argv: u32, buffer: u32) => args(argv, buffer);
    args_sizes_get(count: u32, bytes: u32) => args(count, bytes);
    environ_get(environ: u32, buffer: u32) => args(environ, buffer);
    environ_sizes_get(count: u32, bytes: u32) => args(count, bytes);
    clock_res_get(id: u32, out: u32) => clock(id, out);
    clock_time_get(id: u32, precision: u64, out: u32) => clock(id, precision, out);
    fd_advise(fd: u32, offset: u64, len: u64, advice: u32) => fd(fd, offset, len, advice);
    fd_allocate(fd: u32, offset: u64, len: u64) => fd(fd, offset, len);
    fd_close(fd: u32) => fd(fd);
    fd_datasync(fd: u32) => fd(fd);
    fd_fdstat_get(fd: u32, out: u32) => fd(fd, out);
    fd_fdstat_set_flags(fd: u32, flags: u32) => fd(fd, flags);
    fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) => fd(fd, base, inheriting);
    fd_filestat_get(fd: u32, out: u32) => fd(fd, out);
    fd_filestat_set_size(fd: u32, size: u64) => fd(fd, size);
    fd_filestat_set_times(fd: u32, atim: u64, mtim: u64, flags: u32) => fd(fd, atim, mtim, flags);
    fd_pread(fd: u32, iovs: u32, n: u32, offset: u64, out: u32)
        => io(fd, Span::new(iovs, n), offset, out);
    fd_prestat_get(fd: u32, out: u32) => fd(fd, out);
    fd_prestat_dir_name(fd: u32, name: u32, len: u32) => fd(fd, Span::new(name, len));
    fd_pwrite(fd: u32, iovs: u32, n: u32, offset: u64, out: u32)
        => io(fd, Span::new(iovs, n), offset, out);
    fd_readdir(fd: u32, buffer: u32, len: u32, cookie: u64, out: u32)
        => readdir(fd, Span::new(buffer, len), cookie, out);
    fd_renumber(from: u32, to: u32) => fd(from, to);
    fd_seek(fd: u32, offset: i64, whence: u32, out: u32) => io(fd, offset, whence, out);
    fd_sync(fd: u32) => fd(fd);
    fd_tell(fd: u32, out: u32) => io(fd, out);
    fd_write(fd: u32, iovs: u32, n: u32, out: u32) => io(fd, Span::new(iovs, n), out);
    path_create_directory(fd: u32, path: u32, len: u32) => path(fd, Span::new(path, len));
    path_filestat_get(fd: u32, lookup: u32, path: u32, len: u32, out: u32)
        => path(fd, lookup, Span::new(path, len), out);
    path_filestat_set_times(
        fd: u32, lookup: u32, path: u32, len: u32, atim: u64, mtim: u64, flags: u32
    ) => path(fd, lookup, Span::new(path, len), Times { atim, mtim, flags });
    path_link(
        old_fd: u32, lookup: u32, old: u32, old_len: u32, new_fd: u32, new: u32, new_len: u32
    ) => path(old_fd, lookup, Span::new(old, old_len), new_fd, Span::new(new, new_len));
    path_open(
        fd: u32, lookup: u32, path: u32, len: u32, flags: u32,
        base: u64, inheriting: u64, fd_flags: u32, out: u32
    ) => open(
        fd,
        Span::new(path, len),
        How { lookup, open: flags, base, inheriting, fd: fd_flags },
        out
    );
    path_readlink(fd: u32, path: u32, len: u32, buffer: u32, buffer_len: u32, out: u32)
        => path(fd, Span::new(path, len), Span::new(buffer, buffer_len), out);
    path_remove_directory(fd: u32, path: u32, len: u32) => path(fd, Span::new(path, len));
    path_rename(fd: u32, old: u32, old_len: u32, new_fd: u32, new: u32, new_len: u32)
        => path(fd, Span::new(old, old_len), new_fd, Span::new(new, new_len));
    path_symlink(target: u32, target_len: u32, fd: u32, path: u32, len: u32)
        => path(Span::new(target, target_len), fd, Span::new(path, len));
    path_unlink_file(fd: u32, path: u32, len: u32) => path(fd, Span::new(path, len));
    proc_raise(signal: u32) => process(signal);
    sched_yield() => process();
    sock_accept(fd: u32, flags: u32, out: u32) => socket(fd, flags, out);
    sock_recv(fd: u32, iovs: u32, n: u32, flags: u32, n_out: u32, flags_out: u32)
        => socket(fd, Span::new(iovs, n), flags, n_out, flags_out);
    sock_send(fd: u32, iovs: u32, n: u32, flags: u32, n_out: u32)
        => socket(fd, Span::new(iovs, n), flags, n_out);
    sock_shutdown(fd: u32, how: u32) => socket(fd, how);
}

/// Defines all functions of WASI preview 1, in the module [`MODULE`].
///
/// The closure returns the WASI state in the embedder's data.
///
/// While a function waits, the deadlines of the store interrupt it as they interrupt guest code: in
/// `poll_oneoff`, and in `fd_read` of the standard input of the process.
///
/// # Errors
/// Fails if one of the names is already defined.
pub fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Clone + Send + Sync + 'static,
) -> std::result::Result<(), Error> {
    define_simple(linker, &get)?;
    linker.func_wrap(MODULE, "proc_exit", |code: u32| -> std::result::Result<(), Error> {
        Err(Error::host(I32Exit(code as i32)))
    })?;
    let get_ctx = get.clone();
    linker.func_wrap(
        MODULE,
        "fd_read",
        move |mut caller: Caller<'_, T>, fd: u32, iovs: u32, n: u32, out: u32| {
            while !is_readable(parts(&mut caller, &get_ctx).1, fd) {
                caller.check_interrupt()?;
            }
            let (mut memory, ctx) = parts(&mut caller, &get_ctx);
            Ok::<u32, Error>(code(io::fd_read(ctx, &mut memory, fd, Span::new(iovs, n), out)))
        },
    )?;
    let get_ctx = get.clone();
    linker.func_wrap(
        MODULE,
        "poll_oneoff",
        move |caller: Caller<'_, T>, subscriptions: u32, events: u32, n: u32, out: u32| {
            poll_oneoff(caller, &get_ctx, [subscriptions, events, n, out])
        },
    )?;
    linker.func_wrap(
        MODULE,
        "random_get",
        move |caller: Caller<'_, T>, address: u32, len: u32| {
            random_get(caller, &get, Span::new(address, len))
        },
    )?;
    Ok(())
}

/// Whether a read would not block. Waits a short time for that.
fn is_readable(ctx: &WasiCtx, fd: u32) -> bool {
    let Ok(descriptor) = ctx.table.get(fd) else { return true };
    match &descriptor.kind {
        Kind::Input(input) if !input.flags.contains(FdFlags::NONBLOCK) => {
            input.host().is_none_or(|host| stdio::is_ready(host, PollFlags::IN, WAIT_MAX))
        }
        _ => true,
    }
}

fn poll_oneoff<T: 'static>(
    mut caller: Caller<'_, T>,
    get: &impl GetCtx<T>,
    [subscriptions, events, n, out]: [u32; 4],
) -> std::result::Result<u32, Error> {
    let (memory, ctx) = parts(&mut caller, get);
    let wait = match poll::subscribe(ctx, &memory, subscriptions, events, n, out) {
        Ok(wait) => wait,
        Err(error) => return Ok(error.code()),
    };
    loop {
        let (mut memory, ctx) = parts(&mut caller, get);
        match wait.step(ctx, WAIT_MAX) {
            Ok(events) if events.is_empty() => {}
            Ok(events) => return Ok(code(poll::finish(&wait, &mut memory, &events))),
            Err(error) => return Ok(error.code()),
        }
        caller.check_interrupt()?;
    }
}

fn random_get<T: 'static>(
    mut caller: Caller<'_, T>,
    get: &impl GetCtx<T>,
    Span { address, len }: Span,
) -> std::result::Result<u32, Error> {
    let mut done = 0;
    loop {
        let (mut memory, _) = parts(&mut caller, get);
        let filled = memory.slice_mut(address, len).and_then(|bytes| {
            let left = &mut bytes[done..];
            let n = left.len().min(RANDOM_BYTES_MAX);
            random::fill(&mut left[..n])?;
            done += n;
            Ok(())
        });
        if filled.is_err() || done == len as usize {
            return Ok(code(filled));
        }
        caller.check_interrupt()?;
    }
}
