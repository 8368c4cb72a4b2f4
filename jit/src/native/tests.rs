//! Tests of code memory, trampolines, activations and signals on functions written in CLIF by hand.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, SourceLoc, UserFuncName,
    Value, types,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use slotvm_bytecode::ValType::{self, F32, F64, I32, I64};
use slotvm_bytecode::module::{Func, MemoryType, Module};
use slotvm_bytecode::{FuncType, Op, TrapCode, VerifiedModule};
use slotvm_runtime::native::limit_below;
use slotvm_runtime::native::{HostCtx, Libcalls, MemorySpan, Shared, VmCtx, offsets as rt};
use slotvm_runtime::{Memory, MemoryPlan};

use crate::code::machine_code::MachineCode;
use crate::code::pctable::{Place, PlaceId, TrapReason};
use crate::code::unit::CodeUnit;
use crate::lower::abi;
use crate::lower::abi::Direction;
use crate::lower::traps::HOST_ERROR;
use crate::native::crossing::activation::{self, NativeTrap};
use crate::native::crossing::raise::raise;
use crate::native::crossing::signals;
use crate::native::crossing::trampoline;

fn isa() -> OwnedTargetIsa {
    let mut flags = settings::builder();
    flags.set("preserve_frame_pointers", "true").unwrap();
    flags.set("use_colocated_libcalls", "false").unwrap();
    flags.set("opt_level", "speed").unwrap();
    cranelift_native::builder().unwrap().finish(settings::Flags::new(flags)).unwrap()
}

/// Fills the body of a function; gets its parameters.
type Fill<'a> = dyn Fn(&mut FunctionBuilder<'_>, &[Value]) + 'a;

/// A function in CLIF: its type and its body.
type Body<'a> = (FuncType, &'a Fill<'a>);

/// Compiles functions as a module does; the source location of an instruction is its bytecode offset.
fn unit(isa: &OwnedTargetIsa, bodies: &[Body<'_>]) -> CodeUnit {
    let codes: Vec<MachineCode> =
        bodies.iter().enumerate().map(|(i, body)| compile(isa, i as u32, body)).collect();
    CodeUnit::place(isa, 0, &codes, Some(module(bodies.len()))).unwrap()
}

fn compile(isa: &OwnedTargetIsa, func: u32, (ty, body): &Body<'_>) -> MachineCode {
    let signature = abi::guest_signature(ty);
    let mut context =
        Context::for_function(Function::with_name_signature(UserFuncName::default(), signature));
    let mut scratch = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut context.func, &mut scratch);
    let limit = {
        let ctx = b.func.create_global_value(ir::GlobalValueData::VMContext);
        let mut load = |base, offset: i32| {
            let flags = b.func.dfg.mem_flags.insert(MemFlagsData::trusted()).unwrap();
            b.func.create_global_value(ir::GlobalValueData::Load {
                base,
                offset: offset.into(),
                global_type: abi::POINTER,
                flags,
            })
        };
        let shared = load(ctx, rt::VMCTX_SHARED);
        load(shared, rt::SHARED_STACK_LIMIT)
    };
    b.func.stack_limit = Some(limit);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let params = b.block_params(block).to_vec();
    body(&mut b, &params);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
    let compiled = context.compile(&**isa, &mut ControlPlane::default()).unwrap().clone();
    let srclocs = compiled.buffer.get_srclocs_sorted().to_vec();
    let mut places = Vec::new();
    let place = |offset, _| {
        let range = srclocs.iter().find(|range| (range.start..range.end).contains(&offset));
        let loc = range.map(|range| range.loc).filter(|loc| !loc.is_default());
        let offset = loc.map_or(0, SourceLoc::bits);
        places.push(Place { func, offset, inlined_at: PlaceId::NONE });
        PlaceId(places.len() as u32 - 1)
    };
    let mut code =
        MachineCode::new(&compiled, &context.func, &**isa, |code| Some(reason(code)), place);
    code.places = places;
    code
}

