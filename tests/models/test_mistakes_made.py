"""A copy with a mistake: it leaves its model alone, writes what it would read, and fits or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from models import Transformer, TransformerConfig
from models.generation import beginning
from models.mistakes import MISTAKES
from models.mistakes.copying import copied
from models.transformer import evaluating
from tests.grids import grid
from tests.models.building import config_of, ids_of, inputs_of, shake, shaken

KINDS = ("encoder", "decoder", "encoder-decoder")
SIZES = {"d_model": 16, "n_heads": 2}
FITTING = [
    (name, kind)
    for name, mistake in MISTAKES.items()
    for kind in KINDS
    if mistake.misfit(config_of(kind, **SIZES)) is None
]
WRITING = [(name, kind) for name, kind in FITTING if kind != "encoder" and name != "never-appends"]
TELLING = ((0.3, 1), (0.3, 4), (0.6, 3))
"""Noise and seed of models that write other words with a cache than without one."""


def test_every_mistake_fits_some_kind() -> None:
    assert {name for name, _ in FITTING} == set(MISTAKES)


def test_a_copy_leaves_the_model_as_it_was(subtests: pytest.Subtests) -> None:
    for name in MISTAKES:
        with subtests.test(name=name):
            kind = next(kind for mistake, kind in FITTING if mistake == name)
            config = config_of(kind, **SIZES)
            right = shaken(config, torch.float32)
            before, types = {n: p.clone() for n, p in right.named_parameters()}, _types(right)
            inputs = inputs_of(config, batch=1)
            with evaluating(right):
                expected = right(*inputs)
                MISTAKES[name].make(right)(*inputs)
                assert torch.equal(right(*inputs), expected)
            assert _types(right) == types
            assert all(torch.equal(p, before[n]) for n, p in right.named_parameters())


def _types(model: Transformer) -> list[type]:
    return [type(module) for module in model.modules()]


def test_a_copy_costs_no_memory() -> None:
    model = shaken(config_of("encoder-decoder"))
    pairs = zip(model.parameters(), copied(model).parameters(), strict=True)
    assert all(one.data_ptr() == other.data_ptr() for one, other in pairs)


@grid("mistake, telling", WRITING, TELLING)
def test_what_is_written_is_what_whole_passes_give(
    mistake: tuple[str, str], telling: tuple[float, int]
) -> None:
    """A cache must not hide a mistake, nor show another one."""
    name, kind = mistake
    source, (by, seed) = ids_of(1, 5), telling
    right = shake(Transformer(config_of(kind, **SIZES)), by, seed).eval()
    model = MISTAKES[name].make(right)
    written = model.generate(source, max_length=7, temperature=0.0)
    assert torch.equal(written, _by_whole_passes(model, source, 7))


def test_two_mistakes_of_writing_in_either_order() -> None:
    """The lost target must not take the place of a writing that is a mistake itself."""
    source = ids_of(1, 5)
    model = shake(Transformer(config_of("encoder-decoder", **SIZES)), *TELLING[1]).eval()
    loses, forgets = (MISTAKES[name].make for name in ("lost-target", "never-appends"))
    both, turned, lost = (
        made.generate(source, max_length=7, temperature=0.0)
        for made in (forgets(loses(model)), loses(forgets(model)), loses(model))
    )
    assert torch.equal(both, turned)
    assert not torch.equal(both, lost)


def _by_whole_passes(model: Transformer, source: Tensor, steps: int) -> Tensor:
    """The likeliest token after everything that stands there, read from the start each time."""
    written = beginning(model, source)
    with evaluating(model):
        memory = model.encode(source) if model.encoder is not None else None
        for _ in range(steps):
            keep = torch.ones_like(written, dtype=torch.bool)
            best = model.decode(written, memory, keep=keep)[:, -1].argmax(-1)
            written = torch.cat((written, best[:, None]), 1)
    return written


def test_the_shared_projection_keeps_the_first_head_s_bias() -> None:
    """Else a model with biases would lose them too, which is another mistake."""
    right = shaken(config_of("encoder", **SIZES), torch.float32)
    site, width = "blocks.0.self_attn", right.config.head_width
    x = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))
    assert right.encoder is not None
    wrong = MISTAKES["shared-projection"].make(right)
    assert wrong.encoder is not None
    for name in ("q_proj", "k_proj", "v_proj"):
        whole = right.encoder.get_submodule(f"{site}.{name}")
        weight, bias = (whole.get_parameter(each) for each in ("weight", "bias"))
        assert bias[:width].ne(0).all()
        with torch.no_grad():
            given = wrong.encoder.get_submodule(f"{site}.{name}")(x)
        for head in range(2):
            here = slice(head * width, (head + 1) * width)
            expected = x[..., here] @ weight[:width, :width].mT + bias[:width]
            assert torch.allclose(given[..., here], expected, atol=1e-6)


def test_a_second_change_is_a_misfit(subtests: pytest.Subtests) -> None:
    """A mistake is one change: a model in which it would make two cannot have it."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("fixed-heads", {"qk_norm": True}, "norms of queries and keys"),
        ("fixed-heads", {"attention_scale": 0.5}, "its scale is not 1/√d_k"),
        ("doubled-exponent", {"pairs": "halves"}, "all sines first"),
    ]
    for name, changes, why in cases:
        with subtests.test(name=name):
            usual: TransformerConfig = config_of("encoder-decoder", **SIZES)
            assert MISTAKES[name].misfit(usual) is None
            assert why in (MISTAKES[name].misfit(usual.replace(**changes)) or "")
