"""What a pass is said to take is never less than it takes, and not much more."""

import gc
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from explorer.analysis.attribution_patching import attribute, shape_of_points
from explorer.analysis.circuit_faithfulness import corrupted_pass
from explorer.analysis.circuit_metrics import Contrast
from explorer.catalog.pass_budget import pass_size, shape_of
from models import Transformer, TransformerConfig, trace
from models.cache import KeyValueCache
from models.config import KINDS, POSITIONS
from models.gradients import gradients
from models.interventions import Edit, SetCell
from models.tap import Tap
from models.trace import CHEAP_SITES, RecordingTap
from models.transformer import evaluating
from tests.grids import grid

SMALL = TransformerConfig(
    vocab_size=500, d_model=64, n_layers=3, n_heads=8, d_ff=256, max_len=300, pad_id=0
)
ODDITIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"n_kv_heads": 2},
    "gated": {"gated": True, "d_ff": 1_024},
    "capped": {"attention_cap": 5.0},
    "post": {"norm_position": "post"},
    "parallel": {"parallel": True},
    "large vocabulary": {"n_layers": 1, "vocab_size": 20_000},
    "attention only, wide heads": {"d_ff": 0, "d_head": 40},
}
LAST, ALL = slice(-1, None), slice(None)
each = partial(grid, pairs=False)
"""Every value of each axis; `test_a_pass_takes_what_is_said` has every pair of them."""
WITHIN = 2.5
"""So many times what it takes, at most: a bound that refuses what would fit is none."""


