//! The code that the interpreter runs: instructions of equal size, which name cells of the frame.
//!
//! An instruction starts with the address of the code that executes it, its handler. Its operands are up to
//! three cells and a constant; what they mean is the handler's affair. By convention `a` is the cell that an
//! instruction writes, where it writes one. Some instructions have a second slot after the first, for a constant
//! that does not fit; a slot that holds data has no handler.
//!
//! The code of a function is made when it is first called, from verified bytecode (`interp::translate`). It keeps
//! no places of instructions in the bytecode: these are found by translating once more, when the first trap
//! asks for one.

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use slotvm_bytecode::{Imm, Op, VectorAccess, VerifiedModule};

use super::state::State;
use super::target::{CallTarget, TargetCode};
use super::tiers::{Part, Tiers};

/// Code that executes an instruction.
///
/// The arguments are the instruction, the first cell of the frame, the first byte and the number of bytes of memory
/// 0, the state of the interpreter, and the accumulators of integers and floats. The result is the instruction to go on with, or null to leave the
/// interpreter. Only `interp::dispatch` calls handlers.
pub(crate) type Handler =
    unsafe fn(*const Instr, *mut u64, *mut u8, usize, *mut State, u64, f64) -> *const Instr;

/// An instruction, or a slot of data after one.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub(crate) struct Instr {
    /// The address of a [`Handler`], or 64 bits of data.
    pub(crate) handler: *const (),
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u32,
}

impl Instr {
    /// Returns a slot of data.
    pub(crate) fn data(data: u64) -> Instr {
        Instr { handler: ptr::without_provenance(data as usize), a: 0, b: 0, c: 0 }
    }

    /// The lower half of `c`, for instructions that name four cells.
    #[inline(always)]
    pub(crate) fn x(&self) -> u16 {
        self.c as u16
    }

    /// The upper half of `c`.
    #[inline(always)]
    pub(crate) fn y(&self) -> u16 {
        (self.c >> 16) as u16
    }

    /// `a` and `b` as one number, for instructions of frames of any size.
    #[inline(always)]
    pub(crate) fn ab(&self) -> u32 {
        u32::from(self.a) | u32::from(self.b) << 16
    }
}

const _: () = assert!(size_of::<Instr>() == 16);

/// An operation on cells that lie on the operand stack: on vectors, tables, or a range of memory.
#[derive(Copy, Clone, Debug)]
pub(crate) enum StackOp {
    /// Pushes a vector.
    Const(u128),
    /// An instruction on vectors alone, with its immediate as [`slotvm_bytecode::vector::eval`] takes it.
    Vector(Op, u128),
    /// Loads 16 bytes.
    Load(Imm),
    /// Stores 16 bytes.
    Store(Imm),
    /// Loads or stores a part of a vector.
    Part(VectorAccess, Imm),
    /// Pushes both cells of a local, by the first.
    LocalGet(u32),
    /// Pops them.
    LocalSet(u32),
    /// Copies them from the top.
    LocalTee(u32),
    /// Pushes both cells of a global, by the first.
    GlobalGet(u32),
    /// Pops them.
    GlobalSet(u32),
    /// A stack shuffle, `drop` or `select`, and which of its operands take two cells: see
    /// [`slotvm_bytecode::verified::WideOperands`].
    Shuffle(Op, u8),
    /// An instruction that concerns the store.
    Service(Op, Imm),
}

/// The code of a function in the interpreter.
#[derive(Debug)]
pub(crate) struct FuncCode {
    pub(crate) instrs: Box<[Instr]>,
    pub(crate) stack_ops: Box<[StackOp]>,
    /// The parameters that live in the frame stack: cell, offset in the frame, and bytes.
    pub(crate) frame_params: Box<[(u32, u32, u32)]>,
    /// Whether it shows each instruction to an observer.
    pub(crate) is_traced: bool,
    pub(crate) options: CodeOptions,
    /// The counts of calls of the function and of rounds of its loops, in the order of blocks.
    pub(crate) counts: Box<[Count]>,
    /// The code offset of the bytecode instruction that each slot was made from, once somebody has asked.
    pub(crate) offsets: OnceLock<Box<[u32]>>,
}

impl FuncCode {
    /// The number of the slot at an address.
    pub(crate) fn slot(&self, pc: *const Instr) -> usize {
        (pc.addr() - self.instrs.as_ptr().addr()) / size_of::<Instr>()
    }
}

