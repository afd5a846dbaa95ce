"""All words and numbers that a page was sent, each as its reader sees it written."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.text.number_format import three
from tests.apps import FRAME
from tests.whole_numbers import UNSEEN


def sent_words(at: AppTest) -> str:
    """One line for each text or number, without the signs of Markdown; not what frames a page."""
    drawn = [node for node in at.main if getattr(node, "proto", None) and node.key not in FRAME]
    lines = (" ".join(word.split()) for node in drawn for word in _of_element(node))
    return "\n".join(lines).replace("**", "").replace("`", "").translate(UNSEEN)


def _of_element(node: Any) -> Iterator[str]:
    if node.type in {"dataframe", "table"}:
        yield from map(str, node.value.to_numpy().ravel())
    elif node.type != "bidi_component":
        yield from _of_message(node.proto)
    elif node.proto.bytes:
        header, planes = wire.unpack(node.proto.bytes)
        yield from _of_data(header)
        # These planes hold numbers; the others hold codes of numbers.
        names = planes if node.proto.component_name == "explorer_stages" else {"exact"} & {*planes}
        for name in names:
            yield from (three(float(value)) for value in np.frombuffer(planes[name], "<f4"))
    else:
        yield from _of_data(json.loads(node.proto.json or "null"))


def _of_message(message: Any) -> Iterator[str]:
    """The texts of an element of Streamlit's, but for those that only a click opens."""
    for kind, value in message.ListFields():
        for each in value if kind.is_repeated else [value]:
            if hasattr(each, "ListFields"):
                yield from _of_message(each)
            elif kind.name == "spec":
                yield from _of_data(json.loads(each))
            elif isinstance(each, str) and kind.name not in {"id", "options", "help"}:
                yield each


def _of_data(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from (name, *_of_data(value))
    elif isinstance(data, list):
        for each in data:
            yield from _of_data(each)
    elif isinstance(data, float | int) and not isinstance(data, bool):
        yield three(data)
