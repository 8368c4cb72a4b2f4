"use strict";
// The page: columns, graph and panels around one selection.

class Page {
  constructor(doc) {
    this.model = new Model(doc);
    this.selection = null;
    this.columns = this.makeColumns();
    const box = document.getElementById("columns");
    this.columns.forEach((column) => box.append(column.root));
    this.heads();
    this.graph = new GraphView(this);
    this.makeTabs();
    this.listen();
    const open = this.firstColumns();
    this.columns.filter((column) => open.includes(column.name)).forEach((column) => column.toggle(true));
    this.openTab(0);
    this.graph.showStage(this.lastStage());
    this.graph.fit();
    this.graph.draw();
    document.documentElement.dataset.ready = "yes";
    this.prepare();
  }

  /** Makes the tables of open columns before they are needed, one after the other. */
  prepare() {
    const next = this.columns.find((column) => column.isOpen && !column.index);
    if (next) {
      setTimeout(() => { next.linesOf({ kind: "at", id: -1 }); this.prepare(); }, 20);
    }
  }

  heads() {
    const { function: f, program, generator } = this.model.doc;
    const results = f.results.length === 1 ? f.results[0] : `(${f.results.join(", ")})`;
    document.title = `${f.name} of ${program} – vmrun explain`;
    document.getElementById("title").textContent = `${f.name}(${f.params.join(", ")})` + (f.results.length ? " → " + results : "");
    document.getElementById("subtitle").textContent = [`f${f.index} of ${program}`, f.target, generator].join(" · ");
    const effort = document.getElementById("effort");
    effort.hidden = !f.effort;
    effort.textContent = f.effort || "";
  }

  makeColumns() {
    const { model } = this;
    const { doc } = model;
    const specs = [{ name: "bytecode", summary: "with the operand stack before each instruction", wide: true,
      makeLines: () => bytecodeLines(model) }];
    for (const stage of model.stages) {
      const last = specs[specs.length - 1];
      if (!stage.changed && last.same) {
        last.name += ", " + stage.name;
      } else {
        specs.push({ stage, name: stage.name, summary: stage.changed ? stage.summary : "changed nothing", same: !stage.changed,
          makeLines: () => irLines(model, stage) });
      }
    }
    for (const other of doc.comparisons) {
      specs.push({ name: "compare: " + other.name, summary: other.summary, makeLines: () => codeLines(other.lines) });
    }
    specs.push({ name: "clif", summary: "Cranelift's IR", makeLines: () => codeLines(doc.clif) });
    specs.push({ name: "native", summary: "machine code", wide: true, makeLines: () => nativeLines(doc.native) });
    return specs.map((spec) => new Column(this, spec));
  }

  /** The columns that are open at first: bytecode, what promotion gets and leaves, and native code. */
  firstColumns() {
    return ["bytecode", this.promotionInput(), "ssa", ...this.columns.filter((c) => c.name.startsWith("compare")).map((c) => c.name), "native"];
  }

  /** The last stage in slot form that changed anything. */
  promotionInput() {
    const slots = this.model.stages.filter((stage) => stage.form === "slots" && stage.changed);
    return slots[slots.length - 1].name;
  }

  lastStage() {
    const changed = this.model.stages.filter((stage) => stage.changed);
    return changed[changed.length - 1].name;
  }

