//! The store: owns everything that a program runs in, and is the way in for calls from the host.
//!
//! All instances of a store see each other's memories, tables, globals and functions if they import
//! them; nothing is freed before the store is. Native code reaches the same data by raw pointers (see
//! [`crate::context`]); it runs only below [`Store::call`], which borrows the store exclusively.
//!
//! A handle is an index into the store that made it. Used with another store it names something else
//! or nothing (a panic), but never anything outside.

mod bulk;
pub(crate) mod called_from;
pub(crate) mod config;
pub(crate) mod funcs;
mod growth;
pub(crate) mod host;
mod host_funcs;
pub(crate) mod instance;
mod instances;
pub(crate) mod interrupt;
pub(crate) mod libcalls;
pub(crate) mod link;
pub(crate) mod native;
mod noted;
mod objects;
mod pieces;
mod poll;
pub(crate) mod roots;
pub(crate) mod ticker;
mod types;

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slotvm_bytecode::{FuncType, ValType, VerifiedModule};

use crate::backtrace::Frame;
use crate::context::{
    EntryTrampoline, FuncRecord, Interpret, Libcalls, Poll, Raise, Shared, VmCtx,
};
use crate::data::Data;
use crate::entities::{FuncHandle, FuncTarget, InstanceId};
use crate::error::{Error, check_limit};
use crate::exit::EXIT_CELLS_MAX;
use crate::memory::limiter::FindLimiter;
use crate::pinned::Pinned;
use crate::steps::module_code::ModuleCode;
use crate::steps::stack::{Left, Stack};
use crate::steps::trace::TraceFn;
use called_from::{CalledFrom, NativeEntry, NativeRoots, WalkNative};
use config::StoreConfig;
use funcs::{FuncKind, Funcs};
use instance::Instance;
use interrupt::{Interrupts, UpdateDeadline};
use native::NativeTypes;
use objects::Objects;
use roots::Handles;
use types::Types;

/// A guest function whose native code is to be entered, or a loop of one.
#[derive(Copy, Clone, Debug)]
pub struct NativeCallee {
    /// The context of its instance.
    pub ctx: *mut VmCtx,
    /// Native code.
    pub code: *const u8,
    /// The entry to code of its type, if it is known.
    pub entry: Option<EntryTrampoline>,
    /// Otherwise the store's number of the type of the code.
    pub type_id: u32,
    /// Its instance.
    pub instance: InstanceId,
    /// Its number in the function index space of its module.
    pub func: u32,
    /// Whether the code is that of a loop: its parameter is the address of a frame, its results are the function's.
    pub is_loop: bool,
}

/// Runs native code of a guest function. The cells hold the parameters and receive the results; there are as many as
/// the larger of the two numbers. [`Store::call`] undoes the effects on the guest's stacks if the executor
/// fails or panics.
///
/// # Safety
/// Only the store calls it, with a callee of its own.
pub type Executor = unsafe fn(&mut Store, &NativeCallee, &mut [u64]) -> Result<(), Error>;

/// Returns the native code through which native code calls a host function of a type.
pub type HostTrampoline = Arc<dyn Fn(&FuncType) -> Result<NativeCode, Error> + Send + Sync>;

/// The address of native code, and what keeps the code where it is. A store that uses the address keeps the
/// owner as long as it lives.
#[derive(Clone)]
pub struct NativeCode {
    /// The start of the code.
    pub address: *const u8,
    /// Frees the code when it is dropped.
    pub owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for NativeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeCode").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Functions by which a store makes native code only when it is needed.
#[derive(Clone)]
pub struct TierHooks {
    /// Native code for calls of host functions of any type: it asks [`find_host_code`](crate::native::find_host_code) for
    /// that of the type, and goes on there.
    pub host_stub: unsafe extern "C" fn(),
    /// Interprets a function that native code calls, by [`interpret`](crate::native::interpret).
    pub interpret: Interpret,
    /// Makes the native code for calls of host functions of a type, at the expense of the module of an instance.
    pub host_code: fn(&Store, InstanceId, &FuncType) -> Result<NativeCode, Error>,
}

/// Functions and tables by which a store runs native code, given to [`Store::new_native`], which states their
/// contract.
#[derive(Clone)]
pub struct NativeHooks {
    /// Runs guest functions.
    pub executor: Executor,
    /// Functions for a store that also interprets, where functions have native code only once it was installed.
    pub tiers: Option<TierHooks>,
    /// Native code for calls of host functions.
    pub host_trampoline: HostTrampoline,
    /// The function that native code calls to trap without a signal.
    pub raise: Raise,
    /// The function that lists the frames of native code.
    pub walk: WalkNative,
    /// The function that finds references into the embedder's heap in frames of native code.
    pub roots: NativeRoots,
    /// The function that native code calls when a poll is due, if it polls.
    pub poll: Option<Poll>,
}

impl fmt::Debug for NativeHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeHooks").finish_non_exhaustive()
    }
}

