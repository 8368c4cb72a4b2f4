//! The functions that are compiled to be measured.

use slotvm_bytecode::ValType::{self, F32, F64, FuncRef, I32, I64, V128};
use slotvm_bytecode::builder::{FuncId, FunctionBuilder, LocalId, ModuleBuilder, TableId, TypeId};
use slotvm_bytecode::module::Module;
use slotvm_bytecode::pairs::is_pair;
use slotvm_bytecode::{Effect, Imm, ImmKind, Op};

/// The types of the parameters of each function that is measured.
const TYPES: [ValType; 6] = [I32, I64, F32, F64, V128, FuncRef];

/// The length of an operation on memory that is done by the most accesses.
const CONST_LENGTH: i32 = 63;

/// The source of the operands of a function's instructions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// Each operand is loaded, and the result is stored.
    Alone,
    /// The operands are parameters, as is the result, and each instruction has a block of its own, which shares no
    /// loads of constant fields with others.
    Parted,
    /// The last operand is a constant: the length for which an operation on memory is the most accesses. The others
    /// are loaded.
    ConstLength,
    /// Each operand of the type of the result is the result before.
    Chained,
    /// The first is the result before, the others are parameters.
    ChainedFirst,
    /// The last is the result before, the others are parameters.
    ChainedLast,
    /// The first is the result before, the others are constants.
    ChainedToConst,
    /// The last is the result before, the others are constants.
    ConstChained,
}

impl Shape {
    /// Shapes without chains.
    pub(crate) const ALONE: [Shape; 3] = [Shape::Alone, Shape::Parted, Shape::ConstLength];
    /// Chains without constants.
    pub(crate) const CHAINS: [Shape; 3] = [Shape::Chained, Shape::ChainedFirst, Shape::ChainedLast];
    /// Chains with them.
    pub(crate) const CONST_CHAINS: [Shape; 2] = [Shape::ChainedToConst, Shape::ConstChained];
}

/// The operand and result types of an opcode, as it is measured, if it is.
pub(crate) fn types(op: Op) -> Option<(&'static [ValType], &'static [ValType])> {
    Some(match op {
        Op::Select => (&[I64, I64, I32], &[I64]),
        Op::GlobalGet => (&[], &[I64]),
        Op::GlobalSet => (&[I64], &[]),
        Op::Call => (&[I64], &[I64]),
        Op::CallIndirect => (&[I64, I32], &[I64]),
        Op::RefNull => (&[], &[FuncRef]),
        Op::RefIsNull => (&[FuncRef], &[I32]),
        Op::TableGet => (&[I32], &[FuncRef]),
        Op::TableSet => (&[I32, FuncRef], &[]),
        Op::TableGrow => (&[FuncRef, I32], &[I32]),
        Op::TableFill => (&[I32, FuncRef, I32], &[]),
        Op::Nop => return None,
        op => {
            let signature = op.signature()?;
            (signature.params, signature.results)
        }
    })
}

/// Whether instructions of the opcode can stand so.
pub(crate) fn fits(op: Op, shape: Shape) -> bool {
    let Some((params, results)) = types(op) else { return false };
    let has_const = matches!(params.last(), Some(I32 | I64));
    // What uses no field of the context costs the same in any block.
    let is_arithmetic = matches!(op.effect(), Effect::Pure | Effect::Trap);
    if shape == Shape::ConstLength {
        return matches!(op, Op::MemoryCopy | Op::MemoryFill);
    }
    let [result, ..] = results else {
        return shape == Shape::Alone || shape == Shape::Parted && !is_arithmetic;
    };
    let chains = params.contains(result) && *result != FuncRef;
    let is_binary = params.len() > 1;
    match shape {
        Shape::Alone => true,
        Shape::Parted => !is_arithmetic,
        Shape::ConstLength => false,
        Shape::Chained => chains,
        Shape::ChainedFirst => chains && is_binary && params.first() == Some(result),
        Shape::ChainedLast => chains && is_binary && params.last() == Some(result),
        Shape::ChainedToConst => chains && is_binary && has_const && params.first() == Some(result),
        Shape::ConstChained => {
            chains && is_binary && matches!(params[0], I32 | I64) && params.last() == Some(result)
        }
    }
}

