// Where everything stands, and how it is drawn.

import {drawInside} from "./block.js";
import {wroteIn} from "./flow.js";
import {sameEdge} from "./view.js";
import {CHIP, slanted, SLANTED, tokenLabel} from "../columns.js";
import {css, fitted, isolated, rgb, sized} from "../shared.js";

export const GUTTER = 38, NARROWEST = 17, FITS = 11, APART = 40, WORD = 12, INSIDE = 296, LEFT = 90, CLASSES = 56;
const BEFORE_MLP = {self_attn: 0.26, cross_attn: 0.5}, MLP_AT = 0.74, HEADED = 0.1;
const LEAN = 1 / Math.tan(Math.PI / 3.2);  // of a slanted label: see columns.js

const rowsAt = part => BEFORE_MLP[part.name.split(".")[1]];

// Rows near the focus are taller, and together they fill the height.
function heights(stack, height, zoom, focus) {
  const share = Array.from({length: stack.layers}, (_, layer) =>
    1 + (zoom - 1) * Math.exp(-(((layer - focus * (stack.layers - 1)) / 3) ** 2)));
  const all = share.reduce((a, b) => a + b, 0) || 1;
  const levels = [0];
  share.forEach(one => levels.push(levels.at(-1) + one / all * height));
  return levels;
}

export function layout(state) {
  const {flow, stage, data} = state, pen = state.canvas.getContext("2d");
  pen.font = `12px ${state.ink.mono}`;
  const columns = flow.stacks.reduce((sum, stack) => sum + stack.count, 0);
  const gaps = (flow.stacks.length - 1) * APART;
  const lean = data.count > 1 ? 28 : 8;  // slanted answers lean to the right
  const room = stage.clientWidth - GUTTER - gaps - lean;
  const column = Math.min(120, room >= FITS * columns ? room / columns : NARROWEST);  // or it scrolls
  const longest = list => Math.max(0, ...list.map(text => pen.measureText(text).width));
  const tokens = longest(flow.stacks.flatMap(stack => stack.tokens));
  const bottom = tokens > column - 10 && column < 56 ? SLANTED : CHIP;
  const top = data.count === 1 && data.hasAnswers ? CLASSES : bottom;
  const place = {
    column, bottom, top, height: stage.clientHeight,
    width: Math.max(stage.clientWidth, GUTTER + gaps + columns * column + lean),
    gap: state.open && stage.clientHeight >= INSIDE + LEFT ? INSIDE : 0,
    slantedBelow: bottom === SLANTED, slantedAbove: top === SLANTED,
    floor: stage.clientHeight - bottom - 6, ceiling: top + 6,
  };
  let left = GUTTER;
  place.stacks = flow.stacks.map(stack => {
    const height = place.floor - place.ceiling - place.gap;
    const found = {left, levels: heights(stack, height, state.zoom, state.focus)};
    left += stack.count * column + APART;
    return found;
  });
  if (place.gap) place.opened = rawY(place, flow.stacks[state.open.stack], state.open.layer + 1);
  state.place = place;
  state.root.dataset.place = JSON.stringify(placed(state));
  drawInside(state);
}

// For who points at the picture without eyes: the middle of the first column, and every level.
const placed = state => {
  const {column, floor, ceiling} = state.place;
  const stacks = state.flow.stacks.map(stack => ({
    x: xOf(state, stack, 0),
    levels: Array.from({length: stack.layers + 1}, (_, level) => yOf(state, stack, level)),
  }));
  return {column, floor, ceiling, stacks};
};

// How far to the left of its column's foot a slanted label is at this height.
export function leaning({place}, y) {
  if (place.slantedBelow && y > place.floor + 2) return (y - place.floor - 10) * LEAN;
  return place.slantedAbove && y < place.ceiling ? (y - place.ceiling + 11) * LEAN : 0;
}

export const xOf = ({place}, stack, token) => place.stacks[stack.at].left + (token + 0.5) * place.column;
// Above the layer that is opened everything makes room for its inside.
export const yOf = (state, stack, level) => {
  const {place} = state, y = rawY(place, stack, level);
  return place.gap && y < place.opened - 0.01 ? y - place.gap : y;
};
const rawY = (place, stack, level) => {
  const {levels} = place.stacks[stack.at], layer = Math.min(Math.floor(level), stack.layers - 1);
  return place.floor - levels[layer] - (level - layer) * (levels[layer + 1] - levels[layer]);
};
const heightOf = ({place}, stack, layer) => {
  const {levels} = place.stacks[stack.at];
  return levels[layer + 1] - levels[layer];
};

