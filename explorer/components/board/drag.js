// A cell of one board is carried onto another board of the same rows, in its row: pressed here and
// let go there, with a mouse, a pen or a finger, or by a click, or Enter, on each of the two.

import {moved, taken} from "../shared.js";

const boards = new Set();
let carried = null;  // the row and the column that a cell comes from

const columnOf = cell => Number(cell.dataset.column);
const cellAt = (state, row, column) => state.rows.children[row]?.children[column + 1];

export function carries(state) {
  boards.add(state);
  state.rows.addEventListener("pointerdown", event => {
    const cell = event.target.closest("td");
    if (cell && state.data.drags === "from" && event.button === 0) press(state, cell, event);
  });
  state.rows.addEventListener("keydown", event => {
    const cell = event.target.closest("td");
    if (!cell || !state.data.drags) return;
    const {rows, columns} = state.data, row = Number(cell.parentNode.dataset.row);
    const next = moved(event.key, [row, columnOf(cell)], [rows.length, columns.length]);
    if (next) cellAt(state, ...next).focus();
    else if (event.key === "Enter" || event.key === " ") tap(state, cell);
    else return;
    taken(event);
  });
}

function press(state, cell, event) {
  event.preventDefault();  // or text is selected
  tap(state, cell);
  cell.setPointerCapture(event.pointerId);
  cell.onpointermove = now => { for (const place of under(now)) aim(...place); };
  cell.onpointerup = now => {
    cell.onpointermove = cell.onpointerup = null;
    for (const place of under(now)) tap(...place);
  };
}

// The board that takes cells and its cell under the pointer, if there is one: a shadow root hides
// what is in it from the document.
function under({clientX, clientY}) {
  const places = [...boards].filter(({root, data}) => root.isConnected && data?.drags === "onto")
    .map(state => [state, state.root.getRootNode().elementFromPoint(clientX, clientY)?.closest("td")]);
  return places.filter(([state, cell]) => cell && state.rows.contains(cell));
}

export function aim(state, cell) {
  if (carried && state.data.drags === "onto") mark("aimed", cellAt(state, carried[0], columnOf(cell)));
}

function mark(name, cell) {
  for (const {rows} of boards) rows.querySelector(`.${name}`)?.classList.remove(name);
  cell?.classList.add(name);
}

// The first takes a cell, or lays it down again, and one on the other board drops it.
export function tap(state, cell) {
  if (state.data.drags === "onto" && carried) {
    state.component.setTriggerValue("dropped", [...carried, columnOf(cell)]);
  }
  const takes = state.data.drags === "from" && !cell.classList.contains("taken") ? cell : null;
  carried = takes && [Number(takes.parentNode.dataset.row), columnOf(takes)];
  mark("taken", takes);
  mark("aimed");
}

// Its cells are made anew; the Tab key reaches the first, and the arrow keys the others.
export function readied(state) {
  if (state.data.drags === "from") carried = null;
  const cells = state.data.drags ? state.rows.querySelectorAll("td") : [];
  cells.forEach((cell, at) => { cell.tabIndex = at ? -1 : 0; });
}
