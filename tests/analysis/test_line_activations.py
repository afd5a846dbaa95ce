"""What excites a head, against the plain formula over one recorded pass of each line."""

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.analysis.line_activations import (
    LineActivations,
    activations_by_batch,
    batches,
    token_activations,
)
from explorer.catalog import opened_model
from explorer.catalog.opened_model import Opened
from explorer.text import word_tokenizer
from explorer.text.special import CLASSIFIER, DECODER
from models.trace import trace
from tests.models.building import shake
from tests.shelf import WORDS, put

LINES = ("the cat", "a black dog eats", "the white cat sleeps not", "le chat noir", "a dog")
KINDS: dict[str, dict[str, Any]] = {
    "decoder": {"kind": "decoder", "n_layers": 2},
    "grouped": {"kind": "decoder", "positions": "rotary", "n_heads": 4, "n_kv_heads": 2},
    "no padding": {"kind": "decoder", "pad_id": None},
    "encoder": {"kind": "encoder", "head": "language-model", "n_layers": 2},
    "classifier": {"kind": "encoder", "head": "classifier"},
}


def opened_as(folder: Path, kind: str) -> Opened:
    changes = KINDS[kind]
    tokenizer = word_tokenizer(WORDS, DECODER if changes["kind"] == "decoder" else CLASSIFIER)
    put(folder, "lines", tokenizer, "the cat", **changes)
    opened = opened_model.opened_from(folder / "lines", "lines")
    shake(opened.model.double(), by=0.4)
    return opened


@pytest.mark.parametrize("kind", list(KINDS))
def test_both_numbers_are_those_of_each_line_alone(kind: str, tmp_path: Path) -> None:
    opened = opened_as(tmp_path, kind)
    config, rows = opened.config, [opened.tokenizer.encode(line) for line in LINES]
    layers = config.n_layers
    found = LineActivations.empty(len(rows), layers, config.n_heads)
    for some, tokens in activations_by_batch(opened, rows):
        found.put(some, tokens)
    assert bool(found.measured.all())
    stack = config.stacks[0]
    for line, row in enumerate(rows):
        ids = torch.tensor([[token.id for token in row]])
        seen = trace(opened.model, ids)
        counted = [at for at, token in enumerate(row) if at and not token.special]
        for layer in range(layers):
            block: Any = opened.model.last_stack.blocks[layer]
            for head in range(config.n_heads):
                w = config.head_width
                columns = block.self_attn.o_proj.weight[:, head * w : (head + 1) * w]
                out = seen[f"{stack}.{layer}.self_attn.head_out"][0, head]
                norms = (out @ columns.T).norm(dim=-1)[counted]
                weights = seen[f"{stack}.{layer}.self_attn.weights"][0, head]
                away = weights[counted][:, counted].amax(-1)
                at = line, layer, head
                assert float(found.norm[at]) == pytest.approx(float(norms.max()), rel=1e-5)
                assert int(found.norm_at[at]) == counted[int(norms.argmax())]
                assert float(found.weight[at]) == pytest.approx(float(away.max()), rel=1e-5)
                assert int(found.weight_at[at]) == counted[int(away.argmax())]


def test_tokens_that_do_not_count_have_no_number(tmp_path: Path) -> None:
    opened = opened_as(tmp_path, "encoder")
    rows = [opened.tokenizer.encode(line) for line in ("the cat", "a black dog eats")]
    found = token_activations(opened, rows)
    for row, norm, weight in zip(rows, found.norm, found.weight, strict=True):
        for at in range(norm.shape[-1]):
            counts = 0 < at < len(row) and not row[at].special
            assert bool((norm[..., at] >= 0).all()) == counts
            assert bool((weight[..., at] >= 0).all()) == counts


def test_a_batch_has_lines_of_about_equal_length_and_a_known_one_is_not_passed_again(
    tmp_path: Path,
) -> None:
    opened = opened_as(tmp_path, "decoder")
    rows = [opened.tokenizer.encode(line) for line in LINES]
    lengths = [[len(rows[at]) for at in some] for some in batches(rows, 2, equal_lengths=True)]
    assert [len(set(each)) for each in lengths] == [1] * len(lengths)
    every = [at for some in batches(rows, 2, equal_lengths=True) for at in some]
    assert sorted(every) == [*range(len(rows))]
    assert [some for some, _ in activations_by_batch(opened, rows, set(range(len(rows))))] == []
    long = [opened.tokenizer.encode("the cat " * 10)] * 100
    assert all(len(some) * len(long[0]) <= 1_024 for some in batches(long, 2, equal_lengths=False))
