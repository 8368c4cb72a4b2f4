//! The compiler: from the syntax tree to bytecode.
//!
//! Each expression leaves one value on the operand stack, a `ref`. What code looks at twice goes through locals, which cost
//! nothing in native code. Fast paths are in place; the rest is left to functions of the host, by imports that are mostly
//! cold. The bits of a value are taken anew after each call, since a collection may have moved what they name.

mod arithmetic;
mod control;
mod function;
mod objects;
mod runtime;

use std::collections::{BTreeSet, HashMap, HashSet};

use slotvm::builder::{BuildError, FuncId, GlobalId, MemoryId, ModuleBuilder, TableId};
use slotvm::{
    Bytecode, ConstExpr, ImportCall, ValType, ValType::FuncRef, ValType::I32, ValType::I64,
    ValType::Ref,
};

use self::function::Job;
use crate::heap::Heap;
use crate::library::{self, FUNCTIONS, Use};
use crate::syntax::Program;

/// State that the modules of a dialogue share, besides the heap.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The variables that the modules so far have declared.
    pub(crate) globals: HashSet<String>,
    /// Whether there is a module.
    pub(crate) is_started: bool,
    /// Functions in the table.
    pub(crate) n_functions: u32,
}

/// A module that is being made.
pub(crate) struct Unit<'a> {
    pub(crate) heap: &'a mut Heap,
    file: &'a str,
    imports: HashMap<&'static str, FuncId>,
    memory: MemoryId,
    table: TableId,
    /// The next free address of the heap, and the end of its space.
    next: GlobalId,
    limit: GlobalId,
    map_get: FuncId,
    map_set: FuncId,
    globals: HashMap<String, GlobalId>,
    /// Those that no module before has.
    new_globals: Vec<GlobalId>,
    /// Globals that have the strings of the program.
    texts: HashMap<String, GlobalId>,
    /// The functions that `fn` declares here. They are called directly.
    direct: HashMap<String, (FuncId, usize)>,
    /// Functions that need a place in the table, which starts with these so many.
    closures: Vec<FuncId>,
    n_functions: u32,
}

/// Compiles a program, and returns the number of functions in the table then. Its module exports `main`, all that later
/// modules of the dialogue need, and its caches.
pub(crate) fn compile(
    program: &Program,
    file: &str,
    shared: &Shared,
    heap: &mut Heap,
) -> Result<(Bytecode, u32), BuildError> {
    let mut module = ModuleBuilder::new();
    let mut unit = Unit::new(&mut module, program, file, shared, heap)?;
    let mut jobs = Vec::new();
    for function in &program.functions {
        let id = declare(&mut module, &function.name, function.n_params);
        unit.direct.insert(function.name.clone(), (id, function.n_params));
        jobs.push(Job { id, function, cells: Vec::new(), is_program: false });
    }
    let main = declare(&mut module, "main", 0);
    let start = module.declare_func("", &[], &[Ref]);
    jobs.push(Job { id: main, function: &program.main, cells: Vec::new(), is_program: true });
    while let Some(job) = jobs.pop() {
        function::compile(&mut module, &mut unit, &mut jobs, job)?;
    }
    unit.start(&mut module, program, start, main)?;
    module.export_func("main", start);
    let n_functions = unit.n_functions + unit.closures.len() as u32;
    Ok((module.finish()?, n_functions))
}

/// Declares a function of the program: it takes its closure and the arguments.
fn declare(module: &mut ModuleBuilder, name: &str, n_params: usize) -> FuncId {
    module.declare_func(name, &vec![Ref; n_params + 1], &[Ref])
}

impl<'a> Unit<'a> {
    fn new(
        module: &mut ModuleBuilder,
        program: &Program,
        file: &'a str,
        shared: &Shared,
        heap: &'a mut Heap,
    ) -> Result<Unit<'a>, BuildError> {
        let mut imports = HashMap::new();
        for library::Function { name, n_params, users, .. } in FUNCTIONS {
            let call =
                if *users == Use::SlowPath { ImportCall::Cold } else { ImportCall::Ordinary };
            let id = module.import_func_called("host", name, &vec![I64; *n_params], &[I64], call);
            imports.insert(*name, id);
        }
        let declared =
            program.functions.iter().map(|function| &function.name).chain(&program.globals);
        let names: BTreeSet<&String> = declared.chain(program.used.keys()).collect();
        let (mut globals, mut new_globals) = (HashMap::new(), Vec::new());
        // The first module of a dialogue has the memory, the table and the code that all share.
        let first = !shared.is_started;
        let pointer = |module: &mut ModuleBuilder, name| match first {
            true => module.global(name, I32, true, ConstExpr::i32(0)),
            false => module.import_global("self", name, I32, true),
        };
        let (next, limit) = (pointer(module, "next"), pointer(module, "limit"));
        for &name in names.iter().filter(|name| shared.globals.contains(**name)) {
            globals.insert(
                name.clone(),
                module.import_global("self", &format!("global {name}"), Ref, true),
            );
        }
        for &name in names.iter().filter(|name| !shared.globals.contains(**name)) {
            let id = module.global(name, Ref, true, ConstExpr::ref_null(Ref));
            module.export_global(&format!("global {name}"), id);
            globals.insert(name.clone(), id);
            new_globals.push(id);
        }
        let memory = match first {
            true => module.memory("memory", 1, None),
            false => module.import_memory("self", "memory", 1, None),
        };
        let table = match first {
            true => module.table("functions", FuncRef, 0, None),
            false => module.import_table("self", "functions", FuncRef, 0, None),
        };
        let mut function = |name, params: &[ValType], results: &[ValType]| match first {
            true => module.declare_func(name, params, results),
            false => module.import_func("self", name, params, results),
        };
        let map_get = function("map_get", &[Ref, Ref], &[Ref]);
        let map_set = function("map_set", &[Ref, Ref, Ref], &[]);
        let mut unit = Unit {
            heap,
            file,
            imports,
            memory,
            table,
            next,
            limit,
            map_get,
            map_set,
            globals,
            new_globals,
            texts: HashMap::new(),
            direct: HashMap::new(),
            closures: Vec::new(),
            n_functions: shared.n_functions,
        };
        if first {
            unit.define_shared(module)?;
        }
        Ok(unit)
    }
}
