"""A head's circuits by small matrices are those by whole ones, and its writes sum to the pass."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis import head_circuits
from explorer.analysis.logit_attribution import contributions, direct_logits
from explorer.analysis.output_change import has_words, last_streams
from explorer.analysis.residual_writes import value_writes
from explorer.inference.forward_pass import ForwardPass
from models import Transformer
from models.frozen_scales import sum_norm
from models.normalization import RMSNorm
from tests.closeness import assert_close_to
from tests.tiny import config_of, shaken

SHAPES: list[dict[str, Any]] = [
    {"positions": "rotary"},
    {"positions": "rotary", "n_heads": 4, "n_kv_heads": 2, "d_head": 2, "qk_norm": True},
    {"n_heads": 4, "n_kv_heads": 1, "d_head": 5, "tie_embeddings": True},
    {"norm_position": "post"},
    {"norm_position": "sandwich", "norm": "rms", "qkv_bias": False},
    {"norm_position": "sandwich", "embedding_norm": True},
]


def model_of(shape: dict[str, Any]) -> Transformer:
    return shaken(config_of(**{"n_layers": 3, **shape})).requires_grad_(False)


def folded(norm: torch.nn.Module, d: int) -> Tensor:
    """The matrix (d, d) of a norm without its scale."""
    if isinstance(norm, torch.nn.Identity):
        return torch.eye(d).double()
    weight: Any = norm.weight
    gain = torch.diag(weight)
    return gain if isinstance(norm, RMSNorm) else gain @ (torch.eye(d).double() - 1 / d)


def blocks_of(model: Transformer) -> Any:
    return model.last_stack.blocks


def later(blocks: Any, writes: Tensor) -> Tensor:
    """What blocks make of a write (d, …): post-norm stands in the stream itself."""
    for block in blocks:
        for residual in (block.self_residual, block.mlp_residual):
            writes = folded(sum_norm(residual), len(writes)) @ writes
    return writes


def whole(model: Transformer, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """The QK and the OV circuit (d, d), written down plainly."""
    config, block = model.config, blocks_of(model)[layer]
    attention = block.self_attn
    w, group = attention.d_head, head // (config.n_heads // config.kv_heads)
    reads = folded(block.self_residual.input_norm, config.d_model)
    query = attention.q_proj.weight[head * w : (head + 1) * w]
    key = attention.k_proj.weight[group * w : (group + 1) * w]
    value = attention.v_proj.weight[group * w : (group + 1) * w]
    if config.qk_norm:
        query = torch.diag(attention.q_norm.weight) @ query
        key = torch.diag(attention.k_norm.weight) @ key
    writes = folded(block.self_residual.out_norm, config.d_model)
    output = writes @ attention.o_proj.weight[:, head * w : (head + 1) * w]
    return (query @ reads).T @ (key @ reads), output @ value @ reads


@pytest.mark.parametrize("shape", SHAPES)
def test_the_circuits_are_those_of_whole_matrices(shape: dict[str, Any]) -> None:
    model = model_of(shape)
    for head in range(model.config.n_heads):
        found, (qk, ov) = head_circuits.head_weights(model, 1, head), whole(model, 1, head)
        assert_close_to(found.query.T @ found.key, qk)
        assert_close_to(found.output @ found.value, ov)
        for spectrum, matrix in zip(head_circuits.spectra(found), (qk, ov), strict=True):
            values = torch.linalg.svdvals(matrix)
            assert_close_to(spectrum.values, values[: len(spectrum.values)], 1e-8)
            assert float(values[len(spectrum.values) :].abs().sum()) < 1e-9
            assert float(spectrum.random.norm()) == pytest.approx(float(matrix.norm()))


@pytest.mark.parametrize("shape", SHAPES)
def test_composition_is_that_of_whole_matrices(shape: dict[str, Any]) -> None:
    model = model_of(shape)
    config, blocks = model.config, blocks_of(model)
    found = head_circuits.composition(model, 2, 1)
    assert found.shape == (len(head_circuits.READS), 2, config.n_heads)
    qk, own = whole(model, 2, 1)
    for layer in range(2):
        for head in range(config.n_heads):
            _, ov = whole(model, layer, head)
            ov = later(blocks[layer:2], ov)
            expected = [(each @ ov).norm() / each.norm() / ov.norm() for each in (qk.T, qk, own)]
            assert_close_to(found[:, layer, head], torch.stack(expected))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_eigenvalues_are_those_of_the_circuit_between_tokens(shape: dict[str, Any]) -> None:
    model = model_of(shape)
    config, stack = model.config, model.last_stack
    w = config.head_width
    for head in range(config.n_heads):
        found, block = head_circuits.copying(model, 1, head), blocks_of(model)[1]
        embedded = stack.embedding_norm(stack.embedding.weight * stack.embedding_scale)
        norm = block.self_residual.input_norm
        read = norm(embedded) - getattr(norm, "bias", 0.0)
        group = config.kv_head(head)
        value = block.self_attn.v_proj.weight[group * w : (group + 1) * w]
        writes = folded(block.self_residual.out_norm, config.d_model)
        through = writes @ block.self_attn.o_proj.weight[:, head * w : (head + 1) * w] @ value
        through = folded(stack.norm, config.d_model) @ later(blocks_of(model)[1:], through)
        head_of_model: Any = model.head
        words = stack.embedding.weight if config.tie_embeddings else head_of_model.weight
        circuit = words @ through @ read.T  # (v, v)
        every = torch.linalg.eigvals(circuit)
        every = every[every.abs().argsort(descending=True)]
        assert_close_to(found.eigenvalues.abs().sort(descending=True).values, every.abs()[:w], 1e-5)
        assert found.score == pytest.approx(float(every.real.sum() / every.abs().sum()), abs=1e-4)
        top = (circuit > circuit.diagonal()).sum(0) < 5
        assert found.own_in_top == pytest.approx(float(top.double().mean()))


def test_copying_has_a_meaning_in_language_models_of_one_stack() -> None:
    assert head_circuits.why_no_copying(config_of()) == ""
    for other in (
        config_of("encoder-decoder"),
        config_of("encoder", head="classifier"),
        config_of("encoder", head="masked-language-model"),
    ):
        assert head_circuits.why_no_copying(other).endswith(".")
    model = model_of({})
    model.last_stack.embedding.weight[3, 2] = torch.nan
    assert math.isnan(head_circuits.copying(model, 1, 0).score)


def test_what_heads_write_to_the_logits_is_what_attribution_says(found: ForwardPass) -> None:
    """Of the whole head, and as the sum over the keys that it attends to."""
    config = found.config
    if not has_words(config) or config.kind == "encoder-decoder":
        return  # of one stack, with a head over tokens
    stack, layers = last_streams(config)
    part, place = f"{stack}.self_attn", len(found.tokens) - 2
    for option in (1, 4):
        parts = contributions(found, place, option).heads[part]
        for layer in range(layers):
            for head in range(config.n_heads):
                writes = value_writes(found, part, layer, head)
                sources = direct_logits(found, layer, place, writes)
                written = float(found.weights(part, layer, head)[place] @ sources[:, option])
                assert written == pytest.approx(float(parts[layer, head]), rel=1e-6, abs=1e-9)
                few = direct_logits(found, layer, place, writes, torch.tensor([option, 2]))
                assert_close_to(few, sources[:, [option, 2]])
