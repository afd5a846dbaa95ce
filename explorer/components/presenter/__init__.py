"""Presenter mode, on every page: what it does is in the browser; see presenter.js.

Its code is sent once; what the second window says of a step is a message of its own.
"""

from explorer.components.mounting import NO_HTML, component, script, style

PRESENT = "present"
"""In the address, which the browser writes."""

_BUTTON = component(
    "explorer_present_button",
    html='<button type="button" class="present" aria-label="Present" aria-keyshortcuts="F" '
    'title="Present: large type and only the figures (F; ? or Ctrl / lists the keys)">'
    '<span aria-hidden="true">present_to_all</span></button>',
    css=style("presenter/button.css"),
    js=script("presenter/button.js"),
)
_CODE = component(
    "explorer_presenter_code",
    html=NO_HTML,
    js=script(
        "presenter/presenter.js",
        PARAMETER=PRESENT,
        PAGE_CSS=style("presenter/page.css"),
        WINDOW_CSS=style("presenter/window.css"),
        WINDOW_JS=script("presenter/window.js"),
    ),
)
_STEP_NOTES = component("explorer_presenter", html=NO_HTML, js=script("presenter/step_notes.js"))


def mount_presenter(notes: list[str]) -> None:
    """Once on a page: `notes` are what the second window says of the open lesson's step."""
    _CODE(key="presenter_code")
    _STEP_NOTES(key="presenter", data=notes)


def present_button() -> None:
    """What begins it for those who do not know its key."""
    _BUTTON(key="present_button", width="content")
