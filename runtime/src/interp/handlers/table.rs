//! The handler of each instruction.

use slotvm_bytecode::numeric::Numeric;
use slotvm_bytecode::numeric::ops::{self, F64Add, I64Add};
use slotvm_bytecode::{Access, Op, ValType, vector};

use super::calls::*;
use super::control::*;
use super::memory::*;
use super::numeric::*;
use super::pairs::{of_pair, of_pair_branch, of_wide_pair};
use super::vector::*;
use crate::interp::dispatch::{Dispatch, Loop, Tail};
use crate::interp::operands::*;
use crate::steps::state::Handler;

/// An instruction, up to its operands. The handlers say what these are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum HandlerCode {
    Unary(Op, In, Dest),
    Binary(Op, In, RightIn, Dest),
    /// Branches if the operation is what the last part says.
    BranchIf(Op, In, RightIn, bool),
    /// An operation whose left operand is a short constant; `In` has the right one.
    ShortBinary(Op, In, Dest),
    /// The same with a long constant.
    LongBinary(Op, In, Dest),
    /// An operation on two integers with two results. The right operand is in a cell, or a long constant.
    Pair(Op, RightIn),
    /// The same with four operands.
    WidePair(Op),
    /// A `Pair` that branches if the second result is not zero.
    PairBranch(Op, RightIn),
    AddScaled(In, Dest),
    AddScaledConst(u32, In, Dest),
    MulAdd(In, Dest),
    /// Counts, and branches by an operation on the new count and what lies in a cell, or a short constant.
    CountBranch(Op, RightIn),
    CanonicalF32,
    CanonicalF64,
    /// A constant that is sign-extended, or zero-extended.
    ShortConst,
    ShortConstU,
    LongConst,
    Copy,
    CopyTwo,
    Select(In, Dest),
    Swap,
    Load(Loaded, AddressIn, Dest),
    /// Stores so many bytes.
    Store(u32, StoredIn, AddressIn),
    /// An operation on vectors alone.
    VectorOp(Op),
    CopyWide,
    WideConst,
    SelectWide,
    CanonicalF32x4,
    CanonicalF64x2,
    LoadWide(AddressIn),
    StoreWide(AddressIn),
    FrameAddr,
    FrameGet(u32),
    FrameSet(u32),
    MemorySize,
    GlobalGet,
    GlobalSet,
    ImportedGlobalGet,
    ImportedGlobalSet,
    Br,
    BrTable(In),
    MoveCells,
    Unreachable,
    /// `trap`.
    CustomTrap,
    Fuel,
    Poll,
    Count,
    First,
    Native,
    StackOp,
    Vector,
    Trace,
    FarBegin,
    FarEnd,
    FarGet,
    FarSet,
    Call,
    CallImport,
    CallIndirect,
    ReturnCall,
    ReturnCallImport,
    ReturnCallIndirect,
    Release,
    Ret,
    RetCell,
    RetShort,
    Exit,
    Land,
}

/// Where an operand is: in its cell, or in the accumulator for its type.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum In {
    Cell,
    Acc,
}

/// Where a right operand is. Branches find a short constant in `b`, other instructions in `c`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum RightIn {
    Cell,
    Acc,
    Short,
    Long,
}

/// Where a result goes: to the cell and the accumulator, or to the accumulator alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum Dest {
    Cell,
    Acc,
}

/// Where the value of a store is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum StoredIn {
    Cell,
    Short,
    Acc,
    FloatAcc,
}

/// See [`Address`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum AddressIn {
    Plain(In),
    Fixed,
    Indexed(SumIn),
    IndexedFar,
    Wrapped(SumIn),
    Moved(In),
    Scaled(u32, In),
}

/// Where the base and the index of an address are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) enum SumIn {
    Cells,
    /// The base is in the accumulator.
    BaseAcc,
    /// The index is.
    IndexAcc,
}

