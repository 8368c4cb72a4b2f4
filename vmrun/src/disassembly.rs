//! Machine code taken apart: its instructions, and the data between and after them.
//!
//! Cranelift puts constants after the instructions of a function, and a jump table after the jump that uses it. The code
//! does not say where: an instruction that refers to them comes before. So one pass in order of address finds them.

use std::collections::BTreeSet;
use std::ops::Range;

use capstone::Capstone;
use capstone::arch::{ArchOperand, BuildsCapstone, BuildsCapstoneSyntax, arm64, x86};
use slotvm::compiler::FunctionCode;

use crate::error::CliError;

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
pub fn disassemble(code: &FunctionCode) -> Result<Vec<NativeInst>, CliError> {
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
    fn host() -> Result<Machine, CliError> {
        let (capstone, unknown_bytes) = if cfg!(target_arch = "x86_64") {
            let x86 = Capstone::new().x86().mode(x86::ArchMode::Mode64);
            (x86.syntax(x86::ArchSyntax::Intel).detail(true).build(), 1)
        } else if cfg!(target_arch = "aarch64") {
            (Capstone::new().arm64().mode(arm64::ArchMode::Arm).detail(true).build(), 4)
        } else {
            let message = format!("no disassembler for {}", slotvm::host_target());
            return Err(CliError::Failed(message));
        };
        Ok(Machine { capstone: capstone.map_err(failed)?, unknown_bytes })
    }

    /// The instruction at the start of some bytes, whose address and code offset are these.
    fn inst(&self, bytes: &[u8], address: u64, offset: u32) -> Result<NativeInst, CliError> {
        let insts = self.capstone.disasm_count(bytes, address, 1).map_err(failed)?;
        let Some(inst) = insts.first() else {
            return Ok(as_data(&bytes[..self.unknown_bytes.min(bytes.len())], offset));
        };
        let end = offset + inst.len() as u32;
        let (mnemonic, operands) = (inst.mnemonic().unwrap_or(""), inst.op_str().unwrap_or(""));
        let text = format!("{mnemonic} {operands}").trim_end().to_owned();
        let detail = self.capstone.insn_detail(inst).map_err(failed)?;
        let operands = detail.arch_detail().operands();
        let referred = operands.iter().find_map(|operand| referred(operand, mnemonic));
        let data = referred.and_then(|referred| match referred {
            Referred::Relative(distance) => u32::try_from(i64::from(end) + distance).ok(),
            Referred::Absolute(target) => {
                u32::try_from(target.checked_sub(address)?).ok()?.checked_add(offset)
            }
        });
        Ok(NativeInst { code: offset..end, text, is_data: false, data })
    }
}

/// A reference to an address near the instruction.
enum Referred {
    /// A distance from the end of the instruction.
    Relative(i64),
    /// An address.
    Absolute(u64),
}

/// The reference of an operand to data, if it is one.
fn referred(operand: &ArchOperand, mnemonic: &str) -> Option<Referred> {
    match operand {
        ArchOperand::X86Operand(x86::X86Operand { op_type, .. }) => match op_type {
            x86::X86OperandType::Mem(memory)
                if u32::from(memory.base().0) == x86::X86Reg::X86_REG_RIP =>
            {
                Some(Referred::Relative(memory.disp()))
            }
            _ => None,
        },
        ArchOperand::Arm64Operand(arm64::Arm64Operand { op_type, .. }) => match op_type {
            arm64::Arm64OperandType::Imm(target)
                if mnemonic == "adr" || mnemonic.starts_with("ldr") =>
            {
                Some(Referred::Absolute(*target as u64))
            }
            _ => None,
        },
        #[allow(
            unreachable_patterns,
            reason = "other crates may build the library for more machines"
        )]
        _ => None,
    }
}

fn failed(error: capstone::Error) -> CliError {
    CliError::Failed(format!("the disassembler fails: {error}"))
}
