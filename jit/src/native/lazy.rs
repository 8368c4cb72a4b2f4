//! Native code that is made function by function, when one is first called.
//!
//! Calls of a function of the module go to the address in its cell of a table. At first that is a piece of
//! code that has the function compiled, puts its address into the cell, and continues there as if it had
//! been called: arguments, return address and stack are as they were. Where a function is called by its
//! record, which never changes, the record has a stub that jumps to the address in the cell.
//!
//! Each function is compiled once, whichever threads call it; the others wait. If that fails, so does every
//! call of the function, with the error. In engines whose code can be interrupted, threads compile
//! ([`crate::native::compilations`]), so that calls that wait can be interrupted, too; in others the caller compiles.

use std::arch::naked_asm;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{Builder, JoinHandle};

use slotvm_bytecode::VerifiedModule;
use slotvm_runtime::Error;
use slotvm_runtime::native::VmCtx;

use crate::code::debugger::DebugImage;
use crate::code::unit::{CodeArena, CodeError, CodeUnit, MachineCode};
use crate::compile::budget::{Budget, ModuleBudget};
use crate::compile::function::{CompileOptions, Compiler};
use crate::compile::function_info::FunctionInfo;
use crate::lower::traps::HOST_ERROR_NUMBER;
use crate::native::compilations::{Compilations, Left};
use crate::native::engine::NativeEngine;
use crate::native::raise::raise;
use crate::native::stack;

/// The code of a module, as far as it is compiled.
pub(crate) struct LazyCode {
    stubs: CodeUnit,
    /// Stubs have its address.
    state: Arc<State>,
}

/// The inputs and outputs of compiling a function.
struct State {
    /// Reference to itself for the threads that compile.
    this: Weak<State>,
    native: Arc<NativeEngine>,
    module: Arc<VerifiedModule>,
    options: CompileOptions,
    shares: Budget,
    budget: Arc<ModuleBudget>,
    /// The targets of calls, by function that the module defines.
    entries: Box<[AtomicPtr<u8>]>,
    // Dropped before the code that it shows.
    functions: Box<[OnceLock<Result<LazyFunction, String>>]>,
    code: CodeArena,
    compilers: Idle<Compiler>,
    /// The functions that threads are compiling, if calls can be interrupted.
    compilations: Compilations,
}

/// Things that are not at work. Nobody waits for another thread: the child of a fork may have inherited the lock from a
/// thread that it has not.
struct Idle<T>(Mutex<Vec<T>>);

impl<T> Default for Idle<T> {
    fn default() -> Idle<T> {
        Idle(Mutex::default())
    }
}

impl<T> Idle<T> {
    fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.pop()
    }

    fn give(&self, idle: T) {
        if let Ok(mut all) = self.0.try_lock() {
            all.push(idle);
        }
    }
}

/// The reason for which a call has no code.
enum NoCode {
    Failed(Error),
    /// The error is pending in the store.
    Interrupted,
}

impl From<Left> for NoCode {
    fn from(left: Left) -> NoCode {
        match left {
            Left::Interrupted => NoCode::Interrupted,
            Left::NoThread(error) => {
                let error = format!("cannot start a thread to compile a function: {error}");
                NoCode::Failed(Error::compile(error))
            }
        }
    }
}

struct LazyFunction {
    _debug_image: Option<DebugImage>,
    code: Range<usize>,
    info: FunctionInfo,
}

