//! Faults that a test can plant, one at a time, to prove that the comparison of engines finds such.
//!
//! The passes ask [`planted`] where a fault sits. Without the feature `planted-faults` the answer is the
//! constant `false`, and nothing of this is left in the code.

macro_rules! faults {
    ($($variant:ident $doc:literal;)*) => {
        /// A fault of promotion or of the lowering to native code.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $doc] $variant,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),*];

            /// What is wrong.
            pub const fn description(self) -> &'static str {
                match self { $(Fault::$variant => $doc,)* }
            }
        }
    };
}

faults! {
    UndoForgotten "Renaming does not undo the changes of blocks at one level of the dominator tree.";
    WriteForgotten "Renaming forgets the last write of blocks with several.";
    PhiOperandOfOtherEdge "Two predecessors of a block have each other's operand of a phi.";
    PhiMissing "The last phi is not placed.";
    LivenessStopsEarly "Liveness does not go on to blocks deep in the dominator tree.";
    FrontierMissesOwnLevel "The frontier of a block misses blocks of its own level.";
    FirstWriteOfBlock "A block with several writes of a slot hands over the first.";
    OnlyWriterReadsFirst "A block that reads a slot before it alone writes it counts as written before.";
    ShiftUnsigned "`i32.shr_s` shifts zeros in.";
    ScaleIgnored "Indexed accesses ignore the scale.";
    LoadZeroExtended "Signed 16-bit loads extend with zeros.";
    LastTableEntryRefused "The last entry of a table is out of bounds.";
    BranchArgumentsSwapped "The targets of a conditional branch get each other's operand of a phi.";
    FloatConditionInverted "Inverted comparisons of floats forget NaN.";
    SelectSwapped "`select` takes the other operand.";
    FuelOneTooLittle "Blocks cost one less than they should.";
    FrameKeptByTailCall "A tail call does not give back the frame in linear memory.";
    GlobalTakenForConstant "A mutable global is read as if nobody wrote it.";
    LengthTakenForConstant "The length of memory is read as if it never grew.";
    StoreNotKept "A store that another one overwrites is removed although it traps elsewhere.";
    LoadFolded "A load that traps is folded into an instruction elsewhere.";
}

#[cfg(feature = "planted-faults")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault in all that this thread does, in place of the one before.
#[cfg(feature = "planted-faults")]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

/// Whether a fault is planted.
#[cfg(feature = "planted-faults")]
pub fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Whether a fault is planted: never.
#[cfg(not(feature = "planted-faults"))]
#[inline(always)]
pub const fn planted(_: Fault) -> bool {
    false
}
