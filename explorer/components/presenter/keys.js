// The keys, as a list that the reader can open, and whether those of one character are keys at all:
// who speaks to a browser, or hits keys by accident, turns them off (WCAG 2.1.4), and finds what the
// letters do as buttons of the list.

import {store, stored} from "./storage.js";

const KEYS = [
  [["F"], "Present, and leave it; so does Esc"],
  [["Space", "Page Down"], "Next step of the lesson, or of the page"],
  [["→"], "Next step of the page; from its last, of the lesson"],
  [["Shift Space", "Page Up", "←"], "The step before"],
  [["L"], "A pointer that everybody sees: tap for on and off, or hold"],
  [["S"], "Notes, the next step and a clock in a second window"],
  [["?", "Ctrl /"], "These keys"],
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
  label.append(box, "Letters and ? are keys; if not, Ctrl / opens this list, and you click what you want");
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
  const open = document.querySelector(".presenter-keys");
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
