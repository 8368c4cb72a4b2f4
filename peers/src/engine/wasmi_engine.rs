//! wasmi, as it comes.

use slotvm::TrapCode;
use slotvm_bytecode::module::ImportKind;
use wasmi::errors::{ErrorKind, HostError, InstantiationError};
use wasmi::{
    AsContext, AsContextMut, Caller, Config, Engine, Error, Extern, ExternRef, F32, F64, Func,
    FuncType, Global, Instance, Memory, MemoryType, Module, Mutability, Nullable, Ref, RefType,
    Store, StoreLimits, StoreLimitsBuilder, Table, TableType, Val, ValType,
};

use super::{Compiled, End};
use crate::host::{self, Failure, Host};
use crate::program::{Call, FUEL, Program};
use crate::value::Value;

const ROOM: &str = "a new store has room";

impl HostError for Failure {}

pub(super) struct Wasmi {
    engine: Engine,
}

/// Data of stores.
struct Data {
    host: Host,
    limits: StoreLimits,
}

impl Wasmi {
    pub(super) fn new() -> Wasmi {
        let mut config = Config::default();
        config.set_max_recursion_depth(2 * FUEL as usize).set_max_stack_height(host::STACK_BYTES);
        config.wasm_wide_arithmetic(true);
        Wasmi { engine: Engine::new(&config) }
    }
}

impl super::Engine for Wasmi {
    fn name(&self) -> &str {
        super::WASMI
    }

    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn Compiled>, String> {
        let module = Module::new(&self.engine, wasm).map_err(|error| error.to_string())?;
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
        let mut imports = imports(&mut store, program);
        // It wants them in this order, each kind in that of the module.
        imports.sort_by_key(|import| match import {
            Extern::Func(_) => 0,
            Extern::Table(_) => 1,
            Extern::Memory(_) => 2,
            Extern::Global(_) => 3,
        });
        let (externs, end) = match Instance::new(&mut store, self, &imports) {
            Ok(instance) => {
                let names = program.module.exports.iter().map(|export| &export.name);
                let named = |name: &String| {
                    let export = instance.get_export(&store, name).expect("it is exported");
                    (name.clone(), export)
                };
                (names.map(named).collect(), Ok(()))
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
        externs.filter_map(|(name, entity)| Some((name, entity.into_func()?)))
    }
}

impl super::Instance for Running {
    fn call(&mut self, call: &Call) -> End {
        let (_, func) = self.funcs().find(|(name, _)| **name == call.func).expect("it is exported");
        let first = self.funcs().next().map(|(_, func)| func);
        let args: Vec<Val> =
            call.args.iter().map(|&arg| to_val(&mut self.store, arg, first)).collect();
        let ty = func.ty(&self.store);
        let mut results: Vec<Val> =
            ty.results().iter().map(|&ty| Val::default_for_ty(ty)).collect();
        match func.call(&mut self.store, &args, &mut results) {
            Ok(()) => End::Returned(results.iter().map(|val| from_val(&self.store, val)).collect()),
            Err(error) => end_of(&error),
        }
    }

    fn memory(&self) -> &[u8] {
        let memory = self.externs.iter().find_map(|(_, entity)| entity.into_memory());
        memory.map_or(&[], |memory| memory.data(&self.store))
    }

    fn globals(&mut self) -> Vec<Value> {
        let globals = self.externs.iter().filter_map(|(_, entity)| entity.into_global());
        globals.map(|global| from_val(&self.store, &global.get(&self.store))).collect()
    }

    fn tables(&mut self) -> Vec<Vec<Value>> {
        let elems = |table: Table| {
            let elem = |i| table.get(&self.store, i).expect("inside the table");
            (0..table.size(&self.store)).map(|i| from_val(&self.store, &elem(i).into())).collect()
        };
        self.externs.iter().filter_map(|(_, entity)| entity.into_table()).map(elems).collect()
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
                let elem = match ty.elem {
                    slotvm::ValType::FuncRef => RefType::Func,
                    _ => RefType::Extern,
                };
                let ty = TableType::new(elem, ty.min, ty.max);
                Table::new(&mut *store, ty, Ref::null(elem)).expect(ROOM).into()
            }
            ImportKind::Memory(ty) => {
                Memory::new(&mut *store, MemoryType::new(ty.min, ty.max)).expect(ROOM).into()
            }
            ImportKind::Global(ty) => {
                let init = to_val(&mut *store, host::global(i, ty.ty), None);
                let mutability = if ty.mutable { Mutability::Var } else { Mutability::Const };
                Global::new(&mut *store, init, mutability).into()
            }
        });
    }
    imports
}

