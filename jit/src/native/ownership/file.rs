//! The file that the code of a module is kept in, written.

use std::mem;

use crate::native::ownership::code_table::CodeTable;
use crate::native::ownership::kept::Kept;
use crate::native::ownership::module_trampolines::ModuleTrampolines;
use crate::precompiled::chunk::{Chunk, Packing};
use crate::precompiled::file::{self, About, Contents};
use crate::precompiled::{Item, Key};

/// The file with all code that there is, authenticated by a key.
pub(super) fn write(
    code: &CodeTable,
    trampolines: &ModuleTrampolines,
    key: &Key,
    about: &About,
    module: Option<&[u8]>,
) -> Vec<u8> {
    let mut chunks = code.kept.as_deref().map_or_else(Vec::new, Kept::chunks);
    chunks.extend(new_chunks(code, trampolines));
    let contents = Contents { about: about.clone(), module, chunks };
    file::write(key, contents)
}

/// The number of parts that were kept.
pub(super) fn n_kept(code: &CodeTable) -> usize {
    code.kept.as_ref().map_or(0, |kept| kept.len())
}

/// The number of functions and loops that were made, not kept.
pub(super) fn n_made(code: &CodeTable) -> usize {
    let mut n = 0;
    code.for_each_made(|_, _, _| n += 1);
    n
}

fn new_chunks(code: &CodeTable, trampolines: &ModuleTrampolines) -> Vec<(Vec<Item>, Vec<u8>)> {
    let (mut chunks, mut parts, mut packing) = (Vec::new(), Vec::new(), Packing::default());
    code.for_each_made(|part, made, placing| {
        // A copy of what is in memory: no more than a chunk at a time.
        let full = packing.add(&code.arena().to_machine_code(made, placing));
        chunks.extend(full.map(|chunk| (mem::take(&mut parts), chunk.encode())));
        parts.push(part);
    });
    chunks.extend(packing.end().map(|chunk| (parts, chunk.encode())));
    let kept = code.kept.as_deref();
    let trampolines = trampolines.made().into_iter().filter_map(|made| made.to_item());
    let new = trampolines.filter(|(part, _)| kept.is_none_or(|kept| !kept.has(part)));
    // Each is placed alone, since the engine frees it with its last user.
    chunks.extend(new.map(|(part, code)| (vec![part], Chunk::of(&code).encode())));
    chunks
}
