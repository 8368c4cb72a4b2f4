//! Memory images: the initial memory that a module's data segments make, as a file that instances map copy-on-write.
//!
//! Making an instance then copies nothing, and a page of the memory takes memory of its own when it is
//! first written. There is an image only where mapping it does exactly what copying the segments would do,
//! whatever the imports are, and where it is worth a file descriptor; otherwise the segments are copied.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use slotvm_bytecode::module::{PAGE_BYTES, SegmentMode};
use slotvm_bytecode::{CodeReader, Op, VerifiedModule};

use crate::const_expr::evaluate;
use crate::limits::{IMAGE_DATA_BYTES_MIN, IMAGE_SPARSE_BYTES_MAX};
use crate::memory::linear::Memory;

/// See the module documentation.
#[derive(Debug)]
pub struct MemoryImage {
    file: File,
    /// The address of the file in the memory.
    start: u64,
    /// Its length.
    bytes: u64,
}

impl MemoryImage {
    /// The image of the memory that a module defines, if there is one: the active data segments start at
    /// constant addresses and lie inside the memory, there is enough of them, and the system gives a file.
    pub fn new(module: &VerifiedModule) -> Option<MemoryImage> {
        let bytecode = module.module();
        let memory_bytes = u64::from(bytecode.memories.first()?.min) * PAGE_BYTES;
        let mut segments = Vec::new();
        for data in &bytecode.datas {
            let SegmentMode::Active { offset, .. } = &data.mode else { continue };
            let mut reader = CodeReader::new(&offset.code, 0);
            while !reader.is_at_end() {
                if reader.read().ok()?.op == Op::GlobalGet {
                    return None;
                }
            }
            let at = u64::from(evaluate(offset, &[], |_| 0) as u32);
            if at + data.bytes.len() as u64 > memory_bytes {
                return None;
            }
            segments.push((at, &data.bytes[..]));
        }
        let page = page_bytes();
        let ends = segments.iter().map(|(at, data)| at + data.len() as u64);
        let end = ends.max()?.next_multiple_of(page);
        let start = segments.iter().map(|(at, _)| at / page * page).min()?;
        let data_bytes: u64 = segments.iter().map(|(_, data)| data.len() as u64).sum();
        let bytes = end - start;
        if data_bytes < IMAGE_DATA_BYTES_MIN || bytes > IMAGE_SPARSE_BYTES_MAX.max(2 * data_bytes) {
            return None;
        }
        let file = new_file()?;
        file.set_len(bytes).ok()?;
        write(&file, segments.into_iter().map(|(at, data)| (at - start, data))).ok()?;
        Some(MemoryImage { file, start, bytes })
    }

    /// Gives a new memory of the module its contents. Returns whether it could; otherwise the memory is as
    /// it was.
    pub(crate) fn map_into(&self, memory: &mut Memory) -> bool {
        memory.map(&self.file, self.start, self.bytes)
    }
}

/// Writes segments in their order. Those that follow each other at a short distance are written together: a module may have
/// a hundred thousand.
fn write<'d>(file: &File, segments: impl Iterator<Item = (u64, &'d [u8])>) -> io::Result<()> {
    /// Bytes between two segments that are written together.
    const GAP_MAX: u64 = 4096;
    /// Bytes of segments that are written together.
    const TOGETHER_MAX: usize = 1 << 20;
    // Where the segments so far end, and the last ones of them.
    let (mut end, mut start, mut together) = (0, 0, Vec::new());
    for (at, data) in segments {
        // Then nothing was written between them, or behind the last one.
        let is_last = start + together.len() as u64 == end;
        let follows = is_last && at >= end && at - end <= GAP_MAX;
        if !follows || together.len() > TOGETHER_MAX {
            file.write_all_at(&together, start)?;
            together.clear();
        }
        if together.is_empty() {
            start = at;
        }
        together.resize((at - start) as usize, 0);
        together.extend(data);
        end = end.max(at + data.len() as u64);
    }
    file.write_all_at(&together, start)
}

