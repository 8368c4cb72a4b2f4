//! Parallel definition of a module's functions by several builders that share its declarations.

use std::ops::Range;

use super::stacks::StackId;
use super::{ModuleBuilder, TypeId};
use crate::module::{Data, Elem, ElemItems, Func, Module, SegmentMode};
use crate::types::ValType;

impl ModuleBuilder {
    /// Creates a builder for some of the functions declared here, as a range of indices among those that the
    /// module defines. Ids stay the same. Declare nothing in either builder until
    /// [`ModuleBuilder::take_funcs`] has added the functions to the module.
    pub(crate) fn part(&self, funcs: Range<usize>) -> ModuleBuilder {
        // Code depends on the types of segments, but not on their contents.
        let elem = |ty: ValType| Elem {
            mode: SegmentMode::Passive,
            ty,
            items: ElemItems::Funcs(Vec::new()),
        };
        let data = || Data { mode: SegmentMode::Passive, bytes: Vec::new() };
        let of_funcs = &self.func_types[self.first_func as usize..][funcs.clone()];
        ModuleBuilder {
            module: Module {
                funcs: of_funcs.iter().map(|&TypeId(ty)| Func { ty, ..Func::default() }).collect(),
                elems: self.module.elems.iter().map(|segment| elem(segment.ty)).collect(),
                datas: self.module.datas.iter().map(|_| data()).collect(),
                ..Module::default()
            },
            types: self.types.clone(),
            func_types: self.func_types.clone(),
            first_func: self.first_func + funcs.start as u32,
            defined: vec![false; funcs.len()],
            tables: self.tables.clone(),
            globals: self.globals.clone(),
            n_memories: self.n_memories,
            ..ModuleBuilder::default()
        }
    }

    /// Takes over the functions that a part has defined.
    pub(crate) fn take_funcs(&mut self, part: ModuleBuilder) {
        let stacks = self.stacks.merge(&part.stacks);
        let place = (part.first_func - self.first_func) as usize;
        for (i, (mut func, defined)) in
            (place..).zip(part.module.funcs.into_iter().zip(part.defined))
        {
            for label in &mut func.labels {
                label.shape = stacks[StackId::from_shape(label.shape).index()].to_shape();
            }
            self.module.funcs[i] = func;
            self.defined[i] |= defined;
        }
        self.module.names.locals.extend(part.module.names.locals);
        self.module.names.labels.extend(part.module.names.labels);
        if let Some(error) = part.error {
            self.fail_with(error);
        }
    }
}
