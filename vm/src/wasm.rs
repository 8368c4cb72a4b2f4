//! Import of WebAssembly modules.
//!
//! [`import`] validates a binary with wasmparser and translates it. `func` translates each function in one
//! pass, on several threads on request; everything else maps one to one. The result is an ordinary
//! [`Module`] with the same meaning. [`crate::verify()`] accepts it as long as it stays within our limits.
//! Names, source places and branch hints are kept.
//!
//! WebAssembly 2.0 with tail calls, extended constant expressions and wide arithmetic is supported. A module that needs
//! another proposal is rejected, and the error names the proposal (`proposals`).

use wasmparser::{
    BinaryReader, BinaryReaderError, BranchHintSectionReader, ConstExpr as WasmConstExpr, DataKind,
    ElementItems, ElementKind, ExternalKind, FuncToValidate, FuncValidatorAllocations,
    FunctionBody, KnownCustom, Operator, Parser, Payload, RefType, TypeRef, ValidPayload,
    Validator, ValidatorResources,
};

use crate::builder::{
    BuildError, BuildRule, FuncBatch, FuncId, GlobalId, MemoryId, ModuleBuilder, TableId, TypeId,
};
use crate::limits;
use crate::module::{ConstExpr, Data, ElemItems, ImportCall, Module, SegmentMode};
use crate::parallel;
use crate::printable::Printable;
use crate::types::{FuncType, ValType};
use crate::verify::Proof;

use hints::{HintCursor, Hints};
use lines::{LineCursor, Lines};

mod counts;
mod emit;
mod func;
mod hints;
mod lazy;
mod lines;
mod names;
mod ops;
mod proposals;

/// The bytes that a WebAssembly binary starts with.
pub const MAGIC: &[u8; 4] = b"\0asm";
/// The version field of a component.
const COMPONENT_VERSION: [u8; 4] = [0x0d, 0, 1, 0];

/// An error from the import of a WebAssembly module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a valid WebAssembly module.
    #[error("invalid WebAssembly at offset {offset:#x}: {}", Printable(message))]
    Invalid {
        /// The offset of the error in the bytes.
        offset: u64,
        /// A description of the error.
        message: String,
    },
    /// The module needs proposals that are not supported, or is a component.
    #[error(
        "WebAssembly proposal not supported: {}, needed at offset {offset:#x}: {}",
        .proposals.join(", "),
        Printable(message)
    )]
    Unsupported {
        /// The names of the proposals.
        proposals: Vec<&'static str>,
        /// The first offset that needs them.
        offset: u64,
        /// The construct at that offset.
        message: String,
    },
    /// The module exceeds a limit of [`crate::limits`].
    #[error("the module exceeds the limit {0}")]
    Limit(&'static str),
    /// The translated function exceeds a limit.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl From<BinaryReaderError> for Error {
    fn from(error: BinaryReaderError) -> Error {
        Error::Invalid { offset: error.offset(), message: error.message().to_owned() }
    }
}

/// Translates a binary module.
///
/// The result means the same. A translated module obeys all rules of the verifier, except for limits.
///
/// # Errors
/// Fails if the bytes are not a valid module, or if the module needs an unsupported proposal or exceeds a
/// limit.
pub fn import(bytes: &[u8]) -> Result<Module, Error> {
    Ok(import_by(bytes, Options::default())?.0)
}

/// Translates a binary module like [`import`], with several threads for the functions; see
/// [`crate::parallel`].
///
/// The resulting module is the same.
///
/// # Errors
/// Fails like [`import`]. If the module has several errors, it may return a different one.
pub fn import_in_parallel(bytes: &[u8]) -> Result<Module, Error> {
    Ok(import_by(bytes, Options { is_parallel: true, ..Options::default() })?.0)
}

/// The ways to translate a module.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Options {
    /// Functions are translated by several threads.
    pub(crate) is_parallel: bool,
    /// Functions are translated when they are first asked for, if possible.
    pub(crate) is_lazy: bool,
    /// Those need not be validated.
    pub(crate) is_validated: bool,
}

/// Translates a binary module. Returns what validation has proved about its functions, too.
pub(crate) fn import_by(bytes: &[u8], options: Options) -> Result<(Module, Proof), Error> {
    if bytes.len() > limits::MODULE_BYTES_MAX {
        return Err(Error::Limit("MODULE_BYTES_MAX"));
    }
    if bytes.get(4..8) == Some(&COMPONENT_VERSION) {
        let message = "a component, not a module".to_owned();
        return Err(Error::Unsupported { proposals: vec!["components"], offset: 4, message });
    }
    counts::check(bytes)?;
    match Importer::default().import(bytes, options) {
        // What is malformed or invalid is so before it is unsupported.
        Err(Error::Invalid { offset, message }) => {
            let proposals = proposals::missing(bytes)?;
            Err(Error::Unsupported { proposals, offset, message })
        }
        result => result,
    }
}

