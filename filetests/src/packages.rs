//! Real modules, from packages of a registry. They are large and not committed: the registry's own
//! client fetches them once, into `target/packages`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A file of an npm package.
#[derive(Copy, Clone, Debug)]
pub struct NpmFile {
    /// The package.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The path inside the package.
    pub path: &'static str,
}

/// A formatter of TypeScript, written in Rust: 4.2 MB, without imports.
pub const TYPESCRIPT_FORMATTER: NpmFile =
    NpmFile { package: "@dprint/typescript", version: "0.96.1", path: "plugin.wasm" };

/// SQLite, written in C: 0.7 MB, without data worth mentioning.
pub const SQLITE: NpmFile =
    NpmFile { package: "sql.js", version: "1.16.0", path: "dist/sql-wasm.wasm" };

/// A bundler of JavaScript, written in Go: 12 MB.
pub const BUNDLER: NpmFile =
    NpmFile { package: "esbuild-wasm", version: "0.25.0", path: "esbuild.wasm" };

impl NpmFile {
    /// The contents of the file, fetched by `npm` if they are not there yet.
    ///
    /// # Errors
    /// If that is not possible, with the reason.
    pub fn fetch(&self) -> Result<Vec<u8>, String> {
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/packages");
        let name = format!("{}@{}", self.package, self.version);
        let folder = packages.join(name.replace('/', "+"));
        if !folder.exists() {
            // Others may fetch it at the same time: whoever is first puts it in place.
            let own = packages.join(format!("fetching-{}", std::process::id()));
            install(&name, &own)?;
            let placed = fs::rename(&own, &folder);
            if !folder.exists() {
                return Err(format!("cannot place {name}: {placed:?}"));
            }
        }
        let file = folder.join("node_modules").join(self.package).join(self.path);
        fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
    }
}

fn install(name: &str, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    npm.arg(folder).arg(name).stdin(Stdio::null());
    let output = npm.output().map_err(|error| format!("cannot run npm: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("npm cannot install {name}: {}", errors.trim()))
}
