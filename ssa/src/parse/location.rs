//! What stands behind `;`.

/// A function, if it is another one than the function around, and a code offset.
pub(super) type Place = (Option<u32>, u32);

/// The location in a comment, ` @000c` or ` f4@0010 < @000c`: the place of an instruction, then the
/// calls that it is inlined at. Nothing if the comment is no location.
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

/// The label and the code offset in the comment of a block, ` label 2 @000c`.
pub(super) fn parse_block(comment: &str) -> (Option<u32>, u32) {
    let mut words = comment.split_whitespace().peekable();
    let mut label = None;
    if words.next_if_eq(&"label").is_some() {
        label = words.next().and_then(|word| word.parse::<u32>().ok());
        // The highest number is none that a label can have.
        label = label.filter(|&label| label != u32::MAX);
    }
    let offset = words.next().and_then(parse_place);
    (label, offset.map_or(0, |(_, offset)| offset))
}
