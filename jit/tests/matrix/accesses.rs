//! The module: one function for each load and store, shape of address, form and static offset.

use slotvm_bytecode::builder::{FunctionBuilder, LocalId, ModuleBuilder};
use slotvm_bytecode::{Imm, ImmKind, Op, ValType, VerifiedModule, verify};

/// Static offsets of accesses.
const OFFSETS: [u32; 4] = [0, 1, (1 << 31) - 1, u32::MAX];

/// Form of the address, or of the index of an indexed access, as a function of the parameter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `x`
    Plain,
    /// `x << k`
    Shifted,
    /// `x + c`
    Added,
    /// `x`, by way of 64 bits.
    Extended,
    /// `x & m`
    Masked,
}

impl Shape {
    const ALL: [Shape; 5] =
        [Shape::Plain, Shape::Shifted, Shape::Added, Shape::Extended, Shape::Masked];
    const SHIFT: u32 = 1;
    const ADDEND: u32 = 24;
    const MASK: u32 = 0x7fff_ffff;

    /// Applies the form to a parameter.
    pub(crate) fn of(self, x: u32) -> u32 {
        match self {
            Shape::Plain | Shape::Extended => x,
            Shape::Shifted => x << Shape::SHIFT,
            Shape::Added => x.wrapping_add(Shape::ADDEND),
            Shape::Masked => x & Shape::MASK,
        }
    }

    /// A parameter of which this becomes, or something near where nothing does.
    pub(crate) fn parameter_for(self, wanted: u32) -> u32 {
        match self {
            Shape::Plain | Shape::Extended => wanted,
            Shape::Shifted => wanted >> Shape::SHIFT,
            Shape::Added => wanted.wrapping_sub(Shape::ADDEND),
            // The mask has something to do.
            Shape::Masked => wanted | !Shape::MASK,
        }
    }

    fn emit(self, f: &mut FunctionBuilder<'_>, x: LocalId) {
        f.local_get(x);
        match self {
            Shape::Plain => f,
            Shape::Shifted => f.i32_const(Shape::SHIFT as i32).op(Op::I32Shl),
            Shape::Added => f.i32_const(Shape::ADDEND as i32).op(Op::I32Add),
            Shape::Extended => f.op(Op::I64ExtendI32S).op(Op::I32WrapI64),
            Shape::Masked => f.i32_const(Shape::MASK as i32).op(Op::I32And),
        };
    }
}

/// A load or store, and a function that does it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Access {
    pub(crate) op: Op,
    pub(crate) shape: Shape,
    /// 0 for accesses without index.
    pub(crate) scale_log2: u32,
    pub(crate) offset: u32,
}

impl Access {
    pub(crate) fn name(&self) -> String {
        let Access { op, shape, scale_log2, offset } = self;
        format!("{} {shape:?} {scale_log2} {offset}", op.mnemonic())
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.op.access_bytes().unwrap()
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.op.imm_kind() == ImmKind::Indexed
    }

    /// `func(x: i32, base: i32, value: i64) -> i64`
    fn emit(&self, f: &mut FunctionBuilder<'_>) {
        let (x, base, value) = (f.param(0), f.param(1), f.param(2));
        let imm = match self.op.imm_kind() {
            ImmKind::Indexed => {
                f.local_get(base);
                Imm::indexed(self.offset, self.scale_log2)
            }
            ImmKind::MemLane => Imm::mem_lane(self.offset, 1),
            _ => Imm::mem(self.offset),
        };
        self.shape.emit(f, x);
        let signature = self.op.signature().unwrap();
        let n_addresses = if self.is_indexed() { 2 } else { 1 };
        // Those of stores, and the vectors of which a load changes a lane.
        for ty in &signature.params[n_addresses..] {
            f.local_get(value);
            match ty {
                ValType::I32 => f.op(Op::I32WrapI64),
                ValType::F32 => f.op(Op::I32WrapI64).op(Op::F32ReinterpretI32),
                ValType::F64 => f.op(Op::F64ReinterpretI64),
                // The halves differ.
                ValType::V128 => f
                    .op(Op::I64x2Splat)
                    .v128_const(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100)
                    .op(Op::V128Xor),
                _ => f,
            };
        }
        f.inst(self.op, imm);
        match signature.results.first() {
            None => f.i64_const(0),
            Some(ValType::I32) => f.op(Op::I64ExtendI32U),
            Some(ValType::F32) => f.op(Op::I32ReinterpretF32).op(Op::I64ExtendI32U),
            Some(ValType::F64) => f.op(Op::I64ReinterpretF64),
            Some(ValType::V128) => f
                .op(Op::Dup)
                .inst(Op::I64x2ExtractLane, Imm::lane(0))
                .op(Op::Swap)
                .inst(Op::I64x2ExtractLane, Imm::lane(1))
                .i64_const(7)
                .op(Op::I64Rotl)
                .op(Op::I64Xor),
            Some(_) => f,
        }
        .ret();
    }
}

/// All of them.
pub(crate) fn accesses() -> Vec<Access> {
    let mut accesses = Vec::new();
    for &op in Op::ALL {
        if op.access_bytes().is_none() {
            continue;
        }
        let scales = if op.imm_kind() == ImmKind::Indexed { 0..4 } else { 0..1 };
        for scale_log2 in scales {
            for shape in Shape::ALL {
                for offset in OFFSETS {
                    accesses.push(Access { op, shape, scale_log2, offset });
                }
            }
        }
    }
    accesses
}

/// A module with a function for each access, exported by its name, and a memory without pages.
pub(crate) fn module(accesses: &[Access]) -> VerifiedModule {
    use ValType::{I32, I64};
    let mut module = ModuleBuilder::new();
    let memory = module.memory("memory", 0, None);
    module.export_memory("memory", memory);
    for access in accesses {
        let name = access.name();
        let func = module.declare_func(&name, &[I32, I32, I64], &[I64]);
        let mut f = module.define(func);
        access.emit(&mut f);
        f.finish().unwrap();
        module.export_func(&name, func);
    }
    verify(module.finish().unwrap()).unwrap()
}
