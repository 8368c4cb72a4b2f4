//! The past of a module, which decides on the exits of code: as the interpreter has noted it, or as a profile has it.

use slotvm_bytecode::verified::Body;
use slotvm_bytecode::{Op, VerifiedModule};
use slotvm_runtime::native::{Part, TieredCode};

use crate::config::executions::{Executions, FunctionExecutions};

/// The blocks of functions that have run, and the functions that they have called.
pub(super) trait History {
    /// The blocks of a function that have never run, in ascending order, if they had the opportunity: the function was called
    /// so many times, or a loop around them has gone round so many times.
    fn never_ran(&self, func: u32, n_times_min: u32) -> Vec<u32>;

    /// The functions of the module that indirect calls in a function have called, for those calls of which all are known and
    /// which had the opportunity, in ascending order of code offsets. Tail calls are not among them.
    fn callees(&self, func: u32, n_times_min: u32) -> Vec<(u32, Vec<u32>)>;

    /// The calls of a function, at least; none, if it begins with a loop, whose rounds are counted instead.
    fn n_calls(&self, func: u32) -> u32;
}

impl History for TieredCode {
    fn never_ran(&self, func: u32, n_times_min: u32) -> Vec<u32> {
        TieredCode::never_ran(self, func, n_times_min)
    }

    fn callees(&self, func: u32, n_times_min: u32) -> Vec<(u32, Vec<u32>)> {
        TieredCode::callees(self, func, n_times_min)
    }

    fn n_calls(&self, func: u32) -> u32 {
        self.n_times(Part::Func(func))
    }
}

/// The history of a module by a profile. What that says of other blocks and calls than those of the module is ignored.
pub(super) struct Profiled<'a> {
    pub(super) module: &'a VerifiedModule,
    pub(super) executions: &'a Executions,
}

impl Profiled<'_> {
    /// The blocks of a function that had the opportunity to run, with the executions of the function.
    fn often_around(&self, func: u32, n_times_min: u32) -> Option<(&FunctionExecutions, Vec<u32>)> {
        let executions = self.executions.functions.get(&func)?;
        let body = self.module.body(func)?;
        let is_often = |block: u32| {
            let start = body.blocks[block as usize].start;
            executions.blocks.get(&start).is_some_and(|&count| count >= u64::from(n_times_min))
        };
        let n_blocks = body.blocks.len() as u32;
        if n_blocks > 0 && is_often(0) {
            return Some((executions, (0..n_blocks).collect()));
        }
        let (mut blocks, mut end) = (Vec::new(), 0);
        // They are in the order of their starts.
        for of_loop in body.loops().into_iter().filter(|of_loop| is_often(of_loop.start)) {
            blocks.extend(of_loop.start.max(end)..of_loop.end.max(end));
            end = end.max(of_loop.end);
        }
        Some((executions, blocks))
    }
}

impl History for Profiled<'_> {
    fn never_ran(&self, func: u32, n_times_min: u32) -> Vec<u32> {
        let Some((executions, mut blocks)) = self.often_around(func, n_times_min) else {
            return Vec::new();
        };
        let body = self.module.body(func).expect("the module defines the function");
        blocks
            .retain(|&block| executions.blocks.get(&body.blocks[block as usize].start) == Some(&0));
        blocks
    }

    fn callees(&self, func: u32, n_times_min: u32) -> Vec<(u32, Vec<u32>)> {
        let Some((executions, blocks)) = self.often_around(func, n_times_min) else {
            return Vec::new();
        };
        if executions.callees.is_empty() {
            return Vec::new();
        }
        let body = self.module.body(func).expect("the module defines the function");
        let blocks = blocks.iter().map(|&block| &body.blocks[block as usize]);
        let insts = blocks.flat_map(|block| self.module.insts(func, block));
        let of_call = |offset: u32| {
            let callees = executions.callees.get(&offset).filter(|callees| !callees.is_empty())?;
            Some((offset, callees.clone()))
        };
        let calls = insts.filter(|(_, inst)| inst.op == Op::CallIndirect);
        calls.filter_map(|(offset, _)| of_call(offset)).collect()
    }

    fn n_calls(&self, func: u32) -> u32 {
        let begins_with_loop =
            |body: &Body| body.loops().first().is_some_and(|blocks| blocks.start == 0);
        let start = self.module.body(func).filter(|body| !begins_with_loop(body));
        let start = start.and_then(|body| body.blocks.first()).map(|block| block.start);
        let executions = self.executions.functions.get(&func);
        let counted = executions.zip(start).and_then(|(of, start)| of.blocks.get(&start));
        counted.map_or(0, |&count| u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};

    use super::*;

    const SOURCE: &str = "
        table t funcref 2 2
        elem e t at i32.const 0 func first, first
        func first(x: i32) -> i32 { local.get x  return }
        func main(n: i32) -> i32 {
          local.get n  br_if next
          i32.const 1  return
        next:
          local.get n  i32.const 9  i32.eq  br_if rare
          local.get n  local.get n  call_indirect (i32) -> i32, t
          br_if next
          i32.const 2  return
        rare:
          i32.const 3  local.get n  call_indirect (i32) -> i32, t
          return
        }";

    /// The blocks that never ran, the offsets of the calls, and the calls of `main`, where its blocks were executed so many
    /// times.
    fn of_counts(counts: [u64; 6]) -> (Vec<u32>, Vec<u32>, u32) {
        let module = verify(text::parse(SOURCE).unwrap()).unwrap();
        let body = module.body(1).unwrap();
        let starts = body.blocks.iter().map(|block| block.start);
        let blocks = starts.zip(counts).collect();
        // Each instruction has called a function, though only two of them are calls.
        let last = body.blocks.last().unwrap().end;
        let callees = (0..last).map(|offset| (offset, vec![0])).collect();
        let functions = [(1, FunctionExecutions { blocks, callees })].into_iter().collect();
        let executions = Executions { functions };
        let profiled = Profiled { module: &module, executions: &executions };
        assert_eq!((profiled.never_ran(0, 100), profiled.n_calls(0)), (vec![], 0));
        assert_eq!((profiled.callees(7, 100), profiled.n_calls(7)), (vec![], 0));
        let calls = profiled.callees(1, 100).into_iter().map(|(offset, callees)| {
            assert_eq!(callees, [0]);
            offset
        });
        (profiled.never_ran(1, 100), calls.collect(), profiled.n_calls(1))
    }

    #[test]
    fn blocks_count_where_they_had_the_opportunity() {
        let all = of_counts([100, 0, 200, 200, 100, 0]);
        assert_eq!((all.0, all.1.len(), all.2), (vec![1, 5], 2, 100));
        // Only the loop has gone round often enough.
        let in_loop = of_counts([1, 0, 200, 0, 0, 0]);
        assert_eq!((in_loop.0, in_loop.1.len(), in_loop.2), (vec![3], 1, 1));
        assert_eq!(of_counts([99, 0, 99, 0, 0, 0]), (vec![], vec![], 99));
        assert_eq!(of_counts([u64::MAX, 0, 0, 0, 0, 0]).2, u32::MAX);
    }

    #[test]
    fn calls_are_not_known_of_what_begins_with_a_loop() {
        let source = "func main() { again: i32.const 0 br_if again return }";
        let module = verify(text::parse(source).unwrap()).unwrap();
        let functions = FunctionExecutions { blocks: [(0, 9)].into(), callees: [].into() };
        let executions = Executions { functions: [(0, functions)].into() };
        assert_eq!(Profiled { module: &module, executions: &executions }.n_calls(0), 0);
    }
}
