// A kept session in a window: one view at a time, drawn when it is shown, stepped by keys.

const pause = () => new Promise(requestAnimationFrame);
const steps = [...document.querySelectorAll(".step")];
const list = document.querySelector("dialog"), counter = document.querySelector("#counter");
const back = document.querySelector("#back"), next = document.querySelector("#next");
const LARGEST = 2.2, FINEST = 0.05;
let now = -1, turn = 0, zoom = 1, leave = [];

// What is enlarged counts in its own pixels: the canvas is as fine as the screen, and the pointer
// is where the view drew.
const density = Object.getOwnPropertyDescriptor(window, "devicePixelRatio");
Object.defineProperty(window, "devicePixelRatio", {get: () => density.get.call(window) * zoom});
const enlarged = node => node instanceof Element &&
  (node.getRootNode().host ?? node).closest(".figures") ? zoom : 1;
const measure = Element.prototype.getBoundingClientRect;
Element.prototype.getBoundingClientRect = function () {
  const box = measure.call(this), by = enlarged(this);
  return by === 1 ? box : new DOMRect(box.x / by, box.y / by, box.width / by, box.height / by);
};
for (const name of ["clientX", "clientY", "offsetX", "offsetY"]) {
  const real = Object.getOwnPropertyDescriptor(MouseEvent.prototype, name).get;
  Object.defineProperty(MouseEvent.prototype, name, {get() {
    return real.call(this) / enlarged(this.target);
  }});
}

// The figures as they were kept, whatever was done to them when they were shown before.
async function show(at) {
  const mine = ++turn, step = steps[at], place = step.querySelector(".figures");
  for (const away of await Promise.all(leave)) away?.();
  if (mine !== turn) return;
  for (const each of steps) {
    each.hidden = each !== step;
    each.querySelector(".figures").replaceChildren();
  }
  globalThis.explorerChoices = new Map();
  globalThis.explorerFrames = undefined;
  step.classList.add("drawing");
  arrange();
  place.append(step.querySelector("template").content.cloneNode(true));
  enlarge(place, 1);
  leave = [...place.querySelectorAll(".host")].map(draw);
  await Promise.all(leave);
  tellNames(step, place);
  await enlargeToFit(step, place, () => mine === turn);
  if (mine !== turn) return;
  step.classList.remove("drawing");
  tellMore();
}

// Letters of 12 pixels become 18 where there is room as on a projector; they are smaller where the
// first figure would not be there whole.
const least = () => innerWidth < 1000 ? 1 : 1.51;
const SIZES = Array.from({length: 25}, (_, at) => LARGEST - at * FINEST);
const arrange = () => document.documentElement.classList.toggle("presenting", innerWidth >= 1000);
const roomy = place => [...place.querySelectorAll(".host")].filter(host => host.style.getPropertyValue("--room"));

// What takes the window that is left takes the slide; the other figures are below it.
async function enlargeToFit(step, place, isMine) {
  if (roomy(place).length) return enlarge(place, least());
  let first = 0, last = SIZES.length;  // by halves: each look takes a frame or two
  while (first < last && isMine()) {
    const middle = (first + last) >> 1, size = SIZES[middle];
    enlarge(place, size);
    await pause();
    await pause();
    const whole = size >= least() ? fits(step, place) : hasFirst(step, place);
    if (whole) last = middle;
    else first = middle + 1;
  }
  if (isMine()) enlarge(place, SIZES[first] ?? least());
}

const LOWEST = 260, EDGE = 14;
function enlarge(place, by) {
  zoom = by;
  place.style.zoom = by;
  const step = place.closest(".step");
  const left = measure.call(step).bottom - measure.call(place).top - step.scrollTop - EDGE;
  for (const host of roomy(place)) host.style.setProperty("--room", `${Math.max(LOWEST, Math.floor(left / by))}px`);
  document.dispatchEvent(new Event("explorer-room"));
}

