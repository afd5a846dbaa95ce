"""Edits that do not fit a model and a text, or not together: which they are, and why."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from explorer import library, rereading
from explorer.edits import (
    AblateAttention,
    AblateHead,
    CutEdge,
    Edit,
    HideKey,
    Patch,
    PresetMask,
    ReplaceToken,
)
from explorer.kept import forget
from explorer.library import Opened
from explorer.reading import Reading, read
from explorer.rereading import MOST_TEXTS, edited, misfit
from models import interventions as core

D, E, C = "decoder.self_attn", "encoder.self_attn", "decoder.cross_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def opened(name: str) -> tuple[Opened, Reading]:
    found = library.open_model(name)
    return found, read(found, found.example)


MISFITS: dict[str, Edit] = {
    "no such attention": AblateHead(E, 0, 0),
    "no layer 2 here: there are 2": AblateAttention(D, 2),
    "no head 4 here: there are 4": AblateHead(D, 0, 4),
    "no query 99": CutEdge(D, 0, 0, 99, 0),
    "no key 99": HideKey(D, None, 99),
    "no token 99 here": ReplaceToken(D, 99, 5),
    "no token 9,999": ReplaceToken(D, 1, 9_999),
    "“dog” was chosen for another model": ReplaceToken(D, 1, 5, "dog"),
    "size of at least 1": PresetMask(D, 0, "window", 0),
    "only texts of the same length": Patch(D, 0, 0, 1, "the cat and the hat"),
    "have the same positions": Patch(D, 0, 0, 1, "the"),
    "type a sentence": Patch(D, 0, 0, 1, " "),
}


def test_what_does_not_fit_is_set_aside_with_its_reason(subtests: pytest.Subtests) -> None:
    for why, edit in MISFITS.items():
        with subtests.test(why=why):
            found, reading = opened("letters")
            good = AblateHead(D, 0, 0)
            again = edited(found, reading, (edit, good))
            assert again.made == (good,)
            assert list(again.set_aside) == [0]
            assert why in again.set_aside[0]
            assert misfit(found, reading, (), edit) == again.set_aside[0]
            assert misfit(found, reading, (), good) == ""
            alone = edited(found, reading, (good,)).reading
            torch.testing.assert_close(again.reading.trace.output, alone.trace.output)


def test_a_history_patches_from_a_few_texts_only() -> None:
    found, reading = opened("letters")
    n = len(reading.target)
    pairs = map(" ".join, product(("the", "cat", "hat", "and"), repeat=2))
    texts = [text for text in pairs if len(read(found, text).target) == n][:6]
    patches = tuple(Patch(D, 0, head, 1, text) for text in texts for head in (0, 1))
    again = edited(found, reading, (*patches, AblateHead(D, 0, 0)))
    assert list(again.set_aside) == list(range(2 * MOST_TEXTS, len(patches)))
    assert all("At most 4 texts are patched from" in each for each in again.set_aside.values())
    for patch, fits in ((patches[-1], False), (patches[0], True)):
        assert (misfit(found, reading, patches[: 2 * MOST_TEXTS], patch) == "") == fits
    assert again.made == (*patches[: 2 * MOST_TEXTS], AblateHead(D, 0, 0))


def test_the_weights_of_all_layers_with_cut_edges_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, reading = opened("letters")
    layer = reading.part(D).heads * len(reading.target) ** 2
    monkeypatch.setattr(rereading, "MOST_WEIGHTS", layer)
    fits = (CutEdge(D, 0, 0, 2, 1), CutEdge(D, 0, 1, 2, 0))
    again = edited(found, reading, (*fits, CutEdge(D, 1, 0, 2, 1)))
    assert again.made == fits
    assert list(again.set_aside) == [2]
    assert misfit(found, reading, fits, fits[0]) == ""
    assert misfit(found, reading, fits, CutEdge(D, 1, 0, 2, 1)) == again.set_aside[2]
    assert "all weights of every layer with a cut edge" in again.set_aside[2]


def test_what_is_set_aside_takes_nothing_of_what_may_be_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, reading = opened("letters")
    layer = reading.part(D).heads * len(reading.target) ** 2
    monkeypatch.setattr(rereading, "MOST_WEIGHTS", layer)
    fits, too_much, strange = CutEdge(D, 0, 0, 2, 1), CutEdge(D, 1, 0, 2, 1), CutEdge(C, 0, 0, 2, 1)
    nowhere = CutEdge(D, 1, 0, 99, 0)
    assert misfit(found, reading, (nowhere, strange, fits, too_much), CutEdge(D, 0, 1, 2, 0)) == ""
    again = edited(found, reading, (nowhere, strange, fits, too_much))
    assert again.made == (fits,)
    assert list(again.set_aside) == [0, 1, 3]


def test_edits_that_fit_one_by_one_and_not_together_are_all_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*given: Any) -> Reading:
        raise core.EditError("Not together.")

    monkeypatch.setattr(rereading, "reread", refused)
    found, reading = opened("letters")
    again = edited(found, reading, (AblateHead(D, 0, 3), AblateHead(D, 1, 3)))
    forget(found)
    assert again.reading is reading
    assert again.made == ()
    assert again.set_aside == {0: "Not together.", 1: "Not together."}
