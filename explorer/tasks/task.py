"""A task: an endless series of batches, a held-out set, and the expected attention.

A seed and a step determine a batch, so a training can be stopped, resumed or repeated, and the
held-out set is the same for every model.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks.batches import ONE_IN, Rows, is_held_out, some_rows
from explorer.tasks.bundled_text import BundledText
from explorer.tasks.task_metrics import Metric, value_of
from explorer.text import DECODER, TextError, Token, TrainedWith
from explorer.text.token import Reads
from models.config import GenerationConfig, TrainConfig, TransformerConfig
from models.model import Transformer
from models.training import Batch

Tokens = Sequence[Token]
Pattern = Float[Tensor, "q k"] | None
"""The expected attention; rows sum to 1, or to 0 where nothing is expected."""


@dataclass(frozen=True)
class Measurement:
    """A metric of a model on held-out data."""

    name: str
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ABC):
    """One task: its texts for the page, its data, and the default model and training.

    `metric` is the name of the metric of `measure` and the function that computes it; `goal` is the
    held-out value that the default model and training reach.
    `held_out` describes the held-out data, and `held_out_texts` has it if it is the reader's own;
    `note` tells how else the data is changed. `pattern_site` names the attention that `pattern`
    describes, and `first_answer` the position of an output whose answer shows most; `classes` are
    the names of a classifier's classes.
    """

    metric: ClassVar[tuple[str, Metric]]

    name: str = ""
    title: str = ""
    explanation: str = ""
    expectation: str = ""
    examples: tuple[str, ...] = ()
    tokenizer: TrainedWith
    model: TransformerConfig
    training: TrainConfig
    goal: float = 0.0
    higher_is_better: bool = True
    held_out: str = ""
    held_out_texts: tuple[str, ...] = ()
    note: str = ""
    pattern_site: str = ""
    first_answer: int = 0
    classes: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        return self.examples[0]

    @property
    def measured_between(self) -> tuple[float, float]:
        """The range of its metric: a share, or nats per token up to those of a uniform guess."""
        return (0.0, 1.0) if self.higher_is_better else (0.0, math.log(self.model.vocab_size))

    @property
    @abstractmethod
    def held_out_batch(self) -> Batch:
        """The examples that `measure` reads; none of them is in any batch."""

    @property
    def training_size(self) -> int | None:
        """The number of training examples; None if they are sampled without end."""
        return None

    @abstractmethod
    def batch(self, step: int, training: TrainConfig) -> Batch:
        """The batch of this step: a function of (training.seed, step), without held-out data."""

    def measure(self, model: Transformer) -> Measurement:
        name, of = self.metric
        return Measurement(name, value_of(of, model, self.held_out_batch))

    def held_out_sample(self, rows: int) -> Batch:
        """At most so many rows of the held-out set: evenly spaced, so always the same."""
        total = len(self.held_out_batch.labels)
        rows = min(rows, total)
        return self.held_out_batch.rows(torch.arange(rows) * total // rows)

    def within(self, tokens: int) -> "Task":
        """The task for a model that reads at most `tokens` tokens; TextError if that is too few."""
        raise TextError(
            f"The texts of this task have up to {self.model.max_len:,} tokens and this model reads "
            f"{tokens:,}: choose another one to start from."
        )

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """The expected attention at `pattern_site`, or None where there is no expectation.

        `target` is what the decoder of an encoder-decoder reads, `<s>` first; row i
        belongs to the query that predicts token i + 1.
        """
        return None

    def answer(self, source: Tokens) -> Tokens:
        """The right output of an encoder-decoder for this source; empty if it is not known."""
        return ()

    def answer_text(self, source: Tokens) -> str:
        return self.tokenizer.decode([token.id for token in self.answer(source)])

    def answer_of(self, words: Iterable[str], source: Tokens) -> Tokens:
        """These words as tokens, with the end token of the source after them."""
        tokens = [Token(self.tokenizer.id_of(word), word) for word in words]
        return [*tokens, *(token for token in source[-1:] if token.special)]


Sizes = dict[str, Any]
SMALL: Sizes = {"d_model": 64, "n_layers": 1, "n_heads": 4, "d_ff": 128, "scale_embedding": False}
"""Embeddings are not scaled up, so that positions weigh as much as tokens."""
SMALLER: Sizes = SMALL | {"d_model": 32, "n_heads": 2}


def model_config(
    kind: str, tokenizer: TrainedWith, classes: Sequence[str] = (), **sizes: Any
) -> TransformerConfig:
    """A decoder continues a text, an encoder-decoder answers it with another one, up to the end.

    An encoder gives it one of these classes, or where there are none, each token a token.
    """
    if kind != "encoder":
        sizes["bos_id"] = tokenizer.bos_id
    if kind == "encoder-decoder":
        sizes["generation"] = GenerationConfig.ending_with(tokenizer.eos_id)
    if classes:
        sizes |= {"head": "classifier", "n_classes": len(classes)}
    sizes |= {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad_id}
    return TransformerConfig(kind=kind, **sizes)


def toy_training(steps: int, lr: float) -> TrainConfig:
    return TrainConfig(steps=steps, batch_size=64, lr=lr, warmup=50, schedule="linear")


@dataclass(frozen=True, eq=False, kw_only=True)
class BuiltinTask(Task):
    """A task whose data the program generates; its class defines its model and training."""

    kind: ClassVar[str] = "encoder-decoder"
    sizes: ClassVar[Sizes]
    steps: ClassVar[int]
    lr: ClassVar[float] = 5e-3

    @classmethod
    @abstractmethod
    def vocabulary(cls) -> TrainedWith:
        """The tokenizer."""

    @classmethod
    def build(cls) -> Self:
        tokenizer = cls.vocabulary()
        model = model_config(cls.kind, tokenizer, cls.classes, **cls.sizes)
        return cls(tokenizer=tokenizer, model=model, training=toy_training(cls.steps, cls.lr))


MEASURED = 256
"""Held-out examples of a generated task that the metric reads."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedTask(BuiltinTask):
    """A task whose examples are sampled without end."""

    @abstractmethod
    def draw(self, count: int, random: torch.Generator) -> Rows:
        """Random examples, padded at the end with zeros."""

    @abstractmethod
    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        """The batch of these examples; `random` is None if they are held out."""

    def identity(self, rows: Rows) -> Rows:
        """The rows that the hash reads for these examples."""
        return rows

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        rows = self.draw(training.batch_size, random)
        while (again := is_held_out(self.identity(rows))).any():
            rows[again] = self.draw(int(again.sum()), random)
        return self.batch_of(rows, random)

    @cached_property
    def held_out_batch(self) -> Batch:
        """Different examples: `MEASURED` of them, or as many as there are."""
        random = generator(seed=0, step=0)
        rows = self.draw(0, random)
        for _ in range(20):
            more = self.draw(MEASURED * ONE_IN, random)
            rows = torch.cat([rows, more[is_held_out(self.identity(more))]]).unique(dim=0)
            if len(rows) >= MEASURED:
                break
        return self.batch_of(some_rows(rows, MEASURED), None)


