"use strict";
// The columns: one for each stage, with the lines that are in view only.

const LINE_HEIGHT = 20;
/** The characters of a line that are shown: a branch by a table may have thousands of targets. */
const LINE_LENGTH_MAX = 1000;
const TOKEN = /\b(?:v\d+|b\d+|f\d+|(?:s|stack|inlined)\d+(?:_\w+)?)\b/g;

const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") {
      made.className = value;
    } else {
      made.setAttribute(key, value);
    }
  }
  made.append(...children);
  return made;
};

/** A text whose v7, s2, b4 can be clicked; slots have their names beside them. */
function tokens(text, model) {
  const parts = [];
  let last = 0;
  for (const match of text.matchAll(TOKEN)) {
    const kind = { v: "value", b: "block", f: "func" }[match[0].replace(/\d.*/, "")] || "slot";
    const id = kind === "slot" ? model.slotOfKey.get(match[0]) : Number(match[0].slice(1));
    if (id === undefined) {
      continue;
    }
    parts.push(text.slice(last, match.index), element("span", { class: "t " + kind, "data-kind": kind, "data-id": id }, match[0]));
    const name = kind === "slot" ? model.doc.slots[id].name : kind === "func" ? model.functionNames.get(id) : undefined;
    if (name) {
      parts.push(element("span", { class: "name" }, " " + name));
    }
    last = match.index + match[0].length;
  }
  parts.push(text.slice(last));
  return parts;
}

/** A line of a column: its text, what it is about, and how it is drawn. */
function irLines(model, stage) {
  const lines = [];
  for (const block of stage.blocks) {
    const of = (value) => {
      const { name, type } = model.doc.values[value];
      return `v${value}${name ? "." + name : ""}: ${type}`;
    };
    const params = block.params.length ? `(${block.params.map(of).join(", ")})` : "";
    const label = model.doc.blocks[block.id].label;
    lines.push({
      kind: "head", block: block.id, text: `b${block.id}${params}:`,
      note: (label ? label + " " : "") + hex(model.doc.blocks[block.id].offset), defs: block.params,
    });
    for (const line of block.lines) {
      lines.push({ kind: "inst", block: block.id, text: "  " + line.text, at: line.at, defs: line.defs || [],
        uses: line.uses || [], slot: line.slot });
    }
  }
  return lines;
}

function bytecodeLines(model) {
  const sources = new Map(model.doc.source);
  const lines = [];
  let number;
  for (const line of model.doc.bytecode) {
    if (line.label) {
      lines.push({ kind: "head", block: line.block, text: line.label + ":" });
    }
    if (line.line !== undefined && line.line !== number) {
      number = line.line;
      const text = sources.get(number);
      lines.push({ kind: "source", text: text === undefined ? `line ${number}` : `${number}: ${text.trim()}` });
    }
    lines.push({ kind: "inst", block: line.block, offset: line.offset, text: "  " + line.text, stack: line.stack,
      leftOut: line.left_out, plain: true });
  }
  return lines;
}

function codeLines(lines) {
  return lines.map((line) => ({ kind: line.at === undefined ? "head" : "inst", text: line.text, at: line.at, plain: true }));
}

function nativeLines(lines) {
  return lines.map((line) => ({
    kind: "inst", text: line.text, at: line.at, address: line.address, bytes: line.bytes, note: line.note,
    spill: line.spill, plain: true,
  }));
}

/** A column. Its lines are made when it is first opened, and drawn when they come into view. */
class Column {
  constructor(page, spec) {
    Object.assign(this, { page, ...spec, lines: null, active: 0, isOpen: false });
    this.button = element("button", { type: "button", "aria-expanded": "false" },
      element("span", {}, this.name), element("small", {}, this.summary));
    this.button.addEventListener("click", () => this.toggle(!this.isOpen));
    this.spacer = element("div", { class: "spacer" });
    this.box = element("div", { class: "lines", tabindex: "0", role: "listbox", "aria-label": this.name });
    this.box.append(this.spacer);
    this.root = element("div", { class: "column folded" + (this.same ? " same" : "") + (this.wide ? " wide" : ""),
      "data-stage": this.name }, this.button);
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("click", (event) => this.onClick(event));
  }

