// Forward and back: the steps of the page that is shown, and those of the open lesson. A view with
// steps notes itself in `explorerSteppers` (step_buttons.js).

const STEP_ROWS = ".st-key-up_to";  // rows of choices that are steps, by their key

// Everything that this finds, also inside the views.
export function* everywhere(selector, root = document) {
  yield* root.querySelectorAll(selector);
  for (const {shadowRoot} of root.querySelectorAll("*")) if (shadowRoot) yield* everywhere(selector, shadowRoot);
}

export const isShown = found => found.isConnected && found.checkVisibility();

function stepsOfRow(row) {
  const next = by => {
    const choices = [...row.querySelectorAll("[role=radio]")];
    return choices[choices.findIndex(one => one.getAttribute("aria-checked") === "true") + by];
  };
  return {root: row, can: by => Boolean(next(by)), step: by => next(by).click()};
}

// What is shown of the page that has steps, in the order in which the keys ask it.
export function steppers() {
  const rows = Array.from(document.querySelectorAll(STEP_ROWS), stepsOfRow);
  return [...globalThis.explorerSteppers ?? [], ...rows].filter(one => isShown(one.root));
}

// A player steps a figure, which is to be seen.
const figureOf = ({root}) => root.matches(".player") && document.querySelector("[class*=st-key-stage-]") || root;

function isInSight(stepper) {
  const {top, bottom, height} = figureOf(stepper).getBoundingClientRect();
  return Math.min(bottom, innerHeight) - Math.max(top, 0) > 0.8 * Math.min(height, innerHeight);
}

// `grows`: also beyond the last step, where the page can make one more.
function stepOnPage(by, grows) {
  const all = steppers(), seen = all.filter(isInSight);
  const found = (seen.length ? seen : all).find(one => one.can(by, grows));
  if (!found) return false;
  if (!seen.length) figureOf(found).scrollIntoView({block: "nearest", behavior: "instant"});
  found.step(by);
  return true;
}

// Beyond the ends of a lesson no key goes: what comes there is for the button alone, which moves as a
// sign that the key was heard.
function stepInLesson(by) {
  const button = [...everywhere(`[data-lesson-step="${by}"]`)].find(isShown);
  if (!button) return false;
  if ("lessonEnd" in button.dataset) button.animate({scale: [1, 1.2, 1]}, 400);
  else if (!button.disabled) button.click();
  return true;
}

export const stepOn = (by, pageFirst) => pageFirst
  ? stepOnPage(by, false) || stepInLesson(by) || stepOnPage(by, true)
  : stepInLesson(by) || stepOnPage(by, true);
