//! Opening files and directories, and descriptor numbers.

use slotvm_wasi::limits::DESCRIPTORS_MAX;

use crate::errnos::{
    BADF, EXIST, FAULT, ILSEQ, INVAL, ISDIR, LOOP, MFILE, NAMETOOLONG, NOENT, NOTDIR, PERM, SUCCESS,
};
use crate::guest::{ALL, CREAT, DIR, DIRECTORY, EXCL, OUT, OUTSIDE, Open, TRUNC, with_folder};

fn flags(flags: i64) -> Open {
    Open { flags, ..Open::ALL }
}

#[test]
fn files_are_made_and_emptied_as_asked() {
    with_folder(|guest, folder| {
        assert_eq!(guest.open(DIR, "f", Open::ALL), Err(NOENT));
        assert_eq!(guest.open(DIR, "f", flags(EXCL)), Err(NOENT));
        assert_eq!(guest.open(DIR, "f", flags(TRUNC)), Err(NOENT));
        guest.open(DIR, "f", flags(CREAT | EXCL)).unwrap();
        folder.write("f", "data");
        assert_eq!(guest.open(DIR, "f", flags(CREAT | EXCL)), Err(EXIST));
        guest.open(DIR, "f", flags(CREAT)).unwrap();
        assert_eq!(folder.read("f"), "data");
        guest.open(DIR, "f", flags(TRUNC)).unwrap();
        assert_eq!(folder.read("f"), "");
        // Creating a file requires no rights on the file.
        let nothing = Open { rights: 0, inheriting: 0, ..flags(CREAT) };
        guest.open(DIR, "g", nothing).unwrap();
        assert_eq!(folder.read("g"), "");
    });
}

#[test]
fn directories_are_not_files() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        assert_eq!(guest.open(DIR, "f", Open::DIR), Err(NOTDIR));
        assert_eq!(guest.open(DIR, "f/", Open::READ), Err(NOTDIR));
        assert_eq!(guest.open(DIR, "f/g", Open::READ), Err(NOTDIR));
        assert_eq!(guest.open(DIR, "d", Open::ALL), Err(ISDIR), "directories cannot be written");
        assert_eq!(guest.open(DIR, "d", flags(DIRECTORY)), Err(ISDIR));
        for how in [CREAT, EXCL, TRUNC] {
            assert_eq!(guest.open(DIR, "d", flags(DIRECTORY | how)), Err(INVAL));
        }
        for (path, how) in [("d", Open::DIR), ("d/", Open::READ), (".", Open::DIR)] {
            let fd = guest.open(DIR, path, how).unwrap();
            guest.ok("fd_fdstat_get", &[fd, OUT]);
            assert_eq!(guest.bytes(OUT, 1), [3], "{path}");
        }
    });
}

#[test]
fn paths_begin_at_the_directory_that_is_given() {
    with_folder(|guest, folder| {
        std::fs::create_dir_all(folder.inside().join("a/b")).unwrap();
        folder.write("a/b/f", "deep");
        let a = guest.open(DIR, "a", Open::DIR).unwrap();
        let b = guest.open(a, "b", Open::DIR).unwrap();
        let dots = "a/.//b/../../a/b/../b///./f";
        for (dir, path) in [(DIR, "a/b/f"), (a, "b/f"), (b, "f"), (DIR, dots)] {
            let fd = guest.open(dir, path, Open::READ).unwrap();
            assert_eq!(guest.read(fd, 10), b"deep", "{path}");
        }
        // The path leads out, even if it returns to the same directory.
        assert_eq!(guest.open(b, "../b/f", Open::READ), Err(PERM));
        let file = guest.open(b, "f", Open::READ).unwrap();
        assert_eq!(guest.open(file, "f", Open::READ), Err(NOTDIR));
        assert_eq!(guest.open(0, "f", Open::READ), Err(NOTDIR));
        assert_eq!(guest.open(99, "f", Open::READ), Err(BADF));
        assert_eq!(guest.open(-1, "f", Open::READ), Err(BADF));
    });
}

