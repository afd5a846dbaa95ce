// Ask for what comes behind the page: once for each thing, from each place that it stands in.

const asked = new WeakMap();

export default function ({data, parentElement, setTriggerValue}) {
  if (asked.get(parentElement) === data) return;
  asked.set(parentElement, data);
  setTriggerValue("asks", data);
}
