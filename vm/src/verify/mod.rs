//! The verifier: checks a [`Module`] and makes it a [`VerifiedModule`], in one pass and linear time.
//!
//! * This file checks the module as a whole: index spaces, limits, segments, exports, the frame stack and the
//!   shape table. `const_expr` checks constant expressions, and `names` the names.
//! * `func` types each function's code in one forward pass, as the JVM does with its StackMapTable (JVM
//!   specification 4.10.1). Every label declares its operand stack, so no fixed point is needed. The same
//!   pass splits the code into basic blocks (`blocks`) and decides which locals can be promoted.
//! * A translator from a typed language knows all that already, and hands it over (`proof`). What it has not proved is
//!   checked, and debug builds check everything.
//!
//! Each rule has a name ([`Rule`]). An error names the violated rule and the place.

mod blocks;
mod const_expr;
mod error;
mod found;
mod func;
mod names;
mod proof;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

pub use error::{Place, Rule, VerifyError};
pub(crate) use proof::Proof;
#[cfg(feature = "wasm")]
pub(crate) use {blocks::Blocks, found::Found};

use crate::constant_tables::{self, ConstantTables};
use crate::limits;
use crate::module::{
    ElemItems, EntityKind, Func, GlobalType, ImportCall, ImportKind, MemoryType, Module,
    PAGE_BYTES, SegmentMode, ShapeId, TableType,
};
use crate::types::ValType;
use crate::verified::{FuncSources, Local, ModuleId, VerifiedModule};

/// Verifies a module.
///
/// # Errors
/// Fails with the first violated rule and its place.
pub fn verify(module: Module) -> Result<VerifiedModule, VerifyError> {
    verify_by(module, Proof::default(), false)
}

/// Verifies a module, its functions on several threads; see [`crate::parallel`].
///
/// # Errors
/// Fails with the first violated rule and its place.
pub fn verify_in_parallel(module: Module) -> Result<VerifiedModule, VerifyError> {
    verify_by(module, Proof::default(), true)
}

/// Verifies a module of which something is known already.
pub(crate) fn verify_by(
    module: Module,
    mut proof: Proof,
    is_parallel: bool,
) -> Result<VerifiedModule, VerifyError> {
    let spaces = IndexSpaces::collect(&module)?;
    check_module(&module, &spaces)?;
    let shapes = check_shapes(&module)?;
    names::check(&module, &spaces)?;
    let (bodies, found) = proof.complete(&module, &spaces, &shapes, is_parallel)?;
    let lazy = proof.lazy.map(Arc::new);
    let mut referenced_funcs = found.referenced_funcs;
    referenced_funcs.sort_unstable();
    referenced_funcs.dedup();
    let private_tables = constant_tables::private(&module, &spaces.tables);
    let constant_tables = match &lazy {
        // The tables that functions write are not known yet.
        Some(_) if !private_tables.is_empty() => OnceLock::new(),
        _ => {
            let mut written = found.written_tables;
            written.sort_unstable();
            written.dedup();
            let IndexSpaces { tables, funcs, .. } = &spaces;
            ConstantTables::find(&module, tables, funcs, &private_tables, &written).into()
        }
    };
    Ok(VerifiedModule {
        id: ModuleId::new(),
        constant_tables,
        private_tables,
        n_imported_funcs: spaces.n_imported_funcs,
        func_sources: FuncSources::new(&module),
        global_cells: global_cells(&spaces),
        func_types: spaces.funcs,
        tables: spaces.tables,
        memories: spaces.memories,
        globals: spaces.globals,
        shape_depths: shapes.depths,
        shape_n_wide: shapes.n_wide,
        bodies,
        lazy,
        has_cold_imports: has_cold_imports(&module),
        uses_indexed: found.uses_indexed,
        uses_vectors: found.uses_vectors,
        referenced_funcs,
        funcs_with_references: OnceLock::new(),
        module,
    })
}

/// The index spaces, imports first.
struct IndexSpaces {
    funcs: Vec<u32>,
    tables: Vec<TableType>,
    memories: Vec<MemoryType>,
    globals: Vec<GlobalType>,
    n_imported_funcs: u32,
    n_imported_memories: usize,
    n_imported_globals: usize,
}

