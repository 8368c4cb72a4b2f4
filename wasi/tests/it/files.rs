//! Files: reading and writing, positions, sizes and times.

use std::os::unix::fs::MetadataExt;

use crate::errnos::{FAULT, INVAL, NOTSUP, SUCCESS};
use crate::guest::{CREAT, DIR, Guest, OUT, OUTSIDE, Open, with_folder};

const SET: i64 = 0;
const CUR: i64 = 1;
const END: i64 = 2;

const APPEND: i64 = 1;
const DSYNC: i64 = 2;
const NONBLOCK: i64 = 4;
const RSYNC: i64 = 8;
const SYNC: i64 = 16;

fn seek(guest: &mut Guest, fd: i64, offset: i64, whence: i64) -> Result<u64, u32> {
    match guest.call("fd_seek", &[fd, offset, whence, OUT]) {
        SUCCESS => Ok(guest.u64(OUT)),
        errno => Err(errno),
    }
}

fn tell(guest: &mut Guest, fd: i64) -> u64 {
    guest.ok("fd_tell", &[fd, OUT]);
    guest.u64(OUT)
}

#[test]
fn what_is_written_can_be_read() {
    with_folder(|guest, folder| {
        let fd = guest.open(DIR, "f", Open::CREATE).unwrap();
        assert_eq!(fd, DIR + 1, "the least free number");
        assert_eq!(guest.write(fd, "hello world"), SUCCESS);
        assert_eq!(guest.u32(OUT), 11);
        assert_eq!(folder.read("f"), "hello world");
        assert_eq!(tell(guest, fd), 11);
        assert_eq!(guest.read(fd, 5), b"", "at the end");
        assert_eq!(seek(guest, fd, 6, SET), Ok(6));
        assert_eq!(guest.read(fd, 100), b"world");
        guest.ok("fd_close", &[fd]);
    });
}

#[test]
fn many_buffers_are_filled_and_emptied_in_order() {
    with_folder(|guest, folder| {
        let fd = guest.open(DIR, "f", Open::CREATE).unwrap();
        let [ab, c, empty] = [guest.text("ab"), guest.text("c"), guest.text("")];
        let [at, n] = guest.buffers(&[empty, ab, c, empty, ab]);
        guest.ok("fd_write", &[fd, at, n, OUT]);
        assert_eq!((guest.u32(OUT), folder.read("f")), (5, "abcab".to_owned()));
        guest.ok("fd_pwrite", &[fd, at, n, 3, OUT]);
        assert_eq!((guest.u32(OUT), folder.read("f")), (5, "abcabcab".to_owned()));
        assert_eq!(tell(guest, fd), 5, "writing at an offset does not move the position");

        let into = guest.put([b'.'; 10]);
        let [at, n] = guest.buffers(&[[into + 8, 2], [into, 0], [into, 4]]);
        guest.ok("fd_pread", &[fd, at, n, 3, OUT]);
        assert_eq!(guest.u32(OUT), 5);
        assert_eq!(guest.bytes(into, 10), b"cab.....ab");
        assert_eq!(seek(guest, fd, 0, SET), Ok(0));
        guest.ok("fd_read", &[fd, at, n, OUT]);
        assert_eq!(guest.u32(OUT), 6);
        assert_eq!(guest.bytes(into, 10), b"cabc....ab");
        // No buffers, and empty buffers.
        for [at, n] in [[OUT, 0], [OUTSIDE, 0], guest.buffers(&[empty])] {
            for name in ["fd_read", "fd_write"] {
                guest.ok(name, &[fd, at, n, OUT]);
                assert_eq!(guest.u32(OUT), 0);
            }
        }
    });
}

