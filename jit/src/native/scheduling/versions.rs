//! The code of a part of a module that is wanted: made, or made again.

use slotvm_runtime::native::{Part, TieredCode};

use crate::compile::failure::CompileFailure;
use crate::native::ownership::code_table::CodeTable;
use crate::native::scheduling::exits::{self, VersionExits};
use crate::native::scheduling::making::Maker;
use crate::native::scheduling::wishes::Wishes;

impl Maker {
    /// The exits of a version of the code of a part that is made now, before which there were so many.
    fn exits(
        &self,
        code: &TieredCode,
        part: Part,
        version: u32,
        loops: &[u32],
    ) -> Option<VersionExits> {
        if !self.has_exits() {
            return None;
        }
        let CodeTable { native, module, .. } = &*self.code;
        let n_all = self.code.n_insts(part.func());
        exits::of_version(module, code, (part, version), loops, n_all, native.config())
    }

    /// Native code of a function, which is compiled if nobody has tried, or if a newer version is wanted.
    pub(super) fn func_code(
        &self,
        code: &TieredCode,
        part: Part,
        version: u32,
    ) -> Result<*const u8, CompileFailure> {
        let index = self.code.index(part.func());
        self.code.place_kept_func(index);
        let make = || self.make_version(index, version, self.exits(code, part, version, &[]));
        if version > 0 {
            let placed = make().map_err(|error| error.failure)?;
            return Ok(self.code.add(part, version, placed));
        }
        let function = self.code.function(index);
        if function.get().is_none() {
            // Not `get_or_init`: in the child of a fork nobody may be there to end what was begun.
            let compiled = make();
            // Another thread may have been as fast, whose result stays.
            _ = function.set(compiled);
        }
        match function.get().expect("it was set") {
            Ok(compiled) => Ok(compiled.address()),
            Err(error) => Err(error.failure),
        }
    }

    /// Native code of a loop that somebody has wanted, which is compiled if it is not yet, or if a newer version is wanted,
    /// with all loops that it is for if they can share a form, or else by itself. `None` if nobody has wanted it.
    pub(super) fn loop_code(
        &self,
        wishes: &Wishes,
        tiered: &TieredCode,
        part: Part,
        version: u32,
    ) -> Result<Option<(Vec<u32>, *const u8)>, CompileFailure> {
        let Part::Loop(func, number) = part else { unreachable!("it is a loop") };
        let (code, index) = (&self.code, self.code.index(func));
        let known = code.loops(func, number);
        let mut loops = match &known {
            Some((loops, _)) if version > 0 => loops.clone(),
            Some(_) => {
                wishes.made(func, number);
                return Ok(known);
            }
            None => match wishes.with(func, number) {
                Some(loops) => loops,
                None => return Ok(None),
            },
        };
        loops.retain(|&other| other != number);
        loops.insert(0, number);
        let exits = self.exits(tiered, part, version, &loops);
        match self.make_at(index, &loops, version, exits) {
            // The form before was for all of them.
            Ok((_, true)) if version > 0 => return Err(CompileFailure::DifferentOperands),
            Ok((placed, _)) if version > 0 => _ = code.add(part, version, placed),
            Ok((placed, is_alone)) => {
                if is_alone {
                    wishes.set_alone(func, number);
                    loops.truncate(1);
                }
                code.set_loops(func, number, loops, placed);
            }
            Err(error) => {
                if error.failure == CompileFailure::DifferentOperands {
                    wishes.set_alone(func, number);
                }
                wishes.failed(func, number);
                return Err(error.failure);
            }
        }
        wishes.made(func, number);
        Ok(code.loops(func, number))
    }
}
