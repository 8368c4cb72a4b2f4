//! Phis, and the removal of trivial ones, whose operands are all one value or the phi itself
//! (`tryRemoveTrivialPhi` of the paper).
//!
//! Replacing a phi may make its users trivial, so they are examined again. The paper does so by recursion
//! over lists of users. It proposes to remember two different operands of each phi, the *witnesses* that
//! it is not trivial, so that a user is examined only if a witness is replaced. Here this is linear up to
//! a logarithm:
//!
//! * Nothing is rewritten when a phi is replaced. The values that turned out to be the same form a
//!   *class* of a union-find structure, which has the value that stands for all, and operands are
//!   resolved where they are read.
//! * The operands before the second witness are all the first witness or the phi itself, and remain so
//!   whatever is replaced. So the search for another witness continues where it stopped, and each
//!   operand of a phi is read once.
//! * A class has the list of the phis that watch it, having a witness in it. When two classes become
//!   one, a phi whose two witnesses are now the same is in both lists, and only the shorter one is
//!   examined. The phi that stands for the new class may itself have had a witness in the other one,
//!   so it is examined as well.
//! * Phis to examine wait in a list. Nothing recurses, and a phi that was removed while it waited is
//!   skipped.

use super::{NONE, PHI, Values};

#[derive(Clone, Debug)]
struct Phi {
    block: u32,
    variable: u32,
    /// The start of the operands; [`NONE`] until they are known.
    operands: u32,
    n_operands: u32,
    /// The first witness; [`NONE`] before one was found.
    witness: u32,
    /// The place of the second one among the operands.
    n_seen: u32,
    /// The next phi without operands in the same block.
    next_incomplete: u32,
    class: Class,
}

/// A class, stored at its root; for other members only `parent` is valid.
#[derive(Clone, Debug)]
struct Class {
    parent: u32,
    /// The value that stands for the members: one of them, or a value of the caller.
    value: u32,
    /// The list of the phis that watch the class.
    first_watch: u32,
    last_watch: u32,
    n_watches: u32,
}

/// An entry of a list of phis that watch a class. Stale entries are harmless.
#[derive(Copy, Clone, Debug)]
struct Watch {
    phi: u32,
    next: u32,
}

/// All phis of a function. Phis are numbered in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Phis {
    phis: Vec<Phi>,
    operands: Vec<u32>,
    watches: Vec<Watch>,
    /// Phis to examine.
    work: Vec<u32>,
}

impl Phis {
    pub(super) fn clear(&mut self) {
        self.phis.clear();
        self.operands.clear();
        self.watches.clear();
    }

    /// The number of phis made.
    pub(super) fn len(&self) -> usize {
        self.phis.len()
    }

    /// The operands of all phis made.
    pub(super) fn n_operands(&self) -> usize {
        self.operands.len()
    }

    /// Makes a phi without operands.
    pub(super) fn make(&mut self, block: u32, variable: u32, next_incomplete: u32) -> u32 {
        let number = self.phis.len() as u32;
        assert!(number < NONE - PHI, "phis are numbered by 31 bits");
        self.phis.push(Phi {
            block,
            variable,
            operands: NONE,
            n_operands: 0,
            witness: NONE,
            n_seen: 0,
            next_incomplete,
            class: Class {
                parent: number,
                value: PHI | number,
                first_watch: NONE,
                last_watch: NONE,
                n_watches: 0,
            },
        });
        number
    }

    pub(super) fn block(&self, phi: u32) -> u32 {
        self.phis[phi as usize].block
    }

    pub(super) fn variable(&self, phi: u32) -> u32 {
        self.phis[phi as usize].variable
    }

    pub(super) fn next_incomplete(&self, phi: u32) -> u32 {
        self.phis[phi as usize].next_incomplete
    }

    /// Sets the operands of a phi, one for each predecessor.
    pub(super) fn set_operands(&mut self, phi: u32, operands: &[u32]) {
        let phi = &mut self.phis[phi as usize];
        debug_assert_eq!(phi.operands, NONE, "operands are given once");
        phi.operands = self.operands.len() as u32;
        phi.n_operands = operands.len() as u32;
        self.operands.extend_from_slice(operands);
    }

    /// The operands of a phi, as they were set or last resolved.
    pub(super) fn operands(&self, phi: u32) -> &[u32] {
        let Phi { operands, n_operands, .. } = self.phis[phi as usize];
        &self.operands[operands as usize..(operands + n_operands) as usize]
    }

    /// Whether a phi has its operands.
    pub(super) fn is_complete(&self, phi: u32) -> bool {
        self.phis[phi as usize].operands != NONE
    }

    /// Returns the value that now stands for a value.
    #[inline]
    pub(super) fn resolve(&mut self, value: u32) -> u32 {
        if value & PHI == 0 {
            return value;
        }
        let root = self.root(value & !PHI);
        self.phis[root as usize].class.value
    }

