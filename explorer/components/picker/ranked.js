// Heads in their order: a button for each, with its small picture, its place and its number.

import {notes, shaded} from "./grid.js";
import {choose} from "./view.js";
import {element, forPointer, heightOf, maximum, needs, same, tellPage} from "../shared.js";

const LEAST = 104, MOST = 300, GAP = 8, AROUND = 8;  // px: of a row, between them, around the list

export const isRanked = ({data}) => data.kind === "ranked";

export function mark({data, buttons, selected}) {
  data.items.forEach(({at}, i) => buttons[i].setAttribute("aria-pressed", String(same(at, selected))));
}

export function rank(state, fresh) {
  const {data, stage, root} = state;
  if (fresh) {
    state.buttons = data.items.map(item => buttonOf(state, item));
    const list = element("ol");
    list.style.setProperty("--across", data.across);
    list.append(...state.buttons.map(button => {
      const place = element("li");
      place.append(button);
      return place;
    }));
    stage.replaceChildren(list);
    sayItem(state, null);
  }
  // A pixel a cell; the style sheet makes it as large as there is room.
  const [queries, keys] = data.shape, atlas = shaded(state, data.items.length, 1);
  state.buttons.forEach((button, at) => {
    const canvas = button.querySelector("canvas");
    Object.assign(canvas, {width: Math.max(1, keys), height: Math.max(1, queries)});
    canvas.getContext("2d").drawImage(atlas, 0, -at * queries);
  });
  root.querySelector(".notes").textContent = notes(data);
  // Every row is as high as the window allows; where that is too little, the list scrolls.
  const list = stage.firstChild, many = Math.ceil(data.items.length / data.across);
  const row = Math.max(LEAST, Math.min(MOST, (heightOf(state) - AROUND) / Math.max(1, many) - GAP));
  list.style.setProperty("--row", `${Math.floor(row)}px`);
  needs(state, many * (Math.floor(row) + GAP) + AROUND);
  choose(state);
}

function buttonOf(state, item) {
  const {at: [layer, head], place, value} = item, button = element("button");
  const name = `layer ${layer}, head ${head}`, said = `${place}: ${name}, ${value}`;
  button.type = "button";
  button.setAttribute("aria-label", said);
  button.append(element("canvas"), element("span", "name", name),
    element("span", "place", place), element("span", "number", value));
  button.addEventListener("click", () => {
    state.selected = item.at;
    mark(state);
    state.agreed = undefined;
    tellPage(state, item.at, 0);
  });
  for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => sayItem(state, `${said}; ${maximum(item.top)}`));
  for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => sayItem(state, null));
  return button;
}

function sayItem({root, data}, said) {
  const line = root.querySelector(".sentence");
  line.classList.toggle("idle", !said);
  line.textContent = said ?? forPointer(data.words.idle);
}
