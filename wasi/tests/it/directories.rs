//! Creating, removing and listing directories.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, symlink};

use crate::errnos::{EXIST, FAULT, INVAL, NOENT, NOTDIR, NOTEMPTY, SUCCESS};
use crate::guest::{DIR, Folder, Guest, OUT, OUTSIDE, Open, with_folder};

/// An entry as the program sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    next: u64,
    ino: u64,
    file_type: u8,
    name: String,
}

/// Returns the complete entries in a buffer of `len` bytes from a cookie on, and whether the buffer was
/// full.
fn list(guest: &mut Guest, fd: i64, len: i64, cookie: u64) -> (Vec<Entry>, bool) {
    const BUFFER: i64 = 1 << 16;
    guest.ok("fd_readdir", &[fd, BUFFER, len, cookie as i64, OUT]);
    let used = i64::from(guest.u32(OUT));
    let (mut at, mut entries) = (BUFFER, Vec::new());
    while at + 24 <= BUFFER + used {
        let name_len = i64::from(guest.u32(at + 16));
        if at + 24 + name_len > BUFFER + used {
            break;
        }
        let name = guest.bytes(at + 24, name_len as usize);
        entries.push(Entry {
            next: guest.u64(at),
            ino: guest.u64(at + 8),
            file_type: guest.bytes(at + 20, 1)[0],
            name: String::from_utf8(name).unwrap(),
        });
        at += 24 + name_len;
    }
    (entries, used == len)
}

/// Returns all entries, read with a buffer of `len` bytes, as C libraries do.
fn list_all(guest: &mut Guest, fd: i64, len: i64) -> Vec<Entry> {
    let (mut entries, mut cookie) = (Vec::new(), 0);
    loop {
        let (some, is_full) = list(guest, fd, len, cookie);
        cookie = some.last().map_or(cookie, |entry| entry.next);
        assert!(!(some.is_empty() && is_full), "the buffer is too small for the test");
        entries.extend(some);
        if !is_full {
            return entries;
        }
    }
}

fn fill(folder: &Folder, n: usize) {
    for i in 0..n {
        folder.write(format!("file {i}"), "");
    }
    std::fs::create_dir(folder.inside().join("dir")).unwrap();
    symlink("dir", folder.inside().join("link")).unwrap();
}

#[test]
fn listing_gives_every_entry_once_whatever_the_buffer() {
    with_folder(|guest, folder| {
        fill(folder, 50);
        let fd = guest.open(DIR, ".", Open::DIR).unwrap();
        let whole = list_all(guest, fd, 1 << 14);
        let by_name: BTreeMap<_, _> =
            whole.iter().map(|entry| (entry.name.as_str(), entry)).collect();
        assert_eq!((whole.len(), by_name.len()), (54, 54));
        let ino = |path: &str| folder.inside().join(path).symlink_metadata().unwrap().ino();
        for (name, file_type) in [("dir", 3), ("link", 7), ("file 0", 4), (".", 3)] {
            assert_eq!((by_name[name].file_type, by_name[name].ino), (file_type, ino(name)));
        }
        // The program learns nothing about the parent directory. Its number is not zero, for which C
        // libraries would ask again.
        assert_eq!((by_name[".."].file_type, by_name[".."].ino), (3, ino(".")));
        for len in [33, 40, 64, 100, 1000] {
            assert_eq!(list_all(guest, fd, len), whole, "{len}");
        }
        // From any cookie, in any order.
        for i in [53, 0, 20, 19, 53, 52, 1] {
            let (rest, _) = list(guest, fd, 1 << 14, whole[i].next);
            assert_eq!(rest, whole[i + 1..], "{i}");
        }
        for cookie in [55, 1 << 40, u64::MAX] {
            assert_eq!(list(guest, fd, 1 << 14, cookie), (Vec::new(), false), "{cookie}");
        }
        assert_eq!(
            list_all(guest, DIR, 1 << 14).len(),
            54,
            "the preopened directory works as well"
        );
    });
}

#[test]
fn listing_from_the_start_sees_what_is_new() {
    with_folder(|guest, folder| {
        let fd = guest.open(DIR, ".", Open::DIR).unwrap();
        assert_eq!(list_all(guest, fd, 1000).len(), 2);
        fill(folder, 1);
        assert_eq!(list_all(guest, fd, 1000).len(), 5);
        std::fs::remove_file(folder.inside().join("file 0")).unwrap();
        assert_eq!(list_all(guest, fd, 1000).len(), 4);
    });
}

#[test]
fn entries_are_cut_where_the_buffer_ends() {
    with_folder(|guest, _| {
        let fd = guest.open(DIR, ".", Open::DIR).unwrap();
        for len in [0, 1, 23, 24, 25, 26] {
            let at = OUTSIDE - len;
            guest.ok("fd_readdir", &[fd, at, len, 0, OUT]);
            assert_eq!(i64::from(guest.u32(OUT)), len);
        }
        for (at, len) in [(OUTSIDE, 1), (OUTSIDE - 1, 2), (-1, 1), (0, -1)] {
            assert_eq!(guest.call("fd_readdir", &[fd, at, len, 0, OUT]), FAULT, "{at} {len}");
        }
        assert_eq!(guest.call("fd_readdir", &[fd, 0, 10, 0, OUTSIDE - 3]), FAULT);
    });
}

#[test]
fn directories_are_made_and_removed() {
    with_folder(|guest, folder| {
        assert_eq!(guest.at("path_create_directory", DIR, "d"), SUCCESS);
        assert_eq!(guest.at("path_create_directory", DIR, "d/e"), SUCCESS);
        assert!(folder.inside().join("d/e").is_dir());
        assert_eq!(guest.at("path_create_directory", DIR, "d"), EXIST);
        assert_eq!(guest.at("path_create_directory", DIR, "x/y"), NOENT);
        assert_eq!(guest.at("path_create_directory", DIR, ""), NOENT);
        assert_eq!(guest.at("path_remove_directory", DIR, "d"), NOTEMPTY);
        assert_eq!(guest.at("path_create_directory", DIR, "d/f/"), SUCCESS);
        assert_eq!(guest.at("path_remove_directory", DIR, "d/f//"), SUCCESS);
        assert_eq!(guest.at("path_remove_directory", DIR, "d/e"), SUCCESS);
        assert_eq!(guest.at("path_remove_directory", DIR, "d/."), INVAL);
        assert_eq!(guest.at("path_remove_directory", DIR, "d"), SUCCESS);
        assert_eq!(guest.at("path_remove_directory", DIR, "d"), NOENT);
        folder.write("f", "");
        assert_eq!(guest.at("path_remove_directory", DIR, "f"), NOTDIR);
        assert!(folder.inside().join("f").exists() && !folder.inside().join("d").exists());
    });
}

#[test]
fn a_directory_that_is_gone_is_empty() {
    with_folder(|guest, _| {
        assert_eq!(guest.at("path_create_directory", DIR, "d"), SUCCESS);
        let fd = guest.open(DIR, "d", Open::DIR).unwrap();
        assert_eq!(guest.at("path_remove_directory", DIR, "d"), SUCCESS);
        assert_eq!(guest.open(fd, "f", Open::CREATE), Err(NOENT));
        assert_eq!(guest.at("path_create_directory", fd, "e"), NOENT);
    });
}
