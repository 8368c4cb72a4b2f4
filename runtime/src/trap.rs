//! Traps as values: why a program stopped, where, and through which calls it got there.

use std::fmt;
use std::sync::Arc;

use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::{TrapCode, VerifiedModule};

use crate::limits::TRACE_FRAMES_MAX;

/// A program stopped before it returned.
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
    /// The guest frames that were active, innermost first: the first is the place of the trap. Where
    /// host functions have called back, the frames below them are listed, too.
    pub frames: Vec<Frame>,
    /// Frames that are not listed, because there were more than [`TRACE_FRAMES_MAX`].
    pub n_frames_omitted: u64,
}

/// A guest frame of a backtrace.
#[derive(Clone)]
pub struct Frame {
    /// The module; which of its instances it was, native code does not know.
    pub module: Arc<VerifiedModule>,
    /// The function, in the module's index space.
    pub func: u32,
    /// The code offset of the instruction that was executing: for frames other than the innermost,
    /// that of the call.
    pub offset: u32,
}

impl Trap {
    /// A trap with the frames of an activation, innermost first; the first is the place. A host function
    /// that traps adds no frames; its caller adds its own.
    pub fn new(code: TrapCode, frames: impl IntoIterator<Item = Frame>) -> Trap {
        let mut trap = Trap { code, func: 0, offset: 0, frames: Vec::new(), n_frames_omitted: 0 };
        trap.add_frames(frames, 0);
        trap
    }

    /// Appends the frames of the activation that a trap passes through on its way out of a host function:
    /// the innermost first, and the number of those that are not listed.
    pub fn add_frames(&mut self, frames: impl IntoIterator<Item = Frame>, n_omitted: u64) {
        let has_place = !self.frames.is_empty();
        for frame in frames {
            if self.frames.len() < TRACE_FRAMES_MAX && self.n_frames_omitted == 0 {
                self.frames.push(frame);
            } else {
                self.n_frames_omitted += 1;
            }
        }
        self.n_frames_omitted += n_omitted;
        if !has_place && let Some(frame) = self.frames.first() {
            (self.func, self.offset) = (frame.func, frame.offset);
        }
    }
}

impl Trap {
    /// The message and the backtrace as its `Display` writes them, with the text that a function has for each frame.
    pub fn display_with<'t>(
        &'t self,
        frame: impl Fn(&Frame) -> String + 't,
    ) -> impl fmt::Display + 't {
        fmt::from_fn(move |f| self.write(f, |f, at| f.write_str(&frame(at))))
    }

    /// The message, then the backtrace, one line for each frame; frames that repeat, as those of a
    /// recursion do, are counted.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        frame: impl Fn(&mut fmt::Formatter<'_>, &Frame) -> fmt::Result,
    ) -> fmt::Result {
        write!(f, "{}", self.code)?;
        let line = |f: &mut fmt::Formatter<'_>, at| {
            f.write_str("\n    at ")?;
            frame(f, at)
        };
        for equal in self.frames.chunk_by(Frame::is_like) {
            line(f, &equal[0])?;
            match &equal[1..] {
                [] => {}
                [again] => line(f, again)?,
                more => write!(f, "\n    ... {} times more", more.len())?,
            }
        }
        match self.n_frames_omitted {
            0 => Ok(()),
            n => write!(f, "\n    ... {n} more frames"),
        }
    }
}

impl Frame {
    /// The name of the function, or what stands in for one.
    pub fn func_name(&self) -> String {
        self.module.func_name(self.func)
    }

    /// The name of the module, if it has one.
    pub fn module_name(&self) -> Option<&str> {
        self.module.module().names.module.as_deref()
    }

    /// Whether another frame is at the same place of the same module.
    fn is_like(&self, other: &Frame) -> bool {
        (self.func, self.offset) == (other.func, other.offset)
            && Arc::ptr_eq(&self.module, &other.module)
    }

    /// The source line, if the module knows it.
    pub fn line(&self) -> Option<u32> {
        self.module.func(self.func)?.line_at(self.offset)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = self.module_name() {
            write!(f, "{}!", Printable(module))?;
        }
        write!(f, "{} (offset {:#06x}", Printable(&self.func_name()), self.offset)?;
        if let Some(line) = self.line() {
            write!(f, ", line {line}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |f, frame| fmt::Display::fmt(frame, f))
    }
}

impl std::error::Error for Trap {}
