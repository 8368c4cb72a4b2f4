//! Stubs: where calls of a function go as long as it is not compiled, in modules whose functions are compiled one by one.
//!
//! The stub of a function stores the function's number in [`Shared::selector`] and jumps to where the module says
//! ([`OnCall::targets`]): to the head, or to a trampoline to the interpreter. The head passes the number and the maker of the
//! module's code on, in registers that calls do not use, to the function that finds the code.
//!
//! Nothing of that depends on the module, since the context that a call passes leads to it. So all modules of an engine have
//! the same stubs: as many as the largest of them has functions. A module takes no memory for code before a function of it
//! is compiled.
//!
//! [`Shared::selector`]: slotvm_runtime::native::Shared::selector
//! [`OnCall::targets`]: slotvm_runtime::native::OnCall::targets

use std::sync::OnceLock;

use cranelift_codegen::isa::OwnedTargetIsa;
use slotvm_bytecode::limits::FUNCS_MAX;
use slotvm_runtime::native::offsets::VMCTX_SHARED;

use crate::code::error::CodeError;
use crate::code::machine_code::MachineCode;
use crate::code::unit::CodeUnit;

const _: () = assert!(VMCTX_SHARED == 0, "the code below loads it from there");

/// Stubs of the first chunk. Each of the others has as many as all before it.
const FIRST_CHUNK_STUBS: u32 = 128;
/// As many as the functions of a module need.
const N_CHUNKS: usize =
    (FUNCS_MAX.next_power_of_two() / FIRST_CHUNK_STUBS as usize).ilog2() as usize + 1;

/// The stubs of an engine, by chunks. The first one begins with the head.
#[derive(Default)]
pub(crate) struct Stubs([OnceLock<CodeUnit>; N_CHUNKS]);

impl Stubs {
    /// The addresses of the head, which leads to `enter`, the same function always, and of so many stubs, in the order of the
    /// functions.
    ///
    /// # Errors
    /// Fails if there is no memory for code.
    pub(crate) fn of_funcs(
        &self,
        isa: &OwnedTargetIsa,
        enter: unsafe extern "C" fn(),
        n_funcs: u32,
    ) -> Result<(*const u8, impl Iterator<Item = *const u8>), CodeError> {
        let mut starts = Vec::new();
        for (number, chunk) in self.0.iter().enumerate() {
            let (first, n) = stubs_of(number);
            if number > 0 && first >= u64::from(n_funcs) {
                break;
            }
            if chunk.get().is_none() {
                // If another thread is as fast, its chunk is as good.
                _ = chunk.set(place_chunk(isa, enter, first as u32, n as u32)?);
            }
            starts.push((chunk.get().expect("it was set").func(0), n as usize));
        }
        let (head, _) = starts[0];
        starts[0].0 = head.wrapping_add(BYTES);
        let stubs = starts
            .into_iter()
            .flat_map(|(start, n)| (0..n).map(move |index| start.wrapping_add(index * BYTES)));
        Ok((head, stubs.take(n_funcs as usize)))
    }
}

/// The first function whose stub is in a chunk, and the number of its stubs.
fn stubs_of(chunk: usize) -> (u64, u64) {
    let first_chunk = u64::from(FIRST_CHUNK_STUBS);
    match chunk {
        0 => (0, first_chunk),
        _ => (first_chunk << (chunk - 1), first_chunk << (chunk - 1)),
    }
}

fn place_chunk(
    isa: &OwnedTargetIsa,
    enter: unsafe extern "C" fn(),
    first: u32,
    n: u32,
) -> Result<CodeUnit, CodeError> {
    let mut bytes = Vec::with_capacity((n as usize + 1) * BYTES);
    if first == 0 {
        head(&mut bytes, enter as *const () as u64);
    }
    for index in first..first + n {
        stub(&mut bytes, index);
    }
    assert!(bytes.len().is_multiple_of(BYTES), "head and stubs have the same size");
    let code = MachineCode { bytes, alignment: BYTES as u64, ..MachineCode::default() };
    CodeUnit::place(isa, 0, &[code], None)
}

#[cfg(target_arch = "x86_64")]
use x86_64::{BYTES, head, stub};

