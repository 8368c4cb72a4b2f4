//! Machine code taken apart: its instructions, and the data between and after them.
//!
//! Cranelift puts constants after the instructions of a function, and a jump table after the jump that uses it. The code
//! does not say where: an instruction that refers to them comes before. So one pass in order of address finds them.

use std::collections::BTreeSet;
use std::ops::Range;

use capstone::Capstone;
use slotvm::compiler::FunctionCode;

use crate::ViewError;

/// An instruction of machine code, or data in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeInst {
    /// Its code offsets in the function.
    pub code: Range<u32>,
    /// The instruction as text; for data, a directive of the assembler.
    pub text: String,
    /// Whether it is data.
    pub is_data: bool,
    /// The code offset of the constant or jump table that it refers to.
    pub data: Option<u32>,
}

/// Bytes of data in one line.
const DATA_BYTES_MAX: usize = 8;

/// Takes the code of a function apart. Its addresses count from the start of the module's code, or of the function's, if
/// that is not placed with others.
///
/// # Errors
/// Fails if there is no disassembler for the machine.
pub fn disassemble(code: &FunctionCode) -> Result<Vec<NativeInst>, ViewError> {
    let machine = Machine::host()?;
    let base = code.module_offset.unwrap_or(0);
    let len = code.bytes.len() as u32;
    let mut data = BTreeSet::new();
    let mut insts: Vec<NativeInst> = Vec::new();
    let mut at = 0;
    while at < len {
        if let Some(end) = data_end(code, &data, at) {
            insts.extend(data_lines(&code.bytes, at..end));
            at = end;
            continue;
        }
        let rest = &code.bytes[at as usize..];
        let inst = machine.inst(rest, base + u64::from(at), at)?;
        // Referring to what lies behind is for data; what lies before was instructions.
        data.extend(inst.data.filter(|&target| target >= inst.code.end && target < len));
        at = inst.code.end;
        insts.push(inst);
    }
    Ok(insts)
}

/// The end of the data at a code offset, if there is data: it ends where the code of the next instruction of the bytecode
/// starts, or else with the function.
fn data_end(code: &FunctionCode, data: &BTreeSet<u32>, at: u32) -> Option<u32> {
    let len = code.bytes.len() as u32;
    if !data.contains(&at) {
        // Padding before the first constant.
        let next = *data.range(at..).next()?;
        let padding = &code.bytes[at as usize..next as usize];
        let is_padding = padding.len() < 16 && padding.iter().all(|&byte| byte == 0);
        return is_padding.then_some(next);
    }
    let next = code.ranges.partition_point(|range| range.code.end <= at);
    Some(match code.ranges.get(next) {
        Some(range) if range.code.start <= at => range.code.end,
        Some(range) => range.code.start,
        None => len,
    })
}

/// Data as lines of a few bytes.
fn data_lines(bytes: &[u8], code: Range<u32>) -> impl Iterator<Item = NativeInst> {
    code.clone().step_by(DATA_BYTES_MAX).map(move |start| {
        let end = code.end.min(start + DATA_BYTES_MAX as u32);
        as_data(&bytes[start as usize..end as usize], start)
    })
}

/// Bytes at a code offset that are no instruction.
fn as_data(bytes: &[u8], offset: u32) -> NativeInst {
    let code = offset..offset + bytes.len() as u32;
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
    let text = format!(".byte {}", bytes.join(", "));
    NativeInst { code, text, is_data: true, data: None }
}

/// The disassembler of a machine.
struct Machine {
    capstone: Capstone,
    /// The bytes of an instruction that is not known.
    unknown_bytes: usize,
}

impl Machine {
    /// The machine that native code is made for.
    fn host() -> Result<Machine, ViewError> {
        let Some((capstone, unknown_bytes)) = arch::host() else {
            let message = format!("no disassembler for {}", slotvm::host_target());
            return Err(ViewError::Failed(message));
        };
        Ok(Machine { capstone: capstone.map_err(failed)?, unknown_bytes })
    }

