// A table of numbers: one coloured cell each.

import {corner} from "./view.js";
import {
  ABSENT, css, element, fitted, hatch, heightOf, inCell, INFINITE, isolated, joined, largestOf, number,
  over, ramp, sent, singlesOf, sized, valueOf,
} from "../shared.js";

const LABEL = 12, LARGEST_CELL = 64, WITH_NUMBER = 30, SMALL = 10;
// Labels: the widest of a row or of what is pointed at, of every few columns, and of each column.
const WIDEST = 136, WIDE = 60, NARROW = 30, APART = 4;

export const CELLS = {
  read(state) {
    state.codes = joined(state.data.planes.values);
    state.singles = singlesOf(state.data);
  },
  said(state, cell) {
    const {data} = state, [row, column] = cell, value = numberAt(state, cell);
    return [data.words.sentence, {row: data.rows[row], column: data.columns[column],
      value: Number.isNaN(value) ? data.words.absent : `${sent(state, value)} ${data.words.unit}`}];
  },
  largest(state) {
    const {codes, data} = state, size = i => codes[i] < INFINITE ? Math.abs(valueOf(codes[i], data)) : 0;
    return largestOf(codes.length, size).map(i => [Math.floor(i / data.size[1]), i % data.size[1]]);
  },
  place(state) {
    const {data, stage, ink, canvas} = state, pen = canvas.getContext("2d"), {words, written} = data;
    pen.font = `${LABEL}px ${ink.mono}`;
    const widest = list => list.reduce((most, text) => Math.max(most, pen.measureText(text).width), 0);
    const [beside, over] = written.map(widest);
    pen.font = `12px ${ink.sans}`;
    const names = widest([`${words.column} →`, `${words.row} ↓`]);
    const left = Math.ceil(Math.max(names, Math.min(WIDEST, beside))) + 14, top = 40;
    const scale = Math.max(1, window.devicePixelRatio || 1), [rows, columns] = data.size;
    let cell = Math.min((stage.clientWidth - left - 4) / Math.max(1, columns),
      (heightOf(state) - top - 4) / Math.max(1, rows), LARGEST_CELL);
    if (cell * scale >= 2) cell = Math.floor(cell * scale) / scale;
    cell = Math.max(cell, 1e-3);
    const gap = cell > 8 ? 1 : 0;
    return {left, top, w: cell - gap, h: cell - gap, gap, rows, across: columns * cell, cell, wide: Math.min(WIDE, over) + 2 * APART};
  },
  // The cells, once for every change of the numbers or of the size.
  draw(state) {
    const {data, ink, stage, place} = state, {left, top, w, cell} = place, [rows, columns] = data.size;
    const [pen, scale] = sized(state.picture, stage.clientWidth, stage.clientHeight);
    const blank = hatch(pen, ink, scale);
    Object.assign(pen, {textBaseline: "middle", textAlign: "center", font: `12px ${ink.mono}`});
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const [x, y] = corner(place, [row, column]), value = numberAt(state, [row, column]);
      const is = Number.isFinite(value), filled = is ? colour(state, value) : null;
      pen.fillStyle = is ? css(filled) : blank;
      pen.fillRect(x, y, w, w);
      if (cell < WITH_NUMBER || !is) continue;
      pen.fillStyle = over(filled);
      pen.fillText(inCell(value, 4), x + w / 2, y + w / 2, cell - 4);
    }
    pen.strokeStyle = css(ink.border);
    pen.strokeRect(left - 0.5, top - 0.5, columns * cell + 1, rows * cell + 1);
    legend(state);
  },
  frame(state, pen, shown) {
    const {data, ink, place, selected} = state, {left, top, cell} = place, [rows, columns] = data.size;
    const frame = (at, colour, thick) => {
      const [x, y] = corner(place, at);
      for (const [stroke, wide] of [[css(ink.background), thick + 2], [colour, thick]]) {
        Object.assign(pen, {strokeStyle: stroke, lineWidth: wide});  // seen on any cell
        pen.strokeRect(x - 1, y - 1, cell + 1, cell + 1);
      }
      if (cell >= SMALL) return;  // too small to be seen: its row and its column lead to it
      pen.lineWidth = 1;
      pen.strokeRect(left - 0.5, y - 0.5, columns * cell + 1, cell + 1);
      pen.strokeRect(x - 0.5, top - 0.5, cell + 1, rows * cell + 1);
    };
    if (selected) frame(selected, css(ink.accent), 2.5);
    if (shown) frame(shown, css(ink.text), 1.5);
    labels(state, pen, shown || selected);
  },
};

// Rounded once where the number itself was sent, like the same number in a sentence of the page.
const numberAt = ({codes, singles, data}, [row, column]) => {
  const at = row * data.size[1] + column;
  return singles ? singles[at] : valueOf(codes[at], data);
};

function colour({data, ink}, value) {
  const share = Math.max(-1, Math.min(1, value / data.top));
  if (data.scale === "diverging") return ink.diverging[Math.round(127 + 127 * share)];
  return ink.sequential[value > 0 ? Math.max(1, Math.round(255 * share)) : 0];
}

function labels({data, ink, place, stage}, pen, at) {
  const {left, top, cell, wide} = place;
  const write = strong => { pen.font = `${strong ? "600 " : ""}${LABEL}px ${ink.mono}`; };
  const label = (text, x, y, width, align, strong) => {
    write(strong);
    pen.textAlign = align;
    pen.fillStyle = css(strong ? ink.text : ink.muted);
    pen.fillText(isolated(fitted(pen, text, width)), x, y);
  };
  // Every few of them where they are close; the one that is meant in any case, and alone there.
  const some = (list, room, meant, centre, alone, draw) => list.forEach((text, i) => {
    const every = Math.max(1, Math.ceil(room / cell)), place = (i + 0.5) * cell;
    const free = i % every === 0 && !(Math.abs(place - centre) < alone);
    if (i === meant || free) draw(text, i === meant ? centre : place, every * cell, i === meant);
  });
  const [row, column] = at || [NaN, NaN];
  const [beside, over] = data.written;
  some(beside, 15, row, (row + 0.5) * cell, 15, (text, y, _, strong) =>
    label(text, left - 10, top + y, left - 14, "right", strong));
  write(true);
  const half = at ? Math.min(WIDEST, pen.measureText(over[column]).width) / 2 : 0;
  const last = stage.clientWidth - left - APART - half;
  const room = cell >= NARROW + APART ? cell : wide;
  some(over, room, column, Math.max(half, Math.min(last, (column + 0.5) * cell)),
    Math.max(room, cell) / 2 + half + APART, (text, x, width, strong) =>
      label(text, left + x, top - 12, strong ? WIDEST : width - APART, "center", strong));
}

function legend({root, data, codes, ink}) {
  const place = root.querySelector(".legend"), bar = element("span", "bar");
  const ends = data.scale === "diverging" ? ink.diverging : ink.sequential;
  bar.style.background = ramp(ends);
  const low = data.scale === "diverging" ? -data.top : 0;
  const spec = {low, high: data.top, steps: 10000};
  place.replaceChildren(element("span", "", number(low, spec)), bar,
    element("span", "", `${number(data.top, spec)} ${data.words.unit}`));
  if (codes.includes(ABSENT)) place.append(element("span", "", `· hatched: ${data.words.absent}`));
}
