// The button at the foot of the sidebar does what the key does.

export default function ({parentElement}) {
  parentElement.querySelector("button").onclick = () => globalThis.explorerPresenter?.toggle();
}
