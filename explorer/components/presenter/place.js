// In a hall the window is small for its type: the main figure is scrolled to, once for each page and
// step of a lesson, where it would end below the window and no step shows a control of its own.

const LOOK = 200;  // ms
const PATIENCE = 15;  // looks, then the page has no figure
const DRAWN = "[data-testid=stBidiComponentIsolated], [data-testid=stVegaLiteChart], .stPlotlyChart";
const HEADING = "[data-testid=stMarkdownContainer] > :is(p, h2, h3, h4):has(> strong), :is(h2, h3, h4), .st-key-head_title";
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

// All of the figure under its heading, or as much as the window holds.
function scrollToFigure(main, figure) {
  const box = figure.getBoundingClientRect(), from = main.getBoundingClientRect().top;
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect().height ?? 0;
  const over = box.bottom - from - (innerHeight - panel);
  if (over <= 0) return;
  const heading = headingTop(main, box) - from - 8;
  const top = heading > over - NEAR ? heading : Math.min(box.top - from, over);
  main.scrollBy({top, behavior: "instant"});
}

function makePlace(presenter) {
  let looks = 0, before = "";
  const look = () => {
    const {dataset} = document.documentElement, place = location.pathname + step();
    const main = document.querySelector("[data-testid=stMain]");
    if (!presenter.on || dataset.placed === place || !main || !document.querySelector(RESTS)) return;
    const figure = mainFigure(main), {top, bottom} = figure?.getBoundingClientRect() ?? {};
    const now = JSON.stringify([place, top, bottom]), isStill = figure && now === before;
    before = now;
    if (!isStill && ++looks < PATIENCE) return;
    if (figure && !showsControl() && main.scrollTop === 0) scrollToFigure(main, figure);
    looks = 0;
    dataset.placed = place;
  };
  setInterval(look, LOOK);
  return {forget() { delete document.documentElement.dataset.placed; before = ""; looks = 0; }};
}