fn reason(code: ir::TrapCode) -> TrapReason {
    TrapReason::Guest(match code {
        HOST_ERROR => return TrapReason::HostError,
        ir::TrapCode::STACK_OVERFLOW => TrapCode::StackOverflow,
        ir::TrapCode::HEAP_OUT_OF_BOUNDS => TrapCode::MemoryOutOfBounds,
        ir::TrapCode::INTEGER_DIVISION_BY_ZERO => TrapCode::IntegerDivisionByZero,
        ir::TrapCode::INTEGER_OVERFLOW => TrapCode::IntegerOverflow,
        code => TrapCode::from_number(code.as_raw().get()).unwrap(),
    })
}

fn module(n_funcs: usize) -> Arc<VerifiedModule> {
    let func = Func { code: vec![Op::Unreachable.code() as u8], ..Func::default() };
    let module = Module {
        types: vec![FuncType::default()],
        funcs: vec![func; n_funcs],
        ..Module::default()
    };
    Arc::new(slotvm_bytecode::verify(module).unwrap())
}

/// Calls another function of the unit.
fn call(b: &mut FunctionBuilder<'_>, func: u32, ty: &FuncType, args: &[Value]) -> Vec<Value> {
    let signature = b.import_signature(abi::guest_signature(ty));
    let name = b.func.declare_imported_user_function(abi::func_name(func));
    let name = ExternalName::User(name);
    let callee =
        b.import_function(ExtFuncData { name, signature, colocated: true, patchable: false });
    let call = b.ins().call(callee, args);
    b.inst_results(call).to_vec()
}

/// A host function of a test: gets the fixture and its cells.
type HostFunc = fn(&Fixture<'_>, &mut u64) -> u32;

/// Bytes of the native stack that the tests' functions may use.
const STACK_BYTES_MAX: usize = 256 << 10;

/// Structures of a store, as far as native code looks at them.
struct Fixture<'a> {
    unit: &'a CodeUnit,
    entry: CodeUnit,
    host: Cell<HostFunc>,
    shared: Shared,
    ctx: VmCtx,
    host_ctx: HostCtx,
    /// Empty: all its addresses fault.
    memory: Memory,
    span: MemorySpan,
}