/// See [`Load`]: the bytes, and how they are extended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::interp) struct Loaded {
    bytes: u32,
    /// The bytes that a narrow value's sign is extended to; 0 if it is not.
    signed_to: u32,
    /// Whether it is a float of 64 bits.
    is_float: bool,
}

impl Loaded {
    pub(in crate::interp) fn of(access: Access) -> Loaded {
        let signed_to = if access.signed { access.ty.bytes() } else { 0 };
        Loaded { bytes: access.bytes, signed_to, is_float: access.ty == ValType::F64 }
    }

    pub(in crate::interp) fn is_float(self) -> bool {
        self.is_float
    }
}

impl HandlerCode {
    /// Whether the accumulators are lost.
    pub(in crate::interp) fn leaves(self) -> bool {
        use HandlerCode::*;
        matches!(
            self,
            Poll | Count
                | Vector
                | StackOp
                | Trace
                | MoveCells
                | Call
                | CallImport
                | CallIndirect
                | Release
                | FarBegin
        )
    }

    /// Whether its result is a vector.
    pub(in crate::interp) fn makes_vector(self) -> bool {
        match self {
            HandlerCode::VectorOp(op) => {
                op.signature().is_some_and(|signature| signature.results[0] == ValType::V128)
            }
            HandlerCode::WideConst | HandlerCode::SelectWide | HandlerCode::LoadWide(_) => true,
            HandlerCode::CanonicalF32x4 | HandlerCode::CanonicalF64x2 => true,
            _ => false,
        }
    }

    /// Whether it has two results.
    pub(in crate::interp) fn makes_pair(self) -> bool {
        matches!(self, HandlerCode::Pair(..) | HandlerCode::WidePair(_))
    }

    /// Whether it branches by `c`.
    pub(in crate::interp) fn branches(self) -> bool {
        use HandlerCode::*;
        matches!(self, Br | BranchIf(..) | CountBranch(..) | PairBranch(..))
    }

    /// The instruction whose result goes to the accumulator alone, if there is one.
    pub(in crate::interp) fn without_cell(self) -> Option<HandlerCode> {
        Some(match self {
            HandlerCode::Unary(op, left, _) => HandlerCode::Unary(op, left, Dest::Acc),
            HandlerCode::Binary(op, left, right, _) => {
                HandlerCode::Binary(op, left, right, Dest::Acc)
            }
            HandlerCode::ShortBinary(op, right, _) => {
                HandlerCode::ShortBinary(op, right, Dest::Acc)
            }
            HandlerCode::LongBinary(op, right, _) => HandlerCode::LongBinary(op, right, Dest::Acc),
            HandlerCode::AddScaled(index, _) => HandlerCode::AddScaled(index, Dest::Acc),
            HandlerCode::AddScaledConst(bits, index, _) => {
                HandlerCode::AddScaledConst(bits, index, Dest::Acc)
            }
            HandlerCode::MulAdd(left, _) => HandlerCode::MulAdd(left, Dest::Acc),
            HandlerCode::Select(condition, _) => HandlerCode::Select(condition, Dest::Acc),
            HandlerCode::Load(loaded, address, _) => HandlerCode::Load(loaded, address, Dest::Acc),
            _ => return None,
        })
    }
}

/// Returns the address of an instruction's handler, in the form that ends with jumps or in the other one.
pub(in crate::interp) fn address(code: HandlerCode, jumps: bool) -> *const () {
    let handler = if jumps { of::<Tail>(code) } else { of::<Loop>(code) };
    handler as *const ()
}

