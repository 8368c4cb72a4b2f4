//! A module as plain data: output of the decoder, assembler, builder and WebAssembly import, and input of the
//! verifier.
//!
//! A [`Module`] guarantees nothing: indices may dangle and code may be ill-typed. Only a
//! [`crate::VerifiedModule`], made by [`crate::verify()`], is valid.

pub use crate::branch_hint::BranchHint;
use crate::inst::{self, CodeReader, Imm};
use crate::op::Op;
pub use crate::source_place::SourcePlace;
use crate::trap::CustomTrap;
use crate::types::{FuncType, ValType};

/// The size of a page of linear memory, in bytes.
pub const PAGE_BYTES: u64 = 65536;

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Function types.
    pub types: Vec<FuncType>,
    /// Imports. Imported entities come first in their index spaces.
    pub imports: Vec<Import>,
    /// The functions defined here.
    pub funcs: Vec<Func>,
    /// The tables defined here.
    pub tables: Vec<TableType>,
    /// The memories defined here.
    pub memories: Vec<MemoryType>,
    /// The globals defined here.
    pub globals: Vec<Global>,
    /// Exports.
    pub exports: Vec<Export>,
    /// The function that runs at instantiation.
    pub start: Option<u32>,
    /// Element segments.
    pub elems: Vec<Elem>,
    /// Data segments.
    pub datas: Vec<Data>,
    /// Operand-stack shapes, by [`ShapeId`] minus one; see [`Shape`].
    pub shapes: Vec<Shape>,
    /// The part of memory 0 that holds the locals whose address escapes.
    pub frame_stack: Option<FrameStack>,
    /// Names for people, without effect on the program.
    pub names: Names,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name of the module that provides it.
    pub module: String,
    /// The name in that module.
    pub name: String,
    /// Its kind.
    pub kind: ImportKind,
}

/// The kind of an import, with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A function, with the index of its type.
    Func(u32, ImportCall),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
}

/// How native code calls an imported function. It says nothing about what the function does, but an import that is
/// a leaf is satisfied by nothing else.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ImportCall {
    /// As all functions are called.
    #[default]
    Ordinary,
    /// As a C function, which neither calls back, traps nor unwinds. Its parameters are numbers, and it has at most one
    /// result, a number.
    Leaf,
    /// Rarely. The block of a call is laid out with code that rarely runs, and the call keeps all registers, so that code
    /// around it is as if it were not there.
    Cold,
}

impl ImportCall {
    /// Those that the text form has a word for.
    pub(crate) const MARKED: [ImportCall; 2] = [ImportCall::Leaf, ImportCall::Cold];

    /// The word before `func` in the text form; empty for ordinary calls.
    pub const fn word(self) -> &'static str {
        match self {
            ImportCall::Ordinary => "",
            ImportCall::Leaf => "leaf",
            ImportCall::Cold => "cold",
        }
    }
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

/// An export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name; unique in the module.
    pub name: String,
    /// Its kind.
    pub kind: EntityKind,
    /// Its index.
    pub index: u32,
}

/// A function defined in the module.
#[derive(Clone, Debug, Default, Eq)]
pub struct Func {
    /// Its type. The parameters are its first locals.
    pub ty: u32,
    /// The other locals, as runs of a count and a type. Locals start as zero or null. No run is empty, and
    /// neighbouring runs have different types.
    pub locals: Vec<(u32, ValType)>,
    /// The label table, in strictly ascending order of code offset.
    pub labels: Vec<Label>,
    /// The instructions, as [`crate::CodeReader`] reads them.
    pub code: Vec<u8>,
    /// Source places by code offset. Instructions from the offset up to that of the next entry belong to the place. Strictly
    /// ascending in the offset; neighbours have different places.
    pub lines: Vec<(u32, SourcePlace)>,
    /// Which way conditional branches mostly go, by their code offsets. Strictly ascending in the offset, at each of which is
    /// a `br_if`.
    pub hints: Vec<(u32, BranchHint)>,
    /// Size in bytes of the function that this one was translated from, or 0 if it was not translated. The
    /// budget of compilation is based on this size, not on the size of the translated code. It is not part of
    /// the function: the binary and text forms omit it, and comparison ignores it.
    pub source_bytes: u32,
}

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        let Func { ty, locals, labels, code, lines, hints, source_bytes: _ } = self;
        (ty, locals, labels, code, lines, hints)
            == (&other.ty, &other.locals, &other.labels, &other.code, &other.lines, &other.hints)
    }
}

/// A branch target.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The code offset of the instruction at the label.
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

/// An operand on top of another shape. The table is hash-consed: a parent comes before its children and no entry
/// occurs twice, so that equal stacks have equal ids.
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
    /// The initial number of elements.
    pub min: u32,
    /// The maximum number of elements, if any.
    pub max: Option<u32>,
}

/// The type of a linear memory with 32-bit addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MemoryType {
    /// The initial number of pages.
    pub min: u32,
    /// The maximum number of pages, if any.
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
    /// Its initial value.
    pub init: ConstExpr,
}

/// A constant expression, which leaves exactly one value. It consists of `i32.const`, `i64.const`,
/// `f32.const`, `f64.const`, `v128.const`, `ref.null`, `ref.func`, `global.get` of an immutable global that
/// comes before, and `add`, `sub` and `mul` of `i32` and `i64`. It has no end marker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstExpr {
    /// The instructions.
    pub code: Vec<u8>,
}

impl ConstExpr {
    /// Appends an instruction.
    pub fn inst(mut self, op: Op, imm: Imm) -> ConstExpr {
        inst::write_inst(&mut self.code, op, imm);
        self
    }

