"use strict";
// The films of promotion: phi placement of a slot, and renaming. Each step was recorded while the algorithm ran.

/** A step of a placement in words: a sentence, and its outcome as a class. */
function placementText(step, model, slot, root, way) {
  const x = model.slotTitle(slot);
  const b = step.block === undefined ? "" : "b" + step.block;
  const queue = way === "dominance frontiers" ? "worklist" : "queue";
  switch (step.do) {
    case "live": return [`${x} is live on entry to ${b}: a path leads from there to a read, and meets no write before.`];
    case "write": return [`${b} writes ${x}. Phis may be needed where that meets another value.`];
    case "enqueue": return [`${b} joins the ${queue}: its frontier has to be looked at.`];
    case "not enqueued": return [step.why === "again" ? `${b} does not join the ${queue}: it has been there as a block that writes.`
      : `${b} does not join the ${queue}: no edge leads from the blocks it dominates to its level or above, so its dominance frontier is empty.`];
    case "dequeue": return [way === "dominance frontiers" ? `${b} leaves the worklist.`
      : `${b} leaves the queue, as a deepest block in the dominator tree. The blocks that it dominates are walked.`];
    case "visit": return [b === "b" + root ? `The walk starts at ${b}.` : `The walk comes to ${b}, which b${root} dominates.`];
    case "skip": return [step.why === "walked" ? `The walk leaves out ${b}: it was walked from a deeper block.`
      : `The walk leaves out ${b}: no edge leads from below it to the level of b${root} or above.`];
    case "phi": return [way === "dominance frontiers" ? `b${step.to} is in the dominance frontier of ${b}: a phi of ${x}.`
      : `The edge from ${b} to b${step.to} leaves what b${root} dominates, and ${x} is live there: a phi of ${x} in b${step.to}.`, "yes"];
    case "no phi":
      if (step.why === "deeper") {
        return [`No phi in b${step.to} by the edge from ${b}: it is deeper than b${root}, which strictly dominates it, so nothing else meets there.`, "no"];
      }
      return [step.why === "not live" ? `No phi in b${step.to}: it is in the dominance frontier of b${root}, but ${x} is not live there. Nothing would read the phi.`
        : `No phi in b${step.to}: it has its phi of ${x} already.`, "no"];
    default: return [step.do];
  }
}

/** A step of the scan or of renaming in words. */
function renamingText(step, model) {
  const x = step.slot === undefined ? "" : model.slotTitle(step.slot);
  const value = step.value === undefined ? "no value" : "v" + step.value;
  switch (step.do) {
    case "settled": return [`The scan: the read v${step.read} of ${x} follows another access in its block, so it is ${value}.`];
    case "initial": return [`${x} starts as ${value}.`];
    case "enter": return [`Block b${step.block}, in preorder of the dominator tree.`];
    case "restore": return [`A subtree of the dominator tree is left: ${x} is ${value} again.`];
    case "phi": return [`The phi of ${x} makes it ${value}.`, "yes"];
    case "read": return [`The read v${step.read} of ${x} is ${value}, which reaches the block.`, "yes"];
    case "write": return [`The write makes ${x} ${value}.`];
    case "operand": return [`On the edge to b${step.to}, the phi of ${x} gets ${value}.`, "yes"];
    default: return [step.do];
  }
}

class FilmView {
  constructor(page, panel) {
    Object.assign(this, { page, panel, position: 0, timer: null });
    const { placement, renaming } = page.model.doc.films;
    this.films = [
      ...placement.map((film) => ({ ...film, title: `phis of ${page.model.slotTitle(film.slot)}` })),
      ...renaming.map((film) => ({ ...film, title: "renaming" })),
    ];
    this.title = this.films.length ? this.films[0].title : "";
    this.way = this.films.length ? this.films[0].way : "";
  }

  get film() {
    return this.films.find((film) => film.title === this.title && film.way === this.way) ||
      this.films.find((film) => film.title === this.title);
  }

