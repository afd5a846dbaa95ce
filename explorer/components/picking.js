// A canvas with cells to pick from: pointing names one, a click or the keys and Enter pick it.
// The view has hit(state, event), paint(state), spoken(state, cell), sizes(state), which are rows
// and columns, and AGAIN: whether the chosen cell can be picked once more. It may have
// state.shows(cell): whether what is picked is drawn elsewhere at once, without the server.

function make(state) {
  const {root} = state;
  state.stage = root.querySelector(".stage");
  state.canvas = root.querySelector("canvas");
  state.hovered = state.walked = null;
  const {canvas} = state;
  canvas.addEventListener("pointermove", event => {
    const cell = hit(state, event);
    if (same(cell, state.hovered)) return;
    state.hovered = cell;
    paint(state);
  });
  canvas.addEventListener("pointerleave", () => { state.hovered = null; paint(state); });
  canvas.addEventListener("click", event => {
    const cell = hit(state, event);
    if (cell) pick(state, cell);
  });
  canvas.addEventListener("keydown", event => walk(state, event));
  canvas.addEventListener("blur", () => { state.walked = null; tellPick(state); paint(state); });
  state.chosen = () => state.data && choose(state);
}

const same = (a, b) => a === b || (a && b && a[0] === b[0] && a[1] === b[1]);

// The server's choice wins as soon as it comes; until then the reader's own click shows. Picks are
// counted, and a choice says which it answers: that to an earlier one is old. Another session counts
// anew. After another model's data the choice for it may still be on its way.
function choose(state) {
  const choices = globalThis.explorerChoices, {name} = state.data;
  if (choices?.has(name)) {
    const choice = choices.get(name), answers = choice ? choice[2] ?? 0 : Infinity;
    if (choice && state.session && choice[3] !== state.session) state.picks = 0;
    if (choice) state.session = choice[3];
    if (answers >= (state.picks ?? 0)) state.selected = choice && choice.slice(0, 2);
    if (choice && answers > (state.picks ?? 0)) state.picks = answers;
  }
  const there = cell => cell?.every((at, side) => at < sizes(state)[side]);
  for (const cell of ["selected", "hovered", "walked"]) if (!there(state[cell])) state[cell] = null;
  if (state.selected) state.shows?.(state.selected);
  paint(state);
}

function pick(state, cell, rest = 0) {
  if (!AGAIN && same(cell, state.selected)) return;
  state.selected = cell;
  state.root.querySelector(".spoken").textContent = `${spoken(state, cell)}, picked`;
  state.picks = (state.picks ?? 0) + 1;
  state.shows?.(cell);
  paint(state);
  state.untold = [...cell, state.picks];
  state.path = location.pathname;
  clearTimeout(state.telling);
  if (rest) state.telling = setTimeout(() => tellPick(state), rest);
  else tellPick(state);
}

// The page hears of the last pick in one message: at once, or when the keys rest or are left; a
// page that Back has left hears nothing, since the server would return to it.
function tellPick(state) {
  if (!state.untold || state.path !== location.pathname) return;
  clearTimeout(state.telling);
  state.component.setTriggerValue("picked", state.untold);
  state.untold = null;
}

function walk(state, event) {
  const at = state.walked || state.selected || [0, 0];
  const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  const next = step && sizes(state).map((size, i) => Math.max(0, Math.min(size - 1, at[i] + step[i])));
  if (step && state.shows?.(next)) {
    state.hovered = state.walked = null;
    pick(state, next, REST);
  } else if (step) {
    state.walked = next;
    state.hovered = null;
    state.root.querySelector(".spoken").textContent = spoken(state, state.walked);
    paint(state);
  } else if (event.key === "Enter" || event.key === " ") pick(state, at);
  else if (event.key === "Escape" && state.walked) { state.walked = null; paint(state); }
  else return;
  event.preventDefault();
  event.stopPropagation();
}
