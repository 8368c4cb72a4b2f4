//! SSA construction on the fly, while a function is translated: Braun, Buchwald, Hack, Leißa, Mallon and
//! Zwinkau, "Simple and Efficient Construction of Static Single Assignment Form" (CC 2013).
//!
//! A front end calls [`Braun::write_variable`] where its language assigns and gets from
//! [`Braun::read_variable`] the value to use where its language reads. It needs no slot form, dominator
//! tree, dominance frontier or liveness: a phi is made when a read needs one.
//!
//! # Filled and sealed
//!
//! A block goes through two independent events:
//! * It is *filled* when all its reads and writes have been recorded. Only a filled block may be
//!   a predecessor, since reads need the variable's value at its end.
//! * It is *sealed* when all its predecessors are known, by [`Braun::seal_block`]. The entry is sealed at
//!   once, before it is filled. The header of a loop is filled long before it is sealed, because sealing
//!   has to wait until the end of the body is filled.
//!
//! A read in a block that is not sealed returns a phi without operands, an *incomplete* phi. Sealing the
//! block adds its operands. A block may be sealed once all predecessors are filled, or later.
//!
//! # Reading
//!
//! A read after a write in the same block returns the written value (section 2.1, local value numbering).
//! Otherwise it looks in the predecessors (2.2). The value of a single predecessor is used as it is; a
//! phi joins those of several. The phi is made before the predecessors are searched, so that a read in a
//! loop terminates. A phi is *trivial* if all operands are one value or the phi itself. That value
//! replaces it, and the phis that used it are examined again. The result is recorded in all blocks on
//! the way, so that no block is searched for a variable twice.
//!
//! With [`BraunOptions::marker`] no phi is made in advance (section 3.3). A block that waits for its
//! predecessors is only marked. A phi is made if the read comes back to the block, or if the predecessors
//! differ. Then, in code without loops, every phi that is made stays.
//!
//! # What comes out
//!
//! *Pruned* SSA form, since only reads make phis. It is *minimal* if the graph is reducible. Loops with
//! several entries may leave sets of phis that are all the same value, which
//! [`BraunOptions::scc_removal`] removes at the end (section 3.2). The phis are then those that
//! [`crate::graphs::place`] finds, if each write writes a distinct value. If not, there may be fewer: a variable
//! that is a copy of another one shares its values, since a copy is a write of the value that a read
//! returned (section 3.1: copy propagation). Constants may be merged as well, see [`Values::fold`].
//!
//! # When to choose it
//!
//! For a front end that makes SSA form directly, without dominators, or that simplifies instructions while it makes
//! them: it always sees values, never variables. [`crate::construction::build::build_ssa`] is such a front end. Where
//! slot form exists, placing phis with it takes less time and memory: this construction stores the variable's value
//! for each block through which it is live, in one entry of a hash table each. [`BraunOptions::entries_max`] bounds
//! these.
//!
//! # Numbers
//!
//! Variables, blocks and values are numbers. Those of the caller's values are below [`PHI`]; this bit
//! marks phis. A phi that was handed out may be replaced later, so the caller asks [`Braun::resolve`] for
//! each value that it kept once construction is finished.
//!
//! Nothing recurses. The time is linear in blocks, accesses, entries and phi operands, up to logarithms.
//!
//! ```
//! use slotvm_ssa::construction::braun::{Braun, BraunOptions, PHI};
//!
//! // i = 0; while … { i = i + 1 } … i …, with blocks 0 (entry), 1 (header), 2 (body), 3 (end).
//! let (i, zero, sum) = (0, 100, 101);
//! let mut undefined = |_| unreachable!("nothing is read before it is written");
//! let mut ssa = Braun::default();
//! ssa.start(BraunOptions::default());
//! ssa.seal_block(0, [], &mut undefined);
//! ssa.write_variable(i, 0, zero);
//! // The header has another predecessor that is not filled: it is not sealed.
//! ssa.seal_block(2, [1], &mut undefined);
//! let old = ssa.read_variable(i, 2, &mut undefined);
//! assert!(old & PHI != 0, "an operand of the sum");
//! ssa.write_variable(i, 2, sum);
//! ssa.seal_block(1, [0, 2], &mut undefined);
//! ssa.seal_block(3, [1], &mut undefined);
//! let last = ssa.read_variable(i, 3, &mut undefined);
//! let report = ssa.finish(&mut undefined);
//! assert_eq!((report.n_made, report.n_left), (1, 1));
//! assert_eq!(ssa.resolve(last), old);
//! let phis: Vec<_> = ssa.phis().collect();
//! assert_eq!((phis[0].value, phis[0].block, phis[0].variable), (old, 1, i));
//! assert_eq!(phis[0].operands, [zero, sum]);
//! ```