#[cfg(target_arch = "aarch64")]
use aarch64::{BYTES, head, stub};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use slotvm_runtime::native::offsets::{
        SHARED_SELECTOR, VMCTX_ON_CALL_MAKER, VMCTX_ON_CALL_TARGETS,
    };

    /// Size of the head, and of the stub of one function.
    pub(super) const BYTES: usize = 32;

    /// Guest code has its context in `rdi`.
    pub(super) fn head(code: &mut Vec<u8>, enter: u64) {
        code.extend([0x4c, 0x8b, 0x97]); // mov r10, [rdi + VMCTX_ON_CALL_MAKER]
        code.extend(VMCTX_ON_CALL_MAKER.to_le_bytes());
        code.extend([0x4c, 0x8b, 0x1f]); // mov r11, [rdi]
        code.extend([0x45, 0x8b, 0x9b]); // mov r11d, [r11 + SHARED_SELECTOR]
        code.extend(SHARED_SELECTOR.to_le_bytes());
        code.extend([0xff, 0x25, 1, 0, 0, 0]); // jmp [rip + 1]
        code.push(0xcc);
        code.extend(enter.to_le_bytes());
    }

    pub(super) fn stub(code: &mut Vec<u8>, index: u32) {
        code.extend([0x4c, 0x8b, 0x1f]); // mov r11, [rdi]
        code.extend([0x41, 0xc7, 0x83]); // mov dword [r11 + SHARED_SELECTOR], index
        code.extend(SHARED_SELECTOR.to_le_bytes());
        code.extend(index.to_le_bytes());
        code.extend([0x4c, 0x8b, 0x9f]); // mov r11, [rdi + VMCTX_ON_CALL_TARGETS]
        code.extend(VMCTX_ON_CALL_TARGETS.to_le_bytes());
        code.extend([0x41, 0xff, 0xa3]); // jmp [r11 + 8 * index]
        code.extend((8 * index).to_le_bytes());
        code.extend([0xcc; 4]);
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use slotvm_runtime::native::offsets::{
        SHARED_SELECTOR, VMCTX_ON_CALL_MAKER, VMCTX_ON_CALL_TARGETS,
    };

    /// Size of the head, and of the stub of one function.
    pub(super) const BYTES: usize = 32;

    /// The offset of a field of 64 bits, scaled, where loads have it.
    const fn scaled(offset: i32) -> u32 {
        assert!(offset % 8 == 0 && offset / 8 < 1 << 12);
        (offset as u32 / 8) << 10
    }

    /// The offset of the field, scaled, where loads and stores have it.
    const CALLEE: u32 = (SHARED_SELECTOR as u32 / 4) << 10;
    const _: () = assert!(SHARED_SELECTOR % 4 == 0 && SHARED_SELECTOR / 4 < 1 << 12);

    /// Guest code has its context in `x2`.
    pub(super) fn head(code: &mut Vec<u8>, enter: u64) {
        for inst in [
            0xf940_0051 | scaled(VMCTX_ON_CALL_MAKER), // ldr x17, [x2, VMCTX_ON_CALL_MAKER]
            0xf940_0050,                               // ldr x16, [x2]
            0xb940_0000 | CALLEE | 16 << 5 | 16,       // ldr w16, [x16, SHARED_SELECTOR]
            0x5800_006f,                               // ldr x15, [pc + 12]
            0xd61f_01e0,                               // br x15
            0xd503_201f,                               // nop
        ] {
            code.extend(u32::to_le_bytes(inst));
        }
        code.extend(enter.to_le_bytes());
    }

    pub(super) fn stub(code: &mut Vec<u8>, index: u32) {
        let (low, high) = (index & 0xffff, index >> 16);
        for inst in [
            0xf940_0050,                                 // ldr x16, [x2]
            0x5280_0011 | low << 5,                      // movz w17, low
            0x72a0_0011 | high << 5,                     // movk w17, high, lsl 16
            0xb900_0000 | CALLEE | 16 << 5 | 17,         // str w17, [x16, SHARED_SELECTOR]
            0xf940_0050 | scaled(VMCTX_ON_CALL_TARGETS), // ldr x16, [x2, VMCTX_ON_CALL_TARGETS]
            0xf871_7a10,                                 // ldr x16, [x16, x17, lsl 3]
            0xd61f_0200,                                 // br x16
            0xd503_201f,                                 // nop
        ] {
            code.extend(u32::to_le_bytes(inst));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_the_stubs_of_all_functions() {
        let mut next = 0;
        for (first, n) in (0..N_CHUNKS).map(stubs_of) {
            assert_eq!(first, next);
            next += n;
        }
        assert_eq!(next, FUNCS_MAX.next_power_of_two() as u64);
    }
}
