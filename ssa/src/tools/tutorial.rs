//! Tutorial: one function from slots to SSA form and back, step by step.
//!
//! # The function
//!
//! Fibonacci numbers with a loop, as in ssloy's article on `mem2reg`, and as a compiler's front end
//! leaves it: each variable is a *slot* of memory that is read and written.
//!
//! ```c
//! int fib(int n) {
//!     int a = 0, b = 1, i = 1, c = 0;
//!     if (n == 0) return 0;
//!     while (i < n) { c = b; b = a + b; a = c; i = i + 1; }
//!     return b;
//! }
//! ```
//!
//! ```text
//! block            accesses, in order                                   goes to
//! 0 entry          n = %n, a = 0, b = 1, i = 1, c = 0, read n           if.then, if.end
//! 1 if.then        retval = 0                                           return
//! 2 if.end                                                              while.cond
//! 3 return         read retval
//! 4 while.cond     read i, read n                                       while.body, while.end
//! 5 while.body     read b, c = it, read a, read b, b = %add,            while.cond
//!                  read c, a = it, read i, i = %add2
//! 6 while.end      read b, retval = it                                  return
//! ```
//!
//! Reading it from memory is what makes it slow: each `read` waits for a `write` long gone. In *static
//! single assignment* form every value has a name and is written once, reads are gone, and a *phi* picks
//! a value where several ways meet. [`fibonacci`] is the function as data: a graph
//! ([`cfg::ControlFlow`]), and for each block its accesses ([`construct::Access`]). Values are numbers
//! that mean something to whoever asks; here they index [`VALUES`].
//!
//! # Dominators
//!
//! Block `a` *dominates* `b` if each path from the entry to `b` goes through `a`. So a value that `a`
//! makes is there in `b`, whatever the path. Dominators form a tree ([`dominators`]), found by
//! Semi-NCA; asking whether one block dominates another is two comparisons.
//!
//! ```
//! use slotvm_ssa::graphs::dominators::DomTree;
//! use slotvm_ssa::tools::tutorial::fibonacci;
//!
//! let tree = DomTree::semi_nca(fibonacci().cfg());
//! let idoms: Vec<Option<u32>> = (0..7).map(|block| tree.idom(block)).collect();
//! assert_eq!(idoms, [None, Some(0), Some(0), Some(0), Some(2), Some(4), Some(4)]);
//! assert!(tree.dominates(4, 6), "while.end is reached through while.cond only");
//! assert!(!tree.dominates(6, 3), "but return is also reached from if.then");
//! ```
//!
//! # Dominance frontiers
//!
//! Where the dominance of a block ends, what it wrote meets something else for the first time: the
//! blocks that are entered from a block that it dominates, and that it does not strictly dominate itself,
//! are its *dominance frontier* ([`frontier`]). A header of a loop is in its own: around the loop the
//! new value meets the old one.
//!
//! ```
//! use slotvm_ssa::graphs::dominators::DomTree;
//! use slotvm_ssa::graphs::frontier::Frontiers;
//! use slotvm_ssa::tools::tutorial::fibonacci;
//!
//! let program = fibonacci();
//! let tree = DomTree::semi_nca(program.cfg());
//! let frontiers = Frontiers::new(program.cfg(), &tree).unwrap();
//! let of = |block| {
//!     let mut blocks = frontiers.of(block).to_vec();
//!     blocks.sort();
//!     blocks
//! };
//! assert_eq!(of(0), []);
//! assert_eq!(of(1), [3], "if.then meets while.end in return");
//! assert_eq!(of(4), [3, 4], "the loop meets if.then in return, and itself in while.cond");
//! assert_eq!(of(5), [4]);
//! ```
//!
//! # Phi sites
//!
//! A slot needs phis in the frontier of each block that writes it; a phi writes it too, so it is the
//! frontier of those blocks as well: the *iterated* dominance frontier ([`idf`]; Cytron, Ferrante, Rosen,
//! Wegman, Zadeck, 1991). Slot `b` is written in `entry` and `while.body`. The frontier of `while.body` is
//! `while.cond`, whose own is `return` and itself.
//!
//! Not all of these phis are of use. `return` does not read `b`: a phi there would be dead. A slot is
//! *live* where a path leads to a read of it without a write ([`liveness`]). Phis only where their slot
//! is live make *pruned* SSA form.
//!
//! ```
//! use slotvm_ssa::graphs::dominators::DomTree;
//! use slotvm_ssa::graphs::ids::Slot;
//! use slotvm_ssa::graphs::idf::{Placement, Pruning, SitePlacer};
//! use slotvm_ssa::graphs::liveness::Liveness;
//! use slotvm_ssa::graphs::slot_blocks::SlotBlocks;
//! use slotvm_ssa::tools::tutorial::fibonacci;
//!
//! let program = fibonacci();
//! let tree = DomTree::semi_nca(program.cfg());
//! // Slot b alone: blocks that write it, and blocks that read it before they do.
//! let slot = Slot(0);
//! let b = SlotBlocks::new(1, [(0, slot), (5, slot)], [(5, slot), (6, slot)]);
//! let mut placer = SitePlacer::default();
//! for placement in Placement::ALL {
//!     let mut sites = |pruning| {
//!         placer.place(program.cfg(), &tree, &b, pruning, placement).unwrap();
//!         let mut blocks: Vec<u32> = placer.sites().iter().map(|&(block, _)| block).collect();
//!         blocks.sort();
//!         blocks
//!     };
//!     assert_eq!(sites(Pruning::None), [3, 4]);
//!     assert_eq!(sites(Pruning::Full), [4]);
//! }
//! let live = Liveness::new(program.cfg(), &b).unwrap();
//! assert!(live.is_live_in(4, slot) && !live.is_live_in(3, slot));
//! ```
//!
//! There are several ways to find the same sites, which [`idf::Placement`] names: the textbook's worklist
//! over frontiers, whose sets may be quadratic; LLVM's walk down the tree, deepest block first; and that
//! for 64 slots at once, in the bits of a word ([`place`]), which is what promotion uses.
//!
//! # Renaming
//!
//! With the phis in place, one walk over the dominator tree finds the value of each read: the phi or the
//! last write above it. At the end of a block, each of its edges brings the values of that moment to the
//! phis at its target. That is all: reads and writes can go.
//!
//! ```
//! use slotvm_ssa::construction::construct::{ConstructOptions, Construction, Renaming, Scratch, construct};
//! use slotvm_ssa::tools::tutorial::{SLOTS, VALUES, fibonacci};
//!
//! let program = fibonacci();
//! let mut scratch = Scratch::default();
//! let ssa = construct(&program, &ConstructOptions::default(), &mut scratch).unwrap();
//!
//! let name = |value: u32| match ssa.phis().iter().find(|phi| phi.value == value) {
//!     Some(phi) => format!("{}@{}", SLOTS[phi.slot as usize], phi.block),
//!     None => VALUES[value as usize].to_owned(),
//! };
//! let mut phis: Vec<String> = (0..ssa.phis().len())
//!     .map(|i| {
//!         let operands: Vec<String> = ssa.operands(i).map(name).collect();
//!         format!("{} = phi({})", name(ssa.phis()[i].value), operands.join(", "))
//!     })
//!     .collect();
//! phis.sort();
//! assert_eq!(phis, [
//!     "a@4 = phi(0, b@4)", // the old b: c is gone
//!     "b@4 = phi(1, %add)",
//!     "i@4 = phi(1, %add2)",
//!     "retval@3 = phi(0, b@4)",
//! ]);
//!
//! // The value of each read: %0 read n, %6 read c, …
//! let read = |value: &str| {
//!     let number = VALUES.iter().position(|&v| v == value).unwrap();
//!     name(ssa.value(number as u32))
//! };
//! assert_eq!(["%0", "%6", "%8", "%9"].map(read), ["%n", "b@4", "b@4", "retval@3"]);
//!
//! // The other way of renaming, by chains of reaching definitions, finds the same.
//! let chains = ConstructOptions { renaming: Renaming::Chains, ..ConstructOptions::default() };
//! assert_eq!(construct(&program, &chains, &mut scratch).unwrap().phis(), ssa.phis());
//! ```
//!
//! # Which construction
//!
//! [`construct::Construction`] says where phis stand, and how they are found:
//!
//! | construction | phis | needs | choose it |
//! |---|---:|---|---|
//! | maximal: all slots at all joins | 12 | nothing | to compare |
//! | minimal (Cytron et al. 1991) | 9 | dominators | to keep a name for each merge |
//! | semi-pruned (Briggs et al. 1998) | 7 | and a scan of each block | where liveness is too dear |
//! | pruned (Choi et al. 1991) | 4 | and liveness | before code generation |
//! | on the fly (Braun et al. 2013) | 4 | none of these | where there are no slots to begin with |
//!
//! ```
//! use slotvm_ssa::construction::construct::{ConstructOptions, Construction, Scratch, construct};
//! use slotvm_ssa::tools::tutorial::fibonacci;
//!
//! let n_phis = |construction| {
//!     let options = ConstructOptions { construction, ..ConstructOptions::default() };
//!     construct(&fibonacci(), &options, &mut Scratch::default()).unwrap().phis().len()
//! };
//! assert_eq!(n_phis(Construction::Maximal), 12);
//! assert_eq!(n_phis(Construction::Minimal), 9);
//! assert_eq!(n_phis(Construction::SemiPruned), 7);
//! assert_eq!(n_phis(Construction::Pruned), 4);
//! ```
//!
//! The last one is for front ends that can do without all of the above: [`braun`] makes phis while a
//! function is translated, when a read asks for one.
//!
//! ```
//! use slotvm_ssa::construction::braun::{Braun, BraunOptions};
//! use slotvm_ssa::graphs::cfg::ControlFlow;
//! use slotvm_ssa::construction::construct::Access;
//! use slotvm_ssa::tools::tutorial::fibonacci;
//!
//! let program = fibonacci();
//! let mut undefined = |_| unreachable!("no read comes before all writes");
//! let mut ssa = Braun::default();
//! ssa.start(BraunOptions::default());
//! let mut values: Vec<u32> = (0..program.n_values()).collect();
//! ssa.seal_block(0, [], &mut undefined);
//! // Blocks in the order in which they are filled, and those whose predecessors are then all filled, so
//! // that they can be sealed: while.cond and return have to wait.
//! let steps: [(u32, &[u32]); 7] =
//!     [(0, &[1, 2]), (1, &[]), (2, &[]), (4, &[5, 6]), (5, &[4]), (6, &[3]), (3, &[])];
//! for (block, sealed) in steps {
//!     for &access in program.accesses(block) {
//!         match access {
//!             Access::Read { slot, value } => {
//!                 values[value as usize] = ssa.read_variable(slot, block, &mut undefined);
//!             }
//!             Access::Write { slot, value } => {
//!                 ssa.write_variable(slot, block, values[value as usize]);
//!             }
//!         }
//!     }
//!     for &block in sealed {
//!         ssa.seal_block(block, program.cfg().preds(block).to_vec(), &mut undefined);
//!     }
//! }
//! assert_eq!(ssa.finish(&mut undefined).n_left, 4);
//! ```
//!
//! # In an IR, and back
//!
//! A compiler with its own IR hands over a [`construct::SlotProgram`], and its own graph if that implements
//! [`cfg::ControlFlow`]. The IR of this crate comes with the feature `ir`: the module `build` makes slot
//! form from verified bytecode, `promote` turns it into SSA form with the same code inside, and `destruct`
//! turns that back into slot form. There phis become copies at the ends of the blocks before them, and
//! values that phis connect share a slot where they do not interfere. The documentation of `destruct`
//! takes the function from bytecode to SSA form and back.
//!
//! [`cfg::ControlFlow`]: crate::graphs::cfg::ControlFlow
//! [`construct::Access`]: crate::construction::construct::Access
//! [`construct::Construction`]: crate::construction::construct::Construction
//! [`construct::SlotProgram`]: crate::construction::construct::SlotProgram
//! [`dominators`]: crate::graphs::dominators
//! [`frontier`]: crate::graphs::frontier
//! [`idf`]: crate::graphs::idf
//! [`idf::Placement`]: crate::graphs::idf::Placement
//! [`liveness`]: crate::graphs::liveness
//! [`place`]: crate::graphs::place
//! [`braun`]: crate::construction::braun

