//! A module whose functions are defined by several builders, which know what is declared.

use std::ops::Range;

use super::stacks::StackId;
use super::{ModuleBuilder, TypeId};
use crate::module::{Data, Elem, ElemItems, Func, Module, SegmentMode};
use crate::types::ValType;

impl ModuleBuilder {
    /// A builder that can define some of the functions declared here, given by their places among those
    /// that the module defines. All that code refers to keeps its ids. Nothing is to be declared any more,
    /// there or here, until [`ModuleBuilder::take_funcs`] has put the functions into the module.
    pub(crate) fn part(&self, funcs: Range<usize>) -> ModuleBuilder {
        // Code depends on the types of segments, and not on what is in them.
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
