//! Locations and labels after `;`.

use super::cursor::Cursor;

/// A function, if it is another one than the function around, and a code offset.
pub(super) type Place = (Option<u32>, u32);

/// The location in a comment, ` @000c` or ` f4@0010 < @000c`: the place of an instruction, then the
/// calls that it is inlined at. Empty if the comment is not a location.
pub(super) fn parse(comment: &str) -> Vec<Place> {
    let places = comment.split(" < ").map(|place| parse_place(place.trim()));
    places.collect::<Option<_>>().unwrap_or_default()
}

fn parse_place(text: &str) -> Option<Place> {
    let (func, offset) = text.split_once('@')?;
    let offset = u32::from_str_radix(offset, 16).ok()?;
    if func.is_empty() {
        return Some((None, offset));
    }
    Some((Some(func.strip_prefix('f')?.parse().ok()?), offset))
}

/// A label as it is written.
pub(super) enum Label {
    Number(u32),
    Name(String),
}

/// The label and the code offset in the comment of a block, ` label loop @000c`.
pub(super) fn parse_block(comment: &str) -> (Option<Label>, u32) {
    let mut code = Cursor::new(comment, 0);
    let label = if code.eat("label") { parse_label(&mut code) } else { None };
    let offset = comment.split_whitespace().rfind(|word| word.starts_with('@'));
    let offset = offset.and_then(parse_place);
    (label, offset.map_or(0, |(_, offset)| offset))
}

fn parse_label(code: &mut Cursor<'_>) -> Option<Label> {
    let word = { *code }.word();
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        // No label can have the highest number.
        let number = word.parse().ok().filter(|&number| number != u32::MAX);
        return number.map(Label::Number);
    }
    code.name().ok().map(Label::Name)
}
