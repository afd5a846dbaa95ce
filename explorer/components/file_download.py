"""A file that the run of a page has made goes to the reader's disk.

Streamlit's own button for a file asks for it beside the run that its click begins: what is typed
when it is clicked may be missing in the file, and the file may not be found (its name changes with
each run). A file of the run itself has all that the browser had told before.
"""

import json
from mimetypes import guess_type
from secrets import token_hex

from explorer.components.mounting import NO_HTML, component, script

_HAND_OVER = component("explorer_hand_over", html=NO_HTML, js=script("file_download.js"))


def hand_over(name: str, file: bytes) -> None:
    """Have the browser save this, under this name, each time that it is called."""
    kind, _ = guess_type(name)
    head = json.dumps([token_hex(8), name, kind or "application/octet-stream"])
    _HAND_OVER(key="handed_over", data=b"\0".join((head.encode(), file)))
