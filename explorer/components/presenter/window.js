// Inside the second window. It outlives the page that opened it, and hears from whichever comes.

const channel = new BroadcastChannel(window.name);
const KEYS = {" ": 1, PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1};
const make = (tag, name, parent = document.body) => {
  const made = parent.appendChild(document.createElement(tag));
  made.className = name;
  return made;
};
const head = make("header", "");
const clock = make("time", "clock", head), again = make("button", "", head);
const where = make("p", "where"), title = make("h1", ""), words = make("p", "words");
const next = make("p", "next"), on = make("dl", "on");
again.textContent = "Start the clock again";
again.addEventListener("click", () => { again.blur(); channel.postMessage({again: true}); });
let since = null;

// The lines of a paragraph, as Markdown reads them: an empty line or the mark of a list begins another.
const unwrapped = text => text?.trim().replace(/(?<!\n)\n(?!\n|[-*] |\d+\. )/g, " ");

function tick() {
  const seconds = since === null ? 0 : Math.max(0, Math.floor((Date.now() - since) / 1000));
  clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  channel.postMessage({ask: true});
}

channel.addEventListener("message", ({data: {told}}) => {
  if (!told) return;
  since = told.since;
  where.textContent = told.lesson ? `${told.lesson} · ${told.place}` : "";
  title.textContent = told.step || told.on[0][1];
  words.textContent = unwrapped(told.words) || (told.lesson ? "This step has no notes." : "Open a lesson to see its notes here.");
  next.textContent = told.next ? `Next: ${told.next}` : "";
  on.replaceChildren(...told.on.flatMap(pair => pair.map((text, i) => {
    const made = document.createElement(i ? "dd" : "dt");
    made.textContent = text;
    return made;
  })));
});

addEventListener("keydown", event => {
  const by = KEYS[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button")) return;
  event.preventDefault();
  channel.postMessage({move: event.shiftKey ? -by : by, pageFirst: event.key.startsWith("Arrow")});
});

setInterval(tick, 1000);
tick();