/// The types of functions, by their index in the WebAssembly module.
#[derive(Debug, Default)]
struct Types {
    types: Vec<FuncType>,
    /// The type ids; equal types share one.
    ids: Vec<TypeId>,
    /// The type of each function of the index space.
    funcs: Vec<u32>,
    /// Whether a type, or that of a global, has vectors.
    has_vectors: bool,
    /// Whether a type has more than one result.
    has_several_results: bool,
}

impl Types {
    fn get(&self, ty: u32) -> &FuncType {
        &self.types[ty as usize]
    }

    fn id(&self, ty: u32) -> TypeId {
        self.ids[ty as usize]
    }

    fn of_func(&self, func: u32) -> &FuncType {
        self.get(self.funcs[func as usize])
    }
}

/// A function that has not been validated yet.
type Body<'b> = (FuncToValidate<ValidatorResources>, FunctionBody<'b>);

#[derive(Default)]
struct Importer<'b> {
    module: ModuleBuilder,
    types: Types,
    bodies: Vec<Body<'b>>,
    name_section: Option<BinaryReader<'b>>,
    /// The start of the contents of the code section.
    code_start: u64,
    /// The sections of DWARF that have line tables.
    line_sections: lines::Sections<'b>,
    /// The section of branch hints, if one comes before the code.
    branch_hints: Option<BranchHintSectionReader<'b>>,
}

/// Metadata of a module about its code.
#[derive(Debug, Default)]
struct Remarks {
    lines: Lines,
    hints: Hints,
}

impl Remarks {
    /// Returns cursors behind the function that ends at an offset, or 0 for one before all functions.
    fn cursors_behind(&self, end: u64) -> (LineCursor<'_>, HintCursor<'_>) {
        (self.lines.cursor_behind(end), self.hints.cursor_behind(end))
    }
}

impl<'b> Importer<'b> {
    fn import(mut self, bytes: &'b [u8], options: Options) -> Result<(Module, Proof), Error> {
        let sections = self.sections(bytes);
        // Errors in the code take precedence over errors in later sections.
        let bodies = std::mem::take(&mut self.bodies);
        let hints = self.branch_hints.take().map(|section| Hints::read(section, &bodies));
        // All functions refer to these files, whenever they are translated.
        let (lines, files) = Lines::read(self.line_sections, self.code_start, bytes.len());
        let remarks = Remarks { lines, hints: hints.unwrap_or_default() };
        self.check_locals(&bodies)?;
        let later = match options.is_lazy && sections.is_ok() {
            true => lazy::bodies(bytes, &self.types, &bodies, options),
            false => None,
        };
        let Some(later) = later else {
            let proof = self.code(&bodies, &remarks, options.is_parallel)?;
            sections?;
            let mut module = self.module.finish()?;
            module.names.files = files;
            if let Some(section) = self.name_section {
                let n_declared = |place: usize| module.funcs[place].n_declared_locals();
                module.names = names::read_all(section, &module, n_declared);
            }
            return Ok((module, proof));
        };
        self.module.define_later();
        let mut module = self.module.finish()?;
        module.names.files = files;
        if let Some(section) = &self.name_section {
            module.names.module = names::of_module(section.clone());
        }
        let names = self.name_section.map(|section| section.range());
        let funcs = later.into_funcs(bytes, self.types, remarks, names);
        Ok((module, Proof { lazy: Some(funcs), ..Proof::default() }))
    }

    /// Validates and translates all sections except the function bodies.
    fn sections(&mut self, bytes: &'b [u8]) -> Result<(), Error> {
        let mut validator = Validator::new_with_features(proposals::SUPPORTED);
        let mut parser = Parser::new(0);
        parser.set_features(proposals::SUPPORTED);
        for payload in parser.parse_all(bytes) {
            let payload = payload?;
            if let ValidPayload::Func(func, body) = validator.payload(&payload)? {
                self.bodies.push((func, body));
                continue;
            }
            match payload {
                Payload::CustomSection(section) => {
                    let known = section.as_known();
                    if let KnownCustom::Name(_) = known {
                        self.name_section = Some(section.data_reader());
                    } else if let KnownCustom::BranchHints(hints) = known {
                        let is_first = self.branch_hints.is_none();
                        if is_first && self.code_start == 0 {
                            self.branch_hints = Some(hints);
                        }
                    } else {
                        self.line_sections.add(section.name(), section.data());
                    }
                }
                Payload::CodeSectionStart { unchecked_range, .. } => {
                    self.code_start = unchecked_range.start;
                }
                payload => self.section(payload)?,
            }
        }
        Ok(())
    }

