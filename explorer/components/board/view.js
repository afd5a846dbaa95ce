// A table of texts and bars. One line says what is pointed at; a click on a row picks it.

import {fades} from "../fading.js";
import {element, plain, publish, say} from "../shared.js";

function make(state) {
  const {root} = state;
  state.line = root.querySelector(".sentence");
  state.stage = root.querySelector(".stage");
  state.faded = fades(state.stage);
  state.columns = root.querySelector("thead");
  state.rows = root.querySelector("tbody");
  state.rows.addEventListener("pointerover", event => point(state, event.target));
  state.rows.addEventListener("pointerleave", () => idle(state));
  state.rows.addEventListener("focusin", event => point(state, event.target));
  state.rows.addEventListener("focusout", () => idle(state));
  state.rows.addEventListener("click", event => {
    const row = event.target.closest?.("tr");
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
  if (!cell) return say(state.line, state.data.pick || "{row}", {row: row.name});
  const [text] = row.cells[cell.dataset.column], [column] = state.data.columns[cell.dataset.column];
  say(state.line, state.data.sentence, {row: row.name, column, value: text || "nothing"});
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

function cell([text, share, how], column) {
  const item = element("td", how);
  item.dataset.column = column;
  if (share !== null) item.append(bar(share));
  item.append(element("span", "text", text));
  return item;
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
  tableRow.append(named, ...row.cells.map(cell));
  return tableRow;
}

function show(state) {
  const {data, fresh} = state;
  if (!fresh) return state.faded();
  state.fresh = false;
  state.stage.classList.toggle("narrow", data.narrow);
  state.stage.setAttribute("aria-label", data.idle);
  const top = element("tr");
  top.append(heading([data.corner, "", ""]), ...data.columns.map(heading));
  state.columns.replaceChildren(top);
  state.rows.replaceChildren(...data.rows.map((row, place) => line(state, row, place)));
  idle(state);
  state.faded();
}

publish("board", ".board", make, show);