impl LazyCode {
    /// Code of which nothing is compiled yet.
    ///
    /// # Errors
    /// Fails if there is no memory for it.
    pub(crate) fn new(
        native: &Arc<NativeEngine>,
        module: &Arc<VerifiedModule>,
        mut options: CompileOptions,
        budget: Arc<ModuleBudget>,
    ) -> Result<LazyCode, CodeError> {
        let n_funcs = module.module().funcs.len();
        let entry = || AtomicPtr::new(ptr::null_mut());
        let entries: Box<[_]> = std::iter::repeat_with(entry).take(n_funcs).collect();
        // Calls have the address of the table.
        let table = entries.as_ptr().expose_provenance();
        options.lower.entries = Some(table);
        let state = Arc::new_cyclic(|this| State {
            this: this.clone(),
            native: native.clone(),
            module: module.clone(),
            options,
            shares: budget.functions(),
            budget,
            entries,
            functions: std::iter::repeat_with(OnceLock::new).take(n_funcs).collect(),
            code: CodeArena::new(),
            compilers: Idle::default(),
            compilations: Compilations::default(),
        });
        let address = ptr::from_ref(&*state).expose_provenance();
        let stubs = MachineCode {
            bytes: stubs::write(address, enter as *const () as usize, table, n_funcs),
            alignment: stubs::BYTES as u64,
            ..MachineCode::default()
        };
        let stubs = CodeUnit::place(native.isa(), 0, &[stubs], None)?;
        let code = LazyCode { stubs, state };
        for (i, entry) in code.state.entries.iter().enumerate() {
            entry.store(code.stub(i).wrapping_add(stubs::COMPILE_AT).cast_mut(), Ordering::Relaxed);
        }
        Ok(code)
    }

    fn stub(&self, index: usize) -> *const u8 {
        self.stubs.func(0).wrapping_add(stubs::HEAD_BYTES + index * stubs::BYTES)
    }

    /// Returns the address for calls of a function that the module defines, by its number among them.
    pub(crate) fn func(&self, index: usize) -> *const u8 {
        match self.state.functions[index].get() {
            Some(Ok(function)) => ptr::with_exposed_provenance(function.code.start),
            _ => self.stub(index),
        }
    }

    #[cfg(test)]
    pub(crate) fn codes(&self) -> impl Iterator<Item = Range<usize>> {
        self.compiled().map(|function| function.code.clone())
    }

    /// Returns the statistics of the compiled functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &FunctionInfo> {
        self.compiled().map(|function| &function.info)
    }

    /// The bytes of memory that the code takes.
    pub(crate) fn bytes(&self) -> usize {
        self.stubs.bytes() + self.compiled().map(|function| function.code.len()).sum::<usize>()
    }

    fn compiled(&self) -> impl Iterator<Item = &LazyFunction> {
        let functions = self.state.functions.iter();
        functions.filter_map(|function| function.get()?.as_ref().ok())
    }
}

impl Drop for LazyCode {
    /// Waits for compilations that calls have left.
    fn drop(&mut self) {
        self.state.compilations.join();
    }
}

impl State {
    /// The code of a function, which is compiled if it is not yet.
    fn code_of(
        &self,
        index: usize,
        is_interrupted: impl FnMut() -> bool,
    ) -> Result<*const u8, NoCode> {
        let function = &self.functions[index];
        if self.native.config().polls() {
            let (is_done, start) = (|| function.get().is_some(), || self.start(index));
            self.compilations.wait(index, is_done, start, is_interrupted)?;
        }
        match function.get_or_init(|| self.compile(index).map_err(|error| error.to_string())) {
            Ok(function) => Ok(ptr::with_exposed_provenance(function.code.start)),
            Err(error) => Err(NoCode::Failed(Error::compile(error.clone()))),
        }
    }

    /// Starts a thread that compiles a function.
    fn start(&self, index: usize) -> io::Result<JoinHandle<()>> {
        let state = self.this.upgrade().expect("whoever calls code keeps the state");
        let span = tracing::Span::current();
        let compile = move || {
            let compile = || span.in_scope(|| state.compile(index));
            let result = match catch_unwind(AssertUnwindSafe(compile)) {
                Ok(result) => result.map_err(|error| error.to_string()),
                Err(_) => Err("the code generator panicked".to_owned()),
            };
            // Only this thread compiles the function, unless it was inherited by the child of a fork.
            _ = state.functions[index].set(result);
            state.compilations.end(index);
        };
        let builder = Builder::new().name("slotvm-compiler".to_owned());
        builder.stack_size(stack::THREAD_BYTES).spawn(compile)
    }

