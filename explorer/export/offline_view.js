// A view of an offline page, drawn in its place as the app draws it: under rules of its own.

const rules = new Map();
for (const style of document.querySelectorAll("style[data-kind]")) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style.textContent);
  rules.set(style.dataset.kind, sheet);
}

function draw(host) {
  const {kind, key, choice, behind} = JSON.parse(host.dataset.view);
  const letters = atob(host.dataset.bytes), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  const choices = globalThis.explorerChoices ??= new Map();
  for (const [name, value] of [[key, choice], ...Object.entries(behind)]) choices.set(name, [value]);
  const root = host.attachShadow({mode: "open"}), nothing = () => {}, name = `explorer_${kind}`;
  root.adoptedStyleSheets = [rules.get(kind)];
  root.append(...host.childNodes);
  return globalThis.explorerViews.get(name)({name, key, data: bytes, parentElement: root,
    setStateValue: nothing, setTriggerValue: nothing});
}
