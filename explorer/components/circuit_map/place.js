// What is drawn of a circuit, and where: rows of layers, a band for every position.

import {CHIP, SLANTED} from "../columns.js";
import {isolated, joined, upTo} from "../shared.js";

export const GUTTER = 40, PILL = 18, APART = 8, AROUND_BAND = 8, NARROW = 15, LEAST_LINE = 12, FOLD = 9;
export const TOP = 34, ROUNDS = 80, LETTER = 13, DOT = 6, BAND = 48, OUTPUT = 120, THIN = 3, PUSH = 22;

// The parts, at each position where an edge begins or ends, and the lines between them.
function pieces(data, count) {
  const items = new Map(), lines = [], ofHead = new Map();
  const put = (part, at, how) => {
    const [kind, layer, head, title] = data.parts[part];
    const key = kind === "logits" ? "logits" : `${how}${part}@${at}`;
    if (!items.has(key)) {
      const item = {key, part, kind, layer, head, title, at: kind === "logits" ? data.place ?? 0 : at, how, reads: new Set(), isWhole: data.place === null};
      items.set(key, item);
      if (kind === "head") ofHead.set(part, [...(ofHead.get(part) ?? []), item]);
    }
    return items.get(key);
  };
  data.edges.slice(0, count).forEach((edge, index) => edge.at.forEach(([at, score]) => {
    const isPort = edge.reads === "k" || edge.reads === "v";
    const to = put(edge.to, at, isPort ? "port" : "part");
    if (edge.reads) to.reads.add(edge.reads);
    lines.push({edge: index, at, score, reads: edge.reads, from: put(edge.from, at, "part"), to});
  }));
  return {items, lines, moves: moves(data, ofHead, put)};
}

// Attention joins what a head reads at one position to where it writes; a dot is the key that most
// comes from, where no drawn edge is read there.
function moves(data, ofHead, put) {
  const found = [];
  for (const [part, own] of ofHead) {
    const known = data.moves.filter(([of]) => of === part).sort((a, b) => b[3] - a[3]);
    const ports = own.filter(item => item.how === "port"), isPort = key => ports.some(item => item.at === key);
    let writes = own.filter(item => item.how === "part");
    if (!writes.length) {
      const best = known.find(([, , key]) => isPort(key)) ?? known[0];
      writes = best ? [put(part, best[1], "part")] : [];
    }
    for (const to of writes) {
      const here = known.filter(([, query]) => query === to.at);
      const shown = here.filter(([, , key], rank) => rank === 0 || isPort(key));
      for (const [, , key, size] of shown) found.push({from: put(part, key, "port"), to, size});
    }
  }
  return found;
}

const isBelow = item => item.kind === "head";  // of the two lines of a layer

// Rows from below: a line for heads and one for the feed-forward layer, as far as there are any;
// layers with neither are folded.
function rowsOf(data, items, height) {
  const used = new Map();
  for (const item of items.values()) {
    if (item.kind === "head" || item.kind === "feed-forward") {
      const lines = used.get(item.layer) ?? new Set();
      used.set(item.layer, lines.add(isBelow(item) ? 0 : 1));
    }
  }
  const rows = [];
  for (let layer = 0; layer < data.layers; layer++) {
    const lines = used.get(layer), before = rows.at(-1);
    if (lines) rows.push({first: layer, last: layer, lines: [...lines].sort()});
    else if (before && !before.lines.length) before.last = layer;
    else rows.push({first: layer, last: layer, lines: []});
  }
  const many = rows.reduce((sum, row) => sum + row.lines.length, 0) || 1;
  const folds = rows.filter(row => !row.lines.length), folded = row => FOLD + 2 * (row.last - row.first);
  const rest = height - folds.reduce((sum, row) => sum + folded(row), 0);
  const line = Math.max(LEAST_LINE, rest / many);
  let y = 0;
  for (const row of rows) {
    row.low = y;
    y += row.lines.length ? row.lines.length * line : folded(row);
    row.high = y;
  }
  return {rows, line, high: y, folded: folds.reduce((sum, row) => sum + row.last - row.first + 1, 0)};
}

export const isDot = item => item.how === "port" && !item.reads.size;

