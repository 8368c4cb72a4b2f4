//! slotvm: the interpreter, and native code in every slot mode.

use slotvm::{
    AsContext, AsContextMut, Caller, Config, Engine, Error, Extern, ExternRef, Func, FuncType,
    Global, Instance, Limits, Memory, Module, SlotMode, Store, Table, Tier, Val,
};
use slotvm_bytecode::module::ImportKind;

use super::{Compiled, End};
use crate::host::{self, Failure, Host};
use crate::program::{Call, Program};
use crate::value::Value;

const ROOM: &str = "a new store has room";

/// The interpreter, which is the reference, and all slot modes.
pub(super) fn all() -> Vec<Box<dyn super::Engine>> {
    let mut config = Config::new();
    let limits = Limits {
        memory_pages_max: host::MEMORY_PAGES_MAX,
        table_elems_max: host::TABLE_ELEMS_MAX,
        ..Limits::default()
    };
    config.limits(limits).max_native_stack(host::STACK_BYTES);
    let engine = |name: String, config: &Config| {
        let engine = Engine::new(config).expect("the configuration is valid");
        Box::new(Slotvm { name, engine }) as Box<dyn super::Engine>
    };
    let mut engines = vec![engine("the interpreter".into(), config.tier(Tier::Interpreter))];
    config.tier(Tier::Jit);
    for mode in SlotMode::ALL {
        engines.push(engine(format!("native code, {mode}"), config.slots(mode)));
    }
    engines
}

struct Slotvm {
    name: String,
    engine: Engine,
}

impl super::Engine for Slotvm {
    fn name(&self) -> &str {
        &self.name
    }

    fn compile(&self, wasm: &[u8]) -> Result<Box<dyn Compiled>, String> {
        let module = Module::new(&self.engine, wasm).map_err(|error| error.to_string())?;
        Ok(Box::new(module))
    }
}

impl Compiled for Module {
    fn instantiate(&self, program: &Program) -> (Box<dyn super::Instance>, Result<(), End>) {
        let mut store = Store::new(self.engine(), Host::default());
        let imports = imports(&mut store, program);
        let (externs, end) = match Instance::new(&mut store, self, &imports) {
            Ok(instance) => (instance.exports(&store), Ok(())),
            Err(error) => {
                let unnamed = imports.into_iter().map(|import| (String::new(), import));
                (unnamed.collect(), Err(end_of(&error)))
            }
        };
        (Box::new(Running { store, externs }), end)
    }
}

struct Running {
    store: Store<Host>,
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
        let mut results: Vec<Val> = ty.results.iter().map(|&ty| Val::default_for(ty)).collect();
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
            (0..table.size(&self.store)).map(|i| from_val(&self.store, &elem(i))).collect()
        };
        self.externs.iter().filter_map(|(_, entity)| entity.into_table()).map(elems).collect()
    }

    fn log(&self) -> &[Value] {
        &self.store.data().log
    }
}

fn imports(store: &mut Store<Host>, program: &Program) -> Vec<Extern> {
    let mut imports = Vec::new();
    for (i, import) in program.module.imports.iter().enumerate() {
        imports.push(match import.kind {
            ImportKind::Func(ty, _) => {
                import_func(store, &program.module.types[ty as usize]).into()
            }
            ImportKind::Table(ty) => {
                Table::new(&mut *store, ty, Val::default_for(ty.elem)).expect(ROOM).into()
            }
            ImportKind::Memory(ty) => Memory::new(&mut *store, ty).expect(ROOM).into(),
            ImportKind::Global(ty) => {
                let init = to_val(&mut *store, host::global(i, ty.ty), None);
                Global::new(&mut *store, ty, init).expect(ROOM).into()
            }
        });
    }
    imports
}

fn import_func(store: &mut Store<Host>, ty: &FuncType) -> Func {
    let types = ty.results.clone();
    let func = move |mut caller: Caller<'_, Host>, args: &[Val], results: &mut [Val]| {
        let args: Vec<Value> = args.iter().map(|arg| from_val(&caller, arg)).collect();
        let values = caller.data_mut().call(&args, &types).map_err(Error::host)?;
        for (result, value) in results.iter_mut().zip(values) {
            *result = to_val(&mut caller, value, None);
        }
        Ok(())
    };
    Func::new(store, ty.clone(), func).expect(ROOM)
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
        Val::ExternRef(object) => {
            let number = |object: ExternRef| *object.data(store).downcast_ref().expect("a number");
            Value::Extern(object.map(number))
        }
        Val::Ref(_) => unreachable!("WebAssembly has no such type"),
    }
}

fn end_of(error: &Error) -> End {
    match error.trap_code() {
        Some(code) => End::Trapped(code),
        None => match error {
            Error::Host(error) if error.is::<Failure>() => End::HostFailed,
            error => End::Refused(error.to_string()),
        },
    }
}
