//! A module as data: what the binary and text forms, the builder and the WebAssembly import all make,
//! and what the verifier takes.
//!
//! A [`Module`] promises nothing: indices may dangle and code may be ill-typed until
//! [`crate::verify()`] has made a [`crate::VerifiedModule`] of it.

use crate::inst::{self, Imm};
use crate::op::Op;
use crate::types::{FuncType, ValType};

/// The size of a page of linear memory, in bytes.
pub const PAGE_BYTES: u64 = 65536;

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Function types.
    pub types: Vec<FuncType>,
    /// What the module takes from outside. Imported entities come first in their index spaces.
    pub imports: Vec<Import>,
    /// The functions defined here.
    pub funcs: Vec<Func>,
    /// The tables defined here.
    pub tables: Vec<TableType>,
    /// The memories defined here.
    pub memories: Vec<MemoryType>,
    /// The globals defined here.
    pub globals: Vec<Global>,
    /// What the module gives to the outside.
    pub exports: Vec<Export>,
    /// The function that runs when an instance is made.
    pub start: Option<u32>,
    /// Element segments.
    pub elems: Vec<Elem>,
    /// Data segments.
    pub datas: Vec<Data>,
    /// Operand-stack shapes, by [`ShapeId`] minus one; see [`Shape`].
    pub shapes: Vec<Shape>,
    /// The part of memory 0 that holds the locals whose address escapes.
    pub frame_stack: Option<FrameStack>,
    /// Names for people; they have no meaning.
    pub names: Names,
}

/// Something a module takes from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name of the module that provides it.
    pub module: String,
    /// Its name there.
    pub name: String,
    /// What it is.
    pub kind: ImportKind,
}

/// What an import is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A function with a type of the module's.
    Func(u32),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
}

/// The index spaces that imports and exports name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntityKind {
    /// Functions.
    Func,
    /// Tables.
    Table,
    /// Memories.
    Memory,
    /// Globals.
    Global,
}

/// Something a module gives to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name; unique in the module.
    pub name: String,
    /// What it is.
    pub kind: EntityKind,
    /// Which one.
    pub index: u32,
}

/// A function defined in the module.
#[derive(Clone, Debug, Default, Eq)]
pub struct Func {
    /// Its type. The parameters are its first locals.
    pub ty: u32,
    /// The other locals, as runs of a count and a type. They start as zero or null. No run is empty,
    /// and neighbouring runs have different types.
    pub locals: Vec<(u32, ValType)>,
    /// The label table, in strictly ascending order of code offset.
    pub labels: Vec<Label>,
    /// The instructions, as [`crate::CodeReader`] reads them.
    pub code: Vec<u8>,
    /// Source lines: from the code offset on, instructions belong to the line. Strictly ascending in
    /// the offset; no two neighbours have the same line. Line 0 is "none".
    pub lines: Vec<(u32, u32)>,
    /// The bytes of the function that it was translated from, or 0 if it is no translation. What compiling
    /// may cost is counted by these, and not by the code that the translation makes of them. They are no
    /// part of the function: the forms of a module do not have them, and equal functions may differ here.
    pub source_bytes: u32,
}

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        let Func { ty, locals, labels, code, lines, source_bytes: _ } = self;
        (ty, locals, labels, code, lines)
            == (&other.ty, &other.locals, &other.labels, &other.code, &other.lines)
    }
}

/// A place that branches can go to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The code offset of the instruction it stands before.
    pub offset: u32,
    /// The operand stack there.
    pub shape: ShapeId,
}

/// An operand-stack shape: 0 is the empty stack, `i + 1` is entry `i` of [`Module::shapes`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ShapeId(pub u32);

impl ShapeId {
    /// The empty operand stack.
    pub const EMPTY: ShapeId = ShapeId(0);
}

/// One operand on top of another shape. The table is hash-consed: a parent comes before its children
/// and no entry is there twice, so that equal stacks have equal ids.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The stack below.
    pub parent: ShapeId,
    /// The type of the topmost operand.
    pub ty: ValType,
}

/// The type of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TableType {
    /// The type of its elements, a reference type.
    pub elem: ValType,
    /// The number of elements it starts with.
    pub min: u32,
    /// The number of elements it never exceeds.
    pub max: Option<u32>,
}

/// The type of a linear memory. It is addressed by 32 bits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryType {
    /// The number of pages it starts with.
    pub min: u32,
    /// The number of pages it never exceeds.
    pub max: Option<u32>,
}

/// The type of a global.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GlobalType {
    /// The type of its value.
    pub ty: ValType,
    /// Whether `global.set` may write it.
    pub mutable: bool,
}

/// A global defined in the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its type.
    pub ty: GlobalType,
    /// Its first value.
    pub init: ConstExpr,
}

/// A constant expression: code of `i32.const`, `i64.const`, `f32.const`, `f64.const`, `v128.const`,
/// `ref.null`, `ref.func`, `global.get` of an immutable global that comes before, and `add`, `sub` and `mul` of
/// `i32` and `i64`, which leaves exactly one value. There is no end marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstExpr {
    /// The instructions.
    pub code: Vec<u8>,
}

impl ConstExpr {
    /// The expression with one more instruction.
    pub fn inst(mut self, op: Op, imm: Imm) -> ConstExpr {
        inst::write_inst(&mut self.code, op, imm);
        self
    }

    /// A constant.
    pub fn i32(value: i32) -> ConstExpr {
        ConstExpr::default().inst(Op::I32Const, Imm::i32(value))
    }

