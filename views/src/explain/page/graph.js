"use strict";
// The graph: blocks at the places that they have in all stages, with edges of control flow or dominance.

const NODE_WIDTH = 118;
const NODE_HEIGHT = 36;
/** The number of nodes up to which a level is drawn as a whole. Of a larger one, only what is in view is. */
const NODES_MAX = 1200;
/** The scale at which a large drawing is shown first. */
const SCALE_MIN = 0.6;
const svg = (name, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

class GraphView {
  constructor(page) {
    this.page = page;
    this.box = document.getElementById("graph");
    this.kind = document.getElementById("graph-kind");
    this.stageSelect = document.getElementById("graph-stage");
    this.level = 0;
    this.view = null;
    this.marks = new Map();
    page.model.stages.forEach((stage, i) => {
      if (stage.changed) {
        this.stageSelect.append(element("option", { value: i }, stage.name));
      }
    });
    this.kind.addEventListener("change", () => { this.fit(); this.draw(); });
    this.stageSelect.addEventListener("change", () => this.draw());
    document.getElementById("zoom-in").addEventListener("click", () => this.zoom(0.8));
    document.getElementById("zoom-out").addEventListener("click", () => this.zoom(1.25));
    document.getElementById("zoom-fit").addEventListener("click", () => { this.fit(); this.apply(); });
    this.box.addEventListener("wheel", (event) => {
      this.zoom(event.deltaY > 0 ? 1.1 : 1 / 1.1, event);
      event.preventDefault();
    }, { passive: false });
    this.box.addEventListener("pointerdown", (event) => this.drag(event));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.fit();
  }

  get stage() {
    return this.page.model.stages[Number(this.stageSelect.value)];
  }

  /** Shows a stage by its name, if it changed anything. */
  showStage(name) {
    const i = this.page.model.stages.findIndex((stage) => stage.name === name && stage.changed);
    if (i >= 0 && this.stageSelect.value !== String(i)) {
      this.stageSelect.value = i;
      this.draw();
    }
  }

  drawing() {
    return this.page.model.doc.graph.levels[this.level];
  }

  /** Shows all of the drawing, or its start if it would be too small to read. */
  fit() {
    const { width, height, nodes } = this.drawing();
    const [boxWidth, boxHeight] = [this.box.clientWidth || 500, this.box.clientHeight || 400];
    const whole = Math.min(1.4, boxWidth / width, boxHeight / height);
    const scale = Math.max(whole, SCALE_MIN);
    const [w, h] = [boxWidth / scale, boxHeight / scale];
    const x = w >= width ? width / 2 : Math.min(Math.max(nodes[0].x, w / 2), width - w / 2);
    this.view = { x: x - w / 2, y: h >= height ? (height - h) / 2 : 0, w, h };
  }

  zoom(factor, event) {
    const { x, y, w, h } = this.view;
    const box = this.box.getBoundingClientRect();
    const [fx, fy] = event ? [(event.clientX - box.x) / box.width, (event.clientY - box.y) / box.height] : [0.5, 0.5];
    this.view = { x: x + w * fx * (1 - factor), y: y + h * fy * (1 - factor), w: w * factor, h: h * factor };
    this.apply();
  }

  move(dx, dy) {
    this.view.x += dx * this.view.w;
    this.view.y += dy * this.view.h;
    this.apply();
  }

  apply() {
    if (this.svg) {
      const { x, y, w, h } = this.view;
      this.svg.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
      const drawn = this.drawnView;
      const isBeyond = x < drawn.x || y < drawn.y || x + w > drawn.x + drawn.w || y + h > drawn.y + drawn.h;
      if (this.drawing().nodes.length > NODES_MAX && isBeyond && !this.isWaiting) {
        this.isWaiting = true;
        requestAnimationFrame(() => { this.isWaiting = false; this.draw(); });
      }
    }
  }

  /** The nodes to draw: all, or those in view and around it. */
  shownNodes() {
    const { nodes } = this.drawing();
    const { x, y, w, h } = this.view;
    this.drawnView = { x: x - w / 2, y: y - h / 2, w: 2 * w, h: 2 * h };
    if (nodes.length <= NODES_MAX) {
      return nodes;
    }
    const d = this.drawnView;
    const isIn = (node) => node.x >= d.x && node.x <= d.x + d.w && node.y >= d.y && node.y <= d.y + d.h;
    return nodes.filter(isIn).slice(0, NODES_MAX);
  }

  drag(event) {
    const start = { x: event.clientX, y: event.clientY, view: { ...this.view } };
    const scale = this.view.w / this.box.clientWidth;
    const onMove = (move) => {
      this.view.x = start.view.x - (move.clientX - start.x) * scale;
      this.view.y = start.view.y - (move.clientY - start.y) * scale;
      this.apply();
    };
    const onUp = () => {
      window.removeEventListener("pointermove", onMove);
      window.removeEventListener("pointerup", onUp);
    };
    window.addEventListener("pointermove", onMove);
    window.addEventListener("pointerup", onUp);
  }

  onKey(event) {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    if (moves[event.key]) {
      this.move(...moves[event.key]);
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(0.8);
    } else if (event.key === "-") {
      this.zoom(1.25);
    } else if (event.key === "0") {
      this.fit();
      this.apply();
    } else if (event.key === "Enter" && event.target.closest(".node")) {
      event.target.closest(".node").dispatchEvent(new Event("click"));
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Marks blocks and an edge for a film, and brings a block into view: classes by block, and the edge with its class. */
  mark(marks, edge, block) {
    this.marks = marks;
    this.markedEdge = edge;
    const node = this.drawing().nodes.find((other) => other.block === block && other.level === undefined);
    if (node) {
      this.bring(node);
    } else if (block !== undefined) {
      this.openLevelOf(block);
    }
    this.draw();
  }

  /** Moves the view to a node that is not in it. */
  bring(node) {
    const { x, y, w, h } = this.view;
    if (node.x < x + NODE_WIDTH / 2 || node.x > x + w - NODE_WIDTH / 2 || node.y < y + NODE_HEIGHT || node.y > y + h - NODE_HEIGHT) {
      this.view = { x: node.x - w / 2, y: node.y - h / 2, w, h };
    }
  }

  /** Opens the level that has a block, and brings it into view. */
  openLevelOf(block) {
    const { levels } = this.page.model.doc.graph;
    const level = levels.findIndex((other) => other.nodes.some((node) => node.block === block && node.level === undefined));
    if (level >= 0 && level !== this.level) {
      this.level = level;
      this.fit();
      this.draw();
    }
    const node = this.drawing().nodes.find((other) => other.block === block && other.level === undefined);
    if (node) {
      this.bring(node);
      this.apply();
    }
  }

  draw() {
    if (this.kind.value === "uses") {
      this.box.replaceChildren(this.usesPicture());
      return;
    }
    const drawing = this.drawing();
    const stage = this.stage;
    const drawn = svg("g");
    this.shown = this.shownNodes();
    const places = new Map(this.shown.map((node) => [node.block, node]));
    if (this.kind.value === "dom") {
      for (const node of this.shown) {
        const block = stage.byId.get(node.block);
        const above = block && block.idom !== undefined && places.get(block.idom);
        if (above) {
          drawn.append(svg("path", { class: "edge dom", d: this.path([[above.x, above.y + NODE_HEIGHT / 2], [node.x, node.y - NODE_HEIGHT / 2]]),
            "marker-end": "url(#arrow)" }));
        }
      }
    } else {
      const isShown = (edge) => places.has(edge.from) && places.has(edge.to);
      const edges = this.shown.length === drawing.nodes.length ? drawing.edges : drawing.edges.filter(isShown);
      this.hasLoops = drawing.nodes.some((node) => node.level !== undefined);
      edges.forEach((edge) => drawn.append(this.edge(edge, stage)));
    }
    this.nodes = this.shown.map((node) => {
      const made = this.node(node, stage);
      drawn.append(made);
      return made;
    });
    this.refresh();
    this.svg = svg("svg", { role: "group", "aria-label": `${this.kind.selectedOptions[0].text} after ${stage.name}` },
      svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse",
        orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z" }))), drawn);
    this.apply();
    this.box.replaceChildren(this.svg);
    this.crumbs();
  }

  /** Colours the blocks by what they are in the stage, by the selection and by the film. */
  refresh() {
    const { model, selection } = this.page;
    // A film has marks of its own.
    const isOf = (kind) => selection && selection.kind === kind && this.marks.size === 0;
    const frontier = new Set(isOf("block") ? model.frontiers.get(selection.id) : []);
    const row = isOf("slot") ? model.ledgerOfSlot.get(selection.id) : undefined;
    const phis = new Set(row ? row.phi_blocks : []);
    const blocks = this.selectedBlocks();
    this.shown.forEach((node, i) => {
      const classes = this.classesOf(node);
      if (frontier.has(node.block)) {
        classes.push("frontier");
      }
      if (phis.has(node.block)) {
        classes.push("phi");
      }
      if (blocks.has(node.block)) {
        classes.push("on");
      }
      const text = classes.join(" ");
      if (this.nodes[i].getAttribute("class") !== text) {
        this.nodes[i].setAttribute("class", text);
      }
    });
  }

  /** Shows another selection. */
  select() {
    if (this.kind.value === "uses" || !this.svg) {
      this.draw();
    } else {
      this.refresh();
    }
  }

  edge(edge, stage) {
    const from = stage.byId.get(edge.from);
    const isThere = from && this.targets(from).has(edge.to);
    const marked = this.markedEdge && this.markedEdge.from === edge.from && this.markedEdge.to === edge.to;
    const gone = !isThere && !this.hasLoops;
    return svg("path", {
      class: "edge" + (edge.back ? " back" : "") + (gone ? " gone" : "") + (marked ? " " + this.markedEdge.kind : ""),
      d: this.path(edge.points),
      "marker-end": "url(#arrow)",
    });
  }

  /** The targets of a block as a set. */
  targets(block) {
    if (!block.targets) {
      block.targets = new Set(block.succs);
    }
    return block.targets;
  }

  /** A line through points: straight where two are above or beside each other, and else a curve. */
  path(points) {
    let d = `M${points[0][0]} ${points[0][1]}`;
    for (let i = 1; i < points.length; i++) {
      const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
      const middle = (y0 + y1) / 2;
      d += x0 === x1 || y0 === y1 ? `L${x1} ${y1}` : `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
    }
    return d;
  }

  classesOf(node) {
    const { stage } = this;
    const block = stage.byId.get(node.block);
    const classes = ["node"];
    const loop = block && block.loop !== undefined ? stage.loops[block.loop] : null;
    if (!block && node.level === undefined) {
      classes.push("gone");
    }
    if (loop) {
      let depth = 1;
      for (let up = loop; up.parent !== undefined && depth < 4; up = stage.loops[up.parent]) {
        depth += 1;
      }
      classes.push("loop" + depth);
      if (loop.header === node.block) {
        classes.push("header");
      }
      if (loop.irreducible) {
        classes.push("irreducible");
      }
    }
    if (node.level !== undefined) {
      classes.push("nested");
    }
    classes.push(...(this.marks.get(node.block) || []));
    return classes;
  }

  node(node, stage) {
    const { model } = this.page;
    const block = stage.byId.get(node.block);
    const loop = block && block.loop !== undefined ? stage.loops[block.loop] : null;
    const label = model.doc.blocks[node.block].label;
    const title = node.level === undefined ? "b" + node.block : `loop of b${node.block}`;
    const heat = this.page.blockHeat(node.block);
    const below = heat !== undefined ? heat : block && block.params.length && block.idom !== undefined
      ? `${block.params.length} ${block.params.length === 1 ? "phi" : "phis"}` : hex(model.doc.blocks[node.block].offset);
    const [x, y] = [node.x - NODE_WIDTH / 2, node.y - NODE_HEIGHT / 2];
    const made = svg("g", { class: "node", tabindex: "0", role: "button", "data-block": node.block,
      "aria-label": `block ${title}${label ? ", " + label : ""}${loop && loop.irreducible ? ", irreducible loop" : ""}` },
      svg("rect", { x, y, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 6 }),
      svg("text", { x: node.x, y: node.y - 3 }, title + (label && title.length + label.length < 15 ? " " + label : "")),
      svg("text", { x: node.x, y: node.y + 12, class: "sub" }, below));
    made.addEventListener("click", () => {
      if (node.level === undefined) {
        this.page.select({ kind: "block", id: node.block }, null);
      } else {
        this.open(node.level);
      }
    });
    return made;
  }

  /** The blocks that the selection is about. */
  selectedBlocks() {
    const { selection, model } = this.page;
    if (selection && selection.kind === "block") {
      return new Set([selection.id]);
    }
    if (selection && selection.kind === "at") {
      return new Set(model.linesAt(this.stage, selection.id).map(({ block }) => block));
    }
    return new Set();
  }

  open(level) {
    this.level = level;
    this.fit();
    this.draw();
  }

  /** The way from the function to the loop that is drawn. */
  crumbs() {
    const box = document.getElementById("crumbs");
    const { levels } = this.page.model.doc.graph;
    if (levels.length === 1) {
      box.replaceChildren();
      return;
    }
    const way = [];
    for (let level = this.level; level !== 0;) {
      way.unshift(level);
      level = levels.findIndex((other) => other.nodes.some((node) => node.level === level));
    }
    const button = (text, level) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", () => this.open(level));
      return made;
    };
    box.replaceChildren(button("function", 0), ...way.map((level) => button("loop of b" + levels[level].header, level)));
  }

  /** What the selected value is made of, and what uses it, two steps each way. */
  usesPicture() {
    const { selection, model } = this.page;
    if (!selection || selection.kind !== "value") {
      return element("p", { class: "empty" }, "Select a value to see what it is made of and what uses it.");
    }
    const uses = model.usesIn(this.stage);
    const columns = [[], [], [selection.id], [], []];
    const edges = [];
    const shown = new Set([selection.id]);
    const step = (from, to, neighbours, isUse) => {
      for (const value of columns[from]) {
        for (const other of neighbours(value).slice(0, 12)) {
          edges.push(isUse ? [value, other] : [other, value]);
          if (!shown.has(other)) {
            shown.add(other);
            columns[to].push(other);
          }
        }
      }
    };
    const operands = (value) => {
      const info = uses.get(value);
      if (!info || !info.def) {
        return [];
      }
      if (info.def.line) {
        return info.def.line.uses || [];
      }
      return this.phiOperands(info.def.block, value);
    };
    const users = (value) => {
      const info = uses.get(value);
      return info ? [...new Set(info.uses.flatMap((use) => use.line.defs || []))] : [];
    };
    step(2, 1, operands, false);
    step(1, 0, operands, false);
    step(2, 3, users, true);
    step(3, 4, users, true);
    const rows = Math.max(...columns.map((column) => column.length));
    const places = new Map();
    columns.forEach((column, i) => column.forEach((value, j) =>
      places.set(value, { x: 90 + i * 190, y: 30 + (j + (rows - column.length) / 2) * 52 })));
    const drawn = svg("g");
    for (const [from, to] of edges) {
      const [a, b] = [places.get(from), places.get(to)];
      const half = NODE_WIDTH / 2;
      drawn.append(svg("path", { class: "edge", "marker-end": "url(#arrow)",
        d: `M${a.x + half} ${a.y}C${a.x + half + 40} ${a.y} ${b.x - half - 40} ${b.y} ${b.x - half} ${b.y}` }));
    }
    for (const [value, { x, y }] of places) {
      const info = uses.get(value);
      const text = info && info.def && info.def.line ? info.def.line.text.replace(/^.*= /, "").slice(0, 17) : "phi or parameter";
      const made = svg("g", { class: "node" + (value === selection.id ? " on" : ""), tabindex: "0", role: "button",
        "aria-label": `value v${value}` },
        svg("rect", { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 6 }),
        svg("text", { x, y: y - 3 }, "v" + value), svg("text", { x, y: y + 12, class: "sub" }, text));
      made.addEventListener("click", () => this.page.select({ kind: "value", id: value }, null));
      drawn.append(made);
    }
    const picture = svg("svg", { viewBox: `0 0 940 ${Math.max(80, rows * 52 + 20)}`, role: "group",
      "aria-label": `uses of v${selection.id}` },
      svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse",
        orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z" }))), drawn);
    this.svg = null;
    return picture;
  }

  /** The operands of a phi: its place among those of the terminators that lead to its block. */
  phiOperands(id, value) {
    const stage = this.stage;
    const place = stage.byId.get(id).params.indexOf(value);
    const operands = [];
    for (const pred of new Set(stage.byId.get(id).preds)) {
      const lines = stage.byId.get(pred).lines;
      const text = lines[lines.length - 1].text;
      for (const match of text.matchAll(new RegExp(`\\bb${id}\\(([^)]*)\\)`, "g"))) {
        const operand = match[1].split(", ")[place];
        if (operand) {
          operands.push(Number(operand.slice(1)));
        }
      }
    }
    return operands;
  }
}
