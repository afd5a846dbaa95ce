// The picture of the whole pass: what is pointed at, held and played.

import {closeInside, makeInside, openReached, readInside} from "./block.js";
import {backwards, carrying, flowOf, forwards, wroteIn} from "./flow.js";
import {colours, deepest, GUTTER, layout, leaning, paint, paintGround, pointsOf, xOf, yOf} from "./paint.js";
import {fades} from "../fading.js";
import {
  choiceOf, css, element, later, MOST, news, plain, publish, putInWords, say, taken, tellPage, three,
} from "../shared.js";

const LEAST = [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5], SECONDS = 4;
const SPEEDS = [["½ ×", 0.5], ["1 ×", 1], ["2 ×", 2]], NEAR = 6, MOST_ZOOM = 12, WRITING = 4, MOST_WRITTEN = 20;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Which head has the largest part in an edge, where several have one.
export const largestWrite = (part, e, heads) => heads > 1 ? `, most by head ${part.head[e]}` : "";

export const sameEdge = (a, b) => Boolean(a && b && a.part.name === b.part.name && a.layer === b.layer &&
  a.query === b.query && a.key === b.key);

function make(state) {
  const {root} = state, get = selector => root.querySelector(selector);
  Object.assign(state, {
    lensRows: new Map(), words: false, sink: true,
    zoom: 1, focus: 0.5, front: null, from: null, pointed: null, picked: null, open: null,
    heldAt: 0, heldFrom: null, leastAt: 2, speed: 1, hides: () => false,
  });
  const {canvas, stage} = state;
  makeInside(state);
  state.faded = fades(stage);
  stage.addEventListener("pointermove", event => point(state, hit(state, event)));
  stage.addEventListener("pointerleave", () => point(state, null));
  stage.addEventListener("click", event => hold(state, hit(state, event)));
  stage.addEventListener("wheel", event => wheel(state, event), {passive: false});
  const gone = new AbortController();
  document.addEventListener("wheel", event => {
    if (!root.isConnected) gone.abort();
    else if (!stage.contains(event.composedPath()[0])) state.elsewhere = event.timeStamp;
  }, {passive: true, signal: gone.signal});
  stage.addEventListener("keydown", event => walk(state, event));
  get(".play").addEventListener("click", () => state.playing && !state.writing ? pause(state) : play(state));
  get(".back").addEventListener("click", () => step(state, -1));
  get(".on").addEventListener("click", () => step(state, 1));
  const steppers = globalThis.explorerSteppers ??= new Set();
  for (const other of steppers) if (!other.root.isConnected) steppers.delete(other);
  // The whole pass is shown before its first layer and, where nothing else follows, after its last.
  const can = (by, grows) => state.place &&
    (by < 0 ? state.front !== null : grows || state.front === null || state.front <= deepest(state));
  steppers.add({root, can, step: by => step(state, by)});
  get(".write").addEventListener("click", () => {
    state.writing = !state.writing;
    state.left = MOST_WRITTEN;
    if (state.writing) goOn(state); else pause(state, null);
  });
  const speed = get(".speed");
  speed.replaceChildren(...SPEEDS.map(([name]) => element("option", "", name)));
  speed.selectedIndex = 1;
  speed.addEventListener("change", () => { state.speed = SPEEDS[speed.selectedIndex][1]; });
  const least = get(".least input");
  least.max = String(LEAST.length - 1);
  least.addEventListener("input", () => {
    state.leastAt = Number(least.value);
    follow(state);
    told(state);
  });
  get(".words input").addEventListener("change", event => {
    state.words = event.target.checked;
    reground(state);
  });
  get(".sink input").addEventListener("change", event => {
    state.sink = event.target.checked;
    tell(state);
    later(state, paint);
  });
  state.hides = edge => !state.sink && edge.key === 0 && edge.part.keys === edge.part.queries;
  state.chosen = event => {
    if (!state.data) return;
    if (event.detail?.startsWith?.(`${state.data.name}-late-`)) readLate(state);
    else if (event.detail?.startsWith?.(`${state.data.name}-inside`)) readInside(state);
    else if (event.detail === `${state.data.name}-why`) card(state);
    else if (choose(state)) follow(state);
  };
}

