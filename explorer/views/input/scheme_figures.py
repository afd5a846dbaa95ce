"""The figures of one scheme of positions, alone or beside those of another on the same scales."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import streamlit as st
from torch import Tensor

from explorer.analysis.position_schemes import SCHEMES, PositionScheme
from explorer.app.controls import expander
from explorer.charts.position_curves import head_curves, offset_curve, rotation_clocks, wave_curves
from explorer.charts.surfaces import surface_of_positions
from explorer.charts.theme import palette
from explorer.components import matrix
from explorer.components.chart import Table, chart, plotly_chart
from explorer.components.matrix import Beside
from explorer.text.number_format import three
from explorer.views.shared import widgets

CURVE_HEIGHT, MATRIX_HEIGHT, LOWEST = 260, 430, 180
WIDTH, AROUND = 490, 105
"""Pixels of half a screen, and of the labels and the legend around a matrix."""
CLOCKS, CLOCKS_OF_HALF = 6, 3
UP_IS = {
    "sinusoidal": "Up is the sine, right the cosine; every hand turns at its own speed.",
    "rotary": "A hand is a rotated pair of ones; every pair turns at its own speed.",
}


@dataclass(frozen=True)
class Side:
    """One scheme on screen; `together` are all that are, itself among them.

    `model` is whose positions they are, where not the chosen model's; `key` stands in front of
    the keys of its figures.
    """

    shown: PositionScheme
    together: tuple[PositionScheme, ...]
    head: int
    model: str = ""
    key: str = ""

    @property
    def has_figures(self) -> bool:
        return self.shown.name != "none"

    @property
    def alike(self) -> tuple[PositionScheme, ...]:
        """Those whose pairs of positions have the same unit, and so the same scale."""
        unit, drawn = self.shown.unit, [each for each in self.together if each.name != "none"]
        return tuple(each for each in drawn if each.unit == unit)

    def draw_table(self) -> None:
        """Positions down, dimensions across."""
        if self.shown.table is None:
            return
        tables = [each.table for each in self.together if each.table is not None]
        self._draw_matrix(
            "dimension",
            self.shown.title,
            "value",
            "positions_table",
            self.shown.table,
            max(float(table.abs().max()) for table in tables),
            max(_height(*table.shape) for table in tables),
            beside=[_as_beside(table) for table in tables],
        )

    def draw_waves(self, pair: int) -> None:
        """Two dimensions over the positions."""
        shown = self.shown
        if shown.table is None:
            return
        title = f"pair {pair} of dimensions"
        self.draw_heading(title)
        spec = wave_curves(shown.wave(pair), list(self._waves_beside(pair)))
        chart(spec, height=CURVE_HEIGHT, key=f"{self.key}waves", title=self._title(title))
        if shown.wavelengths:
            st.caption(f"One period takes {three(shown.wavelengths[pair])} positions.")

    def _waves_beside(self, pair: int) -> Iterator[float]:
        for each in self.together:
            if each.table is not None:
                yield from each.table[:, list(each.pairs[pair])].flatten().tolist()

    @property
    def pairs_title(self) -> str:
        """What is drawn of every two positions."""
        biases = {"bias": f"bias of head {self.head}", "bucket": "bucket"}
        if self.shown.unit in biases:
            return f"{biases[self.shown.unit]}, query against key"
        return f"{_spoken(self.shown.unit)} of two positions"

    def draw_pairs(self) -> None:
        """What two positions give together: rows are queries or positions, as columns are."""
        if not self.has_figures:
            return
        shown, title = self.shown, self.pairs_title
        values, top = shown.products, max(float(each.products.abs().max()) for each in self.alike)
        if shown.table is None:
            self._draw_matrix(
                "key", title, shown.unit, "products", values, top, MATRIX_HEIGHT, "query"
            )
            return
        self._draw_matrix("position", title, shown.unit, "products", values, top, MATRIX_HEIGHT)

    def draw_by_distance(self, height: int = CURVE_HEIGHT) -> None:
        """The same over the distance of the two, and whether that is all it depends on."""
        shown = self.shown
        if not self.has_figures:
            return
        if shown.table is None:
            title = f"{'bias of every head' if shown.unit == 'bias' else 'bucket'} by distance"
            self.draw_heading(title)
            beside = [value for each in self.alike for _, _, value in each.by_head]
            spec = head_curves(shown.by_head, shown.unit, f"head {self.head}", beside)
            chart(spec, height=height, key=f"{self.key}by_head", title=self._title(title))
            if shown.unit == "bias":
                st.caption(
                    f"Head {self.head}, chosen above: its biases as a map, and the thick line here."
                )
            return
        unit = _spoken(shown.unit)
        self.draw_heading(f"{unit} by distance")
        rows = shown.against_offset()
        beside = [
            value for each in self.alike for row in each.against_offset() for value in row[1:]
        ]
        title = self._title(f"{unit} by distance")
        spec = offset_curve(rows, shown.unit, beside)
        chart(spec, height=height, key=f"{self.key}by_offset", title=title)
        st.caption(
            f"The {unit} follows from the distance alone."
            if shown.knows_distance
            else f"Two pairs at the same distance differ by up to {three(shown.spread)}."
        )

    def draw_hands(self, place: int) -> None:
        """Some of the pairs as clock hands, fast ones first."""
        shown = self.shown
        if shown.table is None:
            return
        count = CLOCKS if len(self.together) == 1 else CLOCKS_OF_HALF
        last = len(shown.pairs) - 1
        some = sorted({round(step * last / (count - 1)) for step in range(count)})
        title = f"clock hands of {len(some)} pairs at position {place}"
        self.draw_heading(title)
        hands = [
            (f"pair {pair}", [tuple(tip) for tip in shown.hand(pair).tolist()]) for pair in some
        ]
        spec = rotation_clocks(hands, place)
        chart(spec, width="content", key=f"{self.key}clocks", title=self._title(title))
        text = UP_IS.get(shown.name, "Up is the first of two neighbouring dimensions.")
        st.caption(
            f"{len(some)} of {len(shown.pairs)} pairs, evenly spread. {text} Dots are earlier "
            "positions; the radius of a clock is its longest hand."
        )

    def _title(self, what: str) -> str:
        of = f" ({self.model})" if self.model else ""
        return f"{SCHEMES[self.shown.name]}{of}: {what}"

    def draw_heading(self, what: str) -> None:
        st.markdown(f"**{SCHEMES[self.shown.name]}: {what}**")

    def _draw_matrix(
        self,
        across: str,
        title: str,
        unit: str,
        key: str,
        values: Tensor,
        top: float,
        height: int,
        row: str = "position",
        beside: Sequence[Beside] = (),
    ) -> None:
        self.draw_heading(title)
        matrix(
            values,
            *map(_places, values.shape),
            key=f"{self.key}{key}",
            scale="sequential" if unit == "bucket" else "diverging",
            row_name=row,
            column_name=across,
            sentence=f"{row.capitalize()} {{row}}, {across} {{column}}: {{value}}",
            unit=unit,
            top=top or None,
            title=self._title(title),
            height=height,
            beside=beside,
        )


def _as_beside(table: Tensor) -> Beside:
    rows, columns = map(_places, table.shape)
    return Beside(rows, columns, "position", "dimension")


def _places(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def _spoken(unit: str) -> str:
    return "dot product" if unit == "product" else unit


def _height(rows: int, columns: int) -> int:
    """Pixels; a table of many dimensions has small cells, and is only as high as they need."""
    cell = min(7.0, WIDTH / columns)
    return max(LOWEST, min(MATRIX_HEIGHT, int(AROUND + rows * cell)))


CAPTIONS = {
    "product": "The dot product of the vectors of two positions, for every pair of them.",
    "cosine similarity": "The cosine similarity of the vectors of two positions, for every pair.",
    "bias": "What the chosen head adds to the score of a key, for every pair of positions.",
    "bucket": "The bucket of every pair of positions: a plateau is one bucket.",
}


def draw_position_surface(sides: Sequence[Side]) -> None:
    """An expander; nothing is sent while it is closed."""
    with expander("position_surface") as panel:
        if not panel.open:
            return
        colours = palette(st.context.theme.type)
        for place, side in zip(widgets.side_by_side(*[1] * len(sides)), sides, strict=True):
            shown = side.shown
            with place:
                others = [each.products for each in side.alike if each is not shown]
                half = len(sides) > 1
                figure = surface_of_positions(
                    shown.products, shown.unit, colours, others, half=half
                )
                if half:
                    side.draw_heading(side.pairs_title)
                count = len(shown.products)
                table: Table = {
                    "query position": [query for query in range(count) for _ in range(count)],
                    "key position": [*range(count)] * count,
                    shown.unit: shown.products.flatten().tolist(),
                }
                plotly_chart(
                    figure, key=f"{side.key}positions_3d", title=side.pairs_title, table=table
                )
                st.caption(f"{CAPTIONS[shown.unit]} The first {count} positions are shown.")