/// Returns the handler of an instruction.
pub(in crate::interp) fn of<D: Dispatch>(code: HandlerCode) -> Handler {
    match code {
        HandlerCode::Unary(op, ..) if touches_narrow_float(op) => of_narrow_unary::<D>(op),
        HandlerCode::Unary(op, left, to) => match (left, to) {
            (In::Cell, Dest::Cell) => of_unary::<CellB, ToCell, D>(op),
            (In::Cell, Dest::Acc) => of_unary::<CellB, D::ToAcc, D>(op),
            (In::Acc, Dest::Cell) => of_unary::<D::Acc<CellB>, ToCell, D>(op),
            (In::Acc, Dest::Acc) => of_unary::<D::Acc<CellB>, D::ToAcc, D>(op),
        },
        HandlerCode::Binary(op, left, right, Dest::Cell) => of_binary::<ToCell, D>(op, left, right),
        HandlerCode::Binary(op, left, right, Dest::Acc) => {
            of_binary::<D::ToAcc, D>(op, left, right)
        }
        HandlerCode::BranchIf(op, left, right, taken) => of_branch::<D>(op, left, right, taken),
        HandlerCode::AddScaled(In::Cell, Dest::Cell) => add_scaled::<CellX, ToCell, D>,
        HandlerCode::AddScaled(In::Cell, Dest::Acc) => add_scaled::<CellX, D::ToAcc, D>,
        HandlerCode::AddScaled(In::Acc, Dest::Cell) => add_scaled::<D::Acc<CellX>, ToCell, D>,
        HandlerCode::AddScaled(In::Acc, Dest::Acc) => add_scaled::<D::Acc<CellX>, D::ToAcc, D>,
        HandlerCode::ShortBinary(op, In::Cell, Dest::Cell) => {
            of_left::<ShortC, CellB, ToCell, D>(op)
        }
        HandlerCode::ShortBinary(op, In::Cell, Dest::Acc) => {
            of_left::<ShortC, CellB, D::ToAcc, D>(op)
        }
        HandlerCode::ShortBinary(op, In::Acc, Dest::Cell) => {
            of_left::<ShortC, D::Acc<CellB>, ToCell, D>(op)
        }
        HandlerCode::ShortBinary(op, In::Acc, Dest::Acc) => {
            of_left::<ShortC, D::Acc<CellB>, D::ToAcc, D>(op)
        }
        HandlerCode::LongBinary(op, In::Cell, Dest::Cell) => of_float_left::<CellB, ToCell, D>(op),
        HandlerCode::LongBinary(op, In::Cell, Dest::Acc) => of_float_left::<CellB, D::ToAcc, D>(op),
        HandlerCode::LongBinary(op, In::Acc, Dest::Cell) => {
            of_float_left::<D::Acc<CellB>, ToCell, D>(op)
        }
        HandlerCode::LongBinary(op, In::Acc, Dest::Acc) => {
            of_float_left::<D::Acc<CellB>, D::ToAcc, D>(op)
        }
        HandlerCode::Pair(op, RightIn::Long) => of_pair::<Long, D>(op),
        HandlerCode::Pair(op, _) => of_pair::<CellX, D>(op),
        HandlerCode::WidePair(op) => of_wide_pair::<D>(op),
        HandlerCode::PairBranch(op, RightIn::Long) => of_pair_branch::<Long, D>(op),
        HandlerCode::PairBranch(op, _) => of_pair_branch::<NextCell, D>(op),
        HandlerCode::AddScaledConst(bits, In::Cell, to) => of_add_scaled::<CellB, D>(bits, to),
        HandlerCode::AddScaledConst(bits, In::Acc, to) => {
            of_add_scaled::<D::Acc<CellB>, D>(bits, to)
        }
        HandlerCode::MulAdd(In::Cell, Dest::Cell) => mul_add::<CellX, ToCell, D>,
        HandlerCode::MulAdd(In::Cell, Dest::Acc) => mul_add::<CellX, D::ToAcc, D>,
        HandlerCode::MulAdd(In::Acc, Dest::Cell) => mul_add::<D::Acc<CellX>, ToCell, D>,
        HandlerCode::MulAdd(In::Acc, Dest::Acc) => mul_add::<D::Acc<CellX>, D::ToAcc, D>,
        HandlerCode::CountBranch(op, RightIn::Short) => of_count_branch::<ShortB, D>(op),
        HandlerCode::CountBranch(op, _) => of_count_branch::<CellB, D>(op),
        HandlerCode::CanonicalF32 => canonical_f32::<D>,
        HandlerCode::CanonicalF64 => canonical_f64::<D>,
        HandlerCode::ShortConst => short_const::<D>,
        HandlerCode::ShortConstU => short_const_u::<D>,
        HandlerCode::LongConst => long_const::<D>,
        HandlerCode::Copy => copy::<D>,
        HandlerCode::CopyTwo => copy_two::<D>,
        HandlerCode::Select(In::Cell, Dest::Cell) => select::<CellB, ToCell, D>,
        HandlerCode::Select(In::Cell, Dest::Acc) => select::<CellB, D::ToAcc, D>,
        HandlerCode::Select(In::Acc, Dest::Cell) => select::<D::Acc<CellB>, ToCell, D>,
        HandlerCode::Select(In::Acc, Dest::Acc) => select::<D::Acc<CellB>, D::ToAcc, D>,
        HandlerCode::Swap => swap::<D>,
        HandlerCode::Load(loaded, address, Dest::Cell) => of_load::<ToCell, D>(loaded, address),
        HandlerCode::Load(loaded, address, Dest::Acc) => of_load::<D::ToAcc, D>(loaded, address),
        HandlerCode::Store(bytes, StoredIn::Cell, address) => {
            of_store::<CellA, I64Add, D>(bytes, address)
        }
        HandlerCode::Store(bytes, StoredIn::Short, address) => {
            of_store::<ShortA, I64Add, D>(bytes, address)
        }
        HandlerCode::Store(bytes, StoredIn::Acc, address) => {
            of_store::<D::Acc<CellA>, I64Add, D>(bytes, address)
        }
        HandlerCode::Store(_, StoredIn::FloatAcc, address) => {
            of_store_at::<Store64, D::Acc<CellA>, F64Add, D>(address)
        }
        HandlerCode::VectorOp(op) => of_vector_op::<D>(op),
        HandlerCode::CopyWide => copy_wide::<D>,
        HandlerCode::WideConst => wide_const::<D>,
        HandlerCode::SelectWide => select_wide::<D>,
        HandlerCode::CanonicalF32x4 => canonical_f32x4::<D>,
        HandlerCode::CanonicalF64x2 => canonical_f64x2::<D>,
        HandlerCode::LoadWide(address) => of_load_wide::<D>(address),
        HandlerCode::StoreWide(address) => of_store_wide::<D>(address),
        HandlerCode::FrameAddr => frame_addr::<D>,
        HandlerCode::FrameGet(4) => frame_get::<Load32U, D>,
        HandlerCode::FrameGet(_) => frame_get::<Load64, D>,
        HandlerCode::FrameSet(4) => frame_set::<Store32, D>,
        HandlerCode::FrameSet(_) => frame_set::<Store64, D>,
        HandlerCode::MemorySize => memory_size::<D>,
        HandlerCode::GlobalGet => global_get::<D>,
        HandlerCode::GlobalSet => global_set::<D>,
        HandlerCode::ImportedGlobalGet => imported_global_get::<D>,
        HandlerCode::ImportedGlobalSet => imported_global_set::<D>,
        HandlerCode::Br => br::<D>,
        HandlerCode::BrTable(In::Cell) => br_table::<CellA, D>,
        HandlerCode::BrTable(In::Acc) => br_table::<D::Acc<CellA>, D>,
        HandlerCode::MoveCells => move_cells::<D>,
        HandlerCode::Unreachable => unreachable::<D>,
        HandlerCode::CustomTrap => custom_trap::<D>,
        HandlerCode::Fuel => fuel::<D>,
        HandlerCode::Poll => poll::<D>,
        HandlerCode::Count => count::<D>,
        HandlerCode::First => first::<D>,
        HandlerCode::Native => native::<D>,
        HandlerCode::StackOp => stack_op::<D>,
        HandlerCode::Vector => vector::<D>,
        HandlerCode::Trace => trace::<D>,
        HandlerCode::FarBegin => far_begin::<D>,
        HandlerCode::FarEnd => far_end::<D>,
        HandlerCode::FarGet => far_get::<D>,
        HandlerCode::FarSet => far_set::<D>,
        HandlerCode::Call => call::<D>,
        HandlerCode::CallImport => call_import::<D>,
        HandlerCode::CallIndirect => call_indirect::<D>,
        HandlerCode::ReturnCall => return_call::<D>,
        HandlerCode::ReturnCallImport => return_call_import::<D>,
        HandlerCode::ReturnCallIndirect => return_call_indirect::<D>,
        HandlerCode::Release => release::<D>,
        HandlerCode::Ret => ret::<D>,
        HandlerCode::RetCell => ret_cell::<D>,
        HandlerCode::RetShort => ret_short::<D>,
        HandlerCode::Exit => exit::<D>,
        HandlerCode::Land => land::<D>,
    }
}