// From the key's stream, up and across, to the query's at its attention.
export function pointsOf(state, edge) {
  const from = state.flow.stacks[edge.part.keys], own = edge.part.keys === edge.part.queries;
  const x0 = xOf(state, from, edge.key), x1 = xOf(state, edge.stack, edge.query);
  const y1 = yOf(state, edge.stack, edge.layer + rowsAt(edge.part));
  const y0 = own ? yOf(state, edge.stack, edge.layer) : yOf(state, from, from.layers);
  const bend = Math.max(6, Math.abs(x1 - x0) * 0.12) * Math.sign(x1 - x0 || 1);
  return [x0, y0, x0, y1, x0 + bend, y1, x1, y1];
}

function trace(path, [x0, y0, ax, ay, bx, by, x1, y1]) {
  path.moveTo(x0, y0);
  path.bezierCurveTo(ax, ay, ax, ay, bx, by);
  path.lineTo(x1, y1);
}

const thickness = value => 0.6 + 6 * Math.sqrt(value);
const opacity = value => Math.min(1, 0.22 + 0.9 * Math.sqrt(value));

export const colours = ({ink}) => {
  const [stream, attention, mlp] = THEME[ink.dark ? "dark" : "light"].series.map(rgb);
  return {stream, attention, mlp};
};

// What no pointer changes: layers, streams, words of the lens, tokens.
export function paintGround(state) {
  const {flow, place, ink} = state;
  const canvas = state.ground ??= document.createElement("canvas");
  const [pen] = sized(canvas, place.width, place.height);
  pen.textBaseline = "middle";
  for (const stack of flow.stacks) {
    const {left} = place.stacks[stack.at], right = left + stack.count * place.column;
    layers(state, pen, stack, left, right);
    ends(state, pen, stack, left);
    for (let i = 0; i < stack.count; i++) {
      const x = Math.round(xOf(state, stack, i)) + 0.5;
      pen.strokeStyle = css(ink.border, 0.9);
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x, place.floor);
      pen.lineTo(x, place.ceiling);
      pen.stroke();
      labels(state, pen, stack, i);
    }
  }
  if (state.words) lens(state, pen);
}

function layers(state, pen, stack, left, right) {
  const {ink, place} = state, named = place.stacks[stack.at].named = [];
  for (let layer = 0; layer < stack.layers; layer++) {
    const y = yOf(state, stack, layer + 0.5);
    if (layer % 2) {
      pen.fillStyle = css(ink.text, ink.dark ? 0.035 : 0.022);
      pen.fillRect(left, yOf(state, stack, layer + 1), right - left, heightOf(state, stack, layer));
    }
    if (stack.at === state.open?.stack && layer === state.open.layer) {
      pen.fillStyle = css(ink.accent, 0.1);
      pen.fillRect(left, yOf(state, stack, layer + 1), right - left, heightOf(state, stack, layer));
    }
    if (!named.length || named.at(-1)[1] - y >= 13) named.push([layer, y]);
  }
}

// What comes in below and out above, where the first column leaves room.
function ends({place, data, flow, ink}, pen, stack, left) {
  if (place.column < 24) return;
  pen.font = `12px ${ink.sans}`;
  pen.textAlign = "right";
  pen.fillStyle = css(ink.muted);
  pen.fillText(data.words.ends[stack.at], left - 2, place.floor + 16, GUTTER - 2);
  if (stack !== flow.stacks.at(-1) || data.count < 2 || !data.hasAnswers) return;
  pen.fillText(data.words.ends[2], left - 2, place.slantedAbove ? place.ceiling - 14 : CHIP / 2, GUTTER - 2);
}

