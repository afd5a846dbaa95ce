"""The title of a large head, in bold: it follows the head that is drawn, as the matrix does."""

from explorer.components.matrix import Head
from explorer.components.mounting import component, script, slim_css

CSS = """
.title {
  color: var(--st-text-color);
  font: 600 1rem/1.6 var(--st-font);
  margin: 0;
  overflow-wrap: anywhere;
}
"""

_TITLE = component(
    "explorer_title",
    html='<p class="title"></p>',
    css=slim_css(CSS),
    js=script("title.js"),
)


def title(text: str, *, key: str, head: Head | None) -> None:
    """Write it; where it is the title of a `head`, that of another follows in the browser."""
    _TITLE(key=key, data=[text, head[0] if head else ""])