export function reground(state) {
  paintGround(state);
  later(state, paint);
}

// ---- what is asked ---------------------------------------------------------------------

// Follow the shares from what is pointed at, or else from what is held.
function follow(state) {
  const {flow, pointed} = state;
  state.least = LEAST[state.leastAt];
  state.from = pointed?.token ?? (pointed?.at === undefined ? state.heldFrom : null);
  state.asked = pointed?.at ?? state.heldAt;
  if (state.from) forwards(flow, state.from.stack, state.from.token);
  else backwards(flow, state.asked);
  state.carried = carrying(flow, state.least);
  putInWords(state.root, state.canvas, state.data.title, state.carried.edges.slice(-MOST).reverse().map(edge =>
    `${plain(...readsOf(state, edge))} in layer ${edge.layer}${largestWrite(edge.part, edge.e, state.data.heads)}: ${percent(edge.value)}`));
  const output = state.root.querySelector(".least output"), input = state.root.querySelector(".least input");
  input.value = String(state.leastAt);
  output.textContent = `${three(100 * state.least)} %`;
  options(state);
  tell(state);
  later(state, paint);
}

export function point(state, found) {
  if (JSON.stringify(kind(found)) === JSON.stringify(kind(state.pointed))) return;
  const before = state.pointed, asks = each => each?.token || each?.at !== undefined;
  state.pointed = found;
  state.canvas.style.cursor = found ? "pointer" : "";
  if (asks(before) || asks(found)) follow(state);
  else { tell(state); later(state, paint); }
}

// What makes two places of the pointer one.
export const kind = found => found && [found.token, found.at, found.node, found.layer, found.edge?.part.name,
  found.edge?.layer, found.edge?.query, found.edge?.key];

export function hold(state, found) {
  if (!found) return;
  const {node} = found;
  if (node && node.stack < state.flow.stacks.length - 1) found = {token: node};  // it has no answer
  if (found.at !== undefined) {
    state.heldAt = found.at;
    state.heldFrom = null;
  } else if (found.token) {
    const {stack, token} = found.token, before = state.heldFrom;
    state.heldFrom = before?.stack === stack && before.token === token ? null : {stack, token};
  } else if (found.edge) {
    const same = sameEdge(found.edge, state.picked);
    state.picked = same ? null : {...found.edge, head: found.edge.part.head[found.edge.e]};
    card(state);
  } else if (found.layer) {
    const same = JSON.stringify(found.layer) === JSON.stringify(state.open);
    state.open = same ? null : found.layer;
    state.opens = !same;
    layout(state);
    reground(state);
  } else if (found.node) {
    state.heldAt = state.data.count > 1 ? found.node.token : state.heldAt;
    state.heldFrom = null;
  }
  follow(state);
  told(state, found.layer ? 0 : undefined);  // an open layer waits for what is in it
}

export const told = (state, rest) => tellPage(state, [
  state.heldAt, state.heldFrom?.stack ?? -1, state.heldFrom?.token ?? -1, LEAST[state.leastAt],
  state.open?.stack ?? -1, state.open?.layer ?? -1, ...pickedAs(state),
], rest);

const partsOf = ({flow}) => flow.stacks.flatMap(stack => stack.parts.map(part => ({stack, part})));

const pickedAs = state => {
  const {picked} = state;
  if (!picked) return [-1, -1, -1, -1, -1];
  const at = partsOf(state).findIndex(each => each.part === picked.part);
  return [at, picked.layer, picked.query, picked.key, picked.head];
};

// The edge of a query and a key in a layer; one that was not sent has no share.
function edgeAt(state, at, layer, query, key, head) {
  const {stack, part} = partsOf(state)[at] ?? {}, row = layer * stack?.count + query;
  for (let e = part?.begins[row]; e < part?.begins[row + 1]; e++) {
    if (part.key[e] === key) return {part, stack, e, layer, query, key, head};
  }
  return null;
}

