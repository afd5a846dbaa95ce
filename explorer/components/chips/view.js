// Tokens as chips. One line says what the chip under the pointer is; nothing moves.

import {framed} from "../framing.js";
import {choiceOf, counted, element, forPointer, publish, say, taken} from "../shared.js";

function make(state) {
  const {root} = state;
  state.stage = root;
  for (const part of ["text", "row", "rest", "sentence"]) {
    state[part] = root.querySelector("." + part);
  }
  const chipOf = event => event.target.closest?.(".chip");
  state.row.addEventListener("pointerover", event => light(state, placeOf(chipOf(event))));
  state.row.addEventListener("pointerleave", () => light(state, null));
  state.row.addEventListener("focusin", event => light(state, placeOf(chipOf(event))));
  state.row.addEventListener("focusout", () => light(state, null));
  state.row.addEventListener("click", event => {
    const place = placeOf(chipOf(event));
    if (place !== null && state.data.pickable) state.component.setTriggerValue("picked", place);
  });
  state.row.addEventListener("keydown", event => walk(state, event));
  state.text.addEventListener("pointerover", event => lightSpan(state, event.target));
  state.text.addEventListener("pointerleave", () => light(state, null));
  state.chosen = () => state.data && mark(state);
}

const placeOf = chip => chip ? Number(chip.dataset.place) : null;

// One chip is in the tab order; the arrows go from chip to chip.
function walk(state, event) {
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key], at = placeOf(event.target.closest(".chip"));
  if (!step || at === null) return;
  const next = state.chips[at + step];
  if (!next) return;
  state.chips[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  taken(event);
}

// ---- lighting up -------------------------------------------------------------------

function light(state, place) {
  for (const lit of state.lit || []) lit.classList.remove("on");
  state.lit = [];
  state.sentence.classList.toggle("idle", place === null);
  if (place === null) return idle(state);
  const [start, end] = state.data.spans[place];
  state.lit = [state.chips[place], ...segments(state, start, end)];
  for (const lit of state.lit) lit.classList.add("on");
  say(state.sentence, ...spoken(state, place));
}

// Pointing at the text lights every token over that piece of it.
function lightSpan(state, target) {
  const segment = state.segments.find(one => one.element === target);
  const places = segment ? state.data.spans.flatMap(([start, end], place) =>
    start !== null && start < segment.end && end > segment.start ? [place] : []) : [];
  light(state, places.length ? places[0] : null);
  for (const place of places.slice(1)) {
    state.chips[place].classList.add("on");
    state.lit.push(state.chips[place]);
  }
}

const segments = (state, start, end) => start === null ? [] : state.segments
  .filter(one => one.start < end && one.end > start).map(one => one.element);

function spoken({data, points}, place) {
  const [start, end] = data.spans[place], id = data.ids[place], parts = {label: data.labels[place]};
  const details = [`{label} is token ${place} of ${data.total}`];
  if (data.said[place]) details.push(data.said[place]);
  if (id !== null) details.push(`id ${id}`);
  if (data.muted.includes(place)) details.push("special");
  else if (start !== null) {
    details.push(end - start === 1 ? `character ${start}` : `characters ${start} to ${end - 1}`);
    if (points) {
      const bytes = new TextEncoder().encode(points.slice(start, end).join(""));
      const hex = Array.from(bytes.slice(0, 12), b => b.toString(16).padStart(2, "0")).join(" ");
      const whole = data.groups.some(([first, last]) => first <= place && place <= last);
      details.push(`${whole ? "the character's bytes" : "bytes"} ${hex}${bytes.length > 12 ? " …" : ""}`);
    }
  }
  if (data.below[place] && data.below[place] !== data.labels[place]) {
    details.push("below it {below}");
    parts.below = data.below[place];
  }
  return [details.join(" · "), parts];
}

function idle({sentence, data}) {
  sentence.textContent = `${counted(data.total, "token")}.${forPointer(" Point at a token to see its details.")}`;
}

function mark(state) {
  const choice = choiceOf(state.data.name) || [Infinity];
  const [later, ...marked] = choice;
  state.chips.forEach((chip, place) => {
    chip.classList.toggle("marked", marked.includes(place));
    chip.classList.toggle("later", place >= later);
  });
  if (marked.length === 1) reach(state.row, state.chips[marked[0]]);
}

// A text that is higher than its view scrolls to what is marked; the page stays where it is.
function reach(row, chip) {
  if (!chip || row.scrollHeight <= row.clientHeight) return;
  const box = row.getBoundingClientRect(), place = chip.getBoundingClientRect();
  if (place.top < box.top) row.scrollTop -= box.top - place.top + 2;
  else if (place.bottom > box.bottom) row.scrollTop += place.bottom - box.bottom + 2;
}

// ---- building ------------------------------------------------------------------------

function chip(state, label, place) {
  const {data} = state, node = element(data.pickable ? "button" : "span", "chip");
  if (data.pickable) node.type = "button";
  node.classList.toggle("muted", data.muted.includes(place));
  node.classList.toggle("pickable", data.pickable);
  node.classList.toggle("shaded", place in data.shades);
  node.style.setProperty("--shade", data.shades[place] ?? 0);
  node.classList.toggle("written", data.prompt !== null && place >= data.prompt);
  node.dataset.place = place;
  node.setAttribute("aria-describedby", "said");
  node.tabIndex = place === 0 ? 0 : -1;
  spell(node, label);
  const item = element("li");
  item.append(node);
  if (data.below[place]) {
    const under = element("span", "chip");
    under.dataset.place = place;
    under.classList.toggle("muted", data.mutedBelow.includes(place));
    spell(under, data.below[place]);
    item.append(under);
  }
  return [item, node];
}

// A label with its signs for white space paler than the rest.
function spell(node, label) {
  for (const piece of label.split(/([␣↵⇥]+)/).filter(Boolean)) {
    node.append(/^[␣↵⇥]+$/.test(piece) ? element("span", "space", piece) : piece);
  }
}

// Characters that cannot be seen, or that would turn the text around them about.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const written = c => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;

// The text in pieces, cut wherever a token begins or ends. Spans count characters as
// Python does, so the text is cut by code points.
function cut(state) {
  const {data, text} = state;
  state.segments = [];
  state.points = null;
  text.hidden = data.text === null;
  if (data.text === null) return;
  state.points = Array.from(data.text);
  const cuts = new Set([0, state.points.length]);
  for (const [start, end] of data.spans) if (start !== null) cuts.add(start).add(end);
  const sorted = [...cuts].filter(at => at <= state.points.length).sort((a, b) => a - b);
  for (let i = 0; i + 1 < sorted.length; i++) {
    const [start, end] = [sorted[i], sorted[i + 1]];
    const piece = state.points.slice(start, end).join("").replace(HIDDEN, written);
    state.segments.push({start, end, element: element("span", "", piece)});
  }
  text.replaceChildren(...state.segments.map(one => one.element));
}

function show(state) {
  const {data} = state;
  if (state.fresh) {
    state.fresh = false;
    cut(state);
    state.root.classList.toggle("running", data.prompt !== null);
    state.root.classList.toggle("apart", !data.own.some(label => label.includes("␣")));
    const items = data.own.map((label, place) => chip(state, label, place));
    state.chips = items.map(([, chip]) => chip);
    state.row.replaceChildren(...framed(data.groups, items.map(([item]) => item)));
    const left = data.total - data.labels.length;
    state.rest.hidden = left === 0;
    state.rest.textContent = `The first ${data.labels.length} are shown; ${left} more are not.`;
    light(state, null);
  }
  mark(state);
}

publish("chips", ".chips", make, show);