/// A count of what a program does often.
#[derive(Debug)]
pub(crate) struct Count {
    /// Times that are left until [`Tiers::hot`] is told. Threads that run the same code may count less than all: it is no
    /// matter.
    pub(crate) left: AtomicU32,
    pub(crate) part: Part,
    /// The number of the loop in [`Body::loops`](slotvm_bytecode::verified::Body::loops).
    pub(crate) number: u32,
    /// The instructions that are executed each time, at most.
    pub(crate) n_insts: u32,
    /// The number that was left at first.
    pub(crate) threshold: u32,
    /// The number that was left when [`Tiers::hot`] had been told, or else 0. It is told again only of what has gone on:
    /// then this is larger than what can be left.
    pub(crate) left_then: AtomicU32,
    /// Native code of the loop, once there is some.
    pub(crate) native: AtomicPtr<u8>,
}

/// The count of a part, among those of its function in the order of blocks.
fn find(counts: &[Count], part: Part) -> Option<&Count> {
    let block = |part| match part {
        Part::Func(_) => 0,
        Part::Loop(_, block) => block,
    };
    let at = counts.binary_search_by_key(&block(part), |count| block(count.part)).ok()?;
    counts.get(at).filter(|count| count.part == part)
}

/// Options of code. All code of a store has the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeOptions {
    /// Blocks charge fuel.
    pub(crate) fuel: bool,
    /// Blocks poll if [`slotvm_bytecode::verified::Block::polls`] is set.
    pub(crate) polls: bool,
    /// Calls take cells from the deterministic call stack.
    pub(crate) stack_cells: bool,
    /// NaNs that arithmetic makes are canonical.
    pub(crate) canonical_nans: bool,
    /// Handlers end with calls that are jumps, see `interp::dispatch`.
    pub(crate) jumps: bool,
    /// Calls and rounds of loops are counted.
    pub(crate) counts: bool,
}

/// A module as the interpreter runs it. Functions are translated when they are first called.
pub(crate) struct ModuleCode {
    module: Arc<VerifiedModule>,
    options: CodeOptions,
    /// Those that the module defines, as they run and as they run for an observer; null where one was never
    /// called. A list itself is made when the first one is called: native code never does.
    targets: [OnceLock<Box<[AtomicPtr<CallTarget>]>>; 2],
    tiers: Option<Arc<dyn Tiers>>,
    exports: OnceLock<HashMap<String, usize>>,
}

impl ModuleCode {
    /// Translates nothing yet.
    pub(crate) fn new(
        module: Arc<VerifiedModule>,
        options: CodeOptions,
        tiers: Option<Arc<dyn Tiers>>,
    ) -> ModuleCode {
        let (targets, exports) = (Default::default(), OnceLock::new());
        ModuleCode { module, options, targets, tiers, exports }
    }

    pub(crate) fn module(&self) -> &Arc<VerifiedModule> {
        &self.module
    }

    pub(crate) fn options(&self) -> CodeOptions {
        self.options
    }

    /// The targets of calls of the functions that the module defines, in order.
    pub(crate) fn targets(&self, is_traced: bool) -> &[AtomicPtr<CallTarget>] {
        self.targets[usize::from(is_traced)].get_or_init(|| {
            let n = self.module.n_funcs() - self.module.n_imported_funcs();
            (0..n).map(|_| AtomicPtr::new(ptr::null_mut())).collect()
        })
    }

