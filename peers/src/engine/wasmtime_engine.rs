//! wasmtime, as it comes.

use slotvm::TrapCode;
use slotvm_bytecode::module::ImportKind;
use wasmtime::{
    AsContext, AsContextMut, Caller, Config, Engine, Error, Extern, ExternRef, Func, FuncType,
    Global, GlobalType, Instance, Memory, MemoryType, Module, Mutability, Ref, RefType, Store,
    StoreLimits, StoreLimitsBuilder, Table, TableType, Trap, Val, ValType,
};

use super::{Compiled, End};
use crate::host::{self, Failure, Host};
use crate::program::{Call, Program};
use crate::value::Value;

const ROOM: &str = "a new store has room";

pub(super) struct Wasmtime {
    engine: Engine,
}

/// Data of stores.
struct Data {
    host: Host,
    limits: StoreLimits,
}

impl Wasmtime {
    pub(super) fn new() -> Wasmtime {
        let mut config = Config::new();
        config.max_wasm_stack(host::STACK_BYTES).wasm_wide_arithmetic(true);
        Wasmtime { engine: Engine::new(&config).expect("the configuration is valid") }
    }
}

impl super::Engine for Wasmtime {
    fn name(&self) -> &str {
        "wasmtime"
    }

    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn Compiled>, String> {
        let module = Module::new(&self.engine, wasm).map_err(|error| format!("{error:?}"))?;
        Ok(Box::new(module))
    }
}

impl Compiled for Module {
    fn instantiate(&self, program: &Program) -> (Box<dyn super::Instance>, Result<(), End>) {
        let limits = StoreLimitsBuilder::new()
            .memory_size((host::MEMORY_PAGES_MAX as usize) << 16)
            .table_elements(host::TABLE_ELEMS_MAX as usize)
            .build();
        let mut store = Store::new(self.engine(), Data { host: Host::default(), limits });
        store.limiter(|data| &mut data.limits);
        let imports = imports(&mut store, program);
        let (externs, end) = match Instance::new(&mut store, self, &imports) {
            Ok(instance) => {
                let exports = instance.exports(&mut store);
                let exports =
                    exports.map(|export| (export.name().to_owned(), export.into_extern()));
                (exports.collect(), Ok(()))
            }
            Err(error) => {
                let unnamed = imports.into_iter().map(|import| (String::new(), import));
                (unnamed.collect(), Err(end_of(&error)))
            }
        };
        (Box::new(Running { store, externs }), end)
    }
}

struct Running {
    store: Store<Data>,
    externs: Vec<(String, Extern)>,
}

impl Running {
    fn funcs(&self) -> impl Iterator<Item = (&String, Func)> {
        let externs = self.externs.iter();
        externs.filter_map(|(name, entity)| Some((name, entity.clone().into_func()?)))
    }
}

impl super::Instance for Running {
    fn call(&mut self, call: &Call) -> End {
        let (_, func) = self.funcs().find(|(name, _)| **name == call.func).expect("it is exported");
        let first = self.funcs().next().map(|(_, func)| func);
        let args: Vec<Val> =
            call.args.iter().map(|&arg| to_val(&mut self.store, arg, first)).collect();
        let mut results = vec![Val::I32(0); func.ty(&self.store).results().len()];
        match func.call(&mut self.store, &args, &mut results) {
            Ok(()) => End::Returned(results.iter().map(|val| from_val(&self.store, val)).collect()),
            Err(error) => end_of(&error),
        }
    }

    fn memory(&self) -> &[u8] {
        let memory = self.externs.iter().find_map(|(_, entity)| entity.clone().into_memory());
        memory.map_or(&[], |memory| memory.data(&self.store))
    }

    fn globals(&mut self) -> Vec<Value> {
        let globals = self.externs.iter().filter_map(|(_, entity)| entity.clone().into_global());
        let mut values = Vec::new();
        for global in globals {
            let val = global.get(&mut self.store);
            values.push(from_val(&self.store, &val));
        }
        values
    }

    fn tables(&mut self) -> Vec<Vec<Value>> {
        let store = &mut self.store;
        let elems = |table: Table| {
            let n = table.size(&*store);
            let elem = |i| {
                let elem = table.get(&mut *store, i).expect("inside the table");
                from_val(&*store, &elem.into())
            };
            (0..n).map(elem).collect()
        };
        let tables = self.externs.iter().filter_map(|(_, entity)| entity.clone().into_table());
        tables.map(elems).collect()
    }

    fn log(&self) -> &[Value] {
        &self.store.data().host.log
    }
}

