//! Hints which way conditional branches mostly go.

/// Which way a conditional branch mostly goes. It says nothing about what the branch does: native code lays out the other
/// side away from this one, and the interpreter ignores it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum BranchHint {
    /// It mostly goes on to the next instruction.
    Unlikely,
    /// It is mostly taken.
    Likely,
}

impl BranchHint {
    /// Both of them.
    pub const ALL: [BranchHint; 2] = [BranchHint::Unlikely, BranchHint::Likely];

    /// The hint of a branch that is taken where the other one is not.
    pub const fn inverted(self) -> BranchHint {
        match self {
            BranchHint::Unlikely => BranchHint::Likely,
            BranchHint::Likely => BranchHint::Unlikely,
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            BranchHint::Unlikely => "unlikely",
            BranchHint::Likely => "likely",
        }
    }
}