  makeTabs() {
    this.panel = document.getElementById("panel");
    const box = document.getElementById("tabs");
    this.film = new FilmView(this, this.panel);
    this.why = new WhyView(this, this.panel);
    this.views = [["Why", this.why], ["Film", this.film], ["Ledger", new LedgerView(this, this.panel)],
      ["Selected", new SelectedView(this, this.panel)]];
    this.tabs = this.views.map(([name], i) => {
      const tab = element("button", { type: "button", role: "tab", id: "tab-" + name.toLowerCase(), "aria-controls": "panel" }, name);
      tab.addEventListener("click", () => this.openTab(i));
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowRight: i + 1, ArrowLeft: i - 1 }[event.key];
        if (to !== undefined) {
          const next = (to + this.tabs.length) % this.tabs.length;
          this.openTab(next);
          this.tabs[next].focus();
          event.preventDefault();
        }
      });
      box.append(tab);
      return tab;
    });
    this.panel.addEventListener("keydown", (event) => {
      const view = this.views[this.tab][1];
      if (view.onKey) {
        view.onKey(event);
      }
    });
  }

  openTab(i) {
    if (this.tab !== undefined) {
      this.views[this.tab][1].close();
    }
    this.tab = i;
    this.tabs.forEach((tab, j) => {
      tab.setAttribute("aria-selected", String(i === j));
      tab.tabIndex = i === j ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", this.tabs[i].id);
    this.views[i][1].open();
  }

  /** Highlights something in every column, or nothing. */
  select(selection, from) {
    this.selection = selection;
    // The description of a selection is about the stage that was clicked.
    this.selectedIn = (from && from.stage) || this.graph.stage;
    if (selection && selection.kind === "slot") {
      this.film.chooseSlot(selection.id);
      this.why.chooseSlot(selection.id);
    }
    this.columns.forEach((column) => column.show(column === from));
    if (this.views[this.tab][1] !== this.film || (selection && selection.kind === "slot")) {
      this.views[this.tab][1].open();
    }
    if (selection && selection.kind === "block" && from !== null) {
      this.graph.openLevelOf(selection.id);
    }
    this.graph.select();
    const text = selection ? this.model.describe(selection.kind, selection.id, this.selectedIn) : [];
    document.getElementById("live").textContent = text.join(". ");
  }

  focusBeside(column, step) {
    const open = this.columns.filter((other) => other.isOpen);
    const other = open[(open.indexOf(column) + step + open.length) % open.length];
    other.box.focus();
    other.root.scrollIntoView({ inline: "nearest", block: "nearest" });
  }

  listen() {
    const theme = document.getElementById("theme");
    theme.addEventListener("click", () => {
      const root = document.documentElement;
      const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = isDark ? "light" : "dark";
    });
    const help = document.getElementById("help");
    help.addEventListener("click", () => {
      const text = document.getElementById("help-text");
      text.hidden = !text.hidden;
      help.setAttribute("aria-expanded", String(!text.hidden));
    });
    document.getElementById("find").addEventListener("input", (event) => event.target.setCustomValidity(""));
    document.getElementById("find").addEventListener("change", (event) => this.find(event.target.value.trim()));
    addEventListener("resize", () => { this.columns.forEach((column) => column.draw()); this.graph.apply(); });
    document.getElementById("columns").addEventListener("mouseover", (event) => this.hover(event));
    document.getElementById("columns").addEventListener("mouseleave", () => { document.getElementById("hover").hidden = true; });
  }

  /** Goes to `v12`, `s3`, `b4`, `@001c`, a slot's name, or the next line with a text in the first open column. */
  find(text) {
    if (!text) {
      return;
    }
    const numbered = /^([vb])(\d+)$/.exec(text);
    if (numbered) {
      const kind = { v: "value", b: "block" }[numbered[1]];
      const known = kind === "value" ? this.model.doc.values : this.model.doc.blocks;
      if (known[Number(numbered[2])]) {
        this.select({ kind, id: Number(numbered[2]) }, null);
      } else {
        this.notFound(text);
      }
      return;
    }
    if (/^@[0-9a-f]+$/i.test(text)) {
      const id = parseInt(text.slice(1), 16);
      if (this.model.bytecodeAt.has(id)) {
        this.select({ kind: "at", id }, null);
      } else {
        this.notFound(text);
      }
      return;
    }
    const slot = this.model.doc.slots.findIndex((other) => other.key === text || other.name === text);
    if (slot >= 0) {
      this.select({ kind: "slot", id: slot }, null);
      return;
    }
    for (const column of this.columns.filter((other) => other.isOpen)) {
      const after = column.lines.findIndex((line, i) => i > column.active && line.text.includes(text));
      const found = after >= 0 ? after : column.lines.findIndex((line) => line.text.includes(text));
      if (text && found >= 0) {
        column.active = found;
        column.box.scrollTop = (found - 5) * LINE_HEIGHT;
        column.selectLine();
        return;
      }
    }
    this.notFound(text);
  }

  notFound(text) {
    document.getElementById("live").textContent = `${text} was not found`;
    document.getElementById("find").setCustomValidity(`${text} was not found`);
    document.getElementById("find").reportValidity();
  }

  hover(event) {
    const box = document.getElementById("hover");
    const token = event.target.closest(".t:not(.func)");
    if (!token) {
      box.hidden = true;
      return;
    }
    const name = token.closest(".column").dataset.stage;
    const stage = this.columns.find((column) => column.name === name).stage || this.graph.stage;
    box.textContent = this.model.describe(token.dataset.kind, Number(token.dataset.id), stage).join("\n");
    box.hidden = false;
    const place = token.getBoundingClientRect();
    box.style.left = Math.min(place.left, innerWidth - box.offsetWidth - 8) + "px";
    box.style.top = (place.bottom + box.offsetHeight + 8 < innerHeight ? place.bottom + 4 : place.top - box.offsetHeight - 4) + "px";
  }

  /** The start of the block of the bytecode that a line comes from, and how often it ran, if there is a profile. */
  heat(line) {
    const { profile } = this.model.doc;
    const offset = line.offset !== undefined ? line.offset : line.at !== undefined && !this.model.keys[line.at].includes("<")
      ? this.model.roots[line.at] : undefined;
    if (!profile || offset === undefined) {
      return undefined;
    }
    let [low, high] = [0, profile.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = profile[middle][0] <= offset ? [middle + 1, high] : [low, middle];
    }
    return low > 0 ? profile[low - 1] : undefined;
  }

  /** The count of a block, in the stage whose blocks are those of the bytecode. */
  blockHeat(block) {
    const { profile } = this.model.doc;
    const found = profile && this.graph && this.graph.stage === this.model.stages[0] && profile.find(([offset]) => offset === this.model.doc.blocks[block].offset);
    return found ? found[1].toLocaleString("en") + "×" : undefined;
  }
}

/** What is selected, in words. */
class SelectedView {
  constructor(page, panel) {
    Object.assign(this, { page, panel });
  }

  open() {
    const { selection, model } = this.page;
    if (!selection) {
      this.panel.replaceChildren(element("p", {}, "Click a value, slot, block or instruction."));
      return;
    }
    const [title, ...lines] = model.describe(selection.kind, selection.id, this.page.selectedIn);
    const parts = [element("h2", {}, title), ...lines.map((line) => element("p", {}, line))];
    if (selection.kind === "at") {
      for (const stage of model.stages.filter((other) => other.changed)) {
        const found = model.linesAt(stage, selection.id).map(({ block, line }) => `b${block}: ${line.text}`);
        parts.push(element("p", {}, element("b", {}, stage.name + " "), found.slice(0, 40).join("; ") || "nothing is left of it"));
      }
    }
    this.panel.replaceChildren(...parts);
  }

  close() {}
}

loadDocument().then((doc) => { window.page = new Page(doc); });
