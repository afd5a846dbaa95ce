// What the second window says of this moment, beside what it can see on the page.

export default async function ({data}) {
  while (!globalThis.explorerPresenter) await new Promise(requestAnimationFrame);
  globalThis.explorerPresenter.hear(data);
}
