//! Depth-first search, without recursion.

use crate::graphs::cfg::ControlFlow;
use crate::graphs::steps::step;

/// No number: the block is unreachable.
pub(crate) const NONE: u32 = u32::MAX;

/// A depth-first search from the entry, which looks at successors in their order. Blocks are numbered
/// in the order in which it finds them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// The block of each number.
    pub(crate) vertices: Vec<u32>,
    /// The number of the block from which a number's block was found; 0 for the entry.
    pub(crate) parents: Vec<u32>,
    /// The numbers in the order in which the search leaves their blocks.
    pub(crate) postorder: Vec<u32>,
    /// The path to the current block: number, and which successor to look at next.
    stack: Vec<(u32, u32)>,
}

impl Search {
    /// Searches a graph. `numbers` receives each block's number, or [`NONE`].
    pub(crate) fn run(&mut self, cfg: &impl ControlFlow, numbers: &mut Vec<u32>) {
        numbers.clear();
        numbers.resize(cfg.n_blocks(), NONE);
        self.vertices.clear();
        self.parents.clear();
        self.postorder.clear();
        self.stack.clear();
        for list in [&mut self.vertices, &mut self.parents, &mut self.postorder] {
            list.reserve(cfg.n_blocks());
        }

        numbers[cfg.entry() as usize] = 0;
        self.vertices.push(cfg.entry());
        self.parents.push(0);
        self.stack.push((0, 0));
        while let Some((v, next)) = self.stack.last_mut() {
            step();
            let succs = cfg.succs(self.vertices[*v as usize]);
            let Some(&target) = succs.get(*next as usize) else {
                self.postorder.push(*v);
                self.stack.pop();
                continue;
            };
            *next += 1;
            if numbers[target as usize] == NONE {
                let number = self.vertices.len() as u32;
                numbers[target as usize] = number;
                self.vertices.push(target);
                self.parents.push(*v);
                self.stack.push((number, 0));
            }
        }
    }
}