impl<'a> Fixture<'a> {
    /// A fixture to call functions of one type in.
    fn new(isa: &OwnedTargetIsa, unit: &'a CodeUnit, ty: &FuncType) -> Box<Fixture<'a>> {
        signals::install();
        let plan = MemoryPlan { reservation_bytes: 1 << 16, guard_bytes: 1 << 16 };
        let memory = Memory::new(MemoryType { min: 0, max: None }, plan, 1).unwrap();
        let span = MemorySpan { def: memory.def(), bytes: memory.plan().span_bytes() };
        let shared =
            Shared { libcalls: &LIBCALLS, raise: Some(raise), n_memories: 1, ..Shared::EMPTY };
        let ctx = VmCtx { memory: memory.def(), ..VmCtx::EMPTY };
        let mut fixture = Box::new(Fixture {
            unit,
            entry: trampoline::place(isa, Direction::FromHost, ty).unwrap(),
            host: Cell::new(|_, _| unreachable!("no host function is called")),
            shared,
            ctx,
            host_ctx: HostCtx { shared: ptr::null_mut(), call: host_call },
            memory,
            span,
        });
        let address = &raw mut *fixture;
        fixture.shared.store = address.cast();
        fixture.shared.memories = &raw const fixture.span;
        fixture.ctx.shared = &raw mut fixture.shared;
        fixture.host_ctx.shared = &raw mut fixture.shared;
        fixture
    }

    fn call(&self, func: usize, cells: &mut [u64]) -> Result<(), NativeTrap> {
        self.enter(&raw const self.ctx, self.unit.func(func), cells)
    }

    fn enter(
        &self,
        ctx: *const VmCtx,
        code: *const u8,
        cells: &mut [u64],
    ) -> Result<(), NativeTrap> {
        let shared = self.ctx.shared;
        // SAFETY: the fixture's structures are complete as far as the tests' functions read them.
        unsafe {
            let outer_limit = (*shared).stack_limit;
            if outer_limit == 0 {
                let marker = 0u8;
                let sp = (&raw const marker).addr();
                (*shared).stack_limit = limit_below(sp, STACK_BYTES_MAX);
            }
            let entry = trampoline::entry(&self.entry);
            let result = activation::enter(entry, ctx.cast_mut(), code, cells.as_mut_ptr());
            (*shared).stack_limit = outer_limit;
            result
        }
    }

    /// Calls a function of one cell and returns where it trapped.
    fn trap(&self, func: usize, arg: u64) -> (TrapReason, Vec<(u32, u32)>) {
        let trap = self.call(func, &mut [arg]).unwrap_err();
        (trap.reason, places(&trap))
    }
}

fn places(trap: &NativeTrap) -> Vec<(u32, u32)> {
    trap.frames.iter().map(|frame| (frame.place.func, frame.place.offset)).collect()
}

extern "C" fn host_call(ctx: *mut HostCtx, cells: *mut u64, _: usize) -> u32 {
    // SAFETY: the tests' host contexts lead to a fixture, and the cells are at least one.
    let (fixture, cell) = unsafe { (&*(*(*ctx).shared).store.cast::<Fixture<'_>>(), &mut *cells) };
    fixture.host.get()(fixture, cell)
}

macro_rules! unused {
    ($($ty:ty),*) => { unused!($($ty),* => u32) };
    ($($ty:ty),* => $result:ty) => { {
        extern "C" fn unused($(_: $ty),*) -> $result { unreachable!() }
        unused
    } };
}

static LIBCALLS: Libcalls = Libcalls {
    poll: unused!(*mut VmCtx, usize),
    memory_grow: unused!(*mut VmCtx, u32 => u64),
    set_bytes: {
        extern "C" fn unused(_: *mut u8, _: u32, _: usize) {}
        unused
    },
    move_bytes: {
        extern "C" fn unused(_: *mut u8, _: *const u8, _: usize) {}
        unused
    },
    memory_fill: unused!(*mut VmCtx, u32, u32, u32),
    memory_copy: unused!(*mut VmCtx, u32, u32, u32),
    memory_init: unused!(*mut VmCtx, u32, u32, u32, u32),
    data_drop: {
        extern "C" fn unused(_: *mut VmCtx, _: u32) {}
        unused
    },
    table_grow: unused!(*mut VmCtx, u32, u64, u32 => u64),
    table_fill: unused!(*mut VmCtx, u32, u32, u64, u32),
    table_copy: unused!(*mut VmCtx, u64, u32, u32, u32),
    table_init: unused!(*mut VmCtx, u64, u32, u32, u32),
    elem_drop: {
        extern "C" fn unused(_: *mut VmCtx, _: u32) {}
        unused
    },
};

fn at(b: &mut FunctionBuilder<'_>, offset: u32) {
    b.set_srcloc(SourceLoc::new(offset));
}

fn unary() -> FuncType {
    FuncType::new([I64], [I64])
}

#[test]
fn values_of_all_types_come_through_in_order() {
    let isa = isa();
    let params = [I32, F64, I64, F32];
    // Reversed, by registers; and twice over, by a return area.
    for n_copies in [1, 2, 5] {
        let results: Vec<ValType> =
            (0..n_copies).flat_map(|_| params.iter().rev().copied()).collect();
        let ty = FuncType::new(params, results);
        let body = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
            let params = &args[abi::n_leading_params(&ty)..];
            let values: Vec<Value> =
                (0..n_copies).flat_map(|_| params.iter().rev().copied()).collect();
            if !abi::returns_by_area(&ty) {
                b.ins().return_(&values);
                return;
            }
            for (i, (&value, ty)) in values.iter().zip(&ty.results).enumerate() {
                let value = match ty {
                    I32 => b.ins().uextend(types::I64, value),
                    F32 => {
                        let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), value);
                        b.ins().uextend(types::I64, bits)
                    }
                    _ => value,
                };
                b.ins().store(MemFlagsData::trusted(), value, args[1], i as i32 * 8);
            }
            b.ins().return_(&[]);
        };
        let unit = unit(&isa, &[(ty.clone(), &body)]);
        let fixture = Fixture::new(&isa, &unit, &ty);
        let (a, b, c, d) = (0xffff_fff0_u64, 1.5_f64.to_bits(), u64::MAX - 1, 0xc000_0000_u64);
        let mut cells = vec![u64::MAX; ty.results.len().max(4)];
        cells[..4].copy_from_slice(&[a, b, c, d]);
        fixture.call(0, &mut cells).unwrap();
        assert_eq!(cells, [d, c, b, a].repeat(n_copies));
    }
}

