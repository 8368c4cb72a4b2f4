//! The machine code of stubs: a head that jumps to code of ours, and a stub for each function that a module defines.
//!
//! Calls go to the stub of a function as long as it is not compiled. It stores the function's number in
//! [`Shared::selector`] and jumps to where the fallback of the function's type leads, a cell that others write. That is the
//! head, or a trampoline to the interpreter. The head passes the number and an address of ours on, in registers that calls
//! do not use.
//!
//! [`Shared::selector`]: slotvm_runtime::native::Shared::selector

use slotvm_runtime::native::offsets::{SHARED_SELECTOR, VMCTX_SHARED};

const _: () = assert!(VMCTX_SHARED == 0, "the code below loads it from there");

/// Writes all of them. `state` is the address to pass on, `enter` where the head jumps to, and `fallbacks` are the addresses
/// of the cells that the stubs of functions jump by.
pub(crate) fn write(
    state: usize,
    enter: usize,
    fallbacks: impl ExactSizeIterator<Item = usize>,
) -> Vec<u8> {
    let mut code = Vec::with_capacity(HEAD_BYTES + fallbacks.len() * BYTES);
    head(&mut code, state as u64, enter as u64);
    assert_eq!(code.len(), HEAD_BYTES);
    for (index, fallback) in fallbacks.enumerate() {
        stub(&mut code, index as u32, fallback as u64);
        assert_eq!(code.len(), HEAD_BYTES + (index + 1) * BYTES);
    }
    code
}

/// The alignment of the code.
pub(crate) const ALIGNMENT: u64 = 16;
/// Size of the head.
pub(crate) const HEAD_BYTES: usize = 48;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::BYTES;
#[cfg(target_arch = "x86_64")]
use x86_64::{head, stub};

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::BYTES;
#[cfg(target_arch = "aarch64")]
use aarch64::{head, stub};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::SHARED_SELECTOR;

    /// Size of the stub of one function.
    pub(crate) const BYTES: usize = 32;

    /// Guest code has its context in `rdi`.
    pub(super) fn head(code: &mut Vec<u8>, state: u64, enter: u64) {
        code.extend([0x4c, 0x8b, 0x1f]); // mov r11, [rdi]
        code.extend([0x45, 0x8b, 0x9b]); // mov r11d, [r11 + SHARED_SELECTOR]
        code.extend(SHARED_SELECTOR.to_le_bytes());
        code.extend([0x4c, 0x8b, 0x15, 9, 0, 0, 0]); // mov r10, [rip + 9]
        code.extend([0xff, 0x25, 11, 0, 0, 0]); // jmp [rip + 11]
        code.extend([0xcc; 3]);
        code.extend(state.to_le_bytes());
        code.extend(enter.to_le_bytes());
        code.extend([0xcc; 6]);
    }

    pub(super) fn stub(code: &mut Vec<u8>, index: u32, fallback: u64) {
        code.extend([0x4c, 0x8b, 0x1f]); // mov r11, [rdi]
        code.extend([0x41, 0xc7, 0x83]); // mov dword [r11 + SHARED_SELECTOR], index
        code.extend(SHARED_SELECTOR.to_le_bytes());
        code.extend(index.to_le_bytes());
        code.extend([0x49, 0xba]); // mov r10, fallback
        code.extend(fallback.to_le_bytes());
        code.extend([0x41, 0xff, 0x22]); // jmp [r10]
        code.extend([0xcc; 5]);
    }
}

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use super::SHARED_SELECTOR;

    /// Size of the stub of one function.
    pub(crate) const BYTES: usize = 40;

    /// The offset of the field, scaled, where loads and stores have it.
    const CALLEE: u32 = (SHARED_SELECTOR as u32 / 4) << 10;
    const _: () = assert!(SHARED_SELECTOR % 4 == 0 && SHARED_SELECTOR / 4 < 1 << 12);

    /// `ldr register, [pc + offset]`
    const fn literal(register: u32, offset: u32) -> u32 {
        0x5800_0000 | offset / 4 << 5 | register
    }

    /// Guest code has its context in `x2`.
    pub(super) fn head(code: &mut Vec<u8>, state: u64, enter: u64) {
        for inst in [
            0xf940_0050,                         // ldr x16, [x2]
            0xb940_0000 | CALLEE | 16 << 5 | 16, // ldr w16, [x16, SHARED_SELECTOR]
            literal(17, 16),                     // ldr x17, state
            literal(15, 20),                     // ldr x15, enter
            0xd61f_01e0,                         // br x15
            0xd503_201f,                         // nop
        ] {
            code.extend(inst.to_le_bytes());
        }
        code.extend(state.to_le_bytes());
        code.extend(enter.to_le_bytes());
        code.extend(0_u64.to_le_bytes());
    }

    pub(super) fn stub(code: &mut Vec<u8>, index: u32, fallback: u64) {
        let (low, high) = (index & 0xffff, index >> 16);
        for inst in [
            0xf940_0050,                         // ldr x16, [x2]
            0x5280_0011 | low << 5,              // movz w17, low
            0x72a0_0011 | high << 5,             // movk w17, high, lsl 16
            0xb900_0000 | CALLEE | 16 << 5 | 17, // str w17, [x16, SHARED_SELECTOR]
            literal(16, 16),                     // ldr x16, fallback
            0xf940_0210,                         // ldr x16, [x16]
            0xd61f_0200,                         // br x16
            0xd503_201f,                         // nop
        ] {
            code.extend(inst.to_le_bytes());
        }
        code.extend(fallback.to_le_bytes());
    }
}
