// What the browser keeps, where it may; `where` is the name of its storage.

export function stored(where, name) {
  try {
    return globalThis[where].getItem(name);
  } catch {
    return null;
  }
}

export function store(where, name, text) {
  try {
    globalThis[where].setItem(name, text);
  } catch {
    // storage is full or blocked: what is said here holds until the page is loaded anew
  }
}
