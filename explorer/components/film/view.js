// A film: which frame is shown, and its messages handed to the views of the page.

import {paintCurves} from "./curves.js";
import {pause, showMoves, stepping} from "../step_buttons.js";
import {element, publish, putInWords, three} from "../shared.js";

const MOVES = {ArrowRight: 1, ArrowLeft: -1};
const WRITE_AFTER = 200;  // ms: no browser takes an address for every frame of a film
const isExported = () => document.location.protocol === "file:";  // a page without a server
const kept = globalThis.explorerFilms ??= new Map();  // by run, the step that the reader has gone to
const whole = number => number.toLocaleString("en-US");

function make(state) {
  const {root} = state;
  state.place = root.querySelector(".place");
  state.where = root.querySelector(".where");
  state.said = root.querySelector(".said");
  state.go = to => go(state, to);
  state.compare = root.querySelector(".compare");
  state.compare.hidden = isExported();
  state.compare.addEventListener("click", () => state.component.setTriggerValue("compared", state.at));
  state.place.addEventListener("input", () => { pause(state); go(state, Number(state.place.value)); });
  const point = event => { if (event.buttons) { pause(state); go(state, nearest(state, event.offsetX)); } };
  state.canvas.addEventListener("pointerdown", point);
  state.canvas.addEventListener("pointermove", point);
  stepping(state, () => state.data ? MOVES : {});
}

function nearest({data, place_of}, x) {
  const away = data.steps.map(step => Math.abs(place_of(step) - x));
  return away.indexOf(Math.min(...away));
}

function go(state, to) {
  if (to < 0 || to >= state.count || to === state.at) return;
  state.at = to;
  (globalThis.explorerChoices ??= new Map()).set(state.data.name, [[to]]);
  frame(state);
  if (to === state.data.at) kept.delete(state.data.of);
  else kept.set(state.data.of, state.data.steps[to]);
  clearTimeout(state.writing);
  state.writing = setTimeout(() => write(state), WRITE_AFTER);
}

// The address names the step that is shown, where it is not the one to begin with. The server is
// asked nothing, so it does not know: whenever it writes the address itself, this is done again.
function write({data, at, root}) {
  if (isExported() || !root.isConnected) return;
  const address = new URL(document.location.href);
  if (at === data.at) address.searchParams.delete(data.parameter);
  else address.searchParams.set(data.parameter, data.steps[at]);
  history.replaceState(history.state, "", address);
}

// The step that the reader has gone to, else that of the address, else the one to begin with.
function shown({at, of, parameter, steps}) {
  const named = new URL(document.location.href).searchParams.get(parameter);
  const found = steps.findIndex(step => String(step) === String(kept.get(of) ?? named));
  return found < 0 ? at : found;
}

// Each view is handed what it shows now, and redraws by itself: see mount in shared.js.
function frame(state) {
  const {data, at, place, where} = state, step = data.steps[at];
  const messages = new Map(data.keys.map(key => [key, data.planes[`${at} ${key}`]]).filter(([, message]) => message));
  globalThis.explorerFrames = messages;
  document.dispatchEvent(new Event("explorer-frame"));
  const words = `Step ${whole(step)}`;
  place.max = state.count - 1;
  place.value = at;
  place.disabled = state.count < 2;
  where.textContent = words;
  place.setAttribute("aria-valuetext", words);
  state.said.replaceChildren(...data.captions[at].map(([term, text]) => {
    const pair = element("div");
    pair.append(element("dt", "", term), element("dd", "", text));
    return pair;
  }));
  paintCurves(state);
  describeCurves(state);
  showMoves(state);
}

// Of each curve the value at the step that is shown, and at the last.
function describeCurves({root, canvas, data, at}) {
  const worth = ([step, value]) => `${Number.isFinite(value) ? three(value) : "no value"} at step ${whole(step)}`;
  const curves = data.curves.filter(({points}) => points.length).map(({name, points}) => {
    const here = points.findLast(([step]) => step <= data.steps[at]) ?? points[0], last = points.at(-1);
    return `${name} ${[...new Set([worth(here), worth(last)])].join(", ")}`;
  });
  putInWords(root, canvas, ["Curves over the steps of the training", ...curves].join(". "), []);
}

// What is drawn anew stays at its step, and so does a run that has gone on meanwhile, unless its
// newest step was shown.
function show(state) {
  const {data} = state;
  if (state.fresh) {
    Object.assign(state, {fresh: false, at: shown(data), count: data.steps.length, grows: false});
    state.opening = data.at;
    (globalThis.explorerChoices ??= new Map()).set(data.name, [[state.at]]);
    clearTimeout(state.writing);
    state.writing = setTimeout(() => write(state), WRITE_AFTER);
  }
  frame(state);
}

publish("film", ".film", make, show);
