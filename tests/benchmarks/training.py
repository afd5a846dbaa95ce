"""The speed of training: a step, what makes its batches, two processes.

A training step is that of the repository README's model (post-norm, dropout 0.1, eight heads)
beside `torch.nn.Transformer`, on the same padded batches with the same optimizer. That one also
drops attention weights, which keeps it from its fused kernel; so the ratio without any dropout is
printed too: at d 256 both sides then spend nearly all their time in the same products.
"""

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from explorer.runs.run import create_in
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS
from models import Transformer, TransformerConfig
from models.config import TrainConfig
from models.optimizers import build_optimizer
from models.positional import PositionalEncoding
from models.presets import REPOSITORY_README
from models.training import train
from tests.benchmarks.measuring import Ratio, Row, by_turns, compared, timed
from tests.served import ROOT

SENTENCES, TOKENS, VOCABULARY, PAD = 64, 128, 100, 0


class EncoderDecoder(nn.Module):
    """What one writes around `torch.nn.Transformer` to train it on padded sentences."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.source = nn.Embedding(VOCABULARY, config.d_model)
        self.target = nn.Embedding(VOCABULARY, config.d_model)
        self.positions = PositionalEncoding(config.d_model, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        layers = (config.n_layers, config.n_layers)
        sizes = (config.d_model, config.n_heads, *layers, config.d_ff, config.dropout)
        self.body = nn.Transformer(*sizes, batch_first=True)
        self.head = nn.Linear(config.d_model, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        streams = self.body(
            self.dropout(self.positions(self.source(source) * self.scale)),
            self.dropout(self.positions(self.target(target) * self.scale)),
            tgt_mask=torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.head(streams)


def padded(generator: torch.Generator) -> Tensor:
    """Sentences of half the length to the whole of it, (batch, tokens)."""
    ids = torch.randint(1, VOCABULARY, (SENTENCES, TOKENS), generator=generator)
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (SENTENCES, 1), generator=generator)
    return ids.masked_fill(torch.arange(TOKENS) >= lengths, PAD)


def steps(d_model: int, dropout: float, rounds: int) -> Ratio:
    words = {"vocab_size": VOCABULARY, "src_vocab_size": VOCABULARY, "max_len": TOKENS}
    sizes = {"d_model": d_model, "n_layers": 2, "d_ff": 4 * d_model, "dropout": dropout}
    config = REPOSITORY_README.replace(**words, **sizes, pad_id=PAD)
    config = config.replace(final_norm=True)  # torch.nn.Transformer has last norms
    ours, theirs = Transformer(config), EncoderDecoder(config)
    assert ours.n_parameters == sum(p.numel() for p in theirs.parameters())
    generator = torch.Generator().manual_seed(0)
    source, target, labels = (padded(generator) for _ in range(3))

    def step_of(model: nn.Module) -> Callable[[], None]:
        optimizer = build_optimizer(model, TrainConfig())

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            logits = model(source, target).flatten(0, 1)
            cross_entropy(logits, labels.flatten(), ignore_index=PAD).backward()
            optimizer.step()

        return step

    return timed(step_of(ours), step_of(theirs), rounds)


def step() -> Iterator[Row]:
    for d_model, rounds in ((64, 5), (256, 3)):
        plain = steps(d_model, 0.0, rounds=1)
        what = f"training step, 2+2 layers, d {d_model}, {SENTENCES} × {TOKENS} tokens, dropout 0.1"
        note = f" ({plain.times:.2f} × without dropout)"
        found = steps(d_model, 0.1, rounds)
        yield compared(what, found, "of torch.nn.Transformer", 0.9, note=note)


def batches() -> Iterator[Row]:
    """The task whose batches take the largest share of a step that learns from them."""
    found = {}
    for name, task in TASKS.items():
        batch = partial(task.batch, training=task.training)
        learner = train(Transformer(task.model), batch, task.training)
        found[name] = timed(partial(batch, 0), partial(next, learner))
    name = max(found, key=lambda name: found[name].times)
    what = f"making one training batch, of {len(found)} tasks the slowest ({name})"
    yield compared(what, found[name], "of one training step of that task", 0.5)


WORTH_TWO = 512
"""Texts in a batch for two processes: what they tell each other is as much for any."""


def two_processes() -> Iterator[Row]:
    """Texts a second, by the clock: each process has a core of its own, if the machine has two."""

    def by(start: list[str]) -> Callable[[], list[float]]:
        def measured() -> list[float]:
            with tempfile.TemporaryDirectory() as folder:
                how = TASKS["reverse"].training.replace(steps=24, batch_size=WORTH_TWO)
                base = TASKS["reverse"].model.replace(d_model=128, d_ff=512, n_heads=4)
                run = create_in(Path(folder) / "run", RunSpec("reverse", base, how))
                command = [sys.executable, *start, "-m", "explorer", "resume", str(run.folder)]
                subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
                rows = {row.step: row.seconds for row in run.metrics().rows if row.loss}
                return [((rows[24] or 0.0) - (rows[4] or 0.0)) / 20]

        return measured

    started = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    (found,) = by_turns(by(started), by([]), 1)
    quicker = 1 / found.times
    what = f"texts a second of two processes under torchrun, batches of {WORTH_TWO}"
    mine, beside = (f"{WORTH_TWO / each:.0f}" for each in (found.ours, found.reference))
    yield Row(what, mine, f"{beside} of one", quicker, "≥ 1.6 ×", quicker >= 1.6)
