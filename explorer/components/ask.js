// Ask for what comes behind the page: once for each thing, from each place that it stands in.

const asked = new WeakMap();

export default function ({data: [what], parentElement, setTriggerValue}) {
  if (asked.get(parentElement) === what) return;
  asked.set(parentElement, what);
  setTriggerValue("asks", what);
}
