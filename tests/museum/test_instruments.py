"""The instruments: what they hold in memory, what they say of one token, what they read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from explorer import library, passing, reading
from explorer.museum import moving
from explorer.museum.case import Case, case_of
from explorer.museum.instruments import INSTRUMENTS
from explorer.museum.taps import Felt
from explorer.text import byte_tokenizer, word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from models.losses import IGNORE, cross_entropy
from models.mistakes import MISTAKES
from tests.grids import grid
from tests.models.building import shake
from tests.shelf import WORDS, put

KINDS = ("translation", "letters", "reviews", "reverse")


def case(name: str, text: str = "", pair: str = "") -> Case:
    opened = library.open_model(name)
    seen = reading.read(opened, text or opened.example, pair)
    return case_of(opened, seen, (seen.parts[-1].name, 0, 0))


class Largest(TorchDispatchMode):
    """The most numbers that any tensor held which was made meanwhile, masks and indices aside."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
        sizes = [each.numel() for each in tensors if each.is_floating_point()]
        self.numbers = max(self.numbers, *sizes, 0)
        return made


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A decoder with many more words than width, over a long text."""
    letters = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    put(tmp_path, "wide", letters, "the cat", kind="decoder", max_len=400)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    return case("wide", "the cat " * 97)


def test_no_instrument_scores_every_word_at_every_place(
    wide: Case, subtests: pytest.Subtests
) -> None:
    for name in ["Causality check", "Filler", "Loss and gradients", "Shapes"]:
        with subtests.test(name=name):
            places, words = wide.ids.shape[1], wide.opened.config.vocab_size
            heads = wide.opened.config.n_heads
            assert places > 3 * moving.AT_ONCE
            with Largest() as largest:
                INSTRUMENTS[name](wide)
            assert largest.numbers < min(places * words, heads * places * places)


@pytest.mark.parametrize("name", ["A map", "An empty row", "The scale"])
@pytest.mark.usefixtures("small_models")
def test_what_is_kept_is_one_head(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    seen = Case.seen

    def spied(self: Case, *how: Any, **more: Any) -> dict[str, torch.Tensor]:
        found = seen(self, *how, **more)
        kept.extend(found.values())
        return found

    monkeypatch.setattr(Case, "seen", spied)
    INSTRUMENTS[name](case("translation"))
    assert kept
    assert all(each.dim() < 3 for each in kept)
    assert all(each.untyped_storage().nbytes() == each.nbytes for each in kept)


@pytest.mark.usefixtures("small_models")
@pytest.mark.parametrize("name", KINDS)
def test_the_loss_in_parts_is_the_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = case(name)
    monkeypatch.setattr(moving, "AT_ONCE", 2)
    found, felt = INSTRUMENTS["Loss and gradients"](right), Felt()
    assert right.labels is not None
    with torch.enable_grad():
        whole = cross_entropy(right.passed(tap=felt), right.labels)
        grads = torch.autograd.grad(whole, list(felt.leaves.values()))
    assert found.number == pytest.approx(float(whole.detach()), rel=1e-5)
    shown = [float(size.replace(",", "")) for _, size in found.lines]
    assert shown == pytest.approx([float(grad.norm()) for grad in grads], rel=6e-3)


@pytest.mark.usefixtures("small_models")
def test_one_token_has_no_answer_before_it_and_no_loss() -> None:
    both = case("letters", "t")
    alone = replace(both, ids=both.ids[:, :1], labels=torch.full((1, 1), IGNORE))
    causality = INSTRUMENTS["Causality check"](alone)
    assert (causality.number, "one token" in causality.said) == (None, True)
    assert "encoder" not in causality.said
    loss = INSTRUMENTS["Loss and gradients"](alone)
    assert (loss.number, loss.said) == (
        None,
        "nothing comes after this one token, so there is no loss",
    )


def test_a_pair_of_texts_is_read_as_a_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right run is the pass that the pages show, segments and all."""
    words = word_tokenizer(WORDS, CLASSIFIER)
    put(tmp_path, "pairs", words, "not a cat", kind="encoder", head="classifier", n_segments=2)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    opened = library.open_model("pairs")
    shake(opened.model, by=0.4)
    one = reading.read(opened, "the black cat a dog eats")
    tokens = tuple(replace(token, segment=int(i > 3)) for i, token in enumerate(one.tokens))
    shown = passing.one_stack(opened, [tokens], slice(None)).output
    pair = case_of(opened, replace(one, source=tokens), ("encoder.self_attn", 0, 0))
    assert torch.equal(pair.logits(), shown)
    assert not torch.equal(shown, one.trace.output)
    assert INSTRUMENTS["Filler"](pair).number == pytest.approx(0, abs=1e-5)


def test_a_head_that_the_run_has_no_more_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve heads are chosen from, and the decoder with the mistake has eight."""
    words = word_tokenizer(WORDS, SOURCE)
    put(tmp_path, "twelve", words, "a cat", kind="encoder-decoder", d_model=48, n_heads=12)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    for part in ("decoder.self_attn", "decoder.cross_attn"):
        right = replace(case("twelve"), look=(part, 0, 11))
        wrong = right.of(MISTAKES["fixed-heads"].make(right.model))
        found = {name: instrument(wrong) for name, instrument in INSTRUMENTS.items()}
        assert (found["A map"].number, found["A map"].picture) == (None, None)
        assert "this run has no head 11" in found["A map"].said
        assert INSTRUMENTS["A map"](right).picture is not None
    assert found["Filler"].picture is None
    last = replace(wrong, look=("decoder.cross_attn", 0, 7))
    assert INSTRUMENTS["A map"](last).picture is not None


def test_a_decoder_without_a_head_has_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    put(tmp_path, "bare", letters, "the cat", kind="decoder", head="none")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    bare = case("bare")
    assert bare.labels is None
    found = {name: instrument(bare) for name, instrument in INSTRUMENTS.items()}
    assert found["Loss and gradients"].number is None
    assert "no head" in found["Loss and gradients"].said


def test_a_decoder_that_classifies_by_its_last_token_looks_back_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its class comes from the last token and moves with it; what stands before does not."""
    letters = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    put(tmp_path, "last", letters, "a cat", kind="decoder", head="classifier", pooling="last")
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    right = case("last")
    shake(right.model, by=0.4)
    other = moving.other_tokens(right, right.ids, slice(-1, None))
    assert moving.moved_by(right, other) > 0.01
    wrong = right.of(MISTAKES["dropped-weights"].make(right.model))
    found = INSTRUMENTS["Causality check"](right)
    assert found.number == pytest.approx(0, abs=1e-5)
    assert "the streams of those before it" in found.said
    assert (INSTRUMENTS["Causality check"](wrong).number or 0) > 0.01


@grid("pad, words", [None, 0, 1], [3, 4, 5, 280])
@pytest.mark.usefixtures("small_models")
def test_another_token_is_another(words: int, pad: int | None) -> None:
    """Nor filler, however few words there are."""
    right = case("letters")
    config = right.opened.config.replace(vocab_size=words, pad_id=pad)
    few = replace(right, opened=replace(right.opened, config=config))
    ids = torch.tensor([[i for i in range(words) if i != pad]])
    others = moving.other_tokens(few, ids, slice(1, None))
    assert others[0, 0] == ids[0, 0]
    assert others[0, 1:].ne(ids[0, 1:]).all()
    assert others.lt(words).all()
    assert pad is None or others.ne(pad).all()
