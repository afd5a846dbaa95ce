"""One theme: the colours are even, readable, and the same on the page, in charts and views."""

import json
import tomllib
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from explorer.charts import theme
from explorer.charts.vega_lite import MIDDLE
from tests.source import ROOT

CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def light(colour: str) -> np.ndarray:
    """The three sRGB channels of `#rrggbb` as light."""
    channels = np.array(to_rgb(colour))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
EYES = {
    "usual": np.eye(3),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What light becomes in them (Machado, Oliveira, Fernandes 2009, severity 1)."""
JUST_NOTICED = 0.02
"""A distance in OKLab."""


def seen(colour: str, eye: str = "usual") -> np.ndarray:
    """Where it is in OKLab (Ottosson, 2020) for this eye."""
    cones = np.array(TO_CONES) @ (np.array(EYES[eye]) @ light(colour)).clip(0, 1)
    return np.array(TO_OKLAB) @ np.cbrt(cones)


def contrast(one: str, other: str) -> float:
    """As the accessibility guidelines measure it."""
    low, high = sorted(float(light(each) @ (0.2126, 0.7152, 0.0722)) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_page_and_the_views_have_these_colours() -> None:
    sent = json.loads(theme.palettes_as_json())
    for mode in theme.PALETTES:
        page, colours = CONFIG["theme"][mode], theme.palette(mode)
        assert page["backgroundColor"] == colours.background
        assert page["secondaryBackgroundColor"] == colours.surface
        assert (page["textColor"], page["borderColor"]) == (colours.text, colours.border)
        assert page["chartCategoricalColors"] == list(colours.series)
        for name in ("sequential", "diverging"):
            stops = list(getattr(colours, name))
            ten = [stops[round(step * (len(stops) - 1) / 9)] for step in range(10)]
            assert (sent[mode][name], page[f"chart{name.title()}Colors"]) == (stops, ten)
        assert len(sent[mode]["diverging"]) % 2 == 1, "zero is in the middle"
    assert theme.palette(None) is theme.palette("sepia") is theme.LIGHT


def test_equal_steps_look_equal() -> None:
    for mode, ramp in product(theme.PALETTES, ("sequential", "negative", "positive")):
        stops = getattr(theme.palette(mode), ramp)
        assert stops[0] == theme.palette(mode).background
        lightness = [float(seen(stop)[0]) for stop in stops]
        steps = [after - before for before, after in pairwise(lightness)]
        assert max(steps) - min(steps) < 0.02, (mode, ramp)


def test_text_can_be_read_and_series_can_be_seen(subtests: pytest.Subtests) -> None:
    for mode in theme.PALETTES:
        with subtests.test(mode=mode):
            page, colours = CONFIG["theme"][mode], theme.palette(mode)
            for ground in (colours.background, colours.surface):
                assert contrast(colours.text, ground) >= 7
                assert contrast(colours.muted, ground) >= 4.5
                assert contrast(page["linkColor"], ground) >= 4.5
            # No blue can be 4.5 to 1 on both sides of the dark page: it is under white words, and
            # as words it is linkColor (page_top.css); a frame or a dot of it needs 3 to 1.
            assert contrast(page["primaryColor"], "#ffffff") >= 4.5
            assert contrast(page["primaryColor"], colours.background) >= 3
            side = {"primaryColor": page["primaryColor"], **page["sidebar"]}
            assert contrast(side["primaryColor"], side["backgroundColor"]) >= 4.5
            for series in colours.series:
                assert contrast(series, colours.background) >= 3
            assert contrast(MIDDLE, colours.background) >= 4


def test_nothing_leaves_the_machine_and_only_it_may_ask() -> None:
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["server"]["address"] == "localhost"
    assert "fontFaces" not in CONFIG["theme"]
    assert "http" not in json.dumps(CONFIG)


def test_neighbouring_hues_are_told_apart_by_every_eye() -> None:
    """Where more stand beside one another, they differ by a dash or a label as well."""
    for mode, eye in product(theme.PALETTES, EYES):
        palette = theme.palette(mode)
        series = palette.series
        pairs = [*combinations(series[:6], 2), *combinations(series[theme.TOLD_APART :], 2)]
        pairs += [(palette.diverging[0], palette.diverging[-1]), *pairwise(palette.sequential)]
        for one, other in pairs:
            distance = np.linalg.norm(seen(one, eye) - seen(other, eye))
            assert distance > JUST_NOTICED, (mode, eye, one, other)
        for below, above in zip(palette.negative[3:], palette.positive[3:], strict=True):
            assert to_rgb(above)[2] - to_rgb(below)[2] > 0.15, mode
