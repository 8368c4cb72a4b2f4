//! Rules, locations and errors of the verifier.

use std::fmt;

use crate::module::ShapeId;
use crate::printable::Printable;

macro_rules! rules {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A rule of the verifier.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $variant,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// The name in error messages and in `docs/bytecode.md`.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)* }
            }

            /// The requirement, as a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(Rule::$variant => $doc,)* }
            }
        }
    };
}

rules! {
    Limit "limit" "No count or size exceeds its limit.";
    TypeIndex "type-index" "A type index names a type of the module.";
    FuncIndex "func-index" "A function index names a function.";
    TableIndex "table-index" "A table index names a table.";
    MemoryIndex "memory-index" "A memory index names a memory.";
    GlobalIndex "global-index" "A global index names a global.";
    ElemIndex "elem-index" "An element segment index names an element segment.";
    DataIndex "data-index" "A data segment index names a data segment.";
    LocalIndex "local-index" "A local index names a local of the function.";
    LabelIndex "label-index" "A label index names a label of the function.";
    LeafType "leaf-type" "The parameters of a leaf import are numbers, and it has at most one result, a number.";
    TableType "table-type" "A table holds references and its minimum does not exceed its maximum.";
    MemoryType "memory-type" "The minimum of a memory does not exceed its maximum.";
    ConstExpr "const-expr" "A constant expression uses only the instructions allowed in it, reads only immutable globals that come before, and leaves exactly one value of the expected type.";
    ExportName "export-name" "No two exports have the same name.";
    StartType "start-type" "The start function has no parameters and no results.";
    SegmentMode "segment-mode" "A data segment is active or passive.";
    ElemType "elem-type" "The elements of a segment have its type. An active segment has the element type of its table.";
    FrameStack "frame-stack" "The frame stack lies inside the minimum size of a memory 0 that the module defines, at multiples of 8.";
    ShapeOrder "shape-order" "A shape's parent comes before it.";
    ShapeUnique "shape-unique" "No shape is in the table twice.";
    Names "names" "Names are sorted by index, belong to existing entities, are not empty, and are unique in their index space.";
    Lines "lines" "Line entries are strictly ascending in code offset and inside the code, and neighbours have different places. An entry without a line has no file and no column.";
    Hints "hints" "Branch hints are strictly ascending in code offset, and at each of these offsets is a `br_if`.";
    Inst "inst" "The code is a sequence of instructions.";
    LabelOrder "label-order" "Labels are strictly ascending in code offset and inside the code.";
    LabelBoundary "label-boundary" "A label marks the start of an instruction.";
    LabelShape "label-shape" "A label's shape is in the shape table.";
    UnreachableCode "unreachable-code" "Code after a terminator starts at a label.";
    CodeEnd "code-end" "The code ends with a terminator.";
    StackUnderflow "stack-underflow" "The operand stack holds the operands of each instruction.";
    OperandType "operand-type" "Operands have the types that the instruction expects.";
    ShapeMismatch "shape-mismatch" "Where control reaches a label, the operand stack has exactly the label's shape.";
    KeptOperands "kept-operands" "The operands that a `br_keep` keeps match the top of the label's shape. The rest of the shape matches the lowest operands on the stack. No operand counts twice.";
    ReturnStack "return-stack" "At a return or tail call, the results or parameters are on top of the operand stack.";
    TailCallType "tail-call-type" "A tail-called function has the same results as the caller.";
    GlobalMutable "global-mutable" "Only mutable globals are written.";
    CallTable "call-table" "An indirect call goes through a table of funcref.";
    LocalAddr "local-addr" "`local.addr` needs a frame stack and a numeric local other than a v128.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The location of a verifier error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The module as a whole.
    Module,
    /// A function type.
    Type(u32),
    /// A function as a whole.
    Func(u32),
    /// An instruction of a function.
    Code {
        /// The function, in the function index space.
        func: u32,
        /// Its name, if it has one.
        name: Option<String>,
        /// The code offset of the instruction.
        offset: u32,
        /// Its source line, if the module knows it.
        line: Option<u32>,
    },
    /// A table.
    Table(u32),
    /// A memory.
    Memory(u32),
    /// A global.
    Global(u32),
    /// An export.
    Export(String),
    /// The start function.
    Start,
    /// An element segment.
    Elem(u32),
    /// A data segment.
    Data(u32),
    /// A shape.
    Shape(ShapeId),
    /// The frame stack.
    FrameStack,
    /// The names.
    Names,
}

impl Place {
    pub(super) fn error(self, rule: Rule, detail: String) -> VerifyError {
        VerifyError(Box::new(Broken { rule, place: self, detail }))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Module => write!(f, "module"),
            Place::Type(i) => write!(f, "type {i}"),
            Place::Func(i) => write!(f, "function {i}"),
            Place::Code { func, name, offset, line } => {
                write!(f, "function {func}")?;
                if let Some(name) = name {
                    write!(f, " `{}`", Printable(name))?;
                }
                write!(f, " @{offset:04x}")?;
                line.map_or(Ok(()), |line| write!(f, ", line {line}"))
            }
            Place::Table(i) => write!(f, "table {i}"),
            Place::Memory(i) => write!(f, "memory {i}"),
            Place::Global(i) => write!(f, "global {i}"),
            Place::Export(name) => write!(f, "export {name:?}"),
            Place::Start => write!(f, "start function"),
            Place::Elem(i) => write!(f, "element segment {i}"),
            Place::Data(i) => write!(f, "data segment {i}"),
            Place::Shape(shape) => write!(f, "shape {}", shape.0),
            Place::FrameStack => write!(f, "frame stack"),
            Place::Names => write!(f, "names"),
        }
    }
}

/// Error for a module that violates a rule.
// Boxed: the verifier returns it from functions that run once for each instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError(Box<Broken>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Broken {
    rule: Rule,
    place: Place,
    detail: String,
}

impl VerifyError {
    /// The violated rule.
    pub fn rule(&self) -> Rule {
        self.0.rule
    }

    /// The location of the violation.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Description of the violation.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { rule, place, detail } = &*self.0;
        write!(f, "{place}: {} (rule {rule}: {})", Printable(detail), rule.doc())
    }
}

impl std::error::Error for VerifyError {}
