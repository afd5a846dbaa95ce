// One head stage by stage: an equation, its tensors beside each other, one cell held in all of them.

import {fades} from "../fading.js";
import {arrange, legend, overlay, paint} from "./paint.js";
import {
  element, forPointer, largestOf, moved, news, plain, publish, putInWords, same, taken, tellLine,
  tellPage, three,
} from "../shared.js";

function make(state) {
  const {root} = state;
  state.hovered = state.locked = state.dim = state.over = state.of = null;
  state.panels = [];
  state.faded = fades(state.stage);
  state.cell = () => state.hovered || state.locked;
  state.meant = () => state.over || state.of;
  const symbol = event => event.target.closest?.("[data-of]")?.dataset.of ?? null;
  const equation = root.querySelector(".equation");
  equation.addEventListener("pointerover", event => mean(state, symbol(event), true));
  equation.addEventListener("pointerleave", () => mean(state, null));
  equation.addEventListener("click", event => choose(state, symbol(event)));
  root.addEventListener("keydown", event => walk(state, event));
  state.chosen = () => { if (state.data && hear(state)) draw(state); };
}

// A tensor is meant by pointing at its symbol (then the others step back) or at its picture.
function mean(state, of, dims = false) {
  if (!state.data || (of === state.over && dims === state.dims)) return;  // the pointer may be there first
  Object.assign(state, {over: of, dims: Boolean(of) && dims});
  tell(state);
}

function choose(state, of) {
  if (!of) return;
  state.of = state.of === of ? null : of;
  tell(state);
  state.root.querySelector(".spoken").textContent = state.of ? about(state, of) : "";
}

function lock(state, cell) {
  state.locked = cell;
  tellPage(state, cell ? [cell.row, cell.column] : []);
  draw(state);
  state.root.querySelector(".spoken").textContent =
    cell ? plain(...sentence(state, cell)) : "Nothing is pinned";
}

// Hold the cell that the page asks for; true when that is news.
function hear(state) {
  const choice = news(state);
  if (!choice) return false;
  const [row, column] = choice;
  state.locked = inside(state, {row, column}) ? {row, column} : null;
  return true;
}

const inside = ({data}, cell) => Boolean(cell) && cell.row < data.rows.length && cell.column < data.columns.length;

function walk(state, event) {
  if (!event.target.closest?.("canvas")) return;
  const {rows, columns} = state.data, held = state.locked;
  const to = moved(event.key, held && [held.row, held.column], [rows.length, columns.length]);
  state.hovered = state.dim = null;
  if (event.key === "Escape" && held) lock(state, null);
  else if (to) lock(state, {row: to[0], column: to[1]});
  else return;
  taken(event);
}

// ---- the equation and the panels, made anew when what they are about changes ----------

function written(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const span = element("span", `symbol ${node.kind ?? ""}`);
  span.dataset.of = node.of;
  span.append(...node.parts.map(written));
  return span;
}

// What a panel shows of these tokens; a later step shows nothing yet.
function describePanels({root, data, panels}) {
  for (const {kind, size: [, columns], values, canvas, sentence, hidden} of panels) {
    const tokens = kind === "key" ? data.columns : data.rows;
    const largest = hidden ? [] : largestOf(values.length, i => Number.isFinite(values[i]) ? Math.abs(values[i]) : 0);
    putInWords(root, canvas, sentence.replace(/\.$/, ""), largest.map(i => {
      const row = tokens[Math.floor(i / columns)], at = i % columns;
      return kind === "pair" ? `${row} → ${data.columns[at]}: ${three(values[i])}`
        : `${row}, dimension ${at}: ${three(values[i])}`;
    }));
  }
}

function build(state) {
  const {root, data, stage} = state;
  const equation = root.querySelector(".equation");
  equation.setAttribute("aria-label", data.spoken);
  equation.replaceChildren(...data.equation.map(written));
  state.panels = data.panels.map((panel, place) => panelOf(state, panel, place));
  const rows = [0, 1].map(line => {
    const row = element("div", `line line${line}`);
    row.append(...state.panels.filter(panel => panel.line === line).map(panel => panel.box));
    return row;
  });
  stage.replaceChildren(...rows);
  describePanels(state);
}

