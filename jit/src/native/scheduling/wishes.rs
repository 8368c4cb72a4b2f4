//! The parts of a module that were hot: of which native code is wanted or made, and of which that failed.
//!
//! What has failed is remembered, and not tried again. If a form for several loops fails because operands lie in different
//! cells where they start, it is made for the first alone, and the others may be wanted later, each alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use slotvm_bytecode::verified::Body;
use slotvm_runtime::native::Part;

/// The parts of a module that were hot.
pub(super) struct Wishes {
    /// The functions that were hot once, by their numbers among those that the module defines.
    funcs: Box<[AtomicBool]>,
    /// The loops that were, by their functions.
    loops: Mutex<HashMap<u32, Vec<Loops>>>,
}

/// Loops of a function that native code is or will be made of, because one of them is hot.
struct Loops {
    /// The number of that for whose sake there is.
    first: u32,
    /// Their numbers, in ascending order.
    numbers: Vec<u32>,
    /// The loops inside of the first that were hot.
    inner: Vec<u32>,
    /// The times that these were hot since there is native code.
    n_waits: u32,
    /// Whether no form was possible that others are entered in as well.
    is_alone: bool,
    state: Making,
}

/// What became of a wish.
#[derive(Copy, Clone, PartialEq)]
enum Making {
    NotYet,
    Made,
    /// Nobody tries again.
    Failed,
}

impl Loops {
    fn new(first: u32, numbers: Vec<u32>) -> Loops {
        let (inner, n_waits, is_alone) = (Vec::new(), 0, false);
        Loops { first, numbers, inner, n_waits, is_alone, state: Making::NotYet }
    }

    fn has(&self, number: u32) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }

    fn has_failed(&self) -> bool {
        self.state == Making::Failed
    }
}

// What other values do: docs/decisions.md, "Constants of the tiers".

/// The times that native code of loops is made for a function. The last time, it is made for all of them.
const LOOPS_MAX: usize = 3;

/// The same where loops do not share a form, so that each has one of its own, and where the program waits for
/// each.
const ALONE_MAX: usize = 16;

/// Loops that are compiled together with one before them, at most.
const FOLLOWING_MAX: usize = 15;

/// Looks for native code of a loop around, before there is some for the loop inside.
const WAITS_MAX: u32 = 100;

/// The loops that native code is made for where one of a function is hot, given how often some was made before.
///
/// While it is made, the program may get to the next loops of the function, unless it waits. So those that follow are entered
/// there as well, unless others lie around them: a loop with two entries is none to an optimiser. The last time, all are.
fn together(body: &Body, number: u32, n_before: usize, is_at_once: bool) -> Vec<u32> {
    let loops = body.loops();
    let n_max = if is_at_once { ALONE_MAX } else { LOOPS_MAX };
    if n_before + 1 >= n_max {
        return (0..loops.len() as u32).collect();
    }
    if is_at_once {
        return vec![number];
    }
    // Those that overlap are one.
    let mut end = 0;
    let outermost = (0..).zip(loops).filter_map(|(number, blocks)| {
        let is_outermost = blocks.start >= end;
        end = end.max(blocks.end);
        is_outermost.then_some(number)
    });
    let following = outermost.filter(|&other| other > number);
    std::iter::once(number).chain(following.take(FOLLOWING_MAX)).collect()
}

impl Wishes {
    pub(super) fn new(n_funcs: usize) -> Wishes {
        let funcs = std::iter::repeat_with(AtomicBool::default).take(n_funcs).collect();
        Wishes { funcs, loops: Mutex::default() }
    }