#[test]
fn buffers_that_make_no_sense_are_errors() {
    with_folder(|guest, folder| {
        let fd = guest.open(DIR, "f", Open::CREATE).unwrap();
        let good = guest.text("good");
        let partly_outside = guest.buffers(&[good, [OUTSIDE - 1, 2]]);
        let outside = guest.buffers(&[[-1, 0]]);
        let huge = guest.buffers(&[[0, -1]]);
        let cases = [
            (partly_outside, FAULT),
            (outside, FAULT),
            (huge, FAULT),
            ([OUTSIDE - 7, 1], FAULT),
            ([-1, 1], FAULT),
            ([-8, 1], FAULT),
            ([0, 1 << 14 | 1], INVAL),
            ([0, 1025], INVAL),
            ([0, -1], INVAL),
            ([0, 1 << 29], INVAL),
        ];
        for ([at, n], errno) in cases {
            for (name, args) in [
                ("fd_read", vec![fd, at, n, OUT]),
                ("fd_write", vec![fd, at, n, OUT]),
                ("fd_pread", vec![fd, at, n, 0, OUT]),
                ("fd_pwrite", vec![fd, at, n, 0, OUT]),
            ] {
                assert_eq!(guest.call(name, &args), errno, "{name}{args:?}");
            }
        }
        // The address of the result is checked before any effect.
        let [at, n] = guest.buffer("data");
        assert_eq!(guest.call("fd_write", &[fd, at, n, OUTSIDE - 3]), FAULT);
        assert_eq!(folder.read("f"), "");
        for offset in [-1, i64::MIN] {
            assert_eq!(guest.call("fd_pwrite", &[fd, at, n, offset, OUT]), INVAL);
            assert_eq!(guest.call("fd_pread", &[fd, at, n, offset, OUT]), INVAL);
        }
    });
}

#[test]
fn positions_are_where_they_are_set() {
    with_folder(|guest, folder| {
        folder.write("f", "0123456789");
        let fd = guest.open(DIR, "f", Open::ALL).unwrap();
        assert_eq!(seek(guest, fd, 4, SET), Ok(4));
        assert_eq!(seek(guest, fd, -1, CUR), Ok(3));
        assert_eq!(seek(guest, fd, -2, END), Ok(8));
        assert_eq!(seek(guest, fd, 90, CUR), Ok(98));
        assert_eq!(tell(guest, fd), 98);
        for (offset, whence) in
            [(-1, SET), (-99, CUR), (-11, END), (0, 3), (0, 255), (0, -1), (i64::MIN, SET)]
        {
            assert_eq!(seek(guest, fd, offset, whence), Err(INVAL), "{offset} {whence}");
        }
        assert_eq!(tell(guest, fd), 98);
        assert_eq!(guest.write(fd, "x"), SUCCESS);
        assert_eq!(folder.read("f").len(), 99);
        assert_eq!(guest.call("fd_seek", &[fd, 0, SET, OUTSIDE - 7]), FAULT);
        assert_eq!(guest.call("fd_tell", &[fd, -1]), FAULT);
        assert_eq!(tell(guest, fd), 99, "a failed call does not move the position");
    });
}

#[test]
fn appending_goes_to_the_end() {
    with_folder(|guest, folder| {
        folder.write("f", "old");
        let how = Open { fd_flags: APPEND, ..Open::ALL };
        let fd = guest.open(DIR, "f", how).unwrap();
        assert_eq!(guest.write(fd, "1"), SUCCESS);
        assert_eq!(seek(guest, fd, 0, SET), Ok(0));
        assert_eq!(guest.write(fd, "2"), SUCCESS);
        assert_eq!(folder.read("f"), "old12");
        // The offset is respected, and the file stays in append mode.
        let [at, n] = guest.buffer("O");
        guest.ok("fd_pwrite", &[fd, at, n, 0, OUT]);
        assert_eq!(guest.write(fd, "3"), SUCCESS);
        assert_eq!(folder.read("f"), "Old123");

        guest.ok("fd_fdstat_set_flags", &[fd, 0]);
        assert_eq!(seek(guest, fd, 0, SET), Ok(0));
        assert_eq!(guest.write(fd, "C"), SUCCESS);
        assert_eq!(folder.read("f"), "Cld123");
    });
}