    /// A constant.
    pub fn i64(value: i64) -> ConstExpr {
        ConstExpr::default().inst(Op::I64Const, Imm::i64(value))
    }

    /// A constant.
    pub fn f32(value: f32) -> ConstExpr {
        ConstExpr::default().inst(Op::F32Const, Imm::index(value.to_bits()))
    }

    /// A constant.
    pub fn f64(value: f64) -> ConstExpr {
        ConstExpr::default().inst(Op::F64Const, Imm(value.to_bits()))
    }

    /// The expression with a `v128.const` behind it.
    pub fn v128_const(mut self, value: u128) -> ConstExpr {
        inst::write_vector(&mut self.code, Op::V128Const, value);
        self
    }

    /// A constant.
    pub fn v128(value: u128) -> ConstExpr {
        ConstExpr::default().v128_const(value)
    }

    /// A null reference.
    pub fn ref_null(ty: ValType) -> ConstExpr {
        ConstExpr::default().inst(Op::RefNull, Imm::ref_type(ty))
    }

    /// A reference to a function.
    pub fn ref_func(func: u32) -> ConstExpr {
        ConstExpr::default().inst(Op::RefFunc, Imm::index(func))
    }

    /// The value of a global.
    pub fn global_get(global: u32) -> ConstExpr {
        ConstExpr::default().inst(Op::GlobalGet, Imm::index(global))
    }
}

/// Where a segment goes when an instance is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentMode {
    /// Nowhere; `memory.init` or `table.init` copy from it.
    Passive,
    /// Into a table or memory at an `i32` offset; it is then dropped.
    Active {
        /// The table or memory.
        target: u32,
        /// The offset.
        offset: ConstExpr,
    },
    /// Nowhere: an element segment that only declares functions for `ref.func`.
    Declared,
}

/// An element segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elem {
    /// Where it goes.
    pub mode: SegmentMode,
    /// The type of the elements, a reference type.
    pub ty: ValType,
    /// The elements.
    pub items: ElemItems,
}

/// The elements of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElemItems {
    /// References to functions.
    Funcs(Vec<u32>),
    /// Constant expressions.
    Exprs(Vec<ConstExpr>),
}

impl ElemItems {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            ElemItems::Funcs(funcs) => funcs.len(),
            ElemItems::Exprs(exprs) => exprs.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A data segment. Its mode is not `Declared`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Where it goes.
    pub mode: SegmentMode,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The part of memory 0 that holds the locals whose address escapes. It lies inside the minimum size
/// of memory 0, which the module defines itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameStack {
    /// The address of its first byte; a multiple of 8.
    pub base: u32,
    /// Its size in bytes; a multiple of 8.
    pub bytes: u32,
}

/// Names for people. In each index space a name is not empty and names one entity only; entities
/// without a name have none. The lists are sorted by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The module's own name.
    pub module: Option<String>,
    /// Names of functions, by index in the function index space.
    pub funcs: Vec<(u32, String)>,
    /// Names of tables.
    pub tables: Vec<(u32, String)>,
    /// Names of memories.
    pub memories: Vec<(u32, String)>,
    /// Names of globals.
    pub globals: Vec<(u32, String)>,
    /// Names of element segments.
    pub elems: Vec<(u32, String)>,
    /// Names of data segments.
    pub datas: Vec<(u32, String)>,
    /// Names of locals: function in the function index space, then its named locals.
    pub locals: Vec<(u32, Vec<(u32, String)>)>,
    /// Names of labels: function in the function index space, then its named labels.
    pub labels: Vec<(u32, Vec<(u32, String)>)>,
}

/// The name at `index` in one of the lists of [`Names`].
pub fn name_at(names: &[(u32, String)], index: u32) -> Option<&str> {
    let i = names.binary_search_by_key(&index, |&(i, _)| i).ok()?;
    Some(&names[i].1)
}

impl Names {
    /// The name of a function of the function index space.
    pub fn func(&self, func: u32) -> Option<&str> {
        name_at(&self.funcs, func)
    }

    /// The name of a local of a function.
    pub fn local(&self, func: u32, local: u32) -> Option<&str> {
        name_at(names_of(&self.locals, func), local)
    }

    /// The name of a label of a function.
    pub fn label(&self, func: u32, label: u32) -> Option<&str> {
        name_at(names_of(&self.labels, func), label)
    }
}

/// The names inside `func` in one of the two-level lists of [`Names`].
pub fn names_of(names: &[(u32, Vec<(u32, String)>)], func: u32) -> &[(u32, String)] {
    match names.binary_search_by_key(&func, |&(f, _)| f) {
        Ok(i) => &names[i].1,
        Err(_) => &[],
    }
}

impl Func {
    /// The number of locals that are not parameters.
    pub fn n_declared_locals(&self) -> u64 {
        self.locals.iter().map(|&(n, _)| u64::from(n)).sum()
    }

    /// The source line of the instruction at a code offset, if it is known.
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        let after = self.lines.partition_point(|&(start, _)| start <= offset);
        let (_, line) = *self.lines.get(after.checked_sub(1)?)?;
        (line != 0).then_some(line)
    }
}

impl Module {
    /// The types of the imported functions.
    pub fn imported_funcs(&self) -> impl Iterator<Item = u32> + '_ {
        self.imports.iter().filter_map(|import| match import.kind {
            ImportKind::Func(ty) => Some(ty),
            _ => None,
        })
    }

    /// The number of imported functions: the index of the first function defined here.
    pub fn n_imported_funcs(&self) -> u32 {
        self.imported_funcs().count() as u32
    }

    /// The export with this name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}
