//! Reduction of a program that shows a difference to a small one that still shows it: delta debugging.
//!
//! Candidates are smaller by [`weight`], valid by construction, since types of operands are kept, and verified. Each is
//! checked by running it, which costs a process. Coarse edits come first: functions that only return zeros, then halves
//! of a function's instructions, single ones, and at last what stands around functions. A round tries all edits; rounds
//! end when one changes nothing.

mod body;
mod edits;
mod shrink;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use slotvm_bytecode::module::{EntityKind, Export};
use slotvm_bytecode::{Op, VerifiedModule};

use body::{Body, Inst, Item, in_module};
use vmrun_base::error::CliError;

/// Candidates that are run at most.
const CHECKS_MAX: usize = 4_000;
/// Rounds of all edits.
const REDUCE_ROUNDS_MAX: usize = 8;

/// A program that is being reduced. `S` says whether a program still shows the difference.
pub(super) struct Reducer<S> {
    module: Arc<VerifiedModule>,
    /// The names of exports that the program needs to be run.
    exports: BTreeSet<String>,
    shows: S,
    n_checks: usize,
}

impl<S: FnMut(&Arc<VerifiedModule>) -> Result<bool, CliError>> Reducer<S> {
    /// A reducer of a program that shows the difference.
    pub(super) fn new(module: Arc<VerifiedModule>, exports: BTreeSet<String>, shows: S) -> Self {
        Reducer { module, exports, shows, n_checks: 0 }
    }

    /// Reduces the program as far as it goes.
    ///
    /// # Errors
    /// Fails if a candidate cannot be run.
    pub(super) fn reduce(&mut self) -> Result<(), CliError> {
        for _ in 0..REDUCE_ROUNDS_MAX {
            let old = self.module.clone();
            self.stub_functions()?;
            self.shorten_ways()?;
            self.shrink_module()?;
            self.remove_functions()?;
            for func in self.module.n_imported_funcs()..self.module.n_funcs() {
                self.reduce_function(func)?;
            }
            self.remove_params()?;
            self.remove_functions()?;
            if Arc::ptr_eq(&old, &self.module) {
                break;
            }
        }
        Ok(())
    }

    /// The reduced program, and the number of candidates that were run.
    pub(super) fn finish(self) -> (Arc<VerifiedModule>, usize) {
        (self.module, self.n_checks)
    }

    /// Takes a candidate if it is smaller and shows the difference.
    fn attempt(&mut self, candidate: Option<VerifiedModule>) -> Result<bool, CliError> {
        let Some(candidate) = candidate else { return Ok(false) };
        if self.n_checks >= CHECKS_MAX {
            return Ok(false);
        }
        self.n_checks += 1;
        let candidate = Arc::new(candidate);
        let shows = (self.shows)(&candidate)?;
        if shows {
            self.module = candidate;
        }
        Ok(shows)
    }

    /// Lets functions return zeros at once: all of them, halves, quarters, and so on.
    fn stub_functions(&mut self) -> Result<(), CliError> {
        let module = self.module.clone();
        let all = module.n_imported_funcs()..module.n_funcs();
        let stub = |func| Body::stub(&module, func);
        let mut funcs: Vec<u32> =
            all.filter(|&func| Body::of(&module, func).weight() > stub(func).weight()).collect();
        let mut size = funcs.len();
        while size > 0 {
            let mut kept = Vec::new();
            for chunk in funcs.chunks(size) {
                let stubs: Vec<Body> = chunk.iter().map(|&func| stub(func)).collect();
                let candidate = in_module(&self.module, &stubs.iter().collect::<Vec<_>>());
                if !self.attempt(candidate)? {
                    kept.extend_from_slice(chunk);
                }
            }
            funcs = kept;
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(())
    }

    /// Lets exported functions do nothing but call one other function, with zeros.
    fn shorten_ways(&mut self) -> Result<(), CliError> {
        let module = self.module.clone();
        let of_func = |export: &&Export| export.kind == EntityKind::Func;
        let exports = module.module().exports.iter().filter(of_func);
        let entries = exports.filter(|export| self.exports.contains(&export.name));
        let entries: Vec<u32> = entries.map(|export| export.index).collect();
        let defined = module.n_imported_funcs()..module.n_funcs();
        for entry in entries.into_iter().filter(|entry| defined.contains(entry)) {
            for func in defined.clone().filter(|&func| func != entry) {
                let mut body = Body::of(&self.module, entry);
                let smaller = Body::caller(&module, entry, func);
                if Body::of(&module, func).weight() > Body::stub(&module, func).weight() {
                    self.attempt_body(&mut body, smaller)?;
                }
            }
        }
        Ok(())
    }

    fn reduce_function(&mut self, func: u32) -> Result<(), CliError> {
        let stub = Body::stub(&self.module, func);
        let mut body = Body::of(&self.module, func);
        if body.weight() <= stub.weight() {
            return Ok(());
        }
        self.remove_chunks(&mut body)?;
        self.cut_blocks(&mut body, &stub)?;
        self.simplify(&mut body, &stub)
    }

    /// Takes a body that is smaller, if it shows the difference.
    fn attempt_body(&mut self, body: &mut Body, smaller: Body) -> Result<bool, CliError> {
        if smaller.weight() >= body.weight() {
            return Ok(false);
        }
        let taken = self.attempt(smaller.in_module(&self.module))?;
        if taken {
            *body = smaller;
        }
        Ok(taken)
    }

    /// Replaces runs of instructions by constants, from the end, so that earlier ones keep their places.
    fn remove_chunks(&mut self, body: &mut Body) -> Result<(), CliError> {
        let mut size = body.items.len();
        while size >= 1 {
            let mut operands = body.operands(&self.module);
            let mut end = body.items.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                let smaller = body.without(start..end, &operands, 0);
                if self.attempt_body(body, smaller)? {
                    operands = body.operands(&self.module);
                }
                end = start.min(body.items.len());
            }
            size /= 2;
        }
        Ok(())
    }