    fn compile(&self, index: usize) -> Result<LazyFunction, Error> {
        let native = &self.native;
        let module = &self.module;
        let func = module.n_imported_funcs() + index as u32;
        let share = self.shares.share(module, func);
        let compiler = self.compilers.take();
        let mut compiler = compiler.unwrap_or_else(|| Compiler::new(self.options.clone()));
        let compiled = stack::with_room(|| compiler.compile(module, func, share))?;
        self.compilers.give(compiler);
        self.budget.draw_function(compiled.work.time(self.options.lower.slots));
        let code = self.code.place(native.isa(), &compiled.code, module).map_err(Error::compile)?;
        let info = compiled.info(module, func);
        let _debug_image = native.announce_function(&code, &info.name);
        let entry = ptr::with_exposed_provenance_mut(code.start);
        self.entries[index].store(entry, Ordering::Release);
        Ok(LazyFunction { _debug_image, code, info })
    }
}

/// Returns the code of a function for [`enter`], or null after an error, which is then pending in the store whose
/// code made the call.
///
/// # Safety
/// Called by [`enter`], with what the stub of the function and the call have given it.
unsafe extern "C" fn compile(ctx: *mut VmCtx, index: usize, state: *const State) -> *const u8 {
    // SAFETY: whoever calls code keeps it alive, and the state with it.
    let state = unsafe { &*state };
    // A panic of the compiler resumes in the host, past the frames of native code.
    let mut seen = None;
    let func = state.module.n_imported_funcs() + index as u32;
    // SAFETY: the call passes the context of the function, in whose store it runs; if it is interrupted, this
    // returns null, with which `enter` goes back to the host.
    let is_interrupted =
        || unsafe { slotvm_runtime::native::interrupts_wait(ctx, func, &mut seen) };
    let failure = match catch_unwind(AssertUnwindSafe(|| state.code_of(index, is_interrupted))) {
        Ok(Ok(code)) => return code,
        Ok(Err(NoCode::Interrupted)) => return ptr::null(),
        Ok(Err(NoCode::Failed(error))) => Ok(error),
        Err(panic) => Err(panic),
    };
    // SAFETY: the call passes the context of the code that it runs in.
    unsafe { slotvm_runtime::native::leave_pending(ctx, failure) };
    ptr::null()
}

/// Compiles a function and continues in it with all registers that may hold arguments unchanged. Stubs of functions
/// that are not compiled jump here, with the function's number in `r11` and the [`State`] in `r10`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 176",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "movups [rsp + 48], xmm0",
        "movups [rsp + 64], xmm1",
        "movups [rsp + 80], xmm2",
        "movups [rsp + 96], xmm3",
        "movups [rsp + 112], xmm4",
        "movups [rsp + 128], xmm5",
        "movups [rsp + 144], xmm6",
        "movups [rsp + 160], xmm7",
        "mov rsi, r11",
        "mov rdx, r10",
        "call {compile}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "movups xmm0, [rsp + 48]",
        "movups xmm1, [rsp + 64]",
        "movups xmm2, [rsp + 80]",
        "movups xmm3, [rsp + 96]",
        "movups xmm4, [rsp + 112]",
        "movups xmm5, [rsp + 128]",
        "movups xmm6, [rsp + 144]",
        "movups xmm7, [rsp + 160]",
        "mov rsp, rbp",
        "pop rbp",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        // As if the caller had called `raise`.
        "2:",
        "mov edi, {host_error}",
        "jmp {raise}",
        compile = sym compile,
        host_error = const HOST_ERROR_NUMBER,
        raise = sym raise,
    )
}

/// Compiles a function and continues in it with all registers that may hold arguments unchanged. Stubs of functions
/// that are not compiled jump here, with the function's number in `x16` and the [`State`] in `x17`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "stp x29, x30, [sp, #-224]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        // Guest code has its context there: it keeps two registers for other things.
        "mov x0, x2",
        "mov x1, x16",
        "mov x2, x17",
        "bl {compile}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        "cbz x16, 2f",
        "br x16",
        // As if the caller had called `raise`.
        "2:",
        "mov w0, #{host_error}",
        "b {raise}",
        compile = sym compile,
        host_error = const HOST_ERROR_NUMBER,
        raise = sym raise,
    )
}

/// The machine code of stubs: a head that jumps to [`enter`], and for each function one that jumps to what
/// its cell says, followed by one that jumps to the head with the function's number.
mod stubs {
    /// Size of the head.
    pub(super) const HEAD_BYTES: usize = 32;
    /// Size of the stubs of one function.
    pub(super) const BYTES: usize = 32;

