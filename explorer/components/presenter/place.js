// In a hall the window is small for its type: the main figure is scrolled to, once for each page and
// step of a lesson, where it would end below the window and no step shows a control of its own. What
// the keys step stays in view, and who leaves finds the page where it was.

import {everywhere, steppers, isShown} from "./steps.js";

const LOOK = 200;  // ms
const PATIENCE = 15;  // looks, then the page has no figure
const DRAWN = "[data-testid=stBidiComponentIsolated], [data-testid=stVegaLiteChart], .stPlotlyChart";
const HEADING = "[data-testid=stMarkdownContainer] > :is(p, h2, h3, h4):has(> strong), :is(h2, h3, h4)";
const ABOVE_HEADING = 8, ABOVE_STEPS = 2;  // px
const NEAR = 32;  // px of a figure's foot that its heading is worth
const RESTS = '[data-testid="stApp"][data-test-script-state="notRunning"]';

const step = () => new URL(location.href).searchParams.get("lesson_step") ?? "";
const showsControl = () => document.querySelector(".lesson-strip")?.dataset.control;

// The largest of those that begin near the top; a view without a canvas is a list.
function mainFigure(main) {
  let found = null, most = 0;
  for (const each of main.querySelectorAll(DRAWN)) {
    const holder = [each, ...each.querySelectorAll("*")].find(part => part.shadowRoot);
    const canvas = holder?.shadowRoot.querySelector(".view canvas");
    const figure = holder ? canvas : each;
    if (!figure?.checkVisibility()) continue;
    const {top, width, height} = figure.getBoundingClientRect();
    if (width * height <= most || top + main.scrollTop > 1.5 * innerHeight) continue;
    found = figure;
    most = width * height;
  }
  return found;
}

// The last heading above it, in its column.
function headingTop(main, box) {
  const tops = [...main.querySelectorAll(HEADING)].filter(each => each.checkVisibility())
    .map(each => each.getBoundingClientRect())
    .filter(each => each.top < box.top && each.left < box.right && each.right > box.left)
    .map(each => each.top);
  return tops.length ? Math.max(...tops) : box.top;
}

const isDrawn = () => [...everywhere(".view")].every(view => view.dataset.painted || !isShown(view));

const hasSteps = one => one.can(1, true) || one.can(-1, true);

// Where the page is scrolled to for all of the figure under its heading, or as much as the window holds.
function topFor(main, figure) {
  const box = figure.getBoundingClientRect(), from = main.getBoundingClientRect().top - main.scrollTop;
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect().height ?? 0;
  const over = box.bottom - from - (innerHeight - panel);
  if (over <= 0) return 0;
  const heading = headingTop(main, box) - from - ABOVE_HEADING;
  const top = heading > over - NEAR ? heading : Math.min(box.top - from, over);
  const steps = steppers().filter(hasSteps).map(one => one.root.getBoundingClientRect().top - from - ABOVE_STEPS);
  return Math.max(0, Math.min(top, ...steps));
}

export function makePlace(presenter) {
  const {dataset} = document.documentElement;
  // The page that is drawn, as page_top.js says: the address names the next one before it comes.
  const here = () => `${globalThis.explorerPage ?? ""} ${step()}`;
  const page = () => document.querySelector("[data-testid=stMain]");
  let looks = 0, before = "", found = {}, scrolled = null;
  const find = () => { found = {place: here(), top: page()?.scrollTop ?? 0}; };
  const scroll = (main, figure) => {
    main.scrollTo({top: topFor(main, figure), behavior: "instant"});
    scrolled = main.scrollTop;
  };
  // What stands above the figure may come late: the page follows it until somebody else scrolls.
  const follow = (place, main) => {
    if (scrolled === null || !main) return;
    const figure = mainFigure(main), isOver = dataset.placed !== place || main.scrollTop !== scrolled;
    if (isOver || ++looks > PATIENCE) {
      scrolled = null;
      looks = 0;
    } else if (figure) scroll(main, figure);
  };
  const look = () => {
    const place = here(), main = page();
    if (presenter.on) follow(place, main);
    if (!presenter.on || dataset.placed === place || !main || !document.querySelector(RESTS)) return;
    if (found.place !== place) find();
    const figure = mainFigure(main), {top, bottom} = figure?.getBoundingClientRect() ?? {};
    const now = JSON.stringify([place, top, bottom]), isStill = figure && now === before && isDrawn();
    before = now;
    if (!isStill && ++looks < PATIENCE) return;
    if (figure && !showsControl() && main.scrollTop === 0) scroll(main, figure);
    looks = 0;
    dataset.placed = place;
  };
  setInterval(look, LOOK);
  return {
    begin() { delete dataset.placed; before = ""; looks = 0; scrolled = null; find(); },
    end() { if (found.place === here()) page()?.scrollTo({top: found.top, behavior: "instant"}); },
  };
}