    /// Lets blocks return zeros: as much of each as possible.
    fn cut_blocks(&mut self, body: &mut Body, stub: &Body) -> Result<(), CliError> {
        let mut place = 0;
        while place < body.items.len() {
            let starts_block = place == 0 || matches!(body.items[place - 1], Item::Label(_));
            if starts_block && matches!(body.items[place], Item::Inst(_)) {
                let smaller = body.cut(place, stub);
                self.attempt_body(body, smaller)?;
            }
            place += 1;
        }
        Ok(())
    }

    /// Simplifies single instructions, from the end.
    fn simplify(&mut self, body: &mut Body, stub: &Body) -> Result<(), CliError> {
        let mut place = body.items.len();
        while place > 0 {
            place = (place - 1).min(body.items.len() - 1);
            let operands = body.operands(&self.module);
            for smaller in body.simpler(place, &operands, stub) {
                if self.attempt_body(body, smaller)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes parts of the module around functions.
    fn shrink_module(&mut self) -> Result<(), CliError> {
        for kind in 0..shrink::N_KINDS {
            let less = shrink::with_less(self.module.module(), kind, &self.exports);
            self.attempt(less)?;
        }
        Ok(())
    }

    /// Removes the last parameters of functions, if they are not used.
    fn remove_params(&mut self) -> Result<(), CliError> {
        for func in self.module.n_imported_funcs()..self.module.n_funcs() {
            let less = shrink::without_unused_params(&self.module, func);
            self.attempt(less)?;
        }
        Ok(())
    }

    /// Removes functions that nothing refers to.
    fn remove_functions(&mut self) -> Result<(), CliError> {
        let less = shrink::without_unused_funcs(&self.module);
        self.attempt(less).map(drop)
    }
}

/// The number of instructions of all functions.
pub(super) fn n_insts(module: &VerifiedModule) -> usize {
    let funcs = module.n_imported_funcs()..module.n_funcs();
    let is_inst = |item: &&Item| matches!(item, Item::Inst(_));
    funcs.map(|func| Body::of(module, func).items.iter().filter(is_inst).count()).sum()
}

impl Body {
    /// The size of a function, by which candidates are smaller: simple instructions weigh less.
    fn weight(&self) -> usize {
        let weight = |item: &Item| match item {
            Item::Label(_) => 1,
            Item::Inst(inst) => weight(inst),
        };
        self.items.iter().map(weight).sum()
    }
}

fn weight(inst: &Inst) -> usize {
    match inst.op {
        Op::Drop | Op::Return | Op::Unreachable | Op::Trap => 2,
        Op::Swap => 3,
        Op::LocalGet => 6,
        _ if inst.is_constant() => {
            if inst.imm.0 == 0 && inst.vector == 0 {
                2
            } else {
                4
            }
        }
        Op::Br | Op::BrKeep => 6,
        Op::Call | Op::CallIndirect | Op::ReturnCall | Op::ReturnCallIndirect => 40,
        op => {
            let signature = op.signature().map_or(3, |s| s.params.len() + s.results.len());
            8 + 2 * signature + 2 * inst.labels.len()
        }
    }
}