// The name of a figure stands once: in its own line over it, unless the slide has it.
function tellNames(step, place) {
  const title = step.querySelector("h2").textContent;
  for (const figure of place.querySelectorAll("figure:has(> .host)")) {
    const host = figure.querySelector(".host"), own = host.shadowRoot.querySelector(".sentence")?.textContent;
    const name = figure.querySelector("figcaption"), is = text => Boolean(text) && title.includes(text.trim());
    name.hidden = Boolean(own) || is(name.textContent);
    host.style.setProperty("--named", is(own) ? "hidden" : "visible");
  }
}

const fits = (step, place) =>
  step.scrollHeight <= step.clientHeight + 1 && place.scrollWidth <= place.clientWidth + 1;

// To its foot, below which a canvas may be empty.
function hasFirst(step, place) {
  const figure = place.firstElementChild;
  const end = figure?.querySelector(".host")?.shadowRoot.querySelector(".foot") ?? figure;
  return !end || measure.call(end).bottom <= measure.call(step).bottom;
}

// What is under the edge is nowhere else to be seen: a figure may end there as if it were whole.
const LITTLE = 24, PAGE = 0.8;
const hasMore = ({scrollHeight, clientHeight, scrollTop}) =>
  scrollHeight - clientHeight - scrollTop > LITTLE;
const tellMore = () => document.body.classList.toggle("has-more", hasMore(steps[now]));
const roll = by => steps[now].scrollBy({top: by * PAGE * steps[now].clientHeight});

function go(to) {
  const at = Math.max(0, Math.min(steps.length - 1, to));
  if (at === now) return;
  now = at;
  history.replaceState(null, "", `#${at + 1}`);
  counter.textContent = `${at + 1} / ${steps.length}`;
  back.disabled = at === 0;
  next.disabled = at === steps.length - 1;
  for (const [place, link] of list.querySelectorAll("a").entries()) {
    link.toggleAttribute("aria-current", place === at);
  }
  document.querySelector("#note").textContent = steps[at].querySelector(".said").textContent;
  document.title = `${steps[at].querySelector("h2").textContent} · ${document.body.dataset.title}`;
  show(at);
}

const asked = () => (Number.parseInt(location.hash.slice(1), 10) || 1) - 1;
const toggle = mark => {
  document.body.classList.toggle(mark);
  tellMore();
};
const fill = () => document.fullscreenElement ? document.exitFullscreen()
  : document.documentElement.requestFullscreen?.();
const other = () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  show(now);
};
const KEYS = {
  " ": () => go(now + 1), ArrowRight: () => go(now + 1), PageDown: () => go(now + 1),
  ArrowLeft: () => go(now - 1), PageUp: () => go(now - 1), Backspace: () => go(now - 1),
  Home: () => go(0), End: () => go(steps.length - 1),
  ArrowDown: () => roll(1), ArrowUp: () => roll(-1),
  f: fill, s: () => toggle("with-notes"), d: other, o: () => list.showModal(),
};

// In a view the arrows and Space are the view's; Escape gives them back to the steps.
function isTaken({key, target}) {
  if (list.open) return true;
  if (key === "PageDown" || key === "PageUp") return false;
  if (target.closest?.(".host")) return key.length > 1 || key === " ";
  return target.closest("button, a") && key === " ";
}

addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape" && event.target.closest(".host")) event.target.blur();
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || isTaken(event)) return;
  event.preventDefault();
  event.stopImmediatePropagation();  // a view that plays hears keys wherever they are pressed
  act();
}, true);
addEventListener("hashchange", () => { list.close(); go(asked()); });
addEventListener("resize", () => show(now));
back.addEventListener("click", () => go(now - 1));
next.addEventListener("click", () => go(now + 1));
addEventListener("scroll", tellMore, true);
const buttons = {"#more": KEYS.ArrowDown, "#list": KEYS.o, "#notes": KEYS.s, "#full": KEYS.f, "#theme": KEYS.d};
for (const [name, act] of Object.entries(buttons)) {
  document.querySelector(name).addEventListener("click", act);
}
go(asked());
