"""Putting a view on the page: its code once, its picture as often as it changes.

Streamlit sends a component's JavaScript with every message, and an unchanged message
of 10 kB or more only as a hash. So each view is mounted as two neighbours that find each
other in the browser: the picture (a stub, and the data) and what is chosen in it. The code
of all views stands before the first of a page. Changing the head on screen sends the data of
that head, and a choice sends a few bytes, whatever the size of the picture.

A view is registered when its module is imported, so once per process; Streamlit's
registry takes a lock, and AppTest's new runtimes get the same code by themselves.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os.path import normpath
from pathlib import Path
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.session import state_of
from explorer.app.streamlit_patches import install_plain_states
from explorer.charts import theme
from explorer.charts.figure_data import WINDOW, Figure, OfflineView
from explorer.components import events

HERE = Path(__file__).parent
install_plain_states()

NO_CHOICE: Final = object()
NO_HTML = '<span style="display:none"></span>'
VIEW_NAMES = sorted(path.parent.name for path in HERE.glob("*/view.js"))
IMPORT = re.compile(r'^(?:import {[^}]*} from|@import) "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def script(path: str, **constants: object) -> str:
    """A module of JavaScript with all that it imports, as Streamlit mounts it: without imports.

    A component that comes as text has no address, so a browser cannot resolve its imports.
    `constants` are declared before it.
    """
    lines = (f"const {name} = {json.dumps(value)};\n" for name, value in constants.items())
    return slim_js("".join([*lines, *_modules(HERE / path).values()]))


def style(path: str) -> str:
    """A style sheet with all that it imports."""
    return slim_css("".join(_modules(HERE / path).values()))


def code(*views: str) -> str:
    """The JavaScript of these views: what they share, and each view in a scope of its own."""
    shared, blocks = dict[Path, str](), list[str]()
    for view in views:
        modules = _modules(HERE / view / "view.js")
        shared |= {path: text for path, text in modules.items() if path.parent == HERE}
        own = (text for path, text in modules.items() if path.parent != HERE)
        blocks.append(f"{{\n{''.join(own)}}}\n")
    colours = f"const THEME = {theme.palettes_as_json()};\n"
    return colours + slim_js("".join([*shared.values(), *blocks])) + "export default () => {};\n"


def _modules(path: Path, modules: dict[Path, str] | None = None) -> dict[Path, str]:
    """The text of this module, after those that it imports, by path."""
    modules = {} if modules is None else modules
    if path not in modules:
        modules[path], text = "", path.read_text(encoding="utf-8")
        for name in IMPORT.findall(text):
            _modules(Path(normpath(path.parent / name)), modules)
        del modules[path]  # so that it comes after what it imports
        modules[path] = EXPORT.sub("", IMPORT.sub("", text))
    return modules


def slim_js(source: str) -> str:
    """The code without indentation, blank lines and comment lines.

    The views have no strings of several lines, so this cannot change what they do.
    """
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def slim_css(source: str) -> str:
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    return "\n".join(line.strip() for line in source.splitlines() if line.strip()) + "\n"


def begin() -> None:
    """Start a page: nothing is drawn yet."""
    vars(state_of(PageViews)).update(vars(PageViews()))


@contextmanager
def drawn_again(keys: list[str]) -> Iterator[None]:
    """Draw a part of a page again: the views that it drew before, under these keys, are gone.

    Afterwards `keys` are those of the views that it has drawn now.
    """
    mounted, gone = state_of(PageViews), PageView(no_figures)
    others = set(mounted.drawn) - set(keys)
    mounted.drawn |= dict.fromkeys(set(keys) & set(mounted.drawn), gone)  # each keeps its place
    try:
        yield
    finally:
        mounted.drawn = {key: view for key, view in mounted.drawn.items() if view is not gone}
        keys[:] = [key for key in mounted.drawn if key not in others]


@contextmanager
def filmed() -> Iterator[dict[str, bytes]]:
    """Mount no view inside, but collect the data of each by its key: one frame of a film.

    A view that is mounted under such a key shows the current frame of the film.
    """
    mounted, frame = state_of(PageViews), dict[str, bytes]()
    before, mounted.frame = mounted.frame, frame
    try:
        yield frame
    finally:
        mounted.frame = before


@dataclass(frozen=True)
class PageView:
    """A view or a chart that this run of a page has drawn.

    `figures` makes its numbers for the export; `offline` has what an offline page needs to draw it,
    None for a chart.
    """

    figures: Callable[[], Sequence[Figure]]
    offline: OfflineView | None = None


@dataclass
class PageViews:
    drawn: dict[str, PageView] = field(default_factory=dict)
    """By key, for the export."""
    frame: dict[str, bytes] | None = None
    """The frame of a film in which views are collected instead of mounted."""
    has_code: bool = False
    """Whether this run has sent the JavaScript of the components."""
    checks: list[str] = field(default_factory=list)
    """How exact its numbers are, for the code panel."""


def no_figures() -> Sequence[Figure]:
    return ()


def drawn_views() -> dict[str, PageView]:
    """The views that this run of the page has drawn so far, by key and in order."""
    return dict(state_of(PageViews).drawn)


class View:
    """One kind of view, ready to be mounted; `html` is its content before its data arrives."""

    def __init__(self, name: str, html: str) -> None:
        css = style("shared.css") + style(f"{name}/view.css")
        self._kind, self._html, self._css, self._js = name, html, css, code(name)
        self._picture = component(f"explorer_{name}", script("stub.js"), css, html)

    def __call__(
        self,
        *,
        key: str,
        data: bytes,
        height: int | str = WINDOW,
        choice: Sequence[int] | int | object | None = NO_CHOICE,
        figures: Callable[[], Sequence[Figure]] | None = no_figures,
        title: str = "",
        half: bool = False,
        **callbacks: Callable[[], None],
    ) -> Any:
        """Mount it; `choice` reaches the view under the name of its key.

        `figures` makes the numbers it shows, for the export; `title` stands over it in an
        offline page, where two of `half` the width stand side by side. Without `figures` the
        view is not exported.

        Bytes and lists are sent as they are. In a string or a dictionary Streamlit looks for
        a table, with pandas, which takes 65 MB.
        """
        chosen = None if choice is NO_CHOICE else choice
        if (frame := state_of(PageViews).frame) is not None:
            frame[key] = data
            return {}
        if figures:
            offline = self.offline(key, data, height, chosen, title, half)
            state_of(PageViews).drawn[key] = PageView(figures, offline)
        fills = height == WINDOW
        kind = "stage" if fills else "figure" if figures else ""  # see figure_stage.js
        # What is beside it takes no space.
        with st.container(gap=None, key=f"{kind}-{key}" if kind else None):
            mount_code()
            high = "content" if fills else height
            result = self._picture(key=key, data=data, height=high, **callbacks)
            if choice is not NO_CHOICE:
                neighbour(key, choice)
        return result

    def offline(
        self,
        key: str,
        data: bytes,
        height: int | str,
        choice: object,
        title: str = "",
        half: bool = False,
    ) -> OfflineView:
        """What an offline page needs to draw this view."""
        code = self._html, self._css, self._js
        return OfflineView(self._kind, key, data, height, choice, *code, title, half)


def component(
    name: str, js: str, css: str = "", html: str = NO_HTML, *, isolate_styles: bool = True
) -> Callable[..., Any]:
    """A function that mounts a component of this code, which is invisible without its own HTML."""
    mount: Callable[..., Any] = st.components.v2.component(
        name, html=html, css=css or None, js=js, isolate_styles=isolate_styles
    )
    return mount


def neighbour(name: str, value: object, by: str = "") -> None:
    """Send the views of the page a choice, or data that arrives later, under this name.

    A choice may also be sent `by` another part of the page than the view's own. Bytes are sent with
    their name in front, since Streamlit keeps bytes only if the data is nothing else.
    """
    if isinstance(value, bytes):
        _BYTES(key=f"{name}-bytes", data=b"\0".join((name.encode(), value)))
        return
    _CHOICE(key=f"{by}{name}-choice", data=[name, value, *events.answered(name)])
    views = state_of(PageViews).drawn
    for key, view in views.items():  # an offline page has what arrives later too
        if view.offline is not None and name.startswith(f"{key}-late-"):
            behind = {**view.offline.behind, name: value}
            views[key] = replace(view, offline=replace(view.offline, behind=behind))


def asks_for(name: str, what: str) -> bool:
    """Whether the browser asks for this now, which it does once, as soon as the page is drawn.

    So a fragment can do work of several seconds after the page's own run.
    """
    result = _ASK(key=f"{name}-ask", data=[what], on_asks_change=lambda: None)
    return bool(result.get("asks") == what)


def chart_stage(key: str) -> DeltaGenerator:
    """The container of one chart or table, as high as the window that is left below its top."""
    return st.container(gap=None, key=f"stage-chart-{key}")


def mount_code() -> None:
    """Send the code of all views, once on a page."""
    mounted = state_of(PageViews)
    if not mounted.has_code:
        mounted.has_code = True
        _CODE(key="code_of_views")


_CHOICE = component("explorer_choice", script("choice.js"))
_BYTES = component("explorer_bytes", script("bytes.js"))
_ASK = component("explorer_ask", script("ask.js"))
_CODE = component("explorer_code", code(*VIEW_NAMES))
