"""The instruments: their numbers by plain torch, what they hold in memory, and what they read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from explorer.catalog.opened_model import Opened, opened_from
from explorer.inference import forward_pass, model_inputs
from explorer.text import byte_tokenizer, word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER, SOURCE
from explorer.views.museum import measured_run
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.museum.measured_run import EmbeddingLeaves, MeasuredRun, right_run
from explorer.views.museum.mistakes import MISTAKES
from models.losses import IGNORE, cross_entropy
from tests.browser.truth import measured
from tests.models.building import shake
from tests.shelf import NAMES, WORDS, put
from tests.source import ROOT

LETTERS = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)


def case(opened: Opened, text: str = "") -> MeasuredRun:
    """A text, read and looked at in the first head of the last attention."""
    seen = forward_pass.run_text(opened, text or opened.example)
    return right_run(opened, seen, (seen.parts[-1].name, 0, 0))


def made(folder: Path, tokenizer: Any = LETTERS, **config: Any) -> Opened:
    put(folder, "made", tokenizer, "a cat", **config)
    return opened_from(folder / "made", "made")


# ---- their numbers ---------------------------------------------------------------------


def test_its_numbers_are_those_of_plain_torch_and_its_mistake_gives_others(
    subtests: pytest.Subtests,
) -> None:
    """The same inputs, found without the museum: the text's tokens, and what the model answers."""
    assert set(measured.INSTRUMENTS) == set(INSTRUMENTS)
    look = ("decoder.cross_attn", 0, 1)
    opened = opened_from(ROOT / "models" / "checkpoints" / "translation", "translation")
    forward = forward_pass.run_text(opened, "the black cat sees the white house")
    right = right_run(opened, forward, look)
    ids = torch.tensor([[token.id for token in right.forward.tokens]])
    written = opened.model.generate(ids, max_length=opened.config.max_len, greedy=True)
    for name, instrument in INSTRUMENTS.items():
        wrong = right.with_model(MISTAKES[measured.INSTRUMENTS[name].mistake].make(right.model))
        with subtests.test(name=name):
            for each in (right, wrong):
                found = instrument(each)
                said = found.said
                if name == "Generation":
                    said = dict(found.lines)["distinct tokens"]
                run = measured.Run(each.model, ids, written[:, :-1], written[:, 1:], look[2])
                claims = measured.INSTRUMENTS[name].claims(name, said, run)
                assert claims
                assert [claim.fault() for claim in claims if claim.fault()] == []
            is_another = instrument(wrong).number != pytest.approx(
                instrument(right).number, rel=1e-3
            )
            assert is_another or instrument(wrong).named != instrument(right).named


