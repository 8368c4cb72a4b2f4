//! Backtraces: the guest frames that are active, in the order in which they end.

use std::fmt;
use std::sync::Arc;

use slotvm_bytecode::module::SourcePlace;
use slotvm_bytecode::printable::Printable;
use slotvm_bytecode::{CustomTrap, VerifiedModule};

use crate::limits::TRACE_FRAMES_MAX;

/// Guest frames that were active at a moment, innermost first. Where host functions have called back, the frames
/// below them are listed, too. At most [`TRACE_FRAMES_MAX`] are listed.
///
/// Its `Display` writes a line for each frame, `at` before each; frames that repeat, as those of a recursion do,
/// are counted.
#[derive(Clone, Debug, Default)]
pub struct Backtrace {
    frames: Vec<Frame>,
    n_omitted: u64,
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

impl Backtrace {
    /// The listed frames, innermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Frames that are not listed, because there were more than [`TRACE_FRAMES_MAX`].
    pub fn n_frames_omitted(&self) -> u64 {
        self.n_omitted
    }

    /// Appends the frames of an activation that is below those listed, the innermost first, and counts so many that the
    /// activation has not listed.
    pub fn add_frames(&mut self, frames: impl IntoIterator<Item = Frame>, n_omitted: u64) {
        for frame in frames {
            if self.frames.len() < TRACE_FRAMES_MAX && self.n_omitted == 0 {
                self.frames.push(frame);
            } else {
                self.n_omitted += 1;
            }
        }
        self.n_omitted += n_omitted;
    }

    /// The lines that its `Display` writes, with the text that a function has for each frame.
    pub fn display_with<'t>(
        &'t self,
        frame: impl Fn(&Frame) -> String + 't,
    ) -> impl fmt::Display + 't {
        fmt::from_fn(move |f| self.write(f, |f, at| f.write_str(&frame(at))))
    }

    /// Writes a line for each frame, without a line break after the last one.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        frame: impl Fn(&mut fmt::Formatter<'_>, &Frame) -> fmt::Result,
    ) -> fmt::Result {
        let mut between = "";
        let mut start = |f: &mut fmt::Formatter<'_>| {
            write!(f, "{between}    ")?;
            between = "\n";
            Ok(())
        };
        for equal in self.frames.chunk_by(Frame::is_like) {
            let shown = if equal.len() > 2 { 1 } else { equal.len() };
            for at in &equal[..shown] {
                start(f)?;
                f.write_str("at ")?;
                frame(f, at)?;
            }
            if shown < equal.len() {
                start(f)?;
                write!(f, "... {} times more", equal.len() - shown)?;
            }
        }
        if self.n_omitted > 0 {
            start(f)?;
            write!(f, "... {} more frames", self.n_omitted)?;
        }
        Ok(())
    }
}

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |f, frame| fmt::Display::fmt(frame, f))
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
        Some(self.place()?.line)
    }

    /// The source column, if the module knows it.
    pub fn column(&self) -> Option<u32> {
        Some(self.place()?.column).filter(|&column| column != 0)
    }

    /// The name of the source file, if the module knows it.
    pub fn file(&self) -> Option<&str> {
        self.module.module().names.file(self.place()?.file)
    }

    /// The source place, if the module knows it.
    pub fn place(&self) -> Option<SourcePlace> {
        self.module.func(self.func)?.place_at(self.offset)
    }

    /// The trap of the instruction at the place, if that is `trap`.
    pub(crate) fn custom_trap(&self) -> Option<CustomTrap> {
        let number = self.module.func(self.func)?.trap_number_at(self.offset)?;
        Some(self.module.module().custom_trap(number))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(module) = self.module_name() {
            write!(f, "{}!", Printable(module))?;
        }
        write!(f, "{} (offset {:#06x}", Printable(&self.func_name()), self.offset)?;
        match (self.place(), self.file()) {
            (Some(place), Some(file)) => write!(f, ", {}:{place}", Printable(file))?,
            (Some(place), None) => write!(f, ", line {place}")?,
            (None, _) => {}
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