function widthOf(pen, item, ink, high) {
  if (item.kind === "logits" || item.kind === "embedding") return 0;
  if (isDot(item)) return DOT;
  if (item.how === "port") return LETTER + 6 * (item.reads.size - 1);
  pen.font = fontOf(ink, high);
  return Math.ceil(pen.measureText(item.title).width) + 12 + (item.reads.has("q") ? LETTER : 0);
}

export const fontOf = (ink, high) => `${Math.min(12, high - 3)}px ${ink.mono}`;

// Items that stand side by side: by row line and position.
function cellsOf(items) {
  const cells = new Map();
  for (const item of items.values()) {
    if (!item.width || isDot(item)) continue;
    const key = `${item.layer}.${isBelow(item) ? 0 : 1}@${item.at}`;
    cells.set(key, [...(cells.get(key) ?? []), item]);
  }
  return [...cells.values()];
}

// As wide as what stands in it needs, thin where nothing stands and room is short; then tokens
// become whole, and the rest goes where most stands.
function bandsOf(state, pen, cells, quiet, room) {
  const {data, ink} = state, weight = data.tokens.map(() => 0);
  const least = data.tokens.map(() => NARROW);
  for (const cell of cells) {
    const {at} = cell[0];
    least[at] = Math.max(least[at], BAND, cell.reduce((sum, item) => sum + item.width + APART, AROUND_BAND));
    weight[at] += cell.length;
  }
  if (data.place !== null) {
    least[data.place] = Math.max(least[data.place], OUTPUT);
    weight[data.place] += 1;
  }
  const sum = widths => widths.reduce((a, b) => a + b, 0), isTight = sum(least) > room;
  if (isTight) quiet.forEach((is, at) => { if (is) least[at] = THIN; });
  pen.font = `12px ${ink.mono}`;
  const left = widths => Math.max(0, room - sum(widths));
  const grown = (widths, wanted, share) => {
    const part = Math.min(1, share * left(widths) / (sum(wanted) || 1));
    return widths.map((wide, at) => wide + part * wanted[at]);
  };
  const roomy = grown(least, weight.map(one => 9 * one), 1);
  const whole = data.tokens.map((token, at) =>
    isTight && quiet[at] ? 0 : Math.max(0, Math.min(76, pen.measureText(token).width + 18) - roomy[at]));
  const readable = grown(roomy, whole, 0.6), widths = grown(readable, weight.map(one => room * Math.sqrt(one)), 1);
  let x = GUTTER;
  return widths.map((wide, at) => {
    const band = {left: x, wide, middle: x + wide / 2, used: weight[at] > 0, thin: isTight && quiet[at]};
    x += wide;
    return band;
  });
}

// Where each item wants to be: in the middle of what it is joined to, and out of the way of lines
// that only pass.
function settle(bands, cells, lines, joined) {
  const all = cells.flat(), within = new Map();
  for (const item of all) within.set(item.at, [...(within.get(item.at) ?? []), item]);
  for (let round = 0; round < ROUNDS; round++) {
    const near = new Map(all.map(item => [item, [bands[item.at].middle]]));
    for (const {from, to} of [...lines, ...joined]) {
      if (from.at !== to.at || to.kind === "logits") continue;
      near.get(from)?.push(to.x);
      near.get(to)?.push(from.x);
    }
    const pull = round < ROUNDS / 2 ? 0.5 : 0.06;
    for (const item of all) {
      const beside = near.get(item), mean = beside.reduce((a, b) => a + b, 0) / beside.length;
      item.want = item.x + pull * (mean - item.x);
      item.push = 0;
    }
    for (const line of lines) {
      const {from, to} = line;
      for (const item of within.get(line.at) ?? []) {
        if (item === from || item === to || item.y >= from.y || item.y <= to.y) continue;
        const gap = item.x - xAt(from, to, item.y), near = item.width / 2 + 9 - Math.abs(gap);
        if (near > 0) item.push += Math.sign(gap || (item.part % 2) - 0.5) * near * 0.6;
      }
    }
    for (const item of all) item.want += Math.max(-PUSH, Math.min(PUSH, item.push));
    for (const cell of cells) spread(cell, bands[cell[0].at]);
  }
}

// In their order, apart, and inside of the band.
export function spread(cell, {left, wide}) {
  cell.sort((a, b) => a.want - b.want || a.part - b.part);
  let least = left + AROUND_BAND / 2;
  for (const item of cell) {
    item.x = Math.max(item.want, least + item.width / 2);
    least = item.x + item.width / 2 + APART;
  }
  let most = left + wide - AROUND_BAND / 2;
  for (const item of [...cell].reverse()) {
    item.x = Math.min(item.x, most - item.width / 2);
    most = item.x - item.width / 2 - APART;
  }
}

