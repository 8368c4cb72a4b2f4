//! Edits of a module around its functions: exports, segments, tables, functions that nothing refers to.

use std::collections::BTreeSet;

use slotvm_bytecode::module::{ElemItems, EntityKind, ImportKind, Names};
use slotvm_bytecode::{Imm, Module, Op, VerifiedModule, verify};

use super::body::{Body, Item, in_module};

/// An edit that removes things of one kind.
type Edit = fn(&mut Module, &BTreeSet<String>);

/// The edits that [`with_less`] makes.
const EDITS: [Edit; 10] = [
    |m, kept| m.exports.retain(|export| kept.contains(&export.name)),
    |m, _| m.start = None,
    |m, _| m.elems.clear(),
    |m, _| m.datas.clear(),
    |m, _| m.datas.iter_mut().for_each(|data| data.bytes.clear()),
    |m, _| m.tables.clear(),
    |m, _| m.globals.clear(),
    |m, _| m.frame_stack = None,
    |m, _| {
        m.memories.clear();
        m.frame_stack = None;
    },
    |m, _| {
        let funcs = std::mem::take(&mut m.names.funcs);
        m.names = Names { funcs, ..Names::default() };
    },
];

/// The number of kinds of things that [`with_less`] removes.
pub(super) const N_KINDS: usize = EDITS.len();

/// The module without things of one kind, if there were any and it is valid then. Exports with names in `kept` stay.
pub(super) fn with_less(
    module: &Module,
    kind: usize,
    kept: &BTreeSet<String>,
) -> Option<VerifiedModule> {
    let mut less = module.clone();
    EDITS[kind](&mut less, kept);
    if less == *module { None } else { verify(less).ok() }
}

/// The module without the functions that nothing refers to. Returns `None` if there are none, or if references to
/// functions stand in constant expressions.
pub(super) fn without_unused_funcs(module: &VerifiedModule) -> Option<VerifiedModule> {
    let is_used = used_funcs(module)?;
    if is_used.iter().all(|&used| used) {
        return None;
    }
    let mut next = 0;
    let numbers: Vec<u32> = is_used
        .iter()
        .map(|&used| {
            next += u32::from(used);
            next.wrapping_sub(1)
        })
        .collect();
    let n_imported = module.n_imported_funcs() as usize;
    let bodies: Vec<Body> = (module.n_imported_funcs()..module.n_funcs())
        .filter(|&func| is_used[func as usize])
        .map(|func| renumbered(Body::of(module, func), &numbers))
        .collect();

    let mut less = module.module().clone();
    let mut imported = is_used.iter();
    less.imports.retain(|import| match import.kind {
        ImportKind::Func(..) => *imported.next().expect("imports come first"),
        _ => true,
    });
    let mut defined = is_used[n_imported..].iter();
    less.funcs.retain(|_| *defined.next().expect("there is one for each function"));
    for export in &mut less.exports {
        if export.kind == EntityKind::Func {
            export.index = numbers[export.index as usize];
        }
    }
    less.start = less.start.map(|func| numbers[func as usize]);
    for elem in &mut less.elems {
        if let ElemItems::Funcs(funcs) = &mut elem.items {
            funcs.iter_mut().for_each(|func| *func = numbers[*func as usize]);
        }
    }
    let funcs = std::mem::take(&mut less.names.funcs).into_iter();
    let funcs = funcs.filter(|(func, _)| is_used[*func as usize]);
    let funcs = funcs.map(|(func, name)| (numbers[func as usize], name)).collect();
    less.names = Names { funcs, ..Names::default() };
    forget_code(&mut less);
    let less = verify(less).ok()?;
    in_module(&less, &bodies.iter().collect::<Vec<_>>())
}

/// The module with a function that lacks its last parameters, as many as its code does not use. Returns `None` if there
/// are none, or if the function is known elsewhere than in calls.
pub(super) fn without_unused_params(module: &VerifiedModule, func: u32) -> Option<VerifiedModule> {
    let bytecode = module.module();
    let is_exported = bytecode
        .exports
        .iter()
        .any(|export| export.kind == EntityKind::Func && export.index == func);
    // Elements and references are called by their type.
    if is_exported || bytecode.start == Some(func) || !bytecode.elems.is_empty() {
        return None;
    }
    let mut ty = module.func_type(func).clone();
    let mut bodies: Vec<Body> =
        (module.n_imported_funcs()..module.n_funcs()).map(|func| Body::of(module, func)).collect();
    let place = (func - module.n_imported_funcs()) as usize;
    let n_used = bodies[place].locals_used().filter(|&local| local < ty.params.len());
    let n_kept = n_used.max().map_or(0, |last| last + 1);
    let n_removed = ty.params.len() - n_kept;
    if n_removed == 0 {
        return None;
    }
    ty.params.truncate(n_kept);
    bodies[place].remove_params(n_removed);
    for body in &mut bodies {
        body.drop_before_calls(func, n_removed)?;
    }
    let mut less = bytecode.clone();
    let known = less.types.iter().position(|known| *known == ty);
    let number = known.unwrap_or_else(|| {
        less.types.push(ty);
        less.types.len() - 1
    });
    less.funcs[place].ty = number as u32;
    forget_code(&mut less);
    in_module(&verify(less).ok()?, &bodies.iter().collect::<Vec<_>>())
}

/// Whether each function is exported, started, an element, or named by an instruction of another function.
fn used_funcs(module: &VerifiedModule) -> Option<Vec<bool>> {
    let bytecode = module.module();
    let is_plain = |elem: &slotvm_bytecode::module::Elem| matches!(elem.items, ElemItems::Funcs(_));
    let init = bytecode.globals.iter().map(|global| &global.init.code);
    let names_func = |code: &Vec<u8>| code.first() == Some(&(Op::RefFunc.code() as u8));
    if !bytecode.elems.iter().all(is_plain) || init.into_iter().any(names_func) {
        return None;
    }
    let mut is_used = vec![false; module.n_funcs() as usize];
    let exports = bytecode.exports.iter().filter(|export| export.kind == EntityKind::Func);
    let mut work: Vec<u32> = exports.map(|export| export.index).chain(bytecode.start).collect();
    for elem in &bytecode.elems {
        if let ElemItems::Funcs(funcs) = &elem.items {
            work.extend(funcs);
        }
    }
    while let Some(func) = work.pop() {
        if std::mem::replace(&mut is_used[func as usize], true) || module.func(func).is_none() {
            continue;
        }
        work.extend(Body::of(module, func).items.iter().filter_map(named_func));
    }
    Some(is_used)
}

/// The function that an instruction names.
fn named_func(item: &Item) -> Option<u32> {
    match item {
        Item::Inst(inst) => match inst.op {
            Op::Call | Op::ReturnCall | Op::RefFunc => Some(inst.imm.low()),
            _ => None,
        },
        Item::Label(_) => None,
    }
}

/// Removes the code of all functions, which is wrong after a change of the entities that it refers to.
fn forget_code(module: &mut Module) {
    for func in &mut module.funcs {
        func.code = vec![Op::Unreachable.code() as u8];
        func.labels.clear();
        func.lines.clear();
        func.locals.clear();
    }
}

fn renumbered(mut body: Body, numbers: &[u32]) -> Body {
    for item in &mut body.items {
        let Some(func) = named_func(item) else { continue };
        if let Item::Inst(inst) = item {
            inst.imm = Imm::index(numbers[func as usize]);
        }
    }
    body.func = numbers[body.func as usize];
    body
}
