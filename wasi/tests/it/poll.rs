//! `poll_oneoff`.

use std::io::Cursor;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use slotvm::{Tier, TrapCode};
use slotvm_wasi::limits::SUBSCRIPTIONS_MAX;
use slotvm_wasi::{Rights, WasiCtx};

use crate::errnos::{BADF, INVAL, NOTCAPABLE, NOTSUP, SUCCESS};
use crate::guest::{DIR, Guest, OUT, OUTSIDE, Open, TestEngine, with_ctx, with_folder};

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
const ABSTIME: u16 = 1;

/// Returns a clock subscription as it lies in memory.
fn clock(userdata: u64, id: u32, timeout: u64, flags: u16) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&userdata.to_le_bytes());
    bytes[16..20].copy_from_slice(&id.to_le_bytes());
    bytes[24..32].copy_from_slice(&timeout.to_le_bytes());
    bytes[40..42].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// Returns a subscription to a descriptor, for reading (1) or writing (2).
fn descriptor(userdata: u64, tag: u8, fd: i64) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&userdata.to_le_bytes());
    bytes[8] = tag;
    bytes[16..20].copy_from_slice(&(fd as u32).to_le_bytes());
    bytes
}

/// An event: tag of the program, error, kind, and number of ready bytes.
type Event = (u64, u32, u8, u64);

fn poll(guest: &mut Guest, subscriptions: &[[u8; 48]]) -> Result<Vec<Event>, u32> {
    let at = guest.put(subscriptions.as_flattened());
    let n = subscriptions.len() as i64;
    let out = guest.put(vec![0xee; 32 * subscriptions.len()]);
    match guest.call("poll_oneoff", &[at, out, n, OUT]) {
        SUCCESS => {}
        errno => return Err(errno),
    }
    let n_events = i64::from(guest.u32(OUT));
    assert!((1..=n).contains(&n_events));
    Ok((0..n_events)
        .map(|i| {
            let at = out + 32 * i;
            let kind = guest.bytes(at + 10, 1)[0];
            (guest.u64(at), guest.u16(at + 8).into(), kind, guest.u64(at + 16))
        })
        .collect())
}

fn now(guest: &mut Guest, clock: u32) -> u64 {
    guest.ok("clock_time_get", &[clock.into(), 0, OUT]);
    guest.u64(OUT)
}

