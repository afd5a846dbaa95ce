// The kept views as small pictures: a click chooses one; dragging, or Alt and an arrow key, moves it.

import {painted} from "../painted.js";

const STEPS = {ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1};
const placeOf = item => [...item.parentNode.children].indexOf(item);

// The others move around it: what moves in the page loses the focus and the pointer.
function moveTo(item, to) {
  while (placeOf(item) < to) item.before(item.nextElementSibling);
  while (placeOf(item) > to) item.after(item.previousElementSibling);
}

function made(list, [id, , picture], tell) {
  const item = document.createElement("li"), button = document.createElement("button");
  let from = 0, isDropped = false;  // a click follows the drop
  item.dataset.id = id;
  button.setAttribute("aria-keyshortcuts", "Alt+ArrowUp Alt+ArrowDown");
  button.append(painted(picture, "image/png"), document.createElement("span"));
  item.append(button);
  button.addEventListener("click", () => isDropped || tell(placeOf(item), placeOf(item)));
  button.addEventListener("pointerdown", event => {
    if (event.button) return;
    button.setPointerCapture(event.pointerId);
    [from, isDropped] = [placeOf(item), false];
  });
  button.addEventListener("pointermove", ({clientX, clientY, pointerId}) => {
    if (!button.hasPointerCapture(pointerId)) return;
    const under = list.getRootNode().elementFromPoint(clientX, clientY)?.closest("li");
    if (under?.parentNode === list) moveTo(item, placeOf(under));
  });
  button.addEventListener("lostpointercapture", () => {
    isDropped = placeOf(item) !== from;
    if (isDropped) tell(from, placeOf(item));
  });
  button.addEventListener("keydown", event => {
    const at = placeOf(item), to = at + (STEPS[event.key] ?? 0);
    isDropped = false;
    if (to === at) return;
    event.preventDefault();  // Alt and the left arrow would leave the page
    event.stopPropagation();
    if (!event.altKey || !list.children[to]) return list.children[to]?.firstChild.focus();
    moveTo(item, to);
    tell(at, to);
  });
  return item;
}

export default function ({data, parentElement, setTriggerValue}) {
  const [views, chosen, isDark] = data, list = parentElement.querySelector(".kept-list");
  const tell = (from, to) => {
    const said = to === from ? "" : `Moved to ${to + 1} of ${list.children.length}`;
    parentElement.querySelector(".spoken").textContent = said;
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
