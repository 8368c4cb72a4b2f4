//! Names in LLVM's syntax.

/// A name for LLVM IR, without the `%` or `@`: a unique part, and after a dot one for people. It is
/// quoted if necessary.
///
/// LLVM has no names with a zero byte; such bytes of the part for people are left out.
pub(super) fn identifier(unique: &str, for_people: Option<&str>) -> String {
    let Some(for_people) = for_people else { return unique.to_owned() };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '$' | '.' | '_');
    if for_people.chars().all(is_plain) {
        return format!("{unique}.{for_people}");
    }
    let mut out = format!("\"{unique}.");
    for byte in for_people.bytes().filter(|&byte| byte != 0) {
        match byte {
            b'"' | b'\\' => out.push_str(&format!("\\{byte:02X}")),
            b' '..=b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_llvm_needs_it() {
        assert_eq!(identifier("b1", None), "b1");
        assert_eq!(identifier("b1", Some("loop-2$_.x")), "b1.loop-2$_.x");
        assert_eq!(identifier("f2", Some("a b")), "\"f2.a b\"");
        assert_eq!(identifier("f2", Some("\"\\é\n\0")), "\"f2.\\22\\5C\\C3\\A9\\0A\"");
    }
}