/// A module whose first function has `n` instructions of an opcode in a shape, or with no opcode what surrounds
/// them, before which so many values live at once. Its second function does nothing.
pub(crate) fn module(op: Op, is_there: bool, shape: Shape, n: usize, n_crowded: usize) -> Module {
    let mut module = ModuleBuilder::new();
    let callee = module.import_func("host", "callee", &[I64], &[I64]);
    let ty = module.func_type(&[I64], &[I64]);
    module.memory("memory", 1, Some(1));
    let table = module.table("table", FuncRef, 1, Some(1));
    let global = module.global("global", I64, true, slotvm_bytecode::module::ConstExpr::i64(0));
    module.passive_data("data", [0]);
    module.passive_elem("elem", &[callee]);
    let func = module.declare_func("measured", &TYPES, &[]);
    let mut f = module.define(func);
    let writer = Writer { op: is_there.then_some(op), callee, ty, table };
    let (params, results) = types(op).expect("it is measured");
    if n_crowded > 0 {
        for _ in 0..n_crowded {
            f.local_get(param(I64));
        }
        for _ in 1..n_crowded {
            f.op(Op::I64Xor);
        }
        f.global_set(global);
    }
    match shape {
        Shape::Alone | Shape::ConstLength => {
            for i in 0..n {
                writer.alone(&mut f, params, results, shape, i);
            }
        }
        Shape::Parted => {
            for _ in 0..n {
                writer.parted(&mut f, params, results);
            }
        }
        _ => writer.chain(&mut f, params, results[0], shape, n),
    }
    f.ret();
    f.finish().unwrap_or_else(|error| panic!("{op:?} {shape:?}: {error}"));
    let filler = module.declare_func("filler", &[], &[]);
    let mut f = module.define(filler);
    f.ret();
    f.finish().expect("it is well-typed");
    module.finish().unwrap_or_else(|error| panic!("{op:?} {shape:?}: {error}"))
}

/// The parameter of a type.
fn param(ty: ValType) -> LocalId {
    LocalId(TYPES.iter().position(|&other| other == ty).expect("it is measured") as u32)
}

/// Writes the instructions of an opcode, or what surrounds them.
struct Writer {
    op: Option<Op>,
    callee: FuncId,
    ty: TypeId,
    table: TableId,
}

impl Writer {
    fn alone(
        &self,
        f: &mut FunctionBuilder<'_>,
        params: &[ValType],
        results: &[ValType],
        shape: Shape,
        i: usize,
    ) {
        let offset = |k: usize| (64 * (4 * i + k)) as u32;
        let stores = matches!(results, [result] if *result != FuncRef);
        if stores {
            f.i32_const(0);
        }
        for (k, &ty) in params.iter().enumerate() {
            match access(ty) {
                _ if shape == Shape::ConstLength && k + 1 == params.len() => {
                    f.i32_const(CONST_LENGTH);
                }
                Some((load, _)) => drop(f.i32_const(0).load(load, offset(k))),
                None => drop(f.local_get(param(ty))),
            }
        }
        self.emit_or_move(f, params, results);
        if let &[first, second] = results {
            // The address comes below the value, which goes through a parameter.
            for (k, ty) in [second, first].into_iter().enumerate() {
                let (_, store) = access(ty).expect("pairs are integers");
                f.local_set(param(ty)).i32_const(0).local_get(param(ty));
                f.store(store, offset(3) + 8 * k as u32);
            }
            return;
        }
        for &ty in results {
            match access(ty) {
                Some((_, store)) => f.store(store, offset(3)),
                None => f.op(Op::Drop),
            };
        }
    }

    fn parted(&self, f: &mut FunctionBuilder<'_>, params: &[ValType], results: &[ValType]) {
        // A jump to a block that nothing else leads to would be none.
        let next = f.label();
        f.local_get(param(I32)).br_if(next);
        f.bind(next);
        for &ty in params {
            f.local_get(param(ty));
        }
        self.emit_or_move(f, params, results);
        for &ty in results {
            f.local_set(param(ty));
        }
    }

