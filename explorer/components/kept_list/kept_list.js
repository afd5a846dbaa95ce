// The kept views as small pictures: a click chooses one; dragging, or Alt and an arrow key, moves it.

import {painted} from "../painted.js";

const STEPS = {ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1};
const NEAR = 6;  // pixels that a click may shake
const placeOf = item => [...item.parentNode.children].indexOf(item);

// The others move around it: what moves in the page loses the focus and the pointer.
function moveTo(item, to) {
  while (placeOf(item) < to) item.before(item.nextElementSibling);
  while (placeOf(item) > to) item.after(item.previousElementSibling);
}

function drag(item, button, start, drop) {
  const list = item.parentNode, from = placeOf(item);
  button.setPointerCapture(start.pointerId);
  button.onpointermove = ({clientX: x, clientY: y}) => {
    if (Math.hypot(x - start.clientX, y - start.clientY) > NEAR) item.classList.add("dragged");
    const under = list.getRootNode().elementFromPoint(x, y)?.closest("li");
    if (item.classList.contains("dragged") && under?.parentNode === list) moveTo(item, placeOf(under));
  };
  button.onlostpointercapture = () => {
    button.onpointermove = button.onlostpointercapture = null;
    setTimeout(() => item.classList.remove("dragged"));  // after the click that ends it
    if (item.classList.contains("dragged")) drop(from);
  };
}

function made(list, [id, , picture], tell) {
  const item = document.createElement("li"), button = document.createElement("button");
  item.dataset.id = id;
  button.type = "button";
  button.setAttribute("aria-keyshortcuts", "Alt+ArrowUp Alt+ArrowDown");
  button.append(painted(picture, "image/png"), document.createElement("span"));
  item.append(button);
  const drop = from => tell([from, placeOf(item)]);
  button.addEventListener("click", () => item.classList.contains("dragged") || drop(placeOf(item)));
  button.addEventListener("pointerdown", event => event.button || drag(item, button, event, drop));
  button.addEventListener("keydown", event => {
    const from = placeOf(item), to = from + (STEPS[event.key] ?? 0);
    if (to === from) return;
    event.preventDefault();  // Alt and the left arrow would leave the page
    event.stopPropagation();
    if (!event.altKey) return list.children[to]?.firstChild.focus();
    if (list.children[to]) moveTo(item, to);
    drop(from);
  });
  return item;
}

export default function ({data, parentElement, setTriggerValue}) {
  const [views, chosen, isDark] = data, list = parentElement.querySelector(".kept-list");
  const spoken = parentElement.querySelector(".spoken");
  const tell = ([from, to]) => {
    if (to !== from) spoken.textContent = `Moved to ${to + 1} of ${list.children.length}`;
    setTriggerValue("moved", [from, to]);
  };
  list.classList.toggle("dark", isDark);
  const old = new Map([...list.children].map(item => [item.dataset.id, item]));
  for (const [at, view] of views.entries()) {
    const item = old.get(view[0]) ?? list.appendChild(made(list, view, tell));
    old.delete(view[0]);
    moveTo(item, at);
    item.querySelector("span").textContent = `${at + 1} · ${view[1]}`;
    item.firstChild.toggleAttribute("aria-current", at === chosen);
  }
  for (const item of old.values()) item.remove();
}
