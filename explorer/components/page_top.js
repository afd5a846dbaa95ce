// Another page opens at its top: Streamlit leaves the reader where the page before was scrolled to.
// What the address hides of the page is not displayed: no key reaches it, and it keeps its value.

import {fades} from "./fading.js";
import {watchStages} from "./figure_stage.js";

function hide(names) {
  const sheet = globalThis.explorerHidden ??= new CSSStyleSheet();
  const rule = name => `.st-key-${CSS.escape(name)} { display: none !important; }`;
  sheet.replaceSync(names.map(rule).join("\n"));
  if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
}

// All that follows one act of the reader is one entry in the browser's history: another page and what
// it chooses there, also what Streamlit takes out of the address of this page on the way. So Back
// leads to what was on screen before. On arrival from outside and after Back nothing is a new entry.
function oneEntryForAnAct() {
  if (globalThis.explorerCountsActs) return;
  globalThis.explorerCountsActs = true;
  const push = history.pushState.bind(history);
  let acted = false;
  for (const event of ["pointerdown", "keydown", "click", "popstate"]) {
    addEventListener(event, () => { acted = event !== "popstate"; }, true);
  }
  history.pushState = (...entry) => {
    if (acted) push(...entry);
    else history.replaceState(...entry);
    acted = false;
  };
}

// The first figure of the page: what takes the keys in a view, else the picture itself.
function figure() {
  const drawn = "[data-testid=stBidiComponentIsolated], [data-testid=stVegaLiteChart], .stPlotlyChart";
  for (const each of document.querySelectorAll(`#stMain :is(${drawn})`)) {
    const holder = [each, ...each.querySelectorAll("*")].find(part => part.shadowRoot);
    if (!holder && !each.matches("[data-testid=stBidiComponentIsolated]")) return each;
    const view = holder?.shadowRoot.querySelector(".view canvas, .view .stage");
    const takes = view?.closest(".view").querySelector("[tabindex='0']");
    if (view?.checkVisibility()) return takes ?? view;
  }
  return document.querySelector("#stMain h1");
}

// The first stop of the Tab key, before Streamlit's own link to the page's words.
function skip() {
  if (document.querySelector(".explorer-skip")) return;
  const link = Object.assign(document.createElement("a"), {
    className: "explorer-skip", href: "#stMain", textContent: "Skip to the figure",
  });
  link.addEventListener("click", event => {
    event.preventDefault();
    const found = figure();
    if (!found) return;
    if (!found.hasAttribute("tabindex")) found.tabIndex = -1;
    found.focus();
    found.scrollIntoView({block: "nearest"});
  });
  document.body.prepend(link);
}

// Menus and dialogs stand beside the part of the page that says whether it is light or dark.
function sameTheme() {
  const app = document.querySelector('[data-testid="stApp"]');
  if (globalThis.explorerThemed === app) return;
  globalThis.explorerThemed = app;
  const tell = () => {
    document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
  };
  new MutationObserver(tell).observe(app, {attributeFilter: ["class"]});
  tell();
}

const PHONE = matchMedia("(max-width: 760px), (max-height: 500px) and (pointer: coarse)");

// On a phone the menu closes once something in it is chosen, or at a tap beside it. A tap beside an
// open list closes it, and does nothing else. In a wide window it stands open, now and at the next
// visit: Streamlit would remember that it was closed.
const press = name => document.querySelector(`[data-testid=${name}] button, button[data-testid=${name}]`)?.click();
const foldMenu = () => {
  if (!PHONE.matches) return;
  press("stSidebarCollapseButton");
  setTimeout(() => localStorage.removeItem("stSidebarCollapsed-"), 500);
};
function watchMenu() {
  if (globalThis.explorerMenu) return;
  PHONE.addEventListener("change", () => PHONE.matches || press("stExpandSidebarButton"));
  let isBeside = false;
  document.addEventListener("pointerdown", ({pointerType, target}) => {
    const list = pointerType === "touch" && document.querySelector("[role=menu], [role=listbox]");
    isBeside = Boolean(list) && !list.contains(target);
  }, true);
  document.addEventListener("click", event => {
    if (isBeside) event.stopPropagation();
    isBeside = false;
  }, true);
  globalThis.explorerMenu = addEventListener("click", event => {
    const leaves = part => part.matches?.("[data-testid=stSidebar] a, .present");
    if (event.target.matches("[data-testid=stSidebar]") || event.composedPath().some(leaves)) foldMenu();
  }) ?? true;
}

// On a phone a row of controls is one line that scrolls, also at a tap on its sign: see page_top.css.
const LINES = "#stMain :is(.st-key-title, .stHorizontalBlock, .stVegaLiteChart, .stElementContainer:has(> [data-testid=stButtonGroup]))";
function watchLines() {
  if (globalThis.explorerLines) return;
  const lines = new WeakMap();
  const fade = () => document.querySelectorAll(PHONE.matches ? LINES : "#none").forEach(line => {
    if (!lines.has(line)) {
      lines.set(line, fades(line));
      line.addEventListener("click", ({target, clientX}) => {
        const side = Math.sign(2 * clientX - innerWidth);
        if (target === line) line.scrollBy({left: 0.7 * side * line.clientWidth, behavior: "smooth"});
      });
    }
    lines.get(line)();
  });
  globalThis.explorerLines = new MutationObserver(() => requestAnimationFrame(fade));
  globalThis.explorerLines.observe(document.body, {childList: true, subtree: true});
  addEventListener("resize", fade);
}

// A tap on a mark of a chart, or beside it, shows what pointing at it shows.
function tapped({target, pointerType, clientX: x, clientY: y}) {
  document.querySelector("#vg-tooltip-element")?.classList.remove("visible");
  const chart = pointerType === "touch" && target.closest?.(".stVegaLiteChart");
  for (let at = 0; chart && at < 25; at++) {
    const away = 3 * Math.ceil(at / 8), turn = at * Math.PI / 4;
    const place = {clientX: x + away * Math.cos(turn), clientY: y + away * Math.sin(turn)};
    const part = document.elementFromPoint(place.clientX, place.clientY);
    part?.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, ...place}));
    if (document.querySelector("#vg-tooltip-element.visible")) return;
  }
}

export default function ({data: [page, hidden]}) {
  sameTheme();
  watchStages();
  watchMenu();
  watchLines();
  addEventListener("click", tapped);
  hide(hidden);
  oneEntryForAnAct();
  skip();
  const before = globalThis.explorerPage;
  globalThis.explorerPage = page;
  if (before === page) return;
  foldMenu();
  document.querySelector(".st-key-views [aria-current]")?.scrollIntoView({block: "nearest"});
  if (before !== undefined) {
    document.querySelector('[data-testid="stMain"]')?.scrollTo({top: 0, behavior: "instant"});
  }
}