#[test]
fn paths_that_make_no_sense_are_errors() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        assert_eq!(guest.open(DIR, "", Open::READ), Err(NOENT));
        assert_eq!(guest.open(DIR, "f\0", Open::READ), Err(INVAL));
        assert_eq!(guest.open(DIR, &"x".repeat(256), Open::CREATE), Err(NAMETOOLONG));
        assert_eq!(guest.open(DIR, &"./".repeat(2049), Open::READ), Err(NAMETOOLONG));
        let latin = guest.put(b"\xe4");
        let path = |at, len| [DIR, 0, at, len, 0, ALL, ALL, 0, OUT];
        assert_eq!(guest.call("path_open", &path(latin, 1)), ILSEQ);
        for (at, len) in [(OUTSIDE, 1), (OUTSIDE - 1, 2), (-1, 1), (0, -1), (-1, -1)] {
            assert_eq!(guest.call("path_open", &path(at, len)), FAULT, "{at} {len}");
        }
    });
}

#[test]
fn nothing_is_opened_that_the_program_would_not_learn_of() {
    with_folder(|guest, folder| {
        let [at, len] = guest.text("f");
        let args = [DIR, 0, at, len, CREAT, ALL, ALL, 0, OUTSIDE - 3];
        assert_eq!(guest.call("path_open", &args), FAULT);
        assert!(!folder.inside().join("f").exists());
        assert_eq!(guest.open(DIR, "f", Open::CREATE), Ok(DIR + 1), "no number was taken");
    });
}

#[test]
fn flags_that_do_not_exist_are_errors() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        for bad in [16, 1 << 16, -1] {
            assert_eq!(guest.open(DIR, "f", flags(bad)), Err(INVAL), "{bad}");
        }
        for bad in [32, 1 << 16, -1] {
            assert_eq!(guest.open(DIR, "f", Open { fd_flags: bad, ..Open::ALL }), Err(INVAL));
        }
        for bad in [1 << 30, -1] {
            assert_eq!(guest.open(DIR, "f", Open { rights: bad, ..Open::ALL }), Err(INVAL));
            assert_eq!(guest.open(DIR, "f", Open { inheriting: bad, ..Open::ALL }), Err(INVAL));
        }
        let [at, len] = guest.text("f");
        for lookup in [2, -1] {
            let args = [DIR, lookup, at, len, 0, ALL, ALL, 0, OUT];
            assert_eq!(guest.call("path_open", &args), INVAL, "{lookup}");
        }
    });
}

#[test]
fn links_are_followed_as_asked() {
    with_folder(|guest, folder| {
        folder.write("f", "data");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        assert_eq!(guest.symlink("f", DIR, "to_f"), SUCCESS);
        assert_eq!(guest.symlink("d", DIR, "to_d"), SUCCESS);
        assert_eq!(guest.symlink("loop", DIR, "loop"), SUCCESS);
        assert_eq!(guest.symlink("nowhere", DIR, "dangling"), SUCCESS);
        let following = |how| Open { follow: true, ..how };
        assert_eq!(guest.open(DIR, "to_f", Open::READ), Err(LOOP));
        let fd = guest.open(DIR, "to_f", following(Open::READ)).unwrap();
        assert_eq!(guest.read(fd, 10), b"data");
        assert!(matches!(guest.open(DIR, "to_d", Open::DIR), Err(LOOP | NOTDIR)));
        guest.open(DIR, "to_d", following(Open::DIR)).unwrap();
        assert_eq!(guest.open(DIR, "to_f", following(Open::DIR)), Err(NOTDIR));
        assert_eq!(guest.open(DIR, "loop", following(Open::READ)), Err(LOOP));
        assert_eq!(guest.open(DIR, "dangling", following(Open::READ)), Err(NOENT));
        // Links inside a path are always followed.
        folder.write("d/g", "deep");
        let fd = guest.open(DIR, "to_d/g", Open::READ).unwrap();
        assert_eq!(guest.read(fd, 10), b"deep");
    });
}

#[test]
fn descriptors_run_out_and_come_back() {
    with_folder(|guest, folder| {
        folder.write("f", "");
        // The standard streams and the directory are already open.
        let n_more = DESCRIPTORS_MAX as i64 - 4;
        for i in 0..n_more {
            assert_eq!(guest.open(DIR, "f", Open::READ), Ok(DIR + 1 + i));
        }
        assert_eq!(guest.open(DIR, "f", Open::READ), Err(MFILE));
        assert_eq!(guest.open(DIR, "new", Open::CREATE), Err(MFILE));
        assert!(!folder.inside().join("new").exists(), "the file was created");
        guest.ok("fd_close", &[100]);
        assert_eq!(guest.call("fd_close", &[100]), BADF);
        assert_eq!(guest.open(DIR, "f", Open::READ), Ok(100));
    });
}
