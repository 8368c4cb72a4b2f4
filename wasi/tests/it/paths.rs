//! Renaming, linking and removing files.

use crate::errnos::{EXIST, FAULT, INVAL, ISDIR, NOENT, NOTDIR, NOTEMPTY, SUCCESS};
use crate::guest::{DIR, Guest, OUT, OUTSIDE, Open, with_folder};

const FILE: u8 = 4;
const DIRECTORY: u8 = 3;
const LINK: u8 = 7;

#[test]
fn renaming_replaces_what_it_may() {
    with_folder(|guest, folder| {
        folder.write("a", "a");
        folder.write("b", "b");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        std::fs::create_dir(folder.inside().join("e")).unwrap();
        folder.write("e/x", "");
        assert_eq!(guest.rename(DIR, "a", DIR, "b"), SUCCESS);
        assert_eq!((folder.read("b").as_str(), guest.stat(DIR, "a", false)), ("a", Err(NOENT)));
        assert_eq!(guest.rename(DIR, "b", DIR, "d"), ISDIR);
        assert_eq!(guest.rename(DIR, "d", DIR, "b"), NOTDIR);
        assert_eq!(guest.rename(DIR, "d", DIR, "e"), NOTEMPTY);
        assert_eq!(guest.rename(DIR, "d", DIR, "d/below"), INVAL);
        assert_eq!(guest.rename(DIR, "none", DIR, "x"), NOENT);
        assert_eq!(guest.rename(DIR, "b/", DIR, "x"), NOTDIR);
        let e = guest.open(DIR, "e", Open::DIR).unwrap();
        assert_eq!(guest.rename(DIR, "b", e, "c"), SUCCESS);
        assert_eq!(folder.read("e/c"), "a");
        assert_eq!(guest.rename(DIR, "d/", DIR, "e/d/"), SUCCESS);
        assert_eq!(guest.stat(e, "d", false).map(|stat| stat.0), Ok(DIRECTORY));
    });
}

#[test]
fn links_are_other_names() {
    with_folder(|guest, folder| {
        folder.write("a", "data");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        let d = guest.open(DIR, "d", Open::DIR).unwrap();
        assert_eq!(guest.link(DIR, "a", d, "b"), SUCCESS);
        assert_eq!(guest.stat(d, "b", false), Ok((FILE, 4, 2)));
        assert_eq!(guest.link(DIR, "a", d, "b"), EXIST);
        assert_eq!(guest.link(DIR, "none", d, "c"), NOENT);
        assert_ne!(guest.link(DIR, "d", DIR, "e"), SUCCESS, "directories have one name");
        assert_eq!(guest.at("path_unlink_file", DIR, "a"), SUCCESS);
        assert_eq!(folder.read("d/b"), "data");
        // A hard link to a symbolic link is a symbolic link; its target is not linked.
        assert_eq!(guest.symlink("b", d, "to_b"), SUCCESS);
        assert_eq!(guest.link(d, "to_b", d, "also"), SUCCESS);
        assert_eq!(guest.stat(d, "also", false).map(|stat| stat.0), Ok(LINK));
        let [old, new] = [guest.text("to_b"), guest.text("new")];
        for lookup in [1, 2, -1] {
            let args = [d, lookup, old[0], old[1], d, new[0], new[1]];
            assert_eq!(guest.call("path_link", &args), INVAL, "{lookup}");
        }
    });
}

fn read_link(guest: &mut Guest, path: &str, len: i64) -> Result<Vec<u8>, u32> {
    let [at, path_len] = guest.text(path);
    let into = OUTSIDE - len;
    match guest.call("path_readlink", &[DIR, at, path_len, into, len, OUT]) {
        SUCCESS => {
            let n = guest.u32(OUT) as usize;
            Ok(guest.bytes(into, n))
        }
        errno => Err(errno),
    }
}

#[test]
fn symbolic_links_keep_what_they_are_given() {
    with_folder(|guest, folder| {
        folder.write("f", "data");
        assert_eq!(guest.symlink("f", DIR, "link"), SUCCESS);
        assert_eq!(guest.symlink("x", DIR, "link"), EXIST);
        assert_eq!(guest.symlink("", DIR, "empty"), NOENT);
        assert_eq!(guest.symlink("f", DIR, "none/link"), NOENT);
        assert_eq!(guest.symlink("Действие/../x", DIR, "long"), SUCCESS);
        let target = "Действие/../x".as_bytes();
        assert_eq!(read_link(guest, "long", 100).as_deref(), Ok(target));
        // The target is truncated at the end of the buffer.
        for len in [0, 1, 5, target.len() as i64] {
            assert_eq!(read_link(guest, "long", len).as_deref(), Ok(&target[..len as usize]));
        }
        assert_eq!(read_link(guest, "f", 10), Err(INVAL));
        assert_eq!(read_link(guest, "none", 10), Err(NOENT));
        let [at, len] = guest.text("link");
        for (into, room, out) in [(OUTSIDE, 1, OUT), (0, -1, OUT), (0, 1, OUTSIDE - 3)] {
            assert_eq!(guest.call("path_readlink", &[DIR, at, len, into, room, out]), FAULT);
        }
        assert_eq!(guest.stat(DIR, "link", false), Ok((LINK, 1, 1)));
        assert_eq!(guest.stat(DIR, "link", true), Ok((FILE, 4, 1)));
        assert_eq!(guest.stat(DIR, "long", true), Err(NOENT));
        for lookup in [2, -1] {
            assert_eq!(guest.call("path_filestat_get", &[DIR, lookup, at, len, OUT]), INVAL);
            let args = [DIR, lookup, at, len, 0, 0, 0];
            assert_eq!(guest.call("path_filestat_set_times", &args), INVAL);
        }
    });
}

#[test]
fn removing_takes_names_of_files() {
    with_folder(|guest, folder| {
        folder.write("f", "data");
        std::fs::create_dir(folder.inside().join("d")).unwrap();
        assert_eq!(guest.symlink("f", DIR, "link"), SUCCESS);
        assert_eq!(guest.at("path_unlink_file", DIR, "d"), ISDIR);
        assert_eq!(guest.at("path_unlink_file", DIR, "f/"), NOTDIR);
        assert_eq!(guest.at("path_unlink_file", DIR, "none"), NOENT);
        assert_eq!(guest.at("path_unlink_file", DIR, ""), NOENT);
        assert_eq!(guest.at("path_unlink_file", DIR, "link"), SUCCESS);
        assert_eq!(folder.read("f"), "data", "removing a link keeps its target");
        // An open file exists until it is closed.
        let fd = guest.open(DIR, "f", Open::READ).unwrap();
        assert_eq!(guest.at("path_unlink_file", DIR, "f"), SUCCESS);
        assert_eq!(guest.read(fd, 10), b"data");
        assert_eq!(guest.open(DIR, "f", Open::READ), Err(NOENT));
    });
}
