"""Models of a few kilobytes that ask for much: long texts, many heads, a large vocabulary."""

import json
from pathlib import Path

from explorer.catalog import available_models, opened_model
from explorer.catalog.opened_model import Opened
from models import Transformer, TransformerConfig, save_checkpoint
from models.loading.export import export_checkpoint
from tests.text.published import bombs

LLAMA = TransformerConfig(
    vocab_size=4,
    d_model=16,
    n_layers=2,
    n_heads=2,
    d_ff=16,
    positions="rotary",
    pairs="halves",
    norm="rms",
    activation="silu",
    gated=True,
    bias=False,
    qkv_bias=False,
    scale_embedding=False,
    max_len=1_000_000,
)
"""A million positions, which no weights pay for."""
NINETY = bombs.words(normalizer=bombs.replace({"String": "a"}, " b" * 90))
"""A tokenizer that makes ninety tokens of a letter."""


def million_positions(folder: Path) -> Opened:
    """A model that reads whatever is typed, each letter as ninety tokens."""
    export_checkpoint(folder, Transformer(LLAMA), NINETY)
    return opened_model.open_entry(available_models.brought_model(folder))


def too_many(folder: Path, **sizes: int) -> Path:
    """A folder of ours whose config asks for these sizes; the weights are those of a tiny model."""
    save_checkpoint(folder, Transformer(TransformerConfig(d_model=4, n_heads=1, d_ff=0)))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | sizes), "utf-8")
    return folder
