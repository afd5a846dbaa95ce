// Every head of a model: a small picture each, one of them large. Where there are many layers they
// go on in another column of layers, beside the first.

import {corner} from "./view.js";
import {ABSENT, css, heightOf, largestOf, maximum, same, shadeOf, sized} from "../shared.js";

// A picture of many rows and few columns is stretched, so that the columns can be seen.
const LARGEST = 96, HIGHEST = 2.5, PREVIEW = 240, BETWEEN = 14, WORTH = 1.1;

const nameOfHead = ({data}, [layer, head]) => `${data.words.row} ${layer}, ${data.words.column} ${head}`;

export const GRID = {
  said: (state, cell) => [`${nameOfHead(state, cell)}: ${maximum(state.data.tops[cell[0]][cell[1]])}`, {}],
  largest({data}) {
    const [layers, heads] = data.size, at = i => [Math.floor(i / heads), i % heads];
    return largestOf(layers * heads, i => data.tops[at(i)[0]][at(i)[1]]).map(at);
  },
  // Hand a head to the matrix that shows this pass; whether there is one.
  shows({data: {every, planes, size}}, [layer, head]) {
    if (!every) return false;
    const title = every.title[0] + layer + every.title[1] + head;
    const detail = {of: every.of, at: [layer, head], title, planes: headPlanes(every, planes, layer, size[1], head)};
    return !document.dispatchEvent(new CustomEvent("explorer-head", {cancelable: true, detail}));
  },
  place(state) {
    const {data, stage, ink, canvas} = state, [layers, heads] = data.size, [queries, keys] = data.shape;
    const width = stage.clientWidth, height = heightOf(state);
    const pen = canvas.getContext("2d");
    pen.font = `12px ${ink.sans}`;
    const left = Math.ceil(pen.measureText(data.words.row + " ↓").width) + 14, top = 40;
    pen.font = `12px ${ink.mono}`;
    const number = Math.ceil(pen.measureText(String(layers - 1)).width) + 10 + BETWEEN;
    const tall = Math.max(0.01, Math.min(HIGHEST, queries / Math.max(1, keys)));
    const among = columns => {
      const rows = Math.ceil(layers / columns), step = Math.floor((height - top) / rows);
      const share = Math.floor((width - left - (columns - 1) * number) / (columns * heads));
      const gap = Math.max(2, Math.min(8, Math.round(Math.min(share, step) / 8)));
      const wide = Math.min(share - gap, (step - gap) / tall, LARGEST / Math.max(1, tall));
      return {rows, gap, w: Math.max(4, Math.floor(wide))};
    };
    let best = among(1);
    for (let columns = 2; columns <= layers; columns++) {
      const other = among(columns);
      if (other.w > WORTH * best.w) best = other;
    }
    const {rows, gap, w} = best, h = Math.max(4, Math.round(w * tall));
    const across = heads * (w + gap) + number, columns = Math.ceil(layers / rows);
    const right = left + columns * across - number, hasRoom = width - right >= PREVIEW;
    const scale = Math.min(208 / keys, Math.max(60, Math.min(208, height - top)) / queries);
    const large = hasRoom && [right + 32, top, Math.max(keys * scale, queries * scale / HIGHEST), queries * scale];
    return {left, top, w, h, gap, rows, across, large, low: Math.max(1, large && top + large[3] + 8)};
  },
  draw(state) {
    const {data, stage, place} = state, [layers, heads] = data.size;
    state.atlas = shaded(state, layers, heads);
    const [pen] = sized(state.picture, stage.clientWidth, stage.clientHeight);
    for (let layer = 0; layer < layers; layer++) for (let head = 0; head < heads; head++) {
      drawHead(state, pen, [layer, head], ...corner(place, [layer, head]), place.w, place.h);
    }
    state.root.querySelector(".notes").textContent = notes(data);
  },
  frame(state, pen, shown) {
    const {data, ink, place} = state, {top, w, h, gap, rows, large} = place, [layers, heads] = data.size;
    const frame = (cell, colour, thick) => {
      const out = thick / 2 + 1, [x, y] = corner(place, cell);
      Object.assign(pen, {strokeStyle: colour, lineWidth: thick});
      pen.strokeRect(x - out, y - out, w + 2 * out, h + 2 * out);
    };
    if (state.selected) frame(state.selected, css(ink.accent), 2.5);
    if (shown && !same(shown, state.selected)) frame(shown, css(ink.text), 1.5);
    const label = (text, x, y, align, strong) => {
      pen.textAlign = align;
      pen.font = `${strong ? "600 " : ""}12px ${ink.mono}`;
      pen.fillStyle = css(strong ? ink.text : ink.muted);
      pen.fillText(text, x, y);
    };
    const every = size => Math.max(1, Math.ceil(16 / size));
    const isShown = (layer, head) => shown && (head === null ? shown[0] === layer
      : shown[1] === head && Math.floor(shown[0] / rows) === Math.floor(layer / rows));
    for (let first = 0; first < layers; first += rows) {
      const last = Math.min(layers, first + rows);
      for (let layer = first; layer < last; layer += every(h + gap)) {
        const [x, y] = corner(place, [layer, 0]);
        label(layer, x - 10, y + h / 2, "right", isShown(layer, null));
      }
      for (let head = 0; head < heads; head += every(w + gap)) {
        const [x] = corner(place, [first, head]);
        label(head, x + w / 2, top - 12, "center", isShown(first, head));
      }
    }
    if (!shown || !large) return;
    drawHead(state, pen, shown, ...large);
    pen.textAlign = "left";
    pen.font = `600 12px ${ink.sans}`;
    pen.fillStyle = css(ink.text);
    pen.fillText(nameOfHead(state, shown), large[0], top - 13);
  },
};

