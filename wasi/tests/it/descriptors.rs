//! Descriptors that are closed, of the wrong kind, renumbered, or preopened.

use slotvm_wasi::{Rights, WasiCtx};

use crate::errnos::{BADF, FAULT, INVAL, NAMETOOLONG, NOTCAPABLE, NOTDIR, NOTSOCK, SPIPE, SUCCESS};
use crate::guest::{
    ALL, DIR, FUNCTIONS, Folder, Guest, OUT, OUTSIDE, Open, WRITES, engines, with_folder,
};

/// The positions of the descriptors among the parameters of a function.
fn descriptor_params(name: &str) -> &'static [usize] {
    match name {
        "path_symlink" => &[2],
        "path_link" => &[0, 4],
        "path_rename" => &[0, 3],
        "fd_renumber" => &[0, 1],
        _ if name.starts_with("fd_") || name.starts_with("path_") || name.starts_with("sock_") => {
            &[0]
        }
        _ => &[],
    }
}

/// Valid arguments for each function with a descriptor, using a directory or file as needed.
fn good_args(name: &str, params: &str, file: i64) -> Vec<i64> {
    let mut args = vec![0; params.len()];
    for &place in descriptor_params(name) {
        args[place] = if name.starts_with("path_") { DIR } else { file };
    }
    args
}

#[test]
fn closed_descriptors_are_bad_everywhere() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let closed = guest.open(DIR, "f", Open::ALL).unwrap();
        guest.ok("fd_close", &[closed]);
        let mut n_checked = 0;
        for (name, params) in FUNCTIONS {
            for &place in descriptor_params(name) {
                for fd in [closed, 4000, i64::from(i32::MAX), -1] {
                    let mut args = good_args(name, params, file);
                    args[place] = fd;
                    assert_eq!(guest.call(name, &args), BADF, "{name}{args:?}");
                    n_checked += 1;
                }
            }
        }
        assert_eq!(n_checked, 4 * (21 + 1 + 10 + 2 + 4), "all functions that take a descriptor");
        // The file and the directory are unharmed.
        guest.ok("fd_fdstat_get", &[file, OUT]);
        guest.ok("fd_fdstat_get", &[DIR, OUT]);
    });
}

#[test]
fn files_and_streams_are_no_directories() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let of_directories =
            FUNCTIONS.iter().filter(|(name, _)| name.starts_with("path_") || *name == "fd_readdir");
        for &(name, params) in of_directories {
            for &place in descriptor_params(name) {
                for fd in [0, 1, 2, file] {
                    let mut args = good_args(name, params, DIR);
                    args[place] = fd;
                    assert_eq!(guest.call(name, &args), NOTDIR, "{name}{args:?}");
                }
            }
        }
    });
}

#[test]
fn directories_and_streams_are_no_files() {
    with_folder(|guest, _| {
        let [at, n] = guest.buffer("x");
        let cases: [(&str, &[i64]); 11] = [
            ("fd_advise", &[0, 0, 0]),
            ("fd_allocate", &[0, 1]),
            ("fd_filestat_set_size", &[0]),
            ("fd_read", &[at, n, OUT]),
            ("fd_write", &[at, n, OUT]),
            ("fd_pread", &[at, n, 0, OUT]),
            ("fd_pwrite", &[at, n, 0, OUT]),
            ("fd_seek", &[0, 1, OUT]),
            ("fd_tell", &[OUT]),
            ("fd_filestat_set_times", &[0, 0, 0]),
            ("fd_sync", &[]),
        ];
        for (name, rest) in cases {
            let call = |guest: &mut Guest, fd: i64| guest.call(name, &[&[fd], rest].concat());
            match name {
                "fd_filestat_set_times" | "fd_sync" => {}
                _ => assert_eq!(call(guest, DIR), BADF, "{name}"),
            }
            let of_stream = match name {
                "fd_pread" | "fd_pwrite" | "fd_seek" | "fd_tell" => SPIPE,
                _ => BADF,
            };
            // Descriptors for reading cannot be written, and the other way round.
            if name != "fd_read" {
                assert_eq!(call(guest, 0), of_stream, "{name} 0");
            }
            if name != "fd_write" {
                assert_eq!(call(guest, 1), of_stream, "{name} 1");
                assert_eq!(call(guest, 2), of_stream, "{name} 2");
            }
        }
        assert_eq!(guest.call("fd_fdstat_set_flags", &[DIR, 0]), BADF);
    });
}