    /// The target of calls of a function that the module defines, which is made if it was never called.
    pub(crate) fn target(
        &self,
        func: u32,
        is_traced: bool,
        make: impl FnOnce(&Arc<VerifiedModule>, CodeOptions) -> CallTarget,
    ) -> &CallTarget {
        let defined = func - self.module.n_imported_funcs();
        let place = &self.targets(is_traced)[defined as usize];
        let mut target = place.load(Ordering::Acquire);
        if target.is_null() {
            let new = Box::into_raw(Box::new(make(&self.module, self.options)));
            let null = ptr::null_mut();
            target = match place.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                Err(made) => {
                    // SAFETY: the box was made above, and nobody else has its address.
                    drop(unsafe { Box::from_raw(new) });
                    made
                }
            };
        }
        // SAFETY: what is in the list was made by the lines above or is `replace`'s, which keeps what was there before. It
        // lives as long as `self`, and is never written.
        unsafe { &*target }
    }

    /// The decisions about native code of the module.
    pub(crate) fn tiers(&self) -> Option<&Arc<dyn Tiers>> {
        self.tiers.as_ref()
    }

    /// The target of calls of a function, by its number among those that the module defines, if it is made.
    pub(crate) fn made(&self, defined: u32) -> Option<&CallTarget> {
        let target = self.targets[0].get()?[defined as usize].load(Ordering::Acquire);
        // SAFETY: what is in the list stays alive as long as `self`, and is never written.
        unsafe { target.as_ref() }
    }

    /// Native code of a function, if calls go there.
    pub(crate) fn native(&self, func: u32) -> *const u8 {
        let defined = func - self.module.n_imported_funcs();
        self.made(defined).map_or(ptr::null(), CallTarget::native)
    }

    /// Lets calls of a function go to a target that is native code from now on. Nothing changes if they go to native code
    /// already.
    pub(crate) fn replace(&self, func: u32, target: CallTarget) {
        let defined = func - self.module.n_imported_funcs();
        let place = &self.targets(false)[defined as usize];
        let new = Box::into_raw(Box::new(target));
        let mut before = place.load(Ordering::Acquire);
        loop {
            // SAFETY: what is in the list stays alive as long as `self`; `new` was made above, and nobody else has it yet.
            let is_native = unsafe {
                if let TargetCode::Native(code) = &mut (*new).code {
                    code.before = before;
                }
                before.as_ref().is_some_and(|before| !before.native().is_null())
            };
            if is_native {
                // SAFETY: the box was made above, and nobody else has its address.
                drop(unsafe { Box::from_raw(new) });
                return;
            }
            match place.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    /// Lets loops of a function, which begin at these blocks in ascending order, go on in native code from now on, in the
    /// frames that are being interpreted.
    ///
    /// For [`ModuleCode::has_gone_on`], all counts of the function begin anew: its frames may leave for native code.
    pub(crate) fn leave_loops(&self, func: u32, starts: &[u32], native: *const u8) {
        self.with_counts(func, |counts| {
            for count in counts {
                if let Part::Loop(_, block) = count.part
                    && starts.binary_search(&block).is_ok()
                {
                    count.native.store(native.cast_mut(), Ordering::Release);
                    count.left.store(1, Ordering::Relaxed);
                }
                count.left_then.store(count.left.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
    }

    /// Whether something was done since [`Tiers::hot`] was first told of it.
    pub(crate) fn has_gone_on(&self, part: Part) -> bool {
        let has_gone_on = |count: &Count| {
            count.left.load(Ordering::Relaxed) != count.left_then.load(Ordering::Relaxed)
        };
        self.with_counts(part.func(), |counts| find(counts, part).is_some_and(has_gone_on))
            .unwrap_or(false)
    }

    /// The times that something was done, at least. Once [`Tiers::hot`] was told, that is nearly its threshold.
    pub(crate) fn n_times(&self, part: Part) -> u32 {
        let n_times = |count: &Count| {
            count.threshold - count.left.load(Ordering::Relaxed).min(count.threshold)
        };
        self.with_counts(part.func(), |counts| find(counts, part).map_or(0, n_times)).unwrap_or(0)
    }

    /// The result of `f` on the counts of a function, if it has any.
    fn with_counts<R>(&self, func: u32, f: impl FnOnce(&[Count]) -> R) -> Option<R> {
        let target = self.made(func - self.module.n_imported_funcs())?;
        target.interpreted().map(|code| f(&code.counts))
    }

    /// The number of the export with a name.
    pub(crate) fn export(&self, name: &str) -> Option<usize> {
        let exports = self.exports.get_or_init(|| {
            let exports = self.module.module().exports.iter();
            exports.enumerate().map(|(i, export)| (export.name.clone(), i)).collect()
        });
        exports.get(name).copied()
    }
}

/// The interpreter's code of a module, for all stores that are given it with the module
/// ([`Store::instantiate_with`](crate::Store::instantiate_with)): a function is translated once and not in each of them.
#[derive(Default)]
pub struct InterpreterCode {
    /// One for each kind of store.
    made: Mutex<Vec<Arc<ModuleCode>>>,
}

impl fmt::Debug for InterpreterCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterpreterCode").finish_non_exhaustive()
    }
}

impl InterpreterCode {
    /// The code of a module for stores with these options.
    pub(crate) fn of(
        &self,
        module: &Arc<VerifiedModule>,
        options: CodeOptions,
        tiers: Option<&Arc<dyn Tiers>>,
    ) -> Arc<ModuleCode> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let same_tiers = |code: &ModuleCode| match (&code.tiers, tiers) {
            (None, None) => true,
            (Some(made), Some(tiers)) => Arc::ptr_eq(made, tiers),
            _ => false,
        };
        let fits = |code: &&Arc<ModuleCode>| {
            code.options == options && Arc::ptr_eq(&code.module, module) && same_tiers(code)
        };
        if let Some(code) = made.iter().find(fits) {
            return code.clone();
        }
        let code = Arc::new(ModuleCode::new(module.clone(), options, tiers.cloned()));
        made.push(code.clone());
        code
    }
}

impl Drop for ModuleCode {
    fn drop(&mut self) {
        for place in self.targets.iter_mut().filter_map(OnceLock::get_mut).flatten() {
            let mut target = *place.get_mut();
            while !target.is_null() {
                // SAFETY: `target` or `replace` put it there, from a box, `self` is borrowed exclusively, and targets before
                // others have one successor.
                let last = unsafe { Box::from_raw(target) };
                target = last.before().cast_mut();
            }
        }
    }
}
