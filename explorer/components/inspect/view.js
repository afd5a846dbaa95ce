// Tokens in two halves. Above: the attention of the pointed token to it; below: its attention
// to the pointed one. With one strip every token has both, with two each has its own.

import {framed} from "../framing.js";
import {
  ABSENT, bit, css, element, INFINITE, joined, later, needs, news, pinned, plain, publish, ramp, same,
  sent, singlesOf, taken, tellLine, tellPage, unknown, valueOf,
} from "../shared.js";

const ROWS = 0, COLUMNS = 1;

function make(state) {
  const {root, stage} = state;
  state.halves = ["above", "below"].map(name => root.querySelector(`.${name} .said`));
  state.hovered = state.held = null;
  state.touched = [];
  stage.addEventListener("pointerover", event => hover(state, chipOf(event)));
  stage.addEventListener("pointerleave", () => hover(state, null));
  stage.addEventListener("click", event => {
    const chip = chipOf(event);
    if (chip) hold(state, same(chip, state.held) ? null : chip);
  });
  stage.addEventListener("keydown", event => walk(state, event));
  state.chosen = () => { if (state.data && hear(state)) later(state, paint); };
}

function chipOf(event) {
  const chip = event.target.closest?.(".chip");
  return chip ? {side: Number(chip.dataset.side), at: Number(chip.dataset.at)} : null;
}

function hover(state, token) {
  if (same(token, state.hovered)) return;
  state.hovered = token;
  later(state, paint);
}

function hold(state, token) {
  state.held = token;
  const spoken = state.root.querySelector(".spoken");
  if (token) {
    const {above, below} = halves(state, token);
    spoken.textContent = [above, below].filter(Boolean)
      .map(half => `${plain(half.lead, {token: half.label})} ${listed(state, half)}`).join(". ");
  } else spoken.textContent = "Nothing is pinned";
  tellPage(state, token ? [token.side, token.at] : []);
  later(state, paint);
}

// Hold the token that the page asks for; true when that is news.
function hear(state) {
  const choice = state.data.tells && news(state);
  if (!choice) return false;
  const [side, at] = choice;
  state.held = state.chips[side]?.[at] ? {side, at} : null;
  return true;
}

// ---- keys ---------------------------------------------------------------------------

// The chip of the next line that stands nearest, in the same strip or in the other.
function vertically(state, from, down) {
  const here = state.chips[from.side][from.at].getBoundingClientRect();
  const x = here.left + here.width / 2;
  let best = null, least = Infinity;
  state.chips.forEach((strip, side) => strip.forEach((chip, at) => {
    const box = chip.getBoundingClientRect(), gap = (box.top - here.top) * down;
    const cost = gap * 1e4 + Math.abs(box.left + box.width / 2 - x);
    if (gap > 4 && cost < least) [best, least] = [{side, at}, cost];
  }));
  return best;
}

function walk(state, event) {
  const chip = chipOf(event), from = chip || state.held;
  if (event.key === "Escape") {
    if (!state.held) return;
    hold(state, null);
  } else if (from) {
    const last = state.chips[from.side].length - 1, step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const down = {ArrowUp: -1, ArrowDown: 1}[event.key], end = {Home: 0, End: last}[event.key];
    let next;
    if (step) next = {side: from.side, at: Math.max(0, Math.min(last, from.at + step))};
    else if (down) next = vertically(state, from, down) || from;
    else if (end !== undefined) next = {side: from.side, at: end};
    else return;
    hold(state, next);
    focus(state, next);
  } else return;
  state.hovered = null;
  taken(event);
}

function focus(state, {side, at}) {
  for (const strip of state.chips) for (const chip of strip) chip.tabIndex = -1;
  state.chips[side][at].tabIndex = 0;
  state.chips[side][at].focus();
}

// ---- the two halves -----------------------------------------------------------------

const known = ({data, codes, singles}, row, column) => {
  const i = row * data.columns.length + column;
  if (data.planes.allowed && !bit(data.planes.allowed, i)) return NaN;
  return codes[i] >= INFINITE ? NaN : singles ? singles[i] : valueOf(codes[i], data);
};

const isUnknown = ({data, codes}, row, column) => {
  const i = row * data.columns.length + column;
  return codes[i] === ABSENT && (!data.planes.allowed || Boolean(bit(data.planes.allowed, i)));
};

// One direction from a token: a value for each partner, the largest, the strongest few.
function half(state, token, looks) {
  const {data} = state, count = (looks ? data.columns : data.rows).length;
  const values = Array.from({length: count}, (_, i) =>
    looks ? known(state, token.at, i) : known(state, i, token.at));
  const order = values.map((_, i) => i).filter(i => values[i] > 0)
    .sort((a, b) => values[b] - values[a]);
  const unknown = values.map((_, i) => looks ? isUnknown(state, token.at, i) : isUnknown(state, i, token.at));
  return {
    values, unknown, nothing: unknown.includes(true) ? "not a number" : looks ? "nothing" : "no token", most: order.length ? values[order[0]] : 0,
    top: order.slice(0, data.strongest), more: Math.max(0, order.length - data.strongest),
    side: data.same || !looks ? ROWS : COLUMNS, partners: looks ? data.columns : data.rows,
    label: (token.side === COLUMNS ? data.columns : data.rows)[token.at],
    lead: looks ? "{token} attends to" : "{token} is attended to by", looks,
  };
}

function halves(state, token) {
  const {data} = state;
  return {
    above: data.same || token.side === ROWS ? half(state, token, true) : null,
    below: data.same || token.side === COLUMNS ? half(state, token, false) : null,
  };
}

const listed = (state, {top, partners, values, more, nothing}) => top.length
  ? top.map(i => `${partners[i]} ${sent(state, values[i])}`).join(", ") +
    (more ? ` and ${more} more` : "")
  : nothing;

