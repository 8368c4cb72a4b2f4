//! The corpus that inputs are made from: the programs, the file tests, generated modules, and small modules
//! with one of everything.

use std::path::{Path, PathBuf};

use slotvm_bytecode::{encode, text};
use slotvm_filetests::generate;
use wat::GenerateDwarf;

use crate::rng::Rng;

/// Most inputs are made of files up to this size, to be quick.
const SMALL_BYTES_MAX: usize = 2_500;
/// Number of inputs for each one made of any file.
const ANY_ONE_IN: usize = 200;
/// Larger files are left out.
const BYTES_MAX: usize = 60_000;

const EVERYTHING: &str = include_str!("../../../vm/tests/wasm/everything.wat");
const EVERY_OPCODE: &str = include_str!("../../../vm/tests/text/every_opcode.vasm");

/// WebAssembly modules, to which names and DWARF are added.
const WATS: &[&str] = &[
    EVERYTHING,
    "(module)",
    "(module $m (func $f (param $p i32) (local $l i64) (nop) (drop (local.get $p))))",
    "(module $named (import \"env\" \"f\" (func $imported (param i32) (result i64)))
       (memory $mem 1 2) (table $tab 3 10 funcref) (global $g (mut i32) (i32.const 7))
       (elem $e (i32.const 0) $fac $imported) (data $d (i32.const 8) \"abc\")
       (func $fac (export \"fac\") (param $n i64) (result i64) (local $acc i64)
         (local.set $acc (i64.const 1))
         (block $done (loop $again
           (br_if $done (i64.eqz (local.get $n)))
           (local.set $acc (i64.mul (local.get $acc) (local.get $n)))
           (local.set $n (i64.sub (local.get $n) (i64.const 1)))
           (br $again)))
         (local.get $acc))
       (func $start (drop (call $imported (i32.const 1)))) (start $start))",
    "(module (func (export \"f\") (param i32) (result i32)
       (i32.const 1) (i32.const 2) (i32.const 3)
       (block (param i32 i32 i32) (result i32)
         (br_table 0 0 1 0 (local.get 0) ) ) ) )",
    "(module (func $many (param i32) (result i64 f32 f64 i32)
       (i64.const -1) (f32.const nan) (f64.const inf) (i32.const 5)
       (i64.const 1) (f32.const 2) (f64.const 3) (i32.const 4)
       (br_if 0 (local.get 0)) (drop) (drop) (drop) (drop) ))",
    "(module (table 5 funcref) (table 5 externref) (type $t (func (param i32) (result i32)))
       (elem func $a $a) (elem declare func $a) (elem (table 0) (offset (i32.const 1)) funcref
         (ref.func $a) (ref.null func)) (data \"passive\") (memory 1)
       (func $a (param i32) (result i32)
         (table.init 0 0 (i32.const 0) (i32.const 0) (i32.const 2)) (elem.drop 0)
         (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 3)) (data.drop 0)
         (return_call_indirect 0 (type $t) (local.get 0) (local.get 0))))",
    "(module (memory 1) (func (result v128) (local v128)
       (local.set 0 (i32x4.add (v128.const i32x4 1 2 3 4) (v128.load (i32.const 16))))
       (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get 0) (local.get 0))))",
];

pub(crate) struct Corpus {
    /// The files, sorted by size.
    files: Vec<Vec<u8>>,
    n_small: usize,
}

impl Corpus {
    fn new(mut files: Vec<Vec<u8>>) -> Corpus {
        files.retain(|file| (1..=BYTES_MAX).contains(&file.len()));
        files.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        files.dedup();
        let n_small = files.partition_point(|file| file.len() <= SMALL_BYTES_MAX);
        assert!(n_small > 0, "no small files found");
        Corpus { files, n_small }
    }

    pub(crate) fn pick(&self, rng: &mut Rng) -> &[u8] {
        let n = if rng.one_in(ANY_ONE_IN) { self.files.len() } else { self.n_small };
        &self.files[rng.below(n)]
    }

    /// Binary modules.
    pub(crate) fn bytecode() -> Corpus {
        let mut files = found("programs", "bc");
        let sources = found("filetests/cases", "vasm").into_iter().filter_map(utf8);
        let modules = sources.chain([EVERY_OPCODE.to_owned()]).filter_map(|s| text::parse(&s).ok());
        files.extend(modules.map(|module| encode(&module)));
        files.extend((0..64).map(|seed| encode(&generate::case_of_seed(seed).module)));
        files.push(b"\0svm\x01\0\0\0".to_vec());
        Corpus::new(files)
    }

    /// The same modules as text.
    pub(crate) fn text() -> Corpus {
        let mut files = found("programs", "vasm");
        files.extend(found("filetests/cases", "vasm"));
        files.push(EVERY_OPCODE.as_bytes().to_vec());
        // A part for each of its functions.
        files.extend(EVERY_OPCODE.split("\n\n").map(|part| part.as_bytes().to_vec()));
        Corpus::new(files)
    }

    /// WebAssembly modules, most of them with names and DWARF.
    pub(crate) fn wasm() -> Corpus {
        let mut files = found("programs/wasm", "wasm");
        for wat in WATS {
            for dwarf in [None, Some(GenerateDwarf::Lines), Some(GenerateDwarf::Full)] {
                let mut parser = wat::Parser::new();
                if let Some(dwarf) = dwarf {
                    parser.generate_dwarf(dwarf);
                }
                let binary = parser.parse_str(Some(Path::new("a.wat")), wat);
                files.push(binary.unwrap_or_else(|error| panic!("{error}\n{wat}")));
            }
        }
        Corpus::new(files)
    }
}

fn utf8(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok()
}

/// The contents of the files below a folder of the repository that have an extension.
fn found(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    assert!(!paths.is_empty(), "no .{extension} in {folder}");
    paths.iter().map(|path| std::fs::read(path).expect("it can be read")).collect()
}
