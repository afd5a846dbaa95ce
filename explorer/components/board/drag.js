// A cell of one board is carried onto another board of the same rows: dragged with a mouse, a pen or
// a finger, or by a click, or Enter, on each of the two. It stays in its row, so that the column
// under the pointer says where it goes.

import {element, moved, taken} from "../shared.js";

const FAR = 6;  // pixels: a shorter way is a click
const boards = new Set();
let carried = null;  // the board, row and column that a cell comes from, and what follows the pointer

const cellOf = (state, target) => target?.closest?.("td") && state.rows.contains(target) ? target.closest("td") : null;
const placeOf = cell => [Number(cell.parentNode.dataset.row), Number(cell.dataset.column)];
const cellAt = ({rows}, row, column) => rows.children[row]?.children[column + 1];
const onto = () => [...boards].filter(({root, data}) => root.isConnected && data?.drags === "onto");

export function carries(state) {
  boards.add(state);
  state.rows.addEventListener("pointerdown", event => press(state, event));
  state.rows.addEventListener("keydown", event => walk(state, event));
}

function press(state, event) {
  const cell = cellOf(state, event.target);
  if (state.data?.drags !== "from" || !cell || event.button > 0) return;
  const {clientX, clientY, pointerId} = event, watched = new AbortController(), {signal} = watched;
  event.preventDefault();  // or text is selected
  cell.setPointerCapture(pointerId);
  const stop = () => { watched.abort(); carried?.ghost?.remove(); };
  cell.addEventListener("pointermove", now => {
    if (!carried?.ghost && Math.hypot(now.clientX - clientX, now.clientY - clientY) < FAR) return;
    if (!carried?.ghost) lift(state, cell, true);
    carried.ghost.style.translate = `${now.clientX + 12}px ${now.clientY + 12}px`;
    aim(under(now));
  }, {signal});
  cell.addEventListener("pointerup", now => {
    stop();
    if (carried?.ghost) {
      state.dragged = true;  // the click that ends it picks nothing
      setTimeout(() => { state.dragged = false; });
      drop(under(now));
    }
  }, {signal});
  cell.addEventListener("pointercancel", () => { stop(); lay(); }, {signal});
}

// The board and the column under the pointer; shadow roots hide what is in them from the document.
function under({clientX, clientY}) {
  for (const state of onto()) {
    const cell = cellOf(state, state.root.getRootNode().elementFromPoint(clientX, clientY));
    if (cell) return [state, placeOf(cell)[1]];
  }
  return null;
}

function lift(state, cell, follows) {
  const [row, column] = placeOf(cell), ghost = follows ? element("div", "ghost", cell.firstChild.textContent) : null;
  lay();
  carried = {state, row, column, ghost};
  if (ghost) state.root.append(ghost);
  cell.classList.add("taken");
  for (const {rows} of onto()) rows.children[row]?.classList.add("open");
}

function aim(place) {
  for (const {rows} of onto()) for (const cell of rows.querySelectorAll(".aimed")) cell.classList.remove("aimed");
  if (place) cellAt(place[0], carried.row, place[1])?.classList.add("aimed");
}

function lay() {
  if (!carried) return;
  aim(null);
  carried.ghost?.remove();
  for (const {rows} of boards) for (const item of rows.querySelectorAll(".taken, .open")) item.classList.remove("taken", "open");
  carried = null;
}

function drop(place) {
  const {row, column} = carried;
  lay();
  place?.[0].component.setTriggerValue("dropped", [row, column, place[1]]);
}

// A click on a cell: the first takes it, one on the other board drops it.
export function tap(state, cell) {
  if (state.dragged) return;
  const [row, column] = placeOf(cell);
  if (state.data.drags === "onto") return carried && drop([state, column]);
  const again = carried?.state === state && carried.row === row && carried.column === column;
  if (again) lay(); else lift(state, cell, false);
}

function walk(state, event) {
  const cell = cellOf(state, event.target);
  if (!state.data?.drags || !cell) return;
  const next = moved(event.key, placeOf(cell), [state.data.rows.length, state.data.columns.length]);
  if (next) cellAt(state, ...next).focus();
  else if (event.key === "Enter" || event.key === " ") tap(state, cell);
  else if (event.key === "Escape" && carried) lay();
  else return;
  taken(event);
}

// After its cells are made anew.
export function readied(state) {
  if (carried?.state === state) lay();
  if (!state.data.drags) return;
  for (const cell of state.rows.querySelectorAll("td")) cell.tabIndex = -1;
  const first = cellAt(state, 0, 0);
  if (first) first.tabIndex = 0;
}
