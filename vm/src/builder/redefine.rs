//! Replacement of the bodies of functions of an existing module.

use std::sync::Arc;

use super::{FuncId, FunctionBuilder, ModuleBuilder, NameSpace, TypeId};
use crate::module::Module;
use crate::stacks::{StackId, Stacks};
use crate::verified::VerifiedModule;

impl ModuleBuilder {
    /// Creates a builder from an existing module. Its entities keep their ids; [`ModuleBuilder::redefine`]
    /// replaces the code of its functions.
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

    /// Starts new code for a function that already has code, with new names for its locals and labels. It
    /// takes effect with [`FunctionBuilder::finish`]; until then the function is unchanged.
    pub fn redefine(&mut self, func: FuncId) -> FunctionBuilder<'_> {
        FunctionBuilder::new(self, func, true)
    }
}

/// Takes the shapes out of a module. The shapes of labels become numbers of the returned stacks.
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