// Above what flows, with a halo of the page's ground: edges pass between two stacks.
function titles({flow, place, ink}, pen) {
  pen.font = `12px ${ink.sans}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 8;
  for (const stack of flow.stacks) {
    const {left, named = []} = place.stacks[stack.at], haloed = (text, x, y) => {
      pen.strokeStyle = css(ink.background);
      pen.strokeText(text, x, y);
      pen.fillStyle = css(ink.muted);
      pen.fillText(text, x, y);
    };
    for (const [layer, y] of named) haloed(String(layer), left - 8 - pen.measureText(layer).width / 2, y);
    pen.save();
    pen.translate(left - 30, (place.floor + place.ceiling) / 2);
    pen.rotate(-Math.PI / 2);
    haloed(`${flow.stacks.length > 1 ? stack.title : "Layers"} →`, 0, 0);
    pen.restore();
  }
}

function labels(state, pen, stack, i) {
  const {place, ink} = state, x = xOf(state, stack, i), muted = stack.muted.includes(i);
  const wide = place.slantedBelow ? 0 : place.column - 4;
  tokenLabel(pen, ink, stack.tokens[i], muted, x, place.height - place.bottom, wide);
}

function answer(state, pen, at, strong = false) {
  const {place, ink, answers, flow} = state, [label, options] = answers[at];
  const x = xOf(state, flow.stacks.at(-1), at), p = options[0]?.[1] ?? 0;
  pen.font = `${strong ? "600 " : ""}12px ${ink.mono}`;
  pen.fillStyle = css(ink.text, strong ? 1 : 0.35 + 0.55 * p);
  if (place.slantedAbove) slanted(pen, x, place.top - 5, fitted(pen, isolated(label), SLANTED * 0.95), true);
  else {
    pen.textAlign = "center";
    pen.fillText(fitted(pen, isolated(label), place.column - 6), x, CHIP / 2);
  }
}

// A word stands above its row, darker where it is likelier; rows that are too low for it fold into
// a band, which has the word of its last layer. A row of which more than half would be cut has none.
function lens(state, pen) {
  const {flow, place, ink, lensRows} = state, stack = flow.stacks.at(-1);
  pen.font = `${WORD}px ${ink.mono}`;
  pen.textAlign = "left";
  let above = -Infinity;
  for (let layer = stack.layers - 1; layer >= 0 && place.column >= 30; layer--) {
    const y = yOf(state, stack, layer + 0.97), row = lensRows.get(layer);
    if (y - above < WORD || !row) continue;
    above = y;
    const words = row.map(([word]) => fitted(pen, isolated(word), place.column - 6));
    if (2 * words.filter((word, i) => word !== isolated(row[i][0])).length > row.length) continue;
    words.forEach((word, i) => {
      pen.fillStyle = css(ink.text, 0.14 + 0.8 * row[i][1]);
      pen.fillText(word, xOf(state, stack, i) + 5, y + 2);
    });
  }
}

// All that flows, on what does not: `share` of the pass from below, 1 for all of it.
export function paint(state) {
  const {canvas, place, ink, ground, data} = state;
  if (!place) return;
  canvas.style.width = `${place.width}px`;
  const [pen] = sized(canvas, place.width, place.height);
  const front = state.front;
  pen.drawImage(ground, 0, 0, place.width, place.height);
  if (front !== null) {
    const y = frontY(state);
    pen.fillStyle = css(ink.background, 0.72);
    pen.fillRect(GUTTER, place.ceiling - place.top, place.width, y - place.ceiling + place.top);
  }
  streams(state, pen);
  if (data.count === 1 && state.answers[0] && answered(state)) classes(state, pen);
  edges(state, pen);
  titles(state, pen);
  marks(state, pen);
  heldMarks(state, pen);
}

// A class is read from the positions that the head pools, each with its part.
function classes(state, pen) {
  const {flow, data, place, ink} = state, stack = flow.stacks.at(-1), {stream} = colours(state);
  const middle = place.stacks[stack.at].left + stack.count * place.column / 2;
  for (let i = 0; i < stack.count; i++) {
    const value = flow.starts ? flow.starts[i] : 1;
    if (value < state.least) continue;
    pen.strokeStyle = css(stream, opacity(value));
    pen.lineWidth = thickness(value);
    pen.beginPath();
    pen.moveTo(xOf(state, stack, i), place.ceiling);
    pen.quadraticCurveTo(xOf(state, stack, i), 30, middle, 26);
    pen.stroke();
  }
  pen.font = `600 13px ${ink.mono}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = css(ink.text);
  pen.fillText(fitted(pen, isolated(state.answers[0][0]), stack.count * place.column), middle, 12);
}

// How far the pass has come while it plays, in layers of the tallest stack.
export const deepest = ({flow}) => Math.max(...flow.stacks.map(stack => stack.layers));
const frontY = state => {
  const stack = state.flow.stacks.find(each => each.layers === deepest(state));
  return yOf(state, stack, Math.min(state.front, stack.layers));
};
const reached = ({front}, level) => front === null || level < front;
const answered = state => reached(state, deepest(state));

