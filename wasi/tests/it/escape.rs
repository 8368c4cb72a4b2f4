//! Path races: no path leads out of an opened directory, whoever creates the links on its way, and whenever.
//!
//! `with_folder` compares everything outside of the directory before and after each test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::errnos::{NOENT, PERM, SUCCESS};
use crate::guest::{CREAT, DIR, EXCL, Guest, OUT, Open, TRUNC, with_folder};

/// Tries every operation with a path that leads out to a file or directory. Returns the name and error
/// number of each. `parent` leads out to the directory `outside`.
fn try_everything(guest: &mut Guest, path: &str, parent: &str) -> Vec<(String, u32)> {
    let mut results = Vec::new();
    for follow in [false, true] {
        for flags in [0, CREAT, TRUNC, CREAT | TRUNC, CREAT | EXCL] {
            for how in [Open::ALL, Open::READ] {
                let opened = guest.open(DIR, path, Open { follow, flags, ..how });
                results.push((
                    format!("open {follow} {flags}"),
                    opened.map_or_else(|e| e, |_| SUCCESS),
                ));
            }
        }
        let stat = guest.stat(DIR, path, follow).map_or_else(|errno| errno, |_| SUCCESS);
        results.push((format!("stat {follow}"), stat));
        let [at, len] = guest.text(path);
        let args = [DIR, follow.into(), at, len, 1, 1, 5];
        results.push((format!("times {follow}"), guest.call("path_filestat_set_times", &args)));
    }
    let new = format!("{parent}/new");
    for name in ["path_create_directory", "path_remove_directory", "path_unlink_file"] {
        results.push((format!("{name} {path}"), guest.at(name, DIR, path)));
        results.push((format!("{name} {new}"), guest.at(name, DIR, &new)));
    }
    results.push(("symlink".to_owned(), guest.symlink("x", DIR, &new)));
    results.push(("link out".to_owned(), guest.link(DIR, "mine", DIR, &new)));
    results.push(("link in".to_owned(), guest.link(DIR, path, DIR, "theirs")));
    results.push(("rename out".to_owned(), guest.rename(DIR, "mine", DIR, &new)));
    results.push(("rename in".to_owned(), guest.rename(DIR, path, DIR, "theirs")));
    let [at, len] = guest.text(path);
    results
        .push(("readlink".to_owned(), guest.call("path_readlink", &[DIR, at, len, 64, 64, OUT])));
    results
}

/// Every operation on the path must fail as an attempt to leave the directory.
#[track_caller]
fn refused(guest: &mut Guest, path: &str, parent: &str) {
    for (what, errno) in try_everything(guest, path, parent) {
        assert_eq!(errno, PERM, "{path}: {what}");
    }
}

/// Slashes at the end of a path follow a link on the host.
#[test]
fn no_ending_of_a_path_leads_out() {
    with_folder(|guest, folder| {
        folder.write("mine", "mine");
        for (target, link) in [("../outside", "to_outside"), ("../beside", "to_beside")] {
            symlink(target, folder.inside().join(link)).unwrap();
        }
        for link in ["to_outside", "to_beside"] {
            for ending in ["/", "//", "/.", "/./", "/..", "/../"] {
                for (what, errno) in try_everything(guest, &format!("{link}{ending}"), link) {
                    assert_ne!(errno, SUCCESS, "{link}{ending}: {what}");
                }
            }
        }
        for path in ["..", "../", "../.", "./..", "/", "//", "/."] {
            for (what, errno) in try_everything(guest, path, "to_outside") {
                assert_eq!(errno, PERM, "{path}: {what}");
            }
        }
    });
}

