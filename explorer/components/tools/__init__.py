"""What only the browser can do: its theme, a link to the page, its storage, and files on its disk.

Streamlit's page holds its theme in the browser, and no message of a script reaches it. So the
switch does what the theme switch of Streamlit's own menu does, which the app does not show.
"""

import json
from collections.abc import Mapping, Sequence
from mimetypes import guess_type
from secrets import token_hex
from typing import Any

from explorer.components.mounting import component, script, style

THEMES = {"Light": "light_mode", "System": "contrast", "Dark": "dark_mode"}
"""As Streamlit calls them, and the icon of each in its font."""
_CHOICES = "".join(
    f'<label title="{name} theme"><input type="radio" name="theme" value="{name}" '
    f'aria-label="{name} theme"><span aria-hidden="true">{icon}</span></label>'
    for name, icon in THEMES.items()
)
_THEME = component(
    "explorer_theme",
    script("tools/theme.js"),
    style("tools/theme.css"),
    f'<div class="themes" role="radiogroup" aria-label="Theme">{_CHOICES}</div>',
)
_LINK = component(
    "explorer_copy_link",
    script("tools/copy_link.js"),
    style("tools/copy_link.css"),
    '<div class="link"><input readonly aria-label="Link to this page">'
    '<button type="button" aria-live="polite">Copy link</button></div>'
    '<a class="opens" target="_blank" rel="noopener">Open it in a new tab</a>',
)


def copy_link(added: Mapping[str, Sequence[str]], *, key: str) -> None:
    """The link to the page as it is, with these parameters instead of its own of the same names."""
    _LINK(key=key, data=[[name, list(values)] for name, values in added.items()])


def theme_switch(addresses: Sequence[str], *, key: str) -> None:
    """Light, dark, or as the system has it; kept in the browser for all of these addresses."""
    _THEME(key=key, data=list(addresses), width="content")


_VECTORS = component(
    "explorer_vector_picture",
    script("tools/vector_picture.js"),
    style("tools/vector_picture.css"),
    '<button type="button" hidden>Picture on the screen, SVG</button>',
)


def save_picture(view: str, title: str, file: str) -> None:
    """A button that saves what the view of this key draws, as vector graphics under this name.

    There is no button for a view without a canvas.
    """
    _VECTORS(key="export_screen", data=[view, title, file])


_REMEMBER = component("explorer_remember", script("tools/browser_storage.js"))
_HAND_OVER = component("explorer_hand_over", script("tools/file_download.js"))


def remembered(views: Mapping[str, Any] | None) -> object:
    """Let the browser store this list of a kept session; without a list, return the stored one."""
    text = "" if views is None else json.dumps(views, ensure_ascii=False)
    result = _REMEMBER(key="kept_list", data=[text], on_remembered_change=lambda: None)
    return result.get("remembered")


def hand_over(name: str, file: bytes) -> None:
    """Have the browser save this file, which the run of a page has made, under this name.

    Streamlit's own button asks for its file beside the run that its click begins: what is typed
    when it is clicked may be missing in the file, and the file may not be found (its name changes
    with each run).
    """
    kind, _ = guess_type(name)
    head = json.dumps([token_hex(8), name, kind or "application/octet-stream"])
    _HAND_OVER(key="handed_over", data=b"\0".join((head.encode(), file)))
