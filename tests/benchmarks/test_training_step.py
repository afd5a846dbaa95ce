"""One training step of the core beside the same step of `torch.nn.Transformer`.

Both sides train the paper's encoder-decoder (post-norm, dropout 0.1, eight heads) on the
same padded batches with the same optimizer. `torch.nn.Transformer` also drops attention
weights, which keeps it from its fused kernel; the ratio without any dropout is printed too.
"""

import math
import time
from statistics import median

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from models import Transformer, TransformerConfig
from models.positional import PositionalEncoding
from models.presets import paper
from models.training import TrainConfig, build_optimizer
from tests.benchmarks.figure import report

BAR = 0.9
BATCH, TOKENS, VOCABULARY, PAD = 64, 128, 100, 0


class Reference(nn.Module):
    """What one writes around `torch.nn.Transformer` to train it on padded sentences."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.source = nn.Embedding(VOCABULARY, config.d_model)
        self.target = nn.Embedding(VOCABULARY, config.d_model)
        self.positions = PositionalEncoding(config.d_model, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        self.body = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.head = nn.Linear(config.d_model, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        streams = self.body(
            self.dropout(self.positions(self.source(source) * self.scale)),
            self.dropout(self.positions(self.target(target) * self.scale)),
            tgt_mask=later,
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.head(streams)


def padded(generator: torch.Generator) -> Tensor:
    """Sentences of half the length to the whole of it, (batch, tokens)."""
    ids = torch.randint(1, VOCABULARY, (BATCH, TOKENS), generator=generator)
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (BATCH, 1), generator=generator)
    return ids.masked_fill(torch.arange(TOKENS) >= lengths, PAD)


def seconds_of_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: list[Tensor]
) -> float:
    begun = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    source, target, labels = batch
    loss = cross_entropy(model(source, target).flatten(0, 1), labels.flatten(), ignore_index=PAD)
    loss.backward()
    optimizer.step()
    return time.perf_counter() - begun


def ratio(d_model: int, dropout: float, rounds: int) -> float:
    config = paper(VOCABULARY, VOCABULARY, d_model, 8, 2, 4 * d_model, dropout, max_len=TOKENS)
    config = config.replace(pad_id=PAD, final_norm=True)  # torch.nn.Transformer has last norms
    ours, theirs = Transformer(config), Reference(config)
    assert ours.n_parameters == sum(p.numel() for p in theirs.parameters())
    sides = [(model, build_optimizer(model, TrainConfig())) for model in (ours, theirs)]
    generator = torch.Generator().manual_seed(0)
    batch = [padded(generator) for _ in range(3)]
    for side in sides:
        seconds_of_step(*side, batch)
    pairs = [[seconds_of_step(*side, batch) for side in sides] for _ in range(rounds)]
    return median(mine / reference for mine, reference in pairs)


@pytest.mark.parametrize(("d_model", "rounds"), [(64, 5), (256, 3)])
def test_training_step(d_model: int, rounds: int) -> None:
    torch.set_num_threads(1)
    plain = ratio(d_model, 0.0, rounds=1)
    measured = ratio(d_model, 0.1, rounds)
    name = f"training step, encoder-decoder 2+2, d {d_model}, {BATCH} × {TOKENS} tokens"
    report(
        name, f"{measured:.2f} × ({plain:.2f} × without dropout)", "torch.nn.Transformer", "0.9 ×"
    )
    assert measured <= BAR
