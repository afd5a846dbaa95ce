"""Presenter mode, on every page: what it does is in the browser; see presenter.js.

Its code is sent once; what the second window says of a step is a message of its own.
"""

import json

from explorer.components.mounting import HERE, NOTHING, component, read, slim_css, slim_js

PRESENT = "present"
"""In the address, which the browser writes."""
_FOLDER = HERE / "presenter"
_PARTS = ("kept", "enlarge", "steps", "spot", "place", "keys", "notes", "presenter")


def _code() -> str:
    """The JavaScript; before it, as texts, what goes into the page and the second window."""
    texts = {
        "PARAMETER": PRESENT,
        "PAGE_CSS": slim_css(read(_FOLDER / "page.css")),
        "WINDOW_CSS": slim_css(read(_FOLDER / "window.css")),
        "WINDOW_JS": slim_js(read(_FOLDER / "window.js")),
    }
    before = "".join(f"const {name} = {json.dumps(text)};\n" for name, text in texts.items())
    return before + slim_js("".join(read(_FOLDER / f"{part}.js") for part in _PARTS))


_BUTTON = component(
    "explorer_present_button",
    html='<button type="button" class="present" aria-label="Present" aria-keyshortcuts="F" '
    'title="Present: large type and only the figures (F; ? or Ctrl / lists the keys)">'
    '<span aria-hidden="true">present_to_all</span></button>',
    css=slim_css(read(_FOLDER / "button.css")),
    js=slim_js(read(_FOLDER / "button.js")),
)
_CODE = component("explorer_presenter_code", html=NOTHING, js=_code())
_TOLD = component("explorer_presenter", html=NOTHING, js=slim_js(read(_FOLDER / "told.js")))


def mount_presenter(told: list[str]) -> None:
    """Once on a page: `told` is what the second window says of the open lesson's step."""
    _CODE(key="presenter_code")
    _TOLD(key="presenter", data=told)


def present_button() -> None:
    """What begins it for those who do not know its key."""
    _BUTTON(key="present_button", width="content")
