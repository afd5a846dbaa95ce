"""Going on from rows that were read gives what a pass over each whole row gives."""

from __future__ import annotations

import pytest
import torch

from models import Transformer, TransformerConfig
from models.going_on import GoingOn
from models.positional import POSITIONS
from tests.grids import grid
from tests.models.building import shake

PAD, PROMPT = 8, torch.tensor([[8, 2, 3, 4]])
"""It begins with padding, which nobody looks at."""


@grid("positions, kind", sorted(POSITIONS), ["decoder", "encoder-decoder"])
def test_rows_that_are_taken_and_read_are_those_of_a_whole_pass(kind: str, positions: str) -> None:
    config = TransformerConfig(
        kind=kind, positions=positions, n_layers=2, vocab_size=9, d_model=16, n_heads=4,
        n_kv_heads=2, d_ff=24, max_len=16, bos_id=0, eos_id=1, pad_id=PAD, banned_ids=(7,),
    )  # fmt: skip
    made = shake(Transformer(config, seed=1), by=0.6).eval()
    going = GoingOn(made, PROMPT)
    going.take([0, 0, 0])
    going.read(torch.tensor([[5, 2], [6, 2], [PAD, 2]]))
    going.back_to(1)
    going.take([2, 0, 2, 1])
    found = going.read(torch.tensor([[3], [3], [5], [6]]))[:, -1]
    rows = torch.tensor([[PAD, 3], [5, 3], [PAD, 5], [6, 6]])
    many = PROMPT.expand(4, -1)
    with torch.no_grad():
        if kind == "decoder":
            keep = torch.cat((many != PAD, torch.ones_like(rows, dtype=torch.bool)), 1)
            logits = made(torch.cat((many, rows), 1), keep=keep)[:, -1]
        else:
            target = torch.cat((torch.zeros(4, 1, dtype=torch.long), rows), 1)
            everything = torch.ones_like(target, dtype=torch.bool)
            logits = made(many, target, target_keep=everything)[:, -1]
    logits[:, 7] = -torch.inf
    torch.testing.assert_close(found, logits, rtol=1e-4, atol=1e-4)


def test_what_cannot_write_is_refused() -> None:
    made = Transformer(
        TransformerConfig(kind="encoder", n_layers=1, vocab_size=9, d_model=8, n_heads=2, d_ff=8)
    )
    with pytest.raises(ValueError, match="can write"):
        GoingOn(made, PROMPT)
