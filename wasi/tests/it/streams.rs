//! Standard streams backed by readers and writers of the embedder.

use std::io::{self, Cursor, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use slotvm::{Tier, TrapCode};
use slotvm_wasi::{MemoryOutput, WasiCtx, WasiCtxBuilder};

use crate::errnos::{AGAIN, BADF, INVAL, NOSPC, NOTSUP, SUCCESS};
use crate::guest::{Guest, OUT, TestEngine, engines, with_ctx, with_folder};

#[test]
fn input_is_read_to_its_end() {
    let build = |builder: &mut WasiCtxBuilder| builder.stdin(Cursor::new("hello world")).build();
    with_ctx(build, |guest, _| {
        assert_eq!(guest.read(0, 5), b"hello");
        // A read returns what is available: filling the second buffer would block forever at a terminal.
        let into = guest.put([b'.'; 8]);
        let [at, n] = guest.buffers(&[[into, 0], [into + 4, 2], [into, 4]]);
        guest.ok("fd_read", &[0, at, n, OUT]);
        assert_eq!((guest.u32(OUT), guest.bytes(into, 8)), (2, b".... w..".to_vec()));
        assert_eq!(guest.read(0, 100), b"orld");
        assert_eq!(guest.read(0, 100), b"");
        assert_eq!(guest.write(0, "x"), BADF);
    });
}

#[test]
fn output_arrives_in_order() {
    for engine in engines() {
        let (out, err) = (MemoryOutput::new(100), MemoryOutput::new(4));
        let ctx = WasiCtxBuilder::new().stdout(out.clone()).stderr(err.clone()).build();
        let mut guest = Guest::new(engine, ctx);
        assert_eq!(guest.write(1, "one "), SUCCESS);
        assert_eq!(guest.write(1, "two"), SUCCESS);
        assert_eq!(out.contents(), b"one two");
        // Output that does not fit is not accepted.
        assert_eq!(guest.write(2, "errors"), SUCCESS);
        assert_eq!((guest.u32(OUT), err.contents()), (4, b"erro".to_vec()));
        assert_eq!(guest.write(2, "rs"), NOSPC);
        assert_eq!(guest.write(2, ""), SUCCESS);
        let [at, n] = guest.buffer("x");
        assert_eq!(guest.call("fd_read", &[1, at, n, OUT]), BADF);
    }
}

#[test]
fn without_streams_input_is_empty_and_output_is_lost() {
    with_folder(|guest, _| {
        assert_eq!(guest.read(0, 10), b"");
        assert_eq!(guest.write(1, "lost"), SUCCESS);
        assert_eq!(guest.u32(OUT), 4);
        for fd in [0, 1, 2] {
            guest.memory()[..64].fill(0xee);
            guest.ok("fd_filestat_get", &[fd, OUT]);
            assert_eq!(guest.bytes(OUT + 16, 1), [0], "its type is unknown");
            assert_eq!(guest.u64(OUT + 32), 0);
            // The only flag of a stream that can be set is `nonblock`.
            guest.ok("fd_fdstat_set_flags", &[fd, 4]);
            guest.ok("fd_fdstat_get", &[fd, OUT]);
            assert_eq!(guest.u16(OUT + 2), 4);
            assert_eq!(guest.call("fd_fdstat_set_flags", &[fd, 1]), NOTSUP);
            assert_eq!(guest.call("fd_fdstat_set_flags", &[fd, 32]), INVAL);
            guest.ok("fd_close", &[fd]);
            assert_eq!(guest.call("fd_close", &[fd]), BADF);
        }
    });
}

/// A stream that fails, or reports wrong lengths.
struct Broken(io::ErrorKind);

impl Read for Broken {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0 {
            io::ErrorKind::Other => Ok(into.len() + 1000),
            kind => Err(kind.into()),
        }
    }
}

impl Write for Broken {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.0 {
            io::ErrorKind::Other => Ok(from.len() + 1000),
            kind => Err(kind.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn streams_that_fail_are_errors_of_the_program() {
    use io::ErrorKind::{BrokenPipe, InvalidData, Other, WouldBlock};
    for engine in engines() {
        for (kind, errno) in
            [(BrokenPipe, 64), (WouldBlock, AGAIN), (InvalidData, 29), (Other, SUCCESS)]
        {
            let ctx = WasiCtxBuilder::new().stdin(Broken(kind)).stdout(Broken(kind)).build();
            let mut guest = Guest::new(engine, ctx);
            let [at, n] = guest.buffer("data");
            assert_eq!(guest.call("fd_read", &[0, at, n, OUT]), errno, "{kind}");
            if errno == SUCCESS {
                assert_eq!(guest.u32(OUT), 4, "a reader cannot read more than the buffer holds");
            }
            assert_eq!(guest.call("fd_write", &[1, at, n, OUT]), errno, "{kind}");
            if errno == SUCCESS {
                assert_eq!(guest.u32(OUT), 4);
            }
        }
    }
}

/// The variable that marks a process started by a test.
const ALONE: &str = "SLOTVM_TEST_ALONE";

/// The body of the tests below, in a process whose standard input is an empty pipe.
fn wait_for_input() {
    for tier in [Tier::Interpreter, Tier::Jit] {
        let memory = "(memory (export \"memory\") 2 2)";
        let engine = TestEngine::new(tier, Duration::from_millis(50), memory);
        let mut guest = Guest::new(&engine, WasiCtx::builder().inherit_stdio().build());
        let into = guest.put([0; 4]);
        let [at, n] = guest.buffers(&[[into, 4]]);
        let args = [0, at, n, OUT];
        // It would block forever; the deadline of the call interrupts it.
        let error = guest.try_call("fd_read", &args).expect_err("there is nothing to read");
        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
        let mut subscription = [0; 48];
        subscription[8] = 1;
        let subscription = guest.put(subscription);
        let poll = [subscription, subscription, 1, OUT];
        let error = guest.try_call("poll_oneoff", &poll).expect_err("there is nothing to read");
        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
        // With `nonblock` it does not block.
        guest.ok("fd_fdstat_set_flags", &[0, 4]);
        assert_eq!(guest.call("fd_read", &args), AGAIN);
        // A pipe is not a terminal.
        guest.ok("fd_fdstat_get", &[0, OUT]);
        assert_eq!(guest.bytes(OUT, 1), [0]);
    }
    println!("waited");
}

#[test]
fn a_deadline_ends_waiting_for_input() {
    if std::env::var_os(ALONE).is_some() {
        return wait_for_input();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "streams::a_deadline_ends_waiting_for_input", "--nocapture"])
        .env(ALONE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Keep the write end of the pipe open until the child has exited.
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("waited"), "{out}\n{err}");
}
