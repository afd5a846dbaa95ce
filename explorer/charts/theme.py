"""The colours of every figure, light and dark as a pair; the views' JavaScript gets the same.

Zero has the page's background, so nothing looks like nothing. Weights run from
there in steps that look equal; differences run both ways from there, orange below
and blue above, which colour-blind readers tell apart. Series take Okabe and Ito's
hues, darkened or lightened where the originals would vanish on the page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from explorer.charts.oklab import ramp

MODES = ("light", "dark")


@dataclass(frozen=True)
class Palette:
    """What one mode is painted with."""

    background: str
    surface: str
    text: str
    muted: str
    border: str
    sequential: tuple[str, ...]
    negative: tuple[str, ...]
    positive: tuple[str, ...]
    series: tuple[str, ...]

    @property
    def diverging(self) -> tuple[str, ...]:
        """From the most negative through zero to the most positive."""
        return (*reversed(self.negative), *self.positive[1:])


LIGHT = Palette(
    background="#fdfdfc",
    surface="#f4f4f1",
    text="#1c1e22",
    muted="#62666d",
    border="#dcdcd7",
    sequential=ramp("#fdfdfc", 0.28, (210, 275), 0.15),
    negative=ramp("#fdfdfc", 0.36, (75, 35), 0.16),
    positive=ramp("#fdfdfc", 0.36, (220, 265), 0.15),
    series=("#0072b2", "#d55e00", "#008a66", "#b8548a", "#b47700", "#2f93cf", "#8a7d00", "#5c6066"),
)

DARK = Palette(
    background="#111317",
    surface="#1b1e24",
    text="#e8e8e4",
    muted="#9a9ea6",
    border="#33373f",
    sequential=ramp("#111317", 0.94, (275, 185), 0.125),
    negative=ramp("#111317", 0.86, (30, 75), 0.14),
    positive=ramp("#111317", 0.86, (265, 215), 0.13),
    series=("#56b4e9", "#f0803c", "#2fc49a", "#df92bc", "#e69f00", "#4a8fd6", "#e0d54a", "#a5a9b0"),
)

PALETTES = {"light": LIGHT, "dark": DARK}


def palette(mode: str | None) -> Palette:
    """The palette of a mode; light where the mode is not known yet."""
    return PALETTES.get(mode or "light", LIGHT)


def ten(stops: tuple[str, ...]) -> list[str]:
    """Ten of the stops, evenly spread: Streamlit's theme takes exactly ten."""
    last = len(stops) - 1
    return [stops[round(step * last / 9)] for step in range(10)]


def as_json() -> str:
    """Both palettes as the views' JavaScript reads them."""
    return json.dumps(
        {
            mode: {
                "sequential": one.sequential,
                "diverging": one.diverging,
                "series": one.series,
                "muted": one.muted,
            }
            for mode, one in PALETTES.items()
        },
        separators=(",", ":"),
    )
