"""What a page shows in the browser, each number beside the one in the server's own message.

That an analysis is right and that a page sends its numbers is proven without a browser. A reader
here gives pairs: what stands on the screen of the running app, and what was sent.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from playwright.sync_api import Page, WebSocket
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from explorer.components import wire
from tests.browser.visiting import DRAWN_ANEW, Visitor
from tests.reader import widget_of
from tests.served import wait_until
from tests.whole_numbers import UNSEEN

MARKUP = dict.fromkeys(map(ord, "\\*`")) | UNSEEN
N = r"([−-]?\d[\d,]*(?:\.\d+)?(?:e−\d+)?)"
"""A number as it is written."""
WHOLE_FROM = 100
"""Three digits are shown: a number from here on is rounded to a whole one, a smaller one never."""
Lines = list[list[Any]]


@dataclass
class PageMessages:
    """The elements that the server sent to a page, in order."""

    elements: list[Element] = field(default_factory=list)
    by_hash: dict[str, ForwardMsg] = field(default_factory=dict)

    def receive(self, data: bytes | str) -> None:
        message = ForwardMsg.FromString(data) if isinstance(data, bytes) else ForwardMsg()
        if message.ref_hash:  # sent before, and kept by the browser
            message = self.by_hash[message.ref_hash]
        elif message.metadata.cacheable:
            self.by_hash[message.hash] = message
        if message.delta.WhichOneof("type") == "new_element":
            self.elements.append(message.delta.new_element)

    def all(self, *kinds: str) -> list[Any]:
        """What was sent of these kinds."""
        return [widget_of(each) for each in self.elements if each.WhichOneof("type") in kinds]

    def view(self, key: str) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The header and the planes that a view of ours was sent last."""
        views = [each for each in self.all("bidi_component") if each.id.endswith(f"-{key}")]
        return wire.unpack(views[-1].bytes)


@cache
def messages_of(page: Page) -> PageMessages:
    """One for each tab, made before the app is loaded in it."""
    messages = PageMessages()

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", messages.receive)

    page.on("websocket", listen)
    return messages


@dataclass(frozen=True)
class Pair:
    """What the screen shows and what was sent: a text, or a number that is shown rounded."""

    what: str
    shown: str
    sent: float | str

    def fault(self) -> str:
        """Empty where both are the same, a number to half its last digit."""
        if isinstance(self.sent, str):
            is_same = plain(self.shown) == plain(self.sent)
        else:
            is_same = is_rounded(self.shown, self.sent)
        return "" if is_same else f"{self.what}: {self.shown!r} is shown, {self.sent!r} was sent"


def is_rounded(shown: str, sent: float) -> bool:
    """Whether the first number in a text is this one, rounded to the digits that are shown."""
    found = re.search(N, shown)
    if found is None:
        return False
    mantissa, _, power = found[0].replace("−", "-").replace(",", "").partition("e-")
    decimals = len(mantissa.partition(".")[2])
    is_exact = not decimals and not power and abs(sent) < WHOLE_FROM
    half = 0.0 if is_exact else 10.0 ** -(int(power or 0) + decimals) / 2
    value = float(mantissa) * 10.0 ** -int(power or 0)
    return abs(value - sent) <= half + 1e-7 * abs(sent)


def plain(text: str) -> str:
    """Its lines without markup, and without what only steers how they are set."""
    return "\n".join(" ".join(line.split()) for line in text.translate(MARKUP).split("\n"))


def painted(visitor: Visitor) -> None:
    """Wait for the frame after the next: what was asked for last is drawn by then."""
    visitor.page.evaluate(DRAWN_ANEW)


@dataclass(frozen=True)
class Read:
    """How some numbers of a view are read, and which element carries them."""

    pairs: Callable[[Visitor, PageMessages], list[Pair]]
    is_in: Callable[[Element], bool]
    numbers: Callable[[PageMessages], Sequence[object]] = lambda messages: messages.elements
    """What was sent of them, where `is_in` looks for the element alone."""

    def kind(self, messages: PageMessages) -> str:
        """What draws them: a component with the form of its data, or one of Streamlit's own.

        Empty where they were not sent.
        """
        element = next(filter(self.is_in, messages.elements), Element())
        if (kind := element.WhichOneof("type") or "") != "bidi_component":
            return kind
        ours = element.bidi_component
        if not ours.bytes or not self.numbers(messages):
            return ""
        header, planes = wire.unpack(ours.bytes)
        return f"{ours.component_name} {header.get('scale')} {[*planes]}"


def of_view(key: str) -> Callable[[Element], bool]:
    return lambda element: element.bidi_component.id.endswith(f"-{key}")


Sent = Callable[[dict[str, Any], dict[str, bytes]], Sequence[float | str]]
"""Finds the same in the header and the planes of a view."""


def texts(key: str, css: str, sent: Sent, act: Callable[[Visitor], object] = painted) -> Read:
    """Texts of a view, after something was done; of a sentence what stands behind its colon."""

    def read(visitor: Visitor, messages: PageMessages) -> list[Pair]:
        act(visitor)
        painted(visitor)
        found = visitor.widget(key).locator(css)
        found.first.wait_for(state="attached")
        shown = found.evaluate_all("all => all.map(each => each.textContent)")
        pairs = zip(shown, numbers(messages), strict=True)
        return [Pair(f"{key} {css}", text.rpartition(":")[2], value) for text, value in pairs]

    def numbers(messages: PageMessages) -> Sequence[float | str]:
        return sent(*messages.view(key))

    return Read(read, of_view(key), numbers)


