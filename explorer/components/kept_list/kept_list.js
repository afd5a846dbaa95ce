// The kept views as small pictures: a click chooses one; dragging, or Alt and an arrow key, moves it.

import {painted} from "../painted.js";

const STEPS = {ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1};
const NEAR = 6;  // pixels that a click may shake
const placeOf = item => [...item.parentNode.children].indexOf(item);

function moveTo(list, item, to) {
  const others = [...list.children].filter(other => other !== item), {activeElement} = list.getRootNode();
  list.insertBefore(item, others[to] ?? null);
  activeElement?.focus();  // what moves in the page loses it
}

function made(tell, list, [id, , picture]) {
  const item = document.createElement("li"), button = document.createElement("button");
  const title = document.createElement("span");
  item.dataset.id = id;
  button.type = "button";
  button.setAttribute("aria-keyshortcuts", "Alt+ArrowUp Alt+ArrowDown");
  button.append(painted(picture, "image/png"), title);
  item.append(button);
  button.addEventListener("click", () => tell("chosen", placeOf(item)));
  button.addEventListener("keydown", event => {
    const from = placeOf(item), to = from + (STEPS[event.key] ?? 0);
    if (to === from || event.ctrlKey || event.metaKey) return;
    event.preventDefault();  // Alt and the left arrow would leave the page
    event.stopPropagation();
    if (!list.children[to]) return;
    if (!event.altKey) return list.children[to].firstChild.focus();
    moveTo(list, item, to);
    tell("moved", [from, to]);
  });
  button.addEventListener("pointerdown", start => {
    if (start.button) return;
    const from = placeOf(item);
    button.setPointerCapture(start.pointerId);
    button.onpointermove = ({clientX, clientY}) => {
      if (Math.hypot(clientX - start.clientX, clientY - start.clientY) > NEAR) item.classList.add("dragged");
      if (!item.classList.contains("dragged")) return;
      const under = list.getRootNode().elementFromPoint(clientX, clientY)?.closest("li");
      if (under && under !== item && list.contains(under)) moveTo(list, item, placeOf(under));
    };
    button.onpointerup = button.onpointercancel = () => {
      button.onpointermove = button.onpointerup = button.onpointercancel = null;
      item.classList.remove("dragged");
      if (placeOf(item) !== from) tell("moved", [from, placeOf(item)]);
    };
  });
  return item;
}

export default function ({data, parentElement, setTriggerValue}) {
  const [views, chosen, isDark] = data, list = parentElement.querySelector(".kept-list");
  const spoken = parentElement.querySelector(".spoken");
  const tell = (name, value) => {
    if (name === "moved") spoken.textContent = `Moved to place ${value[1] + 1} of ${list.children.length}`;
    setTriggerValue(name, value);
  };
  list.classList.toggle("dark", isDark);
  const old = new Map([...list.children].map(item => [item.dataset.id, item]));
  const items = views.map(view => old.get(view[0]) ?? made(tell, list, view));
  for (const item of list.children) if (!items.includes(item)) item.remove();
  items.forEach((item, at) => {
    if (list.children[at] !== item) moveTo(list, item, at);
    const title = `${at + 1} · ${views[at][1]}`;
    item.querySelector("span").textContent = title;
    item.firstChild.toggleAttribute("aria-current", at === chosen);
  });
}
