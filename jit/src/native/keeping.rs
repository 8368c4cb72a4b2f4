//! Keeping the code of a module: placing what was kept, and collecting what is to be.
//!
//! Code is kept in files of their own ([`Engine::precompile_module`](crate::Engine::precompile_module)) or in a cache,
//! which [`crate::native::saving`] writes.

use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::Ordering;

use slotvm_bytecode::module::{EntityKind, ImportKind};
use slotvm_bytecode::parallel::try_map;
use slotvm_runtime::Error;
use slotvm_ssa::pipeline::Stage;

use crate::code::unit::Placing;
use crate::compile::function::Compiler;
use crate::compile::subject::Subject;
use crate::compile::timings::Timings;
use crate::config::Cache;
use crate::native::engine::NativeEngine;
use crate::native::kept::Kept;
use crate::native::lazy::{LazyFunction, State};
use crate::native::stack;
use crate::precompiled::chunk::{self, Chunk};
pub(crate) use crate::precompiled::file::MAGIC;
use crate::precompiled::file::{self, About, Contents, Image, Refusal, Source};
use crate::precompiled::{Key, Part};

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

impl State {
    /// Compiles all that is not there yet.
    ///
    /// # Errors
    /// Fails if the code generator refuses a function, or there is no memory for code.
    pub(super) fn complete(&self, is_parallel: bool, timings: &mut Timings) -> Result<(), Error> {
        self.complete_functions(is_parallel, timings)?;
        let State { native, module, trampolines, .. } = self;
        let funcs = module.module().exports.iter().filter(|e| e.kind == EntityKind::Func);
        for func in funcs.map(|export| export.index).chain(module.module().start) {
            trampolines.entry(native, module, module.func_type_index(func))?;
        }
        for import in &module.module().imports {
            if let ImportKind::Func(ty) = import.kind {
                trampolines.to_host(native, module, ty)?;
            }
        }
        Ok(())
    }

    /// The file with all code that there is, authenticated by a key.
    pub(super) fn file(&self, key: &Key, about: &About, module: Option<&[u8]>) -> Vec<u8> {
        let kept = self.kept.as_deref();
        let mut chunks = kept.map_or_else(Vec::new, Kept::chunks);
        chunks.extend(self.new_chunks());
        let contents = Contents { about: about.clone(), module, chunks };
        file::write(key, &contents)
    }