def most(*place: int) -> Sent:
    """The largest number at this place of a picture."""
    return lambda header, planes: [float(values_of(header, planes)[place].max())]


def cell(key: str, row: int, column: int) -> Read:
    """What a picture says of the cell that is pointed at; of a mask whether it lets through."""

    def read(visitor: Visitor, messages: PageMessages) -> list[Pair]:
        sentence = visitor.point(key, row, column)
        painted(visitor)
        shown = sentence.inner_text().rpartition(":")[2]
        if messages.view(key)[0]["scale"] == "mask":
            shown = f"{' may attend to ' in shown:d}"
        return [Pair(f"{key}: {row}, {column}", shown, *numbers(messages))]

    def numbers(messages: PageMessages) -> list[float]:
        return [float(values_of(*messages.view(key))[row, column])]

    return Read(read, of_view(key), numbers)


def values_of(header: dict[str, Any], planes: dict[str, bytes]) -> Any:
    """The numbers of a picture: in single precision, or as codes."""
    if exact := planes.get("exact"):
        return np.frombuffer(exact, "<f4").reshape(header["shape"])
    return wire.decode(wire.codes_of(planes["values"], header["shape"]), header)


def in_text(pattern: str) -> Read:
    """The groups of a pattern in the text of the page."""

    def read(visitor: Visitor, messages: PageMessages) -> list[Pair]:
        main = visitor.page.get_by_test_id("stMain")
        shown = _groups(pattern, lambda: [main.inner_text()])
        sent = _groups(pattern, lambda: [each.body for each in messages.all(*BODIES)])
        return [Pair(pattern, *each) for each in zip(shown, sent, strict=True)]

    def is_in(element: Element) -> bool:
        return any(re.search(pattern, plain(getattr(element, kind).body)) for kind in BODIES)

    return Read(read, is_in)


BODIES = ("markdown", "text", "alert")


def _groups(pattern: str, texts: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """The groups where they are found last, once they are there."""
    found: list[tuple[str, ...]] = []

    def are_there() -> bool:
        found[:] = (m.groups() for text in texts() for m in re.finditer(pattern, plain(text)))
        return bool(found)

    wait_until(are_there, pattern, 60)
    return found[-1]


def table(*has: str) -> Read:
    """The cells in sight of the last table that has these texts."""

    def read(visitor: Visitor, messages: PageMessages) -> list[Pair]:
        shown, sent, tables = list[Lines](), list[Lines](), visitor.page.locator(TABLES)

        def are_there() -> bool:
            shown[:] = (each for each in tables.evaluate_all(CELLS) if each[1:] and _has(each, has))
            sent[:] = (each for each in _sent_tables(messages) if _has(each, has))
            return bool(shown and sent)

        wait_until(are_there, f"a table with {has}", 60)
        (names, *rows), lines = sent[-1], shown[-1]
        lines = lines[1:] if lines[0][0] == names[0] else lines
        return [
            Pair(f"{names[at]} of {line[0]}", text, row[at])
            for line, row in zip(lines, rows, strict=False)
            for at, text in enumerate(line)
        ]

    def is_in(element: Element) -> bool:
        return any(_has(each, has) for each in _sent_tables(PageMessages([element])))

    return Read(read, is_in)


TABLES = ":is([data-testid=stTable], [data-testid=stDataFrame]) table"
CELLS = "all => all.map(it => [...it.rows].map(row => [...row.cells].map(c => c.textContent)))"


def _sent_tables(messages: PageMessages) -> Iterator[Lines]:
    """The names of the columns of each table, and its rows."""
    for each in messages.all("dataframe", "table"):
        frame = convert_arrow_bytes_to_pandas_df(each.arrow_data.data)
        yield [list(frame.columns), *frame.to_numpy(dtype=object).tolist()]


def _has(lines: Lines, texts: tuple[str, ...]) -> bool:
    return set(texts) <= {plain(str(each)) for line in lines for each in line}


def marks(key: str, name: str) -> Read:
    """What a chart tells a screen reader of its marks that have this name: a row of its data."""

    def read(visitor: Visitor, messages: PageMessages) -> list[Pair]:
        found = visitor.widget(key).locator(f"svg [aria-label*='{name}: ']")
        wait_until(lambda: found.count() > 0, f"the marks of {key}", 60)
        charts = messages.all("vega_lite_chart")
        rows = [json.loads(row) for each in charts for row in ROW(each.spec)]
        told = found.evaluate_all("all => all.map(mark => mark.getAttribute('aria-label'))")
        return [Pair(key, each, each if _is_told(each, rows) else "no such row") for each in told]

    return Read(read, lambda element: element.HasField("vega_lite_chart"))


ROW = re.compile(r"\{[^{}]*\}").findall


def _is_told(text: str, rows: list[dict[str, Any]]) -> bool:
    """Whether every number of a text is one of the same row, as a number or in its texts."""
    shown = re.findall(N, text)
    return any(all(any(_is_in(n, each) for each in row.values()) for n in shown) for row in rows)


def _is_in(shown: str, value: object) -> bool:
    if isinstance(value, str):
        return shown in re.findall(N, value)
    return isinstance(value, int | float) and is_rounded(shown, value)
