// A title that follows the head on screen: the overview tells which was picked (grid/view.js).

export default function ({data: [text, of], parentElement}) {
  const line = parentElement.querySelector(".title");
  const write = () => { line.textContent = line.other?.of === of ? line.other.title : text; };
  const hear = ({detail}) => { line.other = detail; write(); };
  document.addEventListener("explorer-head", hear);
  write();
  return () => document.removeEventListener("explorer-head", hear);
}
