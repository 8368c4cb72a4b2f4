//! Counts instructions and paths of calls while the interpreter runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::TraceFn;

use super::{BlockProfile, FunctionProfile, Profile, SCHEMA, SCHEMA_VERSION};

/// Frames of a path, at most. Those of deeper calls count for the last one, as [`DEEPER`].
pub const PATH_FRAMES_MAX: usize = 500;

/// The function of frames beyond [`PATH_FRAMES_MAX`].
pub const DEEPER: u32 = u32::MAX;

/// Paths, at most. All further ones count as one, as [`OTHERS`].
pub const PATHS_MAX: usize = 20_000;

/// The function of paths beyond [`PATHS_MAX`].
pub const OTHERS: u32 = u32::MAX - 1;

/// The counts of one run.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of executions of each instruction, by function and code offset.
    executed: Vec<Vec<u64>>,
    /// The paths, if they are wanted.
    paths: Option<Paths>,
}

/// The paths of calls.
#[derive(Debug, Default)]
struct Paths {
    /// All paths so far. A path comes after its callers'.
    all: Vec<Path>,
    /// The outermost functions.
    roots: HashMap<u32, usize>,
    /// The paths of the active frames, outermost first.
    active: Vec<usize>,
}

/// A function, called on a path of calls.
#[derive(Debug)]
struct Path {
    func: u32,
    caller: Option<usize>,
    callees: HashMap<u32, usize>,
    /// The number of instructions executed in it.
    instructions: u64,
}

impl Collector {
    /// Counts instructions, and also paths of calls if these are wanted.
    pub fn new(with_paths: bool) -> Collector {
        let paths = with_paths.then(Paths::default);
        Collector(Arc::new(Mutex::new(Counts { executed: Vec::new(), paths })))
    }

    /// The function for [`slotvm::Store::set_trace`].
    pub fn trace(&self) -> TraceFn {
        let collector = self.clone();
        Arc::new(move |event| collector.counts().add(event.depth, event.func, event.offset))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts by function and block.
    pub fn profile(&self, module: &VerifiedModule) -> Profile {
        let counts = self.counts();
        let executed = (0..).zip(&counts.executed).filter(|(_, executed)| !executed.is_empty());
        let functions: Vec<_> =
            executed.map(|(func, executed)| function(module, func, executed)).collect();
        let instructions = functions.iter().map(|function| function.instructions).sum();
        Profile { schema: SCHEMA.into(), version: SCHEMA_VERSION, instructions, functions }
    }

    /// Each path of calls, outermost function first, and the number of instructions executed in the last function on it.
    pub fn paths(&self) -> Vec<(Vec<u32>, u64)> {
        let counts = self.counts();
        let all = counts.paths.as_ref().map_or(&[][..], |paths| &paths.all);
        let with_own = all.iter().filter(|path| path.instructions > 0);
        let funcs = |path: &Path| {
            let callers = std::iter::successors(Some(path), |path| Some(&all[path.caller?]));
            let mut funcs: Vec<u32> = callers.map(|path| path.func).collect();
            funcs.reverse();
            funcs
        };
        with_own.map(|path| (funcs(path), path.instructions)).collect()
    }
}

fn function(module: &VerifiedModule, func: u32, executed: &[u64]) -> FunctionProfile {
    let blocks = module.body(func).into_iter().flat_map(|body| &body.blocks);
    let block = |start: u32, end: u32| {
        let count = |offset: u32| executed.get(offset as usize).copied().unwrap_or(0);
        let instructions = (start..end).map(count).sum();
        BlockProfile { offset: start, count: count(start), instructions }
    };
    FunctionProfile {
        func,
        name: module.func_name(func),
        instructions: executed.iter().sum(),
        blocks: blocks.map(|b| block(b.start, b.end)).collect(),
    }
}

impl Counts {
    /// Counts an instruction, in a frame with so many guest frames below it.
    fn add(&mut self, depth: usize, func: u32, offset: u32) {
        let executed = at(at(&mut self.executed, func as usize), offset as usize);
        *executed += 1;
        if let Some(paths) = &mut self.paths {
            let path = paths.path(depth, func);
            paths.all[path].instructions += 1;
        }
    }
}

impl Paths {
    /// The path of the active frame. Frames that have returned, and those that a tail call has replaced, are taken off.
    fn path(&mut self, depth: usize, func: u32) -> usize {
        let (depth, func) =
            if depth < PATH_FRAMES_MAX { (depth, func) } else { (PATH_FRAMES_MAX, DEEPER) };
        self.active.truncate(depth + 1);
        if let Some(&path) = self.active.get(depth) {
            if [func, OTHERS].contains(&self.all[path].func) {
                return path;
            }
            self.active.pop();
        }
        while self.active.len() <= depth {
            let path = self.callee(self.active.last().copied(), func);
            self.active.push(path);
        }
        self.active[depth]
    }