    /// The instruction at the start of some bytes, whose address and code offset are these.
    fn inst(&self, bytes: &[u8], address: u64, offset: u32) -> Result<NativeInst, ViewError> {
        let insts = self.capstone.disasm_count(bytes, address, 1).map_err(failed)?;
        let Some(inst) = insts.first() else {
            return Ok(as_data(&bytes[..self.unknown_bytes.min(bytes.len())], offset));
        };
        let end = offset + inst.len() as u32;
        let (mnemonic, operands) = (inst.mnemonic().unwrap_or(""), inst.op_str().unwrap_or(""));
        let text = format!("{mnemonic} {operands}").trim_end().to_owned();
        let detail = self.capstone.insn_detail(inst).map_err(failed)?;
        let operands = detail.arch_detail().operands();
        let start = Start { address, offset };
        let data = operands
            .iter()
            .find_map(|operand| arch::data(operand, mnemonic, &start, u64::from(end - offset)));
        Ok(NativeInst { code: offset..end, text, is_data: false, data })
    }
}

/// Where an instruction starts.
struct Start {
    address: u64,
    /// In the function.
    offset: u32,
}

impl Start {
    /// The code offset of an address of the same function.
    fn offset_of(&self, address: u64) -> Option<u32> {
        let distance = address.wrapping_sub(self.address) as i64;
        u32::try_from(i64::from(self.offset).checked_add(distance)?).ok()
    }
}

/// The disassembler of the host. Capstone is built with no other decoder.
#[cfg(target_arch = "x86_64")]
mod arch {
    use capstone::arch::x86::{ArchMode, ArchSyntax, X86Operand, X86OperandType, X86Reg};
    use capstone::arch::{ArchOperand, BuildsCapstone, BuildsCapstoneSyntax};
    use capstone::{Capstone, CsResult};

    use super::Start;

    /// The disassembler of the host, and the bytes of an instruction that it does not know.
    pub(super) fn host() -> Option<(CsResult<Capstone>, usize)> {
        let x86 = Capstone::new().x86().mode(ArchMode::Mode64);
        Some((x86.syntax(ArchSyntax::Intel).detail(true).build(), 1))
    }

    /// The code offset of the data that an operand of an instruction of some bytes refers to, if it does.
    pub(super) fn data(operand: &ArchOperand, _: &str, start: &Start, len: u64) -> Option<u32> {
        match operand {
            ArchOperand::X86Operand(X86Operand {
                op_type: X86OperandType::Mem(memory), ..
            }) if u32::from(memory.base().0) == X86Reg::X86_REG_RIP => {
                let end = start.address.checked_add(len)?;
                start.offset_of(end.checked_add_signed(memory.disp())?)
            }
            _ => None,
        }
    }
}

/// The disassembler of the host. Capstone is built with no other decoder.
#[cfg(target_arch = "aarch64")]
mod arch {
    use capstone::arch::arm64::{ArchMode, Arm64Operand, Arm64OperandType};
    use capstone::arch::{ArchOperand, BuildsCapstone};
    use capstone::{Capstone, CsResult};

    use super::Start;

    /// The disassembler of the host, and the bytes of an instruction that it does not know.
    pub(super) fn host() -> Option<(CsResult<Capstone>, usize)> {
        Some((Capstone::new().arm64().mode(ArchMode::Arm).detail(true).build(), 4))
    }

    /// The code offset of the data that an operand refers to, if it does.
    pub(super) fn data(
        operand: &ArchOperand,
        mnemonic: &str,
        start: &Start,
        _: u64,
    ) -> Option<u32> {
        match operand {
            ArchOperand::Arm64Operand(Arm64Operand {
                op_type: Arm64OperandType::Imm(target),
                ..
            }) if mnemonic == "adr" || mnemonic.starts_with("ldr") => {
                start.offset_of(*target as u64)
            }
            _ => None,
        }
    }
}

/// Other machines have no disassembler.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use capstone::arch::ArchOperand;
    use capstone::{Capstone, CsResult};

    use super::Start;

    pub(super) fn host() -> Option<(CsResult<Capstone>, usize)> {
        None
    }

    pub(super) fn data(_: &ArchOperand, _: &str, _: &Start, _: u64) -> Option<u32> {
        None
    }
}

fn failed(error: capstone::Error) -> ViewError {
    ViewError::Failed(format!("the disassembler fails: {error}"))
}
