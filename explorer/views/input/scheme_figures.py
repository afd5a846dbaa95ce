"""The figures of one scheme of positions, alone or next to a second one on the same scales."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from torch import Tensor

from explorer.analysis.position_schemes import SCHEMES, PositionScheme
from explorer.app.controls import expander
from explorer.catalog.opened_model import OpenModel
from explorer.charts.position_curves import head_curves, offset_curve, rotation_clocks, wave_curves
from explorer.charts.surfaces import surface_of_positions
from explorer.charts.theme import palette
from explorer.charts.vega_lite import Spec
from explorer.components.chart import Table, chart, plotly_chart
from explorer.components.matrix import MatrixLabels, matrix
from explorer.text.number_format import three
from explorer.text.token_labels import VisibleText

CURVE_HEIGHT = 260
CLOCKS, CLOCKS_OF_HALF = 6, 3
UP_IS = {
    "sinusoidal": "Up is the sine, right the cosine; every hand turns at its own speed.",
    "rotary": "A hand is a rotated pair of ones; every pair turns at its own speed.",
}


@dataclass(frozen=True)
class SchemeColumn:
    """One scheme on screen, of one stack of a model; None if the weights do not work with it.

    `on_screen` are all schemes on screen, and `key` is the prefix of the keys of the figures. Their
    titles name the model if it is not the chosen one (`is_borrowed`). The rows of the first
    positions have the sentence's `tokens`.
    """

    name: str
    opened: OpenModel
    stack: str
    scheme: PositionScheme | None
    on_screen: tuple[PositionScheme, ...]
    head: int
    key: str
    is_borrowed: bool
    tokens: Sequence[str] = ()

    @property
    def drawn_scheme(self) -> PositionScheme:
        assert self.scheme is not None, "these weights do not work with the scheme"
        return self.scheme

    @property
    def has_figures(self) -> bool:
        return self.scheme is not None and self.name != "none"

    @property
    def has_table(self) -> bool:
        return self.scheme is not None and self.scheme.table is not None

    @property
    def same_unit(self) -> tuple[PositionScheme, ...]:
        """The schemes on screen whose maps have the same unit, and so the same scale."""
        unit = self.drawn_scheme.unit
        return tuple(
            scheme for scheme in self.on_screen if scheme.name != "none" and scheme.unit == unit
        )

    def draw_table(self) -> None:
        """Positions down, dimensions across."""
        tables = [scheme.table for scheme in self.on_screen if scheme.table is not None]
        assert self.drawn_scheme.table is not None, "only a scheme with a table has this figure"
        draw_positions(
            self.drawn_scheme.table,
            "position",
            "dimension",
            key=f"{self.key}positions_table",
            title=self._title(self.drawn_scheme.title),
            unit="value",
            tokens=self.tokens,
            top=max(float(values.abs().max()) for values in tables) or None,
            neighbours=[
                MatrixLabels(rows, _places(values.shape[1]), "position", "dimension")
                for values in tables
                for rows in [_places(len(values), self.tokens)]
            ],
        )

    def draw_waves(self, pair: int) -> None:
        """The values of two dimensions at every position."""
        scheme = self.drawn_scheme
        spec = wave_curves(scheme.wave(pair), list(self._wave_values(pair)))
        self._draw_chart(f"pair {pair} of dimensions", spec, "waves", height=CURVE_HEIGHT)
        if scheme.wavelengths:
            st.caption(f"One period takes {three(scheme.wavelengths[pair])} positions.")

    def _wave_values(self, pair: int) -> Iterator[float]:
        """Those of all schemes on screen, for a common scale."""
        for scheme in self.on_screen:
            if scheme.table is not None:
                yield from scheme.table[:, list(scheme.pairs[pair])].flatten().tolist()

    @property
    def pairs_title(self) -> str:
        """The title of the map over every two positions."""
        biases = {"bias": f"bias of head {self.head}", "bucket": "bucket"}
        if self.drawn_scheme.unit in biases:
            return f"{biases[self.drawn_scheme.unit]}, query against key"
        return f"{_unit_name(self.drawn_scheme.unit)} of two positions"

    def draw_pairs(self) -> None:
        """The map over every two positions: queries or positions down, keys or positions across."""
        own = self.drawn_scheme
        draw_positions(
            own.products,
            *(("position", "position") if self.has_table else ("query", "key")),
            key=f"{self.key}products",
            title=self._title(self.pairs_title),
            unit=own.unit,
            tokens=self.tokens,
            top=max(float(scheme.products.abs().max()) for scheme in self.same_unit) or None,
        )

    def draw_by_distance(self, height: int | str = CURVE_HEIGHT) -> None:
        """The same values by distance, and whether they depend on the distance alone."""
        own = self.drawn_scheme
        if not self.has_table:
            title = f"{'bias of every head' if own.unit == 'bias' else 'bucket'} by distance"
            values = [value for scheme in self.same_unit for _, _, value in scheme.by_head]
            spec = head_curves(own.by_head, own.unit, f"head {self.head}", values)
            self._draw_chart(title, spec, "by_head", height=height)
            if own.unit == "bias":
                st.caption(
                    f"The map and the thick line show the biases of head {self.head}, chosen above."
                )
            return
        unit = _unit_name(own.unit)
        rows = own.against_offset()
        values = [
            value
            for scheme in self.same_unit
            for row in scheme.against_offset()
            for value in row[1:]
        ]
        spec = offset_curve(rows, own.unit, values)
        self._draw_chart(f"{unit} by distance", spec, "by_offset", height=height)
        st.caption(
            f"The {unit} follows from the distance alone."
            if own.knows_distance
            else f"Two pairs at the same distance differ by up to {three(own.spread)}."
        )

    def draw_hands(self, place: int) -> None:
        """A few pairs of dimensions as clock hands, the fastest first."""
        scheme = self.drawn_scheme
        count = CLOCKS if len(self.on_screen) == 1 else CLOCKS_OF_HALF
        last = len(scheme.pairs) - 1
        some = sorted({round(step * last / (count - 1)) for step in range(count)})
        hands = [
            (f"pair {pair}", [tuple(tip) for tip in scheme.hand(pair).tolist()]) for pair in some
        ]
        title = f"clock hands of {len(some)} pairs at position {place}"
        self._draw_chart(title, rotation_clocks(hands, place), "clocks", width="content")
        text = UP_IS.get(scheme.name, "Up is the first of two neighbouring dimensions.")
        st.caption(
            f"{len(some)} of {len(scheme.pairs)} pairs, evenly spread. {text} Dots are earlier "
            "positions; the radius of a clock is its longest hand."
        )

    def _title(self, what: str) -> str:
        of = f" ({self.opened.name})" if self.is_borrowed else ""
        return f"{SCHEMES[self.drawn_scheme.name]}{of}: {what}"

    def draw_heading(self, what: str) -> None:
        st.markdown(f"**{SCHEMES[self.drawn_scheme.name]}: {what}**")

    def _draw_chart(self, what: str, spec: Spec, key: str, **size: Any) -> None:
        self.draw_heading(what)
        chart(spec, key=f"{self.key}{key}", title=self._title(what), **size)


def draw_positions(values: Tensor, row: str, across: str, *, unit: str, **how: Any) -> None:
    """Positions or queries down, with their `tokens`; dimensions, positions or keys across."""
    matrix(
        values,
        _places(len(values), how.pop("tokens", ())),
        _places(values.shape[1]),
        scale="sequential" if unit == "bucket" else "diverging",
        row_name=row,
        column_name=across,
        sentence=f"{row.capitalize()} {{row}}, {across} {{column}}: {{value}}",
        unit=unit,
        **how,
    )


def _places(count: int, tokens: Sequence[str] = ()) -> list[VisibleText]:
    tokens = [*tokens, *[""] * count]
    return [VisibleText(f"{tokens[place]} {place}".strip()) for place in range(count)]


def _unit_name(unit: str) -> str:
    return "dot product" if unit == "product" else unit


CAPTIONS = {
    "product": "The dot product of the vectors of two positions, for every pair of them.",
    "cosine similarity": "The cosine similarity of the vectors of two positions, for every pair.",
    "bias": "What the chosen head adds to the score of a key, for every pair of positions.",
    "bucket": "The bucket of every pair of positions: a plateau is one bucket.",
}


def draw_position_surface(columns: Sequence[SchemeColumn]) -> None:
    """The map in three dimensions, in an expander; nothing is sent while it is closed."""
    with expander("position_surface") as panel:
        if not panel.open:
            return
        colours = palette(st.context.theme.type)
        for column in columns:
            own = column.drawn_scheme
            others = [scheme.products for scheme in column.same_unit if scheme is not own]
            figure = surface_of_positions(own.products, own.unit, colours, others)
            if others:
                column.draw_heading(column.pairs_title)
            count = len(own.products)
            table: Table = {
                "query position": [query for query in range(count) for _ in range(count)],
                "key position": [*range(count)] * count,
                own.unit: own.products.flatten().tolist(),
            }
            title = column.pairs_title
            plotly_chart(figure, key=f"{column.key}positions_3d", title=title, table=table)
            st.caption(f"{CAPTIONS[own.unit]} The first {count} positions are shown.")
