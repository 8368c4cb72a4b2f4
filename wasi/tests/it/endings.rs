//! What may follow the last name of a path: slashes, `.` and `..`. Each call with each such path does what the host does with
//! the same path in the same tree: it returns the same error, and leaves the same tree behind.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{self as host, AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::errnos::{BUSY, EXIST, INVAL, ISDIR, LOOP, NOENT, NOTDIR, NOTEMPTY, PERM, SUCCESS};
use crate::guest::{CREAT, DIR, DIRECTORY, EXCL, Guest, OUT, Open, TRUNC, engines};

/// Paths in a tree, of which some lead to nothing.
const PATHS: [&str; 15] = [
    "file",
    "dir",
    "full",
    "to_file",
    "to_dir",
    "to_to_dir",
    "dangling",
    "loop",
    "none",
    "none/x",
    "file/x",
    "dir/x",
    "full/x",
    "to_full/x",
    ".",
];
const ENDINGS: [&str; 7] = ["", "/", "//", "/.", "/./", "/..", "/../"];

fn make_tree(root: &Path) {
    fs::write(root.join("file"), "data").unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    fs::create_dir(root.join("full")).unwrap();
    fs::write(root.join("full/x"), "more").unwrap();
    for (target, link) in [
        ("file", "to_file"),
        ("dir", "to_dir"),
        ("full", "to_full"),
        ("to_dir", "to_to_dir"),
        ("none", "dangling"),
        ("loop", "loop"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
}

/// A time that nothing in a tree has by itself.
const SECONDS: i64 = 1_000_000;

/// The entries below a folder, a line each.
fn tree(root: &Path, indent: usize, lines: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let metadata = path.symlink_metadata().unwrap();
        let is_set = if metadata.mtime() == SECONDS { " set" } else { "" };
        let what = match metadata.file_type() {
            ty if ty.is_symlink() => format!("-> {:?}", fs::read_link(&path).unwrap()),
            ty if ty.is_dir() => "directory".to_owned(),
            _ => format!("{:?} {}", fs::read_to_string(&path).unwrap(), metadata.nlink()),
        };
        writeln!(lines, "{:indent$}{name:?} {what}{is_set}", "").unwrap();
        if metadata.is_dir() {
            tree(&path, indent + 2, lines);
        }
    }
}

#[derive(Copy, Clone, Debug)]
enum Call {
    Stat { follow: bool },
    SetTimes { follow: bool },
    ReadLink,
    CreateDirectory,
    RemoveDirectory,
    Unlink,
    Symlink,
    LinkFrom,
    LinkTo(&'static str),
    RenameFrom(&'static str),
    RenameTo(&'static str),
    Open { flags: i64, follow: bool },
}

fn calls() -> Vec<Call> {
    let mut calls = vec![
        Call::ReadLink,
        Call::CreateDirectory,
        Call::RemoveDirectory,
        Call::Unlink,
        Call::Symlink,
        Call::LinkFrom,
    ];
    calls.extend(["file", "dir", "to_file", "missing"].map(Call::LinkTo));
    calls.extend(["new", "new/", "new/.", "to_file/", "dir", "missing/new"].map(Call::RenameFrom));
    calls.extend(
        ["file", "file/", "dir", "dir/", "to_dir", "to_dir/", "missing"].map(Call::RenameTo),
    );
    for follow in [false, true] {
        calls.extend([Call::Stat { follow }, Call::SetTimes { follow }]);
        let flags = [0, DIRECTORY, CREAT, CREAT | EXCL, TRUNC, CREAT | TRUNC];
        calls.extend(flags.map(|flags| Call::Open { flags, follow }));
    }
    calls
}

/// What a call has returned: more than success where there is more.
type Outcome = Result<String, u32>;

fn by_guest(guest: &mut Guest, call: Call, path: &str) -> Outcome {
    let [at, len] = guest.text(path);
    let errno = match call {
        Call::Stat { follow } => {
            let (ty, size, _) = guest.stat(DIR, path, follow)?;
            // Directories have the size that the file system likes.
            return Ok(if ty == 3 { "directory".to_owned() } else { format!("{ty} {size}") });
        }
        Call::SetTimes { follow } => {
            let time = SECONDS * 1_000_000_000;
            let args = [DIR, follow.into(), at, len, 0, time, 4];
            guest.call("path_filestat_set_times", &args)
        }
        Call::ReadLink => {
            let into = guest.put([0; 100]);
            match guest.call("path_readlink", &[DIR, at, len, into, 100, OUT]) {
                SUCCESS => {
                    let n = guest.u32(OUT) as usize;
                    return Ok(String::from_utf8(guest.bytes(into, n)).unwrap());
                }
                errno => errno,
            }
        }
        Call::CreateDirectory => guest.at("path_create_directory", DIR, path),
        Call::RemoveDirectory => guest.at("path_remove_directory", DIR, path),
        Call::Unlink => guest.at("path_unlink_file", DIR, path),
        Call::Symlink => guest.symlink("file", DIR, path),
        Call::LinkFrom => guest.link(DIR, path, DIR, "new"),
        Call::LinkTo(old) => guest.link(DIR, old, DIR, path),
        Call::RenameFrom(new) => guest.rename(DIR, path, DIR, new),
        Call::RenameTo(old) => guest.rename(DIR, old, DIR, path),
        Call::Open { flags, follow } => {
            let fd = guest.open(DIR, path, Open { flags, follow, ..Open::READ })?;
            guest.ok("fd_filestat_get", &[fd, OUT]);
            return Ok(guest.bytes(OUT + 16, 1)[0].to_string());
        }
    };
    if errno == SUCCESS { Ok(String::new()) } else { Err(errno) }
}

/// The type of a file as WASI numbers it.
fn number(mode: u32) -> u8 {
    match host::FileType::from_raw_mode(mode) {
        host::FileType::Directory => 3,
        host::FileType::RegularFile => 4,
        host::FileType::Symlink => 7,
        other => panic!("{other:?} is not made here"),
    }
}

fn by_host(root: &File, call: Call, path: &str) -> Outcome {
    let no_follow = |follow| if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let result = match call {
        Call::Stat { follow } => {
            host::statat(root, path, no_follow(follow)).map(|stat| match number(stat.st_mode) {
                3 => "directory".to_owned(),
                ty => format!("{ty} {}", stat.st_size),
            })
        }
        Call::SetTimes { follow } => {
            let times = Timestamps {
                last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
                last_modification: Timespec { tv_sec: SECONDS, tv_nsec: 0 },
            };
            host::utimensat(root, path, &times, no_follow(follow)).map(|()| String::new())
        }
        Call::ReadLink => host::readlinkat(root, path, Vec::new())
            .map(|target| target.into_string().expect("the test has written it")),
        Call::Open { flags, follow } => {
            let has = |flag| flags & flag != 0;
            let writes = has(CREAT) || has(TRUNC);
            let mut how = if writes { OFlags::RDWR } else { OFlags::RDONLY } | OFlags::CLOEXEC;
            how.set(OFlags::NOFOLLOW, !follow);
            how.set(OFlags::CREATE, has(CREAT));
            how.set(OFlags::EXCL, has(EXCL));
            how.set(OFlags::TRUNC, has(TRUNC));
            how.set(OFlags::DIRECTORY, has(DIRECTORY));
            host::openat(root, path, how, Mode::from(0o666))
                .map(|file| number(host::fstat(file).expect("it is open").st_mode).to_string())
        }
        call => match call {
            Call::CreateDirectory => host::mkdirat(root, path, Mode::from(0o777)),
            Call::RemoveDirectory => host::unlinkat(root, path, AtFlags::REMOVEDIR),
            Call::Unlink => host::unlinkat(root, path, AtFlags::empty()),
            Call::Symlink => host::symlinkat("file", root, path),
            Call::LinkFrom => host::linkat(root, path, root, "new", AtFlags::empty()),
            Call::LinkTo(old) => host::linkat(root, old, root, path, AtFlags::empty()),
            Call::RenameFrom(new) => host::renameat(root, path, root, new),
            Call::RenameTo(old) => host::renameat(root, old, root, path),
            _ => unreachable!("matched above"),
        }
        .map(|()| String::new()),
    };
    result.map_err(|errno| match errno {
        Errno::BUSY => BUSY,
        Errno::EXIST => EXIST,
        Errno::INVAL => INVAL,
        Errno::ISDIR => ISDIR,
        Errno::LOOP => LOOP,
        Errno::NOENT => NOENT,
        Errno::NOTDIR => NOTDIR,
        Errno::NOTEMPTY => NOTEMPTY,
        Errno::PERM => PERM,
        other => panic!("{call:?} {path}: {other}"),
    })
}

/// What a call does in a tree of its own.
fn in_tree(run: impl FnOnce(&Path) -> Outcome) -> (Outcome, String) {
    let root = TempDir::new().unwrap();
    make_tree(root.path());
    let outcome = run(root.path());
    let mut lines = String::new();
    tree(root.path(), 0, &mut lines);
    (outcome, lines)
}

#[test]
fn paths_with_any_ending_do_what_they_do_on_the_host() {
    let engine = &engines()[0];
    let (mut n_rows, mut differences) = (0, String::new());
    for call in calls() {
        for name in PATHS {
            for ending in ENDINGS {
                if name == "." && ending.starts_with("/..") {
                    // It leads out.
                    continue;
                }
                let path = format!("{name}{ending}");
                let expected = in_tree(|root| by_host(&File::open(root).unwrap(), call, &path));
                let found = in_tree(|root| {
                    let mut builder = slotvm_wasi::WasiCtx::builder();
                    builder.preopened_dir(root, "/").unwrap();
                    by_guest(&mut Guest::new(engine, builder.build()), call, &path)
                });
                n_rows += 1;
                if found.0 != expected.0 {
                    let (found, expected) = (found.0, expected.0);
                    writeln!(differences, "{call:?} {path}: {found:?}, not {expected:?}").unwrap();
                } else if found.1 != expected.1 {
                    let (found, expected) = (found.1, expected.1);
                    writeln!(differences, "{call:?} {path} leaves\n{found}, not\n{expected}")
                        .unwrap();
                }
            }
        }
    }
    assert!(n_rows >= 400, "{n_rows}");
    assert!(differences.is_empty(), "of {n_rows}:\n{differences}");
}
