//! The low-level API: functions in, C function pointers out.
//!
//! For virtual machines that have a heap, frames and an embedding of their own and want native code for
//! single functions: there is no store, instance or linker. A [`Compiler`] takes bytecode, or functions in
//! slot form; the [`Code`] that it makes has each exported function as a pointer of the C convention.
//!
//! ```
//! use slotvm::{Engine, TrapCode};
//! use slotvm::raw::{Compiler, Context};
//!
//! let engine = Engine::default();
//! # if engine.tier() == slotvm::Tier::Interpreter {
//! #     return Ok(());
//! # }
//! let code = Compiler::new(&engine)?.compile_text(
//!     r#"
//!     export "quotient" func quotient
//!     func quotient(a: i64, b: i64) -> i64 { local.get a  local.get b  i64.div_s  return }
//!     "#,
//! )?;
//! let quotient: unsafe extern "C" fn(*mut Context, i64, i64) -> i64 = code.get("quotient")?;
//! let mut context = Context::new(&engine);
//! // SAFETY: the code lives, and the context is that of this call alone.
//! assert_eq!(unsafe { quotient(&mut context, 42, 6) }, 7);
//! assert_eq!(context.status(), 0);
//! // SAFETY: as before.
//! unsafe { quotient(&mut context, 42, 0) };
//! assert_eq!(context.check().unwrap_err().trap_code(), Some(TrapCode::IntegerDivisionByZero));
//! # Ok::<(), slotvm::Error>(())
//! ```
//!
//! # The signature of a function
//!
//! The first parameter is always a `*mut` [`Context`]. For at most one result the parameters of the
//! bytecode follow, and the result is that of the C function. For more than one the second parameter is
//! `*mut u64`, where the results go, 8 bytes each, `i32` and `f32` in the low half with zeros above;
//! then the parameters follow, and nothing is returned. `i32`, `i64`, `f32` and `f64` are the C types of
//! that size, references are 64-bit integers of the embedder's, with 0 for null.
//!
//! # What a trap does
//!
//! It ends the function, which returns zero, or leaves the results as they are; nothing is unwound, no
//! signal raised. The context then has a [status](Context::status), the number of the
//! [`TrapCode`](crate::TrapCode), and the error with its backtrace ([`Context::check`]). Who calls a
//! function that can trap looks at the status. [`Config`](crate::Config) limits the stack;
//! running out of it is a trap, too.
//!
//! # Imports
//!
//! An imported function is a C function that the embedder [defines](Compiler::define), with a signature as
//! above, and is called directly. It gets the context of its caller: it can [fail](Context::fail), change
//! the memory, and call compiled functions with the same context. A compiled function can be the import of
//! another module; its traps propagate to the caller. To mark an import `leaf` changes nothing here.
//!
//! # Memory
//!
//! Loads and stores access the memory of the context, which is the embedder's: an address and a length
//! ([`Context::set_memory`]). Addresses of the bytecode count from there, and each access is checked
//! against the length. A module declares a memory to use it; its stated size is ignored.
//! `memory.size` returns whole pages of 64 KiB, and `memory.grow` fails.
//!
//! # Host addresses
//!
//! In the unsafe mode ([`Compiler::allow_host_addresses`]) a module accesses all of the process's memory.
//! It imports loads and stores from the module `host`, by their mnemonics, with an `i64` address, which is
//! a pointer; each call of such an import becomes a single load or store, without a check:
//!
//! ```text
//! import "host" "i64.load" func load(i64) -> i64
//! import "host" "f32.store" func store_f32(i64, f32)
//! ```
//!
//! They are imports and no operations of their own so that everything else stays as it is: the bytecode
//! has 32-bit addresses, builders and verifiers know the types of calls, and an interpreter can run the
//! same module with functions of these names.
//!
//! # What there is not
//!
//! Globals, tables, segments, a start function, a frame stack and `ref.func`: they are state of an instance,
//! and the embedder has its own. Nor is code interrupted from outside; [fuel](Context::set_fuel) bounds it.

mod code;
mod context;
#[cfg(feature = "jit")]
mod entry;
#[cfg_attr(not(feature = "jit"), expect(dead_code, reason = "only native code is made of it"))]
mod input;
#[cfg(feature = "jit")]
mod libcalls;
#[cfg(feature = "jit")]
mod native;
#[cfg(not(feature = "jit"))]
mod no_native;
mod signature;

