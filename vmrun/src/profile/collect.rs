//! Counts instructions, callees of indirect calls, and paths of calls while the interpreter runs.
//!
//! An indirect call is followed by the first instruction of its callee, in a frame above its own. The host and calls that
//! trap execute no instruction, so after those the frame is another one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slotvm_bytecode::{Op, VerifiedModule};
use slotvm_runtime::TraceFn;

use super::{
    BlockProfile, CallProfile, CalleeProfile, FunctionProfile, Profile, SCHEMA, SCHEMA_VERSION,
};

/// Frames of a path, at most. Those of deeper calls count for the last one, as [`DEEPER`].
pub const PATH_FRAMES_MAX: usize = 500;

/// The function of frames beyond [`PATH_FRAMES_MAX`].
pub const DEEPER: u32 = u32::MAX;

/// Paths, at most. All further ones count as one, as [`OTHERS`].
pub const PATHS_MAX: usize = 20_000;

/// The function of paths beyond [`PATHS_MAX`].
pub const OTHERS: u32 = u32::MAX - 1;

/// The maximum number of functions that are counted for an indirect call: the first ones that it calls.
pub const PROFILED_CALLEES_MAX: usize = 32;

/// The counts of one run.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of executions of each instruction, by function and code offset.
    executed: Vec<Vec<u64>>,
    /// The calls of each function by each indirect call, by function and code offset of the call.
    callees: HashMap<(u32, u32), Vec<CalleeProfile>>,
    /// The frame and the place of the last instruction, if it is an indirect call.
    calling: Option<(usize, u32, u32)>,
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
        Collector(Arc::new(Mutex::new(Counts { paths, ..Counts::default() })))
    }

    /// The function for [`slotvm::Store::set_trace`].
    pub fn trace(&self) -> TraceFn {
        let collector = self.clone();
        Arc::new(move |event| {
            let is_call = event.inst.op == Op::CallIndirect;
            collector.counts().add(event.depth, event.func, event.offset, is_call);
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts by function and block.
    pub fn profile(&self, module: &VerifiedModule) -> Profile {
        let counts = self.counts();
        let executed = (0..).zip(&counts.executed).filter(|(_, executed)| !executed.is_empty());
        let functions: Vec<_> =
            executed.map(|(func, executed)| counts.function(module, func, executed)).collect();
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

impl Counts {
    /// Counts an instruction, in a frame with so many guest frames below it, which may be an indirect call.
    fn add(&mut self, depth: usize, func: u32, offset: u32, is_call: bool) {
        let executed = at(at(&mut self.executed, func as usize), offset as usize);
        *executed += 1;
        if let Some((caller_depth, caller, site)) = self.calling.take()
            && depth == caller_depth + 1
        {
            self.add_callee((caller, site), func);
        }
        self.calling = is_call.then_some((depth, func, offset));
        if let Some(paths) = &mut self.paths {
            let path = paths.path(depth, func);
            paths.all[path].instructions += 1;
        }
    }

    fn add_callee(&mut self, site: (u32, u32), func: u32) {
        let callees = self.callees.entry(site).or_default();
        if let Some(callee) = callees.iter_mut().find(|callee| callee.func == func) {
            callee.count += 1;
        } else if callees.len() < PROFILED_CALLEES_MAX {
            callees.push(CalleeProfile { func, count: 1 });
        }
    }

    fn function(&self, module: &VerifiedModule, func: u32, executed: &[u64]) -> FunctionProfile {
        let blocks = module.body(func).map_or(&[][..], |body| &body.blocks);
        let count = |offset: u32| executed.get(offset as usize).copied().unwrap_or(0);
        let block = |start: u32, end: u32| {
            let instructions = (start..end).map(count).sum();
            BlockProfile { offset: start, count: count(start), instructions }
        };
        let insts = blocks.iter().flat_map(|block| module.insts(func, block));
        let calls =
            insts.filter(|&(offset, inst)| inst.op == Op::CallIndirect && count(offset) > 0);
        let call = |offset: u32| {
            let mut callees = self.callees.get(&(func, offset)).cloned().unwrap_or_default();
            callees.sort_by_key(|callee| (Reverse(callee.count), callee.func));
            CallProfile { offset, count: count(offset), callees }
        };
        FunctionProfile {
            func,
            name: module.func_name(func),
            instructions: executed.iter().sum(),
            blocks: blocks.iter().map(|b| block(b.start, b.end)).collect(),
            calls: calls.map(|(offset, _)| call(offset)).collect(),
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
        events.iter().for_each(|&(depth, func)| collector.counts().add(depth, func, 0, false));
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

    /// The functions that each indirect call has called: its own function, its offset, the callee and the number of calls.
    fn callees(events: &[(usize, u32, u32, bool)]) -> Vec<(u32, u32, u32, u64)> {
        let collector = Collector::new(false);
        for &(depth, func, offset, is_call) in events {
            collector.counts().add(depth, func, offset, is_call);
        }
        let counts = collector.counts();
        let of_site = |(&(func, offset), callees): (&(u32, u32), &Vec<CalleeProfile>)| {
            let callees = callees.iter().map(move |c| (func, offset, c.func, c.count));
            callees.collect::<Vec<_>>()
        };
        let mut all: Vec<_> = counts.callees.iter().flat_map(of_site).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn the_callee_is_the_next_function_one_frame_above() {
        let call = (0, 0, 4, true);
        // f0 calls f1, which calls f0; a host function or nothing; and f1 again.
        let events = [call, (1, 1, 0, true), (2, 0, 0, false), (1, 1, 9, false), (0, 0, 6, false)];
        let again = [call, (0, 0, 6, false), call, (1, 1, 2, false), call];
        let expected = [(0, 4, 1, 2), (1, 0, 0, 1)];
        assert_eq!(callees(&[&events[..], &again].concat()), expected);
        // A call that traps is followed by another call from the host.
        assert_eq!(callees(&[call, (0, 2, 0, false)]), []);
    }

    #[test]
    fn the_first_callees_are_counted() {
        let n = PROFILED_CALLEES_MAX as u32 + 5;
        let of = |func| [(0, 0, 4, true), (1, func, 0, false)];
        let events: Vec<_> = (1..=n).chain([1, n]).flat_map(of).collect();
        let found = callees(&events);
        assert_eq!((found.len(), found[0]), (PROFILED_CALLEES_MAX, (0, 4, 1, 2)));
        assert!(found[1..].iter().all(|&(.., func, count)| count == 1 && func < n), "{found:?}");
    }
}
