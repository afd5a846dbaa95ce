// Another page opens at its top: Streamlit leaves the reader where the page before was scrolled to.
// What the address hides of the page is not displayed: no key reaches it, and it keeps its value.

function hide(names) {
  const sheet = globalThis.explorerHidden ??= new CSSStyleSheet();
  const rule = name => `.st-key-${CSS.escape(name)} { display: none !important; }`;
  sheet.replaceSync(names.map(rule).join("\n"));
  if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
}

// On the way to another page Streamlit takes what only this one reads out of the address, as an entry
// of its own in the browser's history: Back led there, and the choices were lost. It gets them back.
function keepBehind() {
  if (globalThis.explorerKeepsBehind) return;
  globalThis.explorerKeepsBehind = true;
  const push = history.pushState.bind(history);
  let before = null;
  for (const event of ["pointerdown", "keydown", "popstate"]) {
    addEventListener(event, () => { before = null; }, true);
  }
  history.pushState = (state, unused, url) => {
    const here = location.href;
    if (new URL(url, here).pathname === location.pathname) {
      before ??= here;
    } else if (before) {
      history.replaceState(history.state, "", before);
      before = null;
    }
    push(state, unused, url);
  };
}

export default function ({data: [page, hidden]}) {
  hide(hidden);
  keepBehind();
  const before = globalThis.explorerPage;
  globalThis.explorerPage = page;
  if (before !== undefined && before !== page) {
    document.querySelector('[data-testid="stMain"]')?.scrollTo({top: 0, behavior: "instant"});
  }
}
