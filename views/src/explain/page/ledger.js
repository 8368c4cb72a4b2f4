"use strict";
const ROWS_MAX = 200;
const OPTIONS_MAX = 500;
// The promotion ledger, and the reasons for a slot's phis.

class LedgerView {
  constructor(page, panel) {
    Object.assign(this, { page, panel });
  }

  open() {
    const { model } = this.page;
    const head = ["", "name", "type", "outcome", "reads", "writes", "max.", "min.", "semi", "pruned"];
    const classOf = (i) => i > 3 ? "number" : i === 3 ? "outcome" : "";
    const header = element("tr", {}, ...head.map((text, i) =>
      element("th", { scope: "col", class: classOf(i) }, text)));
    const { selection } = this.page;
    const rows = model.doc.ledger.rows.slice(0, ROWS_MAX).map((row) => {
      const { maximal, minimal, semi_pruned, pruned } = row.phis;
      const count = (n) => n === null || n === undefined ? "too many" : n;
      const cells = [row.slot === undefined ? "" : row.key, row.name, row.type, row.reason.replace(/^promoted: /, ""), row.reads_removed,
        row.writes_removed, count(maximal), count(minimal), count(semi_pruned), count(pruned)];
      const isOn = selection && selection.kind === "slot" && selection.id === row.slot;
      const made = element("tr", { class: (row.promoted ? "" : "memory") + (isOn ? " on" : "") });
      cells.forEach((cell, i) => {
        const td = element("td", { class: classOf(i) });
        if (i === 0 && row.slot !== undefined) {
          const button = element("button", { type: "button" }, cell);
          button.addEventListener("click", () => this.page.select({ kind: "slot", id: row.slot }, null));
          td.append(button);
        } else {
          td.append(String(cell));
        }
        made.append(td);
      });
      return made;
    });
    const total = model.doc.ledger.rows.length;
    const promoted = model.doc.ledger.rows.filter((row) => row.promoted).length;
    this.panel.replaceChildren(
      element("p", {}, `${promoted} of ${total} locals and operands are values in SSA form. The last four columns are the ` +
        "phis that each form of SSA needs." + (total > rows.length ? ` The first ${rows.length} are shown.` : "")),
      element("table", {}, element("thead", {}, header), element("tbody", {}, ...rows)));
  }

  close() {}
}

/** The blocks where values of a slot could meet, and why each has a phi or none, by the recorded steps. */
class WhyView {
  constructor(page, panel) {
    Object.assign(this, { page, panel, slot: null });
  }

  chooseSlot(slot) {
    this.slot = slot;
  }

  open() {
    const { model } = this.page;
    const row = this.slot === null ? model.doc.ledger.rows.find((other) => other.phi_blocks.length) || model.doc.ledger.rows[0]
      : model.ledgerOfSlot.get(this.slot);
    if (!row) {
      this.panel.replaceChildren(element("p", {}, "This function has no slots."));
      return;
    }
    this.slot = row.slot === undefined ? null : row.slot;
    const choice = element("select", { "aria-label": "Slot" });
    model.doc.ledger.rows.filter((other) => other.slot !== undefined).slice(0, OPTIONS_MAX).forEach((other) =>
      choice.append(element("option", { value: other.slot }, model.slotTitle(other.slot))));
    choice.value = this.slot;
    choice.addEventListener("change", () => this.page.select({ kind: "slot", id: Number(choice.value) }, null));
    const list = element("tbody", {});
    const stage = model.stages.find((other) => other.name === this.page.promotionInput());
    const reasons = this.reasons(stage);
    const joins = stage.blocks.filter((other) => other.preds.length > 1);
    for (const block of joins.slice(0, ROWS_MAX)) {
      const [has, reason] = reasons(block.id);
      const button = element("button", { type: "button" }, model.blockName(block.id));
      button.addEventListener("click", () => this.page.select({ kind: "block", id: block.id }, null));
      list.append(element("tr", {}, element("td", {}, button), element("td", {}, has ? "phi" : "none"), element("td", {}, reason)));
    }
    this.panel.replaceChildren(element("div", { class: "controls" }, element("label", {}, "Phis of ", choice)),
      element("p", {}, `${row.name || row.key}: ${row.reason}.`),
      list.children.length ? element("table", {}, element("thead", {}, element("tr", {},
        ...["block", "", "reason"].map((text) => element("th", { scope: "col" }, text)))), list)
        : element("p", {}, "No block has several predecessors, so no values meet."),
      joins.length > ROWS_MAX ? element("p", {}, `The first ${ROWS_MAX} of ${joins.length} blocks are shown.`) : "");
  }

  /** The reason for each block: the first film of the slot has it, or the path that the slot took. */
  reasons(stage) {
    const { model } = this.page;
    const row = model.ledgerOfSlot.get(this.slot);
    const film = model.doc.films.placement.find((other) => other.slot === this.slot);
    if (!film) {
      const phis = new Set(row ? row.phi_blocks : []);
      return (block) => phis.has(block) ? [true, "different writes meet here, and it is read"]
        : [false, row && !row.promoted ? "the slot stays in memory" : `no placement was needed: ${row ? row.reason.replace(/^promoted: /, "") : ""}`];
    }
    const title = row.name || row.key;
    const found = new Map();
    let root;
    for (const step of film.steps) {
      if (step.do === "dequeue") {
        root = step.block;
      } else if (step.do === "phi") {
        found.set(step.to, [true, `b${root} has a value of its own, and the edge from b${step.block} brings it here, where another one can arrive; ${title} is live`]);
      } else if (step.do === "no phi" && step.why === "not live" && !found.has(step.to)) {
        found.set(step.to, [false, `the value of b${root} meets another one here, but nothing reads ${title} before it is written: it is not live`]);
      }
    }
    const live = new Set(film.steps.filter((step) => step.do === "live").map((step) => step.block));
    return (block) => found.get(block) || [false, live.has(block)
      ? `one value reaches it on all paths: that of its immediate dominator b${stage.byId.get(block).idom}`
      : `${title} is not live here`];
  }

  close() {}
}
