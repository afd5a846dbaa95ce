// How a circuit is drawn.

import {bends, DOT, fontOf, GUTTER, isDot, LETTER, PILL, TOP} from "./place.js";
import {CHIP, SLANTED, tokenLabel} from "../columns.js";
import {css, fitted, isolated, mixed, over, sized} from "../shared.js";

const DASH = [7, 4], FAINT = 0.1;

export const signs = ({ink}) => ({for: ink.diverging[222], against: ink.diverging[32]});
const sizeOfLine = (state, score) => Math.sqrt(Math.abs(score) / state.largest);

// What stands out: all of it where nothing is pointed at.
function isLit(state, line) {
  const {shown} = state;
  if (!shown) return true;
  return shown.part === undefined ? line.edge === shown.edge : line.from.part === shown.part || line.to.part === shown.part;
}

// On the way from where a part stood before, while it moves.
export function paint(state) {
  const {items, place, moved = 1} = state;
  if (!place) return;
  const places = items.map(({x, y}) => [x, y]), ease = moved * (2 - moved);
  if (moved < 1) for (const item of items) if (item.before) {
    item.x += (1 - ease) * (item.before[0] - item.x);
    item.y += (1 - ease) * (item.before[1] - item.y);
  }
  painted(state);
  items.forEach((item, at) => { [item.x, item.y] = places[at]; });
}

function painted(state) {
  const {canvas, place, items} = state;
  Object.assign(canvas.style, {width: `${place.width}px`, height: `${place.height}px`});
  const [pen] = sized(canvas, place.width, place.height);
  pen.textBaseline = "middle";
  ground(state, pen);
  const parts = new Set(), lit = state.lines.filter(line => isLit(state, line));
  for (const {from, to} of lit) for (const item of [from, to]) parts.add(item);
  if (state.shown?.part !== undefined) items.forEach(item => item.part === state.shown.part && parts.add(item));
  // What is read at a key goes on to where its head writes.
  for (const {from, to} of state.moves) if (parts.has(from)) parts.add(to);
  // What is dim lies below, and of the others the strongest above.
  const order = [...state.lines].reverse().sort((a, b) => isLit(state, a) - isLit(state, b));
  attention(state, pen, parts);
  for (const line of order) stroke(state, pen, line);
  for (const item of items) part(state, pen, item, !state.shown || parts.has(item));
  tokens(state, pen);
}

function ground(state, pen) {
  const {place, ink, data} = state, right = place.bands.at(-1).left + place.bands.at(-1).wide;
  place.bands.forEach(({left, wide, middle, used}) => {
    if (used) {
      pen.fillStyle = css(ink.text, ink.dark ? 0.05 : 0.032);
      pen.beginPath();
      pen.roundRect(left + 2, TOP - 2, wide - 4, place.floor - TOP + 4, 6);
      pen.fill();
    } else {
      pen.fillStyle = css(ink.border, 0.9);
      pen.fillRect(Math.round(middle), TOP, 1, place.floor - TOP);
    }
  });
  pen.textAlign = "right";
  for (const row of place.rows) {
    const y = place.floor - (row.low + row.high) / 2, top = place.floor - row.high;
    pen.fillStyle = css(ink.border, 0.75);
    pen.fillRect(GUTTER - 4, Math.round(top), right - GUTTER + 4, 1);
    pen.font = `12px ${ink.sans}`;
    pen.fillStyle = css(ink.muted, row.lines.length ? 1 : 0.8);
    pen.fillText(row.first === row.last ? String(row.first) : `${row.first}–${row.last}`, GUTTER - 9, y);
  }
  pen.fillStyle = css(ink.border, 0.75);
  pen.fillRect(GUTTER - 4, Math.round(place.floor), right - GUTTER + 4, 1);
}

// At the lower end of what is in sight.
function tokens(state, pen) {
  const {place, ink, data, stage} = state, other = new Map(data.other);
  const end = Math.min(place.height, stage.scrollTop + stage.clientHeight), y = end - place.bottom + 6;
  if (end < place.height - 1) {
    pen.fillStyle = css(ink.background);
    pen.fillRect(0, y - 6, place.width, place.bottom);
  }
  let run = 0;
  place.bands.forEach((band, at) => {
    const {middle, wide} = band;
    run = band.thin ? run + 1 : 0;
    if (run) {
      if (!place.bands[at + 1]?.thin) runOf(pen, ink, run, band.left + wide - run * wide / 2, y + CHIP / 2 - 2, run * wide);
      return;
    }
    const slants = place.slants && !band.used;
    tokenLabel(pen, ink, data.tokens[at], data.muted.includes(at), middle, y, slants ? 0 : wide - 4);
    if (!other.has(at)) return;
    pen.font = `12px ${ink.mono}`;
    pen.fillStyle = css(ink.accent);
    pen.textAlign = "center";
    const needed = slants ? Math.min(SLANTED, 12 + 0.85 * pen.measureText(data.tokens[at]).width) : CHIP;
    const below = y + Math.max(CHIP, needed) + 4;
    pen.fillText(fitted(pen, isolated(`⇄ ${other.get(at)}`), Math.max(wide, 60)), middle, below);
  });
}

// Columns side by side in which nothing stands.
function runOf(pen, ink, run, x, y, wide) {
  const text = `${run} tokens`;
  pen.font = `12px ${ink.sans}`;
  pen.fillStyle = css(ink.muted);
  pen.textAlign = "center";
  pen.fillText(pen.measureText(text).width < wide ? text : "…", x, y);
}

