// Presenter mode: large type, only the figures and what one chooses in them, keys that step, a
// pointer that everybody sees, and a second window with notes.

import {enlarge, enlargedBy} from "./enlarge.js";
import {stepOn} from "./steps.js";
import {makeSpot} from "./spot.js";
import {showKeys, lettersAct} from "./keys.js";
import {makeNotes} from "./notes.js";

const WRITES = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable=true]";
const TAKES_ARROWS = "[role=slider], [role=radio], [role=tab], [role=option], [role=application], canvas, input, [role=dialog] *";
// The button for the next step has the focus after a step: the space bar stays the key that steps.
const TAKES_SPACE = "button:not([data-lesson-step='1']), a, summary, [role=button], [role=radio], [role=checkbox], [role=switch]";
const STEPS = {" ": 1, PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1};
const SMALLEST = 12, READABLE = 18.1;  // px: our smallest type, and what the last row can read, as whole pixels round
const ROOM = [1280, 720];  // what is readable is so on this screen, and as large a share of any other

function size() {
  const [width, height] = [innerWidth, innerHeight].map(x => x * enlargedBy);
  return Math.max(1, READABLE / SMALLEST * Math.min(width / ROOM[0], height / ROOM[1]));
}

// The address says whether it presents, whoever writes it.
function marked(address, on) {
  const meant = new URL(address ?? location.href, location.href);
  if (on === (meant.searchParams.get(PARAMETER) === "true")) return address;
  if (on) meant.searchParams.set(PARAMETER, "true");
  else meant.searchParams.delete(PARAMETER);
  return meant.href;
}

function sheetOf(rules) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  return sheet;
}

function makePresenter() {
  const it = {on: false}, spot = makeSpot(), notes = makeNotes(it);
  const root = document.documentElement;
  const sheet = sheetOf(PAGE_CSS);
  sheet.disabled = true;  // a browser looks at its rules at every change of the page
  document.adoptedStyleSheets.push(sheetOf(KEYS_CSS), sheet);
  for (const name of ["pushState", "replaceState"]) {
    const own = history[name].bind(history);
    history[name] = (state, title, address) => own(state, title, marked(address, it.on));
  }

  it.turn = on => {
    if (on === it.on) return;
    it.on = on;
    root.classList.toggle("presenting", on);
    sheet.disabled = out.hidden = !on;
    enlarge(on ? size() : 1);
    history.replaceState(history.state, "");
    if (!on) spot.turn(false);
    notes.tell();
  };

  // The browser's full screen, which it gives only to a key or a click; without, it works as well.
  it.toggle = () => {
    it.turn(!it.on);
    if (it.on) root.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen();
  };

  // By touch there is no key, and the menu is hidden.
  const out = Object.assign(document.createElement("button"), {
    className: "presenter-out", textContent: "×", ariaLabel: "Stop presenting", onclick: it.toggle, hidden: true,
  });
  document.body.append(out);

  it.begin = () => { if (!it.on) it.toggle(); };
  it.tell = notes.tell;

  const keys = () => showKeys(it.on ? ["F", "L", "S"] : ["F"], actsOn);
  // Whether a letter does something now.
  const actsOn = (letter, event) => {
    if (letter === "f") it.toggle();
    else if (letter === "?") keys();
    else if (letter === "s" && it.on) notes.open();
    else if (letter === "l" && it.on) event ? spot.down(event) : spot.turn(!spot.isOn());
    else return false;
    return true;
  };

  const isLeft = event => {
    const from = event.composedPath()[0], {key} = event;
    if (event.ctrlKey || event.metaKey || event.altKey || from.closest?.(WRITES)) return true;
    if (document.querySelector("dialog[open]") && key !== "?") return true;
    // An answer that is chosen has the focus, and no key changes it.
    if (from.closest?.(".st-key-lesson_words [aria-checked=true]")) return false;
    if (key.startsWith("Arrow") && (event.shiftKey || from.closest?.(TAKES_ARROWS))) return true;
    return key === " " && from.closest?.(TAKES_SPACE)?.matches(":focus-visible");
  };

  // Whether it was one of our keys; then it is done.
  const acts = event => {
    if (event.key === "/" && (event.ctrlKey || event.metaKey)) return keys() ?? true;
    if (isLeft(event)) return false;
    const by = it.on && STEPS[event.key] * (event.shiftKey ? -1 : 1);
    return by ? stepOn(by, event.key.startsWith("Arrow")) : lettersAct && actsOn(event.key.toLowerCase(), event);
  };

  addEventListener("keydown", event => {
    if (!acts(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  addEventListener("keyup", event => { if (event.key.toLowerCase() === "l") spot.up(event); }, true);
  // Whatever else Escape closes or lets go of comes first.
  addEventListener("keydown", event => {
    if (event.key !== "Escape" || event.defaultPrevented || !it.on || isLeft(event)) return;
    if (!document.querySelector("[data-baseweb=popover], [role=dialog]")) it.toggle();
  });
  document.addEventListener("fullscreenchange", () => {
    if (!document.fullscreenElement && it.on && !notes.opens()) it.turn(false);
  });
  addEventListener("resize", () => {
    if (it.on && Math.abs(size() - enlargedBy) > 0.001) enlarge(size());
  });
  addEventListener("popstate", () => history.replaceState(history.state, ""));
  if (new URL(location.href).searchParams.get(PARAMETER) === "true") it.turn(true);
  return it;
}

globalThis.explorerPresenter ??= makePresenter();

export default () => {};
