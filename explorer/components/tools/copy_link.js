// The address of the page as a link: what the address says, and what Python adds to it.

const COPIED_FOR = 2000;

function linkWith(added) {
  const link = new URL(location.href);
  for (const [name, values] of added) {
    link.searchParams.delete(name);
    for (const value of values) link.searchParams.append(name, value);
  }
  return link.href;
}

async function copy(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch { // only a page that came over HTTPS, or from this machine, has the clipboard
    document.execCommand("copy");
  }
}

export default function ({data: added, parentElement}) {
  const field = parentElement.querySelector("input");
  const button = parentElement.querySelector("button");
  const opens = parentElement.querySelector("a");
  const write = () => { field.value = opens.href = linkWith(added); };
  write();
  field.onfocus = () => { write(); field.select(); };
  opens.onpointerdown = opens.onfocus = write;
  button.onclick = async () => {
    write();
    await copy(field);
    button.textContent = "Copied";
    clearTimeout(button.timer);
    button.timer = setTimeout(() => { button.textContent = "Copy link"; }, COPIED_FOR);
  };
}
