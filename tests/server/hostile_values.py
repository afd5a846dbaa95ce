"""Values that no browser sends for a widget: of every kind that a message has, and odd ones.

A view has two: what is chosen in it, by the names of its events, and what happened in it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState

TEXTS = ("", "no such thing \0 \U0010ffff", "x" * 50_000, "null", "[5]", "[" * 5_000)
ROWS: tuple[Any, ...] = (5, ["a", -1, 99_999, None, 0.5, []], [[]])
CHOSEN: tuple[Any, ...] = (5, *({"rows": rows} for rows in ROWS))
NUMBERS = (-1, 2**53, 1e308, float("nan"), float("-inf"))
ODD: tuple[Any, ...] = (
    *(None, True, 5, -1, 1e308, "a", [], [5], [-1, -1], ["a", {}], [0, 0, 0], [None] * 3),
    *({}, {"layer": "a", "head": -1}, {"held": 5}, {"kind": []}, [[[]]]),
)
state: Callable[..., WidgetState] = WidgetState
EVENTS = ("picked", "chosen", "hidden", "go", "append", "asks")
PLAIN: dict[str, tuple[Any, ...]] = {
    "trigger_value": (True,),
    "bool_value": (True,),
    "int_value": (-1, 2**53),
    "double_value": NUMBERS,
    "string_value": TEXTS + tuple(json.dumps({"selection": said}) for said in CHOSEN),
    "bytes_value": (b"\0",),
}
LISTS: dict[str, tuple[Any, ...]] = {
    "int_array_value": ((), (-1, 2**53)),
    "double_array_value": ((), NUMBERS, (float("nan"),)),
    "string_array_value": ((), TEXTS[:3], TEXTS[1:2]),
}


def for_a_widget() -> Iterator[WidgetState]:
    """One state after another, without the name of the widget that it is for."""
    yield state()
    for kind, values in PLAIN.items():
        yield from (state(**{kind: value}) for value in values)
    for kind, values in LISTS.items():
        yield from (state(**{kind: {"data": value}}) for value in values)
    file = {"file_id": "no such file", "name": "../../config.json", "size": 1}
    yield state(file_uploader_state_value={"uploaded_file_info": [file]})
    yield state(string_trigger_value={"data": TEXTS[1]})
    yield state(chat_input_value={"data": "a"})
    yield state(arrow_value={})
    yield state(json_value="5")
    yield state(json_trigger_value="5")


def for_a_view() -> Iterator[WidgetState]:
    """The same for what is chosen in a view."""
    yield state()
    odd = (json.dumps(dict.fromkeys(EVENTS, each)) for each in ODD)
    yield from (state(json_value=said) for said in (*TEXTS, *odd))


def for_events() -> Iterator[WidgetState]:
    """The same for what happened in it."""
    yield state()
    odd = (json.dumps([{"event": name, "value": each} for name in EVENTS]) for each in ODD)
    yield from (state(json_trigger_value=said) for said in (*TEXTS, *odd))


def of_another_kind(kind: str) -> list[WidgetState]:
    """One of each kind but this."""
    kinds = {each.WhichOneof("value"): each for each in for_a_widget()}
    return [each for name, each in kinds.items() if name not in (None, kind)]