function describe(state, line, half) {
  if (!half) return line.replaceChildren();
  line.replaceChildren(half.looks ? "attends to" : "attended to by");
  for (const i of half.top) {
    const partner = element("span", "partner");
    partner.append(element("bdi", "token", half.partners[i]), element("span", "place", String(i)),
      element("span", "value", sent(state, half.values[i])));
    line.append(partner);
  }
  if (!half.top.length) line.append(` ${half.nothing}`);
  if (half.more) line.append(element("span", "more", `${half.more} more`));
}

// ---- painting -------------------------------------------------------------------------

function shade(state, half, band) {
  if (!half) return;
  const {ink} = state, colours = band ? ink.diverging : ink.sequential, end = colours.length - 1;
  half.values.forEach((value, i) => {
    const chip = state.chips[half.side][i], part = chip.querySelector(band ? ".low" : ".high");
    part.classList.toggle("off", Number.isNaN(value) && !half.unknown[i]);
    const share = half.most ? Math.max(0, value / half.most) : 0;
    // Below zero the diverging colours run back from the middle; the smallest weight is a step.
    const step = share > 0 ? Math.max(3, Math.round(share * (band ? end / 2 : end))) : 0;
    const colour = band ? colours[end / 2 - step] ?? colours[0] : colours[step];
    part.style.backgroundColor = half.unknown[i] ? css(unknown(ink)) : share > 0 ? css(colour) : "";
    state.touched.push(part);
  });
}

function paint(state) {
  for (const part of state.touched) {
    part.style.backgroundColor = "";
    part.classList.remove("off");
  }
  state.touched = [];
  const {data, root, held} = state, token = state.hovered || held;
  for (const chip of root.querySelectorAll(".chip.shown")) chip.classList.remove("shown", "held");
  root.querySelectorAll('[aria-pressed="true"]').forEach(c => c.setAttribute("aria-pressed", "false"));
  if (held) state.chips[held.side][held.at].setAttribute("aria-pressed", "true");
  if (!token) {
    tellLine(root, data.words);
    state.halves[0].textContent = data.words.above;
    state.halves[1].textContent = data.words.below;
    return;
  }
  const chip = state.chips[token.side][token.at], {above, below} = halves(state, token);
  chip.classList.add("shown");
  chip.classList.toggle("held", same(token, held));
  shade(state, above, 0);
  shade(state, below, 1);
  const list = token.side === COLUMNS ? data.columns : data.rows;
  const parts = {token: list[token.at]}, line = tellLine(
    root, data.words, [`{token} is token ${token.at} of ${list.length}`, parts]);
  const tops = [above, below].filter(half => half?.most).map(half =>
    `${half.looks ? "upper" : "lower"} half up to ${sent(state, half.most)}`);
  if (tops.length) line.append(element("span", "where", ` · ${tops.join(", ")}`));
  if (!state.hovered) line.append(pinned(" · "));
  describe(state, state.halves[0], above);
  describe(state, state.halves[1], below);
}

// ---- running --------------------------------------------------------------------------

function chip(label, side, at, muted) {
  const button = element("button", muted ? "chip muted" : "chip");
  button.type = "button";
  button.title = label;
  button.dataset.side = side;
  button.dataset.at = at;
  button.tabIndex = -1;
  button.setAttribute("aria-pressed", "false");
  const [high, name, low] = [["span", "band high"], ["bdi", "label", label], ["span", "band low"]]
    .map(parts => element(...parts));
  button.append(high, name, low);
  const item = element("li");
  item.append(button);
  return [item, button];
}

function strip(state, list, side) {
  const muted = new Set(state.data.muted[side]), items = list.map((l, at) => chip(l, side, at, muted.has(at)));
  const row = element("ol", "strip");
  row.setAttribute("aria-label", state.data.words.strip);
  row.append(...framed(state.data.groups[side], items.map(([item]) => item)));
  state.chips[side] = items.map(([, button]) => button);
  return row;
}

function build(state) {
  const {data, stage} = state;
  state.chips = [];
  state.touched = [];
  const parts = data.same ? [strip(state, data.rows, ROWS)] : [
    element("div", "name", `${data.words.row}: ${data.rows.length} tokens`), strip(state, data.rows, ROWS),
    element("div", "name", `${data.words.column}: ${data.columns.length} tokens`),
    strip(state, data.columns, COLUMNS)];
  stage.classList.toggle("two", !data.same);
  stage.replaceChildren(...parts);
  const first = state.chips.flat()[0];
  if (first) first.tabIndex = 0;
}

function show(state) {
  const {data, ink, root, stage} = state;
  if (state.fresh) {
    state.fresh = false;
    state.codes = joined(data.planes.values);
    state.singles = singlesOf(data);
    const labels = JSON.stringify([data.rows, data.columns, data.muted, data.groups, data.same]);
    if (labels !== state.labels) build(state);
    state.labels = labels;
    const inside = token => token && state.chips[token.side]?.[token.at];
    if (!inside(state.held)) state.held = null;
    state.hovered = null;
    hear(state);
    root.querySelector(".notes").textContent = `Each half has its own colour scale; the ` +
      `${data.strongest} strongest are named${data.masked ? "; hatched is masked" : ""}` +
      `${data.unknown ? "; grey is not a number" : ""}.`;
  }
  const middle = (ink.diverging.length - 1) / 2;
  root.style.setProperty("--above", ramp(ink.sequential));
  root.style.setProperty("--below", ramp(ink.diverging.slice(0, middle + 1).reverse()));
  paint(state);
  const last = stage.lastElementChild;
  if (last) needs(state, last.offsetTop + last.offsetHeight + 8);
}

publish("inspect", ".inspect", make, show);
