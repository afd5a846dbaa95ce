// The matrix view: a picture of the cells, drawn once, and over it what is pointed at.

import {legend, noLevels, overlay, paint, topsOf} from "./paint.js";
import {
  ABSENT, bit, heightOf, INFINITE, joined, largestOf, MINUS_INFINITE, moved, needs, news, number,
  plain, publish, putInWords, redraw, same, singlesOf, taken, tellLine, tellPage, three, valueOf,
} from "../shared.js";

// Presented, a cell may be so many times as wide as it is high.
export const LABEL = 13, SMALL = 12, LARGEST_CELL = 96, WIDER = 1.6;

function make(state) {
  const {canvas} = state;
  state.picture = document.createElement("canvas");
  state.hovered = state.locked = null;
  state.shown = () => state.hovered || state.locked;

  canvas.addEventListener("pointermove", event => point(state, hit(state, event)));
  canvas.addEventListener("pointerleave", () => point(state, null));
  canvas.addEventListener("click", event => {
    const cell = hit(state, event);
    if (cell?.row < 0) hideColumn(state, cell.column);
    if (cell?.row >= 0 && cell.column >= 0) lock(state, same(cell, state.locked) ? null : cell);
  });
  canvas.addEventListener("keydown", event => walk(state, event));
  state.chosen = () => { if (state.data && hear(state)) overlay(state); };
  state.headed = event => {
    if (state.data?.of !== event.detail.of) return;
    event.preventDefault();  // drawn here
    state.other = event.detail;
    if (take(state)) redraw(state, show);
  };
}

// The head that the overview has handed over, where another is drawn: what the page sends meanwhile
// is of a head that was picked before.
function take(state) {
  const {data, other} = state;
  if (!other || other.of !== data.of || String(other.at) === String(data.at)) return false;
  const words = {...data.words, title: other.title};
  Object.assign(state, {data: {...data, at: other.at, planes: other.planes, words}, fresh: true});
  return true;
}

function point(state, cell) {
  if (same(cell, state.hovered)) return;
  state.hovered = cell;
  state.canvas.style.cursor = state.data.hides && cell?.row < 0 ? "pointer" : "";
  overlay(state);
}

// The page is asked to hide a column, or to show it again.
function hideColumn(state, column) {
  if (state.data.hides) state.component.setTriggerValue("hidden", column);
}

function lock(state, cell) {
  state.locked = cell;
  state.awaited = null;
  state.root.querySelector(".spoken").textContent = cell ? words(state, cell) : "Nothing is pinned";
  tellPage(state, cell ? [cell.row, cell.column] : []);
  overlay(state);
}

// Hold the cell that the page asks for; true when that is news. It may come before its picture,
// and wait for it where it has no place in the old one.
function hear(state) {
  const choice = state.data.tells && news(state);
  if (!choice) return false;
  const [row, column] = choice, cell = choice.length ? {row, column} : null;
  state.locked = inside(state, cell) ? cell : null;
  state.awaited = state.locked ? null : cell;
  return true;
}

const inside = ({data}, cell) => cell && cell.row < data.rows.length && cell.column < data.columns.length;

function walk(state, event) {
  const {rows, columns} = state.data, held = state.locked;
  const to = moved(event.key, held && [held.row, held.column], [rows.length, columns.length]);
  const hold = cell => { state.hovered = null; lock(state, cell); };
  if (event.key === "Escape" && held) hold(null);
  else if (event.key === "h" && held && state.data.hides) hideColumn(state, held.column);
  else if (to) hold({row: to[0], column: to[1]});
  else return;
  taken(event);
}

// ---- where everything stands --------------------------------------------------------

// Of pictures beside each other the cells are as large as those of the one with the least room,
// and begin at one height.
function layout(state) {
  const {data} = state, mine = {...data, names: data.words.corner};
  const all = [mine, ...(data.beside ?? [])].map(labels => measured(state, labels));
  let most = LARGEST_CELL, band = 0;
  for (;;) {
    const placed = all.map(each => placedIn(state, each, most, band));
    const least = Math.min(...placed.map(each => each.cell));
    const highest = Math.max(...placed.map(each => each.band));
    const wide = Math.min(...placed.map(each => each.wide));
    if (all.length === 1 || least === most && highest === band) return finished({...placed[0], wide});
    [most, band] = [least, highest];  // labels that no longer fit turn, and need other room
  }
}

