//! Which exits pay: a block is not left out of a form if leaving for it takes more code than the block.

use slotvm_bytecode::VerifiedModule;

use super::exits::live_locals;

/// Instructions of bytecode that take as much code as an exit besides its values.
const EXIT_INSTS: u32 = 16;
/// The same for each of its values.
const VALUE_INSTS: u32 = 2;

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
            saved[groups.first(i)] -= i64::from(EXIT_INSTS + VALUE_INSTS * n_values);
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
