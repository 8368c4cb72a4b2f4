//! `memory.copy` and `memory.fill` at every edge: of constant lengths, which code may do by loads and stores, and of
//! others; with and without fuel and polls.
//!
//! The interpreter defines the outcome, the fuel that is left, and the contents of memory.

use std::sync::Arc;

use slotvm::{Config, Engine, Error, Instance, Module, Store, Tier, TypedFunc};
use slotvm_bytecode::builder::ModuleBuilder;
use slotvm_bytecode::cost::bulk_fuel;
use slotvm_bytecode::{Imm, Op, ValType, VerifiedModule, verify};

use crate::{PAGE_BYTES, native_configs};

/// Lengths that are constants: all that are done without a call, and more.
const LENGTHS: std::ops::RangeInclusive<u32> = 0..=66;
/// Lengths that are not: also more than one piece of an operation that polls.
const VARIABLE: [u32; 13] =
    [0, 1, 2, 7, 16, 31, 64, 255, 4096, 65_535, 65_536, 3 << 19, (3 << 19) + 1];
const PAGES: u32 = 32;
const BYTES: u32 = PAGES * PAGE_BYTES as u32;
/// More than the largest operation takes.
const FUEL: u64 = 1 << 20;

/// The outcome of a call: how it ends, the fuel that is left, and a digest of the memory.
type Outcome = (Result<(), String>, Option<u64>, u64);

/// The name of the function that does an operation, with a constant length or a parameter.
fn name(op: Op, length: Option<u32>) -> String {
    length.map_or_else(|| op.mnemonic().to_owned(), |n| format!("{} {n}", op.mnemonic()))
}

/// Functions of two operands and the length, which some ignore.
fn module() -> VerifiedModule {
    let mut module = ModuleBuilder::new();
    let memory = module.memory("memory", PAGES, Some(PAGES));
    module.export_memory("memory", memory);
    for op in [Op::MemoryCopy, Op::MemoryFill] {
        for length in LENGTHS.map(Some).chain([None]) {
            let name = name(op, length);
            let func = module.declare_func(&name, &[ValType::I32; 3], &[]);
            let mut f = module.define(func);
            let [a, b, n] = [f.param(0), f.param(1), f.param(2)];
            f.local_get(a).local_get(b);
            match length {
                Some(length) => f.i32_const(length as i32),
                None => f.local_get(n),
            };
            f.inst(op, Imm::NONE).ret();
            f.finish().unwrap();
            module.export_func(&name, func);
        }
    }
    verify(module.finish().unwrap()).unwrap()
}

/// Operands for operations of a length: inside, at the end, beyond, and places that overlap.
fn points(op: Op, n: u32) -> Vec<(u32, u32)> {
    let ends = |n: u32| {
        let end = BYTES.wrapping_sub(n);
        [0, 1, 1000, end.wrapping_sub(1), end, end.wrapping_add(1), BYTES, BYTES + 1, u32::MAX]
    };
    if op == Op::MemoryFill {
        let bytes = [0, 1, 0xff, 0x1280];
        return ends(n).into_iter().flat_map(|dst| bytes.map(|byte| (dst, byte))).collect();
    }
    let mut points: Vec<_> =
        ends(n).into_iter().flat_map(|dst| ends(n).map(|src| (dst, src))).collect();
    for distance in [1, 2, 3, 7, 8, 9, 15, 16, 17, 33] {
        points.extend([(1000 + distance, 1000), (1000, 1000 + distance)]);
    }
    points
}

/// A guest whose memory has a pattern.
struct Guest {
    store: Store<()>,
    instance: Instance,
    has_fuel: bool,
}

impl Guest {
    fn new(config: &Config, verified: &Arc<VerifiedModule>, has_fuel: bool) -> Guest {
        let engine = Engine::new(config).unwrap();
        let module = Module::from_verified(&engine, verified.clone()).unwrap();
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1);
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let memory = instance.get_memory(&store, "memory").unwrap();
        let pattern: Vec<u8> =
            (0..BYTES).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        memory.write(&mut store, 0, &pattern).unwrap();
        Guest { store, instance, has_fuel }
    }

    fn func(&self, name: &str) -> TypedFunc<(i32, i32, i32), ()> {
        self.instance.get_typed_func(&self.store, name).unwrap()
    }

    fn call(&mut self, name: &str, (a, b): (u32, u32), n: u32, fuel: u64) -> Outcome {
        if self.has_fuel {
            self.store.set_fuel(fuel).unwrap();
        }
        let args = (a as i32, b as i32, n as i32);
        let end = self.func(name).call(&mut self.store, args).map_err(|error| match error {
            Error::Trap(trap) => format!("{:?} {} {}", trap.code, trap.func, trap.offset),
            error => panic!("{error}"),
        });
        let left = self.has_fuel.then(|| self.store.get_fuel().unwrap());
        (end, left, self.digest(a, n))
    }

    /// A digest of the bytes that an operation may have written, and of those around them.
    fn digest(&self, dst: u32, n: u32) -> u64 {
        let memory = self.instance.get_memory(&self.store, "memory").unwrap();
        let start = dst.saturating_sub(32).min(BYTES - 128) as usize;
        let end = (start + n as usize + 64).min(BYTES as usize);
        let mix = |sum: u64, &byte: &u8| sum.rotate_left(5).wrapping_mul(31) ^ u64::from(byte);
        memory.data(&self.store)[start..end].iter().fold(7, mix)
    }
}

/// All outcomes with a configuration.
fn run(config: &Config, verified: &Arc<VerifiedModule>, has_fuel: bool) -> Vec<Outcome> {
    let mut guest = Guest::new(config, verified, has_fuel);
    let mut outcomes = Vec::new();
    for op in [Op::MemoryCopy, Op::MemoryFill] {
        let constant = LENGTHS.map(|n| (Some(n), n));
        for (length, n) in constant.chain(VARIABLE.map(|n| (None, n))) {
            let name = name(op, length);
            outcomes.extend(points(op, n).into_iter().map(|p| guest.call(&name, p, n, FUEL)));
            if has_fuel {
                // Every value around what the block and the operation cost.
                let cost = 5 + u64::from(bulk_fuel(op, n));
                let around = cost.saturating_sub(6)..cost + 3;
                outcomes.extend(around.map(|fuel| guest.call(&name, (40, 8), n, fuel)));
            }
        }
    }
    outcomes
}

#[test]
#[cfg_attr(not(feature = "jit"), ignore = "needs native code")]
fn copies_and_fills_do_what_the_interpreter_does() {
    let verified = Arc::new(module());
    for (fuel, polls) in [(false, false), (true, false), (true, true)] {
        let with = |config: &mut Config| {
            config.consume_fuel(fuel).epoch_interruption(polls);
        };
        let mut interpreter = Config::new();
        with(interpreter.tier(Tier::Interpreter));
        let expected = run(&interpreter, &verified, fuel);
        let n_traps = expected.iter().filter(|(end, ..)| end.is_err()).count();
        assert!(n_traps > 2_000 && expected.len() - n_traps > 2_000, "{n_traps} calls trap");
        let out_of_fuel = expected
            .iter()
            .filter(|(end, ..)| end.as_ref().is_err_and(|trap| trap.starts_with("OutOfFuel")));
        assert_eq!(out_of_fuel.count() > 100, fuel);
        for (name, mut config) in native_configs() {
            with(&mut config);
            let found = run(&config, &verified, fuel);
            assert_eq!(found.len(), expected.len());
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found, expected, "{name}, fuel {fuel}, polls {polls}, call {i}");
            }
        }
    }
}
