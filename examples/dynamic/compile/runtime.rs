//! Code that is not the program's: how a module starts, and maps, which all modules of a dialogue share.

use slotvm::builder::{BuildError, FuncId, FunctionBuilder, LabelId, LocalId, ModuleBuilder};
use slotvm::{Op, ValType::FuncRef, ValType::I32, ValType::I64};

use super::Unit;
use super::function::Code;
use crate::heap::{self, TEXT_HASH_OFFSET};
use crate::syntax::Program;
use crate::value::{self, Value};

impl Unit<'_> {
    /// Returns the place of a function in the table.
    pub(crate) fn in_table(&mut self, function: FuncId) -> u32 {
        self.closures.push(function);
        self.n_functions + self.closures.len() as u32 - 1
    }

    /// Defines the function with which a module starts: it fills the table, makes the strings and functions of the program,
    /// and goes on with `main`.
    pub(crate) fn start(
        &mut self,
        module: &mut ModuleBuilder,
        program: &Program,
        start: FuncId,
        main: FuncId,
    ) -> Result<(), BuildError> {
        let mut functions = Vec::new();
        for function in &program.functions {
            let (id, _) = self.direct[&function.name];
            functions.push((self.globals[&function.name], self.in_table(id)));
        }
        let elements = module.passive_elem("", &self.closures);
        let n_closures = self.closures.len() as i32;
        let mut texts: Vec<_> =
            self.texts.iter().map(|(text, &global)| (global, text.clone())).collect();
        texts.sort();
        let texts: Vec<_> =
            texts.into_iter().map(|(global, text)| (global, self.heap.add_text(text))).collect();
        let new_globals = std::mem::take(&mut self.new_globals);
        let function = crate::syntax::Function {
            name: String::new(),
            n_params: 0,
            locals: Vec::new(),
            captures: Vec::new(),
            body: Vec::new(),
        };
        let mut jobs = Vec::new();
        let (table, base) = (self.table, self.n_functions as i32);
        let mut code = Code::new(module, self, &mut jobs, &function, start);
        code.f.ref_null(FuncRef).i32_const(n_closures).table(Op::TableGrow, table).op(Op::Drop);
        code.f.i32_const(base).i32_const(0).i32_const(n_closures).table_init(elements, table);
        for (global, text) in texts {
            code.number(text);
            code.host("text");
            code.f.op(Op::RefReinterpretI64).global_set(global);
        }
        for global in new_globals {
            code.constant(Value::NIL);
            code.f.global_set(global);
        }
        for (global, index) in functions {
            let address = code.allocate(2);
            code.header(address, heap::FUNCTION, 1);
            code.f
                .local_get(address)
                .i64_const(index.into())
                .store(Op::I64Store, 8)
                .local_get(address);
            code.tagged(value::FUNCTION);
            code.f.global_set(global);
        }
        code.constant(Value::NIL);
        code.f.return_call(main);
        code.f.finish()
    }

    /// Defines what the first module of a dialogue has for the others.
    pub(crate) fn define_shared(&mut self, module: &mut ModuleBuilder) -> Result<(), BuildError> {
        module.export_global("next", self.next);
        module.export_global("limit", self.limit);
        module.export_memory("memory", self.memory);
        module.export_table("functions", self.table);
        module.export_func("map_get", self.map_get);
        module.export_func("map_set", self.map_set);
        self.define_map_get(module)?;
        self.define_map_set(module)
    }

    fn define_map_get(&mut self, module: &mut ModuleBuilder) -> Result<(), BuildError> {
        let slow = self.imports["get_index"];
        let mut f = module.define(self.map_get);
        let (map, key) = (f.param(0), f.param(1));
        let (call, none) = (f.label(), f.label());
        let entry = find(&mut f, [map, key], call, none);
        f.local_get(entry).load(Op::I64Load, 16).op(Op::RefReinterpretI64).ret();
        f.bind(none).i64_const(Value::NIL.0 as i64).op(Op::RefReinterpretI64).ret();
        f.bind(call)
            .local_get(map)
            .op(Op::I64ReinterpretRef)
            .local_get(key)
            .op(Op::I64ReinterpretRef);
        f.call(slow).op(Op::RefReinterpretI64).ret();
        f.finish()
    }

    fn define_map_set(&mut self, module: &mut ModuleBuilder) -> Result<(), BuildError> {
        let slow = self.imports["set_index"];
        let mut f = module.define(self.map_set);
        let (map, key, item) = (f.param(0), f.param(1), f.param(2));
        let call = f.label();
        let entry = find(&mut f, [map, key], call, call);
        f.local_get(entry)
            .local_get(item)
            .op(Op::I64ReinterpretRef)
            .store(Op::I64Store, 16)
            .ret()
            .bind(call);
        for param in [map, key, item] {
            f.local_get(param).op(Op::I64ReinterpretRef);
        }
        f.call(slow).op(Op::Drop).ret();
        f.finish()
    }
}

/// Emits the search for a key in a map, as [`crate::heap`] lays it out. Control continues with the entry less 8 in the
/// local. A double goes to `slow`, since it may be an integer.
fn find(
    f: &mut FunctionBuilder<'_>,
    [map, key]: [LocalId; 2],
    slow: LabelId,
    none: LabelId,
) -> LocalId {
    let (bits, other, tag) = (f.local(I64), f.local(I64), f.local(I64));
    let (hash, block, mask, entry) = (f.local(I32), f.local(I32), f.local(I32), f.local(I32));
    let (plain, next, found) = (f.label(), f.label(), f.label());
    f.local_get(key)
        .op(Op::I64ReinterpretRef)
        .local_tee(bits)
        .i64_const(48)
        .op(Op::I64ShrU)
        .local_tee(tag);
    f.i64_const(value::ATOM as i64).op(Op::I64LtU).br_if(slow);
    f.local_get(bits).op(Op::I32WrapI64).local_set(hash);
    f.local_get(tag).i64_const(value::TEXT as i64).op(Op::I64Ne).br_if(plain);
    f.local_get(bits)
        .op(Op::I32WrapI64)
        .load(Op::I32Load, TEXT_HASH_OFFSET)
        .local_set(hash)
        .bind(plain);
    f.local_get(map)
        .op(Op::I64ReinterpretRef)
        .op(Op::I32WrapI64)
        .load(Op::I32Load, 8)
        .local_tee(block);
    // A block has two items for each entry, and a power of two of entries.
    f.load(Op::I32Load, 4).i32_const(1).op(Op::I32ShrU).i32_const(1).op(Op::I32Sub).local_set(mask);
    f.local_get(hash).local_get(hash).i32_const(7).op(Op::I32ShrU).op(Op::I32Xor);
    f.local_get(hash).i32_const(15).op(Op::I32ShrU).op(Op::I32Xor).local_set(hash);
    f.bind(next).local_get(hash).local_get(mask).op(Op::I32And).i32_const(4).op(Op::I32Shl);
    f.local_get(block).op(Op::I32Add).local_tee(entry).load(Op::I64Load, 8).local_tee(other);
    f.local_get(bits).op(Op::I64Eq).br_if(found);
    f.local_get(other).op(Op::I64Eqz).br_if(none);
    f.local_get(hash).i32_const(1).op(Op::I32Add).local_set(hash).br(next).bind(found);
    entry
}
