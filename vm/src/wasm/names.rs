//! Names from a module's name section.
//!
//! Names have no meaning for the program. Unreadable entries, and names of items that do not exist, are
//! left out.

use wasmparser::{BinaryReader, Name, NameMap, NameSectionReader};

use crate::builder::NameSpace;
use crate::module::{ImportKind, Module, Names};

type List = Vec<(u32, String)>;

/// The names from all subsections of a kind, in order. A name section may have any number of subsections,
/// so they are merged at once.
#[derive(Default)]
struct Given<'b> {
    funcs: Vec<(u32, &'b str)>,
    tables: Vec<(u32, &'b str)>,
    memories: Vec<(u32, &'b str)>,
    globals: Vec<(u32, &'b str)>,
    elems: Vec<(u32, &'b str)>,
    datas: Vec<(u32, &'b str)>,
    locals: Vec<(u32, NameMap<'b>)>,
}

/// Returns the names of a module, given its name section. Items that it does not name keep their names. `n_declared` is
/// the number of locals that a function declares, given its place among those that the module defines.
pub(super) fn read_all(
    section: BinaryReader<'_>,
    module: &Module,
    n_declared: impl Fn(usize) -> u64,
) -> Names {
    let imported = |is: fn(&ImportKind) -> bool| {
        module.imports.iter().filter(|import| is(&import.kind)).count()
    };
    let n_imported_funcs = module.n_imported_funcs() as usize;
    let n_funcs = n_imported_funcs + module.funcs.len();
    let n_tables = imported(|kind| matches!(kind, ImportKind::Table(_))) + module.tables.len();
    let n_memories = imported(|kind| matches!(kind, ImportKind::Memory(_))) + module.memories.len();
    let n_globals = imported(|kind| matches!(kind, ImportKind::Global(_))) + module.globals.len();
    let (n_elems, n_datas) = (module.elems.len(), module.datas.len());
    let mut given = Given::default();
    let mut names = module.names.clone();
    for name in NameSectionReader::new(section).map_while(Result::ok) {
        match name {
            Name::Module { name, .. } if !name.is_empty() => {
                names.module = Some(name.to_owned());
            }
            Name::Function(map) => given.funcs.extend(read(map, n_funcs)),
            Name::Table(map) => given.tables.extend(read(map, n_tables)),
            Name::Memory(map) => given.memories.extend(read(map, n_memories)),
            Name::Global(map) => given.globals.extend(read(map, n_globals)),
            Name::Element(map) => given.elems.extend(read(map, n_elems)),
            Name::Data(map) => given.datas.extend(read(map, n_datas)),
            Name::Local(map) => {
                let of_funcs = map.into_iter().map_while(Result::ok);
                given.locals.extend(of_funcs.map(|naming| (naming.index, naming.names)));
            }
            // Types have no names here, and WebAssembly labels do not correspond to ours.
            _ => {}
        }
    }
    rename(&mut names.funcs, given.funcs);
    rename(&mut names.tables, given.tables);
    rename(&mut names.memories, given.memories);
    rename(&mut names.globals, given.globals);
    rename(&mut names.elems, given.elems);
    rename(&mut names.datas, given.datas);
    names.locals = local_names(given.locals, module, n_imported_funcs, n_declared);
    names
}

/// The name of the module that its name section gives.
pub(super) fn of_module(section: BinaryReader<'_>) -> Option<String> {
    let names = NameSectionReader::new(section).map_while(Result::ok);
    let of_module = names.filter_map(|name| match name {
        Name::Module { name, .. } if !name.is_empty() => Some(name.to_owned()),
        _ => None,
    });
    of_module.last()
}

/// Adds names to a list, where they override existing names.
fn rename(list: &mut List, given: Vec<(u32, &str)>) {
    if given.is_empty() {
        return;
    }
    let old = std::mem::take(list);
    // Append them to the old ones: of two names for an item, the last one counts.
    let old = old.iter().map(|(index, name)| (*index, name.as_str()));
    *list = unique(old.chain(given).collect());
}

/// Reads the names of indices below `n`.
fn read(map: NameMap<'_>, n: usize) -> impl Iterator<Item = (u32, &str)> {
    let names = map.into_iter().map_while(Result::ok);
    let existing = names.filter(move |naming| (naming.index as usize) < n);
    existing.map(|naming| (naming.index, naming.name))
}

/// Sorts by index, keeps the last name of each item, and appends numbers to names that are taken.
fn unique(mut names: Vec<(u32, &str)>) -> List {
    names.sort_by_key(|&(index, _)| index);
    let mut list = List::new();
    let mut space = NameSpace::default();
    for (i, (index, name)) in names.iter().enumerate() {
        if names.get(i + 1).is_none_or(|(next, _)| next != index) {
            space.add(&mut list, *index, name);
        }
    }
    list
}

/// Returns the names of the locals of functions. If a function has several lists, the first one counts.
fn local_names(
    mut given: Vec<(u32, NameMap<'_>)>,
    module: &Module,
    n_imported_funcs: usize,
    n_declared: impl Fn(usize) -> u64,
) -> Vec<(u32, List)> {
    given.sort_by_key(|&(func, _)| func);
    given.dedup_by_key(|&mut (func, _)| func);
    let of_func = |(index, map): (u32, NameMap<'_>)| {
        let place = (index as usize).checked_sub(n_imported_funcs)?;
        let n_params = module.types[module.funcs.get(place)?.ty as usize].params.len();
        let n_locals = n_params + n_declared(place) as usize;
        let names = unique(read(map, n_locals).collect());
        (!names.is_empty()).then_some((index, names))
    };
    given.into_iter().filter_map(of_func).collect()
}