    /// Writes all of them. The addresses are those of the state, of [`super::enter`], and of the cells.
    pub(super) fn write(state: usize, enter: usize, cells: usize, n_funcs: usize) -> Vec<u8> {
        let mut code = Vec::with_capacity(HEAD_BYTES + n_funcs * BYTES);
        head(&mut code, state as u64, enter as u64);
        assert_eq!(code.len(), HEAD_BYTES);
        for index in 0..n_funcs {
            let cell = cells + index * size_of::<usize>();
            let to_head = (code.len() + COMPILE_AT) as u32;
            stub(&mut code, cell as u64, index as u32, to_head);
            assert_eq!(code.len(), HEAD_BYTES + (index + 1) * BYTES);
        }
        code
    }

    /// The offset of the second stub of a function.
    #[cfg(target_arch = "x86_64")]
    pub(super) const COMPILE_AT: usize = 13;

    #[cfg(target_arch = "x86_64")]
    fn head(code: &mut Vec<u8>, state: u64, enter: u64) {
        code.extend([0x4c, 0x8b, 0x15, 9, 0, 0, 0]); // mov r10, [rip + 9]
        code.extend([0xff, 0x25, 11, 0, 0, 0]); // jmp [rip + 11]
        code.extend([0xcc; 3]);
        code.extend(state.to_le_bytes());
        code.extend(enter.to_le_bytes());
    }

    /// `at` is where the second stub starts, counted from the head.
    #[cfg(target_arch = "x86_64")]
    fn stub(code: &mut Vec<u8>, cell: u64, index: u32, at: u32) {
        code.extend([0x49, 0xba]); // mov r10, cell
        code.extend(cell.to_le_bytes());
        code.extend([0x41, 0xff, 0x22]); // jmp [r10]
        code.extend([0x41, 0xbb]); // mov r11d, index
        code.extend(index.to_le_bytes());
        code.push(0xe9); // jmp head
        code.extend(0_u32.wrapping_sub(at + 11).to_le_bytes());
        code.extend([0xcc; 8]);
    }

    /// The offset of the second stub of a function.
    #[cfg(target_arch = "aarch64")]
    pub(super) const COMPILE_AT: usize = 12;

    #[cfg(target_arch = "aarch64")]
    fn head(code: &mut Vec<u8>, state: u64, enter: u64) {
        let load = |register: u32, offset: u32| 0x5800_0000 | offset / 4 << 5 | register;
        // ldr x17, state; ldr x15, enter; br x15; nop
        for inst in [load(17, 16), load(15, 20), 0xd61f_01e0, 0xd503_201f] {
            code.extend(inst.to_le_bytes());
        }
        code.extend(state.to_le_bytes());
        code.extend(enter.to_le_bytes());
    }

    /// `at` is where the second stub starts, counted from the head.
    #[cfg(target_arch = "aarch64")]
    fn stub(code: &mut Vec<u8>, cell: u64, index: u32, at: u32) {
        let (low, high) = (index & 0xffff, index >> 16);
        let back = 0_u32.wrapping_sub(at + 8) / 4 & 0x03ff_ffff;
        for inst in [
            0x5800_0000 | 24 / 4 << 5 | 16, // ldr x16, cell
            0xf940_0210,                    // ldr x16, [x16]
            0xd61f_0200,                    // br x16
            0x5280_0010 | low << 5,         // movz w16, low
            0x72a0_0010 | high << 5,        // movk w16, high, lsl 16
            0x1400_0000 | back,             // b head
        ] {
            code.extend(inst.to_le_bytes());
        }
        code.extend(cell.to_le_bytes());
    }

    #[cfg(target_arch = "aarch64")]
    const _: () = assert!(
        slotvm_bytecode::limits::FUNCS_MAX * BYTES < 1 << 27,
        "jumps reach the head from all stubs"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_lock_that_a_fork_may_have_left() {
        let idle = Idle(Mutex::new(vec![1, 2]));
        let left = idle.0.lock().unwrap();
        assert_eq!(idle.take(), None);
        idle.give(3);
        drop(left);
        assert_eq!((idle.take(), idle.take(), idle.take()), (Some(2), Some(1), None));
        idle.give(3);
        assert_eq!(idle.take(), Some(3));
    }
}
