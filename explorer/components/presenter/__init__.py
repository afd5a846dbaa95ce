"""Presenter mode, on every page: what it does is in the browser; see presenter.js.

Its code is sent once; what the second window says of a step is a message of its own.
"""

from explorer.components.mounting import component, script, style

PRESENT = "present"
"""In the address, which the browser writes."""

_BUTTON = component(
    "explorer_present_button",
    script("presenter/button.js"),
    style("presenter/button.css"),
    '<button type="button" class="present" aria-label="Present" aria-keyshortcuts="F" '
    'title="Present: large type and only the figures (F; ? or Ctrl / lists the keys)">'
    '<span aria-hidden="true">present_to_all</span></button>',
)
_CODE = component(
    "explorer_presenter_code",
    script(
        "presenter/presenter.js",
        PARAMETER=PRESENT,
        KEYS_CSS=style("presenter/keys.css"),
        PAGE_CSS=style("presenter/page.css"),
        WINDOW_CSS=style("presenter/window.css"),
        WINDOW_JS=script("presenter/window.js"),
    ),
)
_STEP_NOTES = component("explorer_presenter", script("presenter/step_notes.js"))


def mount_presenter(notes: list[str]) -> None:
    """Once on a page: `notes` are what the second window says of the open lesson's step."""
    _CODE(key="presenter_code")
    _STEP_NOTES(key="presenter", data=notes)


def present_button() -> None:
    """What begins it for those who do not know its key."""
    _BUTTON(key="present_button", width="content")