#[test]
fn flags_are_those_that_were_set() {
    with_folder(|guest, _| {
        let flags_of = |guest: &mut Guest, fd: i64| {
            guest.ok("fd_fdstat_get", &[fd, OUT]);
            i64::from(guest.u16(OUT + 2))
        };
        for flags in [0, APPEND, NONBLOCK, APPEND | NONBLOCK] {
            let fd = guest.open(DIR, "f", Open { fd_flags: flags, ..Open::CREATE }).unwrap();
            assert_eq!(flags_of(guest, fd), flags);
            let changed = flags ^ (APPEND | NONBLOCK);
            guest.ok("fd_fdstat_set_flags", &[fd, changed]);
            assert_eq!(flags_of(guest, fd), changed);
            // Flags that the system cannot change fail with `notsup`, and nothing changes.
            for wanted in [flags | SYNC, flags | DSYNC, flags | RSYNC] {
                assert_eq!(guest.call("fd_fdstat_set_flags", &[fd, wanted]), NOTSUP);
            }
            for wanted in [32, 1 << 16, -1] {
                assert_eq!(guest.call("fd_fdstat_set_flags", &[fd, wanted]), INVAL);
            }
            assert_eq!(flags_of(guest, fd), changed);
        }
        for flags in [SYNC, DSYNC, RSYNC] {
            let fd = guest.open(DIR, "f", Open { fd_flags: flags, ..Open::CREATE }).unwrap();
            assert_eq!(flags_of(guest, fd), SYNC | DSYNC | RSYNC, "Linux does all of it");
            assert_eq!(guest.call("fd_fdstat_set_flags", &[fd, 0]), NOTSUP);
            guest.ok("fd_fdstat_set_flags", &[fd, flags | APPEND]);
            assert_eq!(flags_of(guest, fd), SYNC | DSYNC | RSYNC | APPEND);
        }
    });
}

#[test]
fn sizes_change() {
    with_folder(|guest, folder| {
        folder.write("f", "0123456789");
        let fd = guest.open(DIR, "f", Open::ALL).unwrap();
        guest.ok("fd_filestat_set_size", &[fd, 4]);
        assert_eq!(folder.read("f"), "0123");
        guest.ok("fd_filestat_set_size", &[fd, 6]);
        assert_eq!(folder.read("f"), "0123\0\0");
        for size in [-1, i64::MIN] {
            assert_eq!(guest.call("fd_filestat_set_size", &[fd, size]), INVAL);
        }
        guest.ok("fd_allocate", &[fd, 4, 6]);
        assert_eq!(folder.read("f"), "0123\0\0\0\0\0\0");
        guest.ok("fd_allocate", &[fd, 0, 2]);
        assert_eq!(folder.read("f").len(), 10, "it never shrinks");
        for (offset, len) in [(0, 0), (-1, 1), (0, -1), (i64::MIN, 1)] {
            assert_eq!(guest.call("fd_allocate", &[fd, offset, len]), INVAL, "{offset} {len}");
        }
        assert_ne!(guest.call("fd_allocate", &[fd, i64::MAX, 1]), SUCCESS);
        assert_eq!(folder.read("f").len(), 10);
    });
}

#[test]
fn advice_and_syncing_change_nothing() {
    with_folder(|guest, folder| {
        folder.write("f", "0123456789");
        let fd = guest.open(DIR, "f", Open::ALL).unwrap();
        for advice in 0..6 {
            guest.ok("fd_advise", &[fd, 0, 0, advice]);
            guest.ok("fd_advise", &[fd, 5, 100, advice]);
        }
        for advice in [6, 255, -1] {
            assert_eq!(guest.call("fd_advise", &[fd, 0, 0, advice]), INVAL);
        }
        guest.ok("fd_sync", &[fd]);
        guest.ok("fd_datasync", &[fd]);
        assert_eq!(folder.read("f"), "0123456789");
    });
}