    /// The number of parts that were kept.
    pub(super) fn n_kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len())
    }

    /// The number of functions and loops that were made, not kept.
    pub(super) fn n_made(&self) -> usize {
        let mut n = 0;
        self.for_each_made(|_, _, _| n += 1);
        n
    }

    fn new_chunks(&self) -> Vec<(Vec<Part>, Vec<u8>)> {
        let (mut parts, mut codes) = (Vec::new(), Vec::new());
        self.for_each_made(|part, made, placing| {
            parts.push(part);
            codes.push(self.code.to_machine_code(&made.code, placing));
        });
        let mut parts = parts.into_iter();
        let mut chunks: Vec<_> = (chunk::pack(&codes).iter())
            .map(|chunk| (parts.by_ref().take(chunk.pieces.len()).collect(), chunk.encode()))
            .collect();
        let kept = self.kept.as_deref();
        let trampolines = self.trampolines.made().into_iter().filter_map(|made| made.to_part());
        let new = trampolines.filter(|(part, _)| kept.is_none_or(|kept| !kept.has(part)));
        // Each is placed alone, since the engine frees it with its last user.
        chunks.extend(new.flat_map(|(part, code)| {
            chunk::pack([&code]).into_iter().map(move |chunk| (vec![part.clone()], chunk.encode()))
        }));
        chunks
    }

    /// Compiles all functions that are not there yet, and places them together.
    fn complete_functions(&self, is_parallel: bool, timings: &mut Timings) -> Result<(), Error> {
        let is_missing = |&index: &u32| {
            let kept = self.kept.as_ref();
            self.functions[index as usize].get().is_none()
                && kept.is_none_or(|kept| kept.func(index).is_none())
        };
        let missing: Vec<u32> = (0..self.functions.len() as u32).filter(is_missing).collect();
        let first_func = self.module.n_imported_funcs();
        let compile = |compiler: &mut Compiler, i: usize| {
            let func = first_func + missing[i];
            compiler.compile(&self.module, func, self.shares.share(&self.module, func))
        };
        let compiler = || Compiler::new(self.options.clone());
        let containment = &self.options.containment;
        let all = stack::with_room(|| try_map(missing.len(), is_parallel, compiler, compile));
        let no_thread = |error| containment.no_thread(Subject::Module, &error);
        let all = all.map_err(no_thread).map_err(Error::compile)??;
        let mut packed = Vec::new();
        for (&index, mut compiled) in missing.iter().zip(all) {
            timings.0 += std::mem::take(&mut compiled.times);
            self.draw(first_func + index, false, &compiled);
            if compiled.code.is_kept_as_it_is() {
                packed.push((index, compiled));
            } else {
                let subject = Subject::Function(first_func + index);
                let name = || self.module.func_name(first_func + index);
                let place = || self.place(index as usize, compiled);
                let placed = containment.run(subject, name, place)?;
                self.set(index, placed);
            }
        }
        let place = || {
            let codes = packed.iter().map(|(_, compiled)| &compiled.code);
            let mut functions = packed.iter();
            for chunk in chunk::pack(codes) {
                let place = || self.code.place(self.native.isa(), &chunk.code, &self.module);
                let start = containment.run(Subject::Module, String::new, place);
                let start = start.map_err(Error::compile)?.start;
                for (piece, (index, compiled)) in chunk.pieces.iter().zip(functions.by_ref()) {
                    let code = start + piece.start as usize..start + piece.end as usize;
                    let info = compiled.info(&self.module, first_func + index);
                    let placing = Some(compiled.code.placing());
                    let placed = self.announced(code, *index as usize, placing, Some(info));
                    self.set(*index, placed);
                }
            }
            Ok(())
        };
        timings.0.stage(Stage::Place, place)
    }

    /// Calls `f` for the functions and loops that were compiled, and can be kept.
    fn for_each_made(&self, mut f: impl FnMut(Part, &LazyFunction, Placing)) {
        let mut made = |part, made: &LazyFunction| {
            if let (Some(_), Some(placing)) = (&made.info, made.placing) {
                f(part, made, placing);
            }
        };
        for (index, function) in (0..).zip(&self.functions) {
            if let Some(Ok(function)) = function.get() {
                made(Part::Func(index), function);
            }
        }
        self.parts.for_each_made(|func, starts, function| {
            let func = func - self.module.n_imported_funcs();
            made(Part::Loops { func, starts: starts.to_vec() }, function);
        });
    }
}

impl State {
    /// Places the code of a function, if it was kept.
    pub(super) fn place_kept_func(&self, index: usize) {
        let Some(kept) = &self.kept else { return };
        if let Some(chunk) = kept.func(index as u32) {
            self.place_kept(kept, chunk);
        }
    }

    /// Places the code that goes on in a loop, if it was kept.
    pub(super) fn place_kept_loops(&self, index: usize, block: u32) {
        let Some(kept) = &self.kept else { return };
        if let Some(chunk) = kept.loops(index as u32, block) {
            self.place_kept(kept, chunk);
        }
    }

    fn place_kept(&self, kept: &Kept, chunk: usize) {
        let place = |Chunk { code, pieces }: Chunk, parts: &[Part]| {
            let Ok(placed) = self.code.place(self.native.isa(), &code, &self.module) else {
                // There is no memory for it. Whoever compiles the function fails, too.
                kept.refuse(chunk, &"no memory for code");
                return;
            };
            for (piece, part) in pieces.into_iter().zip(parts) {
                let start = placed.start;
                let code = start + piece.start as usize..start + piece.end as usize;
                match part {
                    Part::Func(index) if (*index as usize) < self.functions.len() => {
                        self.set(*index, self.announced(code, *index as usize, None, None));
                    }
                    Part::Loops { func, starts } => {
                        let placed = self.announced(code, *func as usize, None, None);
                        let func = func + self.module.n_imported_funcs();
                        self.parts.set_loops(func, starts, placed);
                    }
                    Part::Func(_) | Part::Trampoline(..) => {
                        kept.refuse(chunk, &"the module has no such function");
                    }
                }
            }
        };
        kept.place(chunk, place);
    }

    /// Gives a function its code, unless it has some.
    fn set(&self, index: u32, function: LazyFunction) {
        let entry = ptr::with_exposed_provenance_mut(function.code.start);
        if self.functions[index as usize].set(Ok(function)).is_ok() {
            self.entries[index as usize].store(entry, Ordering::Release);
        }
    }
}