/// Chooses among handlers that are made for one operation each.
macro_rules! choose {
    ($op:ident: $handler:ident $generics:tt: $($name:ident)*) => {
        match $op {
            $(Op::$name => instance!($handler $name $generics),)*
            _ => unreachable!("`{}` has no such form", $op.mnemonic()),
        }
    };
}

/// The handler for an operation.
macro_rules! instance {
    ($handler:ident $name:ident [$($generic:ty),*]) => {
        $handler::<ops::$name, $($generic),*>
    };
}

fn of_unary<L: Operand, T: To, D: Dispatch>(op: Op) -> Handler {
    choose!(op: unary [L, T, D]:
        I32Eqz I64Eqz I32Clz I32Ctz I32Popcnt I64Clz I64Ctz I64Popcnt
        F64Abs F64Neg F64Ceil F64Floor F64Trunc F64Nearest F64Sqrt
        I32WrapI64 I32TruncF64S I32TruncF64U
        I64ExtendI32S I64TruncF64S I64TruncF64U
        F64ConvertI32S F64ConvertI32U F64ConvertI64S F64ConvertI64U
        I32Extend8S I32Extend16S I64Extend8S I64Extend16S I64Extend32S
        I32TruncSatF64S I32TruncSatF64U I64TruncSatF64S I64TruncSatF64U)
}

