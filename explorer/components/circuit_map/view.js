// A circuit: how much of it is drawn, what is pointed at, what is chosen.

import {paint, signs} from "./paint.js";
import {bends, layout, spread, TOP} from "./place.js";
import {fades} from "../fading.js";
import {choiceOf, css, element, news, publish, taken, tellPage, three, upTo} from "../shared.js";

const NEAR = 6, LISTED = 5, MOVING = 150;

function make(state) {
  const {root, stage} = state;
  Object.assign(state, {range: root.querySelector("input"), shown: null, faded: fades(stage)});
  stage.addEventListener("scroll", () => paint(state), {passive: true});
  stage.addEventListener("pointermove", event => point(state, hit(state, event)));
  stage.addEventListener("pointerenter", () => { state.follows = false; });
  stage.addEventListener("pointerleave", () => point(state, null));
  stage.addEventListener("click", event => choosePart(state, hit(state, event)));
  state.canvas.addEventListener("keydown", event => walk(state, event));
  state.canvas.addEventListener("blur", () => point(state, null));
  state.range.addEventListener("input", () => {
    state.count = state.data.counts[Number(state.range.value)];
    counted(state);
    move(state);
    tellChoice(state);
  });
  state.chosen = () => state.data && (choose(state) ? counted(state) : card(state));
}

// ---- what is meant ---------------------------------------------------------------------

function hit(state, event) {
  const box = state.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const inside = item => item.width
    ? Math.abs(x - item.x) <= item.width / 2 + 1 && Math.abs(y - item.y) <= state.place.pill / 2
    : Math.abs(x - item.x) <= 40 && (item.kind === "logits" ? y < TOP - 8 : y > item.y - 4);
  const item = state.items?.find(inside);
  if (item) return {part: item.part};
  let best = null, least = NEAR;
  for (const line of state.lines ?? []) {
    const away = distance(bends(line), x, y);
    if (away < least) { least = away; best = {edge: line.edge}; }
  }
  return best;
}

function distance([x0, y0, ax, ay, bx, by, x1, y1], x, y) {
  let least = Infinity;
  for (let step = 0; step <= 24; step++) {
    const t = step / 24, s = 1 - t, a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t;
    least = Math.min(least, Math.hypot(a * x0 + b * ax + c * bx + d * x1 - x, a * y0 + b * ay + c * by + d * y1 - y));
  }
  return least;
}

function point(state, target) {
  if (JSON.stringify(target) === JSON.stringify(state.pointed ?? null)) return;
  state.pointed = target;
  state.canvas.style.cursor = target ? "pointer" : "";
  tell(state);
}

// The page hears of a head or of an edge; what is chosen stays on the card.
function choosePart(state, target) {
  const {data} = state, isSame = JSON.stringify(target) === JSON.stringify(state.held);
  if (!target && !state.held) return;
  state.held = isSame ? null : target;
  tell(state);
  if (state.held) speak(state, state.held, " Picked.");
  if (target?.edge !== undefined || !target || data.parts[target.part][0] === "head") tellChoice(state);
}

const tellChoice = state => {
  const {held, data} = state, [kind, layer, head] = data.parts[held?.part] ?? [];
  tellPage(state, [state.count, ...(kind === "head" ? [layer, head] : [-1, -1]), held?.edge ?? -1]);
};

function choose(state) {
  const choice = news(state), {data} = state;
  if (!choice) return false;
  const [count, layer, head, edge] = choice;
  state.count = count;
  const part = data.parts.findIndex(([kind, at, of]) => kind === "head" && at === layer && of === head);
  state.held = data.edges[edge] ? {edge} : part >= 0 ? {part} : null;
  return true;
}