use std::collections::HashMap;
use std::sync::Arc;

use slotvm_bytecode::module::ImportKind;
use slotvm_bytecode::{FuncType, Module as Bytecode, Op, ValType, VerifiedModule, text};
use slotvm_runtime::Error;
use slotvm_ssa::ir::irop::{IrOp, Opcode};
use slotvm_ssa::ir::verify::{Form, verify};

use input::{Import, Input};
#[cfg(not(feature = "jit"))]
use no_native as native;

pub use code::Code;
pub use context::Context;
pub use signature::{CFunction, CResult, CValue};
pub use slotvm_ssa::ir::Function;

use crate::api::engine::Engine;

/// The module from which loads and stores at host addresses are imported.
const HOST_MODULE: &str = "host";

/// Makes [`Code`] of modules, whose imports it knows.
#[derive(Debug)]
pub struct Compiler {
    engine: Engine,
    defined: HashMap<(String, String), (FuncType, usize)>,
    host_addresses: bool,
}

impl Compiler {
    /// Makes a compiler with the configuration of an engine.
    ///
    /// # Errors
    /// Fails if the engine makes no native code, as none does in a build without the feature `jit`; if its code
    /// could be interrupted or counts stack cells, which this code does not do.
    pub fn new(engine: &Engine) -> Result<Compiler, Error> {
        let config = engine.config();
        if engine.native().is_none() {
            return Err(usage("C functions need native code; the engine interprets"));
        }
        if config.polls() || config.stack_cells_max.is_some() {
            return Err(usage("C functions are not interrupted and count no stack cells"));
        }
        let (engine, defined) = (engine.clone(), HashMap::new());
        Ok(Compiler { engine, defined, host_addresses: false })
    }

    /// Defines an imported function. A second definition replaces the first.
    ///
    /// # Safety
    /// The function can be called with any parameters, on any thread that the code runs on, for as long as
    /// the code that imports it exists. It does not unwind. It uses the context as its documentation allows.
    pub unsafe fn define<F: CFunction>(
        &mut self,
        module: &str,
        name: &str,
        function: F,
    ) -> &mut Compiler {
        // SAFETY: what this function demands of its caller is what the other demands, and the type is that of the
        // function.
        unsafe { self.define_pointer(module, name, function.ty(), function.pointer()) }
    }

    /// Defines an imported function of any type.
    ///
    /// # Safety
    /// As for [`Compiler::define`]; the signature of the function is that for the type.
    pub unsafe fn define_pointer(
        &mut self,
        module: &str,
        name: &str,
        ty: FuncType,
        function: *const u8,
    ) -> &mut Compiler {
        let key = (module.to_owned(), name.to_owned());
        self.defined.insert(key, (ty, function.expose_provenance()));
        self
    }

    /// Lets modules import loads and stores at [host addresses](self#host-addresses).
    ///
    /// # Safety
    /// From here on nothing but their own code keeps the functions of these modules from reading and
    /// writing whatever is in the process. Calling one of them with parameters for which it accesses what is
    /// not there, or what Rust code holds references to, is undefined behaviour.
    pub unsafe fn allow_host_addresses(&mut self) -> &mut Compiler {
        self.host_addresses = true;
        self
    }

    /// Verifies and compiles a module.
    ///
    /// # Errors
    /// Fails if it breaks a rule, has what there [is not](self#what-there-is-not), imports what is not defined, or
    /// native code cannot be made.
    pub fn compile(&self, module: Bytecode) -> Result<Code, Error> {
        self.compile_slot_form(module, [])
    }

    /// Verifies and compiles a module in text form.
    ///
    /// # Errors
    /// Fails if the text has an error, or as for [`Compiler::compile`].
    pub fn compile_text(&self, source: &str) -> Result<Code, Error> {
        self.compile(text::parse(source)?)
    }

