"""The instruments: their numbers by plain torch, what they hold in memory, and what they read."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from explorer.inference import forward_pass, model_inputs
from explorer.text import byte_tokenizer
from explorer.text.token import DECODER
from explorer.views.museum import measured_run
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.views.museum.measured_run import MeasuredRun, right_run
from explorer.views.museum.mistakes import MISTAKES
from models import trace
from models.gradients import gradients
from models.interventions import Edit, Scale
from models.losses import IGNORE, cross_entropy
from tests.tiny import LETTERS, NAMES, saved_and_opened

PIECES = byte_tokenizer(LETTERS, 280, DECODER)


def case(opened: OpenModel, text: str = "") -> MeasuredRun:
    """A text, read and looked at in the first head of the last attention."""
    seen = forward_pass.run_text(opened, text or opened.example)
    return right_run(opened, seen, (seen.parts[-1].name, 0, 0))


@dataclass(frozen=True, eq=False)
class Run:
    """An encoder-decoder and what it reads: the source (1, s), the target and labels (1, t)."""

    model: Any
    ids: Tensor
    target: Tensor
    labels: Tensor
    head: int = 1

    def logits(
        self, ids: Tensor | None = None, target: Tensor | None = None, edits: Sequence[Edit] = ()
    ) -> Tensor:
        """(t, words), for other inputs where they are given."""
        ids = self.ids if ids is None else ids
        target = self.target if target is None else target
        return trace(self.model, ids, target, edits=edits).output[0].double()

    def at(self, site: str, **how: Any) -> Tensor:
        value: Tensor = trace(self.model, self.ids, self.target, **how)[site][0].double()
        return value


def shapes(run: Run) -> list[float]:
    count = sum(each.numel() for each in run.model.parameters())
    widths = [run.at(f"{stack}.0.self_attn.q").shape[-1] for stack in ("encoder", "decoder")]
    return [count, *widths]


def attention_map(run: Run) -> list[float]:
    """e to the mean entropy of the rows of the chosen head of cross-attention."""
    q, k = (run.at(f"decoder.0.cross_attn.{name}")[run.head] for name in "qk")
    weights = (q @ k.mT * run.model.decoder.blocks[0].cross_attn.scale).softmax(-1)
    return [math.exp(float(torch.special.entr(weights).sum(-1).mean()))]


def masked_row(run: Run) -> list[float]:
    """The first row where the mask lets nothing through, and its sum."""
    nothing = torch.zeros_like(run.ids, dtype=torch.bool)
    row = run.at("encoder.0.self_attn.weights", source_keep=nothing)[0, 0]
    return [*row[:4].tolist(), float(row.sum())]


def outputs(run: Run) -> list[float]:
    last = run.logits()[-1]
    return [len(last), float(last.min()), float(last.max()), float(last.sum())]


def loss(run: Run) -> list[float]:
    return [float(functional.cross_entropy(run.logits(), run.labels[0]))]


def another(ids: Tensor, words: int, filler: int) -> Tensor:
    """The third id on, or the one behind filler where that is filler."""
    new = (ids + 3) % words
    return new.where(new != filler, torch.tensor(filler + 1))


def causality(run: Run) -> list[float]:
    """Another last token of the target; how far the logits before it move."""
    other, config = run.target.clone(), run.model.config
    other[:, -1] = another(run.target[:, -1], config.vocab_size, config.pad_id)
    return [float((run.logits(target=other) - run.logits())[:-1].abs().max())]


def target(run: Run) -> list[float]:
    """Every target token replaced, with cross-attention ablated."""
    config = run.model.config
    other = another(run.target, config.vocab_size, config.pad_id)
    silent = [Scale("decoder.*.cross_attn.out", 0.0)]
    moved = run.logits(target=other, edits=silent) - run.logits(edits=silent)
    return [float(moved.abs().max())]


def padding(run: Run) -> list[float]:
    config = run.model.config
    count = min(10, config.max_len - run.ids.shape[1])
    longer = functional.pad(run.ids, (0, count), value=config.pad_id)
    return [count, float((run.logits(longer) - run.logits()).abs().max())]


def positions(run: Run) -> list[float]:
    """How far the products of two positions spread that are as far apart; by the table itself."""
    table = run.model.encoder.positions.pe[0].double()
    apart = min(5, len(table) // 2)
    return [apart, float((table[:-apart] * table[apart:]).sum(-1).std())]


def writing(run: Run) -> list[float]:
    """Different tokens of all that are written, always the likeliest."""
    most = min(12, run.model.config.max_len - 1)
    new = run.model.generate(run.ids, max_length=most, temperature=0.0)[0, 1:].tolist()
    return [len(set(new)), len(new)]


def slices(run: Run) -> list[float]:
    """Head 1 of the sentence against head 0 of the same with two slices swapped."""
    x, width = run.at("encoder.embed").float()[None], run.model.config.d_model // 2
    swapped = torch.cat((x[..., width:], x[..., :width]), -1)
    attention, apart = run.model.encoder.blocks[0].self_attn, 0.0
    with torch.no_grad():
        for project in (attention.q_proj, attention.k_proj, attention.v_proj):
            one, other = project(x)[..., width:], project(swapped)[..., :width]
            apart = max(apart, float((one - other).abs().max()))
    return [apart]


def stream(run: Run) -> list[float]:
    """Root mean square of the stream behind the last block."""
    return [float(run.at("decoder.0.resid_post").square().mean().sqrt())]


def scale(run: Run) -> list[float]:
    """What q·k is multiplied with to give the scores."""
    q, k = (run.at(f"encoder.0.self_attn.{name}")[0] for name in "qk")
    scores, products = run.at("encoder.0.self_attn.scores")[0], q @ k.mT
    return [float((scores / products).median()), 1 / math.sqrt(q.shape[-1])]


N = r"(−?\d[\d,]*(?:\.\d+)?(?:e−\d+)?)"
"""A number as it is written."""
NOISE = 1e-5
"""What is moved by less did not move: single precision leaves as much, and never the same."""
CHANGE = f"change by {N}"
BY_TORCH: dict[str, tuple[str, str, Callable[[Run], list[float]]]] = {
    "Shapes": (
        "fixed-heads",
        f"{N} parameters; encoder heads of width {N}, decoder heads of width {N}",
        shapes,
    ),
    "Attention map": ("wrong-scale", f"about {N} tokens", attention_map),
    "Fully masked row": (
        "filled-row",
        f"fully masked row is {N}, {N}, {N}, {N}, … and sums to {N}",
        masked_row,
    ),
    "Model output": ("softmax-twice", f"{N} values between {N} and {N}, sum {N}", outputs),
    "Loss and gradients": ("softmax-twice", f"the loss is {N} nats", loss),
    "Causality check": ("dropped-weights", f"logits before it {CHANGE}", causality),
    "Replaced target": ("lost-target", f"every target token changes the logits by {N}", target),
    "Padding": ("no-padding-mask", f"with {N} padding tokens .* {CHANGE}", padding),
    "Positions": ("doubled-exponent", f"{N} apart .* deviation of {N}", positions),
    "Generation": ("never-appends", f"{N} of {N}", writing),
    "Swapped slices": ("shared-projection", f"former head 1 by {N}", slices),
    "Residual stream": ("norm-order", f"root mean square is {N}", stream),
    "Score scale": ("wrong-scale", f"q·k × {N}; 1/√d_k would be {N}", scale),
}
"""Of each instrument a mistake that it shows, its sentence, and its numbers by plain torch."""


def agrees(shown: str, true: float) -> bool:
    """Whether the three digits are those of the number; noise is only said to be noise."""
    value = float(shown.replace(",", "").replace("−", "-"))
    if abs(true) < NOISE:
        return abs(value) < 2 * NOISE
    return abs(value - true) <= 6e-3 * abs(true)


def test_numbers_are_of_plain_torch_and_mistakes_give_others(subtests: pytest.Subtests) -> None:
    """The same inputs, found without the museum: the text's tokens, and what the model answers."""
    assert set(BY_TORCH) == set(INSTRUMENTS)
    look = ("decoder.cross_attn", 0, 1)
    opened = open_checkpoint(SHIPPED / "translation", "translation")
    forward = forward_pass.run_text(opened, "the black cat sees the white house")
    right = right_run(opened, forward, look)
    ids = torch.tensor([[token.id for token in right.forward.tokens]])
    written = opened.model.generate(ids, max_length=opened.config.max_len, greedy=True)
    for name, instrument in INSTRUMENTS.items():
        mistake, sentence, numbers = BY_TORCH[name]
        wrong = right.with_model(MISTAKES[mistake].make(right.model))
        with subtests.test(name=name):
            for each in (right, wrong):
                measured = instrument(each)
                lines = dict(measured.lines)
                said = lines["distinct tokens"] if name == "Generation" else measured.sentence
                found = re.search(sentence, said, re.IGNORECASE)
                assert found is not None, said
                by_torch = numbers(Run(each.model, ids, written[:, :-1], written[:, 1:], look[2]))
                pairs = [*zip(found.groups(), by_torch, strict=True)]
                assert [pair for pair in pairs if not agrees(*pair)] == []
            one, other = instrument(right), instrument(wrong)
            is_another = other.number != pytest.approx(one.number, rel=1e-3)
            assert is_another or other.phrase != one.phrase


