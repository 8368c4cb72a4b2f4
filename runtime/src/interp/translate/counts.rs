//! Counts of the calls of a function, and of the rounds of its loops.

use std::ops::Range;

use slotvm_bytecode::verified::Body;

use super::Translator;
use crate::interp::handlers::table::HandlerCode;
use crate::part::Part;
use crate::steps::code::Count;

/// A block at whose start is counted.
pub(super) struct Counted {
    pub(super) block: u32,
    /// The block after the loop, or after the function.
    end: u32,
    /// The number of the loop that begins there, if one does.
    number: Option<u32>,
    /// The instructions that a round of the loop executes, or a call of the function, by estimate.
    n_insts: u32,
    /// Those of the function.
    n_all: u32,
}

/// The counted blocks of a function, in order: the first one, and those where loops begin.
pub(super) fn of(body: &Body) -> Vec<Counted> {
    let (loops, n_blocks) = (body.loops(), body.blocks.len() as u32);
    let frequencies = frequencies(body, &loops);
    // Of the blocks before each: all instructions, and those that a call executes.
    let mut before = Vec::with_capacity(body.blocks.len() + 1);
    let (mut n_all, mut n_executed) = (0_u32, 0.0);
    for (block, frequency) in body.blocks.iter().zip(&frequencies) {
        before.push((n_all, n_executed));
        n_all = n_all.saturating_add(block.cost);
        n_executed += f64::from(block.cost) * frequency;
    }
    before.push((n_all, n_executed));
    let counted = |blocks: &Range<u32>, number| {
        let [start, end] = [blocks.start, blocks.end].map(|block| before[block as usize]);
        // Not a number where no path was seen that leads there; then it is all.
        let n_executed = ((end.1 - start.1) / frequencies[blocks.start as usize]).ceil();
        let n_insts = n_executed.min(f64::from(end.0 - start.0)) as u32;
        Counted { block: blocks.start, end: blocks.end, number, n_insts, n_all }
    };
    let is_first_counted = loops.first().is_none_or(|first| first.start > 0);
    let first = is_first_counted.then(|| counted(&(0..n_blocks), None));
    let loops = (0..).zip(&loops).map(|(number, blocks)| counted(blocks, Some(number)));
    first.into_iter().chain(loops).collect()
}

/// How often each block is executed in a call of a function, by estimate, if each loop goes round once: all successors of a
/// block are as likely, but that leaving a loop takes nothing from what stays in it. At most 1.
fn frequencies(body: &Body, loops: &[Range<u32>]) -> Vec<f64> {
    let mut frequencies = vec![0.0_f64; body.blocks.len()];
    frequencies[0] = 1.0;
    // The loops that a block is in, the innermost last.
    let (mut around, mut to_come) = (Vec::new(), loops.iter().peekable());
    for block in 0..body.blocks.len() as u32 {
        around.extend(to_come.next_if(|blocks| blocks.start == block));
        while around.pop_if(|blocks| blocks.end <= block).is_some() {}
        let innermost = around.last().map_or(0..u32::MAX, |blocks| (*blocks).clone());
        let frequency = frequencies[block as usize].min(1.0);
        frequencies[block as usize] = frequency;
        let succs = body.succs(block as usize);
        let n_inside = succs.iter().filter(|succ| innermost.contains(succ)).count();
        for succ in succs.iter().filter(|&&succ| succ > block) {
            let n_alike = if innermost.contains(succ) { n_inside } else { succs.len() - n_inside };
            frequencies[*succ as usize] += frequency / n_alike as f64;
        }
    }
    frequencies
}

impl Translator<'_> {
    /// Counts at the start of a block, where all operands lie in their cells.
    pub(super) fn count(&mut self, Counted { block, end, number, n_insts, n_all }: Counted) {
        let part = match number {
            Some(number) => Part::Loop(self.func, number),
            None => Part::Func(self.func),
        };
        let threshold = self.tiers.map_or(1, |tiers| tiers.threshold(part, n_insts, n_all));
        self.far_end();
        self.emit(HandlerCode::Count, 0, 0, self.counts.len() as u32);
        self.far_begin();
        let threshold = threshold.clamp(1, i32::MAX as u32);
        // Of blocks, until it is known where these start.
        self.counts.push(Count::new(part, n_insts, threshold, block..end));
    }

    /// Lets counts name slots instead of blocks.
    pub(super) fn place_counts(&mut self) {
        let (starts, end) = (&self.starts, self.instrs.len() as u32);
        let slot = |block: u32| starts.get(block as usize).copied().unwrap_or(end);
        for Count { slots, .. } in &mut self.counts {
            *slots = slot(slots.start)..slot(slots.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};

    use super::*;

    /// The instructions by estimate, and those that there are, of what is counted in a function.
    fn estimates(body: &str) -> Vec<(u32, u32)> {
        let module = format!("func f(n: i32) -> i32 {{ {body} }}");
        let module = verify(text::parse(&module).unwrap()).unwrap();
        let body = module.body(0).unwrap();
        let all = |counted: &Counted| {
            let blocks = &body.blocks[counted.block as usize..counted.end as usize];
            (counted.n_insts, blocks.iter().map(|block| block.cost).sum())
        };
        of(body).iter().map(all).collect()
    }

    #[test]
    fn ways_are_as_likely() {
        // 2, 3 in one way and 2 in the other, 2.
        let branch = "local.get n br_if other i32.const 1 local.set n br end
            other: nop nop
            end: local.get n return";
        assert_eq!(estimates(branch), [(7, 9)]);
        let switch = "local.get n br_table [a, b, c] d
            a: nop nop nop nop return_n b: nop return_n c: nop return_n d: local.get n return";
        let switch = switch.replace("return_n", "local.get n return");
        // 2, and 6, 3, 3, and 2, each in a quarter.
        assert_eq!(estimates(&switch), [(6, 16)]);
    }

    #[test]
    fn rounds_of_loops_go_on() {
        // A round takes 2 and 5; a call 2 more before and 2 after it.
        let test_first = "i32.const 9 local.set n
            head: local.get n br_if_not end
            local.get n i32.const 1 i32.sub local.set n br head
            end: local.get n return";
        assert_eq!(
            estimates(&test_first.replace("br_if_not", "i32.eqz br_if")),
            [(12, 12), (8, 8)]
        );
        // Each round either leaves the middle out or does not.
        let going_on = "head: local.get n br_if skip nop nop nop nop
            skip: local.get n br_if head local.get n return";
        assert_eq!(estimates(going_on), [(6, 8)]);
    }

    #[test]
    fn what_only_backward_branches_reach_counts_as_all() {
        let backward = "br start inner: local.get n br_if inner local.get n return start: br inner";
        assert_eq!(estimates(backward), [(2, 6), (5, 5)]);
    }
}
