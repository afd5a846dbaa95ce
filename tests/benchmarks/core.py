"""The core without a checkpoint: a training step, a watched pass, and generation with a cache.

A training step is that of the repository README's model (post-norm, dropout 0.1, eight heads)
beside `torch.nn.Transformer`, on the same padded batches with the same optimizer. That one also
drops attention weights, which keeps it from its fused kernel; so the ratio without any dropout is
printed too: at d 256 both sides then spend nearly all their time in the same products.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from explorer.tasks import TASKS
from models import Transformer, TransformerConfig, trace
from models.positional import PositionalEncoding
from models.presets import repository_readme
from models.training import TrainConfig, build_optimizer, train
from models.transformer import evaluating
from tests.benchmarks.measuring import Ratio, Row, compared, timed

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
    ids = torch.randint(1, VOCABULARY, (BATCH, TOKENS), generator=generator)
    lengths = torch.randint(TOKENS // 2, TOKENS + 1, (BATCH, 1), generator=generator)
    return ids.masked_fill(torch.arange(TOKENS) >= lengths, PAD)


def steps(d_model: int, dropout: float, rounds: int) -> Ratio:
    sizes = d_model, 8, 2, 4 * d_model
    config = repository_readme(VOCABULARY, VOCABULARY, *sizes, dropout, max_len=TOKENS)
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

    return timed(step_of(ours), step_of(theirs), rounds)


def training_step() -> Iterator[Row]:
    for d_model, rounds in ((64, 5), (256, 3)):
        plain = steps(d_model, 0.0, rounds=1)
        yield compared(
            f"training step, 2+2 layers, d {d_model}, {BATCH} × {TOKENS} tokens, dropout 0.1",
            steps(d_model, 0.1, rounds),
            "of torch.nn.Transformer",
            0.9,
            note=f" ({plain.times:.2f} × without dropout)",
        )


def training_batches() -> Iterator[Row]:
    """The task whose batches take the largest share of a step that learns from them."""
    found = {}
    for name, task in TASKS.items():
        batch = partial(task.batch, training=task.training)
        learner = train(Transformer(task.model), batch, task.training)
        found[name] = timed(partial(batch, 0), partial(next, learner))
    name = max(found, key=lambda name: found[name].times)
    what = f"making one training batch, of {len(found)} tasks the slowest ({name})"
    yield compared(what, found[name], "of one training step of that task", 0.5)


def watched_forward() -> Iterator[Row]:
    """A pass that keeps every attention weight beside one that nobody watches."""
    config = TransformerConfig(
        vocab_size=1000, d_model=768, n_layers=12, n_heads=12, d_ff=3072, activation="gelu"
    )
    model = Transformer(config).eval()
    ids = torch.randint(1000, (1, 128), generator=torch.Generator().manual_seed(0))

    def watched() -> None:
        assert len(trace(model, ids, sites=("*.weights",)).sites) == 12

    def unwatched() -> None:
        with evaluating(model):
            model(ids)

    what = "forward with all attention weights, 12 layers, 12 heads, d 768, 128 tokens"
    yield compared(what, timed(watched, unwatched, 15), "of the same core unwatched", 1.1)


def cached_generation() -> Iterator[Row]:
    """Generation with cached keys and values beside reading everything again.

    A cached token reads all weights from memory once, an uncached one computes with all tokens
    so far: how many times as fast follows from the length of the prompt and from how fast the
    machine's memory is beside its arithmetic. So a short prompt has no goal.
    """
    model = Transformer(
        TransformerConfig(vocab_size=1000, d_model=512, n_layers=12, n_heads=8, d_ff=2048)
    ).eval()
    for length in (64, 16):
        prompt = torch.randint(1000, (1, length), generator=torch.Generator().manual_seed(0))
        generate = partial(model.generate, prompt, max_length=64, greedy=True)
        cached, uncached = (partial(generate, use_cache=cache) for cache in (True, False))
        assert torch.equal(cached(), uncached())
        found = timed(cached, uncached, rounds=1)
        quicker = 1 / found.times
        what = f"generation of 64 tokens, 12 layers, d 512, prompt of {length}, cached"
        mine = f"{found.ours:.2f} s, {quicker:.1f} times as fast"
        row = Row(what, mine, f"{found.reference:.2f} s uncached", found.times)
        yield replace(row, goal="3 times as fast", met=quicker >= 3) if length == 64 else row