#[test]
fn sleeping_takes_as_long_as_was_asked_for() {
    const TIME: u64 = 5_000_000;
    with_folder(|guest, _| {
        for id in [REALTIME, MONOTONIC] {
            let before = now(guest, MONOTONIC);
            assert_eq!(poll(guest, &[clock(7, id, TIME, 0)]), Ok(vec![(7, 0, 0, 0)]));
            assert!(now(guest, MONOTONIC) - before >= TIME, "clock {id}");
            let until = now(guest, id) + TIME;
            assert_eq!(poll(guest, &[clock(8, id, until, ABSTIME)]), Ok(vec![(8, 0, 0, 0)]));
            assert!(now(guest, id) >= until, "clock {id}");
            // The first clock that is due ends the wait; clocks that are long overdue are reported, too.
            let far = clock(1, id, u64::MAX, 0);
            let past = clock(2, id, 1, ABSTIME);
            let events = poll(guest, &[far, past, far, clock(3, id, 0, 0)]);
            assert_eq!(events, Ok(vec![(2, 0, 0, 0), (3, 0, 0, 0)]));
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let hour_ago = clock(9, REALTIME, since_1970 - 3_600_000_000_000, ABSTIME);
        assert_eq!(poll(guest, &[hour_ago]), Ok(vec![(9, 0, 0, 0)]));
    });
}

#[test]
fn files_and_streams_of_the_embedder_are_always_ready() {
    with_ctx(
        |builder| builder.stdin(Cursor::new("input")).build(),
        |guest, folder| {
            folder.write("f", "0123456789");
            let file = guest.open(DIR, "f", Open::ALL).unwrap();
            assert_eq!(guest.read(file, 4), b"0123");
            let far = clock(0, MONOTONIC, u64::MAX, 0);
            let events = poll(
                guest,
                &[
                    descriptor(1, 1, file),
                    far,
                    descriptor(2, 2, file),
                    descriptor(3, 1, 0),
                    descriptor(4, 2, 1),
                    descriptor(5, 2, 2),
                ],
            );
            let ready = vec![(1, 0, 1, 6), (2, 0, 2, 1), (3, 0, 1, 1), (4, 0, 2, 1), (5, 0, 2, 1)];
            assert_eq!(events, Ok(ready));
        },
    );
}

#[test]
fn what_cannot_be_waited_for_is_an_event_with_an_error() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let only_read = Open { rights: Rights::FD_READ.bits() as i64, ..Open::READ };
        let no_poll = guest.open(DIR, "f", only_read).unwrap();
        let read = Rights::FD_READ | Rights::POLL_FD_READWRITE;
        let no_write = Open { rights: read.bits() as i64, ..Open::READ };
        let no_write = guest.open(DIR, "f", no_write).unwrap();
        let cases = [
            (descriptor(1, 1, 99), BADF, 1),
            (descriptor(1, 2, -1), BADF, 2),
            (descriptor(1, 1, DIR), BADF, 1),
            (descriptor(1, 2, 0), BADF, 2),
            (descriptor(1, 1, 1), BADF, 1),
            (descriptor(1, 1, no_poll), NOTCAPABLE, 1),
            (descriptor(1, 2, no_write), NOTCAPABLE, 2),
            (clock(1, 2, 1, 0), NOTSUP, 0),
            (clock(1, 3, 1, ABSTIME), NOTSUP, 0),
        ];
        let far = clock(0, MONOTONIC, u64::MAX, 0);
        for (subscription, errno, kind) in cases {
            assert_eq!(poll(guest, &[far, subscription]), Ok(vec![(1, errno, kind, 0)]));
        }
    });
}

#[test]
fn subscriptions_that_make_no_sense_are_errors() {
    with_folder(|guest, _| {
        assert_eq!(guest.call("poll_oneoff", &[0, 0, 0, OUT]), INVAL, "it would never end");
        let too_many = i64::from(SUBSCRIPTIONS_MAX) + 1;
        for n in [too_many, -1, 1 << 30] {
            assert_eq!(guest.call("poll_oneoff", &[0, 0, n, OUT]), INVAL, "{n}");
        }
        let past = clock(1, MONOTONIC, 0, 0);
        let bad = [
            clock(1, 4, 0, 0),
            clock(1, u32::MAX, 0, 0),
            clock(1, MONOTONIC, 0, 2),
            descriptor(1, 3, 1),
            descriptor(1, 255, 1),
        ];
        for bad in bad {
            assert_eq!(poll(guest, &[past, bad]), Err(INVAL));
        }
        assert_ne!(guest.call("poll_oneoff", &[OUTSIDE - 48, OUT, 2, OUT]), SUCCESS);
        // The events may overwrite the subscriptions.
        let at = guest.put([clock(5, MONOTONIC, 0, 0), past].as_flattened());
        guest.ok("poll_oneoff", &[at, at, 2, OUT]);
        assert_eq!((guest.u64(at), guest.u64(at + 32)), (5, 1));
    });
}

#[test]
fn a_deadline_ends_sleep() {
    for tier in [Tier::Interpreter, Tier::Jit] {
        let memory = "(memory (export \"memory\") 2 2)";
        let engine = TestEngine::new(tier, Duration::from_millis(30), memory);
        let mut guest = Guest::new(&engine, WasiCtx::builder().build());
        let at = guest.put(clock(1, MONOTONIC, u64::MAX, 0));
        let error = guest.try_call("poll_oneoff", &[at, at, 1, OUT]).expect_err("it is too long");
        assert_eq!(error.trap_code(), Some(TrapCode::Interrupted), "{error}");
        // The program remains usable.
        guest.ok("sched_yield", &[]);
    }
}
