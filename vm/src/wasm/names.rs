//! Names from a module's name section.
//!
//! Names have no meaning for the program. Unreadable entries, and names of items that do not exist, are
//! left out.

use wasmparser::{BinaryReader, Name, NameMap, NameSectionReader};

use crate::builder::NameSpace;
use crate::module::{ImportKind, Module};

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

/// Applies the contents of a name section to the module. Items that it does not name keep their names.
pub(super) fn apply(section: BinaryReader<'_>, module: &mut Module) {
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
    for name in NameSectionReader::new(section).map_while(Result::ok) {
        match name {
            Name::Module { name, .. } if !name.is_empty() => {
                module.names.module = Some(name.to_owned());
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
    let names = &mut module.names;
    rename(&mut names.funcs, given.funcs);
    rename(&mut names.tables, given.tables);
    rename(&mut names.memories, given.memories);
    rename(&mut names.globals, given.globals);
    rename(&mut names.elems, given.elems);
    rename(&mut names.datas, given.datas);
    name_locals(given.locals, module, n_imported_funcs);
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

/// Names the locals of functions. If a function has several lists, the first one counts.
fn name_locals(mut given: Vec<(u32, NameMap<'_>)>, module: &mut Module, n_imported_funcs: usize) {
    given.sort_by_key(|&(func, _)| func);
    given.dedup_by_key(|&mut (func, _)| func);
    let of_func = |(index, map): (u32, NameMap<'_>)| {
        let func = module.funcs.get((index as usize).checked_sub(n_imported_funcs)?)?;
        let n_params = module.types[func.ty as usize].params.len();
        let n_locals = n_params + func.n_declared_locals() as usize;
        let names = unique(read(map, n_locals).collect());
        (!names.is_empty()).then_some((index, names))
    };
    module.names.locals = given.into_iter().filter_map(of_func).collect();
}