fn imports(store: &mut Store<Data>, program: &Program) -> Vec<Extern> {
    let mut imports = Vec::new();
    for (i, import) in program.module.imports.iter().enumerate() {
        imports.push(match import.kind {
            ImportKind::Func(ty, _) => {
                import_func(store, &program.module.types[ty as usize]).into()
            }
            ImportKind::Table(ty) => {
                let (elem, null) = match ty.elem {
                    slotvm::ValType::FuncRef => (RefType::FUNCREF, Ref::Func(None)),
                    _ => (RefType::EXTERNREF, Ref::Extern(None)),
                };
                let ty = TableType::new(elem, ty.min, ty.max);
                Table::new(&mut *store, ty, null).expect(ROOM).into()
            }
            ImportKind::Memory(ty) => {
                Memory::new(&mut *store, MemoryType::new(ty.min, ty.max)).expect(ROOM).into()
            }
            ImportKind::Global(ty) => {
                let init = to_val(&mut *store, host::global(i, ty.ty), None);
                let mutability = if ty.mutable { Mutability::Var } else { Mutability::Const };
                let ty = GlobalType::new(val_type(ty.ty), mutability);
                Global::new(&mut *store, ty, init).expect(ROOM).into()
            }
        });
    }
    imports
}

fn import_func(store: &mut Store<Data>, ty: &slotvm::FuncType) -> Func {
    let all = |types: &[slotvm::ValType]| types.iter().map(|&ty| val_type(ty)).collect::<Vec<_>>();
    let func_type = FuncType::new(store.engine(), all(&ty.params), all(&ty.results));
    let types = ty.results.clone();
    let func = move |mut caller: Caller<'_, Data>, args: &[Val], results: &mut [Val]| {
        let args: Vec<Value> = args.iter().map(|arg| from_val(&caller, arg)).collect();
        let values = caller.data_mut().host.call(&args, &types)?;
        for (result, value) in results.iter_mut().zip(values) {
            *result = to_val(&mut caller, value, None);
        }
        Ok(())
    };
    Func::new(store, func_type, func)
}

fn val_type(ty: slotvm::ValType) -> ValType {
    match ty {
        slotvm::ValType::I32 => ValType::I32,
        slotvm::ValType::I64 => ValType::I64,
        slotvm::ValType::F32 => ValType::F32,
        slotvm::ValType::F64 => ValType::F64,
        slotvm::ValType::V128 => ValType::V128,
        slotvm::ValType::FuncRef => ValType::FUNCREF,
        slotvm::ValType::ExternRef => ValType::EXTERNREF,
        slotvm::ValType::Ref => unreachable!("WebAssembly has no such type"),
    }
}

/// Functions are this one.
fn to_val(store: impl AsContextMut, value: Value, func: Option<Func>) -> Val {
    match value {
        Value::I32(value) => Val::I32(value),
        Value::I64(value) => Val::I64(value),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::V128(bits) => Val::V128(bits.into()),
        Value::Func(is_some) => Val::FuncRef(func.filter(|_| is_some)),
        Value::Extern(None) => Val::ExternRef(None),
        Value::Extern(Some(number)) => {
            Val::ExternRef(Some(ExternRef::new(store, number).expect(ROOM)))
        }
    }
}

fn from_val(store: &impl AsContext, val: &Val) -> Value {
    match *val {
        Val::I32(value) => Value::I32(value),
        Val::I64(value) => Value::I64(value),
        Val::F32(bits) => Value::F32(bits),
        Val::F64(bits) => Value::F64(bits),
        Val::V128(vector) => Value::V128(vector.as_u128()),
        Val::FuncRef(func) => Value::Func(func.is_some()),
        Val::ExternRef(None) => Value::Extern(None),
        Val::ExternRef(Some(object)) => {
            let data = object.data(store.as_context()).expect("the store lives");
            let number = data.and_then(|data| data.downcast_ref().copied());
            Value::Extern(Some(number.expect("a number")))
        }
        ref other => unreachable!("programs have no {other:?}"),
    }
}

fn end_of(error: &Error) -> End {
    if error.is::<Failure>() {
        return End::HostFailed;
    }
    match error.downcast_ref() {
        Some(Trap::UnreachableCodeReached) => End::Trapped(TrapCode::Unreachable),
        Some(Trap::MemoryOutOfBounds) => End::Trapped(TrapCode::MemoryOutOfBounds),
        Some(Trap::TableOutOfBounds) => End::Trapped(TrapCode::TableOutOfBounds),
        Some(Trap::IndirectCallToNull) => End::Trapped(TrapCode::IndirectCallToNull),
        Some(Trap::BadSignature) => End::Trapped(TrapCode::BadSignature),
        Some(Trap::IntegerOverflow) => End::Trapped(TrapCode::IntegerOverflow),
        Some(Trap::IntegerDivisionByZero) => End::Trapped(TrapCode::IntegerDivisionByZero),
        Some(Trap::BadConversionToInteger) => End::Trapped(TrapCode::BadConversionToInteger),
        Some(Trap::StackOverflow) => End::Trapped(TrapCode::StackOverflow),
        _ => End::Refused(format!("{error:?}")),
    }
}
