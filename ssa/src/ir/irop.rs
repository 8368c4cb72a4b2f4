//! The operations of the IR: those of the bytecode's opcode table, and a few that bytecode does not have.

use slotvm_bytecode::{Effect, Op};

/// Calls the macro `$m` with all rows of the IR-only table: `Variant "mnemonic" Effect operands results "doc";`. The
/// immediate is one number; those that [have none](IrOp::has_imm) have 0.
#[macro_export]
macro_rules! for_each_ir_op {
    ($m:ident) => { $m! {
        SlotGet "slot.get" Local 0 1 "Reads the slot that the immediate names.";
        SlotSet "slot.set" Local 1 0 "Writes its operand to the slot that the immediate names.";
        Fuel "fuel" Write 0 0 "Charges the immediate's amount of fuel; traps with nothing charged if there is less.";
        FuelBulk "fuel.bulk" Write 1 0 "Charges its operand, an unsigned `i32`, shifted right by the immediate.";
        Poll "poll" Call 0 0 "Lets the host interrupt the program; may do whatever a call may.";
        StackPush "stack.push" Write 0 0 "Takes the immediate's number of cells from the deterministic call stack; traps if there are fewer.";
        StackPop "stack.pop" Write 0 0 "Gives the immediate's number of cells back to the deterministic call stack.";
        FramePush "frame.push" Write 0 1 "Takes the immediate's number of bytes from the frame stack in linear memory, zeroes them, returns their address; traps if there are fewer.";
        FramePop "frame.pop" Write 0 0 "Gives the immediate's number of bytes back to the frame stack.";
        RefIsFunc "ref.is_func" Pure 1 1 "Whether its operand is a reference to the function of the module that the immediate names: 1 or 0.";
        Safepoint "safepoint" Write 0 0 "Says which root cells hold references while the call after it waits: the bits of the immediate, or all.";
        RootGet "root.get" Read 0 1 "Reads the root cell that the immediate names.";
        RootSet "root.set" Write 1 0 "Writes a reference into the embedder's heap to the root cell that the immediate names.";
        Exit "exit" Control 0 0 "Leaves for the interpreter, which goes on in the frame that the immediate names in the function's list of exits. Takes the values of the frame's places.";
    } };
}

macro_rules! define_ir_op {
    ($($variant:ident $mnemonic:literal $effect:ident $operands:literal $results:literal $doc:literal;)*) => {
        /// An operation that only the IR has.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum IrOp {
            $(#[doc = concat!("`", $mnemonic, "`: ", $doc)] $variant,)*
        }

        impl IrOp {
            /// All IR-only operations.
            pub const ALL: &'static [IrOp] = &[$(IrOp::$variant),*];

            /// The name in the text form.
            pub const fn mnemonic(self) -> &'static str {
                match self { $(IrOp::$variant => $mnemonic,)* }
            }

            /// Returns the effect of the operation beyond computing its results.
            pub const fn effect(self) -> Effect {
                match self { $(IrOp::$variant => Effect::$effect,)* }
            }

            /// The number of operands, besides the values of an exit.
            pub const fn n_operands(self) -> usize {
                match self { $(IrOp::$variant => $operands,)* }
            }

            /// The number of results.
            pub const fn n_results(self) -> usize {
                match self { $(IrOp::$variant => $results,)* }
            }

            /// The operation with this mnemonic.
            pub fn from_mnemonic(mnemonic: &str) -> Option<IrOp> {
                match mnemonic { $($mnemonic => Some(IrOp::$variant),)* _ => None }
            }
        }
    };
}

for_each_ir_op!(define_ir_op);

impl IrOp {
    /// Whether the immediate names a slot.
    pub const fn is_slot_access(self) -> bool {
        matches!(self, IrOp::SlotGet | IrOp::SlotSet)
    }

    /// Whether the operation has an immediate.
    pub const fn has_imm(self) -> bool {
        !matches!(self, IrOp::Poll)
    }
}

/// The operation of an IR instruction.
///
/// The IR has those opcodes of the bytecode that [`is_in_ir`] names. The control instructions end blocks; their
/// targets are the block's out-edges, not immediates.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// An opcode of the table in `slotvm_bytecode::op`, with its immediates and semantics.
    Op(Op),
    /// An operation that bytecode does not have.
    Ir(IrOp),
}

/// Whether the IR has an opcode of the bytecode: all except operations on the operand stack and locals.
pub fn is_in_ir(op: Op) -> bool {
    !matches!(op.effect(), Effect::Stack | Effect::Local) && op != Op::BrKeep
}

impl Opcode {
    /// The name in the text form.
    pub const fn mnemonic(self) -> &'static str {
        match self {
            Opcode::Op(op) => op.mnemonic(),
            Opcode::Ir(op) => op.mnemonic(),
        }
    }

    /// Returns the effect of the operation beyond computing its results.
    pub const fn effect(self) -> Effect {
        match self {
            Opcode::Op(op) => op.effect(),
            Opcode::Ir(op) => op.effect(),
        }
    }

    /// Whether the instruction has an effect that stays in its place among those of the program: it writes, calls,
    /// may trap, charges fuel, polls, takes or returns stack, or leaves the function. Branches inside of the
    /// function order nothing by themselves, and neither do reads that cannot trap.
    pub const fn is_ordered(self) -> bool {
        match self {
            Opcode::Op(
                Op::Br
                | Op::BrIf
                | Op::BrTable
                | Op::GlobalGet
                | Op::RefFunc
                | Op::TableSize
                | Op::MemorySize,
            ) => false,
            _ => !matches!(self.effect(), Effect::Pure | Effect::Local | Effect::Stack),
        }
    }

    /// Whether native code calls a function for the instruction, after which only some registers have their values.
    pub const fn calls(self) -> bool {
        match self {
            Opcode::Ir(_) | Opcode::Op(Op::GlobalSet) => false,
            Opcode::Op(op) => match op.effect() {
                Effect::Call => true,
                Effect::Write => op.access().is_none(),
                _ => false,
            },
        }
    }

    /// Whether the instruction loads from linear memory or stores to it.
    pub fn is_access(self) -> bool {
        matches!(self, Opcode::Op(op) if op.access_bytes().is_some())
    }

    /// Whether the instruction ends a block.
    pub const fn is_terminator(self) -> bool {
        matches!(self.effect(), Effect::Control)
    }
}