// What the page asks for; true when that is news.
export function choose(state) {
  const choice = news(state);
  if (!choice) return false;
  const [at, from, token, least, stack, layer, ...edge] = choice, {stacks} = state.flow;
  state.heldAt = at < state.data.count ? at : state.data.asked;
  state.heldFrom = stacks[from] && token < stacks[from].count ? {stack: from, token} : null;
  state.leastAt = Math.max(0, LEAST.findIndex(each => each >= least - 1e-9));
  state.open = stacks[stack] && layer < stacks[stack].layers && layer >= 0 ? {stack, layer} : null;
  state.picked = edge[0] < 0 ? null : edgeAt(state, ...edge);
  card(state);
  if (state.place) { layout(state); paintGround(state); }
  return true;
}

// ---- where the pointer is ----------------------------------------------------------------

function hit(state, event) {
  const {place, flow, stage, data} = state;
  if (!place) return null;
  const box = stage.getBoundingClientRect();
  const y = event.clientY - box.top, x = event.clientX - box.left + stage.scrollLeft + leaning(state, y);
  const stack = flow.stacks.find(each => {
    const {left} = place.stacks[each.at];
    return x >= left - (each.at ? 20 : GUTTER) && x < left + each.count * place.column;
  });
  if (!stack) return null;
  const token = Math.floor((x - place.stacks[stack.at].left) / place.column);
  const layer = layerAt(state, stack, y);
  if (token < 0) return layer < 0 ? null : {layer: {stack: stack.at, layer}};
  if (y > place.floor + 2) return {token: {stack: stack.at, token}};
  const isLast = stack === flow.stacks.at(-1);
  if (y < place.ceiling) return isLast && data.count > 1 ? {at: token} : null;
  const edge = near(state, x, y);
  return edge ? {edge} : {node: {stack: stack.at, token, layer}};
}

function layerAt(state, stack, y) {
  for (let layer = 0; layer < stack.layers; layer++) {
    if (y <= yOf(state, stack, layer) && y > yOf(state, stack, layer + 1)) return layer;
  }
  return -1;
}

// The strongest drawn edge near the pointer.
function near(state, x, y) {
  let best = null, least = NEAR;
  for (const edge of state.carried.edges) {
    if (state.hides(edge)) continue;
    const [x0, y0, , , bx, , x1, y1] = pointsOf(state, edge), [low, high] = x0 < x1 ? [x0, x1] : [x1, x0];
    let away = Infinity;
    if (x >= low - 2 && x <= high + 2) {
      const t = Math.min(1, Math.abs(x - x0) / Math.max(1, Math.abs(bx - x0)));
      away = Math.abs(y - (y0 + (y1 - y0) * (1 - (1 - t) ** 3)));
    }
    if (away <= least) { least = away; best = edge; }
  }
  return best;
}

function wheel(state, event) {
  if (event.timeStamp - (state.elsewhere ?? -1e9) < 500 || !state.place) return;
  const next = Math.min(MOST_ZOOM, Math.max(1, state.zoom * Math.exp(-event.deltaY / 240)));
  if (next === state.zoom || deepest(state) < 8) return;
  event.preventDefault();
  const {place} = state, y = event.clientY - state.stage.getBoundingClientRect().top;
  const stack = state.flow.stacks.find(each => each.layers === deepest(state));
  const layer = layerAt(state, stack, Math.min(place.floor, Math.max(place.ceiling + 1, y)));
  if (layer >= 0) state.focus = layer / Math.max(1, stack.layers - 1);
  state.zoom = next;
  layout(state);
  reground(state);
}

function walk(state, event) {
  const {data} = state, way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (way && data.count > 1) {
    state.heldAt = Math.max(0, Math.min(data.count - 1, state.heldAt + way));
    state.heldFrom = null;
  } else if (event.key === "ArrowUp") { step(state, 1); }
  else if (event.key === "ArrowDown") { step(state, -1); }
  else if (event.key === " ") { if (state.playing) pause(state); else play(state); }
  else if (event.key === "Escape" && state.open) { closeInside(state); }
  else if (event.key === "Enter") { openReached(state); }
  else if (event.key === "Escape") { state.heldFrom = state.picked = null; state.front = null; card(state); }
  else return;
  taken(event);
  state.pointed = null;
  follow(state);
  told(state);
}