    /// The part that native code is to be made of now that one is hot, unless somebody has wanted it before. `outer` is the
    /// loop around a hot one that the program is likely to come back to before long, and `is_at_once` whether the program waits.
    pub(super) fn want(
        &self,
        index: usize,
        part: Part,
        outer: impl FnOnce(u32) -> u32,
        is_at_once: impl FnOnce() -> bool,
        body: &Body,
    ) -> Option<Part> {
        let (func, number) = match part {
            Part::Func(_) => {
                return (!self.funcs[index].swap(true, Ordering::Relaxed)).then_some(part);
            }
            Part::Loop(func, number) => (func, number),
        };
        // Nobody waits. If another thread is here, there will be another time.
        let mut loops = self.loops.try_lock().ok()?;
        let known = loops.entry(func).or_default();
        if known.iter().any(|known| known.has(number)) {
            return None;
        }
        let first = match known.iter_mut().find(|known| known.inner.contains(&number)) {
            // Nobody goes on in the loop around.
            Some(around) if around.has_failed() => number,
            Some(around) => {
                around.n_waits += u32::from(around.state == Making::Made);
                if around.n_waits < WAITS_MAX {
                    return None;
                }
                number
            }
            None => outer(number),
        };
        let first = match known.iter_mut().find(|known| known.has(first)) {
            Some(around) if around.has_failed() => number,
            Some(around) => {
                around.inner.push(number);
                return None;
            }
            None => first,
        };
        let inner = if first == number { Vec::new() } else { vec![number] };
        let is_alone = known.iter().any(|known| known.is_alone);
        let mut numbers = match is_alone {
            true if known.len() >= ALONE_MAX => return None,
            true => vec![first],
            false => together(body, first, known.len(), is_at_once()),
        };
        let has_failed = |number| known.iter().any(|known| known.has(number) && known.has_failed());
        numbers.retain(|&other| other == first || !has_failed(other));
        known.push(Loops { inner, is_alone, ..Loops::new(first, numbers) });
        Some(Part::Loop(func, first))
    }

    /// Takes back that somebody wants native code of a part.
    pub(super) fn forget(&self, index: usize, part: Part) {
        match part {
            Part::Func(_) => self.funcs[index].store(false, Ordering::Relaxed),
            Part::Loop(func, number) => self.change(func, |known| {
                known.retain(|known| known.first != number || known.state != Making::NotYet);
            }),
        }
    }

    /// Whether somebody wants native code of a function, or whether that of a loop, or of a loop around it, is wanted and
    /// neither made nor failed.
    pub(super) fn is_waiting(&self, index: usize, part: Part) -> bool {
        match part {
            Part::Func(_) => self.funcs[index].load(Ordering::Relaxed),
            // Whoever asks may ask again.
            Part::Loop(func, number) => self.loops.try_lock().map_or(true, |loops| {
                let mut known = loops.get(&func).into_iter().flatten();
                known.any(|known| {
                    (known.has(number) || known.inner.contains(&number))
                        && known.state == Making::NotYet
                })
            }),
        }
    }

    /// The numbers of the loops that one of a function is to be compiled with, in ascending order, if native code of it is
    /// wanted and not made.
    pub(super) fn with(&self, func: u32, number: u32) -> Option<Vec<u32>> {
        self.change(func, |known| {
            let known = known.iter().find(|known| known.has(number))?;
            (known.state == Making::NotYet).then(|| known.numbers.clone())
        })
    }

    /// Native code of loops was made that [`Wishes::with`] has found.
    pub(super) fn made(&self, func: u32, number: u32) {
        self.set(func, number, |known| known.state = Making::Made);
    }

    /// Native code of loops was not made, and will not be.
    pub(super) fn failed(&self, func: u32, number: u32) {
        self.set(func, number, |known| known.state = Making::Failed);
    }

    /// Loops cannot be compiled together. Native code is made of this one, and the others can be wanted again.
    pub(super) fn set_alone(&self, func: u32, number: u32) {
        self.set(func, number, |known| {
            known.first = number;
            known.numbers = vec![number];
            known.is_alone = true;
        });
    }

    /// Whether native code of a loop was not made, and will not be.
    pub(super) fn has_failed(&self, func: u32, number: u32) -> bool {
        // Whoever asks may ask again.
        let Ok(loops) = self.loops.try_lock() else { return false };
        let mut known = loops.get(&func).into_iter().flatten();
        known.any(|known| known.has(number) && known.has_failed())
    }

    /// Changes loops, unless another thread was as fast and has made their code.
    fn set(&self, func: u32, number: u32, set: impl FnOnce(&mut Loops)) {
        self.change(func, |known| {
            if let Some(known) = known.iter_mut().find(|known| known.has(number))
                && known.state != Making::Made
            {
                set(known);
            }
        });
    }

    fn change<R>(&self, func: u32, change: impl FnOnce(&mut Vec<Loops>) -> R) -> R {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        change(loops.entry(func).or_default())
    }
}
