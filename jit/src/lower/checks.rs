//! Operand checks that replace faulting instructions, in code that must not fault.
//!
//! Cranelift's integer divisions and trapping conversions fault for some operands. Code that traps by
//! calls ([`Trapping::Calls`](super::Trapping)) traps for those before, so that a division never
//! faults, and converts by instructions that saturate, which have nothing left to saturate.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{self, InstBuilder, Type};
use slotvm_bytecode::{Op, TrapCode};

use super::Lowering;

/// The floats that a conversion to integers takes: those between two bounds.
struct Range {
    lower: f64,
    /// Whether the lower bound is one of them; the upper bound never is.
    includes_lower: bool,
    upper: f64,
}

/// A conversion of floats to integers that traps.
struct Conversion {
    to: Type,
    signed: bool,
}

impl Conversion {
    fn of(op: Op) -> Option<Conversion> {
        let (to, signed) = match op {
            Op::I32TruncF32S | Op::I32TruncF64S => (I32, true),
            Op::I32TruncF32U | Op::I32TruncF64U => (I32, false),
            Op::I64TruncF32S | Op::I64TruncF64S => (I64, true),
            Op::I64TruncF32U | Op::I64TruncF64U => (I64, false),
            _ => return None,
        };
        Some(Conversion { to, signed })
    }

    /// The floats whose integral part fits. All bounds are exact in the type.
    fn range(&self, from: Type) -> Range {
        let two_to = |n: u32| (1u128 << n) as f64;
        let bits = self.to.bits();
        match (self.signed, bits, from == F32) {
            (false, ..) => Range { lower: -1.0, includes_lower: false, upper: two_to(bits) },
            // The only case in which there are floats between the least integer and the one below it.
            (true, 32, false) => {
                Range { lower: -two_to(31) - 1.0, includes_lower: false, upper: two_to(31) }
            }
            (true, ..) => {
                Range { lower: -two_to(bits - 1), includes_lower: true, upper: two_to(bits - 1) }
            }
        }
    }
}

impl Lowering<'_, '_> {
    /// Traps if a division or remainder would.
    pub(super) fn check_division(&mut self, op: Op, a: ir::Value, b: ir::Value) {
        let is_quotient_signed = match op {
            Op::I32DivS | Op::I64DivS => true,
            Op::I32DivU | Op::I64DivU | Op::I32RemS | Op::I64RemS | Op::I32RemU | Op::I64RemU => {
                false
            }
            _ => return,
        };
        let ty = self.builder.func.dfg.value_type(b);
        let divisor = self.constant_value(b);
        if divisor.is_none_or(|divisor| divisor == 0) {
            self.trap_unless(b, TrapCode::IntegerDivisionByZero);
        }
        // All ones are -1; constants are zero beyond their type.
        let (minus_one, least) = (u64::MAX >> (64 - ty.bits()), 1 << (ty.bits() - 1));
        let dividend = self.constant_value(a);
        if is_quotient_signed
            && divisor.is_none_or(|divisor| divisor == minus_one)
            && dividend.is_none_or(|dividend| dividend == least)
        {
            let minus_one = self.builder.ins().iconst(ty, minus_one as i64);
            let least = self.builder.ins().iconst(ty, least as i64);
            let is_negation = self.builder.ins().icmp(IntCC::Equal, b, minus_one);
            let is_least = self.builder.ins().icmp(IntCC::Equal, a, least);
            let overflows = self.builder.ins().band(is_negation, is_least);
            self.trap_if(overflows, TrapCode::IntegerOverflow);
        }
    }

    /// The value of a constant, zero-extended.
    pub(super) fn constant_value(&self, value: ir::Value) -> Option<u64> {
        let dfg = &self.builder.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            ir::InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => {
                Some(imm.bits() as u64)
            }
            _ => None,
        }
    }

    /// Converts a float to an integer, or traps, if the operation does that.
    pub(super) fn checked_conversion(&mut self, op: Op, a: ir::Value) -> Option<ir::Value> {
        let conversion = Conversion::of(op)?;
        let from = self.builder.func.dfg.value_type(a);
        let Range { lower, includes_lower, upper } = conversion.range(from);
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
        self.trap_if(is_nan, TrapCode::BadConversionToInteger);
        let (lower, upper) = (self.float_constant(from, lower), self.float_constant(from, upper));
        let above = if includes_lower { FloatCC::GreaterThanOrEqual } else { FloatCC::GreaterThan };
        let above = self.builder.ins().fcmp(above, a, lower);
        let below = self.builder.ins().fcmp(FloatCC::LessThan, a, upper);
        let fits = self.builder.ins().band(above, below);
        self.trap_unless(fits, TrapCode::IntegerOverflow);
        let ins = self.builder.ins();
        Some(match conversion.signed {
            true => ins.fcvt_to_sint_sat(conversion.to, a),
            false => ins.fcvt_to_uint_sat(conversion.to, a),
        })
    }

    fn float_constant(&mut self, ty: Type, value: f64) -> ir::Value {
        if ty == F32 {
            self.builder.ins().f32const(Ieee32::with_float(value as f32))
        } else {
            self.builder.ins().f64const(Ieee64::with_float(value))
        }
    }
}
