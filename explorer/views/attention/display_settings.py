"""What may be chosen about the large head, and what an address asks for in vain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.analysis.attention_filters import ALL, SENTENCES
from explorer.app.folded_choices import Text
from explorer.app.url import whole

HEADS = {
    "This head": ("head", False),
    "Mean": ("mean", False),
    "Max": ("max", False),
    "Mean of all layers": ("mean", True),
    "Max of all layers": ("max", True),
}
WEIGHTING = {"Plain": "plain", "Value length": "value"}
SCALING = {"1": "one", "Picture": "all", "Row": "row", "Column": "column"}
LEAST_MASS, MASS_STEP = 10, 5
MOST_HIDDEN = 24
"""As many keys may be named one by one; the address holds them all and must stay short."""
FULL = f"At most {MOST_HIDDEN} keys are hidden one by one: the others are shown."

CHOICES = {
    "heads": tuple(HEADS),
    "weighting": tuple(WEIGHTING),
    "colours": tuple(SCALING),
    "sentences": tuple(SENTENCES),
}
SWITCHES = ("hide_first", "hide_special", "words", "log")
UNTOUCHED: dict[str, Any] = {
    **{key: options[0] for key, options in CHOICES.items()},
    **dict.fromkeys(SWITCHES, False),
    "hide": [],
    "mass": 100,
}


def sound(asked: Mapping[str, Text], names: Sequence[str], paired: bool) -> dict[str, Any]:
    """Values that exist here; what is asked for in vain is as at first."""
    found = dict(UNTOUCHED)
    for key, options in CHOICES.items():
        if asked.get(key) in options and (paired or key != "sentences"):
            found[key] = asked[key]
    for key in SWITCHES:
        found[key] = str(asked.get(key)).lower() == "true"
    found["mass"] = share(asked) or UNTOUCHED["mass"]
    found["hide"] = [name for name in asked.get("hide", []) if name in names][:MOST_HIDDEN]
    return found


def share(asked: Mapping[str, Text]) -> int | None:
    """The percentage that is asked for, where it is one."""
    found = whole(asked.get("mass", ""), 101)
    return None if found is None or found < LEAST_MASS else found


def in_vain(asked: Mapping[str, Text], names: Sequence[str], paired: bool) -> list[str]:
    """One sentence for everything that was asked for and does not exist here."""
    notes = []
    for key, options in CHOICES.items():
        value = asked.get(key)
        if value is not None and value not in options:
            notes.append(
                f"“{key}” can be {_or(options)}, not “{value[:20]}”; showing {options[0]}."
            )
    if not paired and asked.get("sentences", ALL) in [*SENTENCES][1:]:
        notes.append("There is one sentence here, so no pair of sentences to pick from.")
    for key in SWITCHES:
        value = str(asked.get(key, "false"))
        if value.lower() not in ("true", "false"):
            notes.append(f"“{key}” can be true or false, not “{value[:20]}”; it is off.")
    if "mass" in asked and share(asked) is None:
        wish = str(asked["mass"])[:20]
        notes.append(
            f"The share shown is between {LEAST_MASS} and 100 %, not “{wish}”; showing all."
        )
    missing = [name for name in asked.get("hide", []) if name and name not in names]
    if missing:
        notes.append(f"There is no key “{missing[0][:30]}” to hide in this text.")
    if sum(name in names for name in asked.get("hide", [])) > MOST_HIDDEN:
        notes.append(FULL)
    return notes


def _or(options: Sequence[str]) -> str:
    return ", ".join(options[:-1]) + " or " + options[-1]
