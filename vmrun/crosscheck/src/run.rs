//! One run of a program in one engine, from instantiation to the last call from the host.
//!
//! Native code traps by its default means. NaNs are canonical in both engines, so that no difference in their bits is
//! legitimate. The depth of calls is only limited in the same way in both engines if [`Plan::stack_cells`] says so,
//! since that changes the code: it is left out as long as no call stack overflows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use slotvm::{Config, Engine, Linker, Module, PassSet, Store, Tier};
use slotvm_bytecode::VerifiedModule;
use slotvm_cases::values;

use super::guest::{self, Guest, Recorder};
use super::points::{Cell, End, Event};
use vmrun_base::entry::EntryCall;
use vmrun_base::error::CliError;
use vmrun_base::host;
use vmrun_cli::UnknownImports;

/// Cells of the call stack where its depth is the same in both engines.
pub(super) const STACK_CELLS: u64 = 100_000;
/// The native stack of such calls, in bytes: more than the cells can need.
pub(super) const STACK_BYTES: usize = 256 << 20;

/// The parts of a configuration that a check varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The slot mode of native code.
    pub(super) slots: slotvm::SlotMode,
    /// The passes of native code.
    pub(super) passes: PassSet,
    /// Other passes of the first functions.
    pub(super) by_function: Vec<PassSet>,
    /// The fuel, if it is limited and compared.
    pub(super) fuel: Option<u64>,
    /// Fuel that only stops native code which runs for too long. It changes the code.
    pub(super) fuel_max: Option<u64>,
    /// The cells of the call stack, if its depth is compared.
    pub(super) stack_cells: Option<u64>,
}

/// A call from the host, without handles of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) params: Vec<Cell>,
}

/// The origin of the calls of a run.
pub(super) enum Calls<'a> {
    /// The command line.
    Invoked {
        /// `--invoke`.
        invoke: Option<&'a str>,
        /// The program's arguments.
        args: &'a [String],
    },
    /// An earlier run.
    Known(&'a [Call]),
}

/// The host functions of a run.
#[derive(Copy, Clone)]
pub(super) enum HostFuncs {
    /// The real ones, which are recorded.
    Real(Option<UnknownImports>),
    /// The answers of a tape.
    Replayed,
}

impl Plan {
    /// An engine that interprets. Its fuel stops programs that run for too long.
    pub(super) fn interpreter(&self) -> Result<Engine, CliError> {
        let mut config = self.config();
        config.tier(Tier::Interpreter).consume_fuel(true);
        Ok(Engine::new(&config)?)
    }

    /// The engine that is compared with it.
    pub(super) fn native(&self) -> Result<Engine, CliError> {
        let mut config = self.config();
        config.tier(Tier::Jit).slots(self.slots).consume_fuel(self.native_fuel().is_some());
        config.passes(self.passes).passes_by_function(self.by_function.clone());
        config.verify_passes(true);
        Ok(Engine::new(&config)?)
    }

    /// The fuel of native code.
    pub(super) fn native_fuel(&self) -> Option<u64> {
        self.fuel.or(self.fuel_max)
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.tier(Tier::BEST);
        config.canonical_nans(true);
        if let Some(cells) = self.stack_cells {
            // A part of the thread's stack is left to host functions.
            config.deterministic_stack(Some(cells)).max_native_stack(STACK_BYTES / 2);
        }
        config
    }
}

/// Runs a program, and returns the guest as it is at the end, with the calls that were made.
///
/// # Errors
/// Fails if native code cannot be made, or the program cannot be called as the command line says.
pub(super) fn run(
    engine: &Engine,
    verified: &Arc<VerifiedModule>,
    host_funcs: HostFuncs,
    calls: &Calls<'_>,
    fuel: Option<u64>,
    guest: Guest,
) -> Result<(Guest, Vec<Call>), CliError> {
    let module = Module::from_verified(engine, verified.clone())?;
    let mut linker = Linker::new(engine);
    match host_funcs {
        HostFuncs::Real(unknown) => {
            host::define(&mut linker)?;
            if let Some(how) = unknown {
                how.define(&mut linker, &module);
            }
            linker.observe_host_funcs(Arc::new(Recorder));
        }
        HostFuncs::Replayed => guest::replay(&mut linker, &module)?,
    }
    let mut store = Store::new(engine, guest);
    if let Some(fuel) = fuel {
        store.set_fuel(fuel)?;
    }
    store.data_mut().instance = Some(store.runtime().next_instance());
    let made = linker.instantiate(&mut store, &module);
    let of = "instantiation".to_owned();
    let instance = match made {
        Ok(instance) => instance,
        // Missing imports are no property of an engine.
        Err(error @ slotvm::Error::Link(_)) => return Err(error.into()),
        Err(error) => {
            store.data_mut().instance = None;
            pass_end(&mut store, of, &Err(error));
            return Ok((store.into_data(), Vec::new()));
        }
    };
    let mut made = Vec::new();
    if pass_end(&mut store, of, &Ok(Vec::new())) {
        let calls = match calls {
            Calls::Invoked { invoke, args } => {
                vmrun_base::entry::calls(*invoke, args, &store, &instance)?
            }
            Calls::Known(calls) => known(calls, &store, &instance)?,
        };
        for call in calls {
            let params = Cell::all(&call.params);
            made.push(Call { name: call.name.clone(), params });
            let result = call.run(&mut store);
            let has_failed = result.is_err();
            if !pass_end(&mut store, call.name, &result) || has_failed {
                break;
            }
        }
    }
    Ok((store.into_data(), made))
}

/// Passes the end of a call from the host. Returns whether the run goes on.
fn pass_end(
    store: &mut Store<Guest>,
    of: String,
    result: &Result<Vec<slotvm::Val>, slotvm::Error>,
) -> bool {
    if store.data().stopped.is_some() {
        return false;
    }
    let end = End::of(result);
    guest::pass(store, Event::End { of, end }).is_ok()
}

/// The calls of an earlier run, in another store.
fn known(
    calls: &[Call],
    store: &Store<Guest>,
    instance: &slotvm::Instance,
) -> Result<Vec<EntryCall>, CliError> {
    let find = |call: &Call| {
        let none = || CliError::Usage(format!("the program exports no function `{}`", call.name));
        let func = instance.get_func(store, &call.name).ok_or_else(none)?;
        let types = func.ty(store).params;
        let params = call.params.iter().zip(types).map(|(cell, ty)| values::val(ty, cell.0));
        Ok(EntryCall { name: call.name.clone(), func, params: params.collect() })
    };
    calls.iter().map(find).collect()
}
