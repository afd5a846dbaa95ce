// What this browser keeps of lessons, and how it goes to an address of one.

export const STORE = "explorer-lessons";
const MOST_KEPT = 200;

// By the name of a lesson: the step that was open last, and those that are done, from 1.
export function progress() {
  try {
    const found = JSON.parse(localStorage.getItem(STORE));
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};  // nothing is kept, or it may not be
  }
}

export function keep(name, change) {
  const all = progress(), before = all[name] ?? {};
  const kept = {at: before.at ?? 1, done: Array.isArray(before.done) ? before.done : []};
  change(kept);
  delete all[name];
  all[name] = kept;  // the last is the newest
  const names = Object.keys(all);
  for (const old of names.slice(0, Math.max(0, names.length - MOST_KEPT))) delete all[old];
  try {
    localStorage.setItem(STORE, JSON.stringify(all));
  } catch {
    // storage is full or blocked: the lesson goes on without it
  }
}

// As the browser's Back does it: every control then follows the address. What is AROUND the page
// goes on, with or without a lesson.
export function go(address, enter = "pushState") {
  const now = new URL(document.location.href), next = new URL(address, now);
  for (const name of AROUND) {
    if (next.searchParams.has(name)) continue;
    for (const value of now.searchParams.getAll(name)) next.searchParams.append(name, value);
  }
  history[enter](null, "", next);
  dispatchEvent(new PopStateEvent("popstate", {state: null}));
}

export function made(tag, className, text) {
  const element = document.createElement(tag);
  element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}
