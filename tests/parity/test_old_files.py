"""The forms in which encoders and encoder-decoders lie about: older names, halves, copies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.checkpoint import load_checkpoint
from models.positional import sinusoids
from tests.grids import grid
from tests.parity import test_encoder_decoder_families, test_encoder_families
from tests.parity.comparing import compare
from tests.parity.families import Case, Pair, build_reference, inputs_of

CASES: dict[str, Case] = {
    case.name: case for case in test_encoder_families.CASES + test_encoder_decoder_families.CASES
}
WEIGHTS = "model.safetensors"
Tensors = dict[str, Tensor]


def saved(name: str, folder: Path) -> Pair:
    """The reference, and its folder as it saves it today."""
    case = CASES[name]
    reference = build_reference(case)
    reference.save_pretrained(folder)
    return Pair(case, reference, load_checkpoint(folder))


def rewrite(folder: Path, change: Callable[[Tensors], Tensors]) -> None:
    changed = {name: value.clone() for name, value in change(load_file(folder / WEIGHTS)).items()}
    save_file(changed, folder / WEIGHTS, metadata={"format": "pt"})


def configure(folder: Path, *absent: str, **changes: Any) -> None:
    path = folder / "config.json"
    values = {n: v for n, v in json.loads(path.read_text()).items() if n not in absent}
    path.write_text(json.dumps(values | changes))


def same(pair: Pair, folder: Path) -> Pair:
    """The folder, opened again, is the reference still."""
    pair = Pair(pair.case, pair.reference, load_checkpoint(folder))
    compare(pair, inputs_of(pair, 7, "right"))
    return pair


@pytest.mark.parametrize("name", ["bert, masked", "bert, classes", "roberta, masked"])
def test_norms_of_gamma_and_beta(name: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    older = {".weight": ".gamma", ".bias": ".beta"}

    def named(key: str) -> str:
        body, dot, ending = key.rpartition(".")
        return body + older[dot + ending] if body.endswith("LayerNorm") else key

    rewrite(tmp_path, lambda tensors: {named(key): value for key, value in tensors.items()})
    assert same(pair, tmp_path).ours.unused == ()


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("bert, masked", "bert."),
        ("bert, classes", "bert."),
        ("distilbert, classes", "distilbert."),
        ("roberta, masked", "roberta."),
        ("bart", "model."),
    ],
)
def test_a_body_without_its_prefix(name: str, prefix: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: {k.removeprefix(prefix): v for k, v in tensors.items()})
    assert same(pair, tmp_path).ours.unused == ()


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("bert, bare", "bert."), ("marian, bare", "model."), ("bart, bare", "model.")],
)
def test_a_bare_body_with_a_prefix(name: str, prefix: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: {prefix + k: v for k, v in tensors.items()})
    same(pair, tmp_path)


@grid("dtype, name", [torch.float16, torch.bfloat16], ["bert, masked", "marian", "t5"])
def test_halves_are_read_as_they_are(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    pair.reference.to(dtype).save_pretrained(tmp_path)
    pair.reference.float()
    assert {one.dtype for one in load_file(tmp_path / WEIGHTS).values()} == {dtype}
    if name == "marian":  # its table is a function, not a number of the file
        for stack in (pair.reference.model.encoder, pair.reference.model.decoder):
            table = stack.embed_positions
            table.weight.data.copy_(table.create_weight())
    assert all(p.dtype == torch.float32 for p in same(pair, tmp_path).ours.model.parameters())


@pytest.mark.parametrize(
    ("name", "shared", "copies"),
    [
        ("t5", "shared.weight", ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")),
        ("t5", "shared.weight", ("decoder.embed_tokens.weight", "lm_head.weight")),
        ("bart", "model.shared.weight", ("model.encoder.embed_tokens.weight",)),
        ("bart", "model.shared.weight", ("model.decoder.embed_tokens.weight", "lm_head.weight")),
        ("marian", "model.shared.weight", ("lm_head.weight",)),
        (
            "bert, masked",
            "bert.embeddings.word_embeddings.weight",
            ("cls.predictions.decoder.weight",),
        ),
        ("roberta, masked", "lm_head.bias", ("lm_head.decoder.bias",)),
    ],
)
def test_copies_beside_what_is_shared(
    name: str, shared: str, copies: tuple[str, ...], tmp_path: Path
) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: tensors | dict.fromkeys(copies, tensors[shared]))
    ours = same(pair, tmp_path).ours
    assert ours.unused == ()
    assert ours.config.tie_embeddings


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_copies_instead_of_what_is_shared(name: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    prefix = "model." if name == "bart" else ""

    def apart(tensors: Tensors) -> Tensors:
        table = tensors.pop(prefix + "shared.weight")
        stacks = [f"{prefix}{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")]
        return tensors | dict.fromkeys(stacks, table)

    rewrite(tmp_path, apart)
    assert same(pair, tmp_path).ours.config.share_embeddings


@pytest.mark.parametrize("name", ["marian", "bart", "mbart"])
def test_logits_without_a_bias(name: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: {k: v for k, v in tensors.items() if "final_log" not in k})
    pair.reference.final_logits_bias.zero_()
    assert not same(pair, tmp_path).ours.config.has_head_bias


def test_t5_with_an_output_of_its_own(tmp_path: Path) -> None:
    """As v1.1 was published: the flag says so, and nothing is said of scales."""
    pair = saved("t5 v1.1", tmp_path)
    with torch.no_grad():
        own = torch.randn_like(pair.reference.shared.weight)
    pair.reference.lm_head.weight = torch.nn.Parameter(own)
    rewrite(tmp_path, lambda tensors: tensors | {"lm_head.weight": own})
    configure(tmp_path, "scale_decoder_outputs", tie_word_embeddings=False)
    ours = same(pair, tmp_path).ours
    assert not ours.config.tie_embeddings
    assert ours.unused == ()


def test_t5_that_says_nothing_of_its_output(tmp_path: Path) -> None:
    """As the first T5 was published: tied, its output scaled, both unsaid."""
    pair = saved("t5", tmp_path)
    unsaid = ("scale_decoder_outputs", "tie_word_embeddings", "dense_act_fn", "is_gated_act")
    configure(tmp_path, *unsaid, n_positions=99)
    assert same(pair, tmp_path).ours.config.max_len == 99


SINUSOIDS = sinusoids(torch.arange(37), 24, "halves").float()
BESIDE = {
    "bert, masked": {"bert.embeddings.position_ids": torch.arange(37)[None]},
    "marian": {
        "model.encoder.embed_positions.weight": SINUSOIDS,
        "model.decoder.embed_positions.weight": SINUSOIDS,
    },
    "t5": {
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(12, 4)
    },
}
"""What older versions of the reference saved and nobody needs."""


@pytest.mark.parametrize("name", BESIDE)
def test_what_nothing_reads_is_told(name: str, tmp_path: Path) -> None:
    pair = saved(name, tmp_path)
    rewrite(tmp_path, lambda tensors: tensors | BESIDE[name])
    assert sorted(same(pair, tmp_path).ours.unused) == sorted(BESIDE[name])


def test_what_a_config_leaves_out_is_the_family_s_own(tmp_path: Path) -> None:
    """The smallest config that is still this model."""
    pair = saved("distilbert, classes", tmp_path)
    unsaid = ("pad_token_id", "activation", "tie_word_embeddings", "architectures", "num_labels")
    configure(tmp_path, *unsaid, architectures=["DistilBertForSequenceClassification"])
    assert same(pair, tmp_path).ours.config.pad_id == 0
