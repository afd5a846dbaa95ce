"""The forms in which published files lie about: older names, buffers, halves, copies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.loading.checkpoint import Checkpoint, load_checkpoint
from models.positional import sinusoids
from tests.parity.cases import CASES
from tests.parity.families import Pair, build_reference, compare, inputs_of

WEIGHTS = "model.safetensors"
Tensors = dict[str, Tensor]
Change = Callable[[Tensors], Tensors]


class Published:
    """The reference, and the folder that it saves today, to be made older."""

    def __init__(self, name: str, folder: Path) -> None:
        self.case, self.folder = CASES[name], folder
        self.reference: Any = build_reference(self.case)
        self.reference.save_pretrained(folder)

    def rewrite(self, change: Change) -> None:
        tensors = change(load_file(self.folder / WEIGHTS))
        apart = {name: value.clone() for name, value in tensors.items()}
        save_file(apart, self.folder / WEIGHTS, metadata={"format": "pt"})

    def configure(self, *absent: str, **changes: Any) -> None:
        path = self.folder / "config.json"
        values = {n: v for n, v in json.loads(path.read_text()).items() if n not in absent}
        path.write_text(json.dumps(values | changes))

    def opened(self) -> Checkpoint:
        """What is read from the folder now, which must be the reference still."""
        ours = load_checkpoint(self.folder)
        pair = Pair(self.case, self.reference, ours)
        compare(pair, inputs_of(pair, 7, "right"))
        return ours


def renamed(change: Callable[[str], str]) -> Change:
    return lambda tensors: {change(name): value for name, value in tensors.items()}


def without(prefix: str) -> Change:
    """The names of the body as a file without a head has them."""
    return renamed(lambda name: name.removeprefix(prefix))


def under(prefix: str) -> Change:
    return renamed(lambda name: prefix + name)


def gamma_and_beta(name: str) -> str:
    body, dot, ending = name.rpartition(".")
    older = {".weight": ".gamma", ".bias": ".beta"}
    return body + older[dot + ending] if body.endswith("LayerNorm") else name


def copied(shared: str, *copies: str) -> Change:
    """Copies beside what is shared."""
    return lambda tensors: tensors | dict.fromkeys(copies, tensors[shared])


def apart(prefix: str) -> Change:
    """Copies instead of what is shared."""

    def change(tensors: Tensors) -> Tensors:
        table = tensors.pop(prefix + "shared.weight")
        stacks = [f"{prefix}{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")]
        return tensors | dict.fromkeys(stacks, table)

    return change


OLDER: list[tuple[str, Change]] = [
    ("bert, masked", renamed(gamma_and_beta)),
    ("roberta, masked", renamed(gamma_and_beta)),
    ("bert, masked", without("bert.")),
    ("bert, classes", without("bert.")),
    ("distilbert, classes", without("distilbert.")),
    ("roberta, masked", without("roberta.")),
    ("bart", without("model.")),
    ("bloom", without("transformer.")),
    ("opt", without("model.")),
    ("gptj", without("transformer.")),
    ("llama, classes", without("model.")),
    ("bert, bare", under("bert.")),
    ("marian, bare", under("model.")),
    ("t5", copied("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")),
    ("bart", copied("model.shared.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")),
    ("marian", copied("model.shared.weight", "lm_head.weight")),
    (
        "bert, masked",
        copied("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    ),
    ("roberta, masked", copied("lm_head.bias", "lm_head.decoder.bias")),
    ("gpt2, wide by default", copied("transformer.wte.weight", "lm_head.weight")),
    ("biogpt", copied("biogpt.embed_tokens.weight", "output_projection.weight")),
    ("t5", apart("")),
    ("bart", apart("model.")),
]


@pytest.mark.parametrize(("name", "change"), OLDER, ids=[name for name, _ in OLDER])
def test_other_names_and_copies_are_one_model(name: str, change: Change, tmp_path: Path) -> None:
    published = Published(name, tmp_path)
    before = load_checkpoint(tmp_path)
    published.rewrite(change)
    ours = published.opened()
    assert ours.config == before.config
    assert len(ours.unused) == len(before.unused)


TRIANGLE = torch.ones(1, 1, 37, 37).tril()
SINUSOIDS = sinusoids(torch.arange(37), 24, "halves").float()
DISTANCES = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
BESIDE: dict[str, Tensors] = {
    "bert, masked": {"bert.embeddings.position_ids": torch.arange(37)[None]},
    "marian": {f"model.{s}.embed_positions.weight": SINUSOIDS for s in ("encoder", "decoder")},
    "t5": {DISTANCES: torch.zeros(12, 4)},
    "gpt2, wide by default": {
        "transformer.h.0.attn.bias": TRIANGLE,
        "transformer.h.2.attn.masked_bias": torch.tensor(-1e4),
    },
    "llama, biases": {"model.layers.2.self_attn.rotary_emb.inv_freq": torch.ones(8)},
    "gpt_neox": {
        "gpt_neox.layers.0.attention.bias": TRIANGLE.bool(),
        "gpt_neox.layers.1.attention.masked_bias": torch.tensor(-1e9),
        "gpt_neox.layers.2.attention.rotary_emb.inv_freq": torch.ones(3),
    },
    "gpt_neo": {"transformer.h.1.attn.attention.bias": TRIANGLE.byte()},
}
"""What older versions of the reference saved and nobody needs."""


@pytest.mark.parametrize("name", BESIDE)
def test_what_nothing_reads_is_told(name: str, tmp_path: Path) -> None:
    published = Published(name, tmp_path)
    published.rewrite(lambda tensors: tensors | BESIDE[name])
    assert set(published.opened().unused) == BESIDE[name].keys()


def test_gpt2_as_it_was_first_published(tmp_path: Path) -> None:
    """The body alone, with its triangles, and a config that says little."""
    published = Published("gpt2", tmp_path)
    triangles = {f"h.{i}.attn.bias": TRIANGLE for i in range(3)}
    published.rewrite(lambda tensors: without("transformer.")(tensors) | triangles)
    late = ("tie_word_embeddings", "pad_token_id", "scale_attn_weights", "add_cross_attention")
    published.configure(*late, "scale_attn_by_inverse_layer_idx", n_ctx=37)
    assert set(published.opened().unused) == set(triangles)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, torch.float16) for name in ("bert, masked", "t5", "gemma2")]
    + [(name, torch.bfloat16) for name in ("marian", "gpt2, wide by default", "bloom")],
)
def test_halves_are_read_as_they_are(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    published = Published(name, tmp_path)
    published.reference.to(dtype).save_pretrained(tmp_path)
    assert {one.dtype for one in load_file(tmp_path / WEIGHTS).values()} == {dtype}
    again = published.case.reference.from_pretrained(tmp_path, dtype=torch.float32)
    again.set_attn_implementation("eager")
    published.reference = again.eval()
    assert all(p.dtype == torch.float32 for p in published.opened().model.parameters())


@pytest.mark.parametrize("name", ["marian", "bart"])
def test_logits_without_a_bias(name: str, tmp_path: Path) -> None:
    published = Published(name, tmp_path)
    published.rewrite(lambda tensors: {k: v for k, v in tensors.items() if "final_log" not in k})
    published.reference.final_logits_bias.zero_()
    assert not published.opened().config.has_head_bias


def test_t5_with_an_output_of_its_own(tmp_path: Path) -> None:
    """As v1.1 was published: the flag says so, and nothing is said of scales."""
    published = Published("t5 v1.1", tmp_path)
    own = torch.randn_like(published.reference.shared.weight.detach())
    published.reference.lm_head.weight = torch.nn.Parameter(own)
    published.rewrite(lambda tensors: tensors | {"lm_head.weight": own})
    published.configure("scale_decoder_outputs", tie_word_embeddings=False, n_positions=99)
    ours = published.opened()
    assert (ours.config.tie_embeddings, ours.config.max_len, ours.unused) == (False, 99, ())
