//! The native code of a module that is made piece by piece: its functions, and loops that are entered by themselves.
//!
//! Code calls a function of the module at the address in its cell of a table, the [entries](CodeTable::entries). Placing a
//! function does not change that: [`CodeTable::set`] and [`CodeTable::call_at`] do. Each function gets code once, whoever
//! makes it, and newer versions of it where that is left too often. Older versions stay: frames may be in them. Code that was
//! kept is placed when it is asked for.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::native::{CodeVersion, Part};

use crate::code::debug_code::DebugCode;
use crate::code::debugger::DebugImage;
use crate::code::machine_code::Placing;
use crate::code::unit::CodeArena;
use crate::compile::error::CompileError;
use crate::compile::function::CompiledFunction;
use crate::compile::function_info::FunctionInfo;
use crate::lower::exits::CodeExits;
use crate::native::ownership::engine::NativeEngine;
use crate::native::ownership::kept::Kept;
use crate::precompiled::Item;
use crate::precompiled::chunk::Chunk;

/// See the module documentation.
pub(crate) struct CodeTable {
    pub(crate) native: Arc<NativeEngine>,
    pub(crate) module: Arc<VerifiedModule>,
    /// The targets of calls, by function that the module defines.
    entries: Box<[AtomicPtr<u8>]>,
    // Dropped before the code that they show.
    functions: Box<[OnceLock<Result<Placed, CompileError>>]>,
    /// By function.
    loops: Mutex<HashMap<u32, Vec<PlacedLoops>>>,
    arena: CodeArena,
    /// The exits that code in the arena names by their addresses.
    exits: Mutex<Vec<CodeExits>>,
    /// Code that need not be made.
    pub(crate) kept: Option<Arc<Kept>>,
}

/// Code of a function or of loops that was placed.
pub(crate) struct Placed {
    _debug_image: Option<DebugImage>,
    pub(crate) code: Range<usize>,
    /// Its alignment, if it can be kept.
    pub(crate) placing: Option<Placing>,
    /// None if the code was kept.
    pub(crate) info: Option<FunctionInfo>,
    /// The next version.
    newer: OnceLock<Box<Placed>>,
}

/// Code that goes on in any of some loops of a function.
struct PlacedLoops {
    /// The number of that for whose sake there is code.
    first: u32,
    /// Their numbers, in ascending order.
    loops: Vec<u32>,
    placed: Placed,
}

impl PlacedLoops {
    fn has(&self, number: u32) -> bool {
        self.loops.binary_search(&number).is_ok()
    }
}

impl Placed {
    pub(crate) fn address(&self) -> *const u8 {
        ptr::with_exposed_provenance(self.code.start)
    }

    /// This version, and all that were made after it.
    fn versions(&self) -> impl Iterator<Item = &Placed> {
        iter::successors(Some(self), |placed| placed.newer.get().map(|newer| &**newer))
    }

    fn newest(&self) -> &Placed {
        self.versions().last().expect("there is one")
    }

    /// Adds a version, before which there were so many, unless another thread was as fast. Returns the address of the newest.
    fn add(&self, number: u32, newer: Placed) -> *const u8 {
        let before = self.versions().take(number as usize).last();
        // Calls may lead to code that has no place here. It stays in the arena.
        _ = before.expect("there was a version before").newer.set(Box::new(newer));
        self.newest().address()
    }
}

impl CodeTable {
    /// Nothing is placed yet, and all entries are null.
    pub(crate) fn new(
        native: &Arc<NativeEngine>,
        module: &Arc<VerifiedModule>,
        kept: Option<Arc<Kept>>,
    ) -> CodeTable {
        let n_funcs = module.module().funcs.len();
        let nowhere = || AtomicPtr::new(ptr::null_mut());
        CodeTable {
            native: native.clone(),
            module: module.clone(),
            entries: std::iter::repeat_with(nowhere).take(n_funcs).collect(),
            functions: std::iter::repeat_with(OnceLock::new).take(n_funcs).collect(),
            loops: Mutex::default(),
            arena: CodeArena::new(),
            exits: Mutex::default(),
            kept,
        }
    }

    /// The targets of calls of each function, see [`VmCtx::entries`].
    ///
    /// [`VmCtx::entries`]: slotvm_runtime::native::VmCtx::entries
    pub(crate) fn entries(&self) -> &[AtomicPtr<u8>] {
        &self.entries
    }