mod definitions;
mod phis;
mod redundant;

use definitions::Definitions;
use phis::Phis;

/// The bit that marks the number of a phi among values.
pub const PHI: u32 = 1 << 31;

/// No block, no phi, no value.
const NONE: u32 = u32::MAX;

/// Options of the construction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct BraunOptions {
    /// Whether blocks are marked, instead of phis made in advance, while a read waits for their
    /// predecessors.
    pub marker: bool,
    /// Whether redundant sets of phis are removed at the end. Without it the form may have more phis
    /// than needed if loops have several entries.
    pub scc_removal: bool,
    /// The approximate maximum number of entries for variables in blocks and of phi operands. Each takes
    /// some 20 bytes. Beyond it reads return meaningless values and [`Braun::is_exhausted`] is true.
    pub entries_max: usize,
}

impl BraunOptions {
    /// The default of [`BraunOptions::entries_max`]: memory stays below a gigabyte, and time is a few
    /// seconds.
    pub const ENTRIES_MAX_USUAL: usize = 1 << 25;
}

impl Default for BraunOptions {
    fn default() -> BraunOptions {
        let entries_max = BraunOptions::ENTRIES_MAX_USUAL;
        BraunOptions { marker: true, scc_removal: true, entries_max }
    }
}

/// Counts of the phis of a function.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BraunReport {
    /// The phis made: the sum of the next three.
    pub n_made: usize,
    /// The number of phis that were trivial, or became so.
    pub n_trivial: usize,
    /// The number of phis in redundant sets that were not trivial.
    pub n_redundant: usize,
    /// The number of phis that stay.
    pub n_left: usize,
}

/// Callbacks into the caller's IR. A closure from variables to values implements it without folding.
pub trait Values {
    /// The value of a variable that is read although some path from the entry does not write it: an
    /// initial value, an `undef`, or what the language defines. It must be usable in all blocks.
    fn undefined(&mut self, variable: u32) -> u32;

    /// The value to use for both of two different values, neither a phi, if the IR knows them to be equal,
    /// as constants may be. It must be usable in all blocks, too. A phi whose operands are all folded to
    /// one value is trivial (section 3.1).
    fn fold(&mut self, _a: u32, _b: u32) -> Option<u32> {
        None
    }
}

impl<F: FnMut(u32) -> u32> Values for F {
    fn undefined(&mut self, variable: u32) -> u32 {
        self(variable)
    }
}

/// A phi that stays.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BraunPhi<'a> {
    /// Its value.
    pub value: u32,
    /// The block at whose start it stands.
    pub block: u32,
    /// The variable whose values it joins.
    pub variable: u32,
    /// An operand for each predecessor, in the order that [`Braun::seal_block`] was called with.
    pub operands: &'a [u32],
}

/// The construction. It handles one function after another and reuses memory.
#[derive(Clone, Debug, Default)]
pub struct Braun {
    options: BraunOptions,
    blocks: Vec<BlockState>,
    preds: Vec<u32>,
    /// The block whose accesses are being recorded.
    current: u32,
    /// The state of each variable in the current block, by variable.
    variables: Vec<Local>,
    /// The variables that the current block wrote, which are not in `definitions` yet.
    written: Vec<u32>,
    definitions: Definitions,
    phis: Phis,
    n_incomplete: usize,
    reader: Reader,
    redundant: redundant::Scratch,
    live: Vec<u32>,
    report: BraunReport,
    is_exhausted: bool,
}