fn import_func(store: &mut Store<Data>, ty: &slotvm::FuncType) -> Func {
    let all = |types: &[slotvm::ValType]| types.iter().map(|&ty| val_type(ty)).collect::<Vec<_>>();
    let func_type = FuncType::new(all(&ty.params), all(&ty.results));
    let types = ty.results.clone();
    let func = move |mut caller: Caller<'_, Data>, args: &[Val], results: &mut [Val]| {
        let args: Vec<Value> = args.iter().map(|arg| from_val(&caller, arg)).collect();
        let values = caller.data_mut().host.call(&args, &types).map_err(Error::host)?;
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
        slotvm::ValType::FuncRef => ValType::FuncRef,
        slotvm::ValType::ExternRef => ValType::ExternRef,
        slotvm::ValType::Ref => unreachable!("WebAssembly has no such type"),
    }
}

/// Functions are this one.
fn to_val(store: impl AsContextMut, value: Value, func: Option<Func>) -> Val {
    match value {
        Value::I32(value) => Val::I32(value),
        Value::I64(value) => Val::I64(value),
        Value::F32(bits) => Val::F32(F32::from_bits(bits)),
        Value::F64(bits) => Val::F64(F64::from_bits(bits)),
        Value::V128(bits) => Val::V128(bits.into()),
        Value::Func(is_some) => {
            Val::FuncRef(func.filter(|_| is_some).map_or(Nullable::Null, Nullable::Val))
        }
        Value::Extern(None) => Val::ExternRef(Nullable::Null),
        Value::Extern(Some(number)) => Val::ExternRef(Nullable::Val(ExternRef::new(store, number))),
    }
}

fn from_val(store: &impl AsContext, val: &Val) -> Value {
    match val {
        Val::I32(value) => Value::I32(*value),
        Val::I64(value) => Value::I64(*value),
        Val::F32(value) => Value::F32(value.to_bits()),
        Val::F64(value) => Value::F64(value.to_bits()),
        Val::FuncRef(func) => Value::Func(!func.is_null()),
        Val::ExternRef(Nullable::Null) => Value::Extern(None),
        Val::ExternRef(Nullable::Val(object)) => {
            let number = object.data(store.as_context()).downcast_ref().copied();
            Value::Extern(Some(number.expect("a number")))
        }
        Val::V128(vector) => Value::V128(vector.as_u128()),
    }
}

fn end_of(error: &Error) -> End {
    if error.downcast_ref::<Failure>().is_some() {
        return End::HostFailed;
    }
    if let ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. }) =
        error.kind()
    {
        return End::Trapped(TrapCode::TableOutOfBounds);
    }
    match error.as_trap_code() {
        Some(wasmi::TrapCode::UnreachableCodeReached) => End::Trapped(TrapCode::Unreachable),
        Some(wasmi::TrapCode::MemoryOutOfBounds) => End::Trapped(TrapCode::MemoryOutOfBounds),
        Some(wasmi::TrapCode::TableOutOfBounds) => End::Trapped(TrapCode::TableOutOfBounds),
        Some(wasmi::TrapCode::IndirectCallToNull) => End::Trapped(TrapCode::IndirectCallToNull),
        Some(wasmi::TrapCode::BadSignature) => End::Trapped(TrapCode::BadSignature),
        Some(wasmi::TrapCode::IntegerOverflow) => End::Trapped(TrapCode::IntegerOverflow),
        Some(wasmi::TrapCode::IntegerDivisionByZero) => {
            End::Trapped(TrapCode::IntegerDivisionByZero)
        }
        Some(wasmi::TrapCode::BadConversionToInteger) => {
            End::Trapped(TrapCode::BadConversionToInteger)
        }
        Some(wasmi::TrapCode::StackOverflow) => End::Trapped(TrapCode::StackOverflow),
        _ => End::Refused(format!("{error:?}")),
    }
}
