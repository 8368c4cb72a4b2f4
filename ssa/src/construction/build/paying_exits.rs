//! Which exits pay: a block is not left out of a form if leaving for it takes more code than the block.

use slotvm_bytecode::VerifiedModule;

use super::exits::live_locals;

/// Instructions of bytecode that take as much code as an exit besides its values.
const EXIT_INSTS: u32 = 16;
/// The same for each of its values.
const VALUE_INSTS: u32 = 2;

/// The instructions of bytecode that take as much code as an exit with so many values.
pub(super) fn exit_insts(n_values: u32) -> u32 {
    EXIT_INSTS + VALUE_INSTS * n_values
}

/// The blocks among some of a function, in ascending order, whose exits take less than what is left out for them.
///
/// Blocks among them that lead to each other are left out together. They cost their instructions; the exits in their place
/// cost some each, and a few for each value of the frame. Near-linear in the blocks and edges of the function, and
/// linear in its blocks times its locals, up to the limit of their liveness.
pub fn paying_exits(module: &VerifiedModule, func: u32, mut blocks: Vec<u32>) -> Vec<u32> {
    let body = module.body(func).expect("the function is defined in the module");
    let live = live_locals(module, func);
    let number = |block: u32| blocks.binary_search(&block).ok();
    let mut groups = Groups((0..blocks.len()).collect());
    for (i, &block) in blocks.iter().enumerate() {
        for j in body.succs(block as usize).iter().filter_map(|&succ| number(succ)) {
            groups.join(i, j);
        }
    }
    let mut saved = vec![0_i64; blocks.len()];
    for (i, &block) in blocks.iter().enumerate() {
        saved[groups.first(i)] += i64::from(body.blocks[block as usize].cost);
    }
    let mut has_exit = vec![false; blocks.len()];
    let others = (0..body.blocks.len() as u32).filter(|&block| number(block).is_none());
    for block in others {
        for i in body.succs(block as usize).iter().filter_map(|&succ| number(succ)) {
            if std::mem::replace(&mut has_exit[i], true) {
                continue;
            }
            let n_locals = live.as_ref().map_or(body.locals.len() as u32, |live| {
                live.words(blocks[i]).iter().map(|word| word.count_ones()).sum()
            });
            let shape = body.blocks[blocks[i] as usize].shape;
            let n_values = n_locals + module.shape_depth(shape);
            saved[groups.first(i)] -= i64::from(exit_insts(n_values));
        }
    }
    let mut pays = (0..blocks.len()).map(|i| saved[groups.first(i)] > 0);
    blocks.retain(|_| pays.next().expect("there is one for each block"));
    blocks
}

/// Groups of numbers, each with its first one: a union-find structure.
struct Groups(Vec<usize>);

impl Groups {
    fn first(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use slotvm_bytecode::{text, verify};

    use super::*;

    /// The blocks among some of a function that are left out. After the test, block 1 goes to block 2, and that to block 4;
    /// block 3 is reached by the branch, and goes there, too.
    fn left_out(n_first: usize, n_second: usize, n_other: usize, blocks: &[u32]) -> Vec<u32> {
        let insts = |n: usize| "nop ".repeat(n);
        let source = format!(
            "func f(a: i32, b: i64) -> i64 {{
               local.get a  br_if other
               {} br second
             second: {} br end
             other: {} br end
             end: local.get b  return
             }}",
            insts(n_first),
            insts(n_second),
            insts(n_other)
        );
        let module = verify(text::parse(&source).unwrap()).unwrap();
        assert_eq!(module.body(0).unwrap().blocks.len(), 5);
        paying_exits(&module, 0, blocks.to_vec())
    }

    /// The bound of instructions for an exit with one value, that of `b`, less the branch at the end of a block.
    const BOUND: usize = (EXIT_INSTS + VALUE_INSTS) as usize - 1;

    #[test]
    fn a_block_is_left_out_if_it_is_longer_than_its_exit() {
        assert_eq!(left_out(0, 0, BOUND, &[3]), []);
        assert_eq!(left_out(0, 0, BOUND + 1, &[3]), [3]);
        assert_eq!(left_out(0, 0, BOUND + 1, &[]), []);
    }

    #[test]
    fn blocks_that_lead_to_each_other_have_one_exit() {
        assert_eq!(left_out(BOUND / 2, BOUND - BOUND / 2 - 1, 0, &[1, 2]), []);
        assert_eq!(left_out(BOUND / 2, BOUND - BOUND / 2, 0, &[1, 2]), [1, 2]);
        // Blocks that are entered from elsewhere are others.
        assert_eq!(left_out(BOUND / 2, BOUND - BOUND / 2, 0, &[1, 2, 3]), [1, 2]);
    }

    #[test]
    fn all_that_leads_to_one_block_is_left_out_together() {
        assert_eq!(left_out(0, 0, 3 * BOUND, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(left_out(0, 0, BOUND, &[1, 2, 3, 4]), []);
    }
}
