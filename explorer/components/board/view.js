// A table of texts and bars. One line says what is pointed at; a click on a row picks it.

import {aim, carries, readied, tap} from "./drag.js";
import {fades} from "../fading.js";
import {css, element, heightOf, needs, over, plain, publish, say, three} from "../shared.js";

// Pixels: of a row of coloured cells, of their heading, and of a scroll bar below a table.
const LOWEST = 17, HIGHEST = 40, HEADING = 30, BELOW = 16;

function make(state) {
  const {root} = state;
  state.line = root.querySelector(".sentence");
  state.faded = fades(state.stage);
  state.columns = root.querySelector("thead");
  state.rows = root.querySelector("tbody");
  state.rows.addEventListener("pointerover", event => point(state, event.target));
  state.rows.addEventListener("pointerleave", () => idle(state));
  state.rows.addEventListener("focusin", event => point(state, event.target));
  state.rows.addEventListener("focusout", () => idle(state));
  carries(state);
  state.rows.addEventListener("click", event => {
    const row = event.target.closest?.("tr"), cell = event.target.closest?.("td");
    if (state.data.drags) return cell && state.data.drags === "onto" && tap(state, cell);
    if (state.data.coloured && cell) {
      state.component.setTriggerValue("column", Number(cell.dataset.column));
    }
    if (row && state.data.rows[row.dataset.row].pickable) {
      state.component.setTriggerValue("picked", Number(row.dataset.row));
    }
  });
}

function idle({line, data}) {
  line.classList.add("idle");
  line.textContent = data.idle;
}

function point(state, target) {
  const place = target.closest?.("tr"), cell = target.closest?.("td");
  if (!place) return;
  const row = state.data.rows[place.dataset.row];
  state.line.classList.remove("idle");
  if (cell) aim(state, cell);
  if (!cell) return say(state.line, state.data.pick || "{row}", {row: row.name});
  const [text, share] = row.cells[cell.dataset.column], [column] = state.data.columns[cell.dataset.column];
  say(state.line, state.data.sentence, {row: row.name, column, value: text || "nothing", share: three(share ?? NaN)});
}

function heading([name, note, short]) {
  const header = element("th");
  header.scope = "col";
  header.append(element("span", "name", name));
  if (short) {
    const brief = element("span", "short", short);
    brief.setAttribute("aria-hidden", "true");
    header.append(brief);
  }
  header.append(element("span", "note", note));
  return header;
}

function bar(share) {
  const line = element("span", share < 0 ? "bar below" : "bar");
  line.style.width = `${Math.min(1, Math.abs(share)) * 100}%`;
  return line;
}

function cell([text, share, how], column, coloured) {
  const item = element("td", how);
  item.dataset.column = column;
  item.append(...share === null || coloured ? [] : [bar(share)], element("span", "text", text));
  return item;
}

// The cell in the colour of its share, which is written behind its text.
function colour({data, ink}, item, [, share, how]) {
  const filled = ink.sequential[Math.round(255 * Math.max(0, Math.min(1, share ?? 0)))];
  if (how !== "muted") Object.assign(item.style, {background: css(filled), color: over(filled)});
  item.append(element("span", "share", share === null ? three(NaN) : share.toFixed(2)));
  item.classList.toggle("chosen", Number(item.dataset.column) === data.column);
}

function line(state, row, place) {
  const tableRow = element("tr", row.how), named = element("th");
  tableRow.dataset.row = place;
  named.scope = "row";
  const look = row.token ? "name token" : "name";
  const name = element(row.pickable ? "button" : "span", look, row.name);
  if (row.pickable) {
    name.type = "button";
    tableRow.classList.add("pickable");
    name.setAttribute("aria-label", plain(state.data.pick || "{row}", {row: row.name}));
  }
  named.append(name);
  if (row.mark) named.append(element("span", "mark", row.mark));
  const cells = row.cells.map((each, at) => cell(each, at, state.data.coloured));
  if (state.data.coloured) cells.forEach((each, at) => colour(state, each, row.cells[at]));
  tableRow.append(named, ...cells);
  return tableRow;
}

function show(state) {
  const ground = css(state.ink.background);  // the colours of its cells are those of the theme
  if (state.fresh || (state.data.coloured && state.drawn !== ground)) build(state);
  state.drawn = ground;
  const {stage, data} = state, table = stage.firstElementChild;
  if (data.coloured) {
    const high = (heightOf(state) - HEADING) / data.rows.length;
    stage.style.setProperty("--row", `${Math.max(LOWEST, Math.min(HIGHEST, Math.floor(high)))}px`);
  }
  needs(state, table.offsetHeight + BELOW);
  const chosen = state.fresh && stage.querySelector(`td[data-column="${data.seen}"]`);
  const wide = chosen?.offsetWidth, left = chosen?.offsetLeft - stage.clientWidth / 2;
  if (chosen) stage.scrollLeft = Math.floor(left / wide) * wide;  // no column is cut there
  state.fresh = false;
  state.faded();
}

function build(state) {
  const {data, stage} = state;
  stage.classList.toggle("narrow", data.narrow);
  stage.classList.toggle("coloured", data.coloured);
  stage.classList.toggle("from", data.drags === "from");
  stage.classList.toggle("compact", !!data.drags);
  stage.style.setProperty("--columns", data.columns.length);
  stage.setAttribute("aria-label", data.idle);
  const top = element("tr");
  top.append(heading([data.corner, "", ""]), ...data.columns.map(heading));
  if (data.coloured && data.column >= 0) top.children[data.column + 1]?.classList.add("chosen");
  state.columns.replaceChildren(top);
  state.rows.replaceChildren(...data.rows.map((row, place) => line(state, row, place)));
  readied(state);
  idle(state);
}

publish("board", ".board", make, show);