#[derive(Copy, Clone, Debug)]
struct BlockState {
    /// The index of the first predecessor; [`NONE`] before the block is sealed.
    first_pred: u32,
    n_preds: u32,
    /// The list of phis that wait for operands.
    first_incomplete: u32,
    /// The place in [`Reader::waiting`], if the block waits there.
    waits_at: u32,
}

const NEW_BLOCK: BlockState =
    BlockState { first_pred: NONE, n_preds: 0, first_incomplete: NONE, waits_at: NONE };

/// A variable's value in a block.
#[derive(Copy, Clone, Debug)]
struct Local {
    block: u32,
    value: u32,
    is_written: bool,
}

const NO_LOCAL: Local = Local { block: NONE, value: NONE, is_written: false };

/// The state of a read that has left its block.
#[derive(Clone, Debug, Default)]
struct Reader {
    /// The blocks with several predecessors that wait for the values of their predecessors.
    waiting: Vec<Waiting>,
    /// The blocks with one predecessor, which are waiting for the same value.
    path: Vec<u32>,
    /// The values of the predecessors that have answered.
    found: Vec<u32>,
}

#[derive(Copy, Clone, Debug)]
struct Waiting {
    block: u32,
    /// The block's phi, if it was made.
    phi: u32,
    /// The start, in `path`, of the blocks that wait for this one.
    path_start: u32,
    /// The start, in `found`, of the values of its predecessors.
    found_start: u32,
}

impl Braun {
    /// Starts a function and discards the previous one. Variables and blocks need not be declared.
    pub fn start(&mut self, options: BraunOptions) {
        self.options = options;
        self.blocks.clear();
        self.preds.clear();
        self.current = NONE;
        self.variables.clear();
        self.written.clear();
        self.definitions.clear();
        self.phis.clear();
        self.n_incomplete = 0;
        self.live.clear();
        self.report = BraunReport::default();
        self.is_exhausted = false;
    }

    /// Records that a variable is assigned a value of the caller or one that a read returned.
    ///
    /// # Panics
    /// Panics if the value is neither of these.
    #[inline]
    pub fn write_variable(&mut self, variable: u32, block: u32, value: u32) {
        assert!(value < PHI + self.phis.len() as u32, "unknown value {value}");
        self.turn_to(block);
        let local = self.local(variable);
        if !(local.block == block && local.is_written) {
            self.written.push(variable);
        }
        self.variables[variable as usize] = Local { block, value, is_written: true };
    }

    /// Returns the value of a variable at the current place of a block. It may be a phi, even one that
    /// [`Braun::finish`] replaces.
    #[inline]
    pub fn read_variable(&mut self, variable: u32, block: u32, values: &mut impl Values) -> u32 {
        self.turn_to(block);
        let local = self.local(variable);
        if local.block == block {
            return self.phis.resolve(local.value);
        }
        let value = self.read_at_end(variable, block, values);
        self.variables[variable as usize] = Local { block, value, is_written: false };
        value
    }

    /// Seals a block with the complete list of its predecessors. A predecessor with several edges to the
    /// block is listed several times. Unreachable blocks may be sealed. An unreachable predecessor affects
    /// the phis of the block and is better left out.
    ///
    /// # Panics
    /// Panics if the block is already sealed.
    pub fn seal_block(
        &mut self,
        block: u32,
        preds: impl IntoIterator<Item = u32>,
        values: &mut impl Values,
    ) {
        self.note_written();
        let first_pred = self.preds.len() as u32;
        self.preds.extend(preds);
        let n_preds = self.preds.len() as u32 - first_pred;
        let state = self.block(block);
        assert_eq!(state.first_pred, NONE, "block {block} is sealed once");
        (state.first_pred, state.n_preds) = (first_pred, n_preds);
        let mut phi = std::mem::replace(&mut state.first_incomplete, NONE);
        let mut operands = Vec::new();
        while phi != NONE {
            let variable = self.phis.variable(phi);
            operands.clear();
            for pred in first_pred..first_pred + n_preds {
                let pred = self.preds[pred as usize];
                operands.push(self.read_at_end(variable, pred, values));
            }
            self.phis.set_operands(phi, &operands);
            self.report.n_trivial += self.phis.settle(phi, values);
            self.n_incomplete -= 1;
            phi = self.phis.next_incomplete(phi);
        }
    }