// How wide the labels of a picture are.
function measured({picture, ink}, {rows, columns, names}) {
  const pen = picture.getContext("2d");
  pen.font = `${LABEL}px ${ink.mono}`;
  const widths = list => list.map(text => pen.measureText(text).width);
  const most = list => list.reduce((a, b) => Math.max(a, b), 0), across = widths(columns);
  const found = {
    n: Math.max(1, rows.length), m: Math.max(1, columns.length),
    longest: [most(widths(rows)), most(across)],
    // Two labels lie side by side where half of each fits between their columns.
    apart: most(across.map((wide, i) => (wide + (across[i + 1] ?? 0)) / 2)),
    last: across.at(-1) ?? 0,
  };
  pen.font = `${SMALL}px ${ink.sans}`;
  return {...found, named: Math.max(...names.map(name => pen.measureText(name).width))};
}

// Where a picture stands whose cells are at most so large, under a band at least so high.
function placedIn(state, {n, m, longest, apart, last, named}, largest, highest) {
  const width = state.stage.clientWidth, height = heightOf(state);
  const scale = Math.max(1, window.devicePixelRatio || 1);
  const left = Math.ceil(Math.max(named, Math.min(longest[0], 150, width * 0.28))) + 14;
  const room = ({right}) => (width - left - right) / m;
  const size = way => Math.min(room(way), (height - way.band - 2) / n, largest);
  const across = way => Math.min(room(way), WIDER * size(way));
  const presents = document.documentElement.matches(".presenting");
  const turned = Math.min(longest[1], 112), slant = turned * Math.SQRT1_2 + 18;
  const flat = {angle: 0, band: Math.max(40, highest), right: Math.max(2, last / 2 - 8)};
  const slanted = {angle: -Math.PI / 4, band: Math.max(40, highest, slant), right: Math.max(2, slant - 10)};
  const standing = {angle: -Math.PI / 2, band: Math.max(40, highest, turned + 14), right: 2};
  // Column labels lie flat where they fit, then slant, then stand.
  const way = apart <= (presents ? across : size)(flat) - 7 ? flat : size(slanted) >= Math.max(17, 0.9 * size(standing)) ? slanted : standing;
  const whole = size => Math.max(size * scale >= 3 ? Math.floor(size * scale + 1e-6) / scale : size, 1e-3);
  const cell = whole(size(way)), wide = presents ? whole(across(way)) : cell;
  return {left, ...way, cell, wide, n, m, scale, turned};
}

function finished(place) {
  const {cell, wide, n, m, angle, band} = place, need = angle > -1 && angle < 0 ? 17 : 13;
  return {
    ...place, band: Math.ceil(band), width: wide * m, height: cell * n, font: cell >= 16 ? LABEL : SMALL,
    every: [Math.max(1, Math.ceil(13 / cell)), Math.max(1, Math.ceil(need / wide))],
  };
}

function hit(state, event) {
  const box = state.canvas.getBoundingClientRect(), at = state.place;
  if (!at) return null;
  const x = event.clientX - box.left - at.left, y = event.clientY - box.top - at.band;
  const cell = {row: Math.floor(y / at.cell), column: Math.floor(x / at.wide)};
  if (cell.row >= at.n || cell.column >= at.m || (y < 0 && x < 0)) return null;
  if (y < 0) return y > -at.band ? {row: -1, column: cell.column} : null;
  if (x < 0) return {row: cell.row, column: -1};
  return at.cell * at.scale < 1 ? strongest(state, cell) : cell;
}

// Where a pixel stands for several cells, it shows and names the strongest.
function strongest({codes, data, place}, cell) {
  const [down, across] = [place.cell, place.wide].map(size => Math.ceil(1 / size / place.scale));
  let best = cell, most = -1;
  for (let row = cell.row; row < Math.min(place.n, cell.row + down); row++) {
    for (let column = cell.column; column < Math.min(place.m, cell.column + across); column++) {
      const value = Math.abs(valueOf(codes[row * place.m + column], data));
      if (value > most) [best, most] = [{row, column}, value];
    }
  }
  return best;
}

// Its own number, where a part of a larger matrix is drawn.
const placeOf = ({places}, axis, at) => places ? places[axis][at] : at;

// ---- words ------------------------------------------------------------------------

// 1 where nothing may be looked at; found once, since a large picture asks a million times.
function maskedCells({data, codes}) {
  const {allowed} = data.planes, found = new Uint8Array(codes.length);
  if (allowed) for (let i = 0; i < found.length; i++) found[i] = 1 - bit(allowed, i);
  if (data.scale === "mask") for (let i = 0; i < found.length; i++) found[i] |= Number(codes[i] === 0);
  return found;
}

