//! Calls that make instances.

use slotvm::{Error, Func, Global, GlobalType, Instance, Linker, ValType};

use super::ends::{end, ended, equal};
use super::model::{End, Glob, Inst, Kind, MAIN_FUNCS, Mem, NONE, Tab, Value};
use super::world::{INSTANCES_MAX, act, acts};
use super::{Room, Run, STORES, WRONG_STORE, quietly};
use crate::choices::Choices;

impl Run<'_> {
    pub(super) fn instantiate_main(
        &mut self,
        at: usize,
        choices: &mut Choices<'_>,
    ) -> Result<(), String> {
        let by_linker = choices.percent(60);
        let foreign = (!by_linker).then(|| self.handles.funcs.any(choices)).flatten();
        let world = self.world;
        let Room { id, store, model } = &mut self.rooms[at];
        let fits = model.n_instances < INSTANCES_MAX
            && model.allows_pages(0, 1, Some(4))
            && model.allows_elems(0, 3, Some(20));
        let mut expected = if fits { NONE } else { End::Error };
        let found = quietly(|| match foreign {
            None => world.linker.instantiate(&mut *store, &world.main),
            // Imported with the type of the first one, which may be wrong.
            Some(add) => {
                let act = Func::wrap(&mut *store, act)?;
                Instance::new(&mut *store, &world.main, &[add.it.into(), act.into()])
            }
        });
        if let Some(add) = foreign {
            if add.room != *id {
                expected = End::Panic(WRONG_STORE);
            } else if add.kind != Kind::Add {
                let is_like = add.kind.ty() == Kind::Add.ty();
                // The model has no other function in this place.
                return if is_like { Ok(()) } else { end("Instance::new", found, &End::Error) };
            }
        }
        let instance = match ended("instantiate", found, &expected)? {
            Some(instance) => instance,
            None => return Ok(()),
        };
        model.n_instances += 1;
        self.add_main(at, instance)
    }

    /// Makes handles of all exports of an instance of the first module.
    pub(super) fn add_main(&mut self, at: usize, instance: Instance) -> Result<(), String> {
        let Room { id, store, model } = &mut self.rooms[at];
        let inst = model.insts.len();
        let (mem, tab) = (model.mems.len(), model.tabs.len());
        model.insts.push(Inst { mem, tab, refs: tab + 1 });
        model.mems.push(Mem { pages: 1, max: Some(4), bytes: Default::default() });
        let none = "an export is missing";
        for name in MAIN_FUNCS {
            let func = instance.get_func(&*store, name).ok_or(none)?;
            model.kinds.push((func, Kind::Main(inst, name)));
            self.handles.funcs.add(*id, Kind::Main(inst, name), func);
        }
        let func = |name| Value::Func(instance.get_func(&*store, name));
        let elems = vec![func("id"), func("div"), Value::Func(None)];
        model.tabs.push(Tab { elems, max: Some(20), null: Value::Func(None) });
        let elems = vec![Value::Ref(None); 2];
        model.tabs.push(Tab { elems, max: Some(6), null: Value::Ref(None) });
        model.globs.push(Glob { mutable: true, value: Value::I64(5) });
        model.globs.push(Glob { mutable: false, value: Value::I32(42) });
        let n = model.globs.len();
        self.handles.mems.add(*id, mem, instance.get_memory(&*store, "m").ok_or(none)?);
        self.handles.tabs.add(*id, tab, instance.get_table(&*store, "t").ok_or(none)?);
        self.handles.tabs.add(*id, tab + 1, instance.get_table(&*store, "x").ok_or(none)?);
        self.handles.globs.add(*id, n - 2, instance.get_global(&*store, "g").ok_or(none)?);
        self.handles.globs.add(*id, n - 1, instance.get_global(&*store, "c").ok_or(none)?);
        self.handles.spins.add(*id, (), instance.get_func(&*store, "spin").ok_or(none)?);
        Ok(())
    }

    pub(super) fn instantiate_user(
        &mut self,
        at: usize,
        choices: &mut Choices<'_>,
    ) -> Result<(), String> {
        let handles = &self.handles;
        let (Some(mem), Some(tab)) = (handles.mems.any(choices), handles.tabs.any(choices)) else {
            return Ok(());
        };
        let (Some(glob), Some(func)) = (handles.globs.any(choices), handles.funcs.any(choices))
        else {
            return Ok(());
        };
        let imports = [mem.it.into(), tab.it.into(), glob.it.into(), func.it.into()];
        let world = self.world;
        // The definitions may come from a linker in another store; the instance is made in this one.
        let by = choices.percent(40).then(|| &self.rooms[choices.below(STORES)]);
        let pre = match by {
            None => None,
            Some(by) => {
                let are_its =
                    [mem.room, tab.room, glob.room, func.room].iter().all(|&r| r == by.id);
                let expected = if are_its { NONE } else { End::Panic(WRONG_STORE) };
                let found = quietly(|| {
                    let mut linker = Linker::new(&world.engine);
                    for (import, item) in world.user.imports().zip(imports) {
                        linker.define(&by.store, import.module(), import.name(), item)?;
                    }
                    linker.instantiate_pre(&world.user)
                });
                let Some(pre) = ended("Linker::define", found, &expected)? else { return Ok(()) };
                Some(pre)
            }
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let is_here = [mem.room, tab.room, glob.room, func.room].iter().all(|room| room == id);
        let fits = is_here
            && model.n_instances < INSTANCES_MAX
            && model.mems[mem.kind].pages >= 1
            && model.tabs[tab.kind].null == Value::Func(None)
            && !model.tabs[tab.kind].elems.is_empty()
            && matches!(model.globs[glob.kind], Glob { mutable: true, value: Value::I64(_) })
            && func.kind.ty() == Kind::Add.ty();
        let expected = match (is_here, fits) {
            (false, _) => End::Panic(WRONG_STORE),
            (true, true) => NONE,
            (true, false) => End::Error,
        };
        let found = quietly(|| match &pre {
            Some(pre) => pre.instantiate(&mut *store),
            None => Instance::new(&mut *store, &world.user, &imports),
        });
        let Some(instance) = ended("Instance::new", found, &expected)? else { return Ok(()) };
        model.n_instances += 1;
        model.mems[mem.kind].bytes.insert(70, b'x');
        if let Value::I64(value) = &mut model.globs[glob.kind].value {
            *value = value.wrapping_add(1);
        }
        let exports = [("peek", Kind::Peek(mem.kind)), ("through", func.kind)];
        for (name, kind) in exports {
            let func = instance.get_func(&*store, name).ok_or("an export is missing")?;
            model.kinds.push((func, kind));
            self.handles.funcs.add(*id, kind, func);
        }
        Ok(())
    }

    /// The start function runs once, whatever the host does.
    pub(super) fn instantiate_starts(
        &mut self,
        at: usize,
        choices: &mut Choices<'_>,
    ) -> Result<(), String> {
        let what = choices.below(acts::N + 1) as i32;
        let world = self.world;
        let Room { store, model, .. } = &mut self.rooms[at];
        let made = quietly(|| {
            let act = Func::wrap(&mut *store, act)?;
            let ty = GlobalType { ty: ValType::I64, mutable: true };
            let count = Global::new(&mut *store, ty, Value::I64(0).val())?;
            let ty = GlobalType { ty: ValType::I32, mutable: false };
            let what = Global::new(&mut *store, ty, Value::I32(what).val())?;
            Ok::<_, Error>((act, count, what))
        })?;
        let (act, count, what_global) = made.map_err(|error| error.to_string())?;
        let fits = model.n_instances < INSTANCES_MAX;
        let mut expected = End::Error;
        if fits {
            model.n_instances += 1;
            expected = match model.act(what, None) {
                End::Values(_) => NONE,
                end => end,
            };
        }
        let imports = [act.into(), count.into(), what_global.into()];
        let found = quietly(|| Instance::new(&mut *store, &world.starts, &imports));
        ended("Instance::new with a start function", found, &expected)?;
        let n = Value::of(&count.get(&*store));
        let runs = Value::I64(i64::from(fits));
        equal("runs of the start function", &n, &runs)
    }
}