#[test]
fn no_descriptor_is_a_socket() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let [at, n] = guest.buffer("x");
        for fd in [0, 1, 2, DIR, file] {
            assert_eq!(guest.call("sock_accept", &[fd, 0, OUT]), NOTSOCK);
            assert_eq!(guest.call("sock_recv", &[fd, at, n, 0, OUT, OUT]), NOTSOCK);
            assert_eq!(guest.call("sock_send", &[fd, at, n, 0, OUT]), NOTSOCK);
            assert_eq!(guest.call("sock_shutdown", &[fd, 3]), NOTSOCK);
        }
        assert_eq!(guest.call("sock_accept", &[0, 32, OUT]), INVAL);
        assert_eq!(guest.call("sock_recv", &[0, at, n, 4, OUT, OUT]), INVAL);
        assert_eq!(guest.call("sock_send", &[0, at, n, 1, OUT]), INVAL);
        assert_eq!(guest.call("sock_shutdown", &[0, 4]), INVAL);
    });
}

#[test]
fn renumbering_moves_a_descriptor_onto_another_one() {
    with_folder(|guest, folder| {
        folder.write("a", "a");
        folder.write("b", "b");
        let a = guest.open(DIR, "a", Open::READ).unwrap();
        let b = guest.open(DIR, "b", Open::READ).unwrap();
        guest.ok("fd_renumber", &[a, a]);
        guest.ok("fd_renumber", &[a, b]);
        assert_eq!(guest.call("fd_tell", &[a, OUT]), BADF);
        assert_eq!(guest.read(b, 1), b"a");
        for (from, to) in [(a, b), (b, a), (b, 127), (b, -1), (-1, -1)] {
            assert_eq!(guest.call("fd_renumber", &[from, to]), BADF, "{from} {to}");
        }
        // Even onto a standard stream or the preopened directory.
        guest.ok("fd_renumber", &[b, 0]);
        guest.ok("fd_renumber", &[DIR, 1]);
        assert_eq!(guest.read(0, 1), b"", "the position is where it was");
        assert_eq!(guest.stat(1, "a", false), Ok((4, 1, 1)));
        guest.ok("fd_prestat_get", &[1, OUT]);
        // Nothing stays open: otherwise this would fail with `mfile` at some point.
        let mut fd = guest.open(1, "a", Open::READ).unwrap();
        let [at, len] = guest.text("a");
        for _ in 0..2000 {
            guest.ok("path_open", &[1, 0, at, len, 0, ALL & !WRITES, 0, 0, OUT]);
            let next = guest.u32(OUT).into();
            guest.ok("fd_renumber", &[fd, next]);
            fd = next;
        }
    });
}

