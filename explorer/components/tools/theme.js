// Private parts of Streamlit, and the only ones that a script of ours touches.
//
// The theme of Streamlit's page: its own menu sets it by a function that React hands down, and it
// is kept under the address that the page was opened at. Where the function is not found, the
// page is loaded anew and takes what is kept.

const CALLED = {
  Light: ["Custom Theme Light", "Light"],
  System: ["Custom Theme Auto", "Use system setting"],
  Dark: ["Custom Theme Dark", "Dark"],
};
const keptAt = address => `stActiveTheme-${new URL(address, location.href).pathname}-v2`;

function fromStreamlit() {
  const app = document.querySelector('[data-testid="stApp"]') ?? {};
  let place = app[Object.keys(app).find(name => name.startsWith("__reactFiber$"))];
  while (place && !place.memoizedProps?.value?.availableThemes) place = place.return;
  return place?.memoizedProps.value ?? {availableThemes: []};
}

function chosen() {
  try {
    const kept = localStorage.getItem(keptAt("")) ?? "";
    return Object.keys(CALLED).find(theme => kept === JSON.stringify(theme)) ?? "System";
  } catch {
    return "System";  // this browser keeps nothing
  }
}

function choose(theme, addresses) {
  try {
    for (const address of addresses) localStorage.setItem(keptAt(address), JSON.stringify(theme));
  } catch {
    // storage is full or blocked: the theme holds until the page is loaded anew
  }
  const {availableThemes, setTheme} = fromStreamlit();
  const found = availableThemes.find(({name}) => CALLED[theme].includes(name));
  if (found) setTheme(found);
  else location.reload();
}

export default function ({data: addresses, parentElement}) {
  for (const radio of parentElement.querySelectorAll("input")) {
    radio.checked = radio.value === chosen();
    radio.onchange = () => choose(radio.value, addresses);
  }
}
