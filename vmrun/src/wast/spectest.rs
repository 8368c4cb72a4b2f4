//! The module `spectest`, which the scripts of the official suite import from.

use slotvm::{
    Error, Global, GlobalType, Linker, Memory, MemoryType, Store, Table, TableType, Val, ValType,
};

/// Defines the exports of `spectest`. Its print functions do nothing.
pub(super) fn define(linker: &mut Linker<()>, store: &mut Store<()>) -> Result<(), Error> {
    const MODULE: &str = "spectest";
    linker.func_wrap(MODULE, "print", || {})?;
    linker.func_wrap(MODULE, "print_i32", |_: i32| {})?;
    linker.func_wrap(MODULE, "print_i64", |_: i64| {})?;
    linker.func_wrap(MODULE, "print_f32", |_: f32| {})?;
    linker.func_wrap(MODULE, "print_f64", |_: f64| {})?;
    linker.func_wrap(MODULE, "print_i32_f32", |_: i32, _: f32| {})?;
    linker.func_wrap(MODULE, "print_f64_f64", |_: f64, _: f64| {})?;
    let globals = [
        ("global_i32", Val::I32(666)),
        ("global_i64", Val::I64(666)),
        ("global_f32", Val::F32(666.6f32.to_bits())),
        ("global_f64", Val::F64(666.6f64.to_bits())),
    ];
    for (name, value) in globals {
        let ty = GlobalType { ty: value.ty(), mutable: false };
        let global = Global::new(&mut *store, ty, value)?;
        linker.define(&*store, MODULE, name, global)?;
    }
    let ty = TableType { elem: ValType::FuncRef, min: 10, max: Some(20) };
    let table = Table::new(&mut *store, ty, Val::FuncRef(None))?;
    linker.define(&*store, MODULE, "table", table)?;
    let memory = Memory::new(&mut *store, MemoryType { min: 1, max: Some(2) })?;
    linker.define(&*store, MODULE, "memory", memory)?;
    Ok(())
}
