// A file for the reader's disk, once, as if a link to it had been clicked.

const given = globalThis.explorerGiven ??= new Set();

export default function ({data}) {
  const end = data.indexOf(0), head = new TextDecoder().decode(data.subarray(0, end));
  const [id, name, type] = JSON.parse(head);
  if (given.has(id)) return;
  given.add(id);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data.subarray(end + 1)], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);  // it is read behind the click
}