@dataclass(frozen=True, eq=False, kw_only=True)
class CustomTask(Task):
    """A task made of a text, or of a table with these `columns`: the reader's, or `bundled`.

    `tokenizers` are the kinds that the reader can have trained, the usual one first; if there are
    any, a tokenizer.json works as well, for a model that reads with the special tokens of `reads`.
    """

    bundled: ClassVar[BundledText]
    columns: ClassVar[tuple[str, ...]] = ()
    tokenizers: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[Reads] = DECODER

    @classmethod
    @abstractmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> "CustomTask":
        """The task of this text; TextError says in one sentence why it cannot be trained on."""


def check_fit(task: Task, model: TransformerConfig) -> None:
    """TextError if this model cannot read the batches of the task: it is that of another one."""
    ours, sizes = task.model, ("n_classes", "vocab_size", "src_vocab_size")
    has_room = all((getattr(ours, name) or 0) <= (getattr(model, name) or 0) for name in sizes)
    ours_reads_pairs, reads_pairs = (config.kind == "encoder-decoder" for config in (ours, model))
    if ours.head != model.head or ours_reads_pairs != reads_pairs or not has_room:
        raise TextError(
            f"This model does not read the task {task.name}: a file in the run's folder is that of "
            "another run, or its text was cut. Start a new run."
        )


def generator(seed: int, step: int) -> torch.Generator:
    """Random numbers that depend on the seed and the step alone."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step * 7_919 + 17) % 2**63)


def pattern_of(task: Task, source: Tokens, target: Tokens, shape: Sequence[int]) -> Pattern:
    """The task's pattern if it has one for a map of this shape, else None."""
    pattern = task.pattern(source, target)
    expects = pattern is not None and pattern.shape == tuple(shape) and bool(pattern.any())
    return pattern if expects else None


def pattern_score(
    weights: Float[Tensor, "*heads q k"], pattern: Float[Tensor, "q k"]
) -> Float[Tensor, "*heads"]:
    """Each head's attention on the expected keys, averaged over the rows with an expectation."""
    expecting = pattern.sum(-1) > 0
    on_pattern = (weights * (pattern > 0)).sum(-1)
    return on_pattern[..., expecting].mean(-1)
