//! A host folder, one part of which is open to a program.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

/// The contents of the files outside, and the name of one of them, which paths do not contain.
pub(super) const SECRET: &str = "SeCrEt";
/// The name of other files outside.
pub(super) const SECRET_NAME: &str = "hidden";
/// A directory of the host.
pub(super) const ROOT: &str = "/tmp";

/// `inside` is open to the program; `outside` and a file beside it are not.
pub(super) struct Folder {
    root: TempDir,
    inodes: Vec<u64>,
}

impl Folder {
    pub(super) fn new() -> Folder {
        let root = TempDir::new().expect("there is a folder for temporary files");
        let mut folder = Folder { root, inodes: Vec::new() };
        folder.fill().expect("the host can make files");
        folder.inodes = folder.paths_outside().iter().map(|path| inode(path)).collect();
        folder
    }

    fn fill(&self) -> std::io::Result<()> {
        let (root, inside) = (self.root.path(), self.inside());
        fs::create_dir_all(inside.join("d/e"))?;
        fs::create_dir(root.join("outside"))?;
        fs::write(root.join("outside").join(SECRET_NAME), SECRET)?;
        fs::write(root.join("outside").join(SECRET), SECRET)?;
        fs::write(root.join(SECRET), SECRET)?;
        fs::write(root.join(SECRET_NAME), SECRET)?;
        fs::write(inside.join("file"), "inside")?;
        fs::write(inside.join("d/f"), "deep")?;
        symlink("..", inside.join("up"))?;
        symlink("../outside", inside.join("out"))?;
        symlink(root.join("outside"), inside.join("far"))?;
        symlink("../../outside", inside.join("d/out"))
    }

    pub(super) fn inside(&self) -> PathBuf {
        self.root.path().join("inside")
    }

    /// The inode numbers of everything outside, which no result may contain.
    pub(super) fn inodes(&self) -> &[u64] {
        &self.inodes
    }

    fn paths_outside(&self) -> Vec<PathBuf> {
        let folders = [self.root.path().to_owned(), self.root.path().join("outside")];
        let files =
            folders.iter().flat_map(|folder| [SECRET, SECRET_NAME].map(|name| folder.join(name)));
        files.chain(folders.iter().cloned()).collect()
    }

    /// The state of everything outside that can change. Access times are left out, since this function reads.
    pub(super) fn outside(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<_> {
            let entries = fs::read_dir(folder).expect("the folder is there");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name()).collect();
            names.sort();
            names
        };
        let describe = |path: &PathBuf| {
            let data = path.symlink_metadata().expect("it is there");
            let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
            let contents = match data.is_dir() {
                true => format!("{:?}", names(path)),
                false => read(path),
            };
            format!("{contents} {:o} {} {times:?}", data.mode(), data.nlink())
        };
        self.paths_outside().iter().map(describe).collect()
    }

    /// Alternates a directory inside with links that lead outside. The program may have replaced the
    /// directory, so each step may fail.
    pub(super) fn swap_until(&self, is_done: &AtomicBool) {
        let inside = self.inside();
        let (directory, aside) = (inside.join("d"), inside.join("aside"));
        let outside = self.root.path().join("outside");
        for target in [outside.as_path(), Path::new("../outside"), Path::new("..")].iter().cycle() {
            if is_done.load(Ordering::Relaxed) {
                break;
            }
            let _ = fs::rename(&directory, &aside);
            let _ = symlink(target, &directory);
            std::thread::yield_now();
            let _ = fs::remove_file(&directory);
            let _ = fs::rename(&aside, &directory);
        }
    }
}

fn inode(path: &Path) -> u64 {
    path.symlink_metadata().expect("it is there").ino()
}

fn read(path: &Path) -> String {
    let mut contents = String::new();
    let mut file = File::open(path).expect("it is there");
    file.read_to_string(&mut contents).expect("it is text");
    contents
}
