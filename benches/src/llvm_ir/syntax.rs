//! The little of LLVM's syntax that the import needs.

/// A local name in an instruction, without the `%`; with quotes if it has any.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Name<'t> {
    /// A block, after `label`.
    Label(&'t str),
    /// A value or a type.
    Value(&'t str),
}

/// The local names in an instruction, except those in strings and comments.
pub(super) fn names(inst: &str) -> impl Iterator<Item = Name<'_>> {
    let mut rest = inst;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(['%', '"', ';'])?;
            let (before, from) = rest.split_at(start);
            match from.as_bytes()[0] {
                b'%' => {
                    let name = quoted_name(&from[1..]).unwrap_or_default();
                    rest = &from[1 + name.len()..];
                    let is_label = before.ends_with("label ");
                    return Some(if is_label { Name::Label(name) } else { Name::Value(name) });
                }
                b'"' => rest = &from[1 + from[1..].find('"')? + 1..],
                _ => return None,
            }
        }
    })
}

/// The name that a text starts with, quotes included.
pub(super) fn quoted_name(text: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-$._".contains(c);
    let end = match text.strip_prefix('"') {
        Some(quoted) => quoted.find('"')? + 2,
        None => text.find(|c| !is_of_name(c)).unwrap_or(text.len()),
    };
    (end > 0).then_some(&text[..end])
}

/// The operand that a text starts with: up to a comma that is in no brackets, or to a space for a name.
pub(super) fn operand(text: &str) -> &str {
    if let Some(name) = text.strip_prefix('%') {
        return &text[..1 + quoted_name(name).unwrap_or_default().len()];
    }
    let mut depth = 0;
    let end = position_outside_quotes(text, |byte| {
        depth += nesting(byte);
        depth < 0 || depth == 0 && byte == b','
    });
    &text[..end.unwrap_or(text.len())]
}

/// The length of the type that a text starts with.
pub(super) fn skip_type(text: &str) -> Option<usize> {
    let mut len = match text.bytes().next()? {
        b'[' | b'{' | b'<' => bracketed(text)?,
        b'%' => 1 + quoted_name(&text[1..])?.len(),
        b'a'..=b'z' => {
            let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            text.find(|c| !is_of_word(c)).unwrap_or(text.len())
        }
        _ => return None,
    };
    // Pointers, functions and address spaces; those of a target's own types follow at once.
    loop {
        let rest = &text[len..];
        len += match rest {
            _ if rest.starts_with('*') => 1,
            _ if rest.starts_with('(') => bracketed(rest)?,
            _ if rest.starts_with(" (") => 1 + bracketed(&rest[1..])?,
            _ if rest.starts_with(" addrspace(") => 10 + bracketed(&rest[10..])?,
            _ => return Some(len),
        };
    }
}

/// The length of what is in the brackets that a text starts with, brackets included.
fn bracketed(text: &str) -> Option<usize> {
    let mut depth = 0;
    let end = position_outside_quotes(text, |byte| {
        depth += nesting(byte);
        depth == 0
    });
    Some(end? + 1)
}

fn nesting(byte: u8) -> i32 {
    match byte {
        b'(' | b'[' | b'{' | b'<' => 1,
        b')' | b']' | b'}' | b'>' => -1,
        _ => 0,
    }
}

/// Returns the position of the first byte outside of quotes that satisfies a condition.
fn position_outside_quotes(text: &str, mut is_it: impl FnMut(u8) -> bool) -> Option<usize> {
    let mut is_quoted = false;
    text.bytes().position(|byte| {
        is_quoted ^= byte == b'"';
        !is_quoted && byte != b'"' && is_it(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_an_end() {
        for (ty, rest) in [
            ("i32", " %x"),
            ("ptr", ", ptr %x"),
            ("ptr addrspace(1)", " %x"),
            ("i8**", " %x"),
            ("%struct.a*", " %x"),
            ("%\"class.a b\"", " %x"),
            ("[4 x { i32, %\"]\" }]", " %x"),
            ("<{ i8, i32 }>", " %x"),
            ("i32 (i8*, ...)*", " @f"),
            ("target(\"spirv.Image\", void)", " %x"),
            ("x86_fp80", " 0xK4000"),
            ("i32", ""),
        ] {
            assert_eq!(skip_type(&format!("{ty}{rest}")), Some(ty.len()), "{ty}");
        }
        for text in ["", "%", "[4 x i8", "(", "\""] {
            assert_eq!(skip_type(text), None, "{text}");
        }
    }

    #[test]
    fn operands_have_an_end() {
        for (text, end) in [
            ("%x, align 4", "%x"),
            ("%x seq_cst, align 4", "%x"),
            ("%\"a, b\", align 4", "%\"a, b\""),
            ("{ i32 1, i32 2 }, ptr %x", "{ i32 1, i32 2 }"),
            (
                "getelementptr (i8, ptr @\"), \", i64 1), ptr %x",
                "getelementptr (i8, ptr @\"), \", i64 1)",
            ),
            ("c\"a,b\", ptr %x", "c\"a,b\""),
            ("-1", "-1"),
        ] {
            assert_eq!(operand(text), end, "{text}");
        }
    }

    #[test]
    fn names_are_those_of_values_and_labels() {
        let inst = "br i1 %\"a b\", label %x.1, label %\"%y\" ; label %z";
        let expected = [Name::Value("\"a b\""), Name::Label("x.1"), Name::Label("\"%y\"")];
        assert_eq!(names(inst).collect::<Vec<_>>(), expected);
        assert_eq!(names("call void @\"%f\"([2 x i8] c\"%a\")").count(), 0);
        assert_eq!(names("call void @\"%f").count(), 0);
    }
}
