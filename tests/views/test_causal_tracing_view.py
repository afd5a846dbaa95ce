"""Causal tracing on the Circuits page: the grid, its sentence, what a click chooses."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.causal_tracing import ATTENTION, RESIDUAL, TracedGrid, Tracing
from explorer.catalog.opened_model import opened_from
from explorer.catalog.shipped import SHIPPED
from explorer.circuits.measure import contrast_of
from explorer.circuits.text_pairs import Question, TextPair, question_of
from explorer.components import wire
from explorer.text.number_format import three
from explorer.views.circuits import tracing_view
from explorer.views.shared import long_work
from tests import apps
from tests.views.drawing import pasted, press, run, sent

CLEAN, SWAPPED = "abcdeabcdeab", "abcdeadceeab"
ASKED = {"model": "induction", "text": CLEAN, "corrupted": SWAPPED}
VIEW = {**ASKED, "circuit_view": "Causal tracing"}


def drawn(at: AppTest, key: str = "traced_values") -> wire.Array:
    """The numbers that a view was sent."""
    header, planes = sent(at, key)
    if "exact" in planes:
        return np.frombuffer(planes["exact"], "<f4").reshape(header["shape"])
    return wire.decode(wire.codes_of(planes["values"], header["shape"]), header)


def question(*more: TextPair) -> Question:
    opened = opened_from(SHIPPED / "induction", "induction")
    return question_of(opened, [TextPair(CLEAN, SWAPPED), *more], "Logit difference")


def grid(site: str, denoising: bool) -> TracedGrid:
    opened = opened_from(SHIPPED / "induction", "induction")
    tracing = Tracing(contrast_of(opened, question().pairs[0]), site, denoising)
    return tracing.grid([*tracing.columns()])


def test_the_grid_begins_where_the_texts_differ() -> None:
    at = apps.page("experiments/circuits", **VIEW)
    header, _ = sent(at, "traced_values")
    pair = question().pairs[0]
    first = pair.differing[0]
    assert len(header["rows"]) == len(pair.clean) - first
    assert header["rows"][0] == f"b / d ({first})"
    found = grid(RESIDUAL, True)
    np.testing.assert_allclose(drawn(at), found.share.T[first:], atol=2e-3)
    said = apps.said(at)
    assert f"The first {first} tokens are the same in both texts" in said
    assert f"{three(found.corrupted)} logits (corrupted)" in said


def test_what_is_patched_and_in_which_direction() -> None:
    asked = {"patched_value": "Attention output", "patch_way": "Noising", "patch_number": "Metric"}
    at = apps.page("experiments/circuits", **VIEW, **asked)
    found = grid(ATTENTION, False)
    values = drawn(at)
    np.testing.assert_allclose(values, found.change.T[-len(values) :], atol=2e-2)
    assert "The clean text is passed" in apps.said(at)
    assert "is lost" in apps.said(at)


def test_the_chosen_layer_and_token_are_said() -> None:
    at = apps.page("experiments/circuits", **VIEW, layer="0", patched_at="7 · b / d")
    found = grid(RESIDUAL, True)
    said = f"Chosen: layer 0, “b / d” (7): {three(float(found.share[0, 7]))} of it comes back"
    assert said in apps.said(at)


def test_too_many_passes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_view, "MOST", 1)
    at = apps.page("experiments/circuits", **VIEW)
    assert tracing_view.TOO_LONG in apps.said(at)
    assert "traced_values" not in apps.views(at)


def test_a_long_one_waits_for_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "QUICK", 1)
    for view, key, name in (
        ("Causal tracing", "traced_values", "tracing"),
        ("Path patching", "path_ends", "path_patching"),
    ):
        at = apps.page("experiments/circuits", **ASKED, circuit_view=view)
        assert key not in apps.views(at)
        press(at, f"begin_{name}")
        assert key in apps.views(at)


def test_pairs_of_one_length_are_averaged_and_of_others_one_is_shown() -> None:
    same = question(TextPair("edcbaedcbaed", "ebcdaebcdaed"))
    assert len(tracing_view.alike(same, same.pairs[1])) == 2
    longer = question(TextPair(f"{CLEAN}c", f"{SWAPPED}c"))
    assert tracing_view.alike(longer, longer.pairs[1]) == longer.pairs[1:]
    of_template = {"pair_source": "Induction", "pair_count": "3"}
    said = apps.said(apps.page("experiments/circuits", **VIEW, **of_template))
    assert "The pairs have different lengths, so this is the pair on screen alone." in said


@pytest.mark.parametrize("way", ["Denoising", "Noising"])
def test_its_lines_make_its_numbers(way: str) -> None:
    at = apps.page("experiments/circuits", **VIEW, patch_way=way)
    made, _ = run(pasted(at), SHIPPED)
    values = drawn(at)
    np.testing.assert_allclose(values, made["share"][-len(values) :], atol=2e-3)