// A line leaves and arrives upright; the output is as wide as its band.
const arrives = (from, to) => to.kind === "logits"
  ? to.x + Math.max(-to.reach, Math.min(to.reach, 0.85 * (from.x - to.x))) : to.x + (to.into ?? 0);
export const bends = ({from, to}) => {
  const x0 = from.x + from.out, y0 = from.y - from.half, x1 = arrives(from, to), y1 = to.y + to.half;
  const middle = (y0 + y1) / 2;
  return [x0, y0, x0, middle, x1, middle, x1, y1];
};
function xAt(from, to, y) {
  const t = upTo(1, (from.y - y) / Math.max(1, from.y - to.y));
  return from.x + (arrives(from, to) - from.x) * t * t * (3 - 2 * t);
}

export function layout(state) {
  const {data, stage, ink} = state, pen = state.canvas.getContext("2d");
  const {items, lines, moves} = pieces(data, state.count), all = [...items.values()];
  pen.font = `12px ${ink.mono}`;
  const slants = data.tokens.some((token, at) => !all.some(item => item.at === at && !isDot(item)) &&
    pen.measureText(token).width > NARROW);
  const bottom = (slants ? SLANTED : CHIP) + (data.other.length ? 16 : 0) + 10;
  const {rows, line, high, folded} = rowsOf(data, items, stage.clientHeight - TOP - bottom);
  const pill = Math.min(PILL, line - 1), floor = TOP + high;
  for (const item of all) {
    item.width = widthOf(pen, item, ink, pill);
    item.out = item.reads.has("q") ? LETTER / 2 : 0;
    if (item.reads.has("q") && item.how === "part") item.into = LETTER / 2 - item.width / 2;
  }
  const cells = cellsOf(items), busy = new Set(all.map(item => item.at)), other = new Map(data.other);
  const quiet = data.tokens.map((_, at) => !busy.has(at) && !other.has(at));
  const bands = bandsOf(state, pen, cells, quiet, stage.clientWidth - GUTTER - 4);
  for (const item of all) placeItem(item, rows, line, pill, floor, bands);
  settle(bands, cells, lines, moves);
  for (const dot of all.filter(isDot)) {  // below the part that it would cover
    const covers = item => item.at === dot.at && item.y === dot.y && Math.abs(item.x - dot.x) < (item.width + DOT) / 2;
    if (cells.some(cell => cell.some(covers))) dot.y += pill / 2 + DOT;
  }
  const last = bands.at(-1);
  state.place = {
    bands, rows, line, pill, floor, folded, bottom, thin: bands.filter(band => band.thin).length,
    slants: bands.some((band, at) => !band.used && !band.thin && isSlanted(pen, ink, band, data.tokens[at])),
    width: Math.max(stage.clientWidth, last.left + last.wide + 4),
    height: Math.max(stage.clientHeight, floor + bottom),
  };
  const before = new Map(state.items?.map(({key, x, y}) => [key, [x, y]]));
  for (const item of all) item.before = before.get(item.key);
  Object.assign(state, {items: all, lines, moves});
}

function isSlanted(pen, ink, {wide}, token) {
  pen.font = `12px ${ink.mono}`;
  return wide < 56 && pen.measureText(isolated(token)).width > wide - 10;
}

// The output is over the position that is read, or over all of them.
function overWhat({isWhole, at}, bands) {
  const [first, last] = isWhole ? [bands[0], bands.at(-1)] : [bands[at], bands[at]], end = last.left + last.wide;
  return {x: (first.left + end) / 2, reach: (end - first.left) / 2 - 6};
}

function placeItem(item, rows, line, pill, floor, bands) {
  item.x = bands[item.at].middle;
  item.half = !item.width ? 0 : (item.how === "port" ? LETTER : pill) / 2;
  if (item.kind === "logits") Object.assign(item, overWhat(item, bands), {y: TOP - 10});
  else if (item.kind === "embedding") item.y = floor + 2;
  else {
    const row = rows.find(each => each.first === item.layer);
    item.y = floor - row.low - (row.lines.indexOf(isBelow(item) ? 0 : 1) + 0.5) * line;
  }
}
