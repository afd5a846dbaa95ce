// Another page opens at its top: Streamlit leaves the reader where the page before was scrolled to.
// What the address hides of the page is not displayed: no key reaches it, and it keeps its value.

function hide(names) {
  const sheet = globalThis.explorerHidden ??= new CSSStyleSheet();
  const rule = name => `.st-key-${CSS.escape(name)} { display: none !important; }`;
  sheet.replaceSync(names.map(rule).join("\n"));
  if (!document.adoptedStyleSheets.includes(sheet)) document.adoptedStyleSheets.push(sheet);
}

export default function ({data: [page, hidden]}) {
  hide(hidden);
  const before = globalThis.explorerPage;
  globalThis.explorerPage = page;
  if (before !== undefined && before !== page) {
    document.querySelector('[data-testid="stMain"]')?.scrollTo({top: 0, behavior: "instant"});
  }
}
