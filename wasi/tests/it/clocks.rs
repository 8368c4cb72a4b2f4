//! Clocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::errnos::{FAULT, INVAL};
use crate::guest::{Guest, OUT, OUTSIDE, with_folder};

const REALTIME: i64 = 0;
const MONOTONIC: i64 = 1;
const PROCESS: i64 = 2;
const THREAD: i64 = 3;

fn now(guest: &mut Guest, clock: i64) -> u64 {
    guest.ok("clock_time_get", &[clock, 1, OUT]);
    guest.u64(OUT)
}

#[test]
fn all_four_clocks_run() {
    with_folder(|guest, _| {
        for clock in [REALTIME, MONOTONIC, PROCESS, THREAD] {
            guest.ok("clock_res_get", &[clock, OUT]);
            let resolution = guest.u64(OUT);
            assert!((1..=1_000_000_000).contains(&resolution), "{clock}: {resolution}");
            let first = now(guest, clock);
            let mut rounds = 0;
            while now(guest, clock) == first {
                // The clock may tick only a few hundred times a second; a stopped clock hangs here.
                rounds += 1;
                assert!(rounds < 1 << 30, "clock {clock} stands still");
            }
        }
    });
}

#[test]
fn real_time_is_that_of_the_host_and_monotonic_time_begins_with_the_program() {
    with_folder(|guest, _| {
        let before = SystemTime::now();
        let time = UNIX_EPOCH + Duration::from_nanos(now(guest, REALTIME));
        assert!(before <= time && time <= SystemTime::now());
        // The host has been up for longer than this test has run.
        let first = now(guest, MONOTONIC);
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        assert!((first as f64) < uptime * 1e9);
        assert!(now(guest, MONOTONIC) >= first);
    });
}

#[test]
fn unknown_clocks_and_bad_addresses_are_errors() {
    with_folder(|guest, _| {
        for clock in [4, 5, -1, 1 << 8] {
            assert_eq!(guest.call("clock_res_get", &[clock, OUT]), INVAL, "{clock}");
            assert_eq!(guest.call("clock_time_get", &[clock, 0, OUT]), INVAL, "{clock}");
        }
        for address in [OUTSIDE - 7, OUTSIDE, -8, -1] {
            assert_eq!(guest.call("clock_res_get", &[MONOTONIC, address]), FAULT, "{address}");
            assert_eq!(guest.call("clock_time_get", &[REALTIME, 0, address]), FAULT, "{address}");
        }
        guest.ok("clock_time_get", &[REALTIME, -1, OUTSIDE - 8]);
    });
}