    /// Whether a phi stands for itself.
    pub(super) fn is_live(&mut self, phi: u32) -> bool {
        self.resolve(PHI | phi) == PHI | phi
    }

    /// Replaces operands by the values that stand for them, and lists the phis that are left.
    pub(super) fn resolve_operands(&mut self, live: &mut Vec<u32>) {
        live.clear();
        for phi in 0..self.phis.len() as u32 {
            if !self.is_live(phi) {
                continue;
            }
            live.push(phi);
            let Phi { operands, n_operands, .. } = self.phis[phi as usize];
            for i in operands as usize..(operands + n_operands) as usize {
                self.operands[i] = self.resolve(self.operands[i]);
            }
        }
    }

    /// Returns the root of a phi's class. Halves the path to it for later calls.
    #[inline]
    fn root(&mut self, mut phi: u32) -> u32 {
        loop {
            let parent = self.phis[phi as usize].class.parent;
            if parent == phi {
                return phi;
            }
            let above = self.phis[parent as usize].class.parent;
            self.phis[phi as usize].class.parent = above;
            phi = above;
        }
    }

    /// Removes a phi if it is trivial, and then others that became trivial by that. Returns how many.
    pub(super) fn settle(&mut self, phi: u32, values: &mut impl Values) -> usize {
        let mut n_removed = 0;
        self.work.push(phi);
        while let Some(phi) = self.work.pop() {
            if self.is_live(phi)
                && self.is_complete(phi)
                && let Some(value) = self.only_operand(phi, values)
            {
                self.replace(phi, value);
                n_removed += 1;
            }
        }
        n_removed
    }

    /// Returns the only operand that a phi has besides itself; if it has several, watches two of them.
    fn only_operand(&mut self, phi: u32, values: &mut impl Values) -> Option<u32> {
        let itself = PHI | phi;
        let Phi { operands, n_operands, witness: old_witness, n_seen: old_n_seen, .. } =
            self.phis[phi as usize];
        let mut witness = old_witness;
        if witness != NONE {
            witness = self.resolve(witness);
            if witness == itself {
                witness = NONE;
            }
        }
        for n_seen in old_n_seen..n_operands {
            let operand = self.resolve(self.operands[(operands + n_seen) as usize]);
            if operand == itself || operand == witness {
                continue;
            }
            if witness == NONE {
                witness = operand;
                continue;
            }
            if (operand | witness) & PHI == 0
                && let Some(both) = values.fold(witness, operand)
            {
                witness = both;
                continue;
            }
            if old_witness == NONE || n_seen != old_n_seen {
                self.watch(witness, phi);
                self.watch(operand, phi);
            }
            let phi = &mut self.phis[phi as usize];
            (phi.witness, phi.n_seen) = (witness, n_seen);
            return None;
        }
        if witness == NONE {
            // In the entry or unreachable.
            witness = values.undefined(self.variable(phi));
        }
        Some(witness)
    }

    /// Records that a phi has a witness in the class of this value. Values of the caller are never replaced.
    fn watch(&mut self, witness: u32, phi: u32) {
        if witness & PHI == 0 {
            return;
        }
        let root = self.root(witness & !PHI);
        let class = &mut self.phis[root as usize].class;
        let watch = self.watches.len() as u32;
        self.watches.push(Watch { phi, next: class.first_watch });
        class.first_watch = watch;
        if class.n_watches == 0 {
            class.last_watch = watch;
        }
        class.n_watches += 1;
    }

    /// Replaces a phi by a value, and adds the phis that this affects to those to examine.
    pub(super) fn replace(&mut self, phi: u32, value: u32) {
        debug_assert_ne!(value, PHI | phi);
        let root = self.root(phi);
        if value & PHI == 0 {
            self.look_at_watches(root);
            self.phis[root as usize].class.value = value;
            return;
        }
        self.work.push(value & !PHI);
        let (mut few, mut many) = (root, self.root(value & !PHI));
        let n_watches = |phis: &Phis, root: u32| phis.phis[root as usize].class.n_watches;
        if n_watches(self, few) > n_watches(self, many) {
            (few, many) = (many, few);
        }
        self.look_at_watches(few);
        let Class { first_watch, last_watch, n_watches, .. } = self.phis[few as usize].class;
        self.phis[few as usize].class.parent = many;
        let class = &mut self.phis[many as usize].class;
        class.value = value;
        if n_watches > 0 {
            // The class with more watches has at least one as well.
            self.watches[last_watch as usize].next = class.first_watch;
            class.first_watch = first_watch;
            class.n_watches += n_watches;
        }
    }

    fn look_at_watches(&mut self, root: u32) {
        let Class { first_watch, n_watches, .. } = self.phis[root as usize].class;
        let mut watch = first_watch;
        for _ in 0..n_watches {
            let Watch { phi, next } = self.watches[watch as usize];
            self.work.push(phi);
            watch = next;
        }
    }

    /// Discards the list of phis to examine.
    pub(super) fn leave_alone(&mut self) {
        self.work.clear();
    }
}
