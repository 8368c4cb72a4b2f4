//! Calls of functions.

use std::time::Duration;

use slotvm::{Error, TrapCode};

use super::ends::{end, ended, equal, values};
use super::handles::Held;
use super::model::{End, Kind, Model, NONE, Value};
use super::world::{EPOCHS, FUEL, World};
use super::{Room, Run, WRONG_STORE, quietly, refuel};
use crate::choices::Choices;

impl Run<'_> {
    pub(super) fn call(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        // Mostly a function of the store.
        let func = match choices.percent(92) {
            true => self.handles.funcs.any_of(self.rooms[at].id, choices),
            false => self.handles.funcs.any(choices),
        };
        let Some(Held { room, kind, it: func }) = func else { return Ok(()) };
        let args = self.args(kind, at, choices);
        let n_results = kind.ty().1.len() + usize::from(choices.percent(3));
        let id = self.rooms[at].id;
        let is_here = args.iter().all(|&arg| self.is_of(arg, id));
        let Room { store, model, .. } = &mut self.rooms[at];
        let (params, results) = kind.ty();
        let fits = args.len() == params.len()
            && args.iter().zip(params).all(|(arg, &param)| arg.is_like(param))
            && n_results == results.len();
        let expected = if room != id {
            End::Panic(WRONG_STORE)
        } else if !fits {
            End::Error
        } else if !is_here {
            End::Panic(WRONG_STORE)
        } else {
            model.call(kind, &args)
        };
        refuel(store, FUEL);
        let params: Vec<_> = args.iter().map(|arg| arg.val()).collect();
        let mut results = vec![Value::I32(0).val(); n_results];
        let found = quietly(|| func.call(&mut *store, &params, &mut results));
        let what = || format!("call of {kind:?} with {args:?}");
        if let End::Values(values) = &expected {
            ended(&what(), found, &NONE)?;
            let found: Vec<Value> = results.iter().map(Value::of).collect();
            return equal(&what(), &found, values);
        }
        end(&what(), found, &expected)
    }

    pub(super) fn typed(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let Some(Held { room, kind, it: func }) = self.handles.funcs.any(choices) else {
            return Ok(());
        };
        let Room { id, store, model } = &mut self.rooms[at];
        let is_here = room == *id;
        refuel(store, FUEL);
        let a = choices.pick(&[0, 1, -1, 70_000]);
        let wrong = |fits: bool| match (is_here, fits) {
            (false, _) => Some(End::Panic(WRONG_STORE)),
            (true, false) => Some(End::Error),
            (true, true) => None,
        };
        let call = |model: &mut Model, args: &[Value]| model.call(kind, args);
        match choices.below(3) {
            0 => {
                let args = [Value::I32(7), Value::I32(a)];
                let ty: (&[Value], &[Value]) = (&[Value::I32(0), Value::I32(0)], &[Value::I32(0)]);
                let expected = wrong(kind.ty() == ty).unwrap_or_else(|| call(model, &args));
                let found =
                    quietly(|| func.typed::<(i32, i32), i32>(&*store)?.call(&mut *store, (7, a)));
                values("a typed call", found.map(|r| r.map(|v| vec![Value::I32(v)])), &expected)
            }
            1 => {
                let args = [Value::I64(a.into())];
                let expected =
                    wrong(kind.ty() == Kind::Add.ty()).unwrap_or_else(|| call(model, &args));
                let found =
                    quietly(|| func.typed::<i64, i64>(&*store)?.call(&mut *store, a.into()));
                values("a typed call", found.map(|r| r.map(|v| vec![Value::I64(v)])), &expected)
            }
            _ => {
                let is_unit = kind.ty().0.is_empty() && kind.ty().1.is_empty();
                let expected = wrong(is_unit).unwrap_or_else(|| call(model, &[]));
                let found = quietly(|| func.typed::<(), ()>(&*store)?.call(&mut *store, ()));
                values("a typed call", found.map(|r| r.map(|()| Vec::new())), &expected)
            }
        }
    }

    /// A program that does not end is stopped by fuel, epoch or time.
    pub(super) fn run_out(&mut self, at: usize, choices: &mut Choices<'_>) -> Result<(), String> {
        let World { has_fuel, has_epochs, .. } = *self.world;
        let Some(Held { room, it: spin, .. }) = self.handles.spins.any(choices) else {
            return Ok(());
        };
        let Room { id, store, .. } = &mut self.rooms[at];
        let is_here = room == *id;
        let mut code = TrapCode::Interrupted;
        match choices.below(if has_epochs { 8 } else { 4 }) {
            0..=3 if has_fuel => {
                code = TrapCode::OutOfFuel;
                refuel(store, choices.below(3_000) as u64);
            }
            4 if has_epochs => {
                refuel(store, u64::MAX);
                let set = store.set_timeout(Some(Duration::from_micros(100)));
                set.map_err(|error| error.to_string())?;
            }
            5 if has_epochs => {
                refuel(store, u64::MAX);
                store.epoch_deadline_callback(|mut context| {
                    context.data_mut().n_acts += 1;
                    Err(Error::host("the callback fails"))
                });
                store.set_epoch_deadline(0);
            }
            6 | 7 if has_epochs => {
                refuel(store, u64::MAX);
                store.set_epoch_deadline(0);
            }
            _ => return Ok(()),
        }
        let n_acts = store.data().n_acts;
        let found = quietly(|| spin.call(&mut *store, &[], &mut []));
        let by_callback = store.data().n_acts > n_acts;
        store.data_mut().n_acts = n_acts;
        let expected = match is_here {
            false => End::Panic(WRONG_STORE),
            true if by_callback => End::Error,
            true => End::Trap(code),
        };
        if has_epochs {
            store.epoch_deadline_trap();
            store.set_epoch_deadline(EPOCHS);
            store.set_timeout(None).map_err(|error| error.to_string())?;
        }
        let left = store.get_fuel().ok();
        refuel(store, FUEL);
        if code == TrapCode::OutOfFuel && is_here {
            // An iteration of the loop costs one unit of fuel.
            equal("fuel left", &left, &Some(0))?;
        }
        end("an endless loop", found, &expected)
    }
}
