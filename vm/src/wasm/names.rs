//! The names of a module's name section. It has no meaning for the program: what cannot be read, or
//! names what does not exist, is left out.

use wasmparser::{BinaryReader, IndirectNameMap, Name, NameMap, NameSectionReader};

use crate::builder::NameSpace;
use crate::module::{ImportKind, Module};

type List = Vec<(u32, String)>;

/// Gives the names of a name section's contents to the module. Functions and others that it does not
/// name keep those that they have.
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
    for name in NameSectionReader::new(section).map_while(Result::ok) {
        let names = &mut module.names;
        match name {
            Name::Module { name, .. } if !name.is_empty() => names.module = Some(name.to_owned()),
            Name::Function(map) => rename(&mut names.funcs, map, n_funcs),
            Name::Table(map) => rename(&mut names.tables, map, n_tables),
            Name::Memory(map) => rename(&mut names.memories, map, n_memories),
            Name::Global(map) => rename(&mut names.globals, map, n_globals),
            Name::Element(map) => rename(&mut names.elems, map, n_elems),
            Name::Data(map) => rename(&mut names.datas, map, n_datas),
            Name::Local(map) => name_locals(map, module, n_imported_funcs),
            // Types have no names here, and labels are other ones than those of blocks.
            _ => {}
        }
    }
}

/// Reads the names of what there are `n` of, over those that are in the list.
fn rename(list: &mut List, map: NameMap<'_>, n: usize) {
    let mut names: Vec<(u32, String)> = std::mem::take(list);
    // Behind the old ones, so that of two names for one the new one is the last.
    names.extend(read(map, n));
    *list = unique(names);
}

fn read(map: NameMap<'_>, n: usize) -> impl Iterator<Item = (u32, String)> {
    let names = map.into_iter().map_while(Result::ok);
    let existing = names.filter(move |naming| (naming.index as usize) < n);
    existing.map(|naming| (naming.index, naming.name.to_owned()))
}

/// Sorts by index, keeps the last name of each, and appends numbers to names that are taken.
fn unique(mut names: List) -> List {
    names.sort_by_key(|&(index, _)| index);
    let mut list = List::with_capacity(names.len());
    let mut space = NameSpace::default();
    for (i, (index, name)) in names.iter().enumerate() {
        if names.get(i + 1).is_none_or(|(next, _)| next != index) {
            space.add(&mut list, *index, name);
        }
    }
    list
}

fn name_locals(map: IndirectNameMap<'_>, module: &mut Module, n_imported_funcs: usize) {
    let mut of_funcs = Vec::new();
    for naming in map.into_iter().map_while(Result::ok) {
        let place = (naming.index as usize).checked_sub(n_imported_funcs);
        let Some(func) = place.and_then(|place| module.funcs.get(place)) else { continue };
        let n_params = module.types[func.ty as usize].params.len();
        let n_locals = n_params + func.n_declared_locals() as usize;
        let names = unique(read(naming.names, n_locals).collect());
        if !names.is_empty() {
            of_funcs.push((naming.index, names));
        }
    }
    of_funcs.sort_by_key(|&(func, _)| func);
    of_funcs.dedup_by_key(|&mut (func, _)| func);
    module.names.locals = of_funcs;
}
