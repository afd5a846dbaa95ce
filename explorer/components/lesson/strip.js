// The head of the lesson's panel: where one is, Back and Next, and what the address says is done.

import {progress, keep, go, made} from "./progress.js";

const LOOK = 200;  // ms between two looks: an address that a script writes is told to nobody
const AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]';
const RING = globalThis.explorerLessonRing ??= new CSSStyleSheet();
// The lesson says what the page is for; presented, what is no figure stays in its order.
const WITH_PANEL = ".st-key-opening > :not(:has(h1), :has(.st-key-views), .st-key-views) { display: none; } " +
  `html.presenting [data-testid="stMainBlockContainer"] > * > :not(:has([class*="st-key-stage-"])) { order: 0 !important; }`;
const hasTask = data => Object.keys(data.done).length > 0;

function pageOf({base, first}, where = document.location) {
  return where.pathname.slice(base.length).replace(/^\/|\/$/g, "") || first;
}

// As is_done in lesson.py; one test asks both.
function isDone(data, where = document.location) {
  const {page = data.page, ...values} = data.done, now = new URLSearchParams(where.search);
  return hasTask(data) && pageOf(data, where) === page && Object.entries(values).every(([name, value]) => {
    if (value === "*") return Boolean(now.get(name));
    return (now.get(name) ?? "") === value || !now.has(name) && data.usual[name] === value;
  });
}

// The control stays as it is, but for an outline; it may be drawn later, or anew.
function ring(state) {
  const {data, root} = state, isHere = pageOf(data) === data.page && data.control, isAsked = isHere && !state.done;
  const colour = getComputedStyle(root).getPropertyValue("--st-primary-color") || "Highlight";
  const control = `.st-key-${CSS.escape(data.control)}`;
  const outline = `${control} { outline: 2px solid ${colour}; outline-offset: 4px; border-radius: 6px; }`;
  const unclipped = `[data-testid="stHorizontalBlock"]:has(${control}) { overflow: visible; }`;
  // What is scrolled to, or has the focus, is not under the panel.
  const height = root.closest(".st-key-lesson_panel")?.offsetHeight ?? 0;
  const above = `[data-testid="stMain"] { scroll-padding: 12px 0 ${height + 16}px; }`;
  const near = `html.presenting ${control} { outline-offset: 1px; }`;  // the window's edge and the figure are close
  // Presented, the figure comes first, and what the step is about before it.
  const first = `html.presenting [data-testid="stMainBlockContainer"] > * > :is(${control}, :has(${control})) { order: -2 !important; }`;
  const rule = WITH_PANEL + above + (isHere ? first : "") + (isAsked ? `${outline} ${near} @media (min-width: 641px) { ${unclipped} }` : "");
  if (state.rule !== rule) RING.replaceSync(state.rule = rule);
  if (!document.adoptedStyleSheets.includes(RING)) document.adoptedStyleSheets.push(RING);
  const looked = (state.done || !hasTask(data)) && data.look;
  const drawn = looked ? document.querySelector(`.st-key-${CSS.escape(looked)}`) : isAsked && document.querySelector(control);
  const presents = document.documentElement.matches(".presenting"), shown = `${data.at} ${presents} ${looked ? drawn?.offsetHeight : ""}`;
  // A page that is still being drawn may be too short to scroll as far.
  if (!drawn || state.shown === shown || !document.querySelector(AT_REST)) return;
  state.shown = shown;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  // In a hall the window is small for its type: the figure below the control has all of it.
  drawn.scrollIntoView({block: presents ? "start" : "nearest", behavior: calm ? "instant" : "smooth"});
}

// A question is answered before the app shows the answer.
function lockShowMe({data, root}) {
  const question = `.st-key-lesson_guess_${CSS.escape(data.name)}_${data.at} [aria-checked="true"]`;
  const button = root.querySelector(".show-me");
  button.disabled = data.asks && !document.querySelector(question);
  button.title = button.disabled ? "Answer the question first" : "";
}

// Where the words scroll, a new answer is scrolled to.
function showAnswer(state) {
  const answer = document.querySelector(".st-key-lesson_answer"), panel = answer?.closest(".st-key-lesson_panel");
  if (panel && !state.answer) panel.scrollTo({top: panel.scrollHeight, behavior: "instant"});
  state.answer = answer;
}