// ---- it moves ------------------------------------------------------------------------------

function play(state, faster = 1) {
  if (still()) { step(state, 1); return; }
  const long = deepest(state), last = long + Math.max(1, long / 4);
  let at = state.front === null || state.front >= last ? -last / 4 : state.front, before = null;
  state.playing = true;
  buttons(state);
  const frame = now => {
    if (!state.playing || !state.root.isConnected) return;
    if (before !== null) at += (now - before) / 1000 / SECONDS * state.speed * faster * 1.25 * last;
    before = now;
    const step = state.front === null ? -1 : Math.ceil(state.front);
    state.front = Math.max(0, Math.min(at, last));
    if (Math.ceil(state.front) !== step) tell(state);
    paint(state);
    state.frames = (state.frames ?? 0) + 1;
    if (at < last) requestAnimationFrame(frame);
    else {
      pause(state, null);
      if (state.writing) goOn(state);
    }
  };
  requestAnimationFrame(frame);
}

// The picture of a bare address moves once, so that one sees what it is.
function isFirstSight() {
  const is = !globalThis.explorerPlayed && !location.search && !still();
  globalThis.explorerPlayed = true;
  return is;
}

function pause(state, front = state.front) {
  state.playing = false;
  state.front = front;
  buttons(state);
  tell(state);
  later(state, paint);
}

function step(state, way) {
  const last = deepest(state) + 1, {front} = state;
  const at = front === null ? (way > 0 ? 0 : last) : way > 0 ? Math.floor(front) + 1 : Math.ceil(front) - 1;
  pause(state, at < 0 || way > 0 && at > last ? null : Math.min(at, last));
}

// The likeliest tokens are appended one by one; each makes a new picture, which is played.
function goOn(state) {
  state.left -= 1;
  state.writing = state.left >= 0;
  if (state.writing) append(state, 0);
  buttons(state);
}

function append(state, option) {
  state.component.setTriggerValue("append", option);
}

function buttons(state) {
  const button = state.root.querySelector(".play"), write = state.root.querySelector(".write");
  button.textContent = state.playing && !state.writing ? "Pause" : "Play";
  write.textContent = state.writing ? state.data.words.stop : state.data.words.write;
  button.hidden = still();
  write.hidden = still() || !state.data.appends[0];
}

// ---- words -----------------------------------------------------------------------------------

const probability = p => three(p ?? NaN);
const percent = value => Number.isNaN(value) ? three(value) : `${three(100 * value)} %`;
const labelOf = ({flow}, stack, token) => flow.stacks[stack].tokens[token];

function tell(state) {
  const {pointed, root, data, carried} = state, line = root.querySelector(".sentence");
  const layer = state.front === null ? null : Math.ceil(state.front) - 1, isEarly = layer !== null && layer < deepest(state);
  line.classList.toggle("idle", !pointed);
  root.classList.toggle("early", isEarly);
  state.strongest = isEarly ? carried.edges.findLast(edge => edge.layer === layer && !state.hides(edge)) : null;
  if (isEarly && !pointed) layerSentence(state, line, layer);
  else if (pointed?.edge) edgeSentence(state, line, pointed.edge);
  else if (pointed?.node) nodeSentence(state, line, pointed.node);
  else if (pointed?.layer) {
    const isOpen = JSON.stringify(pointed.layer) === JSON.stringify(state.open);
    line.textContent = `Layer ${pointed.layer.layer}: click to ${isOpen ? "close" : "open"} it.`;
  } else if (state.from) {
    say(line, data.words.forward, {token: labelOf(state, state.from.stack, state.from.token)});
  } else if (data.hasAnswers) {
    const [label, options] = state.answers[state.asked] ?? ["…", [["", null]]];
    say(line, layer === null ? data.words.back : data.words.answer, {token: label, value: `${data.score === "value" ? "value" : "p"} = ${probability(options[0][1])}`});
  } else line.textContent = data.words.idle;
  const drawn = carried.edges.filter(edge => !state.hides(edge)).length;
  const strongest = carried.edges.at(-1), points = state.place && strongest && pointsOf(state, strongest);
  root.dataset.strongest = points ? `${(points[4] + points[6]) / 2} ${points[7]}` : "";
  root.querySelector(".notes").textContent =
    `${drawn.toLocaleString("en-US")} of ${data.edges.toLocaleString("en-US")} lines between two tokens ` +
    `are drawn (importance ≥ ${percent(state.least)}).${unfollowed(state)}`;
}