/// Decides what to do when the epoch deadline is reached.
pub type EpochCallback = Box<dyn FnMut(&mut Store) -> Result<UpdateDeadline, Error> + Send + Sync>;

/// Reason for which native code came back without returning.
enum Pending {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// See the module documentation.
pub struct Store {
    id: u64,
    pub(crate) config: StoreConfig,
    /// The executor of native code; without one, the store interprets.
    pub(crate) native: Option<NativeHooks>,
    data: Data,
    pub(crate) limiter: Option<FindLimiter>,
    shared: Pinned<Shared>,
    /// The target of [`Shared::exit_cells`], if it has one.
    exit_cells: Option<Pinned<[u64]>>,
    pub(crate) interrupts: Option<Interrupts>,
    /// Asked at epoch deadlines, if there is anything that interrupts.
    epoch_callback: Option<EpochCallback>,
    types: Types,
    pub(crate) funcs: Funcs,
    natives: NativeTypes,
    pub(crate) objects: Objects,
    /// References into the embedder's heap that the embedder has.
    handles: RefCell<Handles>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) calls: Calls,
    pub(crate) interp: Interpreter,
}

/// What calls from the host need while they are active.
pub(crate) struct Calls {
    /// The number of those that are.
    pub(crate) n_host_calls: u32,
    /// Instances that have a frame stack.
    pub(crate) framed: Vec<InstanceId>,
    /// Frame pointers of the instances of `framed`, once for each active call from the host but the
    /// outermost.
    pub(crate) saved_frame_sps: Vec<u32>,
    /// Where the guest code is that has called the host function that is running.
    pub(crate) from: CalledFrom,
    /// The innermost entry into native code, or null.
    pub(crate) native_entry: *const NativeEntry,
    /// The number of polls inside of operations whose callbacks are running.
    pub(crate) n_polls_inside: u32,
    pending: Option<Pending>,
}

/// What the interpreter has in a store.
#[derive(Default)]
pub(crate) struct Interpreter {
    pub(crate) stack: Stack,
    /// Prepared code, by the addresses of its module, which it keeps alive, and of its tiers.
    pub(crate) codes: HashMap<(*const VerifiedModule, *const ()), Arc<ModuleCode>>,
    /// The work that native code has left to the caller that entered it, until that takes it up.
    pub(crate) left: Option<Left>,
    pub(crate) trace: Option<TraceFn>,
    /// Whether a loop calls its handlers, even if they can call each other.
    pub(crate) by_loop: bool,
}

