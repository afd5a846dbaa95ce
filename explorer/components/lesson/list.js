// Every lesson with what this browser keeps of it: where one stopped, and what is done.

import {painted} from "../painted.js";
import {progress, go, made, STORE} from "./progress.js";

function row(lesson, kept, begin) {
  const done = (kept?.done ?? []).filter(at => at >= 1 && at <= lesson.steps.length).length;
  const count = lesson.steps.length, whole = done === count;
  const at = Math.min(Math.max(1, Number(kept?.at) || 1), count);
  const begun = kept && !whole && (done > 0 || at > 1);
  const item = made("li", whole ? "lesson whole" : "lesson"), words = made("div", "words");
  const title = made("h2", "title", lesson.title);
  const facts = `${lesson.minutes} min · ${count} ${count === 1 ? "step" : "steps"}`;
  title.append(made("span", "facts", lesson.own ? `${facts} · yours` : facts));
  words.append(title, made("p", "about", lesson.about));
  const state = made("div", "state", whole ? "✓ done" : begun ? `${done} of ${count} done` : "");
  const link = made("a", "open", whole ? "Again" : begun ? `Continue at step ${at}` : begin ? "Start here" : "Start");
  link.classList.toggle("first", begin && !whole && !begun);
  link.href = lesson.steps[begun ? at - 1 : 0];
  link.setAttribute("aria-label", `${link.textContent}: ${lesson.title}`);
  link.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(link.href);
  });
  if (lesson.picture) item.append(painted(lesson.picture, "image/webp"));
  item.append(words, state, link);
  return item;
}

export default function ({data, parentElement}) {
  const begun = data.find(lesson => lesson.begins);
  if (begun) {
    globalThis.explorerPresenter?.begin();
    return go(begun.steps[0]);
  }
  const all = progress(), list = parentElement.querySelector(".lesson-list");
  const some = data.some(lesson => all[lesson.name]);
  list.replaceChildren(...data.map((lesson, i) => row(lesson, all[lesson.name], !some && i === 0)));
  const forget = parentElement.querySelector(".lesson-forget");
  forget.hidden = !some;
  forget.onclick = () => {
    localStorage.removeItem(STORE);
    list.replaceChildren(...data.map((lesson, i) => row(lesson, undefined, i === 0)));
    forget.hidden = true;
  };
}
