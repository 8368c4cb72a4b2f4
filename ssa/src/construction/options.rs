//! What a construction is asked for, and what it counts.

use crate::construction::braun::BraunOptions;
use crate::construction::rename::Renaming;
use crate::graphs::frontier::FrontiersTooLarge;
use crate::graphs::idf::Placement;

/// The placement of phis.
///
/// The phis of each form include those of the next one, except as [`BraunOptions`] say.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Construction {
    /// A phi of every slot in every block with two or more in-edges. It needs no analysis at all, and
    /// has blocks times slots phis; useful only for comparison. (Appel, "SSA is functional
    /// programming" (1998), starts from it.)
    Maximal,
    /// A phi where two paths from different writes converge, function entry counting as a write: in the
    /// iterated dominance frontier of the writing blocks (Cytron, Ferrante, Rosen, Wegman, Zadeck,
    /// "Efficiently Computing Static Single Assignment Form and the Control Dependence Graph" (1991),
    /// section 4). Needs no liveness. For passes that want each merge of a variable named, dead or not.
    Minimal,
    /// Minimal, for those slots only that some block reads before it writes them (Briggs, Cooper, Harvey,
    /// Simpson, "Practical Improvements to the Construction and Destruction of Static Single Assignment
    /// Form" (1998), section 3). One scan instead of liveness leaves out the temporaries of expressions.
    SemiPruned,
    /// Minimal, where the slot is live on entry (Choi, Cytron, Ferrante, "Automatic Construction of
    /// Sparse Data Flow Evaluation Graphs" (1991)). What LLVM makes, and the right choice before code
    /// generation: a dead phi costs a copy on each in-edge.
    #[default]
    Pruned,
    /// On the fly (Braun et al. (2013), see [`crate::construction::braun`]): the same phis, or fewer where the same
    /// value is written twice. For compilers that have no slots to begin with; here it is for comparison.
    Braun(BraunOptions),
}

impl Construction {
    /// All constructions that place phis before they rename, from the most phis to the least.
    pub const ALL: &'static [Construction] = &[
        Construction::Maximal,
        Construction::Minimal,
        Construction::SemiPruned,
        Construction::Pruned,
    ];

    /// The name in the literature.
    pub const fn name(self) -> &'static str {
        match self {
            Construction::Maximal => "maximal",
            Construction::Minimal => "minimal",
            Construction::SemiPruned => "semi-pruned",
            Construction::Pruned => "pruned",
            Construction::Braun(_) => "braun",
        }
    }
}

/// The value of a read before any write, if the caller specifies no other.
pub const UNDEF: u32 = u32::MAX;

/// The value of a read that no write reaches.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Undef<'a> {
    /// [`UNDEF`], as in C or LLVM IR.
    #[default]
    Undefined,
    /// The initial value of the slot, from this list by slot; the values are among the caller's. For
    /// example, the locals of WebAssembly start as zero, and parameters as the arguments.
    Initial(&'a [u32]),
}

/// Options of the construction.
#[derive(Copy, Clone, Debug)]
pub struct ConstructOptions<'a> {
    /// The placement of phis.
    pub construction: Construction,
    /// The way to find their places. The result does not depend on it. [`Placement::Auto`] is
    /// [`Placement::Words`] here, since the scan has the accesses in groups of 64 slots anyway.
    pub placement: Placement,
    /// The way to keep the values that reach a block. The result does not depend on it.
    pub renaming: Renaming,
    /// The value of reads before any write.
    pub undef: Undef<'a>,
    /// The maximum number of operands of all phis, four bytes each.
    pub phi_operands_max: usize,
}

impl Default for ConstructOptions<'_> {
    fn default() -> Self {
        ConstructOptions {
            construction: Construction::default(),
            placement: Placement::default(),
            renaming: Renaming::default(),
            undef: Undef::default(),
            phi_operands_max: CONSTRUCTED_PHI_OPERANDS_MAX,
        }
    }
}

/// The default maximum number of operands of all phis of a function: 1 GiB of them.
pub const CONSTRUCTED_PHI_OPERANDS_MAX: usize = 1 << 28;

/// A limit that a construction would exceed; the number is the limit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// Liveness would look at too many words: blocks times groups of 64 slots.
    LiveWords(usize),
    /// The phis would have too many operands.
    PhiOperands(usize),
    /// The sets of [`Placement::Frontiers`] would have too many entries.
    FrontierEntries(usize),
    /// Construction on the fly would need too many entries, see [`BraunOptions::entries_max`].
    Entries(usize),
}

impl From<FrontiersTooLarge> for TooLarge {
    fn from(FrontiersTooLarge { entries_max }: FrontiersTooLarge) -> TooLarge {
        TooLarge::FrontierEntries(entries_max)
    }
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TooLarge::LiveWords(max) => write!(f, "more than {max} words of liveness"),
            TooLarge::PhiOperands(max) => write!(f, "more than {max} phi operands"),
            TooLarge::FrontierEntries(max) => {
                write!(f, "more than {max} entries in dominance frontiers")
            }
            TooLarge::Entries(max) => write!(f, "more than {max} entries for variables in blocks"),
        }
    }
}

impl std::error::Error for TooLarge {}

/// The way in which the values of a slot's reads are found: the fast paths of LLVM, or phi placement.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SlotPath {
    /// The slot is never read.
    Dead,
    /// One block has all accesses, none of which reads what another block wrote.
    SingleBlock,
    /// No read depends on another block: it is never live across blocks.
    Local,
    /// The slot is read and never written.
    Unwritten,
    /// One block writes the slot, and dominates all reads that do not follow a write in their own block.
    OneWriter,
    /// None of these: it goes through phi placement. All slots do if phis are found on the fly.
    Placed,
}

impl SlotPath {
    /// The path as a phrase.
    pub const fn message(self) -> &'static str {
        match self {
            SlotPath::Dead => "it is never read",
            SlotPath::SingleBlock => "one block has all accesses",
            SlotPath::Local => "it is never live across blocks",
            SlotPath::Unwritten => "it is never written",
            SlotPath::OneWriter => "one block writes it and dominates all reads",
            SlotPath::Placed => "phis stand where its values meet",
        }
    }
}

/// The number of slots on each path of [`SlotPath`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// Slots of [`SlotPath::Dead`].
    pub n_dead: usize,
    /// Slots of [`SlotPath::SingleBlock`].
    pub n_single_block: usize,
    /// Slots of [`SlotPath::Local`].
    pub n_local: usize,
    /// Slots of [`SlotPath::Unwritten`].
    pub n_unwritten: usize,
    /// Slots of [`SlotPath::OneWriter`].
    pub n_one_writer: usize,
    /// Slots of [`SlotPath::Placed`].
    pub n_placed: usize,
}

impl SlotCounts {
    /// All slots.
    pub fn n_slots(&self) -> usize {
        let SlotCounts { n_dead, n_single_block, n_local, n_unwritten, n_one_writer, n_placed } =
            self;
        n_dead + n_single_block + n_local + n_unwritten + n_one_writer + n_placed
    }
}
