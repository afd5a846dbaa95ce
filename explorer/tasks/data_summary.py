"""Counts of a model's training data, taken from the batches of the training itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from jaxtyping import Bool
from torch import Tensor

from explorer.tasks.labelled_sentences import SentenceTask
from explorer.tasks.task import Task
from explorer.text import Token
from models.config import TrainConfig
from models.losses import IGNORE
from models.model import Transformer
from models.trace import trace
from models.training import Batch

COUNTED = 20
"""Batches to count: enough to know shares to a percent or two."""
MOST_COUNTED = 4_096
"""Examples to count at most, however large the batches are."""
PIECE_CHARACTERS = 10_000
"""Characters to tokenize at a time."""
IGNORED = Token(IGNORE, "–", special=True)
"""The token for a position that the loss ignores."""


@dataclass(frozen=True)
class Example:
    """One row of a batch: the tokens that each stack reads, the targets, the class.

    `targets` belong to the last of `inputs`; a classifier has a `label` instead.
    """

    inputs: tuple[tuple[Token, ...], ...]
    targets: tuple[Token, ...]
    label: str = ""


@dataclass(frozen=True)
class DataSummary:
    """Counts over the first batches. `lengths` has a list for each stack, without padding."""

    batches: int
    examples: int
    tokens: int
    unknown: int
    classes: dict[str, int]
    lengths: tuple[tuple[int, ...], ...]
    held_out: int
    held_out_unknown: float
    leaked: int
    """Held-out examples in these batches: should be 0."""


def examples_of(task: Task, batch: Batch, most: int) -> list[Example]:
    """The first rows of a batch, token by token as the model reads them."""
    token_of = task.tokenizer.token
    examples = []
    for row in range(min(most, len(batch.labels))):
        inputs = tuple(tuple(map(token_of, ids[row].tolist())) for ids in batch.inputs)
        if batch.labels.dim() == 1:
            examples.append(Example(inputs, (), task.classes[int(batch.labels[row])]))
            continue
        labels = [IGNORED if i == IGNORE else token_of(i) for i in batch.labels[row].tolist()]
        examples.append(Example(inputs, tuple(labels)))
    return examples


@lru_cache(maxsize=4)
def summary_of(task: Task, training: TrainConfig) -> DataSummary:
    """Counts over the first batches of this training, and over its held-out data."""
    batches = max(1, min(COUNTED, MOST_COUNTED // training.batch_size))
    sample = [task.batch(step, training) for step in range(batches)]
    # An example is identified by all of its words, so no word may be dropped.
    whole = task.as_it_is() if isinstance(task, SentenceTask) else task
    uncut = sample if whole is task else [whole.batch(step, training) for step in range(batches)]
    held_out = task.held_out_batch
    unknown = [_unknown(task, batch.inputs) for batch in sample]
    outside = _unknown(task, held_out.inputs)
    rows = set().union(*map(partial(_rows, task), uncut))
    classes: Counter[str] = Counter()
    if held_out.labels.dim() == 1:
        labels = [int(label) for batch in sample for label in batch.labels]
        classes.update({name: labels.count(at) for at, name in enumerate(task.classes)})
    return DataSummary(
        batches=batches,
        examples=sum(len(batch.labels) for batch in sample),
        tokens=sum(tokens for _, tokens in unknown),
        unknown=sum(count for count, _ in unknown),
        classes=dict(classes),
        lengths=tuple(
            tuple(int(n) for batch in uncut for n in _real(task, batch.inputs[stack]).sum(-1))
            for stack in range(len(held_out.inputs))
        ),
        held_out=len(held_out.labels),
        held_out_unknown=outside[0] / max(1, outside[1]),
        leaked=len(rows & _rows(task, held_out)),
    )


def unknown_words(task: Task, most: int = 10) -> list[tuple[str, int]]:
    """The commonest parts of the reader's held-out texts that become `<unk>`, with their counts.

    Held-out texts show what a model will meet: most vocabularies know every word of the training
    part.
    """
    unk, counts = task.tokenizer.unk_id, Counter[str]()
    pieces = (
        text[at : at + PIECE_CHARACTERS]
        for text in task.held_out_texts
        for at in range(0, len(text), PIECE_CHARACTERS)
    )
    for piece in pieces if unk is not None else ():
        tokens = task.tokenizer.encode(piece)
        counts.update(piece[token.start : token.end] for token in tokens if token.id == unk)
    return counts.most_common(most)


def masks_of(task: Task, batch: Batch, row: int) -> dict[str, Bool[Tensor, "q k"]]:
    """The masks of the model's first layers for one row of a batch; True = may attend."""
    inputs = [ids[row : row + 1] for ids in batch.inputs]
    passed = trace(Transformer(task.model), *inputs, sites=("*.mask",))
    stacks = ("encoder.0.self_attn", "decoder.0.self_attn", "decoder.0.cross_attn")
    sites = (site for site in stacks if f"{site}.mask" in passed)
    return {site: passed[f"{site}.mask"][0, 0] for site in sites}


def _real(task: Task, ids: Tensor) -> Tensor:
    """True where a token is not padding."""
    return ids != (task.tokenizer.pad_id if task.tokenizer.pad_id is not None else -1)


def _unknown(task: Task, inputs: Sequence[Tensor]) -> tuple[int, int]:
    """The numbers of unknown tokens and of all tokens, without padding."""
    unk = task.tokenizer.unk_id
    unknown = 0 if unk is None else sum(int((ids == unk).sum()) for ids in inputs)
    return unknown, sum(int(_real(task, ids).sum()) for ids in inputs)


def _rows(task: Task, batch: Batch) -> set[tuple[int, ...]]:
    """The first input of each row, without padding, which identifies an example."""
    ids = batch.inputs[0]
    return {tuple(row[keep].tolist()) for row, keep in zip(ids, _real(task, ids), strict=True)}
