//! Arguments and environment, and the end of a program.

use slotvm_wasi::{I32Exit, WasiCtxBuilder};

use crate::errnos::{FAULT, INVAL, NOTSUP};
use crate::guest::{Guest, MEMORY_BYTES, OUT, OUT_2, OUTSIDE, with_ctx, with_folder};

/// Checks the results of a pair of functions.
fn check_strings(guest: &mut Guest, get: &str, sizes_get: &str, expected: &[&str]) {
    guest.ok(sizes_get, &[OUT, OUT_2]);
    let n_bytes = expected.iter().map(|string| string.len() + 1).sum::<usize>();
    assert_eq!(guest.u32(OUT) as usize, expected.len(), "{get}");
    assert_eq!(guest.u32(OUT_2) as usize, n_bytes, "{get}");
    // Both arrays end at the end of the memory and do not overwrite what precedes them.
    let buffer = OUTSIDE - n_bytes as i64;
    let pointers = buffer - 4 * expected.len() as i64;
    guest.memory()[pointers as usize - 1] = 0xee;
    guest.ok(get, &[pointers, buffer]);
    assert_eq!(guest.bytes(pointers - 1, 1), [0xee]);
    let mut at = buffer;
    for (i, string) in expected.iter().enumerate() {
        assert_eq!(i64::from(guest.u32(pointers + 4 * i as i64)), at, "{get} {i}");
        let bytes = guest.bytes(at, string.len() + 1);
        assert_eq!(bytes, [string.as_bytes(), &[0]].concat(), "{get} {i}");
        at += string.len() as i64 + 1;
    }
    assert_eq!(at, OUTSIDE);
    if n_bytes > 0 {
        assert_eq!(guest.call(get, &[pointers, buffer + 1]), FAULT);
        assert_eq!(guest.call(get, &[OUTSIDE - 3, OUT]), FAULT);
        assert_eq!(guest.call(get, &[-1, -1]), FAULT);
    }
    for (count, bytes) in [(OUTSIDE, OUT), (OUT, OUTSIDE - 3), (-4, OUT), (OUT, -1)] {
        assert_eq!(guest.call(sizes_get, &[count, bytes]), FAULT, "{count} {bytes}");
    }
}

#[test]
fn arguments_and_environment_arrive() {
    let build = |builder: &mut WasiCtxBuilder| {
        let builder = builder.args(["prog.wasm", "", "two words", "ä"]);
        builder.env("A", "1").env("EMPTY", "").build()
    };
    with_ctx(build, |guest, _| {
        let args = ["prog.wasm", "", "two words", "ä"];
        check_strings(guest, "args_get", "args_sizes_get", &args);
        check_strings(guest, "environ_get", "environ_sizes_get", &["A=1", "EMPTY="]);
    });
}

#[test]
fn without_any_there_are_none() {
    with_folder(|guest, _| {
        check_strings(guest, "args_get", "args_sizes_get", &[]);
        check_strings(guest, "environ_get", "environ_sizes_get", &[]);
    });
}

#[test]
fn exit_codes_are_passed_on() {
    with_folder(|guest, _| {
        for code in [0, 1, 125, 126, 255, 256, -1, i64::from(i32::MIN)] {
            let error = guest.try_call("proc_exit", &[code]).expect_err("the program ends");
            assert_eq!(I32Exit::of(&error), Some(I32Exit(code as i32)));
            assert_eq!(error.to_string(), format!("exited with code {}", code as i32));
        }
        // The store remains usable, as after every error of a host function.
        guest.ok("sched_yield", &[]);
    });
}

#[test]
fn signals_are_not_delivered() {
    with_folder(|guest, _| {
        for (signal, errno) in [(0, NOTSUP), (6, NOTSUP), (30, NOTSUP), (31, INVAL), (-1, INVAL)] {
            assert_eq!(guest.call("proc_raise", &[signal]), errno, "{signal}");
        }
    });
}

#[test]
fn random_bytes_are_random() {
    with_folder(|guest, _| {
        guest.ok("random_get", &[OUT, 32]);
        let first = guest.bytes(OUT, 32);
        guest.ok("random_get", &[OUT, 32]);
        let second = guest.bytes(OUT, 32);
        assert!(first != [0; 32] && second != [0; 32] && first != second);
        // All of the memory, and nothing.
        guest.ok("random_get", &[0, MEMORY_BYTES.into()]);
        let zeros = guest.memory().iter().filter(|&&byte| byte == 0).count();
        assert!(zeros < MEMORY_BYTES as usize / 64, "{zeros} zeros");
        guest.ok("random_get", &[OUTSIDE, 0]);
        for (address, len) in [(1, OUTSIDE), (OUTSIDE, 1), (-1, 1), (0, -1), (OUTSIDE + 1, 0)] {
            assert_eq!(guest.call("random_get", &[address, len]), FAULT, "{address} {len}");
        }
    });
}