  /** Chooses the film of a slot, if there is one. */
  chooseSlot(slot) {
    const film = this.films.find((other) => other.slot === slot);
    if (film && film.title !== this.title) {
      this.title = film.title;
      this.position = 0;
    }
  }

  open() {
    const { panel } = this;
    if (!this.films.length) {
      panel.replaceChildren(element("p", {}, this.emptyText()));
      return;
    }
    const titles = element("select", { "aria-label": "Film" });
    for (const title of new Set(this.films.map((film) => film.title))) {
      titles.append(element("option", {}, title));
    }
    titles.value = this.title;
    const ways = element("select", { "aria-label": "Way" });
    for (const film of this.films.filter((other) => other.title === this.title)) {
      ways.append(element("option", {}, film.way));
    }
    ways.value = this.film.way;
    titles.addEventListener("change", () => { this.title = titles.value; this.position = 0; this.open(); });
    ways.addEventListener("change", () => { this.way = ways.value; this.position = 0; this.open(); });
    const button = (text, label, action) => {
      const made = element("button", { type: "button", "aria-label": label }, text);
      made.addEventListener("click", action);
      return made;
    };
    this.slider = element("input", { type: "range", min: 0, max: this.film.steps.length - 1, "aria-label": "Step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.play = button("Play", "Play", () => this.toggle());
    this.count = element("span", {});
    this.text = element("p", { class: "step", role: "status" });
    this.state = element("div", {});
    const controls = element("div", { class: "controls", role: "group", "aria-label": "Film" }, titles, ways,
      button("|◀", "First step", () => this.go(0)), button("◀ Back", "Step back", () => this.go(this.position - 1)),
      this.play, button("Next ▶", "Step forward", () => this.go(this.position + 1)),
      button("▶|", "Last step", () => this.go(Infinity)), this.slider, this.count);
    const film = element("div", { class: "film" }, controls, this.text, this.state);
    const leftOut = this.leftOutText();
    if (leftOut) {
      film.append(element("p", {}, leftOut));
    }
    panel.replaceChildren(film);
    this.page.graph.showStage(this.page.promotionInput());
    this.go(this.position);
  }

  emptyText() {
    return this.leftOutText() || (this.page.model.doc.slots.length
      ? "No slot of this function needs phi placement, and no value crosses a block." : "This function has no slots.");
  }

  /** The films that would have had too many steps. */
  leftOutText() {
    const { model } = this.page;
    const { left_out } = model.doc.films;
    const title = ({ slot, way }) => (slot === undefined ? "renaming" : model.slotTitle(slot)) + " by " + way;
    const more = left_out.length > 10 ? ` and ${left_out.length - 10} others` : "";
    return left_out.length ? `Too many steps for the films of ${left_out.slice(0, 10).map(title).join(", ")}${more}.` : "";
  }

  toggle() {
    if (this.timer) {
      this.stop();
    } else {
      this.play.textContent = "Pause";
      this.timer = setInterval(() => {
        if (this.position + 1 >= this.film.steps.length) {
          this.stop();
        } else {
          this.go(this.position + 1);
        }
      }, 700);
    }
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    if (this.play) {
      this.play.textContent = "Play";
    }
  }

  onKey(event) {
    const to = { ArrowRight: this.position + 1, ArrowLeft: this.position - 1, Home: 0, End: Infinity }[event.key];
    if (event.target.matches("select, input")) {
      return;
    }
    if (to !== undefined) {
      this.go(to);
    } else if (event.key === " " && !event.target.matches("button")) {
      this.toggle();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Shows a step: what it does, and the state that all steps up to it have led to. */
  go(position) {
    const { film } = this;
    this.position = Math.max(0, Math.min(film.steps.length - 1, position));
    this.slider.value = this.position;
    this.count.textContent = `${this.position + 1} of ${film.steps.length}`;
    const isPlacement = film.slot !== undefined;
    isPlacement ? this.showPlacement(film) : this.showRenaming(film);
  }

  say([text, outcome]) {
    this.text.replaceChildren(element("span", outcome ? { class: outcome } : {},
      outcome === "yes" ? "✓ " : outcome === "no" ? "✗ " : ""), text);
  }

  showPlacement(film) {
    const queue = [];
    const [live, phis, walked] = [new Set(), new Set(), new Set()];
    let root;
    for (const step of film.steps.slice(0, this.position + 1)) {
      if (step.do === "live") {
        live.add(step.block);
      } else if (step.do === "enqueue") {
        queue.push(step.block);
      } else if (step.do === "dequeue") {
        root = step.block;
        queue.splice(queue.indexOf(root), 1);
      } else if (step.do === "visit") {
        walked.add(step.block);
      } else if (step.do === "phi") {
        phis.add(step.to);
      }
    }
    const step = film.steps[this.position];
    this.say(placementText(step, this.page.model, film.slot, root, film.way));
    const levels = this.levels();
    queue.sort((a, b) => levels.get(b) - levels.get(a) || b - a);
    this.state.replaceChildren(
      this.chips("queue", queue.map((block) => `b${block} level ${levels.get(block)}`), "queued"),
      this.chips("from", root === undefined ? [] : [`b${root} level ${levels.get(root)}`], ""),
      this.chips("phis", [...phis].map((block) => "b" + block), "phi"),
      this.chips("live in", [...live].sort((a, b) => a - b).map((block) => "b" + block), "live"));
    const marks = new Map();
    const mark = (block, kind) => marks.set(block, [...(marks.get(block) || []), kind]);
    live.forEach((block) => mark(block, "live"));
    walked.forEach((block) => mark(block, "walked"));
    queue.forEach((block) => mark(block, "queued"));
    phis.forEach((block) => mark(block, "phi"));
    mark(step.block, "now");
    const kind = step.do === "phi" ? "yes" : "no";
    this.page.graph.mark(marks, step.to === undefined ? null : { from: step.block, to: step.to, kind }, step.block);
  }

  /** The level of each block in the dominator tree. */
  levels() {
    if (!this.levelOf) {
      const stage = this.page.model.stages.find((other) => other.name === this.page.promotionInput());
      this.levelOf = new Map();
      // Blocks come in preorder of the tree.
      for (const block of stage.blocks) {
        this.levelOf.set(block.id, block.idom === undefined ? 0 : this.levelOf.get(block.idom) + 1);
      }
    }
    return this.levelOf;
  }

  showRenaming(film) {
    const values = new Map();
    let block;
    for (const step of film.steps.slice(0, this.position + 1)) {
      if (step.do === "enter") {
        ({ block } = step);
      } else if (["initial", "restore", "phi", "write"].includes(step.do)) {
        values.set(step.slot, step.value);
      }
    }
    const step = film.steps[this.position];
    this.say(renamingText(step, this.page.model));
    const chips = [...values].filter(([, value]) => value !== undefined).sort(([a], [b]) => a - b)
      .map(([slot, value]) => `${this.page.model.slotTitle(slot)} = v${value}`);
    this.state.replaceChildren(this.chips("block", block === undefined ? [] : ["b" + block], ""),
      this.chips("values", chips, "phi"));
    const marks = new Map(block === undefined ? [] : [[block, ["now"]]]);
    this.page.graph.mark(marks, step.to === undefined ? null : { from: block, to: step.to, kind: "yes" }, block);
  }

  chips(title, texts, kind) {
    return element("div", { class: "chips" }, element("b", {}, title),
      ...(texts.length ? texts.map((text) => element("span", { class: "chip " + kind }, text)) : ["none"]));
  }

  close() {
    this.stop();
    this.page.graph.mark(new Map(), null);
  }
}