impl IndexSpaces {
    fn collect(module: &Module) -> Result<IndexSpaces, VerifyError> {
        let (mut funcs, mut tables) = (Vec::new(), Vec::new());
        let (mut memories, mut globals) = (Vec::new(), Vec::new());
        for import in &module.imports {
            match import.kind {
                ImportKind::Func(ty, _) => funcs.push(ty),
                ImportKind::Table(ty) => tables.push(ty),
                ImportKind::Memory(ty) => memories.push(ty),
                ImportKind::Global(ty) => globals.push(ty),
            }
        }
        let n_imported_funcs = funcs.len() as u32;
        let (n_imported_memories, n_imported_globals) = (memories.len(), globals.len());
        funcs.extend(module.funcs.iter().map(|func| func.ty));
        tables.extend(&module.tables);
        memories.extend(&module.memories);
        globals.extend(module.globals.iter().map(|global| global.ty));
        for (count, max, name) in [
            (module.types.len(), limits::TYPES_MAX, "TYPES_MAX"),
            (module.imports.len(), limits::IMPORTS_MAX, "IMPORTS_MAX"),
            (module.exports.len(), limits::EXPORTS_MAX, "EXPORTS_MAX"),
            (module.elems.len(), limits::SEGMENTS_MAX, "SEGMENTS_MAX"),
            (module.datas.len(), limits::SEGMENTS_MAX, "SEGMENTS_MAX"),
            (module.shapes.len(), limits::SHAPES_MAX, "SHAPES_MAX"),
            (funcs.len(), limits::FUNCS_MAX, "FUNCS_MAX"),
            (tables.len(), limits::TABLES_MAX, "TABLES_MAX"),
            (memories.len(), limits::MEMORIES_MAX, "MEMORIES_MAX"),
            (globals.len(), limits::GLOBALS_MAX, "GLOBALS_MAX"),
        ] {
            check_limit(Place::Module, count, max, name)?;
        }
        Ok(IndexSpaces {
            funcs,
            tables,
            memories,
            globals,
            n_imported_funcs,
            n_imported_memories,
            n_imported_globals,
        })
    }

    fn len(&self, kind: EntityKind) -> usize {
        match kind {
            EntityKind::Func => self.funcs.len(),
            EntityKind::Table => self.tables.len(),
            EntityKind::Memory => self.memories.len(),
            EntityKind::Global => self.globals.len(),
        }
    }
}

fn check_limit(place: Place, count: usize, max: usize, name: &str) -> Result<(), VerifyError> {
    if count > max {
        return Err(place.error(Rule::Limit, format!("{count} exceeds {name} = {max}")));
    }
    Ok(())
}

/// Checks that `index` is below `len`.
fn check_index(
    place: impl FnOnce() -> Place,
    rule: Rule,
    index: u32,
    len: usize,
) -> Result<(), VerifyError> {
    if (index as usize) < len {
        return Ok(());
    }
    Err(place().error(rule, format!("index {index} out of range; expected less than {len}")))
}

fn check_module(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    for (i, ty) in module.types.iter().enumerate() {
        let place = Place::Type(i as u32);
        check_limit(place.clone(), ty.params.len(), limits::PARAMS_MAX, "PARAMS_MAX")?;
        check_limit(place, ty.results.len(), limits::RESULTS_MAX, "RESULTS_MAX")?;
    }
    for (i, &ty) in spaces.funcs.iter().enumerate() {
        check_index(|| Place::Func(i as u32), Rule::TypeIndex, ty, module.types.len())?;
    }
    check_leaf_imports(module)?;
    for (i, table) in spaces.tables.iter().enumerate() {
        check_table_type(Place::Table(i as u32), table)?;
    }
    for (i, memory) in spaces.memories.iter().enumerate() {
        check_memory_type(Place::Memory(i as u32), memory)?;
    }
    check_locals(module)?;
    check_globals(module, spaces)?;
    check_exports(module, spaces)?;
    check_start(module, spaces)?;
    check_elems(module, spaces)?;
    check_datas(module, spaces)?;
    check_frame_stack(module, spaces)
}

fn has_cold_imports(module: &Module) -> bool {
    let is_cold = |kind: &ImportKind| matches!(kind, ImportKind::Func(_, ImportCall::Cold));
    module.imports.iter().any(|import| is_cold(&import.kind))
}

fn check_leaf_imports(module: &Module) -> Result<(), VerifyError> {
    let funcs = module.imports.iter().filter_map(|import| match import.kind {
        ImportKind::Func(ty, call) => Some((&module.types[ty as usize], call)),
        _ => None,
    });
    for (i, (ty, _)) in (0..).zip(funcs).filter(|&(_, (_, call))| call == ImportCall::Leaf) {
        let is_number = |ty: &ValType| !ty.is_ref() && *ty != ValType::V128;
        if ty.results.len() > 1 || !ty.params.iter().chain(&ty.results).all(is_number) {
            let detail = format!("a leaf import cannot have type {ty}");
            return Err(Place::Func(i).error(Rule::LeafType, detail));
        }
    }
    Ok(())
}

fn check_table_type(place: Place, table: &TableType) -> Result<(), VerifyError> {
    if !table.elem.is_ref() {
        let detail = format!("expected a reference type for elements, found {}", table.elem);
        return Err(place.error(Rule::TableType, detail));
    }
    if let Some(max) = table.max.filter(|&max| table.min > max) {
        let detail = format!("minimum {} exceeds maximum {max}", table.min);
        return Err(place.error(Rule::TableType, detail));
    }
    Ok(())
}