use crate::construction::construct::{Access, SlotProgram};
use crate::graphs::cfg::Cfg;

/// The names of the slots of [`fibonacci`].
pub const SLOTS: [&str; 6] = ["n", "a", "b", "i", "c", "retval"];

/// The names of the values of [`fibonacci`]: what it computes, then what its reads make.
pub const VALUES: [&str; 15] =
    ["%n", "0", "1", "%add", "%add2", "%0", "%1", "%2", "%3", "%4", "%5", "%6", "%7", "%8", "%9"];

/// The function of the tutorial: the blocks are `entry`, `if.then`, `if.end`, `return`, `while.cond`,
/// `while.body` and `while.end`, slots and values those of [`SLOTS`] and [`VALUES`].
pub fn fibonacci() -> SlotProgram {
    let cfg = Cfg::new(0, [vec![1, 2], vec![3], vec![4], vec![], vec![5, 6], vec![4], vec![3]]);
    let write = |slot, value| Access::Write { slot, value };
    // The values of reads follow the five others.
    let read = |slot, number: u32| Access::Read { slot, value: 5 + number };
    let [n, a, b, i, c, retval] = [0, 1, 2, 3, 4, 5];
    let (zero, one, add, add2) = (1, 2, 3, 4);
    let accesses = [
        vec![write(n, 0), write(a, zero), write(b, one), write(i, one), write(c, zero), read(n, 0)],
        vec![write(retval, zero)],
        vec![],
        vec![read(retval, 9)],
        vec![read(i, 1), read(n, 2)],
        vec![
            read(b, 3),
            write(c, 5 + 3),
            read(a, 4),
            read(b, 5),
            write(b, add),
            read(c, 6),
            write(a, 5 + 6),
            read(i, 7),
            write(i, add2),
        ],
        vec![read(b, 8), write(retval, 5 + 8)],
    ];
    SlotProgram::new(cfg, SLOTS.len() as u32, VALUES.len() as u32, accesses)
}