function look(state) {
  const {data, root} = state;
  if (!root.isConnected) return;
  lockShowMe(state);
  showAnswer(state);
  if (!state.done && isDone(data)) {
    keep(data.name, kept => { if (!kept.done.includes(data.at)) kept.done.push(data.at); });
    state.done = true;
    draw(state);
  }
  const away = pageOf(data) !== data.page && pageOf(data) !== data.done.page;
  root.querySelector(".return").hidden = !away;
  ring(state);
}

function draw(state) {
  const {data, root, done} = state, find = name => root.querySelector(name);
  const kept = progress()[data.name]?.done ?? [], last = data.at === data.steps.length;
  root.dataset.control = data.control;
  find(".where").textContent = data.title;
  find(".count").textContent = `${data.at} of ${data.steps.length}`;
  find(".step").textContent = data.steps[data.at - 1].title;
  find(".mark").hidden = !done;
  find(".said").textContent = done && state.wasOpen ? "Done." : "";
  find(".show-me").hidden = !data.shown || done;
  find(".following").hidden = !last || !data.following;
  find(".following").textContent = `Next lesson: ${data.following?.title}`;
  find(".back").disabled = data.at === 1;
  find(".next").textContent = last ? "Finish" : "Next";
  find(".next").toggleAttribute("data-lesson-end", last);
  find(".next").classList.toggle("ready", done || !hasTask(data));
  find(".dots").replaceChildren(...data.steps.map((step, i) => {
    const dot = made("button", "dot"), at = i + 1;
    dot.type = "button";
    dot.title = step.title;
    dot.setAttribute("aria-label", `Step ${at}: ${step.title}${kept.includes(at) ? ", done" : ""}`);
    if (at === data.at) dot.setAttribute("aria-current", "step");
    dot.classList.toggle("done", kept.includes(at));
    dot.addEventListener("click", () => to(state, at));
    return dot;
  }));
}

// A step without a task is done when the reader leaves it for the next.
function finish({data}) {
  if (hasTask(data)) return;
  keep(data.name, kept => { if (!kept.done.includes(data.at)) kept.done.push(data.at); });
}

function to(state, at, focus = "") {
  const {data} = state;
  globalThis.explorerLessonFocus = focus;
  if (at > data.at) finish(state);
  if (at > data.steps.length) go(data.end);
  else if (at > 0) go(data.steps[at - 1].open);
}

function make(root) {
  const state = {root};
  const on = (name, act) => root.querySelector(name).addEventListener("click", () => act(state.data));
  on(".back", data => to(state, data.at - 1, ".back"));
  on(".next", data => to(state, data.at + 1, ".next"));
  on(".show-me", data => go(data.shown));
  on(".following", data => {
    finish(state);
    go(data.following.open);
  });
  on(".return", data => go(data.steps[data.at - 1].open));
  on(".leave", () => {
    const here = new URL(document.location.href);
    here.searchParams.delete("lesson");
    here.searchParams.delete("lesson_step");
    go(here);
  });
  return state;
}

const states = new WeakMap();

// A link that names only the lesson opens its first step as Start does.
function begin({steps}) {
  const now = new URLSearchParams(document.location.search);
  if (now.has("lesson") && !now.has("lesson_step")) go(steps[0].open, "replaceState");
}

export default function ({data: [data], parentElement}) {
  begin(data);
  const root = parentElement.querySelector(".lesson-strip");
  if (!states.has(root)) states.set(root, make(root));
  const state = states.get(root), isNew = state.at !== data.at || state.name !== data.name;
  Object.assign(state, {data, at: data.at, name: data.name, rule: null});
  if (isNew) {
    keep(data.name, kept => { kept.at = data.at; });
    state.done = isDone(data);
    state.wasOpen = false;
  }
  draw(state);
  state.wasOpen = true;
  look(state);
  if (globalThis.explorerLessonFocus) {
    const button = root.querySelector(globalThis.explorerLessonFocus);
    (button.disabled ? root.querySelector(".next") : button).focus({preventScroll: true});
    globalThis.explorerLessonFocus = "";
  }
  const looking = setInterval(() => look(state), LOOK);
  return () => {
    clearInterval(looking);
    if (!document.querySelector(".lesson-strip")) RING.replaceSync("");
  };
}