    /// Compiles functions in slot form. The module declares them, and everything that they call: the bytecode
    /// of its functions is taken for those of which there is no slot form. A slot form charges no fuel but
    /// what its own instructions charge. The verifier of the IR finds mistakes, and is no boundary of
    /// security as that of bytecode is.
    ///
    /// # Errors
    /// Fails if a function has not the number and the type of one that the module defines, or breaks a rule of the
    /// [verifier of the IR](slotvm_ssa::ir::verify); or as for [`Compiler::compile`].
    pub fn compile_slot_form(
        &self,
        module: Bytecode,
        functions: impl IntoIterator<Item = Function>,
    ) -> Result<Code, Error> {
        let module = Arc::new(slotvm_bytecode::verify(module)?);
        check_module(&module)?;
        let imports = self.imports(&module)?;
        let mut by_number = HashMap::new();
        for function in functions {
            check_function(&module, &function)?;
            if let Some(twice) = by_number.insert(function.func, function) {
                return Err(usage(format!("duplicate body for function {}", twice.func)));
            }
        }
        Code::new(&self.engine, Input { module, imports, functions: by_number })
    }

    /// Returns the implementations of the functions that a module imports.
    fn imports(&self, module: &VerifiedModule) -> Result<Vec<Import>, Error> {
        let mut imports = Vec::new();
        for import in &module.module().imports {
            let ImportKind::Func(ty, _) = import.kind else { continue };
            let ty = &module.module().types[ty as usize];
            let (from, name) = (&import.module, &import.name);
            let found = self.import(from, name);
            let (expected, found) =
                found.ok_or_else(|| usage(format!("import {from:?} {name:?} is not defined")))?;
            if expected != *ty {
                let message = format!("import {from:?} {name:?} has type {ty}, not {expected}");
                return Err(usage(message));
            }
            imports.push(found);
        }
        Ok(imports)
    }

    fn import(&self, module: &str, name: &str) -> Option<(FuncType, Import)> {
        if let Some((ty, address)) = self.defined.get(&(module.to_owned(), name.to_owned())) {
            return Some((ty.clone(), Import::Function(*address)));
        }
        if !self.host_addresses || module != HOST_MODULE {
            return None;
        }
        let access = Op::from_mnemonic(name)?.access().filter(|access| !access.indexed)?;
        let ty = match access.store {
            true => FuncType::new([ValType::I64, access.ty], []),
            false => FuncType::new([ValType::I64], [access.ty]),
        };
        Some((ty, Import::Access(access)))
    }
}

/// Refuses modules that need an instance.
fn check_module(module: &VerifiedModule) -> Result<(), Error> {
    let bytecode = module.module();
    let has = [
        ("globals", !module.globals().is_empty()),
        ("tables", !module.tables().is_empty()),
        ("element segments", !bytecode.elems.is_empty()),
        ("data segments", !bytecode.datas.is_empty()),
        ("a start function", bytecode.start.is_some()),
        ("a frame stack", bytecode.frame_stack.is_some()),
    ];
    if let Some((what, _)) = has.iter().find(|(_, has)| *has) {
        return Err(usage(format!("cannot compile a module with {what} to C functions")));
    }
    for func in module.n_imported_funcs()..module.n_funcs() {
        let ty = module.func_type(func);
        if ty.params.iter().chain(&ty.results).any(|&ty| ty == ValType::V128) {
            let name = module.func_name(func);
            return Err(usage(format!(
                "function {name:?} has type {ty}; C functions have no SIMD types"
            )));
        }
        let body = module.body(func).expect("the module defines the function");
        let mut insts = body.blocks.iter().flat_map(|block| module.insts(func, block));
        if insts.any(|(_, inst)| inst.op == Op::RefFunc) {
            return Err(no_ref_func(&module.func_name(func)));
        }
    }
    Ok(())
}

fn check_function(module: &VerifiedModule, function: &Function) -> Result<(), Error> {
    let Function { func, name, ty, .. } = function;
    if module.func(*func).is_none() || module.func_type(*func) != ty {
        let message = format!("the module defines no function {func} of the type {ty} of {name:?}");
        return Err(usage(message));
    }
    verify(function, Form::Slots, module).map_err(|violation| {
        Error::compile(format!("the slot form of function {func}, {name:?}: {violation}"))
    })?;
    let mut insts = function.blocks().flat_map(|block| function.insts(block));
    let handles = [Opcode::Op(Op::RefFunc), Opcode::Ir(IrOp::RefIsFunc)];
    if insts.any(|&inst| handles.contains(&function.opcode(inst))) {
        return Err(no_ref_func(name));
    }
    Ok(())
}

fn no_ref_func(name: &str) -> Error {
    usage(format!("function {name:?} has `ref.func`, which C functions do not support"))
}

fn usage(message: impl Into<String>) -> Error {
    Error::Usage(message.into())
}
