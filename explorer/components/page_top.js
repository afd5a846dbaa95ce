// Another page opens at its top: Streamlit leaves the reader where the page before was scrolled to.

export default function ({data: [page]}) {
  const before = globalThis.explorerPage;
  globalThis.explorerPage = page;
  if (before !== undefined && before !== page) {
    document.querySelector('[data-testid="stMain"]')?.scrollTo({top: 0, behavior: "instant"});
  }
}
