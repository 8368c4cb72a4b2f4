//! Edits of binary modules that keep the lengths of sections and functions right, so that the loader reaches
//! the change. Both binary forms have the same frame: eight bytes, and sections of an id and a length.

use slotvm_bytecode::inst::CodeReader;
use slotvm_bytecode::{Op, decode, encode, leb};

use crate::mutate;
use crate::rng::Rng;

const HEADER_BYTES: usize = 8;

/// A binary form.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Bytecode,
    Wasm,
}

impl Form {
    fn code_id(self) -> u8 {
        match self {
            Form::Bytecode => 13,
            Form::Wasm => 10,
        }
    }
}

type Section = (u8, Vec<u8>);

/// Makes an input from one of the corpus, and perhaps from parts of another one.
pub(crate) fn mutant(rng: &mut Rng, form: Form, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..rng.few() {
        match rng.below(8) {
            0 => mutate::bytes(rng, &mut bytes, other),
            1..=3 if form == Form::Bytecode => opcode(rng, &mut bytes),
            _ => in_section(rng, form, &mut bytes, other),
        }
    }
    bytes
}

/// Changes a section, or the list of sections.
fn in_section(rng: &mut Rng, form: Form, bytes: &mut Vec<u8>, other: &[u8]) {
    let Some(mut sections) = split(bytes) else { return mutate::bytes(rng, bytes, other) };
    if sections.is_empty() {
        return;
    }
    let at = rng.below(sections.len());
    match rng.below(24) {
        0 => drop(sections.remove(at)),
        1 => {
            let again = sections[at].clone();
            sections.insert(rng.below(sections.len()), again);
        }
        2 => {
            let other = rng.below(sections.len());
            sections.swap(at, other);
        }
        3 => {
            let theirs = split(other).unwrap_or_default();
            if !theirs.is_empty() {
                let (id, contents) = rng.pick(&theirs).clone();
                match sections.iter_mut().find(|section| section.0 == id && id != 0) {
                    Some(section) => section.1 = contents,
                    None => sections.push((id, contents)),
                }
            }
        }
        _ => {
            let (id, contents) = &mut sections[at];
            if *id == form.code_id() && rng.below(8) > 0 {
                in_function(rng, contents, other);
            } else if *id == 0 && form == Form::Wasm && rng.below(8) > 0 {
                behind_name(rng, contents, other);
            } else {
                mutate::bytes(rng, contents, other);
            }
        }
    }
    *bytes = join(&bytes[..HEADER_BYTES], &sections);
}

/// The sections, or `None` if the header is missing or a section is truncated.
fn split(bytes: &[u8]) -> Option<Vec<Section>> {
    bytes.get(..HEADER_BYTES)?;
    let mut pos = HEADER_BYTES;
    let mut sections = Vec::new();
    while pos < bytes.len() {
        let id = bytes[pos];
        pos += 1;
        sections.push((id, sized(bytes, &mut pos)?.to_vec()));
    }
    Some(sections)
}

/// Makes a WebAssembly module so large that several threads import it. Copies of its functions are added
/// after the others, so that numbers keep their meaning.
pub(crate) fn enlarge(bytes: &mut Vec<u8>, n_bytes: usize) {
    const FUNCTIONS: u8 = 3;
    let Some(mut sections) = split(bytes) else { return };
    let code_id = Form::Wasm.code_id();
    let lists = sections.iter_mut().filter(|(id, _)| [FUNCTIONS, code_id].contains(id));
    for (_, contents) in lists {
        let mut pos = 0;
        let Ok(n) = leb::read_u32(contents, &mut pos) else { return };
        let items = contents.split_off(pos);
        // The same number of copies in both sections.
        let n_times = (n_bytes / bytes.len().max(1)).min(10_000);
        contents.clear();
        leb::write_u32(contents, n.saturating_mul(n_times as u32));
        contents.extend(items.repeat(n_times));
    }
    *bytes = join(&bytes[..HEADER_BYTES], &sections);
}

/// Contents with their length before them.
fn sized<'b>(bytes: &'b [u8], pos: &mut usize) -> Option<&'b [u8]> {
    let len = leb::read_u32(bytes, pos).ok()? as usize;
    let contents = bytes.get(*pos..pos.checked_add(len)?)?;
    *pos += len;
    Some(contents)
}

fn join(header: &[u8], sections: &[Section]) -> Vec<u8> {
    let mut bytes = header.to_vec();
    for (id, contents) in sections {
        bytes.push(*id);
        leb::write_u32(&mut bytes, contents.len() as u32);
        bytes.extend(contents);
    }
    bytes
}

/// Changes one function of a code section.
fn in_function(rng: &mut Rng, contents: &mut Vec<u8>, other: &[u8]) {
    let mut pos = 0;
    let Ok(n) = leb::read_u32(contents, &mut pos) else { return };
    let mut bodies: Vec<Vec<u8>> =
        (0..n).map_while(|_| sized(contents, &mut pos)).map(<[u8]>::to_vec).collect();
    if bodies.is_empty() {
        return;
    }
    let at = rng.below(bodies.len());
    mutate::bytes(rng, &mut bodies[at], other);
    contents.clear();
    leb::write_u32(contents, n);
    for body in &bodies {
        leb::write_u32(contents, body.len() as u32);
        contents.extend(body);
    }
}

/// Changes the contents of a custom section after its name.
fn behind_name(rng: &mut Rng, contents: &mut Vec<u8>, other: &[u8]) {
    let mut pos = 0;
    let Some(_) = sized(contents, &mut pos) else { return };
    let mut rest = contents.split_off(pos);
    mutate::bytes(rng, &mut rest, other);
    contents.extend(rest);
}

/// Replaces an opcode by another one with the same signature and kind of immediates, so that the module still
/// verifies.
pub(crate) fn opcode(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let Ok(mut module) = decode(bytes) else { return };
    if module.funcs.is_empty() {
        return;
    }
    let func = rng.below(module.funcs.len());
    let code = &mut module.funcs[func].code;
    let mut places = Vec::new();
    let mut reader = CodeReader::new(code, 0);
    while !reader.is_at_end() {
        let offset = reader.offset() as usize;
        let Ok(inst) = reader.read() else { break };
        if inst.op.signature().is_some() {
            places.push((offset, inst.op));
        }
    }
    if places.is_empty() {
        return;
    }
    let &(offset, old) = rng.pick(&places);
    let fits = |op: &&Op| {
        op.signature() == old.signature()
            && op.imm_kind() == old.imm_kind()
            && (op.code() > 0xff) == (old.code() > 0xff)
    };
    let candidates: Vec<&Op> = Op::ALL.iter().filter(fits).collect();
    let new = rng.pick(&candidates).code();
    match old.code() > 0xff {
        true => code[offset..offset + 2].copy_from_slice(&new.to_be_bytes()),
        false => code[offset] = new as u8,
    }
    *bytes = encode(&module);
}

#[test]
fn what_has_no_header_is_not_enlarged() {
    for n in 0..HEADER_BYTES {
        let mut bytes = vec![0; n];
        enlarge(&mut bytes, 1_000);
        assert_eq!(bytes, vec![0; n]);
    }
}
