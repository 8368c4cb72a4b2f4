//! Random modules and the calls that are made of them.

use arbitrary::{Arbitrary, Unstructured};
use slotvm::{FuncType, ValType};
use slotvm_bytecode::module::{EntityKind, ImportKind, Module};
use slotvm_bytecode::wasm;
use wasm_smith::Config;

use crate::host::{MEMORY_PAGES_MAX, TABLE_ELEMS_MAX, mix};
use crate::value::Value;

/// Fuel of an instance: each call of its functions and each iteration of a loop costs 1, bulk operations their
/// length. Without fuel, functions execute `unreachable`.
pub(crate) const FUEL: u32 = 1_000;
/// Calls of each function.
const CALLS_PER_FUNC: u64 = 2;

/// A module and what is done with it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The binary.
    pub wasm: Vec<u8>,
    /// The converted module, where imports and exports are looked up.
    pub module: Module,
    /// Calls of what it exports, in their order.
    pub calls: Vec<Call>,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the exported function.
    pub func: String,
    /// The arguments.
    pub args: Vec<Value>,
}

impl Program {
    /// Makes a program of any bytes. There is none where wasm-smith finds no module in them.
    ///
    /// # Panics
    /// Panics if we do not take the module: it is valid and has nothing but what is supported.
    pub fn generate(bytes: &[u8]) -> Option<Program> {
        let (seed, bytes) = bytes.split_first_chunk()?;
        let mut bytes = Unstructured::new(bytes);
        let config = config(&mut bytes).ok()?;
        let mut module = wasm_smith::Module::new(config, &mut bytes).ok()?;
        module.ensure_termination(FUEL).expect("no function has invalid code");
        let program = Program::new(module.to_bytes(), u64::from_le_bytes(*seed));
        Some(program.expect("modules have only what is supported"))
    }

    /// A program that calls all functions which a module exports.
    ///
    /// # Errors
    /// Fails if the module is not valid or not supported.
    pub fn new(wasm: Vec<u8>, seed: u64) -> Result<Program, wasm::Error> {
        let module = wasm::import(&wasm)?;
        let mut bits = seed;
        let mut calls = Vec::new();
        for export in module.exports.iter().filter(|export| export.kind == EntityKind::Func) {
            let ty = func_type(&module, export.index);
            for _ in 0..CALLS_PER_FUNC {
                let args = ty.params.iter().map(|&ty| argument(ty, &mut bits)).collect();
                calls.push(Call { func: export.name.clone(), args });
            }
        }
        Ok(Program { wasm, module, calls })
    }
}

/// Configuration of generated modules: anything that is supported, in sizes that run fast, and all of it exported.
fn config(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Config> {
    let any = Config::arbitrary(bytes)?;
    Ok(Config {
        min_types: 4,
        max_types: any.max_types % 20 + 4,
        min_imports: 1,
        max_imports: any.max_imports % 10 + 2,
        min_funcs: 4,
        max_funcs: any.max_funcs % 10 + 4,
        min_globals: 1,
        max_globals: any.max_globals % 10 + 1,
        max_exports: 1_000,
        max_element_segments: any.max_element_segments % 10,
        max_elements: any.max_elements % 20,
        max_data_segments: any.max_data_segments % 10,
        max_instructions: any.max_instructions % 400,
        max_memories: any.max_memories.min(1),
        max_memory32_bytes: any.max_memory32_bytes % (u64::from(MEMORY_PAGES_MAX) << 16),
        max_tables: any.max_tables % 5,
        max_table_elements: any.max_table_elements % u64::from(TABLE_ELEMS_MAX),
        // Comparisons are to the bit.
        canonicalize_nans: true,
        export_everything: true,
        simd_enabled: true,
        wide_arithmetic_enabled: true,
        relaxed_simd_enabled: false,
        exceptions_enabled: false,
        threads_enabled: false,
        gc_enabled: false,
        compact_imports_enabled: false,
        memory64_enabled: false,
        ..any
    })
}

/// An argument, often at the edge of what its type can be.
fn argument(ty: ValType, bits: &mut u64) -> Value {
    *bits = mix(*bits);
    let choice = *bits >> 60;
    let small = ((*bits >> 8) as i8).into();
    let edges: [(i64, f64); 8] = [
        (0, 0.0),
        (1, 1.0),
        (-1, -0.5),
        (i32::MIN.into(), i32::MIN.into()),
        (i32::MAX.into(), f64::NAN),
        (i64::MIN, i64::MIN as f64),
        (i64::MAX, f64::INFINITY),
        (small, small as f64 / 4.0),
    ];
    let (int, float) = match edges.get(choice as usize) {
        Some(&edge) => edge,
        None => (*bits as i64, f64::from_bits(*bits)),
    };
    match ty {
        ValType::F32 => Value::F32((float as f32).to_bits()),
        ValType::F64 => Value::F64(float.to_bits()),
        ValType::V128 => Value::V128(u128::from(int as u64) | u128::from(float.to_bits()) << 64),
        _ => Value::of_bits(ty, int as u64),
    }
}

/// The type of a function by its index.
pub(crate) fn func_type(module: &Module, index: u32) -> &FuncType {
    let imported = module.imports.iter().filter_map(|import| match import.kind {
        ImportKind::Func(ty, _) => Some(ty),
        _ => None,
    });
    let defined = module.funcs.iter().map(|func| func.ty);
    let ty = imported.chain(defined).nth(index as usize).expect("the function is there");
    &module.types[ty as usize]
}
