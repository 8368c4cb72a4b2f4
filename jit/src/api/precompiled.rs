//! Modules that were compiled before, by this process or another.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use slotvm_bytecode::encode;
use slotvm_runtime::Error;

use crate::api::engine::Engine;
use crate::api::module::Module;
use crate::api::pipeline;
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::keeping::MAGIC;

impl Engine {
    /// Whether bytes begin as a precompiled module does.
    pub fn detect_precompiled(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Whether a file begins as a precompiled module does.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn detect_precompiled_file(path: impl AsRef<Path>) -> io::Result<bool> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
        Ok(Engine::detect_precompiled(&bytes))
    }

    /// Compiles a module, given as for [`Module::new`], and returns its precompiled form for [`Module::deserialize`]. It
    /// contains the module. It has a hash by [`Config::code_key`](crate::Config::code_key).
    ///
    /// # Errors
    /// Fails for the reasons of [`Module::new`], or if the engine makes no native code.
    pub fn precompile_module(&self, bytes: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
        let native = native(self)?;
        let (bytes, verified) = pipeline::to_precompile(self, bytes.as_ref())?;
        let keeping = native.new_keeping(&bytes, verified.is_lazy());
        let about = keeping.about();
        let module = pipeline::kept(self, verified.into_completed(), keeping)?;
        module.serialize(&about, &bytes)
    }
}

impl Module {
    /// The precompiled form of the module, for [`Module::deserialize`], with code of all functions: those that have none,
    /// or whose code can be nowhere else, are compiled. All can be nowhere else if they were compiled when the module was
    /// made; [`Engine::precompile_module`] compiles them once. It has a hash by
    /// [`Config::code_key`](crate::Config::code_key).
    ///
    /// # Errors
    /// Fails if a function cannot be compiled, or if the engine makes no native code.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        let native = native(self.engine())?;
        let module = self.native().expect("an engine that makes native code has made some");
        let (about, bytes) = module.kept_module().unwrap_or_else(|| {
            let bytes = encode(self.verified().module());
            (native.new_keeping(&bytes, false).about(), bytes)
        });
        module.serialize(&about, &bytes)
    }

    /// Makes a module from its precompiled form, which [`Module::serialize`] or [`Engine::precompile_module`] have made by
    /// an engine with the same configuration, version and target. Functions have their code when they are first called.
    ///
    /// The bytes have a hash by the engine's [`Config::code_key`](crate::Config::code_key). If it is secret,
    /// [`Module::deserialize_authenticated`] is the same, and safe.
    ///
    /// # Errors
    /// Fails if the bytes are no such form, were changed, have another key, or are for another engine.
    ///
    /// # Safety
    /// The bytes are what [`Module::serialize`] or [`Engine::precompile_module`] have returned, unless they differ from
    /// that by accident: without a key, anybody can make bytes that have the right hash, and their code is executed.
    pub unsafe fn deserialize(engine: &Engine, bytes: impl AsRef<[u8]>) -> Result<Module, Error> {
        let (keeping, module) = native(engine)?.open_bytes(bytes.as_ref())?;
        Module::from_kept(engine, keeping, &module)
    }

    /// The same from a file, which is read when its code is needed. Changes to it after that have no effect; a function whose
    /// code was changed before is compiled.
    ///
    /// # Errors
    /// Fails for the reasons of [`Module::deserialize`], or if the file cannot be read.
    ///
    /// # Safety
    /// That of [`Module::deserialize`] for the content of the file, as long as the module exists.
    pub unsafe fn deserialize_file(
        engine: &Engine,
        path: impl AsRef<Path>,
    ) -> Result<Module, Error> {
        let path = path.as_ref();
        let file = File::open(path);
        let file = file.map_err(|source| Error::File { path: path.to_owned(), source })?;
        let (keeping, module) = native(engine)?.open_file(file)?;
        Module::from_kept(engine, keeping, &module)
    }

    /// [`Module::deserialize`] by a key that the engine must have.
    ///
    /// # Errors
    /// Fails for the reasons of [`Module::deserialize`], or if the engine has no key.
    pub fn deserialize_authenticated(
        engine: &Engine,
        bytes: impl AsRef<[u8]>,
    ) -> Result<Module, Error> {
        check_key(engine)?;
        // SAFETY: only who knows the engine's key can make bytes that are not refused; that it is known to none who would
        // have other code executed is up to the embedder, who has set it.
        unsafe { Module::deserialize(engine, bytes) }
    }

    /// [`Module::deserialize_file`] by a key that the engine must have.
    ///
    /// # Errors
    /// Fails for the reasons of [`Module::deserialize_file`], or if the engine has no key.
    pub fn deserialize_file_authenticated(
        engine: &Engine,
        path: impl AsRef<Path>,
    ) -> Result<Module, Error> {
        check_key(engine)?;
        // SAFETY: as for `deserialize_authenticated`; each piece of the file is checked when it has been read.
        unsafe { Module::deserialize_file(engine, path) }
    }
}

fn native(engine: &Engine) -> Result<&NativeEngine, Error> {
    let native = engine.native().map(|native| &**native);
    native.ok_or_else(|| Error::precompiled("the engine makes no native code"))
}

fn check_key(engine: &Engine) -> Result<(), Error> {
    match engine.config().code_key {
        Some(_) => Ok(()),
        None => Err(Error::precompiled("the engine has no key to authenticate code by")),
    }
}
