// Cells to pick from: pointing names one, a click or the keys and Enter pick it. What is in a cell
// is drawn by its kind: a number, or the small picture of a head. Heads in an order are buttons.
// A kind of cells has place, draw and frame, said(state, cell), and largest: the cells to put in
// words. It may have shows(state, cell): whether what is picked is drawn elsewhere at once.

import {CELLS} from "./cells.js";
import {GRID} from "./grid.js";
import {isRanked, mark, rank} from "./ranked.js";
import {
  counted, css, forPointer, moved, needs, news, plain, publish, putInWords, REST, same, say, sized,
  taken, tellNow, tellPage,
} from "../shared.js";

const KINDS = {cells: CELLS, grid: GRID};
const kindOf = ({data}) => KINDS[data.kind];

function make(state) {
  const {canvas} = state;
  state.picture = document.createElement("canvas");
  state.hovered = state.walked = null;
  state.chosen = () => state.data && choose(state);
  canvas.addEventListener("pointermove", event => {
    const cell = hit(state, event);
    if (same(cell, state.hovered)) return;
    state.hovered = cell;
    paint(state);
  });
  canvas.addEventListener("pointerleave", () => { state.hovered = null; paint(state); });
  canvas.addEventListener("click", event => {
    const cell = hit(state, event);
    if (cell) pick(state, cell);
  });
  canvas.addEventListener("keydown", event => walk(state, event));
  canvas.addEventListener("blur", () => { state.walked = null; tellNow(state); paint(state); });
}

// The server's choice wins as soon as it comes; until then the reader's own click shows. It may come
// before the picture that it is of.
export function choose(state) {
  const choice = news(state);
  if (choice !== undefined) state.selected = choice;
  if (isRanked(state)) return mark(state);
  const there = cell => cell?.every((at, side) => at < state.data.size[side]);
  for (const cell of ["selected", "hovered", "walked"]) if (!there(state[cell])) state[cell] = null;
  if (state.selected) kindOf(state).shows?.(state, state.selected);
  paint(state);
}

function pick(state, cell, rest = 0) {
  if (same(cell, state.selected) && !state.data.again) return;
  state.selected = cell;
  state.root.querySelector(".spoken").textContent = `${spoken(state, cell)}, picked`;
  kindOf(state).shows?.(state, cell);
  paint(state);
  state.agreed = undefined;
  tellPage(state, cell, rest);
}

function walk(state, event) {
  const at = state.walked || state.selected || [0, 0];
  const next = moved(event.key, at, state.data.size);
  if (next && kindOf(state).shows?.(state, next)) {
    state.hovered = state.walked = null;
    pick(state, next, REST);
  } else if (next) {
    state.walked = next;
    state.hovered = null;
    state.root.querySelector(".spoken").textContent = spoken(state, state.walked);
    paint(state);
  } else if (event.key === "Enter" || event.key === " ") pick(state, at);
  else if (event.key === "Escape" && state.walked) { state.walked = null; paint(state); }
  else return;
  taken(event);
}

// ---- where everything stands --------------------------------------------------------
// A place has the left and top of the first cell, its width and height, and the gap to the next.
// After so many rows they go on in another column of rows, so far across.

export const corner = ({left, top, w, h, gap, rows, across}, [row, column]) =>
  [left + Math.floor(row / rows) * across + column * (w + gap), top + row % rows * (h + gap)];

function hit({place: at, canvas, data}, event) {
  if (!at) return null;
  const box = canvas.getBoundingClientRect(), [rows, columns] = data.size;
  const x = event.clientX - box.left - at.left + at.gap / 2;
  const y = event.clientY - box.top - at.top + at.gap / 2;
  const across = Math.floor(x / at.across), down = Math.floor(y / (at.h + at.gap));
  const column = Math.floor((x - across * at.across) / (at.w + at.gap)), row = across * at.rows + down;
  return x >= 0 && y >= 0 && down < at.rows && column < columns && row < rows ? [row, column] : null;
}

// ---- painting -----------------------------------------------------------------------

const spoken = (state, cell) => plain(...kindOf(state).said(state, cell));

function paint(state) {
  const {data, ink, stage, canvas, picture, place} = state;
  if (!place) return;
  const [pen] = sized(canvas, stage.clientWidth, stage.clientHeight), {left, top} = place;
  const pointed = state.hovered || state.walked, shown = pointed || data.shown && state.selected;
  pen.drawImage(picture, 0, 0, stage.clientWidth, stage.clientHeight);
  pen.textBaseline = "middle";
  kindOf(state).frame(state, pen, shown);
  pen.font = `12px ${ink.sans}`;
  pen.fillStyle = css(ink.muted);
  pen.textAlign = "right";
  pen.fillText(data.words.row + " ↓", left - 10, top - 27);
  pen.fillText(data.words.column + " →", left - 10, top - 12);
  const line = state.root.querySelector(".sentence"), {idle, chosen, other} = data.words;
  line.classList.toggle("idle", !pointed);
  const [sentence, parts] = shown ? kindOf(state).said(state, shown) : [forPointer(idle), {}];
  say(line, sentence + (shown ? same(shown, state.selected) ? chosen : other : ""), parts);
}

// ---- running ------------------------------------------------------------------------

function show(state) {
  const {data, stage, canvas, root} = state, {fresh} = state;
  if (fresh) {
    Object.assign(state, {fresh: false, agreed: undefined, hovered: null, walked: null});
    root.classList.add(data.kind);
  }
  if (isRanked(state)) return rank(state, fresh);
  const kind = kindOf(state), {row, column, title} = data.words;
  if (fresh) kind.read?.(state);
  if (!stage.clientWidth) return;
  state.place = kind.place(state);
  const {left, top, w, h, gap, rows, across, low = 0} = state.place;
  needs(state, Math.max(top + rows * (h + gap) + 8 * !low, low));
  root.dataset.cells = [left, top, w + gap, h + gap].join(" ");
  root.dataset.columns = [rows, across].join(" ");
  const size = `${counted(data.size[0], row)} by ${counted(data.size[1], column)}`;
  canvas.setAttribute("aria-label", `${title ? `${title}, ` : ""}${size}. Arrow keys move, Enter ${data.words.picks}.`);
  putInWords(root, canvas, title || size, kind.largest(state).map(cell => spoken(state, cell)));
  kind.draw(state);
  choose(state);
}

publish("picker", ".picker", make, show);
