//! Other code for functions of a module that is there.

use std::sync::Arc;

use super::stacks::{StackId, Stacks};
use super::{FuncId, FunctionBuilder, ModuleBuilder, NameSpace, TypeId};
use crate::module::Module;
use crate::verified::VerifiedModule;

impl ModuleBuilder {
    /// Starts with all that a module has. Its entities keep their ids;
    /// [`ModuleBuilder::redefine`] gives its functions other code.
    pub fn of(module: &VerifiedModule) -> ModuleBuilder {
        let func_types = (0..module.n_funcs()).map(|func| TypeId(module.func_type_index(func)));
        let mut builder = ModuleBuilder {
            func_types: func_types.collect(),
            first_func: module.n_imported_funcs(),
            defined: vec![true; module.module().funcs.len()],
            tables: module.tables().to_vec(),
            globals: module.globals().to_vec(),
            n_memories: module.memories().len() as u32,
            module: module.module().clone(),
            ..ModuleBuilder::default()
        };
        for ty in std::mem::take(&mut builder.module.types) {
            let (id, ty) = (TypeId(builder.types.len() as u32), Arc::new(ty));
            builder.type_ids.entry(Arc::clone(&ty)).or_insert(id);
            builder.types.push(ty);
        }
        builder.stacks = take_shapes(&mut builder.module);
        let names = &builder.module.names;
        let lists = [
            &names.funcs,
            &names.tables,
            &names.memories,
            &names.globals,
            &names.elems,
            &names.datas,
        ];
        builder.names = lists.map(|list| {
            let used = list.iter().map(|(_, name)| name.clone()).collect();
            NameSpace { used, ..NameSpace::default() }
        });
        builder
    }

    /// Starts other code for a function that has some, with other names for its locals and labels. It
    /// counts from [`FunctionBuilder::finish`] on; until then the function stays as it is.
    pub fn redefine(&mut self, func: FuncId) -> FunctionBuilder<'_> {
        FunctionBuilder::new(self, func, true)
    }
}

/// Takes the shapes out of a module; its labels then have numbers of the stacks instead.
fn take_shapes(module: &mut Module) -> Stacks {
    let mut stacks = Stacks::default();
    let mut ids = vec![StackId::EMPTY];
    for shape in std::mem::take(&mut module.shapes) {
        ids.push(stacks.push(ids[shape.parent.0 as usize], shape.ty));
    }
    for label in module.funcs.iter_mut().flat_map(|func| &mut func.labels) {
        label.shape = ids[label.shape.0 as usize].to_shape();
    }
    stacks
}
