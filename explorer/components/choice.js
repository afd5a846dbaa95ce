// Keep the choice for a view that comes later, and tell the one that is there.

export default function ({data}) {
  const [name, ...choice] = data;
  const choices = globalThis.explorerChoices ??= new Map();
  choices.set(name, choice);
  document.dispatchEvent(new CustomEvent("explorer-choice", {detail: name}));
}