/// Those that take or make floats of 32 bits, for which there is no accumulator.
fn of_narrow_unary<D: Dispatch>(op: Op) -> Handler {
    choose!(op: unary [CellB, ToCell, D]:
        F32Abs F32Neg F32Ceil F32Floor F32Trunc F32Nearest F32Sqrt
        I32TruncF32S I32TruncF32U I64TruncF32S I64TruncF32U
        F32ConvertI32S F32ConvertI32U F32ConvertI64S F32ConvertI64U
        F32DemoteF64 F64PromoteF32
        I32TruncSatF32S I32TruncSatF32U I64TruncSatF32S I64TruncSatF32U)
}

fn of_binary<T: To, D: Dispatch>(op: Op, left: In, right: RightIn) -> Handler {
    match (left, right) {
        _ if is_narrow_float(op) => match right {
            RightIn::Short => of_narrow_binary::<ShortC, D>(op),
            _ => of_narrow_binary::<CellX, D>(op),
        },
        (In::Cell, RightIn::Cell) => of_wide_binary::<CellB, CellX, T, D>(op),
        (In::Cell, RightIn::Acc) => of_wide_binary::<CellB, D::Acc<CellX>, T, D>(op),
        (In::Cell, RightIn::Short) => of_wide_binary::<CellB, ShortC, T, D>(op),
        (In::Cell, RightIn::Long) => of_long_binary::<CellB, T, D>(op),
        (In::Acc, RightIn::Cell | RightIn::Acc) => of_wide_binary::<D::Acc<CellB>, CellX, T, D>(op),
        (In::Acc, RightIn::Short) => of_wide_binary::<D::Acc<CellB>, ShortC, T, D>(op),
        (In::Acc, RightIn::Long) => of_long_binary::<D::Acc<CellB>, T, D>(op),
    }
}

