"""One HTML page that needs no server: the views of a screen, with their data and their code.

The page runs the same code as the app. The words of a reader or a model are escaped, or in the
data of the views, which never becomes markup.
"""

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from explorer.charts import theme
from explorer.charts.figure_data import WINDOW, OfflinePicture, OfflineView

PICTURES = {
    "light": "--picture: none; --blend: normal;",
    "dark": "--picture: invert(1) hue-rotate(180deg); --blend: screen;",
}
"""Charts are drawn on white: the dark page inverts their lightness and keeps their hues."""

OFFLINE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
)
"""The page fetches nothing."""

DRAW = (Path(__file__).parent / "offline_view.js").read_text("utf-8")
START = 'for (const host of document.querySelectorAll(".host")) draw(host);\n'


def offline_html(
    title: str,
    about: Mapping[str, str],
    views: Sequence[OfflineView | OfflinePicture],
    mode: str | None = None,
) -> bytes:
    """The views, one under another, light or dark; the size of the page is that of their data."""
    body = f"""<h1>{html.escape(title)}</h1>
{origin(about)}
{"".join(map(markup, views))}"""
    return document(title, colours(mode) + STYLE, views, body, START)


def document(
    title: str, style: str, views: Sequence[OfflineView | OfflinePicture], body: str, script: str
) -> bytes:
    """A page with the code of its views; `script` runs after it."""
    imports, styles = code_of(views)
    name = html.escape(title)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{OFFLINE_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{name}</title>
<style>{style}</style>
{styles}
<body data-title="{name}">
{body}
<script type="module">
{imports}{DRAW}{script}</script>
</body>
</html>
""".encode()


def code_of(views: Iterable[OfflineView | OfflinePicture]) -> tuple[str, str]:
    """The JavaScript imports and CSS rules of these views, once for each kind.

    The rules are inactive until a view is drawn (`offline_view.js`), since those of one kind would
    change the others.
    """
    kinds = {view.kind: view for view in views if isinstance(view, OfflineView)}
    imports = "".join(
        f'import "data:text/javascript;base64,{base64.b64encode(view.js.encode()).decode()}";\n'
        for view in kinds.values()
    )
    rules = (
        f'<style data-kind="{kind}" media="not all">{view.css}</style>'
        for kind, view in kinds.items()
    )
    return imports, "\n".join(rules)


def origin(about: Mapping[str, str]) -> str:
    items = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in about.items()
    )
    return f"<dl>{items}</dl>"


def markup(view: OfflineView | OfflinePicture) -> str:
    name = html.escape(view.title)
    if isinstance(view, OfflinePicture):
        source = base64.b64encode(view.svg).decode()
        return (
            f"<figure><figcaption>{name}</figcaption>"
            f'<img alt="{name}" src="data:image/svg+xml;base64,{source}"></figure>'
        )
    pixels = f"height:{view.height}px" if isinstance(view.height, int) else ""
    height = "--room:360px" if view.height == WINDOW else pixels
    data = base64.b64encode(view.data).decode()
    host = (
        f'<div class="host" style="{height}" data-view="{html.escape(view.attributes)}" '
        f'data-bytes="{data}">{view.html}</div>'
    )
    return f"<figure><figcaption>{name}</figcaption>{host}</figure>" if name else host


STYLE = """
body { background: var(--st-background-color); color: var(--st-text-color);
  font-family: var(--st-font); margin: 24px auto; max-width: 1160px; padding: 0 24px; }
h1 { font-size: 20px; font-weight: 600; }
dl { color: var(--st-text-color); display: grid; font-size: 13px; gap: 2px 16px;
  grid-template-columns: max-content 1fr; margin: 0 0 24px; }
dd { margin: 0; overflow-wrap: anywhere; }
.host { margin-bottom: 24px; }
figure { margin: 0 0 24px; }
figcaption { font-size: 13px; margin-bottom: 8px; }
figure img { filter: var(--picture); max-width: 100%; mix-blend-mode: var(--blend); }
"""


def colours(mode: str | None) -> str:
    """The colours of the app, "light", "dark" or as the system is; `data-theme` replaces them."""
    styles = {
        name: f"{{ color-scheme: {name}; {PICTURES[name]} --muted: {palette.muted}; "
        f"--st-background-color: {palette.background}; --st-text-color: {palette.text}; "
        f"--st-border-color: {palette.border}; --st-primary-color: {palette.series[0]}; "
        f"--st-secondary-background-color: {palette.surface}; "
        "--st-font: system-ui, sans-serif; --st-code-font: ui-monospace, monospace; }"
        for name, palette in theme.PALETTES.items()
    }
    rules = [f":root {styles[mode or 'light']}"]
    rules += [f"@media (prefers-color-scheme: dark) {{ :root {styles['dark']} }}"] * (not mode)
    return "\n".join([*rules, *(f":root[data-theme={name}] {styles[name]}" for name in styles)])
