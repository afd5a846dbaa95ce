"""One HTML page that needs nothing else: the views of a screen, with their data and their code.

The page runs the same code as the app. Words of a reader or of a model are in the data of
the views, which never becomes markup, or are escaped.
"""

import base64
import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from explorer.charts import theme
from explorer.charts.figure_data import OfflinePicture, OfflineView

OFFLINE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
)
"""Nothing is fetched, by whoever opens the page."""

DRAW = (Path(__file__).parent / "offline_view.js").read_text("utf-8")
START = 'for (const host of document.querySelectorAll(".host")) draw(host);\n'


def offline_html(
    title: str, about: Mapping[str, str], drawn: Sequence[OfflineView | OfflinePicture]
) -> bytes:
    """The views as they were drawn, one under another; its size is that of their data."""
    body = f"""<h1>{html.escape(title)}</h1>
{origin(about)}
{"".join(map(markup, drawn))}"""
    return document(title, colours() + STYLE, drawn, body, START)


def document(
    title: str,
    style: str,
    drawn: Sequence[OfflineView | OfflinePicture],
    body: str,
    script: str,
) -> bytes:
    """A page with the code of what is drawn on it; `script` runs after that."""
    imports, styles = code_of(drawn)
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


def code_of(drawn: Iterable[OfflineView | OfflinePicture]) -> tuple[str, str]:
    """The imports and the rules that these views need: each kind's once.

    The rules wait for the views (`offline_view.js`): each kind's would change the others.
    """
    kinds = {view.kind: view for view in drawn if isinstance(view, OfflineView)}
    imports = "".join(f'import "{_data_url(view.js)}";\n' for view in kinds.values())
    rules = (
        f'<style data-kind="{kind}" media="not all">{view.css}</style>'
        for kind, view in kinds.items()
    )
    return imports, "\n".join(rules)


def origin(about: Mapping[str, str]) -> str:
    """Where the numbers come from, as a list of names with what they are."""
    items = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in about.items()
    )
    return f"<dl>{items}</dl>"


def markup(drawn: OfflineView | OfflinePicture) -> str:
    """The place of a view, with its data, or a picture."""
    return _host(drawn) if isinstance(drawn, OfflineView) else _picture(drawn)


def _picture(picture: OfflinePicture) -> str:
    name = html.escape(picture.title)
    source = base64.b64encode(picture.svg).decode()
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<img alt="{name}" src="data:image/svg+xml;base64,{source}"></figure>'
    )


def _host(view: OfflineView) -> str:
    height = f"{view.height}px" if isinstance(view.height, int) else "auto"
    data = base64.b64encode(view.data).decode()
    host = (
        f'<div class="host" style="height:{height}" data-view="{html.escape(view.attributes)}" '
        f'data-bytes="{data}">{view.html}</div>'
    )
    if not view.title:
        return host
    return f"<figure><figcaption>{html.escape(view.title)}</figcaption>{host}</figure>"


def _data_url(source: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(source.encode()).decode()}"


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
figure img { background: #fff; max-width: 100%; }
"""


FONTS = "--st-font: system-ui, sans-serif; --st-code-font: ui-monospace, monospace; "


def colours() -> str:
    """What the app's theme gives its views, light or dark as the system asks."""
    return (
        f":root {{ color-scheme: light dark; {FONTS}{colours_of(theme.LIGHT)}}}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {colours_of(theme.DARK)}}} }}\n"
    )


def colours_of(palette: theme.Palette) -> str:
    """The same of one of the two."""
    return (
        f"--st-background-color: {palette.background}; --st-text-color: {palette.text}; "
        f"--st-border-color: {palette.border}; "
        f"--st-secondary-background-color: {palette.surface}; "
        f"--st-primary-color: {palette.series[0]}; "
    )
