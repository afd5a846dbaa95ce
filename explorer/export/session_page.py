"""A kept session as one HTML file that needs no server: one view at a time, with keys that step.

`offline_page` builds the page, under the same policy. The views of a step are in a template,
which is inert until the step is shown.
"""

import html
from collections.abc import Sequence
from pathlib import Path

from explorer.charts.figure_data import WINDOW, OfflinePicture, OfflineView
from explorer.export import offline_page
from explorer.export.kept_view import KeptView
from explorer.system.limits import SESSION_FILE_BYTES

STYLE, SCRIPT = (Path(__file__).with_suffix(kind).read_text("utf-8") for kind in (".css", ".js"))
CHOOSE = ("grid", "stage_list")
"""Views that choose what another one shows."""
GONE = "This view has no picture."
KEYS = (
    "<kbd>Space</kbd> and <kbd>→</kbd> go on, <kbd>←</kbd> goes back, <kbd>Home</kbd> and "
    "<kbd>End</kbd> go to the ends, <kbd>↓</kbd> and <kbd>↑</kbd> to what is below and above; "
    "<kbd>F</kbd> fills the screen, <kbd>S</kbd> shows the notes, <kbd>D</kbd> changes light and "
    "dark, <kbd>O</kbd> opens this list. In a figure the arrows are the figure's until "
    "<kbd>Escape</kbd>."
)


def session_html(
    title: str, views: Sequence[KeptView], base: str = "", mode: str | None = None
) -> bytes:
    """The session, light or dark; its links begin with `base`, the address of the app."""
    pictures = [picture for view in views for picture in view.pictures]
    steps = "".join(_step(at, view, base) for at, view in enumerate(views))
    links = "".join(
        f'<li><a href="#{at}">{html.escape(view.title)}</a></li>'
        for at, view in enumerate(views, 1)
    )
    body = f"""<main>{steps}</main>
<aside id="note" aria-label="Notes" aria-live="polite"></aside>
<nav aria-label="Steps">
<h1>{html.escape(title)}</h1>
<button id="more">More below ↓</button>
<button id="back" aria-label="Back">←</button><span id="counter" aria-live="polite"></span>
<button id="next" aria-label="Next">→</button>
<button id="list">Steps</button><button id="notes">Notes</button>
<button id="theme">Light or dark</button><button id="full">Full screen</button>
</nav>
<dialog aria-label="Steps"><ol>{links}</ol><p>{KEYS}</p></dialog>"""
    return offline_page.document(title, offline_page.colours(mode) + STYLE, pictures, body, SCRIPT)


def size_of(views: Sequence[KeptView]) -> int:
    """The bytes of the file without its words; the file is not built for that."""
    code = offline_page.code_of(picture for view in views for picture in view.pictures)
    return sum(map(len, code)) + sum(view.file_size for view in views)


def refusal(views: Sequence[KeptView]) -> str:
    """Why the file would be too large, and what to remove; empty if it is not."""
    size = size_of(views)
    if SESSION_FILE_BYTES.allows(size):
        return ""
    largest = max(views, key=lambda view: view.file_size)
    takes = SESSION_FILE_BYTES.in_words(largest.file_size)
    why = SESSION_FILE_BYTES.refusal(size)
    if sum(view.file_size == largest.file_size for view in views) > 1:
        return f"{why} No view is larger than “{largest.title}” with {takes}: remove it first."
    if len(views) == 1:
        return f"{why} “{largest.title}” is the only view: keep one with fewer figures."
    return f"{why} The largest is “{largest.title}” with {takes}: remove it first."


def _step(at: int, view: KeptView, base: str) -> str:
    figures = "".join(map(_figure, _main_first(view.pictures))) or f'<p class="gone">{GONE}</p>'
    about = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd></div>"
        for name, text in view.about.items()
    )
    where = html.escape(base + view.address)
    link = f'<div><a href="{where}" rel="noreferrer">Open in the app</a></div>' if base else ""
    return (
        f'<section class="step" hidden aria-labelledby="title-{at}">'
        f'<h2 id="title-{at}">{html.escape(view.title)}</h2><dl>{about}{link}</dl>'
        f'<div class="figures"></div><template>{figures}</template>'
        f'<p class="said" hidden>{html.escape(view.note)}</p></section>'
    )


def _main_first(
    pictures: Sequence[OfflineView | OfflinePicture],
) -> Sequence[OfflineView | OfflinePicture]:
    """What fills the slide is first: the first that takes a window and does not only choose."""
    main = next(
        (
            at
            for at, part in enumerate(pictures)
            if isinstance(part, OfflineView) and part.height == WINDOW and part.kind not in CHOOSE
        ),
        0,
    )
    return [*pictures[main:], *pictures[:main]]


def _figure(picture: OfflineView | OfflinePicture) -> str:
    width = ' class="half"' * (isinstance(picture, OfflineView) and picture.half)
    return f"<div{width}>{offline_page.markup(picture)}</div>"
