//! Validation of functions now, unless it was done before, and their translation when they are first asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use wasmparser::{
    BinaryReader, BinaryReaderError, FuncToValidate, FuncValidatorAllocations, FunctionBody,
    ValidatorResources, WasmFeatures,
};

use super::func::{Scratch, Translator, source_bytes};
use super::{Body, Options, Remarks, Types, names, proposals};

use crate::limits;
use crate::module::Names;
use crate::parallel;
use crate::verified::VerifiedModule;
use crate::verified::lazy::{LazyFuncs, Made, Source};
use crate::verify::verify;

/// A module with a function of more bytes is translated at once, since the function might exceed a limit.
const BODY_BYTES_MAX: usize = 2_000_000;

/// No byte of a function becomes more bytes of code, or labels, than this.
const GROWTH_MAX: usize = 8;
const _: () = assert!(BODY_BYTES_MAX <= limits::LABELS_MAX);
const _: () = assert!(BODY_BYTES_MAX * GROWTH_MAX <= limits::CODE_BYTES_MAX);

/// An operator that pushes more operands than it pops pushes one more and takes two bytes, unless it calls a function with
/// several results. So the depth of the stack is at most half the bytes.
const _: () = assert!(BODY_BYTES_MAX / 2 <= limits::STACK_OPERANDS_MAX);

/// A module with more bytes of functions is translated at once, since it might have too many shapes: each takes two bytes,
/// for an operand that was pushed, or for one that took the place of another before a label.
const LAZY_CODE_BYTES_MAX: usize = 20_000_000;
const _: () = assert!(LAZY_CODE_BYTES_MAX / 2 <= limits::SHAPES_MAX);

/// The proposals that functions may use: those without vectors.
const FEATURES: WasmFeatures = proposals::SUPPORTED.difference(WasmFeatures::SIMD);