// SAFETY: the raw pointers in a store point to heap memory and mappings that the store itself owns, and
// to native code, which can run in any thread. `Shared::store` is only dereferenced by native code, before
// which `enter_native` sets it; the places of guest code that has called the host (`Calls::from`) only while that waits.
// Host functions are `Send + Sync`, everything else that the embedder puts in is
// `Send`.
unsafe impl Send for Store {}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("config", &self.config)
            .field("n_funcs", &self.funcs.n_counted)
            .field("n_instances", &self.instances.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Store {
    /// Aborts if a host function, which has only borrowed the store, has got hold of it by putting
    /// another one in its place: the functions and the memory that are active would be freed.
    fn drop(&mut self) {
        if self.calls.n_host_calls > 0 {
            eprintln!("slotvm: a host function dropped the store that it was called in");
            std::process::abort();
        }
    }
}

impl Store {
    /// Makes an empty store, which interprets. The data belong to the embedder.
    pub fn new(config: StoreConfig, data: Box<dyn Any + Send>) -> Store {
        Store::with_hooks(config, data, None, ptr::null())
    }

    fn with_hooks(
        config: StoreConfig,
        data: Box<dyn Any + Send>,
        native: Option<NativeHooks>,
        libcalls: *const Libcalls,
    ) -> Store {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let interrupts = config.interruption.as_ref().map(Interrupts::new);
        let (epoch, poll_at) =
            interrupts.as_ref().map_or((ptr::null(), ptr::null()), Interrupts::native_words);
        let shared = Pinned::new(Shared {
            fuel: config.fuel.map_or(i64::MAX, clamp),
            stack_cells: config.stack_cells.map_or(i64::MAX, clamp),
            epoch,
            poll_at,
            libcalls,
            raise: native.as_ref().map(|hooks| hooks.raise),
            poll: native.as_ref().and_then(|hooks| hooks.poll),
            ..Shared::EMPTY
        });
        Store {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            config,
            native,
            data: Data::new(data),
            limiter: None,
            shared,
            exit_cells: None,
            interrupts,
            epoch_callback: None,
            types: Types::default(),
            funcs: Funcs::default(),
            natives: NativeTypes::default(),
            objects: Objects::default(),
            handles: RefCell::default(),
            instances: Vec::new(),
            calls: Calls {
                n_host_calls: 0,
                framed: Vec::new(),
                saved_frame_sps: Vec::new(),
                from: CalledFrom::Host,
                native_entry: ptr::null(),
                n_polls_inside: 0,
                pending: None,
            },
            interp: Interpreter::default(),
        }
    }

    /// Returns the id of the store, unique in the process.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the configuration of the store.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// The embedder's data.
    #[inline]
    pub fn data(&self) -> &(dyn Any + Send) {
        self.data.any()
    }

    /// The embedder's data, if they are of this type.
    #[inline]
    pub fn data_as<D: Any>(&self) -> Option<&D> {
        self.data.get()
    }

    /// The embedder's data, if they are of this type.
    #[inline]
    pub fn data_as_mut<D: Any>(&mut self) -> Option<&mut D> {
        self.data.get_mut()
    }

    /// The embedder's data.
    #[inline]
    pub fn data_mut(&mut self) -> &mut (dyn Any + Send) {
        self.data.any_mut()
    }

    /// Returns the function that finds the limiter, and its argument.
    pub(crate) fn limiter_and_data(&mut self) -> (&mut Option<FindLimiter>, &mut (dyn Any + Send)) {
        (&mut self.limiter, self.data.any_mut())
    }

    /// The fuel that is left, if fuel is configured.
    pub fn fuel(&self) -> Option<u64> {
        self.config.fuel?;
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        Some(unsafe { (*self.shared.as_ptr()).fuel } as u64)
    }

    /// Sets the fuel that is left, at most `i64::MAX`.
    ///
    /// # Errors
    /// Fails if fuel is not configured.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        if self.config.fuel.is_none() {
            return Err(Error::Usage("fuel is not configured for this store".to_owned()));
        }
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        unsafe { (*self.shared.as_ptr()).fuel = clamp(fuel) };
        Ok(())
    }

    /// Fails if a handle is not that of a function of the store.
    pub(crate) fn check_func(&self, func: FuncHandle) -> Result<(), Error> {
        match self.funcs.contains(func) {
            true => Ok(()),
            false => Err(Error::Usage(format!("unknown function {} in the store", func.cell()))),
        }
    }

    /// Makes cells from the host fit for guest code: numbers of 32 bits are zero-extended.
    ///
    /// # Errors
    /// Fails if one of them is no reference to a function of the store, where it should be.
    pub(crate) fn check_cells(&self, types: &[ValType], cells: &mut [u64]) -> Result<(), Error> {
        let mut cells = cells.iter_mut();
        for &ty in types {
            let Some(cell) = cells.next() else { break };
            match ty {
                ValType::V128 => drop(cells.next()),
                ValType::I32 | ValType::F32 => *cell = u64::from(*cell as u32),
                ValType::FuncRef => {
                    FuncHandle::from_cell(*cell).map_or(Ok(()), |func| self.check_func(func))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    // Types and functions.

    /// The store's number of a function type: equal types have equal numbers.
    pub(crate) fn intern_type(&mut self, ty: &FuncType) -> u32 {
        self.types.intern(ty)
    }

    pub(crate) fn type_of(&self, id: u32) -> &FuncType {
        self.types.get(id)
    }

    /// Counts functions that are to be made.
    ///
    /// # Errors
    /// Fails if they are too many.
    pub(crate) fn count_funcs(&mut self, n: u32) -> Result<(), Error> {
        let wanted = u64::from(self.funcs.n_counted) + u64::from(n);
        check_limit("funcs_max", self.config.limits.funcs_max.into(), wanted)?;
        self.funcs.n_counted += n;
        Ok(())
    }

    /// The number of functions, of all instances and of the host.
    pub fn n_funcs(&self) -> usize {
        self.funcs.n_counted as usize
    }

    /// The type of a function.
    pub fn func_type(&self, func: FuncHandle) -> &FuncType {
        self.type_of(self.func_record(func).type_id)
    }

    /// Whose function it is.
    pub fn func_target(&self, func: FuncHandle) -> FuncTarget {
        match self.funcs.kind(func) {
            FuncKind::Guest { instance, func } => FuncTarget::Guest { instance, func },
            FuncKind::Host(callee) => {
                // SAFETY: it lives as long as the store, and is never written.
                FuncTarget::Host { instance: unsafe { (*callee).instance } }
            }
        }
    }

    /// Returns the record of a function that native code sees.
    #[doc(hidden)]
    #[inline]
    pub fn func_record(&self, func: FuncHandle) -> FuncRecord {
        self.funcs.record(func)
    }

    /// Returns the state that all instances share. Valid while the store lives.
    #[doc(hidden)]
    #[inline]
    pub fn shared_ptr(&self) -> *mut Shared {
        self.shared.as_ptr()
    }

    /// Makes room for what native code leaves at exits, and the results of calls that keep all registers. Other stores do
    /// without: it is larger than all else that an instance takes.
    pub(crate) fn make_exit_cells(&mut self) {
        let shared = self.shared_ptr();
        let new = || Pinned::from_box(vec![0; EXIT_CELLS_MAX].into_boxed_slice());
        let cells = self.exit_cells.get_or_insert_with(new);
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        unsafe { (*shared).exit_cells = cells.first() };
    }

    /// The store that native code runs in.
    ///
    /// # Safety
    /// Native code that [`Store::enter_native`] has announced is running, and no other reference to the
    /// store is in use: those of its callers rest until it has returned.
    #[inline]
    pub(crate) unsafe fn running<'a>(shared: *mut Shared) -> &'a mut Store {
        // SAFETY: the executor has called `enter_native`, which stored the address, before it entered the native
        // code that runs. The store stays there until that returns, as the executor borrows it; `libcalls`,
        // `host_call` and `interpret`, which alone come here, use it while that borrow rests.
        unsafe { &mut *(*shared).store.cast::<Store>() }
    }

    /// Lets the runtime's functions find the store. Executors call this right before they enter native code;
    /// [`Store::call`] undoes it.
    #[doc(hidden)]
    #[inline]
    pub fn enter_native(&mut self) {
        let store = (&raw mut *self).cast();
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        unsafe { (*self.shared.as_ptr()).store = store };
    }

    /// A frame of a backtrace.
    pub fn frame(&self, instance: InstanceId, func: u32, offset: u32) -> Frame {
        let module = self.instance(instance).module().clone();
        Frame { module, func, offset }
    }

    /// Lets the interpreter call a function for each instruction, or no longer. Calls that are already
    /// active are not concerned.
    pub fn set_trace(&mut self, trace: Option<TraceFn>) {
        self.interp.trace = trace;
    }

    /// Lets the interpreter of this store run as it does where the compiler has not optimised it. For tests;
    /// instances that exist are not concerned.
    #[doc(hidden)]
    pub fn interpret_by_loop(&mut self) {
        self.interp.by_loop = true;
    }

    // The counters that native code changes, too.

    /// Takes fuel, if there is enough.
    pub(crate) fn take_fuel(&mut self, fuel: i64) -> bool {
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        take(unsafe { &mut (*self.shared.as_ptr()).fuel }, fuel)
    }

    /// Takes cells from the deterministic stack, if there are enough.
    pub(crate) fn take_stack_cells(&mut self, cells: i64) -> bool {
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        take(unsafe { &mut (*self.shared.as_ptr()).stack_cells }, cells)
    }

    /// Gives cells back to the deterministic stack.
    pub(crate) fn give_stack_cells(&mut self, cells: i64) {
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        unsafe { (*self.shared.as_ptr()).stack_cells += cells };
    }

    /// Aborts if a host function has put another store in the place of this one: frames of guest code
    /// still hold addresses of the one that was here.
    #[inline]
    pub(crate) fn check_identity(&self, id: u64) {
        if self.id != id {
            exchanged();
        }
    }
}

#[cold]
fn exchanged() -> ! {
    eprintln!("slotvm: a host function replaced the store that it was called in");
    std::process::abort();
}

/// An `i64` that is not negative.
fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn take(counter: &mut i64, n: i64) -> bool {
    let enough = *counter >= n;
    if enough {
        *counter -= n;
    }
    enough
}
