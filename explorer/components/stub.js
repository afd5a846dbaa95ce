// All that travels with a picture: wait for the code of its kind, then draw.

export default async function (component) {
  const views = globalThis.explorerViews ??= new Map();
  while (!views.has(component.name)) {
    await new Promise(done => document.addEventListener("explorer-view", done, {once: true}));
  }
  return views.get(component.name)(component);
}
