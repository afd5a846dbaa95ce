// A tree of tokens: buttons at their places, and lines between them.

import {fades} from "../fading.js";
import {element, plain, publish, say} from "../shared.js";

const WIDE = 132, ACROSS = 160, DOWN = 32, HIGH = 26;
const SVG = "http://www.w3.org/2000/svg";

function make(state) {
  const {root} = state;
  state.line = root.querySelector(".sentence");
  state.field = root.querySelector(".field");
  state.faded = fades(state.stage);
  state.field.addEventListener("pointerleave", () => idle(state));
}

function idle({line, data}) {
  line.classList.add("idle");
  line.textContent = data.idle;
}

function tell({line}, node) {
  line.classList.remove("idle");
  say(line, node.sentence, {token: node.label});
}

const left = node => node.at[0] * ACROSS, top = node => node.at[1] * DOWN;

function lines({nodes, marked}) {
  const made = document.createElementNS(SVG, "svg"), on = new Set(marked);
  nodes.forEach((node, place) => {
    const from = nodes[node.parent];
    if (!from) return;
    const path = document.createElementNS(SVG, "path");
    const [x, y, to, end] = [left(from) + WIDE, top(from) + HIGH / 2, left(node), top(node) + HIGH / 2];
    const middle = (x + to) / 2;
    path.setAttribute("d", `M${x} ${y}C${middle} ${y} ${middle} ${end} ${to} ${end}`);
    path.setAttribute("class", on.has(place) ? "on" : node.how);
    made.append(path);
  });
  return made;
}

function button(state, node, place) {
  const made = element("button", `node ${node.how}`);
  made.type = "button";
  made.dataset.place = place;
  made.style.left = `${left(node)}px`;
  made.style.top = `${top(node)}px`;
  made.setAttribute("aria-label", plain(node.sentence, {token: node.label}));
  made.classList.toggle("on", state.data.marked.includes(place));
  made.append(element("bdi", "label", node.label), element("span", "number", node.number));
  made.addEventListener("pointerenter", () => tell(state, node));
  made.addEventListener("focus", () => tell(state, node));
  made.addEventListener("blur", () => idle(state));
  made.addEventListener("click", () => state.component.setTriggerValue("picked", place));
  return made;
}

function show(state) {
  const {data, field} = state;
  if (!state.fresh) return state.faded();
  state.fresh = false;
  const columns = Math.max(0, ...data.nodes.map(node => node.at[0])) + 1;
  const rows = Math.max(0, ...data.nodes.map(node => node.at[1])) + 1;
  field.style.width = `${(columns - 1) * ACROSS + WIDE}px`;
  field.style.height = `${rows * DOWN}px`;
  field.replaceChildren(lines(data), ...data.nodes.map((node, at) => button(state, node, at)));
  idle(state);
  const last = data.follows && data.nodes[data.marked.at(-1)];
  if (last) {
    state.stage.scrollLeft = Math.max(0, left(last) + 2 * ACROSS - state.stage.clientWidth);
    state.stage.scrollTop = Math.max(0, top(last) + 2 * DOWN - state.stage.clientHeight);
  }
  state.faded();
}

publish("tree", ".tree", make, show);