/// Validates function bodies if they are not yet, and returns them. `None` if they have to be translated now: the module is invalid, may
/// exceed a limit, or has vectors, about whose operands validation tells the verifier nothing. Translation finds the
/// error if there is one.
pub(super) fn bodies(
    bytes: &[u8],
    types: &Types,
    bodies: &[Body<'_>],
    options: Options,
) -> Option<Bodies> {
    let code_bytes: Vec<usize> = bodies.iter().map(|(_, body)| body.as_bytes().len()).collect();
    let is_long = code_bytes.iter().any(|&n| n > BODY_BYTES_MAX)
        || code_bytes.iter().sum::<usize>() > LAZY_CODE_BYTES_MAX;
    if types.has_vectors || types.has_several_results || is_long {
        return None;
    }
    if options.is_validated {
        return Some(Bodies::new(bytes, bodies, None));
    }
    let parts = parallel::parts(&code_bytes, options.is_parallel);
    let validate = |_: &mut (), part: usize| {
        let mut allocations = FuncValidatorAllocations::default();
        let mut written = WrittenTables::default();
        for (func, body) in &bodies[parts[part].clone()] {
            let resources = func.resources.clone();
            let func = FuncToValidate { resources, features: FEATURES, ..*func };
            let mut validator = func.into_validator(allocations);
            let mut reader = body.get_binary_reader();
            validator.read_locals(&mut reader)?;
            reader.set_features(FEATURES);
            let (code, start) = (body.as_bytes(), body.range().start);
            while !reader.eof() {
                let offset = reader.original_position();
                if WrittenTables::may_note(code[(offset - start) as usize]) {
                    written.note(reader.clone())?;
                }
                reader.visit_operator(&mut validator.visitor(offset))??;
            }
            reader.finish_expression(&validator.visitor(reader.original_position()))?;
            allocations = validator.into_allocations();
        }
        Ok::<_, BinaryReaderError>(written)
    };
    let parts = parallel::try_map(parts.len(), options.is_parallel, || (), validate).ok()?;
    let written = parts.into_iter().flat_map(|written| written.0).collect();
    Some(Bodies::new(bytes, bodies, Some(written)))
}

/// The tables that instructions write.
#[derive(Default)]
struct WrittenTables(BTreeSet<u32>);

impl WrittenTables {
    /// Whether [`WrittenTables::note`] has to see an instruction that begins with this byte: a test that is cheap enough for
    /// every instruction.
    fn may_note(first: u8) -> bool {
        matches!(first, opcodes::TABLE_SET | opcodes::PREFIX)
    }

    /// Notes the table that the next instruction writes, if it writes one. The instruction need not be validated yet.
    fn note(&mut self, mut reader: BinaryReader<'_>) -> Result<(), BinaryReaderError> {
        let table = match reader.read_u8()? {
            opcodes::TABLE_SET => reader.read_var_u32()?,
            opcodes::PREFIX => match reader.read_var_u32()? {
                opcodes::TABLE_INIT => {
                    let _segment = reader.read_var_u32()?;
                    reader.read_var_u32()?
                }
                opcodes::TABLE_COPY | opcodes::TABLE_GROW | opcodes::TABLE_FILL => {
                    reader.read_var_u32()?
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.0.insert(table);
        Ok(())
    }
}

/// The instructions that write tables, whose numbers are those of WebAssembly 3.0, section 5.4.5.
mod opcodes {
    pub(super) const TABLE_SET: u8 = 0x26;
    pub(super) const PREFIX: u8 = 0xfc;
    /// Its first operand is a segment.
    pub(super) const TABLE_INIT: u32 = 12;
    /// Its first operand is the table that it writes.
    pub(super) const TABLE_COPY: u32 = 14;
    pub(super) const TABLE_GROW: u32 = 15;
    pub(super) const TABLE_FILL: u32 = 17;
}

/// Bytes of a module, with the offset at which they were.
#[derive(Default)]
struct Bytes {
    bytes: Box<[u8]>,
    start: u64,
}

impl Bytes {
    fn new(module: &[u8], range: Range<u64>) -> Bytes {
        let bytes = module[range.start as usize..range.end as usize].into();
        Bytes { bytes, start: range.start }
    }

    fn reader(&self, range: Range<u64>) -> BinaryReader<'_> {
        let at = (range.start - self.start) as usize..(range.end - self.start) as usize;
        BinaryReader::new_features(&self.bytes[at], range.start, FEATURES)
    }
}

/// Validated function bodies.
pub(super) struct Bodies {
    bytes: Bytes,
    ranges: Box<[Range<u64>]>,
    resources: Option<ValidatorResources>,
    n_imported: u32,
    /// The tables that they write, unless they were validated before.
    written_tables: Option<BTreeSet<u32>>,
}

impl Bodies {
    fn new(module: &[u8], bodies: &[Body<'_>], written_tables: Option<BTreeSet<u32>>) -> Bodies {
        let ranges: Box<[Range<u64>]> = bodies.iter().map(|(_, body)| body.range()).collect();
        let code = match &*ranges {
            [] => 0..0,
            [first, ..] => first.start..ranges[ranges.len() - 1].end,
        };
        Bodies {
            bytes: Bytes::new(module, code),
            resources: bodies.first().map(|(func, _)| func.resources.clone()),
            n_imported: bodies.first().map_or(0, |(func, _)| func.index),
            ranges,
            written_tables,
        }
    }

    fn body(&self, place: usize) -> FunctionBody<'_> {
        FunctionBody::new(self.bytes.reader(self.ranges[place].clone()))
    }

    /// The functions of these bodies, with the name section.
    pub(super) fn into_funcs(
        self,
        module: &[u8],
        types: Types,
        remarks: Remarks,
        names: Option<Range<u64>>,
    ) -> LazyFuncs {
        let names = names.map(|range| (Bytes::new(module, range.clone()), range));
        LazyFuncs::new(self.ranges.len(), Box::new(Module { bodies: self, types, remarks, names }))
    }
}

/// What is left to translate of a module.
struct Module {
    bodies: Bodies,
    types: Types,
    remarks: Remarks,
    /// The name section.
    names: Option<(Bytes, Range<u64>)>,
}

impl Source for Module {
    fn func(&self, place: usize) -> Made {
        let Module { bodies, types, remarks, .. } = self;
        let index = bodies.n_imported + place as u32;
        let ty = types.funcs[index as usize];
        let resources = bodies.resources.clone().expect("there are functions");
        let validator = FuncToValidate { resources, index, ty, features: FEATURES }
            .into_validator(FuncValidatorAllocations::default());
        let before = place.checked_sub(1).map_or(0, |before| bodies.ranges[before].end);
        let (body, mut remarks) = (bodies.body(place), remarks.cursors_behind(before));
        let mut scratch = Scratch::default();
        let translator = Translator::new(types, validator, &mut scratch);
        translator.translate(ty, &body, &mut remarks).expect("the function has been validated");
        let (func, facts) = scratch.finish(types, ty, &body);
        let facts = facts.expect("there are no vectors");
        (func, facts, std::mem::take(&mut scratch.emitter.stacks))
    }

    fn source_bytes(&self, place: usize) -> u32 {
        let range = &self.bodies.ranges[place];
        source_bytes((range.end - range.start) as usize)
    }

    fn written_tables(&self) -> Vec<u32> {
        if let Some(written) = &self.bodies.written_tables {
            return written.iter().copied().collect();
        }
        let mut written = WrittenTables::default();
        let mut note = |body: &FunctionBody<'_>| {
            let mut operators = body.get_operators_reader()?;
            while !operators.eof() {
                written.note(operators.get_binary_reader())?;
                operators.read()?;
            }
            Ok::<_, BinaryReaderError>(())
        };
        for place in 0..self.bodies.ranges.len() {
            note(&self.bodies.body(place)).expect("the function has been validated");
        }
        written.0.into_iter().collect()
    }

    fn names(&self, module: &crate::module::Module) -> Names {
        let Some((bytes, range)) = &self.names else { return module.names.clone() };
        let n_declared = |place: usize| {
            let runs = self.bodies.body(place).get_locals_reader().into_iter().flatten();
            runs.map_while(Result::ok).map(|(n, _)| u64::from(n)).sum()
        };
        names::read_all(bytes.reader(range.clone()), module, n_declared)
    }

    fn verify(&self, module: crate::module::Module) -> VerifiedModule {
        verify(module).expect("translated functions obey the rules")
    }
}
