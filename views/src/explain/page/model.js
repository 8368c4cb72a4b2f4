"use strict";
// The document, and what the page looks up in it. Blocks and values have the same number in all stages.

/** Unpacks the document. */
async function loadDocument() {
  const text = atob(document.getElementById("document").textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    packed[i] = text.charCodeAt(i);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const hex = (offset) => "@" + offset.toString(16).padStart(4, "0");

/** The document with stages in full and tables to look things up. */
class Model {
  constructor(doc) {
    this.doc = doc;
    this.functionNames = new Map(doc.functions);
    this.stages = this.fillStages(doc.stages);
    this.roots = doc.locations.map((_, at) => this.rootOf(at));
    this.keys = doc.locations.map((_, at) => this.locationText(at));
    this.ledgerOfSlot = new Map(doc.ledger.rows.filter((row) => row.slot !== undefined).map((row) => [row.slot, row]));
    this.frontiers = new Map(doc.ledger.frontiers);
    this.slotOfKey = new Map(doc.slots.map((slot, i) => [slot.key, i]));
    this.bytecodeAt = new Map(doc.bytecode.map((line) => [line.offset, line]));
  }

  /** A stage has its own blocks, or those of the stage before where they are the same. */
  fillStages(stages) {
    let before = null;
    return stages.map((stage) => {
      if (!stage.changed) {
        return { ...before, name: stage.name, summary: stage.summary, changed: false };
      }
      const old = before ? before.byId : new Map();
      const byId = new Map();
      for (const block of stage.blocks) {
        const from = block.same ? old.get(block.id) : block;
        byId.set(block.id, {
          id: block.id, params: from.params || [], lines: from.lines || [], succs: block.succs,
          idom: block.idom, loop: block.loop, preds: [], stays: block.same === true,
        });
      }
      for (const block of byId.values()) {
        for (const succ of block.succs) {
          byId.get(succ).preds.push(block.id);
        }
      }
      before = { ...stage, byId, blocks: [...byId.values()] };
      return before;
    });
  }

  /** The code offset in this function that an instruction comes from, through all inlined calls. */
  rootOf(at) {
    let location = this.doc.locations[at];
    while (location.inlined_at !== undefined) {
      location = this.doc.locations[location.inlined_at];
    }
    return location.offset;
  }

  /** A location as text, which is the same for equal locations: `@0010`, or `f4@0010 < @0016`. */
  locationText(at) {
    const parts = [];
    let location = this.doc.locations[at];
    while (location) {
      const func = location.func === this.doc.function.index ? "" : "f" + location.func;
      parts.push(func + hex(location.offset));
      location = location.inlined_at === undefined ? null : this.doc.locations[location.inlined_at];
    }
    return parts.join(" < ");
  }

  blockName(id) {
    const { label } = this.doc.blocks[id];
    return "b" + id + (label ? " " + label : "");
  }

  /** A slot by its name, if it has one, and its key. */
  slotTitle(slot) {
    const { key, name } = this.doc.slots[slot];
    return name ? `${name} (${key})` : key;
  }

  /** The lines of a stage that come from the instruction at a code offset, with their blocks. */
  linesAt(stage, offset) {
    if (!stage.atOffset) {
      stage.atOffset = new Map();
      for (const block of stage.blocks) {
        for (const line of block.lines) {
          const root = this.roots[line.at];
          if (!stage.atOffset.has(root)) {
            stage.atOffset.set(root, []);
          }
          stage.atOffset.get(root).push({ block: block.id, line });
        }
      }
    }
    return stage.atOffset.get(offset) || [];
  }

  /** Where a stage defines and uses each value. */
  usesIn(stage) {
    if (!stage.uses) {
      const uses = new Map();
      const of = (value) => {
        if (!uses.has(value)) {
          uses.set(value, { def: null, uses: [] });
        }
        return uses.get(value);
      };
      for (const block of stage.blocks) {
        for (const value of block.params) {
          of(value).def = { block: block.id, line: null };
        }
        for (const line of block.lines) {
          (line.defs || []).forEach((value) => { of(value).def = { block: block.id, line }; });
          (line.uses || []).forEach((value) => of(value).uses.push({ block: block.id, line }));
        }
      }
      stage.uses = uses;
    }
    return stage.uses;
  }

  /** The blocks that a value is live into: backwards from its uses to its definition. */
  liveIn(stage, value) {
    const info = this.usesIn(stage).get(value);
    if (!info || !info.def) {
      return [];
    }
    const live = new Set();
    const work = info.uses.map((use) => use.block).filter((block) => block !== info.def.block);
    while (work.length) {
      const block = work.pop();
      if (!live.has(block) && block !== info.def.block) {
        live.add(block);
        work.push(...stage.byId.get(block).preds);
      }
    }
    return [...live].sort((a, b) => a - b);
  }

  /** What a hover or the selection says about a value, slot, block or location. */
  describe(kind, id, stage) {
    const lines = [];
    const list = (ids, prefix) => ids.map((n) => prefix + n).join(" ") || "no block";
    if (kind === "value") {
      const value = this.doc.values[id];
      const info = this.usesIn(stage).get(id);
      lines.push(`v${id}: ${value ? value.type : "?"}` + (value && value.slot !== undefined
        ? `, a value of ${this.slotTitle(value.slot)}` : value && value.name ? `, a value of ${value.name}` : ""));
      if (info && info.def) {
        lines.push(info.def.line ? `defined in b${info.def.block}: ${info.def.line.text}`
          : `${info.def.block === stage.blocks[0].id ? "a parameter of the function" : "a phi of b" + info.def.block}`);
        lines.push(`${info.uses.length} ${info.uses.length === 1 ? "use" : "uses"}` +
          (info.uses.length ? ` in ${list([...new Set(info.uses.map((u) => u.block))].slice(0, 20), "b")}` : ""));
        lines.push("live into " + list(this.liveIn(stage, id).slice(0, 30), "b"));
      } else {
        lines.push(`not in ${stage.name}`);
      }
    } else if (kind === "slot") {
      const slot = this.doc.slots[id];
      const row = this.ledgerOfSlot.get(id);
      lines.push(slot ? `${this.slotTitle(id)}: ${slot.type}, ${slot.origin}` : "no such slot");
      if (row) {
        lines.push(row.reason);
        if (row.promoted) {
          lines.push(`phis in ${list(row.phi_blocks, "b")}`);
        }
      }
    } else if (kind === "block") {
      const block = stage.byId.get(id);
      lines.push(`${this.blockName(id)}, from ${hex(this.doc.blocks[id].offset)}`);
      if (block) {
        lines.push(`from ${list(block.preds, "b")}, to ${list(block.succs, "b")}`);
        lines.push(block.idom === undefined ? "the entry" : `immediate dominator b${block.idom}`);
        lines.push("dominance frontier " + list(this.frontiers.get(id) || [], "b"));
        const loop = block.loop === undefined ? null : stage.loops[block.loop];
        if (loop) {
          lines.push(`in the ${loop.irreducible ? "irreducible " : ""}loop of b${loop.header}`);
        }
      } else {
        lines.push(`not in ${stage.name}`);
      }
    } else {
      const line = this.bytecodeAt.get(id);
      lines.push(line ? `${hex(id)} ${line.text}` : hex(id));
      if (line) {
        lines.push("stack before: " + (line.stack.join(" ") || "empty"));
      }
    }
    return lines;
  }
}