function panelOf(state, panel, place) {
  const box = element("section", `panel ${panel.kind}`), title = element("button", "title");
  box.dataset.of = panel.of;
  title.type = "button";
  title.append(element("span", "name", panel.symbol), element("span", "shape", panel.shape));
  title.addEventListener("pointerenter", () => mean(state, panel.of, true));
  title.addEventListener("pointerleave", () => mean(state, null));
  title.addEventListener("focus", () => mean(state, panel.of, true));
  title.addEventListener("blur", () => mean(state, null));
  title.addEventListener("click", () => choose(state, panel.of));
  const now = element("div", "now"), frame = element("div", "frame"), legend = element("div", "legend");
  const canvas = document.createElement("canvas");
  canvas.tabIndex = place ? -1 : 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `${panel.sentence} Arrow keys move from cell to cell, Escape unpins.`);
  frame.append(canvas);
  const top = element("div", "top");
  top.append(title, now);
  box.append(top, frame, legend);
  const bytes = state.data.planes[panel.of];
  const values = new Float32Array(bytes.slice().buffer);
  const made = {...panel, box, now, frame, legend, canvas, values, picture: document.createElement("canvas")};
  canvas.addEventListener("pointermove", event => point(state, made, hit(made, event)));
  canvas.addEventListener("pointerleave", () => point(state, made, null));
  canvas.addEventListener("click", event => {
    const found = hit(made, event);
    if (!found || made.hidden) return;
    const cell = cellOf(state, made, found);
    if (inside(state, cell)) lock(state, same(cell, state.locked) ? null : cell);
  });
  return made;
}

// What a place in a panel is: a query and a key, or one row of vectors and a dimension.
function cellOf(state, panel, found) {
  const held = state.locked ?? {row: 0, column: 0};
  if (panel.kind === "pair") return {row: found[0], column: found[1]};
  if (panel.kind === "query") return {row: found[0], column: held.column};
  return {row: held.row, column: found[0]};
}

function point(state, panel, found) {
  const cell = found && !panel.hidden ? cellOf(state, panel, found) : null;
  const dim = cell && panel.kind !== "pair" ? {group: panel.group, at: found[1]} : null;
  const before = state.dim;
  if (same(cell, state.hovered) && before?.at === dim?.at && before?.group === dim?.group) return;
  Object.assign(state, {hovered: cell, dim, over: cell && panel.of, dims: false});
  draw(state);
}

function hit({place, canvas, size}, event) {
  if (!place) return null;
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - place.top) / place.high);
  const column = Math.floor((event.clientX - box.left - place.left) / place.wide);
  return row >= 0 && column >= 0 && row < size[0] && column < size[1] ? [row, column] : null;
}

// ---- words --------------------------------------------------------------------------

const about = ({panels}, of) => panels.find(panel => panel.of === of)?.sentence ?? "";

function sentence({data, panels}, {row, column}) {
  const weights = panels.find(panel => panel.of === "weights");
  const names = {row: data.rows[row], column: data.columns[column]};
  if (weights.hidden) return ["{row} → {column}", names];
  const may = panels.find(panel => panel.of === "logits").values[row * data.columns.length + column];
  if (may === -Infinity) return [data.masked, names];
  return [data.sentence, {...names, value: three(weights.values[row * data.columns.length + column])}];
}

// The number of the held cell in this panel; of vectors that of the pointed dimension.
function nowOf(state, panel) {
  const cell = state.cell(), {data, dim} = state;
  if (!cell || panel.hidden) return "";
  const at = panel.kind === "key" ? cell.column : cell.row, [, columns] = panel.size;
  if (panel.kind === "pair") return three(panel.values[at * columns + cell.column]);
  if (dim && dim.group === panel.group) return `[${dim.at}] ${three(panel.values[at * columns + dim.at])}`;
  return panel.kind === "key" ? data.columns[at] : data.rows[at];
}

function tell(state) {
  const {root, data, panels} = state, cell = state.cell(), meant = state.meant();
  tellLine(root, data, cell && sentence(state, cell), cell && !state.hovered);
  for (const panel of panels) panel.now.textContent = nowOf(state, panel);
  for (const span of root.querySelectorAll(".equation [data-of]")) {
    span.classList.toggle("on", span.dataset.of === meant);
    span.classList.toggle("later", data.later.includes(span.dataset.of));
  }
  const steps = meant && (state.dims || (state.of && !state.over));
  for (const panel of panels) {
    panel.box.classList.toggle("on", panel.of === meant);
    panel.box.classList.toggle("aside", Boolean(steps) && panel.of !== meant);
  }
  root.querySelector(".about").replaceChildren(
    ...(meant ? [about(state, meant)] : [data.about, element("span", "tip", forPointer(data.tip))]));
}

// ---- running ------------------------------------------------------------------------

function draw(state) {
  for (const panel of state.panels) overlay(state, panel);
  tell(state);
}

function show(state) {
  if (state.fresh) {
    build(state);
    state.fresh = false;
    state.hovered = state.dim = state.over = null;
    if (!inside(state, state.locked)) state.locked = null;
  }
  hear(state);
  if (!state.stage.clientWidth) return;
  arrange(state);
  for (const panel of state.panels) paint(state, panel);
  draw(state);
  state.faded();
}

publish("stages", ".stages", make, show);
