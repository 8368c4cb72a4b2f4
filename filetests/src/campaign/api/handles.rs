//! The handles of all stores of a sequence.

use slotvm::{ExternRef, Func, Global, Memory, Table};

use super::model::Kind;
use crate::choices::Choices;

/// A handle, its store, and its counterpart in the model.
#[derive(Copy, Clone, Debug)]
pub(super) struct Held<T, K> {
    pub(super) room: usize,
    pub(super) kind: K,
    pub(super) it: T,
}

/// Handles of one kind.
#[derive(Debug)]
pub(super) struct Pool<T, K>(Vec<Held<T, K>>);

impl<T, K> Default for Pool<T, K> {
    fn default() -> Pool<T, K> {
        Pool(Vec::new())
    }
}

impl<T: Copy + PartialEq, K: Copy> Pool<T, K> {
    pub(super) fn add(&mut self, room: usize, kind: K, it: T) {
        self.0.push(Held { room, kind, it });
    }

    /// Any handle, or `None` if there are none.
    pub(super) fn any(&self, choices: &mut Choices<'_>) -> Option<Held<T, K>> {
        // The latest handles are the likeliest to belong to stores that still exist.
        let n = self.0.len().min(60);
        let from = &self.0[self.0.len() - n..];
        (n > 0).then(|| from[choices.below(n)])
    }

    /// Any handle of a store, or `None` if it has none.
    pub(super) fn any_of(&self, room: usize, choices: &mut Choices<'_>) -> Option<Held<T, K>> {
        let n = self.all_of(room).count();
        if n == 0 {
            return None;
        }
        self.all_of(room).nth(choices.below(n)).copied()
    }

    pub(super) fn all_of(&self, room: usize) -> impl Iterator<Item = &Held<T, K>> {
        self.0.iter().filter(move |held| held.room == room)
    }

    pub(super) fn is_of(&self, it: T, room: usize) -> bool {
        self.all_of(room).any(|held| held.it == it)
    }
}

#[derive(Debug, Default)]
pub(super) struct Handles {
    pub(super) funcs: Pool<Func, Kind>,
    pub(super) spins: Pool<Func, ()>,
    pub(super) mems: Pool<Memory, usize>,
    pub(super) tabs: Pool<Table, usize>,
    pub(super) globs: Pool<Global, usize>,
    pub(super) refs: Pool<ExternRef, u8>,
}