def most_held(run: Callable[[], object]) -> int:
    """The most bytes that the tensors made meanwhile have held at once."""
    gc.disable()  # what earlier tests left would count as freed meanwhile
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            run()
    finally:
        gc.enable()
    assert watched.profiler is not None
    events = [e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = (event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return max(accumulate(sizes, initial=0))


def peak(model: Transformer, inputs: Sequence[Tensor], **how: Any) -> int:
    """The same of a recorded pass."""
    return most_held(lambda: trace(model, *inputs, sites=CHEAP_SITES, **how))


def inputs(config: TransformerConfig, texts: int, tokens: int) -> tuple[Tensor, ...]:
    """Texts of which all but the first are padded."""
    ids = torch.arange(1, tokens + 1).expand(texts, -1).clone()
    ids[1:, tokens // 2 :] = 0
    return (ids, ids[:, :20]) if config.kind == "encoder-decoder" else (ids,)


@grid(
    "kind, positions, oddity, tokens, texts, read_at",
    *(KINDS, POSITIONS, ODDITIES, (24, 150), (1, 3), (LAST, ALL)),
)
def test_a_pass_takes_what_is_said(
    kind: str, positions: str, oddity: str, tokens: int, texts: int, read_at: slice
) -> None:
    config = SMALL.replace(kind=kind, positions=positions, **ODDITIES[oddity])
    given = inputs(config, texts, tokens)
    most = peak(Transformer(config).eval(), given, read_at=read_at)
    with torch.no_grad():
        said = pass_size(config, shape_of(config, given, read_at, RecordingTap(CHEAP_SITES)))
    assert most <= said.peak <= WITHIN * most
    assert said.stays <= said.peak


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_weights_that_are_edited_are_counted(positions: str) -> None:
    """They are made and kept, where a pass else leaves only what they follow from."""
    config = SMALL.replace(positions=positions)
    edits: list[Edit] = [SetCell(f"decoder.{layer}.self_attn.weights", 1, 0) for layer in range(3)]
    given = inputs(config, 1, 150)
    most = peak(Transformer(config).eval(), given, read_at=LAST, edits=edits)
    with torch.no_grad():
        said = pass_size(config, shape_of(config, given, LAST, RecordingTap(CHEAP_SITES, edits)))
    assert most <= said.peak <= WITHIN * most


@each("kind, positions, oddity, texts", ("decoder", "encoder-decoder"), POSITIONS, ODDITIES, (1, 3))
def test_cached_steps_take_what_is_said(kind: str, positions: str, oddity: str, texts: int) -> None:
    """With all that the cache holds by then, which was doubled when it was full."""
    config = SMALL.replace(kind=kind, positions=positions, **ODDITIES[oddity])
    model, cache = Transformer(config).eval(), KeyValueCache.empty(config.n_layers)
    ids = torch.arange(1, 120).expand(texts, -1)
    two = kind == "encoder-decoder"
    memory = torch.zeros(texts, 90, config.d_model) if two else None

    def generate() -> None:
        with evaluating(model):
            model.decode(ids, memory, cache=cache, read_at=LAST)
            model.decode(ids[:, :1], memory, cache=cache, read_at=LAST)

    most = most_held(generate)
    given = (torch.zeros(texts, 90), ids[:, :1]) if two else (ids[:, :1],)
    with torch.no_grad():
        said = pass_size(config, shape_of(config, given, LAST, cache=cache))
    assert most <= said.peak <= 2 * WITHIN * most


@each("kind, positions, oddity, tokens", ("encoder", "decoder"), POSITIONS, ODDITIES, (24, 150))
def test_circuits_take_what_is_said(kind: str, positions: str, oddity: str, tokens: int) -> None:
    """Every head reads inputs of its own, forward and backward, and what is written is held."""
    config = SMALL.replace(kind=kind, positions=positions, **ODDITIES[oddity])
    if config.norm_position == "post":  # has no edges
        return
    model, (ids,) = Transformer(config).eval().requires_grad_(False), inputs(config, 1, tokens)
    other = ids.clone()
    other[0, 3] = 1
    contrast = Contrast(model, ids, other, tokens - 1, lambda logits: logits[:, 1])
    for steps in (1, 5):
        most = most_held(partial(attribute, contrast, steps))
        held = pass_size(config, shape_of_points(contrast, steps)).peak
        assert most <= held <= 2 * WITHIN * most
    said = []

    def remember(*given: Any, tap: Tap, read_at: slice, **how: Any) -> Tensor:
        said.append(pass_size(config, shape_of(config, given, read_at, tap)).peak)
        return Transformer.forward(model, *given, tap=tap, read_at=read_at, **how)

    model.forward = remember  # type: ignore[assignment,method-assign]
    base = corrupted_pass(contrast)
    said.clear()
    kept = torch.ones_like(base.wiring.is_edge).expand(4, -1, -1)
    most = most_held(lambda: base.metrics(kept))
    assert most <= max(said) <= 4 * WITHIN * most


def test_points_on_the_way_are_passed_together_without_copies_of_weights() -> None:
    """Two points of a model whose weights are large beside its values."""
    config = SMALL.replace(d_model=256, n_kv_heads=2, positions="rotary")
    model = Transformer(config).eval().requires_grad_(False)
    ids = torch.arange(1, 9)[None]
    contrast = Contrast(model, ids, ids.flip(1), 7, lambda logits: logits[:, 1])
    assert shape_of_points(contrast, 2).texts == 2
    most = most_held(partial(attribute, contrast, 2))
    assert most <= pass_size(config, shape_of_points(contrast, 2)).peak


@each("kind, positions, oddity, tokens", KINDS, POSITIONS, ODDITIES, (24, 150))
def test_a_gradient_takes_what_is_said(kind: str, positions: str, oddity: str, tokens: int) -> None:
    """As the museum does for the gradients at the embeddings: all that was computed is kept."""
    config = SMALL.replace(kind=kind, positions=positions, **ODDITIES[oddity])
    model, given = Transformer(config).eval().requires_grad_(False), inputs(config, 1, tokens)
    asked: Any = {"of": torch.sum, "sites": ("*.embed",), "read_at": LAST}
    most = most_held(lambda: gradients(model, *given, **asked))
    assert most <= pass_size(config, shape_of(config, given, LAST)).peak <= 2 * WITHIN * most