function stroke(state, pen, line) {
  const {score} = line, size = sizeOfLine(state, score), colours = signs(state), lit = isLit(state, line);
  const points = bends(line);
  pen.beginPath();
  pen.moveTo(points[0], points[1]);
  pen.bezierCurveTo(...points.slice(2));
  pen.lineWidth = 1 + 7 * size + (lit && state.shown ? 0.6 : 0);
  pen.lineCap = "butt";
  pen.setLineDash(score < 0 ? DASH : []);
  pen.strokeStyle = css(score < 0 ? colours.against : colours.for, lit ? 0.4 + 0.55 * size : FAINT);
  pen.stroke();
  pen.setLineDash([]);
}

// Below its row, so that it passes under what stands between; what comes from one place fans out.
function attention(state, pen, parts) {
  const {ink, moves, place} = state, most = Math.max(1e-12, ...moves.map(move => move.size));
  const fans = new Map();
  for (const {from, to, size} of moves) {
    const fan = `${from.layer}@${from.at}`, rank = fans.get(fan) ?? 0;
    fans.set(fan, rank + 1);
    const lit = !state.shown || (parts.has(from) && parts.has(to) && (state.shown.part ?? from.part) === from.part);
    const strong = Math.sqrt(size / most), way = Math.sign(to.x - from.x) || 1;
    const x0 = from.x + way * from.width / 2, tip = to.x - way * to.width / 2, x1 = tip - way * 6;
    const wide = Math.abs(x1 - x0), sag = Math.min(place.line * 0.46, 5 + wide * 0.03 + 2.2 * rank);
    const bend = Math.min(40, wide * 0.35) * way;
    pen.strokeStyle = pen.fillStyle = css(ink.text, lit ? 0.28 + 0.3 * strong : FAINT);
    pen.lineWidth = 1 + 2.2 * strong;
    pen.beginPath();
    pen.moveTo(x0, from.y);
    if (wide < 14) pen.lineTo(x1, to.y);
    else pen.bezierCurveTo(x0 + bend, from.y + sag, x1 - bend, to.y + sag, x1, to.y + 1);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(tip, to.y);
    pen.lineTo(x1 - way, to.y - 3);
    pen.lineTo(x1 - way, to.y + 4.5);
    pen.fill();
  }
}

// What is dim still covers the lines behind it.
function part(state, pen, item, lit) {
  const {ink, place} = state, dim = lit ? 1 : 0.3;
  const [wide, high] = [item.width, isDot(item) ? DOT : Math.min(item.how === "port" ? LETTER : PILL, place.pill)];
  pen.beginPath();
  if (item.kind === "embedding") pen.arc(item.x, place.floor, 4, 0, 7);
  else if (item.kind !== "logits") {
    const round = item.kind === "head" ? high / 2 : 2;
    pen.roundRect(item.x - wide / 2, item.y - high / 2, wide, high, round);
    pen.fillStyle = css(ink.background);
    pen.fill();
  }
  pen.globalAlpha = dim;
  if (item.kind === "logits") output(state, pen, item);
  else if (item.kind === "embedding" || isDot(item)) {
    pen.fillStyle = css(isDot(item) ? ink.muted : ink.text);
    pen.fill();
  } else if (item.how === "port") port(state, pen, item);
  else block(state, pen, item, high, dim);
  pen.globalAlpha = 1;
}

function output({ink, data, place}, pen, {x, reach}) {
  pen.font = `600 12px ${ink.mono}`;
  pen.fillStyle = css(ink.text);
  pen.textAlign = "center";
  const text = fitted(pen, isolated(data.output), Math.max(2 * reach, 240)), half = pen.measureText(text).width / 2 + 4;
  pen.fillText(text, Math.max(half, Math.min(x, place.width - half)), 11);
  pen.fillRect(x - reach, TOP - 11, 2 * reach, 2);
}

// A head is round, a feed-forward layer square; as full of colour as its own score.
function block(state, pen, item, high, dim) {
  const {ink, data} = state, score = data.parts[item.part][4] ?? 0, left = item.x - item.width / 2;
  const share = Math.sign(score) * Math.sqrt(Math.min(1, Math.abs(score) / state.largestPart));
  const fill = ink.diverging[Math.round(127 + 100 * share)], q = item.reads.has("q") ? LETTER : 0;
  const isMeant = state.held?.part === item.part || state.shown?.part === item.part;
  pen.fillStyle = css(fill);
  pen.fill();
  pen.strokeStyle = css(isMeant ? ink.accent : ink.text, isMeant ? 1 : 0.55);
  pen.lineWidth = isMeant ? 2.4 : 1;
  pen.setLineDash(score < 0 ? [3, 2] : []);
  pen.stroke();
  pen.setLineDash([]);
  pen.fillStyle = over(mixed(ink.background, fill, dim));
  pen.textAlign = "center";
  pen.font = fontOf(ink, high);
  pen.fillText(item.title, item.x + q / 2, item.y + 0.5);
  if (!q) return;
  pen.font = letterFont(ink, high);
  pen.fillText("q", left + q / 2 + 2, item.y);
  pen.fillRect(left + q + 1, item.y - high / 2 + 3, 1, high - 6);
}

const letterFont = (ink, high) => `italic ${Math.min(12, high - 1)}px ${ink.sans}`;

// What is read at a key: k, v or both.
function port(state, pen, item) {
  const {ink, place} = state;
  pen.strokeStyle = css(ink.text, 0.55);
  pen.lineWidth = 1;
  pen.stroke();
  pen.font = letterFont(ink, place.pill);
  pen.fillStyle = css(ink.text);
  pen.textAlign = "center";
  pen.fillText([...item.reads].sort().join(""), item.x, item.y);
}
