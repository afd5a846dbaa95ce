// Another page opens at its top: Streamlit leaves the reader where the page before was scrolled to.

export default function ({data}) {
  const before = globalThis.explorerPage;
  globalThis.explorerPage = data;
  if (before !== undefined && before !== data) {
    document.querySelector('[data-testid="stMain"]')?.scrollTo({top: 0, behavior: "instant"});
  }
}