    fn callee(&mut self, caller: Option<usize>, func: u32) -> usize {
        let next = self.all.len();
        let callees = match caller {
            Some(caller) if self.all[caller].func == OTHERS => return caller,
            Some(caller) => &mut self.all[caller].callees,
            None => &mut self.roots,
        };
        if let Some(&path) = callees.get(&func) {
            return path;
        }
        if next > PATHS_MAX {
            return PATHS_MAX;
        }
        let (func, caller) = if next < PATHS_MAX { (func, caller) } else { (OTHERS, None) };
        if func != OTHERS {
            callees.insert(func, next);
        }
        self.all.push(Path { func, caller, callees: HashMap::new(), instructions: 0 });
        next
    }
}

/// An element of a list that grows as needed.
fn at<T: Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(events: &[(usize, u32)]) -> Vec<(Vec<u32>, u64)> {
        let collector = Collector::new(true);
        events.iter().for_each(|&(depth, func)| collector.counts().add(depth, func, 0));
        collector.paths()
    }

    #[test]
    fn paths_follow_calls_returns_and_tail_calls() {
        // f0 calls f1, which calls itself and returns; f0 calls f2, which ends in f1 instead of itself.
        let events = [(0, 0), (1, 1), (2, 1), (1, 1), (0, 0), (1, 2), (1, 1), (0, 0)];
        let expected = [(vec![0], 3), (vec![0, 1], 3), (vec![0, 1, 1], 1), (vec![0, 2], 1)];
        assert_eq!(paths(&events), expected);
        // Two calls from the host.
        assert_eq!(paths(&[(0, 0), (0, 1), (0, 0)]), [(vec![0], 2), (vec![1], 1)]);
    }

    #[test]
    fn paths_beyond_the_limit_are_one() {
        // Function 0 calls as many others, and each calls itself.
        let n = PATHS_MAX as u32;
        let of = |func| [(0, 0), (1, func), (2, func), (1, func)];
        let events: Vec<_> = (1..=n).flat_map(of).collect();
        let paths = paths(&events);
        assert_eq!(paths.len(), PATHS_MAX + 1);
        assert_eq!(paths[PATHS_MAX].0, [OTHERS]);
        let total: u64 = paths.iter().map(|path| path.1).sum();
        assert_eq!(total, events.len() as u64);
        assert_eq!(paths[0], (vec![0], u64::from(n)));
    }

    #[test]
    fn deep_recursion_shares_a_path() {
        let events: Vec<_> = (0..PATH_FRAMES_MAX + 1000).map(|depth| (depth, 7)).collect();
        let paths = paths(&events);
        assert_eq!(paths.len(), PATH_FRAMES_MAX + 1);
        let (deepest, instructions) = &paths[PATH_FRAMES_MAX];
        assert_eq!((deepest.last(), *instructions), (Some(&DEEPER), 1000));
    }
}
