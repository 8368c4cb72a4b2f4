// Checks pages of `vmrun explain` in headless Chromium: node check.mjs BROWSER FOLDER
//
// FOLDER has the pages. Each is opened in both themes; its parts are there, a click highlights the same instruction in
// every column, films step, keys work, and the console stays empty. For pages whose names start with `large`, the times of
// the first view and of actions are printed; the aims are 1,000 and 100 ms. Pictures are left in FOLDER.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [browserPath, folder] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.cwd(), "package.json"))("playwright-core");

const ROUNDS = 5;

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
const complaints = [];

async function open(file, colorScheme) {
  const page = await browser.newPage({ viewport: { width: 1720, height: 980 }, colorScheme });
  page.on("console", (message) => complaints.push(`${file}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`${file}: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:")) {
      complaints.push(`${file}: loads ${request.url()}`);
    }
  });
  const start = Date.now();
  await page.goto("file://" + path.resolve(folder, file));
  await page.waitForSelector("html[data-ready=yes]", { timeout: 20000 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, time: Date.now() - start };
}

const median = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];

/** What is there, and how it is named for those who do not see it. */
async function checkParts(page) {
  for (const selector of ["[data-stage=bytecode]", "[data-stage=ssa]", "[data-stage=clif]", "[data-stage=native]",
    "#graph svg .node", "#tab-why", "#tab-film", "#tab-ledger", "#tab-selected"]) {
    assert.ok(await page.locator(selector).count(), `${selector} is missing`);
  }
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, select, input, [role=button]")]
    .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.closest("label"))).length);
  assert.equal(nameless, 0, "every control has a name");
  const { function: f, program } = await page.evaluate(() => window.page.model.doc);
  assert.equal(await page.title(), `${f.name} of ${program} – vmrun explain`);
}

/** A click on an instruction of the bytecode highlights what came of it in all columns. */
async function checkHighlight(page) {
  const offset = await page.evaluate(() => {
    const lines = window.page.columns[0].lines.filter((line) => line.offset !== undefined);
    const last = window.page.model.stages.at(-1);
    return lines.find((line) => window.page.model.linesAt(last, line.offset).length).offset;
  });
  await page.evaluate(() => { window.page.columns.forEach((column) => column.toggle(true)); });
  await page.locator(`[data-stage=bytecode] .line[data-offset="${offset}"]`).click();
  const found = await page.evaluate(() => window.page.columns.map((column) => [column.name,
    [...column.root.querySelectorAll(".line.on")].map((line) => line.dataset.offset),
    (column.lines || []).some((line) => line.offset === window.page.selection.id ||
      (line.at !== undefined && window.page.model.roots[line.at] === window.page.selection.id))]));
  for (const [column, offsets, has] of found) {
    assert.equal(offsets.length > 0, has, `${column} shows the instruction if it has it`);
    assert.ok(offsets.every((other) => other === String(offset)), `${column} highlights ${offsets}`);
  }
  assert.ok(found.filter(([, offsets]) => offsets.length).length >= 3, "several columns have the instruction");
  const value = page.locator("[data-stage=ssa] .t.value").first();
  await value.click();
  const id = await value.getAttribute("data-id");
  assert.ok(await page.locator(`[data-stage=ssa] .t.value.on[data-id="${id}"]`).count());
  assert.equal(await page.locator(".t.on").evaluateAll((all) => new Set(all.map((t) => t.textContent)).size), 1);
  await value.hover();
  assert.match(await page.locator("#hover").textContent(), /^v\d+: /);
}

