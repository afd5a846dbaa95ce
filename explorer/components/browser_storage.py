"""What the reader's browser remembers of the kept session: its list, without the pictures."""

import json
from collections.abc import Mapping
from typing import Any

from explorer.components.mounting import NO_HTML, component, script

_REMEMBER = component("explorer_remember", html=NO_HTML, js=script("browser_storage.js"))


def remembered(kept: Mapping[str, Any] | None) -> object:
    """Have the browser remember this; where nothing is known, what it remembers, else None."""
    told = "" if kept is None else json.dumps(kept, ensure_ascii=False)
    found = _REMEMBER(key="kept_list", data=[told], on_remembered_change=lambda: None)
    return found.get("remembered")
