"""The colours of every figure, light and dark; the views' JavaScript has the same.

Zero has the page's background. The other colours are those of published maps, at even steps of
lightness (OKLab) so that equal steps look equal: `ice` (cmocean) for weights, and for differences
red below and blue above zero, `RdBu` (ColorBrewer) on the light page and `berlin` (Crameri) on the
dark one. Colour-blind readers can tell the two sides apart. Series take Okabe and Ito's hues,
darkened or lightened where the originals would be too faint on the page.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """The colours of one mode; each ramp starts with the page's background, which is zero."""

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


def _stops(colours: str) -> tuple[str, ...]:
    return tuple(colours.split())


LIGHT = Palette(
    background="#fdfdfc",
    surface="#f4f4f1",
    text="#1c1e22",
    muted="#62666d",
    border="#dcdcd7",
    sequential=_stops(
        "#fdfdfc #ceecef #a7d8df #83c3d2 #66acc9 #5193c0 #4378b6 #3e5ea7 #3c468c #33336a #252349"
    ),
    negative=_stops(
        "#fdfdfc #fce2d2 #f9c6ac #f5aa89 #eb9172 #df765e #d25849 #c2383a #b1182b #930e26 #760521"
    ),
    positive=_stops(
        "#fdfdfc #ddebf2 #b8d8e9 #96c7df #78b4d5 #59a1ca #3e8cbf #2c75b4 #1e61a5 #144e8a #0c3d73"
    ),
    series=("#0072b2", "#d55e00", "#008a66", "#b8548a", "#4a4600", "#5c6066", "#b47700", "#2f93cf"),
)

DARK = Palette(
    background="#111317",
    surface="#1b1e24",
    text="#e8e8e4",
    muted="#9a9ea6",
    border="#33373f",
    sequential=_stops(
        "#111317 #202041 #303063 #3b4387 #3e5ba6 #4278b6 #5193c0 #68aec9 #88c6d4 #afdce2 #d7f1f3"
    ),
    negative=_stops(
        "#111317 #3b1100 #521804 #68240f #7d341e #904430 #a25544 #b46658 #c6776c #d98982 #ec9b97"
    ),
    positive=_stops(
        "#111317 #11232c #143240 #1a4256 #20546c #276481 #2e7699 #3787af #489aca #67a8e3 #9ab0fd"
    ),
    series=("#56b4e9", "#f0803c", "#2fc49a", "#df92bc", "#e0d54a", "#a5a9b0", "#e69f00", "#4a8fd6"),
)

TOLD_APART = 4
"""Everybody can tell so many successive hues apart, and the first six; more need a dash as well."""
PALETTES = {"light": LIGHT, "dark": DARK}


def palette(mode: str | None) -> Palette:
    """The palette of a mode; the light one while the mode is unknown."""
    return PALETTES.get(mode or "light", LIGHT)


def palettes_as_json() -> str:
    """Both palettes as the views' JavaScript reads them."""
    return json.dumps(
        {
            mode: {
                "sequential": colours.sequential,
                "diverging": colours.diverging,
                "series": colours.series,
                "muted": colours.muted,
            }
            for mode, colours in PALETTES.items()
        },
        separators=(",", ":"),
    )
