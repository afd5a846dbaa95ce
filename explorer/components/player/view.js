// Steps: back, play, on, a slider, and which of them is shown.

import {pause, rests, showMoves, stepping} from "../step_buttons.js";
import {choiceOf, news, publish, tellPage} from "../shared.js";

const MOVES = {ArrowRight: 1, ArrowLeft: -1}, NONE = {};
const DRAGGING = 150;
const whole = number => number.toLocaleString("en-US");

function make(state) {
  const {root} = state;
  state.place = root.querySelector(".place");
  state.where = root.querySelector(".where");
  state.at = 0;
  state.go = (to, rest = 0) => go(state, to, rest);
  state.chosen = () => { if (state.data) { hear(state); mark(state); } };
  state.place.addEventListener("input", () => { pause(state); go(state, Number(state.place.value), DRAGGING); });
  stepping(state, () => state.data?.keys ? MOVES : NONE);
}

// One more than there are is made by the page, which then says how many there are.
function go(state, to, rest) {
  if (to < 0 || to === state.at || to > state.count - (state.grows ? 0 : 1)) return;
  if (to < state.count) state.at = to;
  else if (state.asked === to && !rests()) return;
  else {
    state.asked = to;
    state.agreed = undefined;
  }
  mark(state);
  tellPage(state, [to], rest);
}

function hear(state) {
  const [now] = choiceOf(state.data.name) ?? [0], told = news(state);
  if (!told && now !== state.asked) return;
  if (now !== state.asked) pause(state);
  state.at = now;
  state.asked = undefined;
}

// What is chosen may be heard before how many there are.
function mark(state) {
  const {data, place, where, count} = state, shown = Math.min(state.at, count - 1);
  const name = data.names[shown] ?? `${whole(shown)} of ${whole(count - 1)}`;
  place.max = count - 1;
  place.value = shown;
  place.disabled = count < 2;
  where.textContent = `${data.label}: ${name}`;
  place.setAttribute("aria-label", data.label);
  place.setAttribute("aria-valuetext", name);
  showMoves(state);
}

function show(state) {
  state.count = state.data.count;
  state.grows = state.data.grows;
  hear(state);
  mark(state);
}

publish("player", ".player", make, show);