    /// Checks the number of locals of all functions against the limit, before any function is built.
    fn check_locals(&self, bodies: &[Body<'_>]) -> Result<(), Error> {
        let mut n_locals = 0;
        for (func, body) in bodies {
            let declared = body.get_locals_reader().into_iter().flatten().map_while(Result::ok);
            let n_declared: u64 = declared.map(|(n, _)| u64::from(n)).sum();
            // The validator rejects functions with more, with an error of its own.
            if n_declared <= limits::LOCALS_MAX as u64 {
                n_locals += n_declared + self.types.get(func.ty).params.len() as u64;
            }
        }
        if n_locals > limits::MODULE_LOCALS_MAX as u64 {
            return Err(Error::Limit("MODULE_LOCALS_MAX"));
        }
        Ok(())
    }

    /// Validates and translates the function bodies.
    fn code(
        &mut self,
        bodies: &[Body<'_>],
        remarks: &Remarks,
        is_parallel: bool,
    ) -> Result<Proof, Error> {
        let code_bytes: Vec<usize> = bodies.iter().map(|(_, body)| body.as_bytes().len()).collect();
        let n_stacks_max = limits::IMPORT_STACKS_MAX + code_bytes.iter().sum::<usize>();
        let parts = parallel::parts(&code_bytes, is_parallel);
        let translate = |scratch: &mut func::Scratch, part: usize| -> Result<_, Error> {
            let range = parts[part].clone();
            let before = range.start.checked_sub(1).map_or(0, |i| bodies[i].1.range().end);
            let mut remarks = remarks.cursors_behind(before);
            let mut allocations = FuncValidatorAllocations::default();
            let (mut part, mut facts) = (FuncBatch::default(), Vec::with_capacity(range.len()));
            for (func, body) in &bodies[range] {
                let func = FuncToValidate { resources: func.resources.clone(), ..*func };
                let (index, ty) = (func.index, func.ty);
                let validator = func.into_validator(allocations);
                let translator = func::Translator::new(&self.types, validator, scratch);
                let validator = translator.translate(ty, body, &mut remarks)?;
                if let Some(limit) = scratch.emitter.exceeds() {
                    let rule = BuildRule::Limit(limit);
                    return Err(self.module.error_in(FuncId(index), rule).into());
                }
                let (func, of_func) = scratch.finish(&self.types, ty, body);
                part.add(func, &scratch.emitter.stacks);
                facts.push(of_func);
                allocations = validator.into_allocations();
                if part.n_label_stacks() > n_stacks_max {
                    return Err(Error::Limit("IMPORT_STACKS_MAX"));
                }
            }
            Ok((part, facts, std::mem::take(&mut scratch.found)))
        };
        let made = parallel::try_map(parts.len(), is_parallel, func::Scratch::default, translate)?;
        let mut proof = Proof::default();
        for (range, (part, facts, found)) in parts.into_iter().zip(made) {
            self.module.define_all(range.start, part);
            if self.module.n_label_stacks() > n_stacks_max {
                return Err(Error::Limit("IMPORT_STACKS_MAX"));
            }
            proof.bodies.extend(facts);
            proof.found.add(found);
        }
        Ok(proof)
    }

    /// Translates a validated section.
    fn section(&mut self, payload: Payload<'_>) -> Result<(), Error> {
        match payload {
            Payload::TypeSection(section) => {
                for ty in section.into_iter_err_on_gc_types() {
                    self.ty(&ty?);
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    self.import_entity(import?);
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    let ty = ty?;
                    self.types.funcs.push(ty);
                    self.module.declare_func_of("", self.types.id(ty));
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    let ty = table_type(table?.ty);
                    self.module.table("", ty.elem, ty.min, ty.max);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    self.module.memory("", memory.initial as u32, memory.maximum.map(|n| n as u32));
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    let global = global?;
                    let init = const_expr(&global.init_expr)?;
                    let ty = val_type(global.ty.content_type);
                    self.types.has_vectors |= ty.cells() > 1;
                    self.module.global("", ty, global.ty.mutable, init);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    self.export(export.name, export.kind, export.index);
                }
            }
            Payload::StartSection { func, .. } => self.module.start(FuncId(func)),
            Payload::ElementSection(section) => {
                for elem in section {
                    self.elem(elem?)?;
                }
            }
            Payload::DataCountSection { count, .. } => {
                for _ in 0..count {
                    self.module.passive_data("", []);
                }
            }
            Payload::DataSection(section) => {
                for (i, data) in (0..).zip(section) {
                    self.data(i, data?)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn ty(&mut self, ty: &wasmparser::FuncType) {
        let all = |types: &[wasmparser::ValType]| -> Vec<ValType> {
            types.iter().copied().map(val_type).collect()
        };
        let (params, results) = (all(ty.params()), all(ty.results()));
        self.types.ids.push(self.module.func_type(&params, &results));
        self.types.has_vectors |= params.iter().chain(&results).any(|ty| ty.cells() > 1);
        self.types.has_several_results |= results.len() > 1;
        self.types.types.push(FuncType::new(params, results));
    }

    fn import_entity(&mut self, import: wasmparser::Import<'_>) {
        let wasmparser::Import { module, name, ty } = import;
        match ty {
            TypeRef::Func(ty) => {
                self.types.funcs.push(ty);
                self.module.import_func_of(module, name, self.types.id(ty), ImportCall::Ordinary);
            }
            TypeRef::Table(ty) => {
                let ty = table_type(ty);
                self.module.import_table(module, name, ty.elem, ty.min, ty.max);
            }
            TypeRef::Memory(ty) => {
                let max = ty.maximum.map(|n| n as u32);
                self.module.import_memory(module, name, ty.initial as u32, max);
            }
            TypeRef::Global(global) => {
                let ty = val_type(global.content_type);
                self.types.has_vectors |= ty.cells() > 1;
                self.module.import_global(module, name, ty, global.mutable);
            }
            other => unreachable!("the validator rejects imports of {other:?}"),
        }
    }

    fn export(&mut self, name: &str, kind: ExternalKind, index: u32) {
        match kind {
            ExternalKind::Func => self.module.export_func(name, FuncId(index)),
            ExternalKind::Table => self.module.export_table(name, TableId(index)),
            ExternalKind::Memory => self.module.export_memory(name, MemoryId(index)),
            ExternalKind::Global => self.module.export_global(name, GlobalId(index)),
            other => unreachable!("the validator rejects exports of {other:?}"),
        }
    }

    fn elem(&mut self, elem: wasmparser::Element<'_>) -> Result<(), Error> {
        let mode = match elem.kind {
            ElementKind::Passive => SegmentMode::Passive,
            ElementKind::Declared => SegmentMode::Declared,
            ElementKind::Active { table_index, offset_expr } => SegmentMode::Active {
                target: table_index.unwrap_or(0),
                offset: const_expr(&offset_expr)?,
            },
        };
        let (ty, items) = match elem.items {
            ElementItems::Functions(funcs) => {
                let funcs = funcs.into_iter().collect::<Result<_, _>>()?;
                (ValType::FuncRef, ElemItems::Funcs(funcs))
            }
            ElementItems::Expressions(ty, exprs) => {
                let exprs = exprs.into_iter().map(|expr| const_expr(&expr?));
                (ref_type(ty), ElemItems::Exprs(exprs.collect::<Result<_, _>>()?))
            }
        };
        self.module.segment("", mode, ty, items);
        Ok(())
    }

    /// Translates a data segment. Earlier code may use its index if the data count section announced it.
    fn data(&mut self, index: u32, data: wasmparser::Data<'_>) -> Result<(), Error> {
        let mode = match data.kind {
            DataKind::Passive => SegmentMode::Passive,
            DataKind::Active { offset_expr, .. } => {
                SegmentMode::Active { target: 0, offset: const_expr(&offset_expr)? }
            }
        };
        self.module.set_data(index, Data { mode, bytes: data.data.to_vec() });
        Ok(())
    }
}

fn const_expr(expr: &WasmConstExpr<'_>) -> Result<ConstExpr, Error> {
    let mut translated = ConstExpr::default();
    for operator in expr.get_operators_reader() {
        let operator = operator?;
        if matches!(operator, Operator::End) {
            break;
        }
        if let Some((_, value)) = ops::vector(&operator) {
            translated = translated.v128_const(value);
            continue;
        }
        let Some((op, imm)) = ops::plain(&operator) else {
            unreachable!("the validator rejects {operator:?} in a constant expression")
        };
        translated = translated.inst(op, imm);
    }
    Ok(translated)
}

/// Converts a value type. The validator rejects types that we do not have.
fn val_type(ty: wasmparser::ValType) -> ValType {
    match ty {
        wasmparser::ValType::I32 => ValType::I32,
        wasmparser::ValType::I64 => ValType::I64,
        wasmparser::ValType::F32 => ValType::F32,
        wasmparser::ValType::F64 => ValType::F64,
        wasmparser::ValType::Ref(ty) => ref_type(ty),
        wasmparser::ValType::V128 => ValType::V128,
    }
}

fn ref_type(ty: RefType) -> ValType {
    ops::ref_type(ty.heap_type())
}

/// Converts a size; the validator accepts only sizes of 32 bits.
fn table_type(ty: wasmparser::TableType) -> crate::module::TableType {
    crate::module::TableType {
        elem: ref_type(ty.element_type),
        min: ty.initial as u32,
        max: ty.maximum.map(|n| n as u32),
    }
}
