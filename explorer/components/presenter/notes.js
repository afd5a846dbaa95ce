// The second window: this side of it tells what is on screen, and does what its keys ask for.

import {store, stored} from "./storage.js";
import {stepOn} from "./steps.js";
import {showSentence} from "./keys.js";

const NAME = "explorer-notes-", TALK = "explorer-talk";
const BLOCKED = "The browser lets no second window open: allow pop-ups for this page, then press S again.";

// Over plain HTTP from another machine a browser has no crypto.randomUUID.
const newId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

// One talk for each tab, also when it is loaded anew or follows a link. What another tab was made from
// it begins with the same storage, but not with its name, and is a talk of its own.
function thisTalk() {
  const [{type}] = performance.getEntriesByType("navigation");
  const before = JSON.parse(stored("sessionStorage", TALK) ?? "null");
  const isSame = before && (type === "reload" || window.name === `tab-${before.name}`);
  const talk = isSame ? before : {name: NAME + newId(), since: null};
  window.name = `tab-${talk.name}`;
  const keepTalk = () => store("sessionStorage", TALK, JSON.stringify(talk));
  keepTalk();
  return {talk, keepTalk};
}

// The title of the page and what its bar has chosen, as they are shown.
function onScreen() {
  const title = document.title.split(" · ")[0];  // of the page, whose h1 is that of its place
  const fields = document.querySelectorAll(".st-key-bar input");
  const chosen = Array.from(fields, field => {
    const label = field.closest("[data-testid=stSelectbox], [data-testid=stTextInput]")?.querySelector("label");
    return [label?.textContent ?? "", field.value];
  });
  return [["Page", title], ...chosen.filter(([label, value]) => label && value)];
}

export function makeNotes(presenter) {
  const {talk, keepTalk} = thisTalk(), channel = new BroadcastChannel(talk.name);
  let opened = null, isOpening = false;
  const tell = () => {
    if (presenter.on && talk.since === null) {
      talk.since = Date.now();
      keepTalk();
    }
    const [lesson, place, step, words, next] = globalThis.explorerStepNotes ?? [];
    const told = {lesson, place, step, words, next, since: talk.since, on: onScreen()};
    channel.postMessage({told});
  };
  channel.addEventListener("message", ({data}) => {
    if (data.move) stepOn(data.move, data.pageFirst);
    else if (data.again) { talk.since = Date.now(); keepTalk(); }
    if (data.ask || data.move || data.again) tell();
  });
  const open = () => {
    if (opened && !opened.closed) return opened.focus();
    isOpening = Boolean(document.fullscreenElement);
    opened = window.open("", talk.name, "popup,width=820,height=600");
    if (!opened) {
      isOpening = false;
      return showSentence("Notes", BLOCKED);
    }
    if (opened.document.querySelector("script")) return opened.focus();
    const {document: there} = opened, script = there.createElement("script"), style = there.createElement("style");
    script.type = "module";
    script.src = URL.createObjectURL(new Blob([WINDOW_JS], {type: "text/javascript"}));
    style.textContent = WINDOW_CSS;
    there.title = "Notes";
    there.documentElement.lang = "en";
    there.head.append(style, script);
  };
  // A window that opens may end the full screen, which then is not left by the reader; who is back
  // in this window leaves it themselves.
  addEventListener("focus", () => { isOpening = false; });
  const opens = () => {
    const was = isOpening;
    isOpening = false;
    return was;
  };
  return {tell, open, opens};
}
