//! The reasons for which a compilation does not succeed.
//!
//! One list has all of them, with their names, their messages, and whether they are faults of slotvm.

use std::fmt;

/// Defines [`CompileFailure`] from the list of reasons: documentation, name, text of the command line, message, and
/// whether the reason is a fault of slotvm.
macro_rules! compile_failures {
    ($($(#[$doc:meta])+ $reason:ident, $name:literal, $message:literal, bug: $is_bug:literal;)+) => {
        /// The reason for which a compilation did not succeed.
        ///
        /// Reasons that are a [bug](CompileFailure::is_bug) are faults of slotvm, and should be reported. The others are
        /// refusals that a module can cause.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum CompileFailure {
            $($(#[$doc])+ $reason,)+
        }

        impl CompileFailure {
            /// All reasons.
            pub const ALL: &'static [CompileFailure] = &[$(CompileFailure::$reason),+];

            /// The name of the reason, in lower case with hyphens.
            pub const fn name(self) -> &'static str {
                match self {
                    $(CompileFailure::$reason => $name,)+
                }
            }

            const fn message(self) -> &'static str {
                match self {
                    $(CompileFailure::$reason => $message,)+
                }
            }

            /// Whether the reason is a fault of slotvm, which should be reported with the module.
            pub const fn is_bug(self) -> bool {
                match self {
                    $(CompileFailure::$reason => $is_bug,)+
                }
            }
        }
    };
}

compile_failures! {
    /// The function has an instruction with more operands than the IR can count.
    NotBuildable, "not-buildable", "an instruction has too many operands", bug: false;
    /// The machine lacks instructions that the module needs.
    Machine, "machine", "the machine lacks instructions that the module needs", bug: false;
    /// The work exceeds the share of the module's compile budget at every effort level.
    Budget, "budget", "the work exceeds the module's compile budget", bug: false;
    /// The function or the trampoline exceeds a limit of the code generator.
    TooLarge, "too-large", "it exceeds a limit of the code generator", bug: false;
    /// Operands lie in different cells at the starts of the loops that one form is for, or the form has too many cells to
    /// set. The loop that was hot is then compiled by itself.
    DifferentOperands, "different-operands", "operands differ between the starts of the loops", bug: false;
    /// The system has no memory for code, or starts no thread to compile on.
    NoMemory, "no-memory", "the system has no memory or no thread for it", bug: false;
    /// A stage has left a function that breaks a rule of the IR or of Cranelift's IR.
    InvalidForm, "invalid-form", "a stage has left an invalid function", bug: true;
    /// Cranelift has refused the function for another reason.
    CodeGenerator, "code-generator", "the code generator has failed", bug: true;
    /// The compiler has panicked.
    Panic, "panic", "the compiler has panicked", bug: true;
}

impl CompileFailure {
    /// The number of reasons.
    pub(crate) const N: usize = CompileFailure::ALL.len();

    /// The refusal for this reason, in more words.
    pub(crate) fn because(self, reason: impl fmt::Display) -> Refusal {
        Refusal { failure: self, reason: reason.to_string() }
    }
}

/// The reason why a function is not compiled.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) failure: CompileFailure,
    pub(crate) reason: String,
}

impl fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.message())
    }
}

/// An error that something was not compiled for.
pub(crate) trait Fails: fmt::Display {
    /// The reason.
    fn failure(&self) -> CompileFailure;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_a_name_and_a_message_of_its_own() {
        for (i, reason) in CompileFailure::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, i);
        }
        let names: BTreeSet<_> = CompileFailure::ALL.iter().map(|reason| reason.name()).collect();
        let messages: BTreeSet<_> = CompileFailure::ALL.iter().map(|r| r.to_string()).collect();
        assert_eq!((names.len(), messages.len()), (CompileFailure::N, CompileFailure::N));
    }
}