#[test]
fn host_functions_get_and_give_values_of_all_types() {
    let isa = isa();
    let ty = FuncType::new([I32, F64, I64, F32], [I32, F64, I64, F32].repeat(3));
    // The unit has no code of interest: the host trampoline is entered directly, as guest code does.
    let unit = unit(&isa, &[(unary(), &|b, args| _ = b.ins().return_(&args[1..]))]);
    let fixture = Fixture::new(&isa, &unit, &ty);
    fixture.host.set(|_, first| {
        // SAFETY: the trampoline passes room for twelve cells.
        let cells = unsafe { std::slice::from_raw_parts_mut(&raw mut *first, 12) };
        assert_eq!(cells[..4], [0xffff_fff0, 1.5_f64.to_bits(), 7, 0xc000_0000]);
        cells.copy_within(0..4, 4);
        cells.copy_within(0..4, 8);
        0
    });
    let mut cells = [0; 12];
    cells[..4].copy_from_slice(&[0xffff_fff0, 1.5_f64.to_bits(), 7, 0xc000_0000]);
    // A host function's context starts as the one of a guest function does.
    let ctx = (&raw const fixture.host_ctx).cast();
    let host = trampoline::place(&isa, Direction::ToHost, &ty).unwrap();
    fixture.enter(ctx, host.func(0), &mut cells).unwrap();
    assert_eq!(cells, [0xffff_fff0, 1.5_f64.to_bits(), 7, 0xc000_0000].repeat(3)[..]);
}

/// Functions that trap, each in another direction; those from 4 on call others.
fn trapping_unit(isa: &OwnedTargetIsa) -> CodeUnit {
    let unreachable = |b: &mut FunctionBuilder<'_>, _: &[Value]| {
        at(b, 10);
        b.ins().trap(ir::TrapCode::unwrap_user(TrapCode::Unreachable.number()));
    };
    let load = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        at(b, 20);
        let flags = MemFlagsData::new().with_trap_code(Some(ir::TrapCode::HEAP_OUT_OF_BOUNDS));
        let trusted = MemFlagsData::trusted();
        let memory = b.ins().load(abi::POINTER, trusted, args[0], rt::VMCTX_MEMORY);
        let base = b.ins().load(abi::POINTER, trusted, memory, rt::MEMORY_BASE);
        let address = b.ins().iadd(base, args[1]);
        let value = b.ins().load(types::I64, flags, address, 0);
        at(b, 21);
        b.ins().return_(&[value]);
    };
    let divide = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        at(b, 30);
        let min = b.ins().iconst(types::I64, i64::MIN);
        let value = b.ins().sdiv(min, args[1]);
        at(b, 31);
        b.ins().return_(&[value]);
    };
    let recurse = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        at(b, 40);
        let one = b.ins().iconst(types::I64, 1);
        let next = b.ins().iadd(args[1], one);
        let results = call(b, 3, &unary(), &[args[0], next]);
        let sum = b.ins().iadd(results[0], one);
        b.ins().return_(&[sum]);
    };
    // Calls function `arg >> 32` with the lower half of `arg`.
    let dispatch = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        let shift = b.ins().iconst(types::I64, 32);
        let func = b.ins().ushr(args[1], shift);
        let low = b.ins().ireduce(types::I32, args[1]);
        let low = b.ins().uextend(types::I64, low);
        for callee in 0..4 {
            let (taken, next) = (b.create_block(), b.create_block());
            let number = b.ins().iconst(types::I64, i64::from(callee));
            let equal = b.ins().icmp(IntCC::Equal, func, number);
            b.ins().brif(equal, taken, &[], next, &[]);
            b.switch_to_block(taken);
            at(b, 50 + callee);
            let results = call(b, callee, &unary(), &[args[0], low]);
            b.ins().return_(&results);
            b.switch_to_block(next);
        }
        b.ins().return_(&[args[1]]);
    };
    let bodies: [&Fill<'_>; 5] = [&unreachable, &load, &divide, &recurse, &dispatch];
    unit(isa, &bodies.map(|body| (unary(), body)))
}