    /// Ends the construction: removes redundant phis if the options say so, and makes the values of all
    /// others final.
    ///
    /// # Panics
    /// Panics if a variable was read in a block that is not sealed.
    pub fn finish(&mut self, values: &mut impl Values) -> BraunReport {
        assert_eq!(self.n_incomplete, 0, "all blocks are sealed");
        let Braun { phis, live, report, .. } = self;
        phis.resolve_operands(live);
        if self.options.scc_removal && !live.is_empty() {
            report.n_redundant = self.redundant.remove(live, phis, values);
            if report.n_redundant > 0 {
                phis.resolve_operands(live);
            }
        }
        report.n_made = phis.len();
        report.n_left = live.len();
        *report
    }

    /// Returns the value that now stands for a value: itself, unless it is a phi that was removed.
    #[inline]
    pub fn resolve(&mut self, value: u32) -> u32 {
        self.phis.resolve(value)
    }

    /// The phis that stay, in the order in which they were made. Valid after [`Braun::finish`].
    pub fn phis(&self) -> impl ExactSizeIterator<Item = BraunPhi<'_>> {
        self.live.iter().map(|&phi| BraunPhi {
            value: PHI | phi,
            block: self.phis.block(phi),
            variable: self.phis.variable(phi),
            operands: self.phis.operands(phi),
        })
    }

    /// Returns the variable whose values a phi joins.
    ///
    /// # Panics
    /// Panics if the value is not a phi.
    pub fn variable_of(&self, value: u32) -> u32 {
        assert!(value & PHI != 0, "value {value} is not a phi");
        self.phis.variable(value & !PHI)
    }

    /// Whether the function needs more than [`BraunOptions::entries_max`]. The values that reads returned
    /// are then meaningless, and the form must not be used.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    #[inline]
    fn local(&mut self, variable: u32) -> Local {
        if variable as usize >= self.variables.len() {
            self.variables.resize(variable as usize + 1, NO_LOCAL);
        }
        self.variables[variable as usize]
    }

    fn block(&mut self, block: u32) -> &mut BlockState {
        if block as usize >= self.blocks.len() {
            self.blocks.resize(block as usize + 1, NEW_BLOCK);
        }
        &mut self.blocks[block as usize]
    }

    /// Makes a block the current one.
    #[inline]
    fn turn_to(&mut self, block: u32) {
        if block != self.current {
            self.note_written();
            self.current = block;
        }
    }

    /// Records the writes of the current block, for reads in other blocks.
    fn note_written(&mut self) {
        for &variable in &self.written {
            let local = &mut self.variables[variable as usize];
            self.definitions.insert(variable, local.block, local.value);
            local.is_written = false;
        }
        self.written.clear();
    }

    /// The value of a variable at the end of a block, as far as it is filled (`readVariableRecursive`).
    fn read_at_end(&mut self, variable: u32, block: u32, values: &mut impl Values) -> u32 {
        let n_entries = self.definitions.len() + self.phis.n_operands();
        if n_entries > self.options.entries_max {
            self.is_exhausted = true;
            return values.undefined(variable);
        }
        let mut block = block;
        loop {
            let mut answer = self.ask(variable, block, values);
            loop {
                let Some(waiting) = self.reader.waiting.last() else {
                    return answer.expect("nobody waits for more");
                };
                let state = self.blocks[waiting.block as usize];
                if let Some(value) = answer {
                    self.reader.found.push(value);
                }
                let n_found = self.reader.found.len() as u32 - waiting.found_start;
                if n_found < state.n_preds {
                    block = self.preds[(state.first_pred + n_found) as usize];
                    break;
                }
                answer = Some(self.join(variable, values));
            }
        }
    }

    /// Looks up the value of a variable at the end of a block. If the block has to wait for several
    /// predecessors, returns `None` and adds it to the waiting blocks.
    fn ask(&mut self, variable: u32, block: u32, values: &mut impl Values) -> Option<u32> {
        let path_start = self.reader.path.len() as u32;
        let mut block = block;
        // A cycle of blocks that have one predecessor each is unreachable. After Brent (1980), a
        // landmark set at each power of two of steps is met again in a cycle.
        let (mut landmark, mut n_steps) = (NONE, 0_u32);
        let value = loop {
            if let Some(value) = self.definitions.get(variable, block) {
                break self.phis.resolve(value);
            }
            let state = *self.block(block);
            if state.waits_at != NONE {
                break PHI | self.phi_of_waiting(variable, state.waits_at);
            }
            if state.first_pred == NONE {
                let phi = self.phis.make(block, variable, state.first_incomplete);
                self.block(block).first_incomplete = phi;
                self.n_incomplete += 1;
                self.definitions.insert(variable, block, PHI | phi);
                break PHI | phi;
            }
            if state.n_preds > 1 {
                self.wait(variable, block, path_start);
                return None;
            }
            self.reader.path.push(block);
            if state.n_preds == 0 || block == landmark {
                break values.undefined(variable);
            }
            if n_steps.is_power_of_two() {
                landmark = block;
            }
            n_steps += 1;
            block = self.preds[state.first_pred as usize];
        };
        self.tell_path(variable, path_start, value);
        Some(value)
    }

    /// Makes a block wait for the values of its predecessors.
    fn wait(&mut self, variable: u32, block: u32, path_start: u32) {
        let waits_at = self.reader.waiting.len() as u32;
        let found_start = self.reader.found.len() as u32;
        self.reader.waiting.push(Waiting { block, phi: NONE, path_start, found_start });
        if self.options.marker {
            self.block(block).waits_at = waits_at;
        } else {
            self.phi_of_waiting(variable, waits_at);
        }
    }

    /// Returns the phi of a block that waits for its predecessors, and makes it if needed.
    fn phi_of_waiting(&mut self, variable: u32, waits_at: u32) -> u32 {
        let waiting = &mut self.reader.waiting[waits_at as usize];
        if waiting.phi == NONE {
            waiting.phi = self.phis.make(waiting.block, variable, NONE);
            self.definitions.insert(variable, waiting.block, PHI | waiting.phi);
        }
        waiting.phi
    }

    /// Computes the value of the waiting block added last, once all its predecessors have values.
    fn join(&mut self, variable: u32, values: &mut impl Values) -> u32 {
        let waiting = self.reader.waiting.pop().expect("a block waits");
        let Waiting { block, mut phi, path_start, found_start } = waiting;
        self.blocks[block as usize].waits_at = NONE;
        let found = &mut self.reader.found[found_start as usize..];
        found.iter_mut().for_each(|value| *value = self.phis.resolve(*value));
        let mut value = found[0];
        if phi != NONE || found.iter().any(|&other| other != value) {
            if phi == NONE {
                phi = self.phis.make(block, variable, NONE);
            }
            self.phis.set_operands(phi, found);
            self.report.n_trivial += self.phis.settle(phi, values);
            value = self.phis.resolve(PHI | phi);
        }
        self.reader.found.truncate(found_start as usize);
        self.definitions.insert(variable, block, value);
        self.tell_path(variable, path_start, value);
        value
    }

    /// Records the value in the blocks that waited for it.
    fn tell_path(&mut self, variable: u32, path_start: u32, value: u32) {
        for block in self.reader.path.drain(path_start as usize..) {
            self.definitions.insert(variable, block, value);
        }
    }
}

#[cfg(test)]
mod tests;