fn check_memory_type(place: Place, memory: &MemoryType) -> Result<(), VerifyError> {
    let largest = memory.min.max(memory.max.unwrap_or(0)) as usize;
    check_limit(place.clone(), largest, limits::MEMORY_PAGES_MAX as usize, "MEMORY_PAGES_MAX")?;
    match memory.max {
        Some(max) if memory.min > max => {
            let detail = format!("minimum {} exceeds maximum {max}", memory.min);
            Err(place.error(Rule::MemoryType, detail))
        }
        _ => Ok(()),
    }
}

/// A module may take 64 MiB of memory in addition to what is proportional to its size. Its locals take at
/// most half of that.
const _: () = assert!(limits::MODULE_LOCALS_MAX * size_of::<Local>() <= 32 << 20);

/// Limits the locals of all functions: a few bytes can declare many, and each takes memory after
/// verification.
fn check_locals(module: &Module) -> Result<(), VerifyError> {
    let of_func = |func: &Func| {
        let n_params = module.types[func.ty as usize].params.len() as u64;
        n_params + func.n_declared_locals()
    };
    let n_locals = module.funcs.iter().map(of_func).fold(0, u64::saturating_add);
    let max = limits::MODULE_LOCALS_MAX;
    check_limit(Place::Module, n_locals as usize, max, "MODULE_LOCALS_MAX")
}

fn check_globals(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    for (i, global) in module.globals.iter().enumerate() {
        let index = spaces.n_imported_globals + i;
        let place = Place::Global(index as u32);
        const_expr::check(&place, spaces, index, &global.init, global.ty.ty)?;
    }
    Ok(())
}

fn check_exports(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    let mut names = HashSet::with_capacity(module.exports.len());
    for export in &module.exports {
        let place = || Place::Export(export.name.clone());
        let rule = match export.kind {
            EntityKind::Func => Rule::FuncIndex,
            EntityKind::Table => Rule::TableIndex,
            EntityKind::Memory => Rule::MemoryIndex,
            EntityKind::Global => Rule::GlobalIndex,
        };
        check_index(place, rule, export.index, spaces.len(export.kind))?;
        if !names.insert(export.name.as_str()) {
            return Err(place().error(Rule::ExportName, "duplicate export name".into()));
        }
    }
    Ok(())
}

fn check_start(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    let Some(start) = module.start else { return Ok(()) };
    check_index(|| Place::Start, Rule::FuncIndex, start, spaces.funcs.len())?;
    let ty = &module.types[spaces.funcs[start as usize] as usize];
    if !ty.params.is_empty() || !ty.results.is_empty() {
        return Err(
            Place::Start.error(Rule::StartType, format!("expected type () -> (), found {ty}"))
        );
    }
    Ok(())
}

fn check_elems(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    for (i, elem) in module.elems.iter().enumerate() {
        let place = Place::Elem(i as u32);
        let max = limits::SEGMENT_ELEMS_MAX;
        check_limit(place.clone(), elem.items.len(), max, "SEGMENT_ELEMS_MAX")?;
        if !elem.ty.is_ref() {
            let detail = format!("expected a reference type for elements, found {}", elem.ty);
            return Err(place.error(Rule::ElemType, detail));
        }
        if let SegmentMode::Active { target, offset } = &elem.mode {
            check_index(|| place.clone(), Rule::TableIndex, *target, spaces.tables.len())?;
            let table = spaces.tables[*target as usize];
            if table.elem != elem.ty {
                let detail = format!("expected elements of type {}, found {}", table.elem, elem.ty);
                return Err(place.error(Rule::ElemType, detail));
            }
            const_expr::check(&place, spaces, spaces.globals.len(), offset, ValType::I32)?;
        }
        match &elem.items {
            ElemItems::Funcs(funcs) => {
                if elem.ty != ValType::FuncRef {
                    let detail = format!("expected elements of type {}, found functions", elem.ty);
                    return Err(place.error(Rule::ElemType, detail));
                }
                for &func in funcs {
                    check_index(|| place.clone(), Rule::FuncIndex, func, spaces.funcs.len())?;
                }
            }
            ElemItems::Exprs(exprs) => {
                for expr in exprs {
                    const_expr::check(&place, spaces, spaces.globals.len(), expr, elem.ty)?;
                }
            }
        }
    }
    Ok(())
}

fn check_datas(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    for (i, data) in module.datas.iter().enumerate() {
        let place = Place::Data(i as u32);
        match &data.mode {
            SegmentMode::Passive => {}
            SegmentMode::Active { target, offset } => {
                check_index(|| place.clone(), Rule::MemoryIndex, *target, spaces.memories.len())?;
                const_expr::check(&place, spaces, spaces.globals.len(), offset, ValType::I32)?;
            }
            SegmentMode::Declared => {
                let detail = "declared data segment; expected active or passive".into();
                return Err(place.error(Rule::SegmentMode, detail));
            }
        }
    }
    Ok(())
}

