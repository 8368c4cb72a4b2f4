//! The code of a module that was kept: which of its parts are there, and what was placed of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use slotvm_bytecode::FuncType;

use crate::code::machine_code::MachineCode;
use crate::compile::stats::Counts;
use crate::lower::abi::Direction;
use crate::precompiled::Item;
use crate::precompiled::chunk::Chunk;
use crate::precompiled::file::{About, Image};

/// Code from a file.
pub(crate) struct Kept {
    image: Image,
    /// The counters of the module.
    counts: Arc<Counts>,
    /// The chunk of each function, by the functions' numbers among those that the module defines.
    funcs: HashMap<u32, usize>,
    /// The chunks with code that goes on in loops, by the numbers of their functions, with those of the loops.
    loops: HashMap<u32, Vec<(Vec<u32>, usize)>>,
    trampolines: HashMap<(Direction, FuncType), usize>,
    /// Whether each chunk was placed, or cannot be.
    is_placed: Box<[OnceLock<()>]>,
    /// Whether each chunk is known not to be used.
    is_refused: Box<[AtomicBool]>,
}

impl Kept {
    pub(crate) fn new(image: Image, counts: Arc<Counts>) -> Kept {
        let (mut funcs, mut all_loops, mut trampolines) =
            (HashMap::new(), HashMap::<_, Vec<_>>::new(), HashMap::new());
        for (chunk, parts) in image.items().enumerate() {
            for part in parts {
                match part.clone() {
                    Item::Func(func) => _ = funcs.insert(func, chunk),
                    Item::Loops { func, loops } => {
                        all_loops.entry(func).or_default().push((loops, chunk));
                    }
                    Item::Trampoline(direction, ty) => {
                        _ = trampolines.insert((direction, ty), chunk)
                    }
                }
            }
        }
        let is_placed = image.items().map(|_| OnceLock::new()).collect();
        let is_refused = image.items().map(|_| AtomicBool::new(false)).collect();
        Kept { image, counts, funcs, loops: all_loops, trampolines, is_placed, is_refused }
    }

    /// The chunk with the code of a function.
    pub(crate) fn func(&self, func: u32) -> Option<usize> {
        self.funcs.get(&func).copied()
    }

    /// The chunk with code that goes on in a loop of a function.
    pub(crate) fn loops(&self, func: u32, number: u32) -> Option<usize> {
        let all = self.loops.get(&func)?;
        all.iter().find(|(loops, _)| loops.contains(&number)).map(|&(_, chunk)| chunk)
    }

    /// Whether a part is there, as it was written.
    pub(crate) fn has(&self, part: &Item) -> bool {
        match part {
            Item::Func(func) => self.funcs.contains_key(func),
            Item::Loops { func, loops } => {
                let all = self.loops.get(func);
                all.is_some_and(|all| all.iter().any(|(known, _)| known == loops))
            }
            Item::Trampoline(direction, ty) => {
                self.trampolines.contains_key(&(*direction, ty.clone()))
            }
        }
    }

    /// Lets `place` place a chunk and its parts, in their order, the first time. Other threads wait until it is done.
    pub(crate) fn place(&self, chunk: usize, place: impl FnOnce(Chunk, &[Item])) {
        self.is_placed[chunk].get_or_init(|| {
            if let Some(code) = self.decoded(chunk) {
                place(code, self.items(chunk));
            }
        });
    }

    /// The code of the trampoline of a function type.
    pub(crate) fn trampoline(&self, direction: Direction, ty: &FuncType) -> Option<MachineCode> {
        let chunk = *self.trampolines.get(&(direction, ty.clone()))?;
        let is_alone = self.items(chunk).len() == 1;
        is_alone.then(|| self.decoded(chunk)).flatten().map(|chunk| chunk.code)
    }

    fn items(&self, chunk: usize) -> &[Item] {
        self.image.items().nth(chunk).expect("the index has the chunk")
    }

    /// A chunk, unless the file was changed.
    fn decoded(&self, chunk: usize) -> Option<Chunk> {
        let n_items = self.items(chunk).len();
        match Chunk::decode(&self.bytes(chunk)?) {
            Some(decoded) if decoded.pieces.len() == n_items => return Some(decoded),
            Some(_) => self.refuse(chunk, &"its pieces are not those of the index"),
            None => self.refuse(chunk, &"it is not what a chunk is"),
        }
        None
    }

    /// The bytes of a chunk, unless the file was changed.
    fn bytes(&self, chunk: usize) -> Option<Vec<u8>> {
        match self.image.chunk(chunk) {
            Ok(bytes) => Some(bytes),
            Err(refusal) => {
                self.refuse(chunk, &refusal);
                None
            }
        }
    }

    /// Counts a chunk whose code is not used, and tells of it, once. What it is code of is compiled.
    pub(crate) fn refuse(&self, chunk: usize, refusal: &dyn fmt::Display) {
        if !self.is_refused[chunk].swap(true, Ordering::Relaxed) {
            self.counts.add_replaced();
            tracing::warn!(target: "slotvm::cache", chunk, %refusal, "code not used");
        }
    }

    /// The bytes of the module with what they are, if they are in the file.
    pub(crate) fn module(&self) -> Option<(About, Vec<u8>)> {
        match self.image.module() {
            Ok(module) => Some((self.image.about().clone(), module)),
            Err(refusal) => {
                self.counts.add_replaced();
                tracing::warn!(target: "slotvm::cache", %refusal, "module not used");
                None
            }
        }
    }

    /// The number of parts.
    pub(crate) fn len(&self) -> usize {
        self.image.items().map(<[Item]>::len).sum()
    }

    /// All chunks with their parts, except those that have changed.
    pub(crate) fn chunks(&self) -> Vec<(Vec<Item>, Vec<u8>)> {
        let chunk = |(chunk, parts): (usize, &[Item])| Some((parts.to_vec(), self.bytes(chunk)?));
        self.image.items().enumerate().filter_map(chunk).collect()
    }
}
