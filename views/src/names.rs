//! Names of functions for people: Rust's and C++'s mangled names are written as in their source.
//!
//! Names come from modules, which nobody vouches for. What a name means is short, or else the name stays as it is: a few
//! bytes of a mangled name can stand for megabytes.

use std::borrow::Cow;
use std::fmt::{self, Write};

use slotvm_bytecode::VerifiedModule;

/// The longest name that is demangled, and the longest result, in bytes.
const DEMANGLED_BYTES_MAX: usize = 4096;

/// The name of a function as its source has it. Not escaped.
pub fn func_name(module: &VerifiedModule, func: u32) -> String {
    demangled(&module.func_name(func)).into_owned()
}

/// A name as its source has it, or the name itself if it is not mangled. Not escaped.
pub fn demangled(name: &str) -> Cow<'_, str> {
    if name.len() > DEMANGLED_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // The alternate form has no hash.
        return bounded(|out| write!(out, "{rust:#}")).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(name) else { return Cow::Borrowed(name) };
    let options = cpp_demangle::DemangleOptions::new();
    let cpp = bounded(|out| symbol.structured_demangle(out, &options));
    cpp.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The text that is written, if it is short enough.
fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded(String::new());
    write(&mut out).ok().map(|()| out.0)
}

/// Text that fails to grow beyond [`DEMANGLED_BYTES_MAX`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > DEMANGLED_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_written_as_in_their_source() {
        for (mangled, name) in [
            (
                "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
                "core::fmt::Formatter::write_str",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZN5space3fooEibc", "space::foo(int, bool, char)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("main", "main"),
            ("_Zebra", "_Zebra"),
            ("_start", "_start"),
        ] {
            assert_eq!(demangled(mangled), name);
        }
    }

    #[test]
    fn names_that_stand_for_too_much_stay_as_they_are() {
        // Each parameter stands for two of the one before.
        let mut bomb = "_Z1fI1AE".to_owned();
        bomb = format!("{bomb}vS_1BIS0_S0_E");
        for i in 1..36 {
            let last = seq_id(i);
            bomb.push_str(&format!("1CIS{last}_S{last}_E"));
        }
        assert!(demangled(&bomb).len() <= DEMANGLED_BYTES_MAX);
        let long = format!("_ZN{}{}E", 5000, "a".repeat(5000));
        assert_eq!(demangled(&long), long);
    }

    /// The number of a substitution, in base 36.
    fn seq_id(n: u32) -> char {
        char::from_digit(n, 36).expect("it is small").to_ascii_uppercase()
    }
}
