//! The document that `vmrun explain` makes: the schema of `--json`, which the page reads.
//!
//! Numbers of blocks and values are the same in all columns: a value keeps its number from the slot form on, and a
//! block that a pass leaves or changes keeps its own (`blocks.rs`). So they differ from those of `vmrun dump`,
//! which numbers each stage anew. docs/explain.md describes the fields.

use serde::Serialize;

/// The version of the schema. It grows when a field changes its meaning or goes; new fields may come at any time.
pub(crate) const SCHEMA: u32 = 1;

/// A function in all stages.
#[derive(Debug, Serialize)]
pub struct Document {
    pub(crate) schema: u32,
    pub(crate) generator: String,
    pub(crate) program: String,
    pub(crate) function: FunctionHead,
    /// Names of functions that calls and inlined code refer to, by number.
    pub(crate) functions: Vec<(u32, String)>,
    pub(crate) slots: Vec<Slot>,
    /// The lines of the source text that the function's code comes from.
    pub(crate) source: Vec<(u32, String)>,
    pub(crate) bytecode: Vec<BytecodeLine>,
    pub(crate) locations: Vec<Location>,
    pub(crate) values: Vec<Value>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) stages: Vec<Stage>,
    /// Other constructions of SSA form, to stand beside it.
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) clif: Vec<CodeLine>,
    pub(crate) native: Vec<NativeLine>,
    pub(crate) ledger: Ledger,
    pub(crate) films: Films,
    pub(crate) graph: Graph,
    /// The number of executions of each block of the bytecode, by the code offset of its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) profile: Vec<(u32, u64)>,
    /// The places at which the function's own code leaves for the interpreter, if the profile gives it any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exits: Vec<Exit>,
}

impl Document {
    /// The document as JSON, as docs/explain.md describes it.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("the document has string keys only")
    }
}

/// The function.
#[derive(Debug, Serialize)]
pub(crate) struct FunctionHead {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
    pub(crate) results: Vec<String>,
    /// The target of the native code.
    pub(crate) target: String,
    /// A remark if the function was compiled with less effort than usual.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) effort: String,
}

/// A slot of the slot form that promotion gets.
#[derive(Debug, Serialize)]
pub(crate) struct Slot {
    /// The text that stands for it: `s2` for local 2, `stack0`, `inlined5`.
    pub(crate) key: String,
    /// The name of its local; empty if it has none.
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) origin: String,
}

/// An instruction of the bytecode.
#[derive(Debug, Serialize)]
pub(crate) struct BytecodeLine {
    pub(crate) offset: u32,
    pub(crate) text: String,
    /// The operand stack before the instruction, the topmost operand last.
    pub(crate) stack: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// The label that starts here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// The block that the instruction belongs to, if it was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<u32>,
    /// Whether the form has no code of it, since an exit stands in the place of its block or of those before.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) left_out: bool,
}

/// An exit: a place at which code leaves for the interpreter.
#[derive(Debug, Serialize)]
pub(crate) struct Exit {
    /// The code offset of the block, or of the indirect call.
    pub(crate) offset: u32,
    /// `block` if it stands in the place of a block, `call` if it follows a call of other functions than these.
    pub(crate) kind: &'static str,
    /// The functions that the call is compared with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) callees: Vec<u32>,
}

/// The origin of an instruction.
#[derive(Debug, Serialize)]
pub(crate) struct Location {
    pub(crate) func: u32,
    pub(crate) offset: u32,
    /// The location of the call that the function was inlined at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inlined_at: Option<u32>,
}

/// A value.
#[derive(Debug, Serialize)]
pub(crate) struct Value {
    #[serde(rename = "type")]
    pub(crate) ty: String,
    /// The name of the local that it is a value of; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// The slot that a phi is of, or that a parameter stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u32>,
}

/// A block of any stage.
#[derive(Debug, Serialize)]
pub(crate) struct Block {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// The code offset of the bytecode that it was made from.
    pub(crate) offset: u32,
}

/// A row of the table of stages.
#[derive(Debug, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) summary: String,
    /// `slots` or `ssa`.
    pub(crate) form: String,
    /// Whether it changed anything; if not, it has no blocks.
    pub(crate) changed: bool,
    pub(crate) blocks: Vec<StageBlock>,
    pub(crate) loops: Vec<Loop>,
}