function drawHead({atlas, data, ink}, pen, [layer, head], x, y, wide, high) {
  const [queries, keys] = data.shape;
  pen.imageSmoothingEnabled = wide < keys;
  pen.drawImage(atlas, head * keys, layer * queries, keys, queries, x, y, wide, high);
  Object.assign(pen, {strokeStyle: css(ink.border), lineWidth: 1});
  pen.strokeRect(x - 0.5, y - 0.5, wide + 1, high + 1);
}

// So many rows and columns of small pictures at one pixel a cell, side by side.
export function shaded(state, down, across) {
  const [queries, keys] = state.data.shape;
  const canvas = new OffscreenCanvas(Math.max(1, across * keys), Math.max(1, down * queries));
  const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
  let from = 0;
  for (let row = 0; row < down; row++) for (let column = 0; column < across; column++) {
    for (let q = 0; q < queries; q++) {
      let p = 4 * ((row * queries + q) * image.width + column * keys);
      for (let k = 0; k < keys; k++, p += 4) {
        const [r, g, b] = shadeOf(state, from++);
        image.data[p] = r;
        image.data[p + 1] = g;
        image.data[p + 2] = b;
        image.data[p + 3] = 255;
      }
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

export const notes = ({pooled, words, planes}) => (pooled > 1 ? `max over ${pooled}×${pooled} cells · ` : "") +
  words.note + (planes.unknown ? " · grey: not a number" : "");

// ---- the large head --------------------------------------------------------------------

// The planes of one head as the server would send them: see encode in matrix/__init__.py.
function headPlanes({size: [queries, keys], steps}, {singles, codes, allowed}, layer, heads, head) {
  const n = queries * keys, from = (layer * heads + head) * n, bytes = Math.ceil(n / 8);
  const mask = allowed.subarray(layer * bytes, (layer + 1) * bytes);
  if (!singles) {
    const half = codes.length / 2, values = new Uint8Array(2 * n);
    values.set(codes.subarray(from, from + n));
    values.set(codes.subarray(half + from, half + from + n), n);
    return {values, allowed: mask};
  }
  const exact = singles.slice(4 * from, 4 * (from + n)), values = new Uint8Array(2 * n);
  new Float32Array(exact.buffer).forEach((value, i) => {
    const code = codeOf(value, steps);
    values[i] = code & 255;
    values[n + i] = code >> 8;
  });
  return {values, exact, allowed: mask};
}

// The code of a weight, a half rounded to even: see encode in wire.py.
function codeOf(value, steps) {
  if (Number.isNaN(value)) return ABSENT;
  const at = value * steps, code = at % 1 === 0.5 ? 2 * Math.round(at / 2) : Math.round(at);
  return Math.min(steps, value > 0 ? Math.max(1, code) : 0);
}
