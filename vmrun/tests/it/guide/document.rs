//! The parts of the document of `vmrun explain --json` that pictures are made of.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::binary::vmrun;

/// The document; `docs/explain.md` describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) slots: Vec<Slot>,
    pub(super) blocks: Vec<Label>,
    pub(super) stages: Vec<Stage>,
    ledger: Ledger,
    pub(super) films: Films,
    pub(super) graph: Graph,
}

#[derive(Debug, Deserialize)]
pub(super) struct Slot {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Label {
    pub(super) label: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Stage {
    name: String,
    blocks: Vec<Block>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block {
    pub(super) id: u32,
    pub(super) idom: Option<u32>,
    pub(super) succs: Vec<u32>,
    #[serde(default)]
    pub(super) lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub(super) text: String,
    #[serde(default)]
    pub(super) defs: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct Ledger {
    rows: Vec<Row>,
}

/// The outcome for a slot.
#[derive(Debug, Deserialize)]
struct Row {
    slot: Option<u32>,
    #[serde(default)]
    phi_blocks: Vec<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Films {
    placement: Vec<Film>,
    renaming: Vec<Film>,
}

#[derive(Debug, Deserialize)]
struct Film {
    slot: Option<u32>,
    way: String,
    steps: Vec<Step>,
}

/// A step of a film of either kind.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    #[serde(rename = "do")]
    pub(super) what: String,
    pub(super) block: Option<u32>,
    pub(super) to: Option<u32>,
    pub(super) why: Option<String>,
    pub(super) slot: Option<u32>,
    pub(super) value: Option<u32>,
    pub(super) read: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Graph {
    levels: Vec<Level>,
}

/// A drawing with all blocks: these programs are small.
#[derive(Debug, Deserialize)]
pub(super) struct Level {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) block: u32,
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) points: Vec<(f64, f64)>,
}

impl Document {
    /// The document of a program of one function, without optional passes: they would change the graph.
    pub(super) fn of(path: &str) -> Document {
        let ran = vmrun(&["explain", path, "--passes", "none", "--json"]);
        serde_json::from_str(&ran.output()).expect("it is the document")
    }

    /// The number of the slot with this name.
    pub(super) fn slot(&self, name: &str) -> u32 {
        let found = self.slots.iter().position(|slot| slot.name == name);
        found.expect("a local has the name") as u32
    }

    /// The blocks of the slot form.
    pub(super) fn slot_form(&self) -> &[Block] {
        let stage = self.stages.iter().find(|stage| stage.name == "slots");
        &stage.expect("it is the first stage").blocks
    }

    /// The immediate dominator of each block but the entry.
    pub(super) fn idoms(&self) -> BTreeMap<u32, u32> {
        self.slot_form().iter().filter_map(|block| Some((block.id, block.idom?))).collect()
    }

    /// The blocks in which promotion places a phi of the slot with this name.
    pub(super) fn phi_blocks(&self, name: &str) -> Vec<u32> {
        let slot = self.slot(name);
        let row = self.ledger.rows.iter().find(|row| row.slot == Some(slot));
        row.expect("each slot has a row").phi_blocks.clone()
    }

    pub(super) fn drawing(&self) -> &Level {
        assert_eq!(self.graph.levels.len(), 1, "the graph is in one piece");
        &self.graph.levels[0]
    }

    /// The steps by which the priority queue places the phis of a slot.
    pub(super) fn placement(&self, slot: u32) -> &[Step] {
        let is_it = |film: &&Film| film.slot == Some(slot) && film.way == "priority queue";
        &self.films.placement.iter().find(is_it).expect("the slot has a film").steps
    }

    /// The steps of renaming with an undo log, of all slots.
    pub(super) fn renaming(&self) -> &[Step] {
        let film = self.films.renaming.iter().find(|film| film.way == "undo log");
        &film.expect("each function has it").steps
    }

    /// The instruction that defines a value, or the value if none does.
    pub(super) fn definition(&self, value: u32) -> String {
        let lines = self.slot_form().iter().flat_map(|block| &block.lines);
        let found = lines.into_iter().find(|line| line.defs.contains(&value));
        found.map_or(format!("v{value}"), |line| line.text.clone())
    }
}