// What the shares that were too small to be sent carry; nothing where all were sent.
function unfollowed(state) {
  const {data, flow, from} = state;
  if (!data.least || from) return "";
  const entered = flow.stacks.reduce((sum, stack) =>
    sum + stack.streams.subarray(0, stack.count).reduce((a, b) => a + b, 0), 0);
  return ` Shares under ${percent(data.least)} are not followed: ${percent(Math.max(0, 1 - entered))} of the answer.`;
}

// Who reads whom, with positions: a step of the decoder is named by what it writes, once that is known.
function readsOf(state, {part, stack, key, query}, weight = "") {
  const names = {key: labelOf(state, part.keys, key), query: labelOf(state, stack.at, query), writes: stack.writes[query]};
  const {words} = state.data, isCross = part.keys !== part.queries;
  const reader = isCross ? names.writes ? words.writing : words.after : `${weight && "At "}${words.at}`;
  const text = reader + (weight ? words.puts : isCross ? words.crosses : words.reads);
  return [text.replace("#key", key).replace("#query", query), {...names, weight}];
}

// While the pass runs: the tokens enter, then each layer and its strongest line.
function layerSentence(state, line, layer) {
  const {words} = state.data, last = deepest(state) - 1, {strongest} = state;
  if (layer < 0) { line.textContent = words.enter; return; }
  const [text, names] = strongest ? readsOf(state, strongest) : ["", {}];
  say(line, `Layer ${layer}${last ? ` (0–${last})` : ""}${text ? `, strongest line: ${text}` : ": each token reads others"}.`, names);
}

function edgeSentence(state, line, edge) {
  const largest = largestWrite(edge.part, edge.e, state.data.heads), {from, data} = state;
  const [text, names] = readsOf(state, edge);
  say(line, `Layer ${edge.layer}: ${text}. ${percent(edge.value)} of ${from ? data.words.traced : data.words.part}${largest}`, {
    ...names, from: from && labelOf(state, from.stack, from.token),
  });
}

function nodeSentence(state, line, {stack: at, token, layer}) {
  const stack = state.flow.stacks[at], row = layer * stack.count + token;
  const word = at === state.flow.stacks.length - 1 ? state.lensRows.get(layer)?.[token] : undefined;
  const wrote = stack.parts.map(part => `${part.name.endsWith("cross_attn") ? "cross-attention" : "attention"} ` +
    percent(wroteIn(part, row)));
  if (stack.mlp) wrote.push(`feed-forward ${percent(stack.mlp[row])}`);
  wrote[0] = wrote[0].replace(" ", " wrote ");
  say(line, `{token}${stack.writes[token] ? " (next: {writes})" : ""} in layer {layer}: ${wrote.join(", ")}, each a share of the vector right after it` + (word ? ". The lens reads {word} {value}" : ""), {
    token: stack.tokens[token], writes: stack.writes[token], layer: String(layer), word: word?.[0], value: word && probability(word[1]),
  });
}

function options(state) {
  const {root, data} = state, asked = root.querySelector(".asked"), list = root.querySelector(".options");
  const found = state.answers[state.asked];
  if (!found) { asked.textContent = ""; list.replaceChildren(); return; }
  const last = state.flow.stacks.at(-1);
  say(asked, data.behind, {token: last.tokens[state.asked]});
  const isLast = state.asked === data.count - 1;
  list.replaceChildren(...found[1].map(([label, p], at) => {
    const appends = isLast && data.appends[at];
    const row = element(appends ? "button" : "div", "option"), bar = element("span", "bar");
    if (appends) {
      row.type = "button";
      row.title = data.words.append;
      row.addEventListener("click", () => append(state, at));
    }
    bar.style.setProperty("--share", String(p ?? 0));
    bar.classList.toggle("none", data.score === "value");
    row.append(element("bdi", "token", label), bar, element("span", "value", probability(p)));
    return row;
  }));
}

