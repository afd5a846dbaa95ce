// Where the Tab key has led: what it is, whether one sees that, and whether it was there before.
//
// Null out of the page: a browser with windows goes on to its own stops, and in again at the top.
async () => {
  const deepest = () => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return at;
  };
  const drawn = () => new Promise(come => requestAnimationFrame(() => requestAnimationFrame(come)));
  const up = each => each.parentElement ?? each.getRootNode().host;
  const at = deepest();
  const out = [document.body, document.documentElement, document.querySelector(".explorer-skip")];
  if (!at || out.includes(at)) return null;
  const again = globalThis.stops.includes(at);
  const table = at.closest("[data-testid=data-grid-canvas]");
  if (table) {  // draws its focus itself, cell by cell; its cells within are for screen readers
    if (globalThis.stops.at(-1) !== table) globalThis.stops.push(table);
    return ["a table", true, false];
  }
  globalThis.stops.push(at);
  const looks = () => {
    const found = [];
    for (let each = at, i = 0; each && i < 6; each = up(each), i++) {
      for (const part of [null, "::before", "::after"]) {
        const {outlineStyle, outlineColor, boxShadow, borderColor, backgroundColor, clipPath} =
          getComputedStyle(each, part);
        found.push(outlineStyle, outlineColor, boxShadow, borderColor, backgroundColor, clipPath);
      }
    }
    return found.join();
  };
  let focused = looks();
  at.blur();
  let left = looks();
  at.focus();
  if (focused === left) {  // what draws its focus in the next frame
    await drawn();
    focused = looks();
    at.blur();
    await drawn();
    left = looks();
    at.focus();
  }
  const name = at.getAttribute("aria-label") || at.textContent;
  return [`${at.tagName} ${name.trim().slice(0, 40)}`, focused !== left, again];
}
