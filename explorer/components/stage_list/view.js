// The stages of a forward pass: sections fold, the one of the chosen stage is open.

import {fades} from "../fading.js";
import {left, pause, showMoves, stepping} from "../step_buttons.js";
import {element, news, publish, tellPage} from "../shared.js";

const MOVES = {ArrowRight: 1, ArrowDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1};

function make(state) {
  const {root} = state;
  state.line = root.querySelector(".line");
  state.faded = fades(state.stage);
  state.at = 0;
  state.go = to => move(state, to);
  state.chosen = () => { if (state.data && hear(state)) mark(state); };
  stepping(state, () => MOVES);
}

function move(state, to) {
  if (to < 0 || to >= state.count || to === state.at) return;
  state.at = to;
  mark(state);
  tellPage(state, [0, to], 0);
}

function choose(state, to) {
  pause(state);
  move(state, to);
}

function hear(state) {
  const choice = news(state);
  if (!choice || !(choice[1] < state.count)) return false;
  state.at = choice[1];
  pause(state);
  return true;
}

const sectionOf = ({data}, at) => {
  let first = 0;
  for (const [i, section] of data.sections.entries()) {
    if (at < first + section.stages.length) return [i, first];
    first += section.stages.length;
  }
  return [data.sections.length - 1, first];
};

function build(state, open) {
  const {data, line} = state;
  let first = 0;
  line.replaceChildren(...data.sections.map((section, i) => {
    const item = sectionItem(state, section, first);
    if (i === open) item.append(inside(state, section, first));
    first += section.stages.length;
    return item;
  }));
  state.open = open;
}

function sectionItem(state, section, first) {
  const item = element("li", "section"), button = element("button"), bar = element("span", "bar");
  const filled = element("i");
  filled.style.width = `${100 * section.share}%`;
  bar.append(filled);
  bar.style.visibility = section.label ? "" : "hidden";
  button.type = "button";
  button.append(element("span", "", section.title), bar, element("span", "norm", section.label));
  button.addEventListener("click", event => { left(event); choose(state, first); });
  item.append(button);
  return item;
}

function inside(state, section, first) {
  const list = element("ol");
  let branch = "";
  section.stages.forEach((title, i) => {
    if (section.branches[i] && section.branches[i] !== branch) {
      list.append(element("li", "branch", section.branches[i]));
    }
    branch = section.branches[i];
    const item = element("li", section.on_line[i] ? "one stream" : "one");
    const button = element("button", "", title);
    button.type = "button";
    button.addEventListener("click", event => { left(event); choose(state, first + i); });
    item.dataset.at = first + i;
    item.append(button);
    list.append(item);
  });
  return list;
}

function mark(state) {
  const {root, data, at, stage} = state, [open] = sectionOf(state, at);
  if (state.open !== open || state.fresh) build(state, open);
  state.fresh = false;
  for (const one of root.querySelectorAll(".one")) {
    const here = Number(one.dataset.at) === at;
    one.classList.toggle("here", here);
    const button = one.firstChild;
    if (here) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    if (here) reach(stage, one);
  }
  state.faded();
  root.querySelector(".where").textContent = `${at + 1} of ${state.count}`;
  showMoves(state);
  root.querySelector(".notes").textContent = data.note;
  const name = `${data.sections[open].title}, ${root.querySelector(".here")?.textContent ?? ""}`;
  root.querySelector(".spoken").textContent = name;
}

// The list scrolls by itself; the page stays where it is.
function reach(stage, one) {
  const box = stage.getBoundingClientRect(), place = one.getBoundingClientRect(), margin = 70;
  if (place.top < box.top + margin) stage.scrollTop -= box.top + margin - place.top;
  else if (place.bottom > box.bottom - margin) stage.scrollTop += place.bottom - box.bottom + margin;
}

function show(state) {
  state.count = state.data.sections.reduce((sum, section) => sum + section.stages.length, 0);
  hear(state);
  if (state.at >= state.count) state.at = 0;
  mark(state);
}

publish("stage_list", ".stage_list", make, show);