/// A block after a stage.
#[derive(Debug, Serialize)]
pub(crate) struct StageBlock {
    pub(crate) id: u32,
    /// Whether parameters and lines are those of the stage before, and left out here.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) same: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) params: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<Line>,
    /// The targets of the terminator, in their order.
    pub(crate) succs: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idom: Option<u32>,
    /// The innermost loop, by its place in the list.
    #[serde(skip_serializing_if = "Option::is_none", rename = "loop")]
    pub(crate) innermost: Option<u32>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// An instruction of the IR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Its location, by number.
    pub(crate) at: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) defs: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) uses: Vec<u32>,
    /// The slot that it reads or writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u32>,
}

/// A loop of a stage.
#[derive(Debug, Serialize)]
pub(crate) struct Loop {
    pub(crate) header: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<u32>,
    pub(crate) irreducible: bool,
}

/// Another construction of the SSA form.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) phis: usize,
    pub(crate) lines: Vec<CodeLine>,
}

/// A line of CLIF, or of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct CodeLine {
    pub(crate) text: String,
    /// The location, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u32>,
}

/// An instruction of the native code.
#[derive(Debug, Serialize)]
pub(crate) struct NativeLine {
    pub(crate) address: u32,
    /// In hexadecimal.
    pub(crate) bytes: String,
    pub(crate) text: String,
    /// The location, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u32>,
    /// The name that a relocation of the instruction stands for, or the trap that it raises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Whether it reads or writes the frame outside of slots: a spilled value, or an argument or result of a call.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) spill: bool,
}

/// The outcome of promotion for each local and operand.
#[derive(Debug, Serialize)]
pub(crate) struct Ledger {
    pub(crate) rows: Vec<LedgerRow>,
    /// The blocks in the dominance frontier of each block, in the graph that promotion gets; empty if there are too many.
    pub(crate) frontiers: Vec<(u32, Vec<u32>)>,
}

/// The outcome of promotion for a local or an operand.
#[derive(Debug, Serialize)]
pub(crate) struct LedgerRow {
    /// Its slot; a local whose address escapes has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u32>,
    /// The text that stands for it.
    pub(crate) key: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) origin: String,
    pub(crate) promoted: bool,
    /// The path it took, or the reason why it was not promoted.
    pub(crate) reason: String,
    pub(crate) reads_removed: usize,
    pub(crate) writes_removed: usize,
    /// The number of phis in each form of SSA.
    pub(crate) phis: PhiCounts,
    /// The blocks where it has a phi in pruned form.
    pub(crate) phi_blocks: Vec<u32>,
}

/// The number of phis in each form of SSA; none where the form would be too large.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub(crate) struct PhiCounts {
    pub(crate) maximal: Option<usize>,
    pub(crate) minimal: Option<usize>,
    pub(crate) semi_pruned: Option<usize>,
    pub(crate) pruned: Option<usize>,
}

/// The films of promotion.
#[derive(Debug, Serialize)]
pub(crate) struct Films {
    pub(crate) placement: Vec<PlacementFilm>,
    pub(crate) renaming: Vec<RenamingFilm>,
    /// The films that are left out, since all steps would be more than the limit.
    pub(crate) left_out: Vec<LeftOut>,
}

/// A film that is left out: of the placement of a slot's phis, or of renaming.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u32>,
    pub(crate) way: String,
}

/// The placement of a slot's phis by one way of placing.
#[derive(Debug, Serialize)]
pub(crate) struct PlacementFilm {
    pub(crate) slot: u32,
    pub(crate) way: String,
    pub(crate) steps: Vec<FilmStep>,
}

/// The values of all slots by one way of renaming.
#[derive(Debug, Serialize)]
pub(crate) struct RenamingFilm {
    pub(crate) way: String,
    pub(crate) steps: Vec<FilmStep>,
}

/// A step of a film. The fields that a step has depend on what it does; docs/explain.md lists them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FilmStep {
    #[serde(rename = "do")]
    pub(crate) what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<u32>,
}

/// The drawing of the blocks of all stages.
#[derive(Debug, Serialize)]
pub(crate) struct Graph {
    /// All blocks at once, or for a large function the outermost level first and then one level for each loop.
    pub(crate) levels: Vec<Level>,
}

/// A drawing.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Level {
    /// The block that heads the loop, for the level of a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<u32>,
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// A block, or a loop that is opened by a click, in a drawing. Positions are those of the centre.
#[derive(Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) block: u32,
    /// The level of the loop that the node stands for, by its place in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<u32>,
    pub(crate) x: i32,
    pub(crate) y: i32,
}

/// An edge in a drawing, as a line through points.
#[derive(Debug, Serialize)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) points: Vec<(i32, i32)>,
    /// Whether it leads backwards.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) back: bool,
}