    /// Creates an expression of one `i32.const`.
    pub fn i32(value: i32) -> ConstExpr {
        ConstExpr::default().inst(Op::I32Const, Imm::i32(value))
    }

    /// Creates an expression of one `i64.const`.
    pub fn i64(value: i64) -> ConstExpr {
        ConstExpr::default().inst(Op::I64Const, Imm::i64(value))
    }

    /// Creates an expression of one `f32.const`.
    pub fn f32(value: f32) -> ConstExpr {
        ConstExpr::default().inst(Op::F32Const, Imm::index(value.to_bits()))
    }

    /// Creates an expression of one `f64.const`.
    pub fn f64(value: f64) -> ConstExpr {
        ConstExpr::default().inst(Op::F64Const, Imm(value.to_bits()))
    }

    /// Appends a `v128.const`.
    pub fn v128_const(mut self, value: u128) -> ConstExpr {
        inst::write_vector(&mut self.code, Op::V128Const, value);
        self
    }

    /// Creates an expression of one `v128.const`.
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

/// The target of a segment at instantiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentMode {
    /// None; `memory.init` or `table.init` copy from it.
    Passive,
    /// A table or memory, at an `i32` offset. The segment is then dropped.
    Active {
        /// The table or memory.
        target: u32,
        /// The offset.
        offset: ConstExpr,
    },
    /// None: an element segment that only declares functions for `ref.func`.
    Declared,
}

/// An element segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elem {
    /// Its target at instantiation.
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
    /// Number of elements.
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
    /// Its target at instantiation.
    pub mode: SegmentMode,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The part of memory 0 that holds the locals whose address escapes. It lies inside the minimum size of
/// memory 0, which the module itself must define.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameStack {
    /// The address of its first byte; a multiple of 8.
    pub base: u32,
    /// Its size in bytes; a multiple of 8.
    pub bytes: u32,
}

/// Names for people. In each index space, names are unique and not empty. Entities without a name have no
/// entry. The lists are sorted by index.
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
    /// Messages of traps, by the number of the instruction `trap`. Several may be equal.
    pub traps: Vec<(u32, String)>,
    /// Names of source files, by [`SourcePlace::file`].
    pub files: Vec<(u32, String)>,
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

    /// The message of a trap.
    pub fn trap(&self, number: u32) -> Option<&str> {
        name_at(&self.traps, number)
    }

    /// The name of a source file.
    pub fn file(&self, file: u32) -> Option<&str> {
        name_at(&self.files, file)
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
    /// Number of locals that are not parameters.
    pub fn n_declared_locals(&self) -> u64 {
        self.locals.iter().map(|&(n, _)| u64::from(n)).sum()
    }

    /// The source place of the instruction at a code offset, if it is known.
    pub fn place_at(&self, offset: u32) -> Option<SourcePlace> {
        let after = self.lines.partition_point(|&(start, _)| start <= offset);
        let (_, place) = *self.lines.get(after.checked_sub(1)?)?;
        (place.line != 0).then_some(place)
    }

    /// The source line of the instruction at a code offset, if it is known.
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        Some(self.place_at(offset)?.line)
    }

    /// The hint of the conditional branch at a code offset, if it has one.
    pub fn hint_at(&self, offset: u32) -> Option<BranchHint> {
        let at = self.hints.binary_search_by_key(&offset, |&(at, _)| at);
        at.ok().map(|at| self.hints[at].1)
    }

    /// The number of the instruction `trap` at a code offset; `None` for any other place.
    pub fn trap_number_at(&self, offset: u32) -> Option<u32> {
        if offset as usize >= self.code.len() {
            return None;
        }
        let inst = CodeReader::new(&self.code, offset).read();
        inst.ok().filter(|inst| inst.op == Op::Trap).map(|inst| inst.imm.low())
    }
}

impl Module {
    /// The types of the imported functions.
    pub fn imported_funcs(&self) -> impl Iterator<Item = u32> + '_ {
        self.imports.iter().filter_map(|import| match import.kind {
            ImportKind::Func(ty, _) => Some(ty),
            _ => None,
        })
    }

    /// Number of imported functions, which is the index of the first function defined here.
    pub fn n_imported_funcs(&self) -> u32 {
        self.imported_funcs().count() as u32
    }

    /// Calls `f` with each function that an export, a segment or the start of a global refers to. Constant expressions
    /// must have been verified.
    pub(crate) fn for_each_ref(&self, mut f: impl FnMut(u32)) {
        let exports = self.exports.iter().filter(|export| export.kind == EntityKind::Func);
        exports.for_each(|export| f(export.index));
        let mut exprs: Vec<&ConstExpr> = self.globals.iter().map(|g| &g.init).collect();
        for elem in &self.elems {
            match &elem.items {
                ElemItems::Exprs(items) => exprs.extend(items),
                ElemItems::Funcs(funcs) => funcs.iter().copied().for_each(&mut f),
            }
        }
        for expr in exprs {
            let mut reader = CodeReader::new(&expr.code, 0);
            while !reader.is_at_end() {
                let inst = reader.read().expect("verified code decodes");
                if inst.op == Op::RefFunc {
                    f(inst.imm.low());
                }
            }
        }
    }

    /// The trap with a number, as the module describes it.
    pub fn custom_trap(&self, number: u32) -> CustomTrap {
        CustomTrap { number, message: self.names.trap(number).map(str::to_owned) }
    }

    /// The export with this name.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}
