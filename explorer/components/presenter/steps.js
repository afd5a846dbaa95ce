// Forward and back: the steps of the page that is shown, and those of the open lesson. A view with
// steps notes itself in `explorerSteppers` (playing.js).

const STEP_ROWS = ".st-key-up_to";  // rows of choices that are steps, by their key

// Everything that this finds, also inside the views.
function* everywhere(selector, root = document) {
  yield* root.querySelectorAll(selector);
  for (const {shadowRoot} of root.querySelectorAll("*")) if (shadowRoot) yield* everywhere(selector, shadowRoot);
}

const isShown = found => found.isConnected && found.checkVisibility();

// `grows`: also beyond the last step, where the page can make one more.
function stepOnPage(by, grows) {
  const found = [...globalThis.explorerSteppers ?? []].find(one => isShown(one.root) && one.can(by, grows));
  if (found) return found.step(by) ?? true;
  for (const row of document.querySelectorAll(STEP_ROWS)) {
    const choices = [...row.querySelectorAll("[role=radio]")];
    const next = choices[choices.findIndex(one => one.getAttribute("aria-checked") === "true") + by];
    if (isShown(row) && next) return next.click() ?? true;
  }
  return false;
}

function stepInLesson(by) {
  const buttons = [...everywhere(`[data-lesson-step="${by}"]`)];
  const button = buttons.find(one => !one.disabled && isShown(one));
  return button ? button.click() ?? true : false;
}

const stepOn = (by, pageFirst) => pageFirst
  ? stepOnPage(by, false) || stepInLesson(by) || stepOnPage(by, true)
  : stepInLesson(by) || stepOnPage(by, true);