  toggle(isOpen) {
    this.isOpen = isOpen;
    this.root.classList.toggle("folded", !isOpen);
    this.button.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      this.box.remove();
      return;
    }
    if (!this.lines) {
      this.lines = this.makeLines();
      this.spacer.style.height = this.lines.length * LINE_HEIGHT + "px";
    }
    this.root.append(this.box);
    this.draw();
    this.show(false);
  }

  /** Draws the lines in view. */
  draw() {
    if (!this.isOpen) {
      return;
    }
    const top = this.box.scrollTop;
    const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - 5);
    const last = Math.min(this.lines.length, Math.ceil((top + this.box.clientHeight) / LINE_HEIGHT) + 5);
    this.spacer.replaceChildren(...this.lines.slice(first, last).map((line, i) => this.drawLine(line, first + i)));
    this.box.setAttribute("aria-activedescendant", this.lineId(this.active));
  }

  lineId(index) {
    return `line-${this.name}-${index}`.replace(/[^\w-]/g, "-");
  }

  drawLine(line, index) {
    const { selection, model } = this.page;
    const state = this.stateOf(line);
    const made = element("div", {
      class: `line ${line.kind}${state ? " " + state : ""}${line.spill ? " spill" : ""}${line.leftOut ? " left-out" : ""}` +
        (index === this.active ? " active" : ""),
      role: "option", id: this.lineId(index), "data-index": index, "aria-posinset": index + 1,
      "aria-setsize": this.lines.length, "aria-selected": String(state === "on"),
    });
    made.style.top = index * LINE_HEIGHT + "px";
    if (line.offset !== undefined || line.at !== undefined) {
      made.dataset.offset = line.offset !== undefined ? line.offset : model.roots[line.at];
    }
    if (line.offset !== undefined) {
      made.append(element("span", { class: "at" }, hex(line.offset) + " "));
    } else if (line.address !== undefined) {
      made.append(element("span", { class: "bytes" },
        line.address.toString(16).padStart(5) + "  " + line.bytes.padEnd(20) + " "));
    }
    const text = line.text.length > LINE_LENGTH_MAX ? line.text.slice(0, LINE_LENGTH_MAX) + " …" : line.text;
    made.append(...(line.plain ? [text] : tokens(text, model)));
    if (line.address !== undefined && line.note) {
      made.append(element("span", { class: "note" }, "  " + line.note));
    }
    const gap = " ".repeat(Math.max(2, (line.bytes ? 72 : 34) - made.textContent.length));
    if (line.stack) {
      made.append(element("span", { class: "stack" }, gap + "[",
        ...line.stack.flatMap((operand, i) => [i ? " " : "", ...(/^v\d+$/.test(operand) ? tokens(operand, model) : [operand])]),
        "]"));
    } else if (line.at !== undefined) {
      made.append(element("span", { class: "at" }, gap + model.keys[line.at]));
    }
    if (line.address === undefined && line.note) {
      made.append(element("span", { class: "note" }, gap + line.note));
    }
    if (model.doc.profile) {
      // The count stands at the first line of what comes from a block.
      const [heat, above] = [this.page.heat(line), index > 0 ? this.page.heat(this.lines[index - 1]) : undefined];
      made.prepend(element("span", { class: "heat", title: "executions of the bytecode that this comes from" }, heat && heat !== above ? heat[1].toLocaleString("en") : ""));
    }
    if (selection) {
      for (const token of made.querySelectorAll(".t")) {
        const isIt = token.dataset.kind === selection.kind && Number(token.dataset.id) === selection.id;
        token.classList.toggle("on", isIt);
      }
    }
    return made;
  }

  /** Whether the selection is about a line: `on` if it is what was selected, `near` if it belongs to it. */
  stateOf(line) {
    const { selection, model } = this.page;
    if (!selection) {
      return "";
    }
    if (selection.kind === "at") {
      const offset = line.offset !== undefined ? line.offset : line.at === undefined ? undefined : model.roots[line.at];
      if (offset !== selection.id) {
        return "";
      }
      return selection.key === undefined || line.offset !== undefined || model.keys[line.at] === selection.key ? "on" : "near";
    }
    if (selection.kind === "block") {
      return line.block === selection.id ? (line.kind === "head" ? "on" : "near") : "";
    }
    if (selection.kind === "slot") {
      return line.slot === selection.id ? "near" : "";
    }
    return (line.defs || []).includes(selection.id) ? "on" : (line.uses || []).includes(selection.id) ? "near" : "";
  }

  /** The lines that the selection is about: those that are `on`, and those that are `near`. */
  linesOf(selection) {
    if (!this.index) {
      this.index = new Map();
      const add = (kind, id, i) => {
        const key = kind + id;
        if (!this.index.has(key)) {
          this.index.set(key, []);
        }
        this.index.get(key).push(i);
      };
      const { roots } = this.page.model;
      this.lines.forEach((line, i) => {
        if (line.offset !== undefined || line.at !== undefined) {
          add("at", line.offset !== undefined ? line.offset : roots[line.at], i);
        }
        if (line.block !== undefined) {
          add("block", line.block, i);
        }
        if (line.slot !== undefined) {
          add("slot", line.slot, i);
        }
        (line.defs || []).forEach((value) => add("value", value, i));
        (line.uses || []).forEach((value) => add("value", value, i));
      });
    }
    return this.index.get(selection.kind + selection.id) || [];
  }

  /** Scrolls to the first line that the selection is about, unless one is in view. */
  show(stays) {
    if (!this.isOpen) {
      return;
    }
    if (this.page.selection && !stays) {
      const about = this.linesOf(this.page.selection);
      const on = about.filter((i) => this.stateOf(this.lines[i]) === "on");
      const { scrollTop, clientHeight } = this.box;
      const inView = (i) => i * LINE_HEIGHT >= scrollTop && (i + 1) * LINE_HEIGHT <= scrollTop + clientHeight;
      const wanted = on.length ? on : about;
      if (wanted.length && !wanted.some(inView)) {
        this.box.scrollTop = Math.max(0, (wanted[0] - 6) * LINE_HEIGHT);
      }
    }
    this.draw();
  }

  onClick(event) {
    const row = event.target.closest(".line");
    if (!row) {
      return;
    }
    this.active = Number(row.dataset.index);
    const token = event.target.closest(".t:not(.func)");
    if (token) {
      this.page.select({ kind: token.dataset.kind, id: Number(token.dataset.id) }, this);
    } else {
      this.selectLine();
    }
  }

  /** Selects the instruction of the active line, or its block. */
  selectLine() {
    const line = this.lines[this.active];
    if (line.offset !== undefined) {
      this.page.select({ kind: "at", id: line.offset }, this);
    } else if (line.at !== undefined) {
      const { roots, keys } = this.page.model;
      this.page.select({ kind: "at", id: roots[line.at], key: keys[line.at] }, this);
    } else if (line.block !== undefined) {
      this.page.select({ kind: "block", id: line.block }, this);
    }
  }

  onKey(event) {
    const line = this.lines[this.active];
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
    if (move !== undefined) {
      this.active = Math.max(0, Math.min(this.lines.length - 1, this.active + move));
      const y = this.active * LINE_HEIGHT;
      if (y < this.box.scrollTop || y + LINE_HEIGHT > this.box.scrollTop + this.box.clientHeight) {
        this.box.scrollTop = y - this.box.clientHeight / 2;
      }
      this.draw();
    } else if (event.key === "Enter") {
      this.selectLine();
    } else if (event.key === "Escape") {
      this.page.select(null, this);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      this.page.focusBeside(this, event.key === "ArrowLeft" ? -1 : 1);
    } else if (event.key === "v") {
      const values = [...(line.defs || []), ...(line.uses || [])];
      const { selection } = this.page;
      const next = selection && selection.kind === "value" ? values.indexOf(selection.id) + 1 : 0;
      if (values.length) {
        this.page.select({ kind: "value", id: values[next % values.length] }, this);
      }
    } else if (event.key === "s" && line.slot !== undefined) {
      this.page.select({ kind: "slot", id: line.slot }, this);
    } else if (event.key === "b" && line.block !== undefined) {
      this.page.select({ kind: "block", id: line.block }, this);
    } else {
      return;
    }
    event.preventDefault();
  }
}