def test_the_loss_in_parts_is_the_loss(
    small_models: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(measured_run, "AT_ONCE", 2)
    for name in NAMES:
        with subtests.test(name=name):
            right = case(opened_from(small_models / name, name))
            found, tap = INSTRUMENTS["Loss and gradients"](right), EmbeddingLeaves()
            assert right.labels is not None
            with torch.enable_grad():
                whole = cross_entropy(right.output(tap=tap), right.labels)
                grads = torch.autograd.grad(whole, list(tap.leaves.values()))
            assert found.number == pytest.approx(float(whole.detach()), rel=1e-5)
            shown = [float(size.replace(",", "")) for _, size in found.lines]
            assert shown == pytest.approx([float(grad.norm()) for grad in grads], rel=6e-3)


# ---- what they hold in memory ----------------------------------------------------------


class Largest(TorchDispatchMode):
    """The most numbers that any tensor held which was made meanwhile, masks and indices aside."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor) and each.is_floating_point():
                self.numbers = max(self.numbers, each.numel())
        return result


def test_no_instrument_scores_every_word_at_every_place(tmp_path: Path) -> None:
    """A decoder with many more words than width, over a long text."""
    wide = case(made(tmp_path, kind="decoder", max_len=400), "the cat " * 97)
    places, words = wide.ids.shape[1], wide.opened.config.vocab_size
    assert places > 3 * measured_run.AT_ONCE
    for name in ("Causality check", "Padding", "Loss and gradients", "Shapes"):
        with Largest() as largest:
            INSTRUMENTS[name](wide)
        heads = wide.opened.config.n_heads
        assert largest.numbers < min(places * words, heads * places * places), name


def test_what_is_kept_is_one_head(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    seen = MeasuredRun.recorded

    def spied(self: MeasuredRun, *how: Any, **more: Any) -> dict[str, torch.Tensor]:
        found = seen(self, *how, **more)
        kept.extend(found.values())
        return found

    monkeypatch.setattr(MeasuredRun, "recorded", spied)
    right = case(opened_from(small_models / "translation", "translation"))
    for name in ("Attention map", "Fully masked row", "Score scale"):
        kept.clear()
        INSTRUMENTS[name](right)
        assert kept, name
        assert all(each.dim() < 3 for each in kept), name
        assert all(each.untyped_storage().nbytes() == each.nbytes for each in kept), name


# ---- what they read --------------------------------------------------------------------


def test_one_token_has_no_answer_before_it_and_no_loss(small_models: Path) -> None:
    both = case(opened_from(small_models / "letters", "letters"), "t")
    alone = replace(both, ids=both.ids[:, :1], labels=torch.full((1, 1), IGNORE))
    causality = INSTRUMENTS["Causality check"](alone)
    assert causality.number is None
    assert "one token" in causality.said
    assert "encoder" not in causality.said
    loss = INSTRUMENTS["Loss and gradients"](alone)
    assert loss.number is None
    assert loss.said == "no token follows this one, so there is no loss"


def test_a_decoder_without_a_head_has_no_loss(tmp_path: Path) -> None:
    bare = case(made(tmp_path, kind="decoder", head="none"))
    assert bare.labels is None
    found = {name: instrument(bare) for name, instrument in INSTRUMENTS.items()}
    assert found["Loss and gradients"].number is None
    assert "no head" in found["Loss and gradients"].said


def test_a_pair_of_texts_is_read_as_a_pair(tmp_path: Path) -> None:
    """The right run is the pass that the pages show, segments and all."""
    words = word_tokenizer(WORDS, CLASSIFIER)
    opened = made(tmp_path, words, kind="encoder", head="classifier", n_segments=2)
    shake(opened.model, by=0.4)
    one = forward_pass.run_text(opened, "the black cat a dog eats")
    tokens = tuple(replace(token, segment=int(i > 3)) for i, token in enumerate(one.tokens))
    shown = model_inputs.one_stack(opened, [tokens], slice(None)).output
    pair = right_run(opened, replace(one, source=tokens), ("encoder.self_attn", 0, 0))
    assert torch.equal(pair.logits(), shown)
    assert not torch.equal(shown, one.trace.output)
    assert INSTRUMENTS["Padding"](pair).number == pytest.approx(0, abs=1e-5)


def test_a_head_that_the_run_has_no_more_is_said(tmp_path: Path) -> None:
    """Twelve heads are chosen from, and the decoder with the mistake has eight."""
    words = word_tokenizer(WORDS, SOURCE)
    twelve = case(made(tmp_path, words, kind="encoder-decoder", d_model=48, n_heads=12))
    for part in ("decoder.self_attn", "decoder.cross_attn"):
        right = replace(twelve, head=(part, 0, 11))
        wrong = right.with_model(MISTAKES["fixed-heads"].make(right.model))
        found = {name: instrument(wrong) for name, instrument in INSTRUMENTS.items()}
        assert (found["Attention map"].number, found["Attention map"].picture) == (None, None)
        assert "this run has no head 11" in found["Attention map"].said
        assert INSTRUMENTS["Attention map"](right).picture is not None
    assert found["Padding"].picture is None
    last = replace(wrong, head=("decoder.cross_attn", 0, 7))
    assert INSTRUMENTS["Attention map"](last).picture is not None


def test_a_decoder_that_classifies_by_its_last_token_looks_back_only(tmp_path: Path) -> None:
    """Its class comes from the last token and moves with it; what stands before does not."""
    right = case(made(tmp_path, kind="decoder", head="classifier", pooling="last"))
    shake(right.model, by=0.4)
    other = right.replaced_tokens(right.ids, slice(-1, None))
    assert right.logit_change(other) > 0.01
    wrong = right.with_model(MISTAKES["dropped-weights"].make(right.model))
    found = INSTRUMENTS["Causality check"](right)
    assert found.number == pytest.approx(0, abs=1e-5)
    assert "the stream before it" in found.said
    assert (INSTRUMENTS["Causality check"](wrong).number or 0) > 0.01


def test_another_token_is_another(small_models: Path) -> None:
    """Nor filler, however few words there are."""
    right = case(opened_from(small_models / "letters", "letters"))
    for pad, words in ((None, 3), (0, 3), (1, 3), (None, 4), (0, 4), (1, 5), (0, 280)):
        config = right.opened.config.replace(vocab_size=words, pad_id=pad)
        few = replace(right, opened=replace(right.opened, config=config))
        ids = torch.tensor([[i for i in range(words) if i != pad]])
        others = few.replaced_tokens(ids, slice(1, None))
        assert others[0, 0] == ids[0, 0], (pad, words)
        assert others[0, 1:].ne(ids[0, 1:]).all(), (pad, words)
        assert others.lt(words).all(), (pad, words)
        assert pad is None or others.ne(pad).all(), (pad, words)