function walk(state, event) {
  const {items, data, count} = state, at = state.pointed ?? state.held;
  const upDown = {ArrowUp: 1, ArrowDown: -1}[event.key], sideways = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (upDown) {
    const rank = {embedding: -1, head: 0, "feed-forward": 0.5, logits: 1e6};
    const level = part => data.parts[part][1] + rank[data.parts[part][0]] + data.parts[part][2] / 1e6;
    const parts = [...new Set(items.map(item => item.part))].sort((a, b) => level(a) - level(b));
    const from = parts.indexOf(at?.part);
    point(state, {part: parts[from < 0 ? (upDown > 0 ? 0 : parts.length - 1) : upTo(parts.length - 1, from + upDown)]});
  } else if (sideways) {
    point(state, {edge: at?.edge === undefined ? 0 : upTo(count - 1, at.edge + sideways)});
  } else if (event.key === "Enter" || event.key === " ") choosePart(state, at ?? null);
  else if (event.key === "Escape") { state.held = null; point(state, null); tell(state); }
  else return;
  if (state.pointed && event.key.startsWith("Arrow")) speak(state, state.pointed);
  taken(event);
}

// ---- words -----------------------------------------------------------------------------

const kindOf = {embedding: "Embedding", logits: "Output"};
const nameOf = ([kind, layer, , title]) =>
  kind === "head" ? `Head ${title}` : kind === "feed-forward" ? `Feed-forward ${layer}` : kindOf[kind];
const signed = value => value === null ? "no value" : value > 0 ? `+${three(value)}` : three(value);
const percent = value => `${three(100 * value)} %`;

function spokenOf({data}, target) {
  const edge = data.edges[target.edge], part = data.parts[target.part];
  const [name, [estimate, exact]] = edge ? [edge.title, edge.scores] : [nameOf(part), part.slice(4)];
  return `${name}: estimate ${signed(estimate)}${exact === null ? "" : `, exact ${signed(exact)}`}.`;
}

const speak = (state, target, more = "") => {
  state.root.querySelector(".spoken").textContent = spokenOf(state, target) + more;
};

function tell(state) {
  const {root, data, pointed, held} = state, line = root.querySelector(".sentence");
  const there = held && (held.edge === undefined ? state.items.some(item => item.part === held.part) : held.edge < state.count);
  state.shown = pointed ?? (there ? held : null);
  line.textContent = `of ${data.every.toLocaleString("en-US")}; each accounts for at least ` +
    `${three(Math.abs(data.edges[state.count - 1]?.scores[0] ?? 0))} of the difference of ${three(data.difference ?? NaN)}`;
  card(state);
  paint(state);
}

const what = words => element("div", "what", words);

function row(name, value, className = "") {
  const line = element("div", `row ${className}`);
  line.append(element("bdi", "name", name), element("span", "value", value));
  return line;
}

function card(state) {
  const {root, data, shown} = state, holder = root.querySelector(".card");
  root.querySelector(".hint").hidden = Boolean(shown);
  const rows = !shown ? [] : shown.part === undefined ? edgeCard(state, shown.edge) : partCard(state, shown.part);
  const [of, words, address] = choiceOf(`${data.name}-why`) ?? [];
  if (of === `${data.title}: ${rows[0]?.textContent}`) {
    const link = Object.assign(element("a", "what", "Query and key"), {href: address});
    link.addEventListener("click", event => {
      event.preventDefault();
      history.pushState(null, "", address);
      dispatchEvent(new PopStateEvent("popstate", {state: null}));
    });
    rows.splice(1, 0, element("div", "why", words), link);
  }
  holder.replaceChildren(...rows);
}

function scores([estimate, exact, spread], difference) {
  const rows = [row("estimate", signed(estimate))];
  if (spread != null) rows.push(row("spread over pairs", three(spread)));
  rows.push(row("exact", exact === null ? "not patched" : signed(exact)));
  const best = exact ?? estimate;
  if (difference && best !== null) rows.push(row("of the difference", percent(best / difference)));
  return rows;
}