fn check_frame_stack(module: &Module, spaces: &IndexSpaces) -> Result<(), VerifyError> {
    let Some(stack) = module.frame_stack else { return Ok(()) };
    let fail = |detail: String| Err(Place::FrameStack.error(Rule::FrameStack, detail));
    if spaces.n_imported_memories > 0 || module.memories.is_empty() {
        return fail("the module does not define memory 0".into());
    }
    if stack.base % 8 != 0 || stack.bytes % 8 != 0 {
        return fail(format!("base {} or size {} is not a multiple of 8", stack.base, stack.bytes));
    }
    let memory_bytes = u64::from(module.memories[0].min) * PAGE_BYTES;
    // The top must be representable, since the stack pointer starts there.
    let top = u64::from(stack.base) + u64::from(stack.bytes);
    if top > memory_bytes || top > u64::from(u32::MAX) {
        return fail(format!(
            "expected an end below 2^32 in the {memory_bytes} bytes of memory 0, found {top}"
        ));
    }
    Ok(())
}

/// Returns the cells of globals for [`VerifiedModule::global_cell`]; empty if each takes one.
fn global_cells(spaces: &IndexSpaces) -> Vec<u32> {
    let n_imported = spaces.n_imported_globals;
    if spaces.globals[n_imported..].iter().all(|global| global.ty.cells() == 1) {
        return Vec::new();
    }
    let mut next = 0;
    let mut cells = vec![0];
    for (i, global) in spaces.globals.iter().enumerate() {
        next += if i < n_imported { 1 } else { global.ty.cells() as u32 };
        cells.push(next);
    }
    cells
}

/// Facts about each shape, including the empty one.
struct Shapes {
    /// Number of operands.
    depths: Vec<u32>,
    /// Number of operands that take two cells; empty if no shape has any.
    n_wide: Vec<u32>,
    /// Jump pointer of [`Shapes::below`] for each shape: a shape further down the stack.
    jumps: Vec<u32>,
}

impl Shapes {
    fn n_wide(&self, shape: ShapeId) -> u32 {
        self.n_wide.get(shape.0 as usize).copied().unwrap_or(0)
    }

    /// Returns the shape of the lowest `depth` operands of a shape, which has at least that many. Takes
    /// logarithmic time in the number of operands above them: Myers, An applicative random-access stack
    /// (1983).
    fn below(&self, module: &Module, shape: ShapeId, depth: u32) -> ShapeId {
        let mut shape = shape;
        while self.depths[shape.0 as usize] > depth {
            let jump = self.jumps[shape.0 as usize];
            shape = match self.depths[jump as usize] >= depth {
                true => ShapeId(jump),
                false => module.shapes[shape.0 as usize - 1].parent,
            };
        }
        shape
    }
}

/// Checks the shape table.
fn check_shapes(module: &Module) -> Result<Shapes, VerifyError> {
    let has_wide = module.shapes.iter().any(|shape| shape.ty.cells() > 1);
    let mut n_wide = if has_wide { vec![0u32] } else { Vec::new() };
    let mut depths = Vec::with_capacity(module.shapes.len() + 1);
    depths.push(0u32);
    let mut jumps = Vec::with_capacity(module.shapes.len() + 1);
    jumps.push(0u32);
    let mut seen = HashSet::with_capacity(module.shapes.len());
    for (i, shape) in module.shapes.iter().enumerate() {
        let place = || Place::Shape(ShapeId(i as u32 + 1));
        let ShapeId(parent) = shape.parent;
        if parent as usize > i {
            let detail = format!("parent {parent} does not come before the shape");
            return Err(place().error(Rule::ShapeOrder, detail));
        }
        if !seen.insert(*shape) {
            return Err(place().error(Rule::ShapeUnique, "duplicate shape".into()));
        }
        let depth = depths[parent as usize] + 1;
        let max = limits::STACK_OPERANDS_MAX;
        check_limit(place(), depth as usize, max, "STACK_OPERANDS_MAX")?;
        depths.push(depth);
        // If the parent's jump and the next one from there are equally long, the new jump spans both.
        let (near, depth_of) = (jumps[parent as usize], |shape: u32| depths[shape as usize]);
        let far = jumps[near as usize];
        let is_even = depth_of(parent) - depth_of(near) == depth_of(near) - depth_of(far);
        jumps.push(if is_even { far } else { parent });
        if has_wide {
            n_wide.push(n_wide[parent as usize] + (shape.ty.cells() as u32 - 1));
        }
    }
    Ok(Shapes { depths, n_wide, jumps })
}
