//! Operations fail without their right.

use slotvm_wasi::{Rights, WasiCtx};

use crate::errnos::{NOTCAPABLE, SUCCESS};
use crate::guest::{CREAT, DIR, Folder, Guest, OUT, Open, TRUNC, engines, with_folder};

const SYNC: i64 = 16;

/// Returns the functions on a directory, with the right that each needs and valid arguments.
fn of_directories(guest: &mut Guest, dir: i64) -> Vec<(&'static str, Rights, Vec<i64>)> {
    let [f, f_len] = guest.text("f");
    let [new, new_len] = guest.text("new");
    let [moved, moved_len] = guest.text("moved");
    let all = (Rights::FD_READ | Rights::FD_SYNC).bits() as i64;
    let open = |flags: i64, fd_flags: i64| vec![dir, 0, f, f_len, flags, all, 0, fd_flags, OUT];
    vec![
        ("path_create_directory", Rights::PATH_CREATE_DIRECTORY, vec![dir, new, new_len]),
        ("path_remove_directory", Rights::PATH_REMOVE_DIRECTORY, vec![dir, new, new_len]),
        ("path_symlink", Rights::PATH_SYMLINK, vec![f, f_len, dir, new, new_len]),
        ("path_readlink", Rights::PATH_READLINK, vec![dir, new, new_len, OUT, 8, OUT]),
        ("path_unlink_file", Rights::PATH_UNLINK_FILE, vec![dir, new, new_len]),
        ("path_link", Rights::PATH_LINK_SOURCE, vec![dir, 0, f, f_len, DIR, new, new_len]),
        ("path_rename", Rights::PATH_RENAME_SOURCE, vec![dir, new, new_len, DIR, moved, moved_len]),
        ("path_link", Rights::PATH_LINK_TARGET, vec![DIR, 0, f, f_len, dir, new, new_len]),
        ("path_rename", Rights::PATH_RENAME_TARGET, vec![DIR, new, new_len, dir, moved, moved_len]),
        ("path_filestat_get", Rights::PATH_FILESTAT_GET, vec![dir, 0, f, f_len, OUT]),
        (
            "path_filestat_set_times",
            Rights::PATH_FILESTAT_SET_TIMES,
            vec![dir, 0, f, f_len, 0, 0, 0],
        ),
        ("path_open", Rights::PATH_OPEN, open(0, 0)),
        ("path_open", Rights::PATH_CREATE_FILE, open(CREAT, 0)),
        ("path_open", Rights::PATH_FILESTAT_SET_SIZE, open(TRUNC, 0)),
        ("fd_readdir", Rights::FD_READDIR, vec![dir, OUT, 8, 0, OUT]),
        ("fd_filestat_get", Rights::FD_FILESTAT_GET, vec![dir, OUT]),
        ("fd_filestat_set_times", Rights::FD_FILESTAT_SET_TIMES, vec![dir, 0, 0, 0]),
        ("fd_sync", Rights::FD_SYNC, vec![dir]),
        ("fd_datasync", Rights::FD_DATASYNC, vec![dir]),
    ]
}

/// Returns the same for a file.
fn of_files(guest: &mut Guest, file: i64) -> Vec<(&'static str, Rights, Vec<i64>)> {
    let [at, n] = guest.buffer("x");
    vec![
        ("fd_read", Rights::FD_READ, vec![file, at, n, OUT]),
        ("fd_write", Rights::FD_WRITE, vec![file, at, n, OUT]),
        ("fd_pread", Rights::FD_READ, vec![file, at, n, 0, OUT]),
        ("fd_pread", Rights::FD_SEEK, vec![file, at, n, 0, OUT]),
        ("fd_pwrite", Rights::FD_WRITE, vec![file, at, n, 0, OUT]),
        ("fd_pwrite", Rights::FD_SEEK, vec![file, at, n, 0, OUT]),
        ("fd_seek", Rights::FD_SEEK, vec![file, 1, 1, OUT]),
        ("fd_fdstat_set_flags", Rights::FD_FDSTAT_SET_FLAGS, vec![file, 0]),
        ("fd_sync", Rights::FD_SYNC, vec![file]),
        ("fd_datasync", Rights::FD_DATASYNC, vec![file]),
        ("fd_advise", Rights::FD_ADVISE, vec![file, 0, 0, 0]),
        ("fd_allocate", Rights::FD_ALLOCATE, vec![file, 0, 1]),
        ("fd_filestat_get", Rights::FD_FILESTAT_GET, vec![file, OUT]),
        ("fd_filestat_set_size", Rights::FD_FILESTAT_SET_SIZE, vec![file, 1]),
        ("fd_filestat_set_times", Rights::FD_FILESTAT_SET_TIMES, vec![file, 0, 0, 0]),
    ]
}

#[test]
fn each_function_of_directories_needs_its_right() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let dir = guest.open(DIR, ".", Open::DIR).unwrap();
        let needing = guest.open(DIR, ".", Open::DIR).unwrap();
        let inheriting = (Rights::DIRECTORY | Rights::FILE).bits() as i64;
        let calls = of_directories(guest, needing);
        let good = of_directories(guest, dir);
        for ((name, right, args), (_, _, good)) in calls.into_iter().zip(good) {
            let left = (Rights::DIRECTORY - right).bits() as i64;
            let fresh = guest.open(DIR, ".", Open::DIR).unwrap();
            guest.ok("fd_renumber", &[fresh, needing]);
            guest.ok("fd_fdstat_set_rights", &[needing, left, inheriting]);
            assert_eq!(guest.call(name, &args), NOTCAPABLE, "{name} without {right:?}");
            // It succeeds with the right, so only the right was missing.
            assert_eq!(guest.call(name, &good), SUCCESS, "{name} with {right:?}");
        }
    });
}

