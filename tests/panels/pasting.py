"""A page whose code panel is open: the lines that it shows, run as pasted, and its numbers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.text.number_format import three
from tests import apps
from tests.views import drawing


@dataclass(frozen=True, eq=False)
class Panel:
    """A page, and what its lines have made in a namespace of their own."""

    at: AppTest
    made: dict[str, Any]
    printed: list[str]

    def picture(self, key: str) -> wire.Array:
        """The numbers that the view under this key was sent."""
        return self._sent(key)[0]

    def shows(self, key: str, made: Any, at: Any = ..., within: float = 0.0) -> None:
        """What the lines made is what the view shows at this place, to the view's own step.

        Numbers that are sent as they are differ by the rounding of single precision at most.
        Those of other passes differ by at most this part, `within`, of the largest.
        """
        seen, step = self._sent(key)
        seen, made = seen[at], as_array(made)
        known = np.isfinite(seen)
        assert known.any()
        largest = float(np.abs(made[known]).max())
        rel, most = (1e-4, 1.01 * step) if step else (1e-5, 1e-6 * largest)
        most = max(most, within * largest)
        np.testing.assert_allclose(seen[known], made[known], rtol=rel, atol=most)

    def header(self, key: str) -> dict[str, Any]:
        """What the view under this key was told besides numbers."""
        return drawing.sent(self.at, key)[0]

    def board(self, key: str) -> list[list[str]]:
        """What stands in the rows of a board."""
        return [[cell[0] for cell in row["cells"]] for row in self.header(key)["rows"]]

    def _sent(self, key: str) -> tuple[wire.Array, float]:
        header, planes = drawing.sent(self.at, key)
        if "exact" in planes:
            singles = np.frombuffer(planes["exact"], "<f4").reshape(header["shape"])
            return singles.astype(np.float64), 0.0
        codes = wire.codes_of(planes["values"], header["shape"])
        return wire.decode(codes, header), (header["high"] - header["low"]) / header["steps"]

    def says(self, *values: float) -> None:
        """Each of these numbers stands on the page, as the pages write numbers."""
        words = self.words()
        for value in values:
            said = three(float(value))
            assert re.search(rf"(?<![\d.,−]){re.escape(said)}(?![\d,]|\.\d)", words), said

    def words(self) -> str:
        """All text and all tables of the page."""
        return f"{apps.said(self.at)}\n" + "\n".join(_cells(self.at))

    def column(self, name: str) -> list[Any]:
        """A column of the first table that has it."""
        tables = [*self.at.dataframe, *self.at.table]
        return next(list(each.value[name]) for each in tables if name in each.value.columns)


def _cells(at: AppTest) -> Iterator[str]:
    for table in [*at.dataframe, *at.table]:
        for column in table.value.columns:
            for cell in table.value[column]:
                yield three(cell) if isinstance(cell, float) else str(cell)


def as_array(made: Any) -> wire.Array:
    return np.asarray(made.detach() if hasattr(made, "detach") else made, dtype=np.float64)


def panel(
    path: str, folder: Path, state: Mapping[str, object] | None = None, /, **address: str
) -> Panel:
    """Open the page with its code panel open, and run what stands there.

    `folder` is where models lie that are not the project's: the lines name those in short.
    `state` is put first into widgets that no address holds.
    """
    at = apps.page(path, {**(state or {}), "code": True}, **address)
    lines = at.code[0].value
    assert str(folder) not in lines, "where a model lies is nobody else's business"
    return Panel(at, *drawing.run(lines, folder))