/// Whether the operand or the result is a float of 32 bits, for which there is no accumulator.
pub(in crate::interp) fn touches_narrow_float(op: Op) -> bool {
    let signature = op.signature();
    signature.is_some_and(|s| s.params[0] == ValType::F32 || s.results[0] == ValType::F32)
}

/// Whether the operands are floats of 32 bits, for which there is no accumulator.
fn is_narrow_float(op: Op) -> bool {
    op.signature().is_some_and(|signature| signature.params[0] == ValType::F32)
}

fn of_wide_binary<L: Operand, R: Operand, T: To, D: Dispatch>(op: Op) -> Handler {
    choose!(op: binary [L, R, T, D]:
        I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU
        I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU
        F64Eq F64Ne F64Lt F64Gt F64Le F64Ge
        I32Add I32Sub I32Mul I32DivS I32DivU I32RemS I32RemU I32And I32Or I32Xor
        I32Shl I32ShrS I32ShrU I32Rotl I32Rotr
        I64Add I64Sub I64Mul I64DivS I64DivU I64RemS I64RemU I64And I64Or I64Xor
        I64Shl I64ShrS I64ShrU I64Rotl I64Rotr
        F64Add F64Sub F64Mul F64Div F64Min F64Max F64Copysign)
}

fn of_long_binary<L: Operand, T: To, D: Dispatch>(op: Op) -> Handler {
    choose!(op: binary [L, Long, T, D]:
        I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU
        F64Eq F64Ne F64Lt F64Gt F64Le F64Ge
        I64Add I64Sub I64Mul I64DivS I64DivU I64RemS I64RemU I64And I64Or I64Xor
        I64Shl I64ShrS I64ShrU I64Rotl I64Rotr
        F64Add F64Sub F64Mul F64Div F64Min F64Max F64Copysign)
}

/// Operations whose operands cannot be exchanged.
fn of_left<L: Operand, R: Operand, T: To, D: Dispatch>(op: Op) -> Handler {
    choose!(op: binary [L, R, T, D]:
        I32Sub I32DivS I32DivU I32RemS I32RemU I32Shl I32ShrS I32ShrU I32Rotl I32Rotr
        I64Sub I64DivS I64DivU I64RemS I64RemU I64Shl I64ShrS I64ShrU I64Rotl I64Rotr)
}

fn of_float_left<R: Operand, T: To, D: Dispatch>(op: Op) -> Handler {
    choose!(op: binary [Long, R, T, D]: F64Sub F64Div)
}

fn of_add_scaled<L: Operand, D: Dispatch>(bits: u32, to: Dest) -> Handler {
    match (bits, to) {
        (1, Dest::Cell) => add_scaled_const::<By1, L, ToCell, D>,
        (1, Dest::Acc) => add_scaled_const::<By1, L, D::ToAcc, D>,
        (2, Dest::Cell) => add_scaled_const::<By2, L, ToCell, D>,
        (2, Dest::Acc) => add_scaled_const::<By2, L, D::ToAcc, D>,
        (_, Dest::Cell) => add_scaled_const::<By3, L, ToCell, D>,
        (_, Dest::Acc) => add_scaled_const::<By3, L, D::ToAcc, D>,
    }
}

fn of_count_branch<R: Operand, D: Dispatch>(op: Op) -> Handler {
    choose!(op: count_branch [R, D]:
        I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU)
}

fn of_narrow_binary<R: Operand, D: Dispatch>(op: Op) -> Handler {
    choose!(op: binary [CellB, R, ToCell, D]:
        F32Eq F32Ne F32Lt F32Gt F32Le F32Ge
        F32Add F32Sub F32Mul F32Div F32Min F32Max F32Copysign)
}