/// A file without a name, in memory.
#[cfg(target_os = "linux")]
fn new_file() -> Option<File> {
    // SAFETY: the name is a string that ends with 0.
    let file = unsafe { libc::memfd_create(c"slotvm".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor is new, so nothing else owns it.
    (file >= 0).then(|| unsafe { File::from_raw_fd(file) })
}

#[cfg(not(target_os = "linux"))]
fn new_file() -> Option<File> {
    None
}

fn page_bytes() -> u64 {
    // SAFETY: the call has no preconditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use slotvm_bytecode::{text, verify};

    use super::*;

    #[test]
    fn segments_are_written_in_their_order() {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for round in 0..200 {
            let mut at = 0_u64;
            let segments: Vec<(u64, Vec<u8>)> = (0..100)
                .map(|i| {
                    at = match below(10) {
                        0 => below(60_000),
                        1 => at.saturating_sub(below(100)),
                        2 => at + below(9_000),
                        _ => at + below(40),
                    } % 60_000;
                    let data = vec![i as u8 + 1; below(50) as usize];
                    let segment = (at, data);
                    at += segment.1.len() as u64;
                    segment
                })
                .collect();
            let mut expected = vec![0; 1 << 16];
            for (at, data) in &segments {
                expected[*at as usize..*at as usize + data.len()].copy_from_slice(data);
            }
            let file = new_file().unwrap();
            file.set_len(1 << 16).unwrap();
            write(&file, segments.iter().map(|(at, data)| (*at, &data[..]))).unwrap();
            let mut found = vec![0; 1 << 16];
            file.read_exact_at(&mut found, 0).unwrap();
            assert!(found == expected, "round {round}");
        }
    }
    use crate::native::{Natives, OnCall};
    use crate::{InterpreterCode, Store, StoreConfig};

    fn module(source: &str) -> Arc<VerifiedModule> {
        Arc::new(verify(text::parse(source).unwrap()).unwrap())
    }

    /// Text of a segment of this length.
    fn data(name: &str, at: &str, byte: char, n: usize) -> String {
        let bytes: String = std::iter::repeat_n(byte, n).collect();
        format!("data {name} at {at} \"{bytes}\"\n")
    }

    #[test]
    fn instances_with_an_image_start_as_those_without_and_share_nothing() {
        let source = "memory m 3\nglobal g i32 = i32.const 7\n".to_owned()
            + &data("a", "i32.const 70000", 'a', 9000)
            + &data("b", "i32.const 70100", 'b', 5)
            + &data("c", "i32.const 131072", 'c', 65536);
        let module = module(&source);
        let image = MemoryImage::new(&module).expect("there is enough data");
        let mut store = Store::new(StoreConfig::default(), Box::new(()));
        let natives = Natives {
            entries: std::ptr::null(),
            on_call: OnCall::NONE,
            memory_span_bytes: 0,
            image: Some(&image),
            tiers: None,
        };
        // SAFETY: there is no code, and the store interprets.
        let mapped = |store: &mut Store| unsafe {
            let code = &InterpreterCode::default();
            store.instantiate_native(module.clone(), &[], natives, code, || Ok(natives)).unwrap()
        };
        let copied = store.instantiate(module.clone(), &[]).unwrap();
        let first = mapped(&mut store);
        let [copied, first] = [copied, first].map(|i| store.instance_memory(i).unwrap());
        assert!(store.memory(first).data() == store.memory(copied).data());
        assert_eq!(store.memory(first).data()[70099..70106], *b"abbbbba");
        store.memory_data_mut(first).fill(1);
        let second = mapped(&mut store);
        let second = store.instance_memory(second).unwrap();
        assert!(store.memory(second).data() == store.memory(copied).data());
        assert_eq!(store.memory_grow(second, 1).unwrap(), Some(3));
        assert_eq!(store.memory(second).data()[196607..196609], [b'c', 0]);
    }

    #[test]
    fn there_is_no_image_where_it_would_not_do_the_same_or_not_be_worth_it() {
        let image = |source: String| MemoryImage::new(&module(&source)).is_some();
        assert!(image("memory m 1\n".to_owned() + &data("a", "i32.const 0", 'a', 65536)));
        // The second segment traps when the first one is there.
        assert!(!image(
            "memory m 1\n".to_owned()
                + &data("a", "i32.const 0", 'a', 65536)
                + &data("b", "i32.const 65530", 'b', 7)
        ));
        let global = "import \"e\" \"g\" global g i32\nmemory m 1\n".to_owned();
        assert!(!image(global + &data("a", "global.get g", 'a', 5000)));
        assert!(!image("memory m 1\n".to_owned() + &data("a", "i32.const 0", 'a', 100)));
        assert!(!image(
            "memory m 100\n".to_owned()
                + &data("a", "i32.const 0", 'a', 5000)
                + &data("b", "i32.const 6000000", 'b', 5000)
        ));
        let imported = "import \"e\" \"m\" memory m 1\n".to_owned();
        assert!(!image(imported + &data("a", "i32.const 0", 'a', 5000)));
    }
}