function streams(state, pen) {
  const {flow} = state, {stream} = colours(state);
  pen.lineCap = "butt";
  for (const stack of flow.stacks) {
    const n = stack.count;
    for (let layer = 0; layer < stack.layers; layer++) {
      if (!reached(state, layer)) break;
      const y0 = yOf(state, stack, layer), y1 = yOf(state, stack, layer + 1);
      for (let i = 0; i < n; i++) {
        const value = Math.max(stack.streams[layer * n + i], state.from ? 0 : stack.streams[(layer + 1) * n + i]);
        if (value < state.least) continue;
        const x = xOf(state, stack, i);
        pen.strokeStyle = css(stream, opacity(value));
        pen.lineWidth = thickness(value);
        pen.beginPath();
        pen.moveTo(x, y0);
        pen.lineTo(x, y1);
        pen.stroke();
      }
    }
  }
}

function edges(state, pen) {
  const {carried, front, place} = state, {attention} = colours(state);
  pen.lineCap = "round";
  pen.lineJoin = "round";
  for (const edge of carried.edges) {
    if (state.hides(edge) || !reached(state, edge.layer)) continue;
    const share = front === null ? 1 : Math.min(1, front - edge.layer), points = pointsOf(state, edge);
    if (share <= 0) continue;
    const path = new Path2D();
    trace(path, points);
    const own = edge === state.pointed?.edge || sameEdge(edge, state.picked), first = own || edge === state.strongest;
    pen.fillStyle = pen.strokeStyle = css(own ? state.ink.text : attention, first ? 0.95 : opacity(edge.value));
    pen.lineWidth = thickness(edge.value) + (first ? 1 : 0);
    if (share < 1) {
      const long = Math.abs(points[6] - points[0]) + Math.abs(points[7] - points[1]);
      pen.setLineDash([long * share, long * 2]);
    } else if (first || edge.value >= HEADED) arrowhead(pen, points, place.column / 2);
    pen.stroke(path);
    pen.setLineDash([]);
  }
}

// At the reader's end, beside its square.
function arrowhead(pen, [x0, , , , , , x1, y1], most) {
  const way = Math.sign(x1 - x0 || 1), x = x1 - 6 * way, wide = Math.min(4 + 0.8 * pen.lineWidth, most);
  pen.beginPath();
  pen.moveTo(x, y1);
  pen.lineTo(x - 2 * wide * way, y1 - wide);
  pen.lineTo(x - 2 * wide * way, y1 + wide);
  pen.fill();
}

// How much attention and feed-forward write: the side of a square is the root of their share.
function marks(state, pen) {
  const {flow, place} = state, {attention, mlp} = colours(state);
  for (const stack of flow.stacks) {
    const n = stack.count;
    for (let layer = 0; layer < stack.layers; layer++) {
      if (!reached(state, layer + 0.3)) break;
      const most = Math.min(place.column * 0.5, heightOf(state, stack, layer) * 0.42, 11);
      for (let i = 0; i < n; i++) {
        const value = stack.streams[(layer + 1) * n + i], strong = value >= state.least;
        const x = xOf(state, stack, i), alpha = strong ? 0.35 + 0.65 * Math.sqrt(value) : 0.18;
        for (const part of stack.parts) {
          const share = wroteIn(part, layer * n + i);
          square(pen, x, yOf(state, stack, layer + rowsAt(part)), most * Math.sqrt(share), attention, alpha);
        }
        if (stack.mlp) {
          const share = stack.mlp[layer * n + i];
          square(pen, x, yOf(state, stack, layer + MLP_AT), most * Math.sqrt(share), mlp, alpha);
        }
      }
    }
  }
}

function square(pen, x, y, side, colour, alpha) {
  if (!(side > 0.8)) return;
  pen.fillStyle = css(colour, alpha);
  pen.fillRect(x - side / 2, y - side / 2, side, side);
}

function heldMarks(state, pen) {
  const {flow, data, ink, place} = state, last = flow.stacks.at(-1), all = answered(state);
  pen.textBaseline = "middle";
  if (data.count > 1 && all) state.answers.forEach((known, at) => {
    if (known) answer(state, pen, at, at === state.asked && !state.from);
  });
  if (data.count > 1 && !state.from && all) {
    const x = xOf(state, last, state.asked);
    pen.fillStyle = css(ink.accent);
    pen.fillRect(x - place.column / 2 + 2, place.top, place.column - 4, 2);
  }
  if (state.from) {
    const x = xOf(state, flow.stacks[state.from.stack], state.from.token);
    pen.fillStyle = css(ink.accent);
    pen.fillRect(x - place.column / 2 + 2, place.floor + 3, place.column - 4, 2);
  }
}
