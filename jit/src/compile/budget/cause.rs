//! Causes of compile cost, one row each. [`estimate`](super::estimate) has the cost of each.

macro_rules! causes {
    ($($name:ident $message:literal $doc:literal;)*) => {
        /// A cause of compile cost.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Cause {
            $(#[doc = $doc] $name,)*
        }

        pub(super) const N_CAUSES: usize = [$(Cause::$name),*].len();

        impl Cause {
            pub(super) const ALL: [Cause; N_CAUSES] = [$(Cause::$name),*];

            /// The cause as a phrase.
            pub const fn message(self) -> &'static str {
                match self { $(Cause::$name => $message,)* }
            }
        }
    };
}

causes! {
    Code "it has much code" "Instructions, blocks and edges.";
    WideOperands "its calls and returns have many operands" "Operands and results of calls and returns.";
    PhiOperands "its phis have many operands" "Operands of phis.";
    LiveValues "many values live in many blocks" "Values that live in many blocks.";
    RecurringValues "many values would live longer when it is optimised" "Values that the optimiser would make live longer.";
    CrowdedBlocks "many values live at a time in one block" "Values that live at a time in one block.";
    PhiScans "there are many phis where few values live" "Scans of phi operands in the register allocator.";
    Nesting "its loops are nested deeply" "Nested loops.";
    Dominators "its dominators are found by long walks" "Dominators.";
    Rewriting "the optimiser would rewrite long chains of operations" "Chains of operations that the optimiser combines.";
    Copies "the optimiser would compute operations in many blocks" "Operations that the optimiser computes in more than one block.";
}