/// The address of a page that cannot be read.
fn guard_page() -> u64 {
    // SAFETY: a new mapping at an address that the system picks.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    page.addr() as u64
}

#[test]
fn every_kind_of_trap_comes_back_with_its_place() {
    let isa = isa();
    let unit = trapping_unit(&isa);
    let fixture = Fixture::new(&isa, &unit, &unary());
    let guest = TrapReason::Guest;
    for _ in 0..3 {
        assert_eq!(fixture.trap(0, 0), (guest(TrapCode::Unreachable), vec![(0, 10)]));
        for address in [0, (2 << 16) - 8] {
            let trap = fixture.trap(1, address);
            assert_eq!(trap, (guest(TrapCode::MemoryOutOfBounds), vec![(1, 20)]));
        }
        assert_eq!(fixture.trap(2, 0), (guest(TrapCode::IntegerDivisionByZero), vec![(2, 30)]));
        let overflow = fixture.trap(2, u64::MAX);
        assert_eq!(overflow, (guest(TrapCode::IntegerOverflow), vec![(2, 30)]));
        let mut cells = [2];
        fixture.call(2, &mut cells).unwrap();
        assert_eq!(cells[0] as i64, i64::MIN / 2);
    }
    assert_eq!(fixture.trap(4, 2 << 32).1, [(2, 30), (4, 52)]);
    let mut cells = [9 << 32];
    fixture.call(4, &mut cells).unwrap();
    assert_eq!(cells, [9 << 32]);
}

#[test]
fn recursion_ends_in_a_trap_with_the_innermost_frames() {
    let isa = isa();
    let unit = trapping_unit(&isa);
    let fixture = Fixture::new(&isa, &unit, &unary());
    let trap = fixture.call(4, &mut [3 << 32]).unwrap_err();
    assert_eq!(trap.reason, TrapReason::Guest(TrapCode::StackOverflow));
    let places = places(&trap);
    assert_eq!(places[0], (3, 0));
    assert!(places[1..].iter().all(|&place| place == (3, 40)), "{places:?}");
    // A frame has at least 16 bytes, and the deepest one uses up the stack.
    let n_frames = places.len() as u64 + trap.n_frames_omitted;
    assert!((100..=STACK_BYTES_MAX as u64 / 16).contains(&n_frames), "{n_frames}");
}

/// The host function of the unit that the tests of re-entry use is called by function 0.
fn reentrant_unit(isa: &OwnedTargetIsa, host: &CodeUnit) -> CodeUnit {
    let host_code = host.func(0).expose_provenance() as i64;
    let outer = move |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        // The host context follows the context of the fixture, see there.
        let offset = std::mem::offset_of!(Fixture<'_>, host_ctx) as i64
            - std::mem::offset_of!(Fixture<'_>, ctx) as i64;
        let offset = b.ins().iconst(types::I64, offset);
        let host_ctx = b.ins().iadd(args[0], offset);
        let code = b.ins().iconst(types::I64, host_code);
        let signature = b.import_signature(abi::guest_signature(&unary()));
        at(b, 5);
        let call = b.ins().call_indirect(signature, code, &[host_ctx, args[1]]);
        let result = b.inst_results(call)[0];
        let one = b.ins().iconst(types::I64, 1);
        let sum = b.ins().iadd(result, one);
        b.ins().return_(&[sum]);
    };
    let divide = |b: &mut FunctionBuilder<'_>, args: &[Value]| {
        at(b, 7);
        let hundred = b.ins().iconst(types::I64, 100);
        let value = b.ins().udiv(hundred, args[1]);
        b.ins().return_(&[value]);
    };
    unit(isa, &[(unary(), &outer), (unary(), &divide)])
}

