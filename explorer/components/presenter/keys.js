// The keys, as a list that the reader can open, and whether those of one character are keys at all:
// who speaks to a browser, or hits keys by accident, turns them off (WCAG 2.1.4), and finds what the
// letters do as buttons of the list.

import {store, stored} from "./storage.js";

const KEYS = [
  [["F"], "Start or stop presenting (Esc also stops)"],
  [["Space", "Page Down"], "Go to the next step of the lesson, or of the page"],
  [["→"], "Go to the next step of the page, then of the lesson"],
  [["Shift Space", "Page Up", "←"], "Go back one step"],
  [["L"], "Show a pointer to everybody: tap for on and off, or hold"],
  [["S"], "Open notes, the next step and a clock in a second window"],
  [["?", "Ctrl /"], "Show this list"],
];
const LETTERS = "explorer-letter-keys";
export let lettersAct = stored("localStorage", LETTERS) !== "off";

function lettersSwitch() {
  const label = document.createElement("label"), box = document.createElement("input");
  box.type = "checkbox";
  box.checked = lettersAct;
  box.addEventListener("change", () => {
    lettersAct = box.checked;
    store("localStorage", LETTERS, lettersAct ? "on" : "off");
  });
  label.append(box, "Use letters and ? as keys; if not, Ctrl / opens this list, and you click a line");
  return label;
}

function showDialog(name, ...shown) {
  const dialog = document.createElement("dialog"), close = document.createElement("button");
  dialog.className = "presenter-keys";
  dialog.setAttribute("aria-label", name);
  close.textContent = "Close";
  close.autofocus = true;
  close.addEventListener("click", () => dialog.close());
  dialog.append(...shown, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function showSentence(name, sentence) {
  const words = document.createElement("p");
  words.textContent = sentence;
  showDialog(name, words);
}

// `letters` are those that do something now, and `acts` does it.
export function showKeys(letters, acts) {
  const open = document.querySelector(".presenter-keys[open]");
  if (open) return open.close();
  const list = document.createElement("dl");
  const button = letter => {
    const made = document.createElement("button");
    made.addEventListener("click", () => { list.closest("dialog").close(); acts(letter.toLowerCase()); });
    return made;
  };
  for (const [keys, does] of KEYS) {
    const term = document.createElement("dt"), words = document.createElement("dd");
    term.append(...keys.map(key => {
      const cap = document.createElement("kbd");
      cap.textContent = key;
      return cap;
    }));
    const said = letters.includes(keys[0]) ? words.appendChild(button(keys[0])) : words;
    said.textContent = does;
    list.append(term, words);
  }
  showDialog("Keys", list, lettersSwitch());
}
