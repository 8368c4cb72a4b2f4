//! The store: owns everything that a program runs in, and is the way in for calls from the host.
//!
//! All instances of a store see each other's memories, tables, globals and functions if they import
//! them; nothing is freed before the store is. Native code reaches the same data by raw pointers (see
//! [`crate::context`]); it runs only below [`Store::call`], which borrows the store exclusively.
//!
//! A handle is an index into the store that made it. Used with another store it names something else
//! or nothing (a panic), but never anything outside.

pub(crate) mod bulk;
pub(crate) mod config;
pub(crate) mod funcs;
pub(crate) mod growth;
pub(crate) mod host;
pub(crate) mod instance;
pub(crate) mod interrupt;
pub(crate) mod libcalls;
pub(crate) mod link;
pub(crate) mod pieces;
pub(crate) mod ticker;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slotvm_bytecode::{FuncType, ValType, VerifiedModule, n_cells};

use crate::calls::entry::Entry;
use crate::context::{Entry as EntryPoint, FuncRecord, MemorySpan, Shared, VmCtx};
use crate::entities::{FuncHandle, GlobalData};
use crate::error::{Error, check_limit};
use crate::interp;
use crate::memory::limiter::FindLimiter;
use crate::memory::linear::Memory;
use crate::memory::table::Table;
use crate::pinned::Pinned;
use crate::steps::prepare::ModuleCode;
use crate::steps::stack::Stack;
use crate::steps::trace::TraceFn;
use crate::store::config::{NativeHooks, StoreConfig};
use crate::store::funcs::{FuncKind, Funcs};
use crate::store::host::HostCallee;
use crate::store::instance::{Instance, InstanceId};
use crate::store::interrupt::Interrupts;
use crate::store::libcalls::LIBCALLS;
use crate::trap::{Frame, Trap};

/// Whose function it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FuncTarget {
    /// A function of an instance, in the index space of its module.
    Guest {
        /// The instance.
        instance: InstanceId,
        /// The function.
        func: u32,
    },
    /// A function of the host.
    Host {
        /// The instance that imports it, if it was made for an import.
        instance: Option<InstanceId>,
    },
}

/// The first so many function types of a store are compared: hashing one takes longer.
const TYPES_COMPARED: usize = 8;

/// Why native code came back although it has not returned.
enum Pending {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

/// See the module documentation.
pub struct Store {
    id: u64,
    pub(crate) config: StoreConfig,
    /// How native code runs; without, the store interprets.
    pub(crate) native: Option<NativeHooks>,
    pub(crate) data: Box<dyn Any + Send>,
    /// The type of what the box holds: asking the box is a call.
    data_type: TypeId,
    pub(crate) limiter: Option<FindLimiter>,
    shared: Pinned<Shared>,
    pub(crate) interrupts: Option<Interrupts>,

    types: Vec<FuncType>,
    /// The numbers of those behind the first [`TYPES_COMPARED`].
    type_ids: HashMap<FuncType, u32>,
    pub(crate) funcs: Funcs,
    /// How many there are, with a handle or without.
    n_funcs: u32,
    /// The host functions among them.
    pub(crate) host_callees: Vec<Pinned<HostCallee>>,
    /// How the executor enters functions, by the store's number of their type, where it has said.
    entry_points: Vec<Option<EntryPoint>>,
    /// Native code for calls of host functions, by the store's number of their type; null where it was
    /// not needed yet.
    host_codes: Vec<*const u8>,
    /// What keeps the code of `entry_points` and `host_codes` alive.
    code_owners: Vec<Arc<dyn Any + Send + Sync>>,
    pub(crate) memories: Vec<Memory>,
    /// What the signal handler sees of them, in step with `memories`.
    pub(crate) memory_spans: Vec<MemorySpan>,
    pub(crate) tables: Vec<Table>,
    /// Bytes of all memories.
    pub(crate) memory_bytes_total: u64,
    /// Elements of all tables.
    pub(crate) table_elems_total: u64,
    pub(crate) globals: Vec<GlobalData>,
    /// The cells of globals that no instance defines.
    pub(crate) host_globals: Vec<Pinned<[u64; 2]>>,
    pub(crate) externs: Vec<Box<dyn Any + Send>>,
    pub(crate) instances: Vec<Instance>,
    /// Prepared code, by the address of its module, which it keeps alive.
    pub(crate) codes: HashMap<*const VerifiedModule, Arc<ModuleCode>>,

