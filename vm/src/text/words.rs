//! Reserved words: mnemonics, keywords and type names.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::op::Op;
use crate::types::ValType;

/// The words that start an item. None of them is a mnemonic.
pub(super) const ITEMS: [&str; 14] = [
    "module",
    "type",
    "shape",
    "import",
    "memory",
    "table",
    "global",
    "frame_stack",
    "data",
    "elem",
    "export",
    "start",
    "func",
    "name",
];

/// The other reserved words, besides mnemonics and type names.
const OTHERS: [&str; 10] =
    ["local", "label", "mut", "at", "declared", "nan", "inf", ".line", ".likely", ".unlikely"];

/// The meaning of a reserved word.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Meaning {
    Op(Op),
    Item,
    Other,
}

static MEANINGS: LazyLock<HashMap<&'static str, Meaning>> = LazyLock::new(|| {
    let ops = Op::ALL.iter().map(|&op| (op.mnemonic(), Meaning::Op(op)));
    let items = ITEMS.iter().map(|&word| (word, Meaning::Item));
    let types = ValType::ALL.iter().map(|ty| (ty.name(), Meaning::Other));
    let others = OTHERS.iter().map(|&word| (word, Meaning::Other));
    ops.chain(items).chain(types).chain(others).collect()
});

/// Returns the opcode with this mnemonic.
pub(super) fn op_of(word: &str) -> Option<Op> {
    match MEANINGS.get(word) {
        Some(&Meaning::Op(op)) => Some(op),
        _ => None,
    }
}

/// Whether the word starts an item.
pub(super) fn is_item(word: &str) -> bool {
    MEANINGS.get(word) == Some(&Meaning::Item)
}

/// Whether the word is reserved, so that it is a name only where nothing else is possible.
pub(super) fn is_reserved(word: &str) -> bool {
    MEANINGS.contains_key(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_has_two_meanings() {
        let n_words = Op::ALL.len() + ITEMS.len() + ValType::ALL.len() + OTHERS.len();
        assert_eq!(MEANINGS.len(), n_words);
    }
}