#[test]
fn a_trap_in_a_nested_entry_ends_that_entry_only() {
    let isa = isa();
    let host = trampoline::place(&isa, Direction::ToHost, &unary()).unwrap();
    let unit = reentrant_unit(&isa, &host);
    let fixture = Fixture::new(&isa, &unit, &unary());
    fixture.host.set(|fixture, cell| {
        // SAFETY: what the fixture shares is alive.
        let limit = || unsafe { (*fixture.ctx.shared).stack_limit };
        let outer_limit = limit();
        let inner = fixture.trap(1, 0);
        assert_eq!(inner, (TrapReason::Guest(TrapCode::IntegerDivisionByZero), vec![(1, 7)]));
        assert_eq!(limit(), outer_limit);
        match *cell {
            // Fails itself.
            0 => 1,
            // Re-enters to a depth.
            n => {
                let mut cells = [n - 1];
                match fixture.call(0, &mut cells) {
                    Ok(()) => {
                        *cell = cells[0];
                        0
                    }
                    Err(trap) => {
                        assert_eq!(trap.reason, TrapReason::HostError);
                        assert_eq!(places(&trap), [(0, 5)]);
                        *cell = 1000;
                        0
                    }
                }
            }
        }
    });
    assert_eq!(fixture.trap(0, 0), (TrapReason::HostError, vec![(0, 5)]));
    let mut cells = [4];
    fixture.call(0, &mut cells).unwrap();
    assert_eq!(cells, [1004]);
}

#[test]
fn threads_trap_independently() {
    let isa = isa();
    let unit = trapping_unit(&isa);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (isa, unit) = (&isa, &unit);
            scope.spawn(move || {
                let fixture = Fixture::new(isa, unit, &unary());
                for i in 0..500 {
                    match (n + i) % 4 {
                        0 => assert_eq!(fixture.trap(4, 0).1, [(0, 10), (4, 50)]),
                        1 => assert_eq!(fixture.trap(4, 1 << 32).1, [(1, 20), (4, 51)]),
                        2 => assert_eq!(fixture.trap(4, 2 << 32).1, [(2, 30), (4, 52)]),
                        _ => assert_eq!(fixture.trap(3, 0).1[0], (3, 0)),
                    }
                    // Units come and go meanwhile.
                    if i % 100 == 0 {
                        drop(trapping_unit(isa));
                    }
                }
            });
        }
    });
}

/// Set in a child process, to what it should do.
const CRASH: &str = "SLOTVM_TEST_CRASH";

#[test]
fn faults_of_the_host_are_not_swallowed() {
    use std::os::unix::process::ExitStatusExt as _;

    if let Ok(how) = std::env::var(CRASH) {
        crash(&how);
    }
    for (how, signal) in [
        ("host", libc::SIGSEGV),
        ("callback", libc::SIGSEGV),
        ("sent", libc::SIGILL),
        ("wild access", libc::SIGSEGV),
        ("no address", libc::SIGSEGV),
    ] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "native::tests::faults_of_the_host_are_not_swallowed"])
            .env(CRASH, how)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{how}: {output:?}");
    }
}

/// Makes the host fault, in a process that has run native code.
fn crash(how: &str) {
    fn fault() {
        // SAFETY: none; it is to fault.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(guard_page() as usize).write_volatile(1) }
    }

    let isa = isa();
    let host = trampoline::place(&isa, Direction::ToHost, &unary()).unwrap();
    let unit = reentrant_unit(&isa, &host);
    let fixture = Fixture::new(&isa, &unit, &unary());
    fixture.host.set(|_, _| {
        fault();
        0
    });
    assert_eq!(fixture.trap(1, 0).1, [(1, 7)]);
    match how {
        "host" => fault(),
        "callback" => _ = fixture.call(0, &mut [0]),
        // As wrong native code would access.
        "wild access" => {
            let unit = trapping_unit(&isa);
            let fixture = Fixture::new(&isa, &unit, &unary());
            let address = guard_page().wrapping_sub(fixture.memory.data().as_ptr().addr() as u64);
            assert_eq!(fixture.trap(1, 0).1, [(1, 20)]);
            _ = fixture.call(1, &mut [address]);
        }
        // An address that has no page, nor could have one. aarch64 ignores the highest byte.
        "no address" => {
            let unit = trapping_unit(&isa);
            _ = Fixture::new(&isa, &unit, &unary()).call(1, &mut [1 << 55]);
        }
        // SAFETY: raising a signal has no preconditions.
        _ => _ = unsafe { libc::raise(libc::SIGILL) },
    }
    unreachable!("the process has been killed");
}