#[test]
fn attributes_are_those_of_the_host() {
    with_folder(|guest, folder| {
        folder.write("f", "0123456789");
        std::fs::hard_link(folder.inside().join("f"), folder.inside().join("g")).unwrap();
        let fd = guest.open(DIR, "f", Open::ALL).unwrap();
        let metadata = folder.inside().join("f").metadata().unwrap();
        let nanoseconds = |s: i64, ns: i64| s as u64 * 1_000_000_000 + ns as u64;
        let expected = [
            metadata.dev(),
            metadata.ino(),
            4, // a regular file
            2,
            10,
            nanoseconds(metadata.atime(), metadata.atime_nsec()),
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        ];
        let out = OUTSIDE - 64;
        let stat = |guest: &mut Guest| [0, 8, 16, 24, 32, 40, 48, 56].map(|at| guest.u64(out + at));
        guest.ok("fd_filestat_get", &[fd, out]);
        assert_eq!(stat(guest), expected);
        guest.memory()[out as usize..].fill(0xee);
        let [path, len] = guest.text("f");
        guest.ok("path_filestat_get", &[DIR, 0, path, len, out]);
        assert_eq!(stat(guest), expected);
        assert_eq!(guest.call("fd_filestat_get", &[fd, out + 1]), FAULT);
        assert_eq!(guest.call("path_filestat_get", &[DIR, 0, path, len, out + 1]), FAULT);
    });
}

#[test]
fn times_are_set() {
    const ATIM: i64 = 1;
    const ATIM_NOW: i64 = 2;
    const MTIM: i64 = 4;
    const MTIM_NOW: i64 = 8;
    with_folder(|guest, folder| {
        folder.write("f", "");
        let fd = guest.open(DIR, "f", Open { flags: CREAT, ..Open::ALL }).unwrap();
        let [path, len] = guest.text("f");
        let times = || {
            let metadata = folder.inside().join("f").metadata().unwrap();
            [(metadata.atime(), metadata.atime_nsec()), (metadata.mtime(), metadata.mtime_nsec())]
        };
        let by_fd = |guest: &mut Guest, atim: i64, mtim: i64, flags: i64| {
            guest.call("fd_filestat_set_times", &[fd, atim, mtim, flags])
        };
        let by_path = |guest: &mut Guest, atim: i64, mtim: i64, flags: i64| {
            guest.call("path_filestat_set_times", &[DIR, 1, path, len, atim, mtim, flags])
        };
        let by_path_without_links = |guest: &mut Guest, atim: i64, mtim: i64, flags: i64| {
            guest.call("path_filestat_set_times", &[DIR, 0, path, len, atim, mtim, flags])
        };
        type Way<'a> = &'a dyn Fn(&mut Guest, i64, i64, i64) -> u32;
        let ways: [Way<'_>; 3] = [&by_fd, &by_path, &by_path_without_links];
        for set in ways {
            assert_eq!(set(guest, 1_000_000_002, 3_000_000_004, ATIM | MTIM), SUCCESS);
            assert_eq!(times(), [(1, 2), (3, 4)]);
            assert_eq!(set(guest, 5_000_000_000, 6_000_000_000, MTIM), SUCCESS);
            assert_eq!(times(), [(1, 2), (6, 0)]);
            assert_eq!(set(guest, 7_000_000_000, 0, ATIM), SUCCESS);
            assert_eq!(times(), [(7, 0), (6, 0)]);
            assert_eq!(set(guest, 0, 0, 0), SUCCESS);
            for flags in [ATIM | ATIM_NOW, MTIM | MTIM_NOW, 16, 1 << 16, -1] {
                assert_eq!(set(guest, 9, 9, flags), INVAL, "{flags}");
            }
            assert_eq!(times(), [(7, 0), (6, 0)]);
            assert_eq!(set(guest, 0, 0, ATIM_NOW | MTIM_NOW), SUCCESS);
            assert!(times().iter().all(|&(seconds, _)| seconds > 1_700_000_000), "{:?}", times());
        }
    });
}