#[test]
fn neither_dots_nor_slashes_lead_out() {
    with_folder(|guest, folder| {
        folder.write("mine", "");
        fs::create_dir(folder.inside().join("d")).unwrap();
        let outside = folder.root.path().join("outside");
        let absolute = outside.to_str().unwrap().to_owned();
        for parent in ["../outside", "d/../../outside", "./../inside/../outside", &absolute] {
            refused(guest, &format!("{parent}/secret"), parent);
        }
        refused(guest, "/mine", "/");
        refused(guest, "../beside", "..");
        refused(guest, "../inside/mine", "../inside");
        assert_eq!(folder.read("mine"), "");
    });
}

#[test]
fn links_of_directories_do_not_lead_out() {
    with_folder(|guest, folder| {
        folder.write("mine", "");
        let outside = folder.root.path().join("outside");
        fs::create_dir(folder.inside().join("d")).unwrap();
        let links: [(&str, &Path); 6] = [
            ("absolute", &outside),
            ("relative", Path::new("../outside")),
            ("d/relative", Path::new("../../outside")),
            ("roundabout", Path::new("d/../.././outside/../outside")),
            ("chain", Path::new("d/relative")),
            ("chains", Path::new("chain")),
        ];
        for (link, target) in links {
            symlink(target, folder.inside().join(link)).unwrap();
        }
        for (link, _) in links {
            refused(guest, &format!("{link}/secret"), link);
        }
        symlink("/", folder.inside().join("root")).unwrap();
        refused(guest, &format!("root{}/secret", outside.display()), "root");
    });
}

#[test]
fn links_of_files_are_not_followed_out() {
    with_folder(|guest, folder| {
        let secret = folder.root.path().join("outside/secret");
        symlink(&secret, folder.inside().join("absolute")).unwrap();
        symlink("../outside/secret", folder.inside().join("relative")).unwrap();
        symlink("relative", folder.inside().join("chain")).unwrap();
        // The target does not exist yet.
        symlink("../outside/new", folder.inside().join("dangling")).unwrap();
        for link in ["absolute", "chain", "relative", "dangling"] {
            for flags in [0, CREAT, TRUNC, CREAT | TRUNC] {
                let how = Open { follow: true, flags, ..Open::ALL };
                assert_eq!(guest.open(DIR, link, how), Err(PERM), "{link} {flags}");
            }
            assert_eq!(guest.stat(DIR, link, true), Err(PERM), "{link}");
            let [at, len] = guest.text(link);
            let args = [DIR, 1, at, len, 1, 1, 5];
            assert_eq!(guest.call("path_filestat_set_times", &args), PERM, "{link}");
            assert_eq!(guest.at("path_remove_directory", DIR, link), 54, "it is a link");
            // Operations on the link itself do not leave the directory.
            assert!(guest.stat(DIR, link, false).is_ok());
            let moved = format!("{link}.moved");
            assert_eq!(guest.rename(DIR, link, DIR, &moved), SUCCESS);
            assert_eq!(guest.at("path_unlink_file", DIR, &moved), SUCCESS);
        }
        assert_eq!(fs::read_dir(folder.inside()).unwrap().count(), 0);
    });
}

#[test]
fn programs_make_no_links_that_lead_out() {
    with_folder(|guest, folder| {
        let secret = folder.root.path().join("outside/secret");
        assert_eq!(guest.symlink(secret.to_str().unwrap(), DIR, "absolute"), PERM);
        assert_eq!(guest.symlink("/", DIR, "root"), PERM);
        // Moving its directory can make a relative link lead out, so links are checked when they are
        // followed.
        assert_eq!(guest.symlink("../outside/secret", DIR, "relative"), SUCCESS);
        let how = Open { follow: true, ..Open::READ };
        assert_eq!(guest.open(DIR, "relative", how), Err(PERM));
        assert_eq!(guest.stat(DIR, "absolute", false), Err(NOENT));
    });
}

