//! Registration of native code with debuggers, through the interface that GDB and LLDB share. It consists
//! of a list of in-memory object files that starts at `__jit_debug_descriptor`, and of the function
//! `__jit_debug_register_code`. A debugger sets a breakpoint there and reads from the descriptor which
//! object was added or removed.
//!
//! An object ([`object_file`]) has a symbol for each function, at the address of its code, and the sections of
//! [`dwarf`](crate::code::dwarf). So breakpoints accept the names of guest functions and source lines, backtraces
//! show them, and locals have values.
//!
//! A process has one list for all libraries that generate code. The two symbols are weak, as in wasmtime and LLVM, so
//! that any number of such libraries can be linked; the linker takes one definition for all. Each library keeps its
//! own threads from changing the list at once. The interface has no lock between libraries.

use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use object::elf;
use object::write::elf::{FileHeader, SectionHeader, Sym, Writer};

use slotvm_bytecode::VerifiedModule;

use crate::code::dwarf::{Section, Shown, c_string, sections};

const NO_ACTION: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// An entry of the list.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    prev: *mut Entry,
    object: *const u8,
    object_bytes: u64,
}

/// The descriptor that debuggers read.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

// Rust has no attribute for weak symbols yet.
std::arch::global_asm!(
    ".pushsection .text",
    ".weak __jit_debug_register_code",
    ".type __jit_debug_register_code, %function",
    "__jit_debug_register_code:",
    "ret",
    ".size __jit_debug_register_code, . - __jit_debug_register_code",
    ".popsection",
    ".pushsection .data",
    ".balign 8",
    ".weak __jit_debug_descriptor",
    ".type __jit_debug_descriptor, %object",
    "__jit_debug_descriptor:",
    ".4byte 1, 0",
    ".8byte 0, 0",
    ".size __jit_debug_descriptor, . - __jit_debug_descriptor",
    ".popsection",
);

unsafe extern "C" {
    fn __jit_debug_register_code();
    static mut __jit_debug_descriptor: Descriptor;
}

/// Held while the list is changed.
static LIST: Mutex<()> = Mutex::new(());

/// Code registered with debuggers; dropping it removes the registration.
pub(crate) struct DebugImage {
    /// Entry in the debugger's list, owned by a pointer: a `Box` must not be accessed by others while it moves.
    entry: ptr::NonNull<Entry>,
    /// The object file that the entry points to.
    object: Box<[u8]>,
}

// SAFETY: the entry is only accessed under the lock; nothing is tied to a thread.
unsafe impl Send for DebugImage {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for DebugImage {}

impl DebugImage {
    /// Registers the functions in a block of code, which are of a module if there is one, with debuggers. The code must not
    /// move until the result is dropped.
    pub(crate) fn register(
        code: &Range<usize>,
        funcs: &[Shown<'_>],
        module: Option<&VerifiedModule>,
    ) -> DebugImage {
        let object = object_file(code, funcs, &sections(code, funcs, module)).into_boxed_slice();
        let entry = Box::new(Entry {
            next: ptr::null_mut(),
            prev: ptr::null_mut(),
            object: object.as_ptr(),
            object_bytes: object.len() as u64,
        });
        let entry = ptr::NonNull::from(Box::leak(entry));
        let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptor = &raw mut __jit_debug_descriptor;
        // SAFETY: all entries of the list stay where they are until they leave it, which is up to those who
        // have made them. Ours change under the lock; that another library which shows code to debuggers does
        // not change the list meanwhile is a condition of `Config::debug_info`.
        unsafe {
            let first = (*descriptor).first;
            (*entry.as_ptr()).next = first;
            if !first.is_null() {
                (*first).prev = entry.as_ptr();
            }
            (*descriptor).first = entry.as_ptr();
            notify(REGISTER, entry.as_ptr());
        }
        DebugImage { entry, object }
    }
}

impl Drop for DebugImage {
    fn drop(&mut self) {
        let entry = self.entry.as_ptr();
        {
            let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
            let descriptor = &raw mut __jit_debug_descriptor;
            // SAFETY: the entry is in the list, since nothing else takes it out, and so are its neighbours, which
            // stay where they are until they leave it. The list changes under the lock; that no other library
            // changes it meanwhile is a condition of `Config::debug_info`.
            unsafe {
                let Entry { next, prev, .. } = *entry;
                if prev.is_null() {
                    (*descriptor).first = next;
                } else {
                    (*prev).next = next;
                }
                if !next.is_null() {
                    (*next).prev = prev;
                }
                notify(UNREGISTER, entry);
            }
        }
        // SAFETY: it was leaked when it was made, and is out of the list.
        drop(unsafe { Box::from_raw(entry) });
    }
}

impl std::fmt::Debug for DebugImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugImage").field("object_bytes", &self.object.len()).finish()
    }
}