#[test]
fn directories_that_were_given_have_names() {
    for engine in engines() {
        let folder = Folder::new();
        let mut builder = WasiCtx::builder();
        builder.preopened_dir(folder.inside(), "/data").unwrap();
        builder.preopened_dir(folder.root.path().join("outside"), "").unwrap();
        let mut guest = Guest::new(engine, builder.build());
        for (fd, name) in [(DIR, "/data"), (DIR + 1, "")] {
            guest.ok("fd_prestat_get", &[fd, OUT]);
            assert_eq!((guest.u32(OUT), guest.u32(OUT + 4) as usize), (0, name.len()));
            for room in [name.len(), name.len() + 1] {
                guest.memory()[..16].fill(0xee);
                guest.ok("fd_prestat_dir_name", &[fd, OUT, room as i64]);
                assert_eq!(guest.bytes(OUT, name.len()), name.as_bytes());
                assert_eq!(guest.bytes(OUT + name.len() as i64, 1), [0xee]);
            }
        }
        assert_eq!(guest.call("fd_prestat_dir_name", &[DIR, OUT, 4]), NAMETOOLONG);
        assert_eq!(guest.call("fd_prestat_dir_name", &[DIR, OUTSIDE - 4, 5]), FAULT);
        assert_eq!(guest.call("fd_prestat_get", &[DIR, OUTSIDE - 7]), FAULT);
        // Programs look for preopened directories from 3 on until one is bad.
        let opened = guest.open(DIR, ".", Open::DIR).unwrap();
        for fd in [0, 1, 2, opened, opened + 1] {
            assert_eq!(guest.call("fd_prestat_get", &[fd, OUT]), BADF, "{fd}");
            assert_eq!(guest.call("fd_prestat_dir_name", &[fd, OUT, 9]), BADF, "{fd}");
        }
        guest.ok("fd_close", &[DIR]);
        assert_eq!(guest.call("fd_prestat_get", &[DIR, OUT]), BADF);
    }
}

#[test]
fn what_a_descriptor_is_can_be_asked() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let dir = guest.open(DIR, ".", Open::DIR).unwrap();
        let dir_inheriting = Rights::all();
        let expected = [
            (0, 0, Rights::FD_READ, Rights::empty()),
            (1, 0, Rights::FD_WRITE, Rights::empty()),
            (2, 0, Rights::FD_WRITE, Rights::empty()),
            (DIR, 3, Rights::DIRECTORY, dir_inheriting),
            (file, 4, Rights::FILE, Rights::empty()),
            (dir, 3, Rights::DIRECTORY, dir_inheriting),
        ];
        for (fd, file_type, rights, inheriting) in expected {
            guest.memory()[..32].fill(0xee);
            guest.ok("fd_fdstat_get", &[fd, OUT]);
            assert_eq!(guest.bytes(OUT, 1), [file_type], "{fd}");
            let base = Rights::from_bits(guest.u64(OUT + 8)).unwrap();
            match fd {
                // Streams are not seekable: programs take a seekable one for a file.
                0..=2 => {
                    assert!(
                        base.contains(rights)
                            && !base.intersects(Rights::FD_SEEK | Rights::FD_TELL)
                    );
                }
                _ => assert_eq!(base, rights, "{fd}"),
            }
            assert_eq!(guest.u64(OUT + 16), inheriting.bits(), "{fd}");
            assert_eq!(guest.bytes(OUT + 24, 1), [0xee], "it has 24 bytes");
            for address in [OUTSIDE - 23, -1] {
                assert_eq!(guest.call("fd_fdstat_get", &[fd, address]), FAULT);
            }
        }
    });
}

#[test]
fn rights_are_given_up_and_never_taken() {
    with_folder(|guest, folder| {
        folder.write("f", "data");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let (read, write) = (Rights::FD_READ.bits() as i64, Rights::FD_WRITE.bits() as i64);
        assert_eq!(guest.call("fd_fdstat_set_rights", &[file, read | write, read]), NOTCAPABLE);
        assert_eq!(guest.call("fd_fdstat_set_rights", &[file, read, 1 << 30]), INVAL);
        assert_eq!(guest.call("fd_fdstat_set_rights", &[file, -1, 0]), INVAL);
        guest.ok("fd_fdstat_set_rights", &[file, read | write, 0]);
        assert_eq!(guest.write(file, "D"), SUCCESS);
        guest.ok("fd_fdstat_set_rights", &[file, read, 0]);
        assert_eq!(guest.write(file, "x"), NOTCAPABLE);
        assert_eq!(guest.read(file, 9), b"ata");
        assert_eq!(guest.call("fd_fdstat_set_rights", &[file, read | write, 0]), NOTCAPABLE);
        assert_eq!(folder.read("f"), "Data");
    });
}