fn of_branch<D: Dispatch>(op: Op, left: In, right: RightIn, taken: bool) -> Handler {
    match (left, right, taken) {
        _ if is_narrow_float(op) => match taken {
            true => of_narrow_branch::<IfTrue, D>(op),
            false => of_narrow_branch::<IfFalse, D>(op),
        },
        (In::Cell, RightIn::Cell, true) => of_wide_branch::<CellA, CellB, IfTrue, D>(op),
        (In::Cell, RightIn::Cell, false) => of_inexact_branch::<CellA, CellB, IfFalse, D>(op),
        (In::Cell, RightIn::Acc, true) => of_wide_branch::<CellA, D::Acc<CellB>, IfTrue, D>(op),
        (In::Cell, RightIn::Acc, false) => {
            of_inexact_branch::<CellA, D::Acc<CellB>, IfFalse, D>(op)
        }
        (In::Acc, RightIn::Cell | RightIn::Acc, true) => {
            of_wide_branch::<D::Acc<CellA>, CellB, IfTrue, D>(op)
        }
        (In::Acc, RightIn::Cell | RightIn::Acc, false) => {
            of_inexact_branch::<D::Acc<CellA>, CellB, IfFalse, D>(op)
        }
        (In::Cell, _, true) => of_short_branch::<CellA, IfTrue, D>(op),
        (In::Acc, _, true) => of_short_branch::<D::Acc<CellA>, IfTrue, D>(op),
        (In::Cell, _, false) => branch_if::<ops::I32And, CellA, ShortB, IfFalse, D>,
        (In::Acc, _, false) => branch_if::<ops::I32And, D::Acc<CellA>, ShortB, IfFalse, D>,
    }
}

fn of_wide_branch<L: Operand, R: Operand, T: Taken, D: Dispatch>(op: Op) -> Handler {
    choose!(op: branch_if [L, R, T, D]:
        I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU I32And
        I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU
        F64Eq F64Ne F64Lt F64Gt F64Le F64Ge)
}

/// Operations whose opposite is no operation.
fn of_inexact_branch<L: Operand, R: Operand, T: Taken, D: Dispatch>(op: Op) -> Handler {
    choose!(op: branch_if [L, R, T, D]: I32And F64Eq F64Ne F64Lt F64Gt F64Le F64Ge)
}

fn of_narrow_branch<T: Taken, D: Dispatch>(op: Op) -> Handler {
    choose!(op: branch_if [CellA, CellB, T, D]: F32Eq F32Ne F32Lt F32Gt F32Le F32Ge)
}

fn of_short_branch<L: Operand, T: Taken, D: Dispatch>(op: Op) -> Handler {
    choose!(op: branch_if [L, ShortB, T, D]:
        I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU I32And
        I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU)
}

fn of_load<T: To, D: Dispatch>(loaded: Loaded, address: AddressIn) -> Handler {
    match (loaded.bytes, loaded.signed_to) {
        (1, 0) => of_load_at::<Load8U, T, D>(address),
        (1, 4) => of_load_at::<Load8S32, T, D>(address),
        (1, _) => of_load_at::<Load8S64, T, D>(address),
        (2, 0) => of_load_at::<Load16U, T, D>(address),
        (2, 4) => of_load_at::<Load16S32, T, D>(address),
        (2, _) => of_load_at::<Load16S64, T, D>(address),
        (4, 0 | 4) => of_load_at::<Load32U, T, D>(address),
        (4, _) => of_load_at::<Load32S64, T, D>(address),
        _ if loaded.is_float => of_load_at::<LoadF64, T, D>(address),
        _ => of_load_at::<Load64, T, D>(address),
    }
}

