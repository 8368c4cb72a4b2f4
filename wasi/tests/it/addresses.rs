//! Addresses outside of the memory, for every parameter that is an address.

use slotvm::Tier;
use slotvm_wasi::WasiCtx;
use std::time::Duration;

use crate::errnos::{FAULT, SUCCESS};
use crate::guest::{ALL, DIR, Guest, OUT, OUTSIDE, Open, TestEngine, with_folder};

/// A function with valid arguments, the positions of the addresses among them, and the size in bytes at
/// each.
type Call = (&'static str, Vec<i64>, Vec<(usize, i64)>);

fn calls(guest: &mut Guest) -> Vec<Call> {
    let file = guest.open(DIR, "f", Open::ALL).unwrap();
    let dir = guest.open(DIR, ".", Open::DIR).unwrap();
    let [f, f_len] = guest.text("f");
    let [link, link_len] = guest.text("link");
    let [iov, n] = guest.buffer("data");
    // A clock that is long overdue.
    let mut subscription = [0; 48];
    subscription[16] = 1;
    let subscription = guest.put(subscription);
    vec![
        ("args_get", vec![OUT, OUT + 64], vec![(0, 4), (1, 2)]),
        ("args_sizes_get", vec![OUT, OUT], vec![(0, 4), (1, 4)]),
        ("environ_get", vec![OUT, OUT + 64], vec![(0, 4), (1, 4)]),
        ("environ_sizes_get", vec![OUT, OUT], vec![(0, 4), (1, 4)]),
        ("clock_res_get", vec![0, OUT], vec![(1, 8)]),
        ("clock_time_get", vec![0, 0, OUT], vec![(2, 8)]),
        ("fd_fdstat_get", vec![file, OUT], vec![(1, 24)]),
        ("fd_filestat_get", vec![file, OUT], vec![(1, 64)]),
        ("fd_pread", vec![file, iov, n, 0, OUT], vec![(1, 8), (4, 4)]),
        ("fd_prestat_get", vec![DIR, OUT], vec![(1, 8)]),
        ("fd_prestat_dir_name", vec![DIR, OUT, 1], vec![(1, 1)]),
        ("fd_pwrite", vec![file, iov, n, 0, OUT], vec![(1, 8), (4, 4)]),
        ("fd_read", vec![file, iov, n, OUT], vec![(1, 8), (3, 4)]),
        ("fd_readdir", vec![dir, OUT, 100, 0, OUT], vec![(1, 100), (4, 4)]),
        ("fd_seek", vec![file, 0, 0, OUT], vec![(3, 8)]),
        ("fd_tell", vec![file, OUT], vec![(1, 8)]),
        ("fd_write", vec![file, iov, n, OUT], vec![(1, 8), (3, 4)]),
        ("path_filestat_get", vec![DIR, 0, f, f_len, OUT], vec![(2, f_len), (4, 64)]),
        ("path_filestat_set_times", vec![DIR, 0, f, f_len, 0, 0, 0], vec![(2, f_len)]),
        ("path_symlink", vec![f, f_len, DIR, link, link_len], vec![(0, f_len), (3, link_len)]),
        (
            "path_readlink",
            vec![DIR, link, link_len, OUT, 9, OUT],
            vec![(1, link_len), (3, 9), (5, 4)],
        ),
        ("path_unlink_file", vec![DIR, link, link_len], vec![(1, link_len)]),
        ("path_link", vec![DIR, 0, f, f_len, DIR, link, link_len], vec![(2, f_len), (5, link_len)]),
        ("path_rename", vec![DIR, link, link_len, DIR, f, f_len], vec![(1, link_len), (4, f_len)]),
        ("path_unlink_file", vec![DIR, link, link_len], vec![(1, link_len)]),
        ("path_create_directory", vec![DIR, link, link_len], vec![(1, link_len)]),
        ("path_remove_directory", vec![DIR, link, link_len], vec![(1, link_len)]),
        ("path_open", vec![DIR, 0, f, f_len, 0, ALL, ALL, 0, OUT], vec![(2, f_len), (8, 4)]),
        ("poll_oneoff", vec![subscription, OUT, 1, OUT], vec![(0, 48), (1, 32), (3, 4)]),
        ("random_get", vec![OUT, 16], vec![(0, 16)]),
    ]
}

#[test]
fn addresses_outside_of_the_memory_are_faults() {
    let build = |builder: &mut slotvm_wasi::WasiCtxBuilder| builder.arg("p").env("A", "b").build();
    crate::guest::with_ctx(build, |guest, folder| {
        folder.write("f", "data");
        for (name, good, places) in calls(guest) {
            for (place, len) in places {
                for address in [OUTSIDE - len + 1, OUTSIDE, 1 << 31, -len, -1] {
                    let mut args = good.clone();
                    args[place] = address;
                    assert_eq!(guest.call(name, &args), FAULT, "{name}{args:?}");
                }
            }
            assert_eq!(guest.call(name, &good), SUCCESS, "{name}{good:?}");
        }
    });
}

#[test]
fn results_may_lie_anywhere_inside_and_over_each_other() {
    with_folder(|guest, folder| {
        folder.write("f", "data");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        // The buffer overlaps its own iovec and the result.
        let at = OUTSIDE - 13;
        let words = [at as u32, 13].map(u32::to_le_bytes);
        guest.memory()[at as usize..][..8].copy_from_slice(words.as_flattened());
        guest.ok("fd_read", &[file, at, 1, at + 1]);
        assert_eq!(guest.bytes(at, 5), [b'd', 4, 0, 0, 0]);
    });
}

#[test]
fn a_program_without_memory_has_no_addresses() {
    for tier in [Tier::Interpreter, Tier::Jit] {
        let engine = TestEngine::new(tier, Duration::from_secs(300), "");
        let ctx = WasiCtx::builder().arg("p").build();
        let mut guest = Guest::new(&engine, ctx);
        assert_eq!(guest.call("args_sizes_get", &[0, 0]), FAULT);
        assert_eq!(guest.call("clock_time_get", &[0, 0, 0]), FAULT);
        assert_eq!(guest.call("fd_write", &[1, 0, 1, 0]), FAULT);
        assert_eq!(guest.call("random_get", &[0, 1]), FAULT);
        assert_eq!(guest.call("random_get", &[0, 0]), SUCCESS);
        assert_eq!(guest.call("sched_yield", &[]), SUCCESS);
    }
}
