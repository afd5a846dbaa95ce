// The same as choice.js of bytes, which stand behind their name and a zero.

export default function ({data}) {
  const end = data.indexOf(0), name = new TextDecoder().decode(data.subarray(0, end));
  const choices = globalThis.explorerChoices ??= new Map();
  choices.set(name, [data.subarray(end + 1)]);
  document.dispatchEvent(new CustomEvent("explorer-choice", {detail: name}));
}