    /// The number by which [`Workers`](crate::compile::workers::Workers) know the module.
    pub(crate) fn number(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The number that a function which the module defines has in the module.
    pub(crate) fn func(&self, index: usize) -> u32 {
        self.module.n_imported_funcs() + index as u32
    }

    /// The number of a function among those that the module defines.
    pub(crate) fn index(&self, func: u32) -> usize {
        (func - self.module.n_imported_funcs()) as usize
    }

    /// The number of instructions of a function, by its number in the module.
    pub(crate) fn n_insts(&self, func: u32) -> u32 {
        let body = self.module.body(func).expect("the module defines the function");
        body.blocks.iter().map(|block| block.cost).fold(0, u32::saturating_add)
    }

    /// The code of a function, by its number among those that the module defines, or why there is none; empty as long as
    /// nobody has tried.
    pub(crate) fn function(&self, index: usize) -> &OnceLock<Result<Placed, CompileError>> {
        &self.functions[index]
    }

    /// The address of a function, if it has code.
    pub(crate) fn address(&self, index: usize) -> Option<*const u8> {
        Some(self.functions[index].get()?.as_ref().ok()?.newest().address())
    }

    /// Gives a part, which has code, a newer version of that, before which there were so many. Returns the address of the
    /// newest.
    pub(crate) fn add(&self, part: Part, number: u32, placed: Placed) -> *const u8 {
        let address = match part {
            Part::Func(func) => {
                let first = self.functions[self.index(func)].get();
                first.and_then(|first| first.as_ref().ok()).map(|first| first.add(number, placed))
            }
            Part::Loop(func, first) => {
                let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
                let known = loops.get(&func).and_then(|all| all.iter().find(|all| all.has(first)));
                known.map(|known| known.placed.add(number, placed))
            }
        };
        address.expect("there was a version before")
    }

    /// The newest code of a part, if that was made after a version, and no thread changes it at the moment. With it come the
    /// numbers of the loops that it is for, in ascending order, or none if it is for a function.
    pub(crate) fn newer(&self, version: &CodeVersion) -> Option<(Vec<u32>, *const u8)> {
        let newest = |first: &Placed| {
            first.versions().skip(version.number() as usize + 1).last().map(Placed::address)
        };
        match version.part() {
            Part::Func(func) => {
                let first = self.functions[self.index(func)].get()?.as_ref().ok()?;
                Some((Vec::new(), newest(first)?))
            }
            Part::Loop(func, number) => {
                let loops = self.loops.try_lock().ok()?;
                let known = loops.get(&func)?.iter().find(|known| known.has(number))?;
                Some((known.loops.clone(), newest(&known.placed)?))
            }
        }
    }

    /// Whether any code has exits.
    pub(crate) fn has_exits(&self) -> bool {
        !self.exits.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The number of times that code was left at an exit.
    pub(crate) fn exits_taken(&self) -> u64 {
        let exits = self.exits.lock().unwrap_or_else(PoisonError::into_inner);
        exits.iter().map(CodeExits::n_taken).sum()
    }

    /// The code of functions, in its newest version.
    pub(crate) fn placed(&self) -> impl Iterator<Item = &Placed> {
        let first = self.functions.iter().filter_map(|function| function.get()?.as_ref().ok());
        first.map(Placed::newest)
    }

    /// The bytes of code of functions and loops, in all versions.
    pub(crate) fn bytes(&self) -> usize {
        let bytes =
            |first: &Placed| first.versions().map(|placed| placed.code.len()).sum::<usize>();
        let functions = self.functions.iter().filter_map(|function| function.get()?.as_ref().ok());
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let loops = loops.values().flatten().map(|loops| bytes(&loops.placed)).sum::<usize>();
        functions.map(bytes).sum::<usize>() + loops
    }

    /// Gives a function its code, unless it has some, and lets calls go there.
    pub(crate) fn set(&self, index: usize, placed: Placed) {
        let code = placed.address();
        if self.functions[index].set(Ok(placed)).is_ok() {
            self.call_at(index, code);
        }
    }

    /// Lets calls of a function go to an address.
    pub(crate) fn call_at(&self, index: usize, code: *const u8) {
        self.entries[index].store(code.cast_mut(), Ordering::Release);
    }

    /// Gives loops of a function code that was made for the sake of the first one, unless that has some, which may run
    /// already.
    /// Their numbers are in any order.
    pub(crate) fn set_loops(&self, func: u32, first: u32, mut numbers: Vec<u32>, placed: Placed) {
        numbers.sort_unstable();
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loops.entry(func).or_default();
        if !known.iter().any(|known| known.has(first)) {
            known.push(PlacedLoops { first, loops: numbers, placed });
        }
    }

    /// The code that goes on in a loop, and the numbers of all loops that it is for, in ascending order.
    pub(crate) fn loops(&self, func: u32, number: u32) -> Option<(Vec<u32>, *const u8)> {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loops.get(&func)?.iter().find(|known| known.has(number))?;
        Some((known.loops.clone(), known.placed.newest().address()))
    }

    /// The code that goes on in a loop, if there is any and no thread changes that at the moment.
    pub(crate) fn loop_address(&self, func: u32, number: u32) -> Option<*const u8> {
        let loops = self.loops.try_lock().ok()?;
        let known = loops.get(&func)?.iter().find(|known| known.has(number))?;
        Some(known.placed.newest().address())
    }

    /// Calls `f` for what was compiled and can be kept: all functions, and loops in the order of their functions.
    pub(crate) fn for_each_made(&self, mut f: impl FnMut(Item, &Range<usize>, Placing)) {
        let mut made = |part, placed: &Placed| {
            if let (Some(_), Some(placing)) = (&placed.info, placed.placing) {
                f(part, &placed.code, placing);
            }
        };
        for (index, function) in (0..).zip(&self.functions) {
            if let Some(Ok(placed)) = function.get() {
                made(Item::Func(index), placed);
            }
        }
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let mut funcs: Vec<_> = loops.iter().collect();
        funcs.sort_unstable_by_key(|(func, _)| **func);
        for (&func, all) in funcs {
            let func = self.index(func) as u32;
            for PlacedLoops { first, loops, placed } in all {
                let others = loops.iter().copied().filter(|number| number != first);
                let loops = std::iter::once(*first).chain(others).collect();
                made(Item::Loops { func, loops }, placed);
            }
        }
    }

    /// The memory that code is placed in.
    pub(crate) fn arena(&self) -> &CodeArena {
        &self.arena
    }

    /// Places code of a function alone.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    pub(crate) fn place(
        &self,
        index: usize,
        compiled: CompiledFunction,
    ) -> Result<Placed, CompileError> {
        let func = self.func(index);
        // Of two threads that make the same code at once, one is left without a place in the table. Calls may still lead to its
        // code, which stays in the arena.
        if let Some(exits) = &compiled.exits {
            self.exits.lock().unwrap_or_else(PoisonError::into_inner).push(exits.clone());
        }
        let code = self.arena.place(self.native.isa(), &compiled.code, &self.module);
        let code = code.map_err(|error| CompileError::of_code(&self.module, func, &error))?;
        let info = compiled.info(&self.module, func);
        let placing = compiled.code.is_kept_as_it_is().then(|| compiled.code.placing());
        Ok(self.announced(code, index, placing, compiled.code.debug.as_deref(), Some(info)))
    }

    /// Code that was placed, about which profilers and debuggers are told.
    pub(crate) fn announced(
        &self,
        code: Range<usize>,
        index: usize,
        placing: Option<Placing>,
        debug: Option<&DebugCode>,
        info: Option<FunctionInfo>,
    ) -> Placed {
        let name = || self.module.func_name(self.func(index));
        let _debug_image = self.native.announce_function(&code, name, debug, &self.module);
        Placed { _debug_image, code, placing, info, newer: OnceLock::new() }
    }

    /// Places the code of a function, if it was kept.
    pub(crate) fn place_kept_func(&self, index: usize) {
        let Some(kept) = &self.kept else { return };
        if let Some(chunk) = kept.func(index as u32) {
            self.place_kept(kept, chunk);
        }
    }

    /// Places the code that goes on in a loop, if it was kept.
    pub(crate) fn place_kept_loops(&self, index: usize, number: u32) {
        let Some(kept) = &self.kept else { return };
        if let Some(chunk) = kept.loops(index as u32, number) {
            self.place_kept(kept, chunk);
        }
    }

    fn place_kept(&self, kept: &Kept, chunk: usize) {
        let place = |Chunk { code, pieces }: Chunk, parts: &[Item]| {
            let Ok(placed) = self.arena.place(self.native.isa(), &code, &self.module) else {
                // There is no memory for it. Whoever compiles the function fails, too.
                kept.refuse(chunk, &"no memory for code");
                return;
            };
            for (piece, part) in pieces.into_iter().zip(parts) {
                let start = placed.start;
                let code = start + piece.start as usize..start + piece.end as usize;
                match part {
                    Item::Func(index) if (*index as usize) < self.functions.len() => {
                        let index = *index as usize;
                        self.set(index, self.announced(code, index, None, None, None));
                    }
                    Item::Loops { func, loops } => {
                        let placed = self.announced(code, *func as usize, None, None, None);
                        if let Some(&first) = loops.first() {
                            let func = self.func(*func as usize);
                            self.set_loops(func, first, loops.clone(), placed);
                        }
                    }
                    Item::Func(_) | Item::Trampoline(..) => {
                        kept.refuse(chunk, &"the module has no such function");
                    }
                }
            }
        };
        kept.place(chunk, place);
    }
}
