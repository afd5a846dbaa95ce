"""The forms in which decoders lie about: without prefixes, with buffers, halves, copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from models.checkpoint import load_checkpoint
from tests.grids import grid
from tests.parity import test_decoder_families
from tests.parity.families import Case, Pair, build_reference
from tests.parity.test_old_files import WEIGHTS, Tensors, configure, rewrite, same

CASES: dict[str, Case] = {case.name: case for case in test_decoder_families.CASES}
TRIANGLE = torch.ones(1, 1, 37, 37).tril()


def saved(name: str, folder: Path) -> Pair:
    """The reference, and its folder as it saves it today."""
    reference = build_reference(CASES[name])
    reference.save_pretrained(folder)
    return Pair(CASES[name], reference, load_checkpoint(folder))


def renamed(change: Callable[[str], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {change(name): value for name, value in tensors.items()}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("bloom", "transformer."),
        ("opt", "model."),
        ("gptj", "transformer."),
        ("llama, classes", "model."),
    ],
)
def test_a_body_without_its_prefix(name: str, prefix: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, renamed(lambda key: key.removeprefix(prefix)))
    assert same(pair, tmp_path).ours.unused == ()


BUFFERS: dict[str, dict[str, Tensor]] = {
    "gpt2, wide by default": {
        "transformer.h.{i}.attn.bias": TRIANGLE,
        "transformer.h.{i}.attn.masked_bias": torch.tensor(-1e4),
    },
    "llama": {"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.ones(8)},
    "gpt_neox": {
        "gpt_neox.layers.{i}.attention.bias": TRIANGLE.bool(),
        "gpt_neox.layers.{i}.attention.masked_bias": torch.tensor(-1e9),
        "gpt_neox.layers.{i}.attention.rotary_emb.inv_freq": torch.ones(3),
    },
    "gpt_neo": {"transformer.h.{i}.attn.attention.bias": TRIANGLE.byte()},
}


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers_of_earlier_versions_are_listed_as_unused(name: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    more = {
        key.replace("{i}", str(i)): value for key, value in BUFFERS[name].items() for i in range(3)
    }
    rewrite(tmp_path, lambda tensors: tensors | more)
    assert set(same(pair, tmp_path).ours.unused) == set(more)


def test_gpt2_as_it_was_first_published(tmp_path: Path) -> None:
    """The body alone, with its triangles, and a config that says little."""
    pair = saved("gpt2", tmp_path)
    triangles = {f"h.{i}.attn.bias": TRIANGLE for i in range(3)}
    prefix = "transformer."
    rewrite(tmp_path, lambda t: {k.removeprefix(prefix): v for k, v in t.items()} | triangles)
    late = ("tie_word_embeddings", "pad_token_id", "scale_attn_weights", "add_cross_attention")
    configure(tmp_path, *late, "scale_attn_by_inverse_layer_idx", n_ctx=37)
    assert set(same(pair, tmp_path).ours.unused) == set(triangles)


@grid(
    "dtype, name",
    [torch.float16, torch.bfloat16],
    ["gpt2, wide by default", "llama, biases", "gemma2", "bloom"],
)
def test_halves_are_read_as_they_are(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    pair.reference.to(dtype).save_pretrained(tmp_path)
    again = type(pair.reference).from_pretrained(tmp_path, dtype=torch.float32)
    again.set_attn_implementation("eager")
    pair = Pair(pair.case, again.eval(), pair.ours)
    assert {one.dtype for one in load_file(tmp_path / WEIGHTS).values()} == {dtype}
    assert all(p.dtype == torch.float32 for p in same(pair, tmp_path).ours.model.parameters())


@pytest.mark.parametrize(
    ("name", "table", "output"),
    [
        ("gpt2, wide by default", "transformer.wte.weight", "lm_head.weight"),
        ("llama, tied, wide heads", "model.embed_tokens.weight", "lm_head.weight"),
        ("biogpt", "biogpt.embed_tokens.weight", "output_projection.weight"),
    ],
)
def test_a_tied_output_may_be_there_twice(
    name: str, table: str, output: str, tmp_path: Path
) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: tensors | {output: tensors[table]})
    again = same(pair, tmp_path).ours
    assert again.config.tie_embeddings
    assert again.unused == ()


def test_an_output_that_is_missing_is_the_embedding(tmp_path: Path) -> None:
    """Whatever the flag says."""
    pair = saved("llama, tied, wide heads", tmp_path)
    configure(tmp_path, tie_word_embeddings=False)
    assert same(pair, tmp_path).ours.config.tie_embeddings
