//! Operations on memories, tables, globals and references, and their creation by the host.

use slotvm::{
    Error, ExternRef, Func, Global, GlobalType, Memory, MemoryType, Table, TableType, ValType,
};

use super::ends::{end, ended, equal, old_size, values};
use super::handles::Held;
use super::model::{End, Glob, Kind, Mem, NONE, Tab, Value};
use super::world::act;
use super::{Room, Run, WRONG_STORE, quietly};
use crate::choices::Choices;

impl Run<'_> {
    pub(super) fn memory(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: mem, it: memory }) = self.handles.mems.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let more = choices.pick(&[0, 1, 2, 9, 65_536, 1 << 32, u64::MAX]);
        let found = quietly(|| memory.grow(&mut *store, more));
        let found = found.map(|result| result.map(|old| vec![Value::I64(old as i64)]));
        let expected = match room == *id {
            false => End::Panic(WRONG_STORE),
            true if more > u64::from(u32::MAX) => End::Error,
            true => old_size(model.grow_memory(mem, more)),
        };
        values("Memory::grow", found, &expected)
    }

    /// Reads and writes bytes at an address.
    pub(super) fn access(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: mem, it: memory }) = self.handles.mems.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let address = choices.pick(&[0, 8, 70, 65_533, 65_536, 131_071, 1 << 32, usize::MAX - 1]);
        let bytes = [choices.byte(), choices.byte(), choices.byte()];
        let is_write = choices.percent(50);
        let mut read = [0; 3];
        let found = quietly(|| match is_write {
            true => memory.write(&mut *store, address, &bytes),
            false => memory.read(&*store, address, &mut read),
        });
        let found = found.map(|result| result.map_err(Error::from));
        if room != *id {
            return end("an access", found, &End::Panic(WRONG_STORE));
        }
        let mem = &mut model.mems[mem];
        let places = (address as u64..).take(3);
        if !mem.has(address as u64, 3) {
            return end("an access", found, &End::Error);
        }
        end("an access", found, &NONE)?;
        match is_write {
            true => mem.bytes.extend(places.zip(bytes)),
            false => equal("bytes", &read.to_vec(), &places.map(|at| mem.byte(at)).collect())?,
        }
        Ok(())
    }

    pub(super) fn table(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: tab, it: table }) = self.handles.tabs.any(choices) else {
            return Ok(());
        };
        let null = Value::Func(None);
        let like = if choices.percent(90) { Some(null) } else { None };
        let value = self.value(like, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        if room != *id {
            let found = quietly(|| table.get(&*store, 0));
            let found = found.map(|elem| Ok::<_, Error>(elem.is_some()));
            return end("Table::get", found, &End::Panic(WRONG_STORE));
        }
        let fits = value.is_like(model.tabs[tab].null);
        let wrong = match (fits, is_value_here) {
            (false, _) => Some(End::Error),
            (true, false) => Some(End::Panic(WRONG_STORE)),
            (true, true) => None,
        };
        let index = choices.pick(&[0, 1, 2, 3, 7, 1 << 32, u64::MAX]);
        match choices.below(3) {
            0 => {
                let found = table.get(&*store, index).map(|elem| Value::of(&elem));
                let elem = usize::try_from(index).ok().and_then(|i| model.tabs[tab].elems.get(i));
                equal("an element", &found, &elem.copied())
            }
            1 => {
                let elem = model.tabs[tab].elems.get_mut(index as usize);
                let expected = wrong.unwrap_or_else(|| match elem {
                    None => End::Error,
                    Some(elem) => {
                        *elem = value;
                        NONE
                    }
                });
                end("Table::set", quietly(|| table.set(&mut *store, index, value.val())), &expected)
            }
            _ => {
                let expected = wrong.unwrap_or_else(|| match index > u64::from(u32::MAX) {
                    true => End::Error,
                    false => old_size(model.grow_table(tab, index, value)),
                });
                let found = quietly(|| table.grow(&mut *store, index, value.val()));
                let found = found.map(|result| result.map(|old| vec![Value::I64(old as i64)]));
                values("Table::grow", found, &expected)
            }
        }
    }

    pub(super) fn global(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind: glob, it: global }) = self.handles.globs.any(choices) else {
            return Ok(());
        };
        let like = if choices.percent(80) { Some(Value::I64(0)) } else { None };
        let value = self.value(like, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        let found = quietly(|| Ok::<_, Error>(vec![Value::of(&global.get(&*store))]));
        if room != *id {
            return values("Global::get", found, &End::Panic(WRONG_STORE));
        }
        let glob = &mut model.globs[glob];
        values("Global::get", found, &End::Values(vec![glob.value]))?;
        let expected = if !value.is_like(glob.value) {
            End::Error
        } else if !is_value_here {
            End::Panic(WRONG_STORE)
        } else if !glob.mutable {
            End::Error
        } else {
            glob.value = value;
            NONE
        };
        end("Global::set", quietly(|| global.set(&mut *store, value.val())), &expected)
    }

    pub(super) fn make(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let value = self.value(None, choices);
        let is_value_here = self.is_of(value, self.rooms[at].id);
        let Room { id, store, model } = &mut self.rooms[at];
        let min = choices.pick(&[0, 1, 2, 9, 41]);
        let max = choices.percent(50).then_some(min + 1);
        match choices.below(3) {
            0 => {
                let expected =
                    if model.allows_pages(0, min.into(), max) { NONE } else { End::Error };
                let found = quietly(|| Memory::new(&mut *store, MemoryType { min, max }));
                if let Some(memory) = ended("Memory::new", found, &expected)? {
                    self.handles.mems.add(*id, model.mems.len(), memory);
                    model.mems.push(Mem { pages: min, max, bytes: Default::default() });
                }
            }
            1 => {
                let null = Value::Ref(None);
                let ty = TableType { elem: ValType::ExternRef, min, max };
                let expected = if !value.is_like(null) {
                    End::Error
                } else if !is_value_here {
                    End::Panic(WRONG_STORE)
                } else if model.allows_elems(0, min.into(), max) {
                    NONE
                } else {
                    End::Error
                };
                let found = quietly(|| Table::new(&mut *store, ty, value.val()));
                if let Some(table) = ended("Table::new", found, &expected)? {
                    self.handles.tabs.add(*id, model.tabs.len(), table);
                    model.tabs.push(Tab { elems: vec![value; min as usize], max, null });
                }
            }
            _ => {
                let mutable = choices.percent(70);
                let ty = GlobalType { ty: value.val().ty(), mutable };
                let expected = if is_value_here { NONE } else { End::Panic(WRONG_STORE) };
                let found = quietly(|| Global::new(&mut *store, ty, value.val()));
                if let Some(global) = ended("Global::new", found, &expected)? {
                    self.handles.globs.add(*id, model.globs.len(), global);
                    model.globs.push(Glob { mutable, value });
                }
            }
        }
        Ok(())
    }

    pub(super) fn reference(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Room { id, store, .. } = &mut self.rooms[at];
        let number = choices.byte();
        let found = quietly(|| ExternRef::new(&mut *store, number));
        if let Some(object) = ended("ExternRef::new", found, &NONE)? {
            self.handles.refs.add(*id, number, object);
        }
        let Some(Held { room, kind: number, it: object }) = self.handles.refs.any(choices) else {
            return Ok(());
        };
        let found = quietly(|| Ok::<_, Error>(object.data(&*store).downcast_ref::<u8>().copied()));
        let expected = if room == *id { NONE } else { End::Panic(WRONG_STORE) };
        match ended("ExternRef::data", found, &expected)? {
            Some(data) => equal("the object", &data, &Some(number)),
            None => Ok(()),
        }
    }

    pub(super) fn host_func(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let foreign = self.handles.funcs.any(choices);
        let Room { id, store, model } = &mut self.rooms[at];
        match choices.below(3) {
            0 => {
                let func = Func::wrap(&mut *store, |x: i64| x.wrapping_add(1));
                let func = func.map_err(|error| error.to_string())?;
                model.kinds.push((func, Kind::Add));
                self.handles.funcs.add(*id, Kind::Add, func);
            }
            1 => {
                let func = Func::wrap(&mut *store, act).map_err(|error| error.to_string())?;
                model.kinds.push((func, Kind::Act));
                self.handles.funcs.add(*id, Kind::Act, func);
            }
            _ => {
                let foreign = foreign.filter(|func| func.room != *id);
                store.data_mut().foreign = foreign.map(|func| func.it);
                model.has_foreign = foreign.is_some();
            }
        }
        Ok(())
    }
}
