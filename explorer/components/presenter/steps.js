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

// What is stepped is in sight: a figure, or the one that a player steps; one that is stays in place.
function bringIntoSight(root) {
  const figure = root.matches(".player") && document.querySelector("[class*=st-key-stage-]") || root;
  const {top, bottom, height} = figure.getBoundingClientRect();
  const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
  if (seen < 0.9 * Math.min(height, innerHeight)) figure.scrollIntoView({block: "nearest", behavior: "instant"});
}

// `grows`: also beyond the last step, where the page can make one more.
function stepOnPage(by, grows) {
  const found = steppers().find(one => one.can(by, grows));
  if (!found) return false;
  bringIntoSight(found.root);
  found.step(by);
  return true;
}

// Beyond the ends of a lesson no key goes: what comes there is for the button alone.
function stepInLesson(by) {
  const button = [...everywhere(`[data-lesson-step="${by}"]`)].find(isShown);
  if (!button) return false;
  if (!button.disabled && !("lessonEnd" in button.dataset)) button.click();
  return true;
}

export const stepOn = (by, pageFirst) => pageFirst
  ? stepOnPage(by, false) || stepInLesson(by) || stepOnPage(by, true)
  : stepInLesson(by) || stepOnPage(by, true);