#[test]
fn each_function_of_files_needs_its_right() {
    with_folder(|guest, folder| {
        folder.write("f", "0123456789");
        let file = guest.open(DIR, "f", Open::ALL).unwrap();
        let needing = guest.open(DIR, "f", Open::ALL).unwrap();
        let calls = of_files(guest, needing);
        let good = of_files(guest, file);
        for ((name, right, args), (_, _, good)) in calls.into_iter().zip(good) {
            let left = (Rights::FILE - right).bits() as i64;
            let fresh = guest.open(DIR, "f", Open::ALL).unwrap();
            guest.ok("fd_renumber", &[fresh, needing]);
            guest.ok("fd_fdstat_set_rights", &[needing, left, 0]);
            assert_eq!(guest.call(name, &args), NOTCAPABLE, "{name} without {right:?}");
            assert_eq!(guest.call(name, &good), SUCCESS, "{name} with {right:?}");
        }
    });
}

#[test]
fn asking_for_the_position_takes_one_of_two_rights() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        for (right, can_tell) in
            [(Rights::FD_SEEK, true), (Rights::FD_TELL, true), (Rights::FD_READ, false)]
        {
            let how = Open { rights: right.bits() as i64, ..Open::READ };
            let fd = guest.open(DIR, "f", how).unwrap();
            let expected = if can_tell { SUCCESS } else { NOTCAPABLE };
            assert_eq!(guest.call("fd_tell", &[fd, OUT]), expected, "{right:?}");
            assert_eq!(guest.call("fd_seek", &[fd, 0, 1, OUT]), expected, "{right:?}");
            let moving = if right == Rights::FD_SEEK { SUCCESS } else { NOTCAPABLE };
            assert_eq!(guest.call("fd_seek", &[fd, 0, 0, OUT]), moving, "{right:?}");
        }
    });
}

#[test]
fn rights_are_inherited_at_most() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        let read = Rights::FD_READ.bits() as i64;
        let write = Rights::FD_WRITE.bits() as i64;
        let how = Open { rights: Rights::PATH_OPEN.bits() as i64, inheriting: read, ..Open::DIR };
        let dir = guest.open(DIR, ".", how).unwrap();
        let with = |rights, inheriting| Open { rights, inheriting, ..Open::READ };
        assert_eq!(guest.open(dir, "f", with(read | write, 0)), Err(NOTCAPABLE));
        assert_eq!(guest.open(dir, "f", with(read, write)), Err(NOTCAPABLE));
        assert_eq!(guest.open(dir, "f", Open { fd_flags: SYNC, ..with(read, 0) }), Err(NOTCAPABLE));
        let file = guest.open(dir, "f", with(read, read)).unwrap();
        guest.ok("fd_fdstat_get", &[file, OUT]);
        assert_eq!(guest.u64(OUT + 8), read as u64);
        assert_eq!(guest.write(file, "x"), NOTCAPABLE);
    });
}

#[test]
fn a_directory_to_read_stays_as_it_is() {
    for engine in engines() {
        let folder = Folder::new();
        folder.write("f", "data");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        let outside = folder.root.path().join("outside");
        let mut builder = WasiCtx::builder();
        builder.preopened_dir_with(&outside, "/ro", Rights::READ_ONLY).unwrap();
        builder.preopened_dir(folder.inside(), "/rw").unwrap();
        let mut guest = Guest::new(engine, builder.build());
        let (ro, rw) = (DIR, DIR + 1);
        let others = folder.others();
        let read_only =
            Open { rights: Rights::READ_ONLY.bits() as i64, inheriting: 0, ..Open::READ };
        let secret = guest.open(ro, "secret", read_only).unwrap();
        assert_eq!(guest.read(secret, 10), b"secret");
        assert_eq!(guest.write(secret, "x"), NOTCAPABLE);
        assert_eq!(guest.open(ro, "secret", Open::ALL), Err(NOTCAPABLE));
        for flags in [CREAT, TRUNC] {
            assert_eq!(guest.open(ro, "secret", Open { flags, ..read_only }), Err(NOTCAPABLE));
        }
        // A second name in a writable directory would bypass the rights.
        assert_eq!(guest.link(ro, "secret", rw, "mine"), NOTCAPABLE);
        assert_eq!(guest.rename(ro, "secret", rw, "mine"), NOTCAPABLE);
        assert_eq!(guest.link(rw, "f", ro, "theirs"), NOTCAPABLE);
        assert_eq!(guest.rename(rw, "f", ro, "secret"), NOTCAPABLE);
        for name in ["path_create_directory", "path_remove_directory", "path_unlink_file"] {
            assert_eq!(guest.at(name, ro, "secret"), NOTCAPABLE, "{name}");
        }
        assert_eq!(guest.symlink("x", ro, "y"), NOTCAPABLE);
        let [at, len] = guest.text("secret");
        let args = [ro, 0, at, len, 0, 0, 5];
        assert_eq!(guest.call("path_filestat_set_times", &args), NOTCAPABLE);
        assert_eq!(guest.call("fd_filestat_set_times", &[secret, 0, 0, 5]), NOTCAPABLE);
        // A descriptor opened through it has no more rights.
        let again = guest.open(ro, ".", read_only).unwrap();
        assert_eq!(guest.open(again, "new", Open { flags: CREAT, ..read_only }), Err(NOTCAPABLE));
        drop(guest);
        // Reading may change the access time, which is not an effect of the program.
        let without_times = |text: &str| text.lines().filter(|l| !l.contains("secret")).count();
        assert_eq!(without_times(&folder.others()), without_times(&others));
        assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(folder.read("f"), "data");
    }
}
