// What the browser keeps, where it may; `where` is the name of its storage.

function kept(where, name) {
  try {
    return globalThis[where].getItem(name);
  } catch {
    return null;
  }
}

function keep(where, name, text) {
  try {
    globalThis[where].setItem(name, text);
  } catch {
    // it is full, or forbidden: what is said here holds until the page is loaded anew
  }
}