const isVisible = (state, i) => !state.masked[i];

export const leftOut = ({data}, i) => data.planes.cut && bit(data.planes.cut, i);

export const blank = (state, i) => !isVisible(state, i) || state.codes[i] >= MINUS_INFINITE;

export const isUnknown = (state, i) => isVisible(state, i) && state.codes[i] === ABSENT;

export const isHatched = (state, i) => blank(state, i) && !isUnknown(state, i);

function spoken(state, {row, column}) {
  const {data} = state;
  if (row < 0 || column < 0) {
    const [name, at, list] = row < 0 ? [data.words.column, column, data.columns]
      : [data.words.row, row, data.rows];
    const turn = data.hidden.includes(at) ? ", hidden; click to show it" : ", click to hide it";
    const of = data.places ? "" : ` of ${list.length}`;
    return [`${name} ${placeOf(data, row < 0 ? 1 : 0, at)}${of}: {row}${row < 0 && data.hides ? turn : ""}`, {row: list[at]}];
  }
  const i = row * data.columns.length + column, names = {row: data.rows[row], column: data.columns[column]};
  if (data.hidden.includes(column)) return ["{column} is hidden", names];
  if (leftOut(state, i)) return ["{row}, {column}: left out, the row's larger values reach its share", names];
  return [isVisible(state, i) ? data.words.sentence : data.words.masked,
    {...names, value: written(state, i)}];
}

// As it was sent: in single precision, or by its code, which knows no less than a step.
function written({data, codes, singles}, i) {
  if (codes[i] === ABSENT) return "not a number";
  if (singles) return three(singles[i]);
  const small = data.steps === 10000 && codes[i] === 1;
  return number(valueOf(codes[i], data), data) + (small ? " or less" : "");
}

const words = (state, cell) => plain(...spoken(state, cell));

function describeMatrix(state) {
  const {data, codes} = state, columns = data.columns.length;
  const counts = i => isVisible(state, i) && !leftOut(state, i) && !data.hidden.includes(i % columns);
  if (data.scale === "mask") {
    const seen = codes.filter((_, i) => counts(i)).length;
    return putInWords(state.root, state.canvas, `${data.words.title}. ${seen} of ${codes.length} are not ${data.words.absent}`, []);
  }
  const size = i => counts(i) && codes[i] < INFINITE ? Math.abs(state.singles?.[i] ?? valueOf(codes[i], data)) : 0;
  const largest = largestOf(codes.length, size).map(i => words(state, {row: Math.floor(i / columns), column: i % columns}));
  putInWords(state.root, state.canvas, data.words.title, largest);
}

export function tell(state) {
  const cell = state.shown();
  tellLine(state.root, state.data.words, cell && spoken(state, cell), cell && !state.hovered);
  const {data} = state, {words} = data;
  state.root.querySelector(".place").textContent = cell?.row >= 0 && cell.column >= 0
    ? `${words.row} ${placeOf(data, 0, cell.row)}, ${words.column} ${placeOf(data, 1, cell.column)}` : "";
}

// ---- running ----------------------------------------------------------------------

function show(state) {
  if (state.fresh) {
    take(state);
    const {data} = state;
    state.codes = joined(data.planes.values);
    state.singles = singlesOf(data);
    state.exact = data.exact ? state.singles : undefined;
    state.masked = maskedCells(state);
    state.tops = topsOf(state);
    state.levels = noLevels();
    describeMatrix(state);
    state.fresh = false;
    if (inside(state, state.awaited)) [state.locked, state.awaited] = [state.awaited, null];
    for (const which of ["locked", "hovered"]) if (!inside(state, state[which])) state[which] = null;
  }
  const {data, canvas} = state;
  hear(state);
  if (!state.stage.clientWidth) return;
  canvas.setAttribute("aria-label", `${data.words.title}, ${data.rows.length} by ` +
    `${data.columns.length}. Arrow keys move from cell to cell, Escape unpins` +
    `${data.hides ? ", H hides the key of the pinned cell" : ""}.`);
  state.place = layout(state);
  // The words end where the picture ends.
  const edge = Math.max(560, Math.ceil(state.place.left + state.place.width));
  state.root.style.setProperty("--figure", `${edge}px`);
  needs(state, state.place.band + state.place.height + 8);
  state.root.dataset.cells = [state.place.left, state.place.band, state.place.wide, state.place.cell].join(" ");
  if (data.of) state.root.dataset.head = data.at.join();
  legend(state);
  paint(state);
  overlay(state);
}

publish("matrix", ".matrix", make, show);