/// Notifies an attached debugger.
///
/// # Safety
/// The caller holds the lock of the list, and the entry is alive.
unsafe fn notify(action: u32, entry: *mut Entry) {
    let descriptor = &raw mut __jit_debug_descriptor;
    // SAFETY: the descriptor is ours as long as we have the lock; the function does nothing.
    unsafe {
        (*descriptor).action = action;
        (*descriptor).relevant = entry;
        __jit_debug_register_code();
        (*descriptor).action = NO_ACTION;
        (*descriptor).relevant = ptr::null_mut();
    }
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = elf::EM_AARCH64;

/// Builds an object file, laid out as if loaded, for a block of code and its functions, with these sections. It has no copy
/// of the code; debuggers read the code at its address.
fn object_file(code: &Range<usize>, funcs: &[Shown<'_>], sections: &[Section]) -> Vec<u8> {
    let names: Vec<Vec<u8>> = funcs.iter().map(|shown| c_string(&shown.name)).collect();
    let mut file = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut file);

    // First lay everything out.
    writer.reserve_file_header();
    let text_name = writer.add_section_name(b".text");
    let text = writer.reserve_section_index();
    let places: Vec<_> = sections
        .iter()
        .map(|(name, data)| {
            let name = writer.add_section_name(name.as_bytes());
            writer.reserve_section_index();
            (name, writer.reserve(data.len(), 8))
        })
        .collect();
    writer.reserve_null_symbol_index();
    let strings = names.iter().map(|name| {
        writer.reserve_symbol_index(Some(text));
        writer.add_string(name)
    });
    let strings: Vec<_> = strings.collect();
    writer.reserve_symtab_section_index();
    writer.reserve_symtab();
    writer.reserve_strtab_section_index();
    writer.reserve_strtab();
    writer.reserve_shstrtab_section_index();
    writer.reserve_shstrtab();
    writer.reserve_section_headers();

    // Then write it, in the same order.
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_EXEC,
        e_machine: MACHINE,
        e_entry: 0,
        e_flags: 0,
    };
    writer.write_file_header(&header).expect("it is smaller than 4 GiB");
    for ((_, data), &(_, offset)) in sections.iter().zip(&places) {
        writer.pad_until(offset);
        writer.write(data);
    }
    writer.write_null_symbol();
    for (Shown { code, .. }, &name) in funcs.iter().zip(&strings) {
        writer.write_symbol(&Sym {
            name: Some(name),
            section: Some(text),
            st_info: elf::STB_GLOBAL << 4 | elf::STT_FUNC,
            st_other: elf::STV_DEFAULT,
            st_shndx: 0,
            st_value: code.start as u64,
            st_size: code.len() as u64,
        });
    }
    writer.write_strtab();
    writer.write_shstrtab();
    writer.write_null_section_header();
    writer.write_section_header(&SectionHeader {
        name: Some(text_name),
        sh_type: elf::SHT_NOBITS,
        sh_flags: u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR),
        sh_addr: code.start as u64,
        sh_offset: places[0].1 as u64,
        sh_size: code.len() as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: 16,
        sh_entsize: 0,
    });
    for ((_, data), &(name, offset)) in sections.iter().zip(&places) {
        writer.write_section_header(&SectionHeader {
            name: Some(name),
            sh_type: elf::SHT_PROGBITS,
            sh_flags: 0,
            sh_addr: 0,
            sh_offset: offset as u64,
            sh_size: data.len() as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 8,
            sh_entsize: 0,
        });
    }
    // The null symbol is the only local one.
    writer.write_symtab_section_header(1);
    writer.write_strtab_section_header();
    writer.write_shstrtab_section_header();
    file
}

#[cfg(test)]
mod tests;
