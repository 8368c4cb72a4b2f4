//! Traps as values: why a program stopped, where, and through which calls it got there.

use std::fmt;

use slotvm_bytecode::{CustomTrap, TrapCode};

use crate::backtrace::{Backtrace, Frame};

/// A program stopped before it returned.
///
/// Its `Display` writes the reason, and then the backtrace, a line for each frame.
#[derive(Clone, Debug)]
pub struct Trap {
    /// The reason.
    pub code: TrapCode,
    /// The function that trapped, in the index space of its module.
    pub func: u32,
    /// The code offset of the instruction that trapped. For [`TrapCode::OutOfFuel`] that is the start
    /// of the block that there was no fuel for, for an overflow of a stack the start of the function
    /// that was to be entered.
    pub offset: u32,
    /// For [`TrapCode::Custom`]. In a box, since results of calls are moved with the errors that they could be.
    custom: Option<Box<CustomTrap>>,
    backtrace: Backtrace,
}

impl Trap {
    /// A trap with the frames of an activation, innermost first; the first is the place. A host function
    /// that traps adds no frames; its caller adds its own.
    pub fn new(code: TrapCode, frames: impl IntoIterator<Item = Frame>) -> Trap {
        let backtrace = Backtrace::default();
        let mut trap = Trap { code, func: 0, offset: 0, custom: None, backtrace };
        trap.add_frames(frames, 0);
        trap
    }

    /// A trap of a host function with a number and a message of the embedder's choice. An empty message is none.
    ///
    /// ```
    /// use slotvm_runtime::Trap;
    ///
    /// let trap = Trap::custom(7, "no such key");
    /// assert_eq!(trap.to_string(), "no such key (trap 7)");
    /// ```
    pub fn custom(number: u32, message: impl Into<String>) -> Trap {
        let message = Some(message.into()).filter(|message| !message.is_empty());
        let custom = Some(Box::new(CustomTrap { number, message }));
        Trap { custom, ..Trap::new(TrapCode::Custom, []) }
    }

    /// The number and the message of a trap that the program or a host function has chosen, if it is one: of the instruction
    /// `trap` with the message that the module has for its number, or of [`Trap::custom`].
    pub fn custom_trap(&self) -> Option<&CustomTrap> {
        self.custom.as_deref()
    }

    /// The reason as a phrase for an error message: that of the code, or of the [custom trap](Trap::custom_trap).
    pub fn message(&self) -> String {
        match &self.custom {
            Some(custom) => custom.to_string(),
            None => self.code.to_string(),
        }
    }

    /// The guest frames that were active; the first is the place of the trap.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }

    /// The listed frames of the [backtrace](Trap::backtrace), innermost first.
    pub fn frames(&self) -> &[Frame] {
        self.backtrace.frames()
    }

    /// Appends the frames of the activation that a trap passes through on its way out of a host function:
    /// the innermost first, and the number of those that are not listed.
    pub fn add_frames(&mut self, frames: impl IntoIterator<Item = Frame>, n_omitted: u64) {
        let has_place = !self.frames().is_empty();
        self.backtrace.add_frames(frames, n_omitted);
        if !has_place && let Some(frame) = self.backtrace.frames().first() {
            (self.func, self.offset) = (frame.func, frame.offset);
            if self.code == TrapCode::Custom && self.custom.is_none() {
                // Of the instruction, all engines know only the place.
                self.custom = frame.custom_trap().map(Box::new);
            }
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        if self.frames().is_empty() { Ok(()) } else { write!(f, "\n{}", self.backtrace) }
    }
}

impl std::error::Error for Trap {}
