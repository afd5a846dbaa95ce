// What the second window says of this moment, beside what it can see on the page. The code of the
// presenter may come later, and looks for it here.

export default function ({data}) {
  globalThis.explorerStepNotes = data;
  globalThis.explorerPresenter?.tell();
}