    /// Writes the instruction, or in its place what has the same operands and results.
    fn emit_or_move(&self, f: &mut FunctionBuilder<'_>, params: &[ValType], results: &[ValType]) {
        let Some(op) = self.op else {
            for _ in params {
                f.op(Op::Drop);
            }
            for &ty in results {
                f.local_get(param(ty));
            }
            return;
        };
        self.emit(f, op);
    }

    fn chain(
        &self,
        f: &mut FunctionBuilder<'_>,
        params: &[ValType],
        linked: ValType,
        shape: Shape,
        n: usize,
    ) {
        let kept = f.local(linked);
        f.local_get(param(linked));
        for i in 0..n {
            let mut linking = match shape {
                Shape::ChainedLast | Shape::ConstChained => params.len() - 1,
                _ => params.iter().position(|&ty| ty == linked).expect("it chains"),
            };
            let other = |f: &mut FunctionBuilder<'_>, ty| match shape {
                Shape::ChainedToConst | Shape::ConstChained if matches!(ty, I32 | I64) => {
                    constant(f, ty, i);
                }
                _ => drop(f.local_get(param(ty))),
            };
            for &ty in &params[..linking] {
                other(f, ty);
                f.op(Op::Swap);
            }
            linking += 1;
            for &ty in &params[linking..] {
                match shape {
                    Shape::Chained if ty == linked => drop(f.op(Op::Dup)),
                    _ => other(f, ty),
                }
            }
            if let Some(op) = self.op {
                self.emit(f, op);
                // The first of two results is linked.
                if is_pair(op) {
                    f.op(Op::Drop);
                }
            }
        }
        let (_, store) = access(linked).expect("chains have types that are stored");
        f.local_set(kept).i32_const(0).local_get(kept).store(store, 0);
    }

    fn emit(&self, f: &mut FunctionBuilder<'_>, op: Op) {
        match (op, op.imm_kind()) {
            (Op::Call, _) => f.call(self.callee),
            (Op::CallIndirect, _) => f.call_indirect(self.ty, self.table),
            (Op::RefFunc, _) => f.ref_func(self.callee),
            (Op::RefNull, _) => f.ref_null(FuncRef),
            (_, ImmKind::None) => f.op(op),
            (_, ImmKind::I32) => f.i32_const(0x1234_5678),
            (_, ImmKind::I64) => f.i64_const(0x1234_5678_9abc),
            (_, ImmKind::F32) => f.f32_const(1.5),
            (_, ImmKind::F64) => f.f64_const(1.5),
            (_, ImmKind::V128) => f.v128_const(0x1234_5678_9abc),
            (_, ImmKind::Lane) => f.inst(op, Imm::lane(1)),
            (_, ImmKind::Lanes) => f.vector(op, 0x1f02_1d04_1b06_1908_1700_1502_1304_1106),
            (_, ImmKind::Mem) => f.inst(op, Imm::mem(8)),
            (_, ImmKind::MemLane) => f.inst(op, Imm::mem_lane(8, 1)),
            (_, ImmKind::Indexed) => f.inst(op, Imm::indexed(8, 2)),
            // All others are indices, and everything that they name is number 0.
            _ => f.inst(op, Imm::index(0)),
        };
    }
}

/// A constant that is another one in each instruction, and no power of two.
fn constant(f: &mut FunctionBuilder<'_>, ty: ValType, i: usize) {
    let value = 2 * i as i32 + 7;
    match ty {
        I32 => f.i32_const(value),
        _ => f.i64_const(value.into()),
    };
}

/// The load and the store of a type, unless it is one of references.
fn access(ty: ValType) -> Option<(Op, Op)> {
    Some(match ty {
        I32 => (Op::I32Load, Op::I32Store),
        I64 => (Op::I64Load, Op::I64Store),
        F32 => (Op::F32Load, Op::F32Store),
        F64 => (Op::F64Load, Op::F64Store),
        V128 => (Op::V128Load, Op::V128Store),
        _ => return None,
    })
}