def test_the_loss_in_parts_is_the_loss(
    small_models: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(measured_run, "AT_ONCE", 2)
    for name in NAMES:
        with subtests.test(name=name):
            right = case(open_checkpoint(small_models / name, name))
            found = INSTRUMENTS["Loss and gradients"](right)
            inputs = (right.ids,) if right.target is None else (right.ids, right.target)
            assert right.labels is not None
            loss = partial(cross_entropy, labels=right.labels)
            whole = gradients(right.model, *inputs, of=loss, sites=("*.embed",))
            assert found.number == pytest.approx(whole.scalar, rel=1e-5)
            shown = [float(size.replace(",", "")) for _, size in found.lines]
            norms = [float(gradient.norm()) for gradient in whole.gradients.values()]
            assert shown == pytest.approx(norms, rel=6e-3)


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
    wide = case(saved_and_opened(tmp_path, "wide", PIECES, max_len=400), "the cat " * 97)
    places, words = wide.ids.shape[1], wide.opened.config.vocab_size
    assert places > 3 * measured_run.AT_ONCE
    for name in ("Causality check", "Padding", "Loss and gradients", "Shapes"):
        with Largest() as largest:
            INSTRUMENTS[name](wide)
        heads = wide.opened.config.n_heads
        assert largest.numbers < min(places * words, heads * places * places), name


def test_what_has_no_number_has_a_sentence(small_models: Path, tmp_path: Path) -> None:
    """One token has no answer before it and no loss, nor has a decoder without a head."""
    both = case(open_checkpoint(small_models / "letters", "letters"), "t")
    alone = replace(both, ids=both.ids[:, :1], labels=torch.full((1, 1), IGNORE))
    bare = case(saved_and_opened(tmp_path, "bare", PIECES, "a cat", head="none"))
    for run, instrument, sentence in (
        (alone, "Causality check", "one token"),
        (alone, "Loss and gradients", "no token follows this one, so there is no loss"),
        (bare, "Loss and gradients", "no head"),
    ):
        found = INSTRUMENTS[instrument](run)
        assert found.number is None
        assert sentence in found.sentence
        assert "encoder" not in found.sentence
    assert all(instrument(bare).sentence for instrument in INSTRUMENTS.values())


def test_a_pair_of_texts_is_read_as_a_pair(tmp_path: Path) -> None:
    """The right run is the pass that the pages show, segments and all."""
    how: dict[str, Any] = {"kind": "encoder", "head": "classifier", "n_segments": 2}
    opened = saved_and_opened(tmp_path, "pairs", shaken_by=0.4, **how)
    one = forward_pass.run_text(opened, "the black cat a dog eats")
    tokens = tuple(replace(token, segment=int(i > 3)) for i, token in enumerate(one.tokens))
    shown = model_inputs.record(opened, [tokens]).output
    pair = right_run(opened, replace(one, source=tokens), ("encoder.self_attn", 0, 0))
    assert torch.equal(pair.output(), shown)
    assert not torch.equal(shown, one.trace.output)
    assert INSTRUMENTS["Padding"](pair).number == pytest.approx(0, abs=1e-5)


def test_a_head_that_the_run_has_no_more_is_said(tmp_path: Path) -> None:
    """Twelve heads are chosen from, and the decoder with the mistake has eight."""
    how: dict[str, Any] = {"kind": "encoder-decoder", "d_model": 48, "n_heads": 12}
    twelve = case(saved_and_opened(tmp_path, "twelve", None, "a cat", **how))
    for part in ("decoder.self_attn", "decoder.cross_attn"):
        right = replace(twelve, head=(part, 0, 11))
        wrong = right.with_model(MISTAKES["fixed-heads"].make(right.model))
        found = {name: instrument(wrong) for name, instrument in INSTRUMENTS.items()}
        assert (found["Attention map"].number, found["Attention map"].picture) == (None, None)
        assert "this run has no head 11" in found["Attention map"].sentence
        assert INSTRUMENTS["Attention map"](right).picture is not None
    assert found["Padding"].picture is None
    last = replace(wrong, head=("decoder.cross_attn", 0, 7))
    assert INSTRUMENTS["Attention map"](last).picture is not None


def test_a_decoder_that_classifies_by_its_last_token_looks_back_only(tmp_path: Path) -> None:
    """Its class comes from the last token and moves with it; what stands before does not."""
    how: dict[str, Any] = {"head": "classifier", "pooling": "last"}
    right = case(saved_and_opened(tmp_path, "last", PIECES, "a cat", shaken_by=0.4, **how))
    other = right.replaced_tokens(right.ids, slice(-1, None))
    assert right.logit_change(other) > 0.01
    wrong = right.with_model(MISTAKES["dropped-weights"].make(right.model))
    found = INSTRUMENTS["Causality check"](right)
    assert found.number == pytest.approx(0, abs=1e-5)
    assert "the stream before it" in found.sentence
    assert (INSTRUMENTS["Causality check"](wrong).number or 0) > 0.01


def test_another_token_is_another(small_models: Path) -> None:
    """Nor filler, however few words there are."""
    right = case(open_checkpoint(small_models / "letters", "letters"))
    for pad, words in ((None, 3), (0, 3), (1, 3), (None, 4), (0, 4), (1, 5), (0, 280)):
        config = right.opened.config.replace(vocab_size=words, pad_id=pad)
        few = replace(right, opened=replace(right.opened, config=config))
        ids = torch.tensor([[i for i in range(words) if i != pad]])
        others = few.replaced_tokens(ids, slice(1, None))
        assert others[0, 0] == ids[0, 0], (pad, words)
        assert others[0, 1:].ne(ids[0, 1:]).all(), (pad, words)
        assert others.lt(words).all(), (pad, words)
        assert pad is None or others.ne(pad).all(), (pad, words)
