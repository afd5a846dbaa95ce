"""One theme: the colours are even, readable, and the same on the page, in charts and views."""

from __future__ import annotations

import json
import tomllib
from itertools import pairwise, product

import pytest

from explorer.charts import theme
from explorer.charts.frame import MIDDLE
from explorer.charts.oklab import channels, from_lch, linear, to_lch
from tests.source import ROOT

CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def contrast(one: str, other: str) -> float:
    """As the accessibility guidelines measure it."""

    def luminance(colour: str) -> float:
        red, green, blue = map(linear, channels(colour))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_page_and_the_views_have_these_colours() -> None:
    sent = json.loads(theme.as_json())
    for mode in theme.MODES:
        page, colours = CONFIG["theme"][mode], theme.palette(mode)
        assert page["backgroundColor"] == colours.background
        assert page["secondaryBackgroundColor"] == colours.surface
        assert page["textColor"] == colours.text
        assert page["borderColor"] == colours.border
        assert page["chartCategoricalColors"] == list(colours.series)
        assert page["chartSequentialColors"] == theme.ten(colours.sequential)
        assert page["chartDivergingColors"] == theme.ten(colours.diverging)
        assert sent[mode]["sequential"] == list(colours.sequential)
        assert len(sent[mode]["diverging"]) % 2 == 1, "zero is in the middle"
    assert theme.palette(None) is theme.palette("sepia") is theme.LIGHT


def test_equal_steps_look_equal() -> None:
    for mode, ramp in product(theme.MODES, ("sequential", "negative", "positive")):
        stops = getattr(theme.palette(mode), ramp)
        assert stops[0] == theme.palette(mode).background
        lightness = [to_lch(stop)[0] for stop in stops]
        steps = [after - before for before, after in pairwise(lightness)]
        assert max(steps) - min(steps) < 0.02, (mode, ramp)


def test_text_can_be_read_and_series_can_be_seen(subtests: pytest.Subtests) -> None:
    for mode in theme.MODES:
        with subtests.test(mode=mode):
            page, colours = CONFIG["theme"][mode], theme.palette(mode)
            for ground in (colours.background, colours.surface):
                assert contrast(colours.text, ground) >= 7
                assert contrast(colours.muted, ground) >= 4.5
                assert contrast(page["linkColor"], ground) >= 4.5
            # The same colour is under white words and in words on the page: no blue can be
            # 4.5 to 1 on both sides of the dark page, so it stands in the middle there.
            least = {"light": 4.5, "dark": 4.1}[mode]
            assert contrast(page["primaryColor"], "#ffffff") >= least
            assert contrast(page["primaryColor"], colours.background) >= least
            side = {"primaryColor": page["primaryColor"], **page["sidebar"]}
            assert contrast(side["primaryColor"], side["backgroundColor"]) >= 4.5
            for series in colours.series:
                assert contrast(series, colours.background) >= 3
            assert contrast(MIDDLE, colours.background) >= 4


def test_blue_tells_the_two_sides_of_zero_apart_for_every_reader() -> None:
    for mode in theme.MODES:
        colours = theme.palette(mode)
        for below, above in zip(colours.negative[3:], colours.positive[3:], strict=True):
            assert channels(above)[2] - channels(below)[2] > 0.15, mode


def test_colours_survive_the_way_to_oklch_and_back() -> None:
    for colour in ("#000000", "#ffffff", "#d55e00", "#1b166c", "#808080"):
        assert from_lch(*to_lch(colour)) == colour


def test_nothing_leaves_the_machine_and_only_it_may_ask() -> None:
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["server"]["address"] == "localhost"
    assert "fontFaces" not in CONFIG["theme"]
    assert "http" not in json.dumps(CONFIG)
