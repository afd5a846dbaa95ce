// The list of what is kept, in this browser: the server forgets it, a reload and a restart do not.

const PLACE = "explorer-kept-session";

export default function ({data: [kept], setTriggerValue}) {
  try {
    if (kept) localStorage.setItem(PLACE, kept);
    else if (localStorage.getItem(PLACE)) {
      setTriggerValue("remembered", JSON.parse(localStorage.getItem(PLACE)));
    }
  } catch {
    return;  // a browser that stores nothing, or what another has stored there
  }
}
