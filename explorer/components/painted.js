// A canvas: the page's security policy loads no image from data.

export function painted(base64, type) {
  const canvas = document.createElement("canvas");
  canvas.className = "picture";
  canvas.setAttribute("aria-hidden", "true");
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  createImageBitmap(new Blob([bytes], {type})).then(image => {
    Object.assign(canvas, {width: image.width, height: image.height});
    canvas.getContext("2d").drawImage(image, 0, 0);
  });
  return canvas;
}