// What was picked, why its head attends there, and the links to the pages that show it in full.
function card(state) {
  const holder = state.root.querySelector(".card"), {picked} = state;
  state.root.querySelector(".hint").hidden = Boolean(picked);
  if (!picked) { holder.replaceChildren(); return; }
  const {head, part, layer, query, key} = picked, {data} = state, sent = choiceOf(`${data.name}-why`) ?? [];
  const isOfThis = String(sent.slice(0, -2)) === String([data.of, part.name, layer, head, query, key]);
  const title = element("div", "title", `Layer ${layer}, head ${head}`);
  const what = element("div", "what"), more = element("details", "more"), amount = element("div", "amount");
  const [text, names] = readsOf(state, picked, isOfThis ? sent.at(-2) : "");
  say(what, text[0].toUpperCase() + text.slice(1), names);
  amount.textContent = `${percent(part.share[picked.e])} of ${data.words.share}${data.heads > 1 ? ", all heads together" : ""}.`;
  more.open = Boolean(holder.querySelector("details")?.open);
  more.append(element("summary", "", "Why"), amount, element("div", "why", isOfThis ? sent.at(-1) : ""));
  const links = data.links.map(([page, name]) => {
    const button = element("button", "", name);
    button.type = "button";
    button.addEventListener("click", () => go(state, page, {part: part.name, layer, head, query, key}));
    return button;
  });
  holder.replaceChildren(title, what, more, ...links);
}

export const go = (state, page, where) => state.component.setTriggerValue("go", {page, ...where});

// ---- running -----------------------------------------------------------------------------------

// What comes behind the picture: the other answers, and the rows of the lens.
function readLate(state) {
  const choices = globalThis.explorerChoices ?? new Map(), {data} = state;
  for (const [name, [value]] of choices) {
    if (typeof name !== "string" || !name.startsWith(`${data.name}-late-`) || value?.[0] !== data.of) continue;
    const [, first, rows] = value;
    if (first < 0) rows.forEach((answer, at) => { state.answers[at] = answer; });
    else rows.forEach((row, at) => state.lensRows.set(first + at, row));
  }
  if (!state.place) return;
  if (!state.playing) options(state);
  reground(state);
}

function show(state) {
  const {data, stage, root} = state;
  const {fresh} = state;
  if (fresh) {
    state.fresh = false;
    state.flow = flowOf(data);
    state.lensRows = new Map();
    Object.assign(state, {
      pointed: null, picked: null, open: null, heldFrom: null, front: null, playing: false,
      heldAt: data.asked, agreed: undefined,
    });
    state.answers = Array(data.count).fill(null);
    for (const [at, ...answer] of data.answers) state.answers[at] = answer;
    readLate(state);
    readInside(state);
    card(state);
  }
  const grew = state.writing && state.of !== data.of;
  state.of = data.of;
  choose(state);
  buttons(state);
  for (const [name, colour] of Object.entries(colours(state))) {
    root.querySelector(`.key.${name}`).style.setProperty("--key", css(colour));
  }
  root.querySelector(".words").hidden = !data.hasLens;
  for (const words of root.querySelectorAll(".sink")) words.hidden = !data.hasSink;
  if (!stage.clientWidth) return;
  layout(state);
  paintGround(state);
  state.canvas.setAttribute("aria-label", data.title);
  follow(state);
  paint(state);
  if (fresh && isFirstSight()) play(state);
  if (fresh) stage.scrollLeft = xOf(state, state.flow.stacks.at(-1), state.heldAt) - stage.clientWidth / 2;
  state.faded();
  if (!grew) return;
  if (data.appends[0]) play(state, WRITING);
  else state.writing = false;
}

publish("pass_map", ".pass-map", make, show);
