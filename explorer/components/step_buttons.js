// Steps by hand, by keys and in time. The view has `at`, the step that is chosen, and `count`;
// `go(to)` chooses another, and `grows` says that there may be one more behind the last.

import {choiceOf} from "./shared.js";

// In these elements the keys keep a meaning of their own.
const TAKES_KEYS = "input, textarea, select, [contenteditable=true], [role=slider], " +
  "[role=radio], [role=tab], [role=option], [role=combobox], " +
  "[role=dialog] *, [data-testid=stSidebar] *";
// These have the focus after a click on them, but the keys only once they are reached with Tab.
const FOCUSED_BY_CLICK = "[role=application], [data-testid=stMain]";
const TAKES_SPACE = "button, a, summary, [role=button], [role=checkbox], [role=switch]";
const PLAYS = "p";
const NO_ACTION = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]);

// `moves`: by how much each key steps.
export function stepping(state, moves) {
  const {root} = state;
  Object.assign(state, {moves, clicked: [], playing: false});
  for (const [name, by] of [["back", -1], ["on", 1]]) {
    root.querySelector(`.${name}`).addEventListener("click", event => { left(event); step(state, by); });
  }
  root.querySelector(".play").addEventListener("click", event => { left(event); toggle(state); });
  root.querySelector(".speed").addEventListener("change", event => {
    globalThis.explorerSpeed = Number(event.target.value);
  });
  const steppers = globalThis.explorerSteppers ??= new Set(), mine = {
    root,
    can: (by, grows) => state.data && state.moves().ArrowRight &&
      (grows && state.grows || state.at + by < state.count) && state.at + by >= 0,
    step: by => step(state, by),
  };
  steppers.add(mine);
  const gone = new AbortController();
  const listen = (kind, take, capture) => document.addEventListener(kind, event => {
    if (root.isConnected) return take(state, event);
    gone.abort();
    steppers.delete(mine);
  }, {capture, signal: gone.signal});
  listen("pointerdown", clicked, true);
  listen("keydown", keyOfClicked, true);
  listen("keydown", key, false);
}

// Whatever else the reader does ends the playing.
function clicked(state, event) {
  state.clicked = event.composedPath();
  if (!state.clicked.includes(state.root)) pause(state);
}

// What a click has focused gives the focus up with the first of these keys, as a button does.
function keyOfClicked(state, event) {
  const path = event.composedPath(), from = path[0];
  if (event.key === "Tab") state.clicked = [];
  const isPlayKey = event.key.toLowerCase() === PLAYS && !from.closest?.(TAKES_KEYS);
  if (!NO_ACTION.has(event.key) && !isPlayKey && !path.includes(state.root)) pause(state);
  if (!from.matches?.(FOCUSED_BY_CLICK) || !state.clicked.includes(from)) return;
  key(state, event);
  if (!event.defaultPrevented) return;
  event.stopPropagation();
  from.blur();
}

// A button that was clicked gives up the focus, so that Space goes to the next step.
export const left = event => { if (event.detail) event.currentTarget.blur(); };

function key(state, event) {
  const by = state.moves()[event.key], from = event.composedPath()[0];
  const plays = event.key.toLowerCase() === PLAYS && state.moves().ArrowRight;
  if (!(by || plays) || !state.data || event.defaultPrevented) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (from.closest?.(TAKES_KEYS)) return;
  if (event.key === " " && from.closest?.(TAKES_SPACE)) return;
  event.preventDefault();
  if (plays) toggle(state);
  else step(state, by);
}

function step(state, by) {
  pause(state);
  state.go(state.at + by);
}

// ---- in time ------------------------------------------------------------------------

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const POLL = 40, PATIENCE = 5000;

const toggle = state => state.playing ? pause(state) : play(state);

// From the last step it begins again, and from the `opening` one, which may be in the middle.
function play(state) {
  if (isStill() || state.count < 2 && !state.grows) return;
  state.playing = true;
  showPlaying(state);
  const again = state.at === state.opening || state.at >= state.count - 1 && !state.grows;
  state.go(again ? 0 : state.at + 1);
  wait(state);
}

export function pause(state) {
  if (!state.playing) return;
  state.playing = false;
  state.asked = undefined;
  clearTimeout(state.timer);
  showPlaying(state);
}

const wait = state => {
  state.since = performance.now();
  state.timer = setTimeout(() => tick(state), 1000 / (globalThis.explorerSpeed ?? 1));
};

// The next step comes when this one is on screen, so none is skipped and no run is interrupted.
function tick(state) {
  if (!state.root.isConnected) return pause(state);
  if (!isDrawn(state)) {
    if (performance.now() - state.since > PATIENCE && rests()) return pause(state);
    state.timer = setTimeout(() => tick(state), POLL);
    return;
  }
  if (state.at >= state.count - 1 && !state.grows) return pause(state);
  state.go(state.at + 1);
  wait(state);
}

const isDrawn = state => state.asked === undefined && rests() &&
  choiceOf(state.data.name)?.at(-1) === state.at;

export function rests() {
  const app = document.querySelector("[data-testid=stApp]");
  return (app?.dataset.testScriptState ?? "notRunning") === "notRunning";
}

function showPlaying(state) {
  const button = state.root.querySelector(".play");
  button.classList.toggle("playing", state.playing);
  button.setAttribute("aria-label", state.playing ? "Pause" : "Play");
  button.title = state.playing ? "Pause (P)" : "Play (P)";
}

// Which of the buttons can do something now.
export function showMoves(state) {
  const {root, at, count, grows} = state, isLast = at >= count - 1 && !grows;
  root.querySelector(".moves").style.colorScheme = state.ink.dark ? "dark" : "light";
  root.querySelector(".back").disabled = at === 0;
  root.querySelector(".on").disabled = isLast;
  root.querySelector(".play").disabled = count < 2 && !grows;
  root.querySelector(".speed").value = String(globalThis.explorerSpeed ?? 1);
}