    /// Calls from the host that are active.
    pub(crate) n_host_calls: u32,
    /// Instances that have a frame stack.
    pub(crate) framed: Vec<InstanceId>,
    /// Frame pointers of the instances of `framed`, once for each active call from the host but the
    /// outermost.
    pub(crate) saved_frame_sps: Vec<u32>,
    pending: Option<Pending>,
    pub(crate) interp: Stack,
    pub(crate) trace: Option<TraceFn>,
}

// SAFETY: the raw pointers in a store point to heap memory and mappings that the store itself owns, and
// to native code, which can run in any thread. `Shared::store` is only dereferenced by native code, before
// which `enter_native` sets it. Host functions are `Send + Sync`, everything else that the embedder puts in is
// `Send`.
unsafe impl Send for Store {}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("config", &self.config)
            .field("n_funcs", &self.n_funcs)
            .field("n_instances", &self.instances.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Store {
    /// Aborts if a host function, which has only borrowed the store, has got hold of it by putting
    /// another one in its place: the functions and the memory that are active would be freed.
    fn drop(&mut self) {
        if self.n_host_calls > 0 {
            eprintln!("slotvm: a host function drops the store that it was called in");
            std::process::abort();
        }
    }
}

impl Store {
    /// Makes an empty store, which interprets. The data belong to the embedder.
    pub fn new(config: StoreConfig, data: Box<dyn Any + Send>) -> Store {
        Store::with_hooks(config, data, None)
    }

    /// Makes an empty store that runs native code.
    ///
    /// # Safety
    /// As long as the store lives,
    /// * the executor runs what it is given, a guest function of the store: it enters the code of the function's
    ///   record with its context by an entry for the function's type, and returns when that has been left, with
    ///   the cells as the function leaves them. It may rely on [`Store::instantiate_native`] and
    ///   [`Store::set_entry_point`] having been called as they say;
    /// * what the host trampoline returns is native code, of the convention that [`FuncRecord::code`] has, which
    ///   passes its context and the cells of its parameters to [`HostCtx::call`](crate::context::HostCtx::call);
    /// * `raise` and `poll` do what their types say.
    pub unsafe fn new_native(
        config: StoreConfig,
        data: Box<dyn Any + Send>,
        hooks: NativeHooks,
    ) -> Store {
        Store::with_hooks(config, data, Some(hooks))
    }

    fn with_hooks(
        config: StoreConfig,
        data: Box<dyn Any + Send>,
        native: Option<NativeHooks>,
    ) -> Store {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let interrupts = config.interruption.as_ref().map(Interrupts::new);
        let (epoch, poll_at) = interrupts
            .as_ref()
            .map_or((std::ptr::null(), std::ptr::null()), Interrupts::native_words);
        let shared = Pinned::new(Shared {
            fuel: config.fuel.map_or(i64::MAX, clamp),
            stack_cells: config.stack_cells.map_or(i64::MAX, clamp),
            epoch,
            poll_at,
            libcalls: &raw const LIBCALLS,
            raise: native.as_ref().map(|hooks| hooks.raise),
            poll: native.as_ref().and_then(|hooks| hooks.poll),
            ..Shared::EMPTY
        });
        Store {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            config,
            native,
            data_type: (*data).type_id(),
            data,
            limiter: None,
            shared,
            interrupts,
            types: Vec::new(),
            type_ids: HashMap::new(),
            funcs: Funcs::default(),
            n_funcs: 0,
            host_callees: Vec::new(),
            entry_points: Vec::new(),
            host_codes: Vec::new(),
            code_owners: Vec::new(),
            memories: Vec::new(),
            memory_spans: Vec::new(),
            tables: Vec::new(),
            memory_bytes_total: 0,
            table_elems_total: 0,
            globals: Vec::new(),
            host_globals: Vec::new(),
            externs: Vec::new(),
            instances: Vec::new(),
            codes: HashMap::new(),
            n_host_calls: 0,
            framed: Vec::new(),
            saved_frame_sps: Vec::new(),
            pending: None,
            interp: Stack::default(),
            trace: None,
        }
    }

    /// What tells the store from all others of the process.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How the store works.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// The embedder's data.
    #[inline]
    pub fn data(&self) -> &(dyn Any + Send) {
        &*self.data
    }

    /// The embedder's data, if they are of this type.
    #[inline]
    pub fn data_as<D: Any>(&self) -> Option<&D> {
        let data = &raw const *self.data;
        // SAFETY: the box holds a `D`, and is borrowed as long as the result.
        (self.data_type == TypeId::of::<D>()).then(|| unsafe { &*data.cast::<D>() })
    }

    /// The embedder's data, if they are of this type.
    #[inline]
    pub fn data_as_mut<D: Any>(&mut self) -> Option<&mut D> {
        let data = &raw mut *self.data;
        // SAFETY: the box holds a `D`, and is borrowed exclusively as long as the result.
        (self.data_type == TypeId::of::<D>()).then(|| unsafe { &mut *data.cast::<D>() })
    }

    /// The embedder's data.
    #[inline]
    pub fn data_mut(&mut self) -> &mut (dyn Any + Send) {
        &mut *self.data
    }

    /// What finds the limiter, and where.
    pub(crate) fn limiter_and_data(&mut self) -> (&mut Option<FindLimiter>, &mut (dyn Any + Send)) {
        (&mut self.limiter, &mut *self.data)
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
    /// If fuel is not configured.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<(), Error> {
        if self.config.fuel.is_none() {
            return Err(Error::Usage("fuel is not configured for this store".to_owned()));
        }
        // SAFETY: the store owns the structure; native code does not run while the store is borrowed.
        unsafe { (*self.shared.as_ptr()).fuel = clamp(fuel) };
        Ok(())
    }

    /// Calls a function. The cells hold the parameters and receive the results; there are as many as
    /// those or these take. A vector takes two, the lower half first. `i32` and `f32` cells are zero-extended.
    ///
    /// Whatever happens, the stacks of the guest are afterwards as they were before.
    ///
    /// # Errors
    /// If the function fails, too many calls from the host are active, or the cells do not fit.
    pub fn call(&mut self, func: FuncHandle, cells: &mut [u64]) -> Result<(), Error> {
        self.check_func(func)?;
        let ty = self.func_type(func);
        let n_params = n_cells(&ty.params);
        let n_cells = n_params.max(n_cells(&ty.results));
        if cells.len() != n_cells {
            let n = cells.len();
            return Err(Error::Usage(format!("a function {ty} takes {n_cells} cells, not {n}")));
        }
        self.check_cells(&ty.params, &mut cells[..n_params])?;
        // SAFETY: all of it was just checked.
        unsafe { self.call_unchecked(func, cells) }
    }

    /// Calls a function as [`Store::call`] does, for those who know that the cells fit.
    ///
    /// # Safety
    /// The function is of this store, and the cells are what [`Store::call`] would make of them: as many
    /// as the parameters or results take, cells of 32 bits zero-extended, and references to
    /// functions of this store.
    ///
    /// # Errors
    /// If the function fails, or too many calls from the host are active.
    pub unsafe fn call_unchecked(
        &mut self,
        func: FuncHandle,
        cells: &mut [u64],
    ) -> Result<(), Error> {
        Entry::check(self)?;
        let mut entry = Entry::begin(self);
        let result = match entry.store.funcs.kind_mut(func) {
            FuncKind::Host(_) => match entry.store.check_host_stack() {
                Ok(()) => entry.store.call_host(func, cells),
                Err(code) => Err(Trap::new(code, []).into()),
            },
            FuncKind::Guest { .. } => match entry.store.native.as_ref().map(|hooks| hooks.executor)
            {
                None => interp::execute(entry.store, func, cells),
                // SAFETY: this is the caller it is for. That the function is of the store and the cells fit is
                // what the caller of this function promises.
                Some(executor) => unsafe { executor(entry.store, func, cells) },
            },
        };
        entry.failed = result.is_err();
        result
    }

    /// Fails if a handle is not that of a function of the store.
    pub(crate) fn check_func(&self, func: FuncHandle) -> Result<(), Error> {
        match self.funcs.contains(func) {
            true => Ok(()),
            false => Err(Error::Usage(format!("the store has no function {}", func.cell()))),
        }
    }

    /// Makes cells from the host fit for guest code: numbers of 32 bits are zero-extended.
    ///
    /// # Errors
    /// If one of them is no reference to a function of the store, where it should be.
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
        let first = &self.types[..self.types.len().min(TYPES_COMPARED)];
        if let Some(id) = first.iter().position(|known| known == ty) {
            return id as u32;
        }
        if let Some(&id) = self.type_ids.get(ty) {
            return id;
        }
        let id = self.types.len();
        self.types.push(ty.clone());
        if id >= TYPES_COMPARED {
            self.type_ids.insert(ty.clone(), id as u32);
        }
        id as u32
    }

    pub(crate) fn type_of(&self, id: u32) -> &FuncType {
        &self.types[id as usize]
    }

    /// Counts functions that are to be made.
    ///
    /// # Errors
    /// If they are too many.
    pub(crate) fn count_funcs(&mut self, n: u32) -> Result<(), Error> {
        let wanted = u64::from(self.n_funcs) + u64::from(n);
        check_limit("funcs_max", self.config.limits.funcs_max.into(), wanted)?;
        self.n_funcs += n;
        Ok(())
    }

    /// The number of functions, of all instances and of the host.
    pub fn n_funcs(&self) -> usize {
        self.n_funcs as usize
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

    /// What native code sees of a function.
    #[inline]
    pub fn func_record(&self, func: FuncHandle) -> FuncRecord {
        self.funcs.record(func)
    }

    // For executors that run native code.

    /// How the executor enters functions of a type, by the store's number of it, if
    /// [`Store::set_entry_point`] has said so.
    #[inline]
    pub fn entry_point(&self, type_id: u32) -> Option<EntryPoint> {
        self.entry_points.get(type_id as usize).copied().flatten()
    }

    /// Lets [`Store::entry_point`] return this from now on. The store keeps the owner.
    ///
    /// # Safety
    /// It is an entry for functions of the type that has this number in this store, and lives as long as its
    /// owner.
    pub unsafe fn set_entry_point(
        &mut self,
        type_id: u32,
        entry_point: EntryPoint,
        owner: Arc<dyn Any + Send + Sync>,
    ) {
        set_at(&mut self.entry_points, type_id, Some(entry_point), None);
        self.code_owners.push(owner);
    }

    /// Native code through which native code calls host functions of a type; null without any.
    pub(crate) fn host_code(&mut self, type_id: u32) -> Result<*const u8, Error> {
        let Some(hooks) = &self.native else { return Ok(std::ptr::null()) };
        match self.host_codes.get(type_id as usize) {
            Some(code) if !code.is_null() => Ok(*code),
            _ => {
                let code = (hooks.host_trampoline)(&self.types[type_id as usize])?;
                set_at(&mut self.host_codes, type_id, code.address, std::ptr::null());
                self.code_owners.push(code.owner);
                Ok(code.address)
            }
        }
    }

    /// What all instances share. Valid while the store lives.
    #[inline]
    pub fn shared_ptr(&self) -> *mut Shared {
        self.shared.as_ptr()
    }

    /// The context of an instance. Valid while the store lives.
    pub fn instance_ctx(&self, instance: InstanceId) -> *mut VmCtx {
        self.instance(instance).ctx()
    }

    /// To be called by an executor right before it enters native code: lets the runtime's functions find
    /// the store. [`Store::call`] undoes it.
    #[inline]
    pub fn enter_native(&mut self) {
        let store = (&raw mut *self).cast();
        // SAFETY: the store owns the structure, and native code does not run at the moment.
        unsafe { (*self.shared.as_ptr()).store = store };
    }

    /// Leaves word of why native code is about to trap.
    #[cold]
    pub(crate) fn set_pending(&mut self, result: std::thread::Result<Error>) {
        self.pending = Some(match result {
            Ok(error) => Pending::Error(error),
            Err(panic) => Pending::Panic(panic),
        });
    }

    /// The error of the host function because of which native code came back, if that is the reason. If
    /// the host function has panicked, the panic goes on.
    pub fn take_pending(&mut self) -> Option<Error> {
        match self.pending.take()? {
            Pending::Error(error) => Some(error),
            Pending::Panic(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A frame of a backtrace.
    pub fn frame(&self, instance: InstanceId, func: u32, offset: u32) -> Frame {
        let module = self.instance(instance).module().clone();
        Frame { module, func, offset }
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
    eprintln!("slotvm: a host function has exchanged the store that it was called in");
    std::process::abort();
}

/// Sets an element of a list that has `none` where nothing was set.
fn set_at<T: Copy>(list: &mut Vec<T>, index: u32, value: T, none: T) {
    let index = index as usize;
    if list.len() <= index {
        list.resize(index + 1, none);
    }
    list[index] = value;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_have_equal_numbers() {
        let mut store = Store::new(StoreConfig::default(), Box::new(()));
        let types = (0..3 * TYPES_COMPARED).map(|n| FuncType::new(vec![ValType::I32; n], []));
        let types: Vec<_> = types.collect();
        let numbers: Vec<_> = types.iter().map(|ty| store.intern_type(ty)).collect();
        assert!(numbers.iter().copied().eq(0..types.len() as u32));
        for (ty, number) in types.iter().zip(numbers).rev() {
            assert_eq!(store.intern_type(ty), number);
            assert_eq!(store.type_of(number), ty);
        }
    }
}
