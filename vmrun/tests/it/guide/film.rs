//! Films as frames: the state after a group of steps, and sentences about them.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Document, Step};

/// A picture of the function at one point of a film.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// The text about it.
    pub(super) text: String,
    /// A line below the graph.
    pub(super) foot: String,
    /// The block that is looked at.
    pub(super) current: Option<u32>,
    /// The block at which the walk has started.
    pub(super) root: Option<u32>,
    pub(super) queue: Vec<u32>,
    pub(super) phis: BTreeSet<u32>,
    pub(super) live: BTreeSet<u32>,
    pub(super) writes: BTreeSet<u32>,
    /// Edges that are looked at, and whether the slot gets or has a phi by them.
    pub(super) edges: Vec<(u32, u32, bool)>,
}

fn block(step: &Step) -> u32 {
    step.block.expect("the step has a block")
}

fn target(step: &Step) -> u32 {
    step.to.expect("the step has an edge")
}

/// `b1`, `b1 and b2`, `b1, b2 and b3`.
fn names<'b>(blocks: impl IntoIterator<Item = &'b u32>) -> String {
    let names: Vec<String> = blocks.into_iter().map(|block| format!("b{block}")).collect();
    match &names[..] {
        [] => "no block".into(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}

/// The depth of each block in the dominator tree.
pub(super) fn depths(document: &Document) -> BTreeMap<u32, usize> {
    let idoms = document.idoms();
    let depth =
        |block: u32| std::iter::successors(idoms.get(&block), |idom| idoms.get(idom)).count();
    document.slot_form().iter().map(|block| (block.id, depth(block.id))).collect()
}

/// The placement of the phis of a slot: a frame with all that is known at first, and one for each decision.
pub(super) fn placement(document: &Document, slot: u32) -> Vec<Frame> {
    let steps = document.placement(slot);
    let name = &document.slots[slot as usize].name;
    let depths = depths(document);
    let n_first = steps.iter().position(|step| step.what == "dequeue").expect("a block is walked");
    let (first, rest) = steps.split_at(n_first);
    let mut frame = Frame::default();
    for step in first {
        take(&mut frame, step);
    }
    frame.text = first_text(name, &frame);
    set_foot(&mut frame, &depths);
    let mut frames = vec![frame.clone()];
    let mut rest = rest.iter().peekable();
    while let Some(step) = rest.next() {
        frame.edges.clear();
        take(&mut frame, step);
        frame.text = sentence(name, &frame, step);
        // The consequence is in the same frame.
        let follows = |next: &&Step| match step.what.as_str() {
            "dequeue" => next.what == "visit",
            "phi" => matches!(next.what.as_str(), "enqueue" | "not enqueued"),
            _ => false,
        };
        if let Some(next) = rest.next_if(|next| follows(next)) {
            take(&mut frame, next);
            let text = sentence(name, &frame, next);
            frame.text += &text;
        }
        set_foot(&mut frame, &depths);
        frames.push(frame.clone());
    }
    frames
}

/// Changes the state as a step of placement says.
fn take(frame: &mut Frame, step: &Step) {
    match step.what.as_str() {
        "live" => _ = frame.live.insert(block(step)),
        "write" => _ = frame.writes.insert(block(step)),
        "enqueue" => frame.queue.push(block(step)),
        "dequeue" => {
            frame.root = step.block;
            frame.queue.retain(|queued| Some(*queued) != step.block);
        }
        "visit" => frame.current = step.block,
        "skip" | "not enqueued" => {}
        "phi" => {
            frame.phis.insert(target(step));
            frame.edges.push((block(step), target(step), true));
        }
        "no phi" => frame.edges.push((block(step), target(step), false)),
        other => panic!("unknown step {other:?}"),
    }
}

fn first_text(name: &str, frame: &Frame) -> String {
    let (queued, not_queued): (Vec<u32>, Vec<u32>) =
        frame.writes.iter().partition(|block| frame.queue.contains(block));
    let mut text = format!("{name} is live on entry to {}. ", names(&frame.live));
    if !not_queued.is_empty() {
        text += &format!("{} writes it, but has an empty frontier. ", names(&not_queued));
    }
    let (write, join) = if queued.len() == 1 { ("writes", "joins") } else { ("write", "join") };
    text + &format!("{} {write} it and {join} the queue.", names(&queued))
}

fn sentence(name: &str, frame: &Frame, step: &Step) -> String {
    let root = frame.root.expect("a block has left the queue");
    match (step.what.as_str(), step.why.as_deref()) {
        ("dequeue", _) => format!("b{root} leaves the queue: no block in it is deeper."),
        ("visit", _) if block(step) == root => " The walk starts there.".into(),
        ("visit", _) => format!("The walk comes to b{}, which b{root} dominates.", block(step)),
        ("skip", Some("walked")) => {
            format!("The walk leaves out b{}: it was walked from a deeper block.", block(step))
        }
        ("skip", Some("no frontier")) => format!(
            "The walk leaves out b{}: no edge leads from below it to the level of b{root} or above.",
            block(step)
        ),
        ("phi", _) => format!(
            "The edge to b{} leaves what b{root} strictly dominates, and {name} is live there: a phi.",
            target(step)
        ),
        ("enqueue", _) => format!(" The phi writes {name}, so b{} joins the queue.", block(step)),
        ("not enqueued", Some("again")) => format!(" b{} has been in the queue.", block(step)),
        ("not enqueued", Some("no frontier")) => {
            format!(" The frontier of b{} is empty: it does not join the queue.", block(step))
        }
        ("no phi", Some("deeper")) => format!(
            "No phi by the edge to b{}: it is deeper than b{root}, which strictly dominates it.",
            target(step)
        ),
        ("no phi", Some("not live")) => format!(
            "b{} is in the frontier of b{root}, but {name} is not live there: no phi.",
            target(step)
        ),
        ("no phi", Some("has phi")) => format!("b{} has its phi already.", target(step)),
        other => panic!("unknown step {other:?}"),
    }
}

fn set_foot(frame: &mut Frame, depths: &BTreeMap<u32, usize>) {
    frame.queue.sort_by_key(|block| (std::cmp::Reverse(depths[block]), *block));
    let queue: Vec<String> =
        frame.queue.iter().map(|block| format!("b{block} (level {})", depths[block])).collect();
    let queue = if queue.is_empty() { "empty".into() } else { queue.join(", ") };
    frame.foot = format!("queue: {queue}");
}

/// The renaming of a slot: a frame for each block, in the order in which they are entered.
pub(super) fn renaming(document: &Document, slot: u32) -> Vec<Frame> {
    let name = &document.slots[slot as usize].name;
    let mut frames: Vec<Frame> = vec![];
    let name = name.as_str();
    let phis = document.phi_blocks(name).into_iter().collect();
    let mut frame = Frame { phis, ..Frame::default() };
    let idoms = document.idoms();
    let (mut value, mut restored) = (None, None);
    for step in document.renaming() {
        if step.what == "enter" {
            if frame.current.is_some() {
                frames.push(renamed(&frame, name, value));
            }
            frame.text = format!("Block b{}. ", block(step));
            if let Some(restored) = restored.take() {
                value = restored;
                let (again, idom) = (with_value(name, value), idoms[&block(step)]);
                frame.text += &format!("{again} again, as at the end of b{idom}. ");
            }
            frame.current = step.block;
            frame.edges.clear();
        } else if step.slot == Some(slot) && step.what == "restore" {
            restored = Some(step.value);
        } else if step.slot == Some(slot) && step.what != "settled" {
            rename(document, &mut frame, step, name);
            value = step.value;
        }
    }
    frames.push(renamed(&frame, name, value));
    frames
}

/// The frame at the end of a block, with this value.
fn renamed(frame: &Frame, name: &str, value: Option<u32>) -> Frame {
    let mut frame = frame.clone();
    frame.foot = with_value(name, value);
    // The block, and the value from before, are all that was said.
    if !["The phi", "The read", "The last write"].iter().any(|does| frame.text.contains(does)) {
        frame.text += &format!("{name} is neither read nor written.");
    }
    frame
}

fn with_value(name: &str, value: Option<u32>) -> String {
    value.map_or(format!("{name} has no value"), |value| format!("{name} is v{value}"))
}

/// Takes a step of renaming that concerns the slot.
fn rename(document: &Document, frame: &mut Frame, step: &Step, name: &str) {
    let current = frame.current.expect("a block was entered");
    let value = step.value.expect("the slots of the programs are written first");
    frame.text += &match step.what.as_str() {
        "phi" => format!("The phi: {name} is v{value}. "),
        "read" => {
            format!("The read v{} is replaced by v{value}. ", step.read.expect("it is a read"))
        }
        "write" => format!("The last write: {name} is {}. ", document.definition(value)),
        "operand" => {
            frame.edges.push((current, target(step), true));
            format!("The phi of b{} gets v{value} on the edge. ", target(step))
        }
        other => panic!("unknown step {other:?}"),
    };
}