function edgeCard({data}, index) {
  const edge = data.edges[index], rows = [element("div", "title", edge.title)];
  rows.push(what(`edge ${index + 1} of ${data.edges.length}${edge.reads ? `, read as ${edge.reads}` : ""}`));
  rows.push(...scores(edge.scores, data.difference), what("at"));
  for (const [at, score] of edge.at) rows.push(row(`${data.tokens[at]} (${at})`, signed(score), "token"));
  if (edge.elsewhere >= 0.005) rows.push(row("elsewhere", percent(edge.elsewhere)));
  return rows;
}

function partCard({data, count}, part) {
  const rows = [element("div", "title", nameOf(data.parts[part]))];
  const [kind, , , , estimate, exact] = data.parts[part];
  if (kind === "logits") rows.push(element("bdi", "what", data.output));
  else rows.push(...scores([estimate, exact, null], data.difference));
  const drawn = data.edges.slice(0, count);
  for (const [side, words] of [["to", "into it"], ["from", "out of it"]]) {
    const own = drawn.filter(edge => edge[side] === part);
    if (!own.length) continue;
    rows.push(what(`${own.length} drawn ${own.length === 1 ? "edge" : "edges"} ${words}`));
    for (const edge of own.slice(0, LISTED)) {
      const end = edge.title.split(" → ")[side === "to" ? 0 : 1];
      rows.push(row(side === "to" && edge.reads ? `${end} as ${edge.reads}` : end, signed(edge.scores[0])));
    }
    if (own.length > LISTED) rows.push(what(`and ${own.length - LISTED} more`));
  }
  return rows;
}

// ---- running -----------------------------------------------------------------------------

function foldedWords({data, place: {folded, thin}}) {
  const hidden = [];
  if (folded) hidden.push(`${folded} of ${data.layers} layers`);
  if (thin) hidden.push(`${thin} of ${data.tokens.length} tokens`);
  return hidden.length ? `Folded: ${hidden.join(" and ")} with nothing drawn.` : "";
}

// Another number of edges is drawn; the output stays in sight until a pointer comes.
function counted(state) {
  const {data, root, stage} = state;
  state.range.max = data.counts.length - 1;
  state.range.value = Math.max(0, data.counts.indexOf(state.count));
  root.querySelector(".count output").textContent = state.count;
  if (!stage.clientWidth) return;
  const drawn = data.edges.slice(0, state.count).flatMap(edge => edge.at.map(([, score]) => Math.abs(score)));
  state.largest = Math.max(...drawn, 1e-12);
  state.largestPart = Math.max(...data.parts.map(part => Math.abs(part[4] ?? 0)), 1e-12);
  layout(state);
  root.querySelector(".notes").textContent = foldedWords(state);
  root.dataset.place = JSON.stringify(state.items.map(({key, title, at, x, y}) => ({key, title, at, x, y})));
  state.canvas.setAttribute("aria-label",
    `${data.title}. ${state.count} edges, the strongest: ${data.edges.slice(0, 3).map((_, edge) => spokenOf(state, {edge})).join(" ")}`);
  tell(state);
  const read = state.follows && data.place !== null && state.place.bands[data.place];
  if (read) stage.scrollLeft = read.left + read.wide - stage.clientWidth + 4;
  state.faded();
}

// What stood elsewhere goes to its place.
function move(state) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches || !state.place) return;
  const start = performance.now(), turn = state.moving = {};
  const frame = now => {
    if (state.moving !== turn || !state.root.isConnected) return;
    state.moved = upTo(1, (now - start) / MOVING);
    paint(state);
    if (state.moved < 1) requestAnimationFrame(frame);
  };
  state.moved = 0;
  requestAnimationFrame(frame);
}

function show(state) {
  const {data, root, fresh} = state, colours = signs(state);
  if (fresh) {
    state.fresh = false;
    Object.assign(state, {pointed: null, held: null, agreed: undefined, items: [], moved: 1, follows: true, count: data.counts[0]});
  }
  choose(state);
  if (!data.counts.includes(state.count)) state.count = data.counts.at(-1);
  for (const [name, colour] of Object.entries(colours)) root.style.setProperty(`--${name}`, css(colour));
  counted(state);
}

publish("circuit_map", ".circuit-map", make, show);
