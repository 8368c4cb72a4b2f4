//! The places where the code of a module is kept, and opening what is there.
//!
//! Code is kept in files of their own ([`Engine::precompile_module`](crate::Engine::precompile_module)) or in a cache,
//! which [`crate::native::ownership::saving`] writes.

use std::fs::File;
use std::io;

use slotvm_runtime::Error;

use crate::config::Cache;
use crate::native::ownership::engine::NativeEngine;
pub(crate) use crate::precompiled::file::MAGIC;
use crate::precompiled::file::{self, About, Image, Refusal, Source};

/// The places of a module's code outside of the process.
pub(crate) struct Keeping {
    /// The module and the engine that it is for.
    pub(crate) about: About,
    /// The code that there is.
    pub(crate) kept: Option<Image>,
    /// The cache that code is to go to, and the name there.
    pub(crate) cache: Option<(Cache, String)>,
    /// Whether there is a file in the cache that was not used, since it is not as it should be.
    pub(crate) is_replaced: bool,
}

impl Keeping {
    pub(crate) fn about(&self) -> About {
        self.about.clone()
    }

    /// Whether no code was kept.
    pub(crate) fn is_new(&self) -> bool {
        self.kept.is_none()
    }

    /// Sets whether functions of the module can be left to be translated when they are asked for.
    pub(crate) fn set_lazy(&mut self, is_lazy: bool) {
        self.about.is_lazy = is_lazy;
    }

    /// Whether the functions of the module were validated before, and can be translated when they are asked for.
    pub(crate) fn is_validated(&self) -> bool {
        self.kept.is_some() && self.about.is_lazy
    }
}

impl NativeEngine {
    /// The places of the code of the module with these bytes, if the engine has a cache. `extension` says which format they
    /// are.
    pub(crate) fn keeping(&self, bytes: &[u8], extension: Option<&str>) -> Option<Keeping> {
        let cache = self.config().cache.as_ref()?;
        let (fields, module) = (self.fields(), file::hash(bytes));
        let texts = fields.iter().flat_map(|(name, value)| [name.as_str(), value]);
        let name = file::name(cache.key(), &module, texts.chain(extension));
        let kept = self.open_cached(cache, &name, &module);
        let is_replaced = kept.is_err();
        let kept = kept.unwrap_or_default();
        let about = match &kept {
            Some(image) => image.about().clone(),
            // Whoever loads the module finds out whether it is.
            None => About { fields: fields.clone(), module, is_lazy: false },
        };
        Some(Keeping { about, kept, cache: Some((cache.clone(), name)), is_replaced })
    }

    /// The code of a module in a file of a cache, if there is one.
    ///
    /// # Errors
    /// Fails if the file is not as it should be. Then it is replaced.
    fn open_cached(
        &self,
        cache: &Cache,
        name: &str,
        module: &[u8; 32],
    ) -> Result<Option<Image>, Refusal> {
        let open = || {
            let image = Image::open(Source::File(cache.open(name)?), cache.key(), self.fields())?;
            if image.about().module == *module { Ok(image) } else { Err(Refusal::OtherModule) }
        };
        match open() {
            Ok(image) => Ok(Some(image)),
            Err(Refusal::Read(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(refusal) => {
                tracing::warn!(target: "slotvm::cache", name, %refusal, "file not used");
                Err(refusal)
            }
        }
    }

    /// The places of the code of a module with these bytes, for a file of its own.
    pub(crate) fn new_keeping(&self, bytes: &[u8], is_lazy: bool) -> Keeping {
        let (fields, module) = (self.fields().clone(), file::hash(bytes));
        let about = About { fields, module, is_lazy };
        Keeping { about, kept: None, cache: None, is_replaced: false }
    }

    /// The module in the bytes of a file with code, which is kept there.
    pub(crate) fn open_bytes(&self, bytes: &[u8]) -> Result<(Keeping, Vec<u8>), Error> {
        self.open(Source::Bytes(bytes.into()))
    }

    /// The module in a file with code, which is kept there.
    pub(crate) fn open_file(&self, file: File) -> Result<(Keeping, Vec<u8>), Error> {
        self.open(Source::File(file))
    }

    fn open(&self, source: Source) -> Result<(Keeping, Vec<u8>), Error> {
        let open = || {
            let image = Image::open(source, self.code_key(), self.fields())?;
            let module = image.module()?;
            let about = image.about().clone();
            Ok::<_, Refusal>((
                Keeping { about, kept: Some(image), cache: None, is_replaced: false },
                module,
            ))
        };
        open().map_err(Error::precompiled)
    }
}
