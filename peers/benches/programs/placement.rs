//! The same program at other addresses. The time of machine code depends on where it lies: by up to a factor of
//! two for a loop, with the same instructions. So programs are measured at several places.
//!
//! All engines put the functions of a module one after the other, in the order of their indices. A function that
//! is never called, of another size for each placement, comes first and moves the rest.

use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, Function, FunctionSection, TypeSection, ValType};
use wasmparser::{CodeSectionReader, FunctionSectionReader, Parser, Payload, TypeSectionReader};

use crate::failure::Failure;

/// Operations in the filler of each further placement. Each takes 8 to 14 bytes of machine code, so the places
/// differ modulo 64, which is what caches and decoders of instructions see.
const OPERATIONS: usize = 7;
/// Bytes that native code moves by with each placement. Functions are aligned to 16 bytes.
const NATIVE_BYTES: usize = 80;

/// One of the places of a program's code, by number.
#[derive(Copy, Clone)]
pub(crate) struct Placement(pub(crate) usize);

impl Placement {
    /// Returns a module with a filler of the placement's size as its first function.
    pub(crate) fn module(self, wasm: &[u8]) -> Result<Vec<u8>, Failure> {
        let failure = |error: &dyn std::fmt::Display| format!("cannot be placed: {error}");
        let mut filler = Filler { n_operations: self.0 * OPERATIONS, n_types: 0, n_imports: 0 };
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.map_err(|error| failure(&error))? {
                Payload::TypeSection(types) => {
                    filler.n_types = types.into_iter_err_on_gc_types().count() as u32;
                }
                Payload::ImportSection(imports) => {
                    let imports = imports.into_imports().flatten();
                    let is_function = |import: &wasmparser::Import<'_>| {
                        matches!(import.ty, wasmparser::TypeRef::Func(_))
                    };
                    filler.n_imports = imports.filter(is_function).count() as u32;
                }
                _ => {}
            }
        }
        let mut module = wasm_encoder::Module::new();
        filler
            .parse_core_module(&mut module, Parser::new(0), wasm)
            .map_err(|error| failure(&error))?;
        Ok(module.finish())
    }

    /// Bytes to leave empty before native code.
    pub(crate) fn native_bytes(self) -> usize {
        self.0 * NATIVE_BYTES
    }
}

/// Puts the filler into a module.
struct Filler {
    n_operations: usize,
    /// Types of the module, after which that of the filler comes.
    n_types: u32,
    /// Imported functions, after which the filler comes.
    n_imports: u32,
}

type Result0 = Result<(), reencode::Error<std::convert::Infallible>>;

impl Reencode for Filler {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, func: u32) -> Result<u32, reencode::Error<Self::Error>> {
        Ok(if func < self.n_imports { func } else { func + 1 })
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> Result0 {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([ValType::I64], [ValType::I64]);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result0 {
        functions.function(self.n_types);
        utils::parse_function_section(self, functions, section)
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result0 {
        let mut function = Function::new([]);
        let mut body = function.instructions();
        body.local_get(0);
        for i in 0..self.n_operations as i64 {
            // Nothing that a compiler knows to fold.
            body.i64_const(i * 0x1234_5678_9abd + 1).i64_add();
            body.local_get(0).i64_rotl();
        }
        body.end();
        code.function(&function);
        utils::parse_code_section(self, code, section)
    }
}