/// Chooses the handler for an address, given its generics before and after that of the address.
macro_rules! at_address {
    ($address:ident: $handler:ident [$($before:ty),*] [$($after:ty),*]) => {
        match $address {
            AddressIn::Plain(In::Cell) => $handler::<$($before,)* Plain<CellB>, $($after),*>,
            AddressIn::Plain(In::Acc) => $handler::<$($before,)* Plain<D::Acc<CellB>>, $($after),*>,
            AddressIn::Fixed => $handler::<$($before,)* Fixed, $($after),*>,
            AddressIn::Indexed(SumIn::Cells) => {
                $handler::<$($before,)* Indexed<CellB, CellX>, $($after),*>
            }
            AddressIn::Indexed(SumIn::BaseAcc) => {
                $handler::<$($before,)* Indexed<D::Acc<CellB>, CellX>, $($after),*>
            }
            AddressIn::Indexed(SumIn::IndexAcc) => {
                $handler::<$($before,)* Indexed<CellB, D::Acc<CellX>>, $($after),*>
            }
            AddressIn::IndexedFar => $handler::<$($before,)* IndexedFar, $($after),*>,
            AddressIn::Wrapped(SumIn::Cells) => {
                $handler::<$($before,)* Wrapped<CellB, CellX>, $($after),*>
            }
            AddressIn::Wrapped(SumIn::BaseAcc) => {
                $handler::<$($before,)* Wrapped<D::Acc<CellB>, CellX>, $($after),*>
            }
            AddressIn::Wrapped(SumIn::IndexAcc) => {
                $handler::<$($before,)* Wrapped<CellB, D::Acc<CellX>>, $($after),*>
            }
            AddressIn::Moved(In::Cell) => $handler::<$($before,)* Moved<CellB>, $($after),*>,
            AddressIn::Moved(In::Acc) => $handler::<$($before,)* Moved<D::Acc<CellB>>, $($after),*>,
            AddressIn::Scaled(1, In::Cell) => {
                $handler::<$($before,)* Scaled<By1, CellB>, $($after),*>
            }
            AddressIn::Scaled(1, In::Acc) => {
                $handler::<$($before,)* Scaled<By1, D::Acc<CellB>>, $($after),*>
            }
            AddressIn::Scaled(2, In::Cell) => {
                $handler::<$($before,)* Scaled<By2, CellB>, $($after),*>
            }
            AddressIn::Scaled(2, In::Acc) => {
                $handler::<$($before,)* Scaled<By2, D::Acc<CellB>>, $($after),*>
            }
            AddressIn::Scaled(_, In::Cell) => {
                $handler::<$($before,)* Scaled<By3, CellB>, $($after),*>
            }
            AddressIn::Scaled(_, In::Acc) => {
                $handler::<$($before,)* Scaled<By3, D::Acc<CellB>>, $($after),*>
            }
        }
    };
}

fn of_load_at<L: Load, T: To, D: Dispatch>(address: AddressIn) -> Handler {
    at_address!(address: load [L] [T, D])
}

fn of_load_wide<D: Dispatch>(address: AddressIn) -> Handler {
    at_address!(address: load_wide [] [D])
}

fn of_store_wide<D: Dispatch>(address: AddressIn) -> Handler {
    at_address!(address: store_wide [] [D])
}

fn of_vector_op<D: Dispatch>(op: Op) -> Handler {
    macro_rules! choose_vector_op {
        ($op:ident $($name:ident)*) => {
            match $op {
                $(Op::$name => vector_op::<vector::ops::$name, D>,)*
                _ => unreachable!("`{}` is no operation on vectors alone", $op.mnemonic()),
            }
        };
    }
    slotvm_bytecode::for_each_vector_op!(choose_vector_op! op)
}

fn of_store<V: Operand, N: Numeric, D: Dispatch>(bytes: u32, address: AddressIn) -> Handler {
    match bytes {
        1 => of_store_at::<Store8, V, N, D>(address),
        2 => of_store_at::<Store16, V, N, D>(address),
        4 => of_store_at::<Store32, V, N, D>(address),
        _ => of_store_at::<Store64, V, N, D>(address),
    }
}

fn of_store_at<S: StoreBytes, V: Operand, N: Numeric, D: Dispatch>(address: AddressIn) -> Handler {
    at_address!(address: store [S, V, N] [D])
}
