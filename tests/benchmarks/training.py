"""One training step of the core beside the same step of `torch.nn.Transformer`.

Both sides train the paper's encoder-decoder (post-norm, dropout 0.1, eight heads) on the
same padded batches with the same optimizer. `torch.nn.Transformer` also drops attention
weights, which keeps it from its fused kernel; so the ratio without any dropout
is printed too: at d 256 both sides then spend nearly all their time in the same products.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from explorer.tasks import TASKS, Task
from models import Transformer, TransformerConfig
from models.positional import PositionalEncoding
from models.presets import paper
from models.training import Batch, TrainConfig, build_optimizer, train
from tests.benchmarks.ratio import Ratio, ratio
from tests.benchmarks.rows import Row, compared

GOAL, BATCH_GOAL = 0.9, 0.5
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


def measure(d_model: int, dropout: float, rounds: int) -> Ratio:
    config = paper(VOCABULARY, VOCABULARY, d_model, 8, 2, 4 * d_model, dropout, max_len=TOKENS)
    config = config.replace(pad_id=PAD, final_norm=True)  # torch.nn.Transformer has last norms
    ours, theirs = Transformer(config), Reference(config)
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

    return ratio(step_of(ours), step_of(theirs), rounds)


def batches() -> Iterator[Row]:
    """The task whose batches take the largest share of a step that learns from them."""
    found = {}
    for name, task in TASKS.items():
        learner = train(Transformer(task.model), partial(again, task), task.training)
        found[name] = ratio(lambda task=task: again(task, 0), lambda on=learner: next(on))  # type: ignore[misc]
    name = max(found, key=lambda name: found[name].times)
    what = f"making one training batch, of {len(found)} tasks the slowest ({name})"
    yield compared(what, found[name], "of one training step of that task", BATCH_GOAL)


def again(task: Task, step: int) -> Batch:
    return task.batch(step, task.training)


def step() -> Iterator[Row]:
    for d_model, rounds in ((64, 5), (256, 3)):
        plain = measure(d_model, 0.0, rounds=1)
        yield compared(
            f"training step, 2+2 layers, d {d_model}, {BATCH} × {TOKENS} tokens, dropout 0.1",
            measure(d_model, 0.1, rounds),
            "of torch.nn.Transformer",
            GOAL,
            note=f" ({plain} without dropout)",
        )
