"""A text read again with the reader's edits: each is the edit of the core that it names."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import edits_in_core, library, rereading
from explorer.analysis import changes
from explorer.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceToken,
)
from explorer.edits_in_core import head_out, preset_mask
from explorer.edits_in_words import PRESET_WORDS, words
from explorer.library import Opened
from explorer.parts import site
from explorer.passing import ids_of
from explorer.reading import Reading, read, reread
from explorer.rereading import edited
from explorer.text import byte_tokenizer
from explorer.text.special import DECODER
from models import interventions as core
from models import trace
from models.masking import causal_mask
from tests.shelf import NAMES, put

close = torch.testing.assert_close
D, E, C = "decoder.self_attn", "encoder.self_attn", "decoder.cross_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def opened(name: str) -> tuple[Opened, Reading]:
    found = library.open_model(name)
    return found, read(found, found.example)


def passed(found: Opened, reading: Reading, *edits: core.Edit) -> torch.Tensor:
    """All logits of a pass of the core with these edits."""
    given = [ids_of([tokens]) for tokens in (reading.source, reading.target) if tokens]
    return trace(found.model, *given, sites=("logits",), edits=edits).output[0]


def logits(found: Opened, reading: Reading) -> torch.Tensor:
    """The same, read position by position as the page does."""
    if not changes.has_words(found.config):
        return changes.logits(reading, 0)
    count = len(changes.tokens_read(reading))
    return torch.stack([changes.logits(reading, place) for place in range(count)])


SAME: dict[str, tuple[Edit, core.Edit]] = {
    "head": (AblateHead(D, 1, 2), core.Scale("decoder.1.self_attn.head_out", head=2)),
    "head to mean": (AblateHead(D, 0, 1, "mean"), core.Mean("decoder.0.self_attn.head_out", 1)),
    "attention": (AblateAttention(D, 0), core.Scale("decoder.0.self_attn.out")),
    "attention to mean": (AblateAttention(D, 1, "mean"), core.Mean("decoder.1.self_attn.out")),
    "feed-forward": (AblateMlp(D, 1), core.Scale("decoder.1.mlp.out")),
    "edge": (
        CutEdge(D, 0, 3, 2, 1),
        core.SetCell("decoder.0.self_attn.weights", 2, 1, head=3),
    ),
    "edge of every head": (
        CutEdge(D, 0, None, 2, 1, "mean"),
        core.SetCell("decoder.0.self_attn.weights", 2, 1, None),
    ),
    "cell": (MaskCell(D, None, 1, 2, True), core.SetCell("*.self_attn.mask", 1, 2, True)),
    "key": (HideKey(D, 1, 2), core.WithoutKey("decoder.1.self_attn.weights", 2)),
    "key of every layer": (HideKey(D, None, 2), core.WithoutKey("*.self_attn.weights", 2)),
}


def test_an_edit_is_made_in_the_pass(subtests: pytest.Subtests) -> None:
    for edit, of_core in SAME.values():
        with subtests.test(edit=edit):
            found, reading = opened("letters")
            again = edited(found, reading, (edit,))
            assert again.made == (edit,)
            assert not again.set_aside
            close(
                logits(found, again.reading), passed(found, reading, of_core), atol=1e-5, rtol=1e-5
            )
            assert not torch.allclose(
                logits(found, again.reading), logits(found, reading), atol=1e-4
            )
            assert words(found, reading, edit)
            assert edited(found, reading, (edit,)) is again, "made once"


def test_without_edits_everything_is_read_as_it_came_out(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name=name):
            found, reading = opened(name)
            assert edited(found, reading, ()).reading is reading
            close(logits(found, reading), passed(found, reading), atol=1e-5, rtol=1e-5)
            if changes.has_words(found.config):
                assert changes.over_text(reading, reading).kl.abs().max() == 0
                assert torch.is_grad_enabled(), "whoever trains in this process goes on"


def test_every_kind_of_attention_is_changed(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name=name):
            found, reading = opened(name)
            for part in reading.parts:
                edits = (AblateHead(part.name, 0, 0), PresetMask(part.name, None, "none"))
                again = edited(found, reading, (*edits, HideKey(part.name, 0, 0)))
                assert not again.set_aside
                assert (again.reading.weights(part.name, 0, 1)[:, 0] == 0).all()


def test_a_replaced_token_is_the_text_with_that_token() -> None:
    found, reading = opened("reverse")
    typed = read(found, found.example.replace("4", "7"))
    place = next(i for i, token in enumerate(reading.source) if token.label == "4")
    again = edited(found, reading, (ReplaceToken(E, place, typed.source[place].id),)).reading
    close(logits(found, again), logits(found, typed))
    assert [token.label for token in again.source] == [token.label for token in typed.source]


def test_presets_are_what_they_say() -> None:
    _, decoder = opened("letters")
    _, encoder = opened("reverse")
    n = len(decoder.target)
    causal = causal_mask(n)[0, 0]
    assert preset_mask(decoder, PresetMask(D, 0, "none")).all()
    assert torch.equal(preset_mask(decoder, PresetMask(D, 0, "causal")), causal)
    assert torch.equal(preset_mask(decoder, PresetMask(D, 0, "window", 1)), torch.eye(n).bool())
    assert torch.equal(preset_mask(decoder, PresetMask(D, 0, "window", n)), causal)
    assert torch.equal(preset_mask(decoder, PresetMask(D, 0, "blocks", n)), causal)
    prefix = preset_mask(decoder, PresetMask(D, 0, "prefix", 2))
    assert prefix[:, :2].all()
    assert torch.equal(prefix[:, 2:], causal[:, 2:])
    filler = preset_mask(decoder, PresetMask(D, 0, "padding", 2))
    assert not filler[:, -2:].any()
    assert torch.equal(filler[:, :-2], causal[:, :-2])
    near = preset_mask(encoder, PresetMask(E, 0, "window", 2))
    assert torch.equal(near, near.T), "an encoder looks both ways"
    assert near.sum() == 3 * len(near) - 2
    filled = preset_mask(encoder, PresetMask(E, 0, "padding", 1))
    assert filled[:, :-1].all()
    assert not filled[:, -1].any()
    assert not preset_mask(encoder, PresetMask(E, 0, "padding", 99)).any()


SAYS: dict[str, Callable[[int, int, int], bool]] = {
    "everybody may look at everybody": lambda query, key, last: True,
    "nobody may look ahead": lambda query, key, last: key <= query,
    "the last 2 are filler, and nobody looks at them": lambda query, key, last: key <= last - 2,
    "only at tokens less than 2 away": lambda query, key, last: abs(query - key) < 2,
    "all may look at the first 2, nobody else ahead": lambda query, key, last: (
        key < 2 or key <= query
    ),
    "only inside blocks of 2": lambda query, key, last: query // 2 == key // 2,
}
"""What a reader takes each sentence for, of a query, a key and the last token."""


@pytest.mark.parametrize("preset", PRESET_WORDS)
@pytest.mark.parametrize(("name", "part"), [("letters", D), ("reverse", E)])
def test_the_words_of_a_preset_say_its_mask(name: str, part: str, preset: str) -> None:
    found, reading = opened(name)
    edit = PresetMask(part, 0, preset, 2)
    said = words(found, reading, edit).partition("mask: ")[2]
    n = len(reading.rows(part))
    stays_causal = part == D and preset in ("padding", "window", "blocks")
    meant = [
        [SAYS[said](query, key, n - 1) and not (stays_causal and key > query) for key in range(n)]
        for query in range(n)
    ]
    assert preset_mask(reading, edit).tolist() == meant


def test_patching_from_the_same_text_changes_nothing_and_from_another_something() -> None:
    found, reading = opened("letters")
    text, n = found.example, len(reading.target)
    other = next(
        each
        for each in ("the hat", "cat the", "hat the")
        if each != text and len(read(found, each).target) == n
    )
    for head in (None, 1):
        same = edited(found, reading, (Patch(D, 0, head, n - 1, text),))
        assert not same.set_aside
        close(logits(found, same.reading), logits(found, reading), atol=1e-5, rtol=1e-5)
        patched = edited(found, reading, (Patch(D, 0, head, n - 1, other),)).reading
        close(logits(found, patched)[:-1], logits(found, reading)[:-1], atol=1e-5, rtol=1e-5)
    whole = tuple(Patch(D, 1, None, place, other) for place in range(n))
    carried = edited(found, reading, whole).reading
    close(logits(found, carried), logits(found, read(found, other)), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [*NAMES, "grouped"])
def test_what_a_head_gives_is_what_the_pass_gave(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "grouped":
        monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
        letters = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
        put(tmp_path, name, letters, "the cat", kind="decoder", n_heads=4, n_kv_heads=2)
    found, reading = opened(name)
    given = [ids_of([tokens]) for tokens in (reading.source, reading.target) if tokens]
    whole = trace(found.model, *given, sites=("*.head_out",))
    for part in reading.parts:
        for layer, head in product(range(part.layers), range(part.heads)):
            gave = whole[f"{site(part.name, layer)}.head_out"][0, head]
            close(head_out(reading, part.name, layer, head), gave, atol=1e-5, rtol=1e-5)
            close(head_out(reading, part.name, layer, head, 1), gave[1], atol=1e-5, rtol=1e-5)


def test_patching_into_a_model_that_writes_keeps_its_answer() -> None:
    found, reading = opened("translation")
    patch = Patch(C, 0, 0, 1, "a white dog eats")
    again = edited(found, reading, (patch,))
    assert not again.set_aside
    assert again.reading.target == reading.target


def test_a_text_is_passed_once_for_all_patches_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found, reading = opened("translation")
    passes: list[object] = []

    def counted(*given: Any) -> Reading:
        passes.append(given)
        return reread(*given)

    monkeypatch.setattr(rereading, "reread", counted)
    monkeypatch.setattr(edits_in_core, "reread", counted)
    text = "a black cat runs"
    again = edited(found, reading, tuple(Patch(C, 0, head, 1, text) for head in (0, 1)))
    assert not again.set_aside
    assert len(passes) == 2, "the other text, and ours with the patches"


def test_a_query_that_may_look_nowhere_gets_zeros() -> None:
    found, reading = opened("letters")
    blind = edited(found, reading, (MaskCell(D, None, 0, 0, False),)).reading
    assert not blind.mask(D, 0)[0].any()
    assert (blind.weights(D, 0, 0)[0] == 0).all()
    assert logits(found, blind).isfinite().all()