#[test]
fn moving_a_directory_does_not_move_its_borders() {
    with_folder(|guest, folder| {
        fs::create_dir_all(folder.inside().join("a/b/c")).unwrap();
        folder.write("file", "inside");
        assert_eq!(guest.symlink("../../..", DIR, "a/b/c/up"), SUCCESS);
        let file = guest.open(DIR, "a/b/c/up/file", Open::READ).unwrap();
        assert_eq!(guest.read(file, 10), b"inside");
        // The link is moved up, so that it leads out.
        assert_eq!(guest.rename(DIR, "a/b/c", DIR, "c"), SUCCESS);
        assert_eq!(guest.open(DIR, "c/up/beside", Open::READ), Err(PERM));
        assert_eq!(guest.open(DIR, "c/up/inside/file", Open::READ), Err(PERM));
        // An open directory stays the same wherever it is moved, and has no parent.
        let b = guest.open(DIR, "a/b", Open::DIR).unwrap();
        let place = folder.elsewhere.path().join("moved");
        fs::rename(folder.inside().join("a/b"), &place).unwrap();
        fs::write(folder.elsewhere.path().join("secret"), "").unwrap();
        assert_eq!(guest.open(b, "../secret", Open::READ), Err(PERM));
        assert_eq!(guest.open(b, "..", Open::DIR), Err(PERM));
        assert_eq!(guest.stat(b, ".", true).map(|stat| stat.0), Ok(3));
    });
}

/// Makes a thread end with the scope that it serves, even after a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A directory and a link that leads out keep replacing each other, while the program works in it.
#[test]
fn links_that_are_swapped_in_do_not_lead_out() {
    with_folder(|guest, folder| {
        let inside = folder.inside();
        fs::create_dir(inside.join("d")).unwrap();
        folder.write("mine", "mine");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| {
                let outside = folder.root.path().join("outside");
                let (d, aside) = (inside.join("d"), inside.join("aside"));
                let targets = [outside.as_path(), Path::new("../outside")];
                for target in targets.into_iter().cycle() {
                    if is_done.load(Ordering::Relaxed) {
                        break;
                    }
                    fs::rename(&d, &aside).unwrap();
                    symlink(target, &d).unwrap();
                    fs::remove_file(&d).unwrap();
                    fs::rename(&aside, &d).unwrap();
                }
            });
            let done = Done(&is_done);
            let mut n_refused = 0;
            let mut n_done = 0;
            let [path, len] = guest.text("d/secret");
            let [new, new_len] = guest.text("d/new");
            let [mine, mine_len] = guest.text("mine");
            let all = Open::ALL.rights;
            let hangs_at = Instant::now() + Duration::from_secs(300);
            let mut n_rounds = 0;
            // On a busy machine one thread may sleep for a long time, so it goes on until both outcomes
            // have occurred.
            while n_rounds < 2000 || n_done == 0 || n_refused == 0 {
                n_rounds += 1;
                assert!(Instant::now() < hangs_at, "{n_done} done, {n_refused} refused");
                let calls: [(&str, &[i64]); 8] = [
                    ("path_open", &[DIR, 1, path, len, CREAT | TRUNC, all, 0, 0, OUT]),
                    ("path_filestat_set_times", &[DIR, 1, path, len, 1, 1, 5]),
                    ("path_link", &[DIR, 0, mine, mine_len, DIR, new, new_len]),
                    ("path_unlink_file", &[DIR, path, len]),
                    ("path_unlink_file", &[DIR, new, new_len]),
                    ("path_create_directory", &[DIR, new, new_len]),
                    ("path_remove_directory", &[DIR, new, new_len]),
                    ("path_symlink", &[mine, mine_len, DIR, path, len]),
                ];
                for (name, args) in calls {
                    let errno = guest.call(name, args);
                    n_refused += u32::from(errno == PERM);
                    n_done += u32::from(errno == SUCCESS);
                    if name == "path_open" && errno == SUCCESS {
                        // If opening succeeds, the file is inside.
                        let fd = guest.u32(OUT).into();
                        guest.ok("fd_filestat_set_size", &[fd, 0]);
                        guest.ok("fd_close", &[fd]);
                    }
                }
            }
            drop(done);
            swapping.join().expect("the thread swaps");
        });
    });
}