/** Films go forwards and backwards, and their end is what the ledger says. */
async function checkFilm(page) {
  await page.locator("#tab-film").click();
  if (!await page.locator(".film").count()) {
    return;
  }
  const step = () => page.locator(".film .controls > span").textContent();
  const first = await step();
  await page.locator("#panel").focus();
  await page.keyboard.press("ArrowRight");
  const second = await step();
  assert.notEqual(second, first);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await step(), first);
  await page.keyboard.press("End");
  const { slot, phis } = await page.evaluate(() => ({ slot: window.page.film.film.slot,
    phis: [...document.querySelectorAll(".chip.phi")].map((chip) => chip.textContent) }));
  if (slot !== undefined) {
    const expected = await page.evaluate((s) => window.page.model.ledgerOfSlot.get(s).phi_blocks, slot);
    assert.deepEqual(phis.sort(), expected.map((block) => "b" + block).sort());
  }
  await page.keyboard.press("Home");
  assert.equal(await step(), first);
}

/** The page can be used without a pointer. */
async function checkKeys(page) {
  const box = page.locator("[data-stage=bytecode] .lines");
  await box.focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => window.page.selection !== null));
  assert.notEqual(await page.locator("#live").textContent(), "");
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "bytecode");
  await page.keyboard.press("Escape");
  assert.ok(await page.evaluate(() => window.page.selection === null));
  await page.locator("#find").fill("b0");
  await page.locator("#find").press("Enter");
  assert.deepEqual(await page.evaluate(() => window.page.selection), { kind: "block", id: 0 });
}

/** The median time of each action from its start to the frame after it. */
async function actionTimes(page) {
  return page.evaluate(async (rounds) => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const p = window.page;
    const { bytecode, blocks } = p.model.doc;
    const last = p.model.stages.at(-1).blocks;
    const actions = {
      "select an instruction": (i) => p.select({ kind: "at", id: bytecode[Math.floor(bytecode.length * i / 7)].offset }, null),
      "select a value": (i) => p.select({ kind: "value", id: last[Math.floor(last.length * i / 7)].lines.at(-1).uses?.[0] ?? 0 }, null),
      "select a block": (i) => p.select({ kind: "block", id: Math.floor(blocks.length * i / 7) }, null),
      "scroll": (i) => { p.columns[0].box.scrollTop = i * 20000; },
      "film": () => p.openTab(1),
      "step": (i) => { if (p.film.films.length) { p.film.go(i * 1000); } },
      "ledger": () => p.openTab(2),
      "selected": () => p.openTab(3),
      "stage": (i) => { p.graph.stageSelect.selectedIndex = i % p.graph.stageSelect.length; p.graph.draw(); },
      "zoom": () => p.graph.zoom(0.9),
    };
    const times = {};
    for (const [name, action] of Object.entries(actions)) {
      const all = [];
      for (let i = 1; i <= rounds; i++) {
        await frame();
        const start = performance.now();
        action(i);
        await frame();
        all.push(performance.now() - start);
      }
      times[name] = all.sort((a, b) => a - b)[Math.floor(rounds / 2)];
    }
    return times;
  }, ROUNDS);
}

/** Prints the median times to the first view, and from actions to the frames that show them. */
async function printTimes(file) {
  const firsts = [];
  let times;
  for (let i = 0; i < ROUNDS; i++) {
    const { page, time } = await open(file, "light");
    firsts.push(time);
    if (i === 0) {
      times = await actionTimes(page);
    }
    await page.close();
  }
  const first = median(firsts);
  const rounded = Object.entries(times).map(([name, time]) => `${name} ${Math.round(time)}`);
  console.log(`${file}: first view ${first} ms; ${rounded.join(", ")} ms`);
}

const files = fs.readdirSync(folder).filter((name) => name.endsWith(".html")).sort();
assert.ok(files.length >= 3, "there are pages");
for (const file of files) {
  for (const theme of ["light", "dark"]) {
    const { page } = await open(file, theme);
    await checkParts(page);
    await page.screenshot({ path: path.join(folder, `${path.parse(file).name}.${theme}.png`) });
    await checkHighlight(page);
    await checkFilm(page);
    await checkKeys(page);
    await page.screenshot({ path: path.join(folder, `${path.parse(file).name}.${theme}.used.png`) });
    await page.close();
  }
  if (file.startsWith("large")) {
    await printTimes(file);
  }
}
await browser.close();
assert.deepEqual(complaints, []);
console.log(`${files.length} pages are right`);
