"""Sentences with a class each, from a table with the columns text and label."""

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch

from explorer.tasks.batches import sampled_batch, sentence_rows
from explorer.tasks.bundled_text import REVIEWS, BundledText
from explorer.tasks.own_data import (
    MOST_HELD_OUT,
    SUBWORDS,
    WORDS,
    read_pairs,
    set_aside,
    tokenizer_for,
    typical,
    unseen,
)
from explorer.tasks.task import SMALL, CustomTask, Sizes, generator, model_config, toy_training
from explorer.tasks.task_metrics import accuracy
from explorer.text import CLASSIFIER, TextError, TrainedWith
from explorer.text.token import PAD, Reads
from models.config import TrainConfig
from models.training import Batch

HIDDEN = "In training a random half of the tokens of every sentence is replaced by padding."
REVIEW_TOKENS = 96
MIN_SENTENCES = 40
MAX_CLASSES = 20

SIZES: Sizes = SMALL | {
    "d_head": 4,
    "d_ff": 0,
    "max_len": REVIEW_TOKENS,
    "positions": "none",
    "final_norm": False,
    "dropout": 0.75,
    "pooling": "mean",
}
"""Two thousand sentences are few: with narrow heads, no feed-forward layer and no positions the
model can hardly memorize them."""

Labelled = list[tuple[str, int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class SentenceTask(CustomTask):
    """Sentences with a class each; in training some words are replaced by padding."""

    metric = ("accuracy", accuracy)
    bundled: ClassVar[BundledText] = REVIEWS
    columns: ClassVar[tuple[str, ...]] = ("text", "label")
    reads: ClassVar[Reads] = CLASSIFIER

    goal: float = 0.82
    training_rows: Batch
    held_out_rows: Batch
    word_dropout: float = 0.5
    table_note: str = ""
    """What of the table is left out, or not as one would expect."""

    @classmethod
    def of_sentences(
        cls,
        training: Labelled,
        held_out: Labelled,
        classes: tuple[str, ...],
        reads: TrainedWith,
        table_note: str,
    ) -> Self:
        model = model_config("encoder", reads, classes, **SIZES)
        few = toy_training(750, lr=3e-3).replace(weight_decay=0.1, label_smoothing=0.1)
        texts = [text for text, _ in (*training, *held_out)]
        cut = sum(len(ids) > REVIEW_TOKENS for ids in reads.many_ids(texts))
        counts = Counter(classes[label] for _, label in held_out)
        shares = ", ".join(f"{counts[name]:,} labelled {name[:40]}" for name in classes)
        return cls(
            examples=typical([text for text, _ in training]),
            tokenizer=reads,
            model=model,
            training=few,
            held_out=f"{len(held_out):,} sentences: {shares}",
            training_rows=labelled_batch(reads, training),
            held_out_rows=labelled_batch(reads, held_out),
            table_note=table_note,
            note=_note(cut, len(texts), REVIEW_TOKENS, table_note),
            held_out_texts=tuple(text for text, _ in held_out),
            classes=classes,
        )

    @property
    def held_out_batch(self) -> Batch:
        return self.held_out_rows

    @property
    def training_size(self) -> int:
        return len(self.training_rows.labels)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        pad_id = self.tokenizer.id_of(PAD)
        batch = sampled_batch(self.training_rows, training.batch_size, random, pad_id)
        hidden = torch.rand(batch.inputs[0].shape, generator=random) < self.word_dropout
        hidden[:, 0] = False  # `<cls>` stays; padding is masked
        return Batch((batch.inputs[0].masked_fill(hidden, pad_id),), batch.labels)

    def as_it_is(self) -> "SentenceTask":
        """The task without hidden words, for a model that was trained before."""
        return replace(self, word_dropout=0.0, note=self.note.removeprefix(HIDDEN).strip())

    def within(self, tokens: int) -> "SentenceTask":
        pad_id, parts = self.tokenizer.id_of(PAD), (self.training_rows, self.held_out_rows)
        count = sum(len(part.labels) for part in parts)
        cut = sum(int((part.inputs[0][:, tokens:] != pad_id).any(1).sum()) for part in parts)
        training, held_out = (Batch((part.inputs[0][:, :tokens],), part.labels) for part in parts)
        return replace(
            self,
            training_rows=training,
            held_out_rows=held_out,
            model=self.model.replace(max_len=tokens),
            note=_note(cut, count, tokens, self.table_note),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Reviews(SentenceTask):
    name: str = "reviews"
    title: str = "Sentiment of real reviews"
    explanation: str = (
        "The model says whether a sentence of a review is positive. It was trained on about two "
        "thousand real sentences and reads any sentence; words outside its vocabulary are unknown."
    )
    expectation: str = (
        "Every token attends to the words that express a judgement, and little to articles and "
        "names."
    )
    examples: tuple[str, ...] = (
        "The food was delicious and the staff friendly",
        "I would not recommend this place",
        "Works great, and the battery lasts all day",
        "The plot made no sense at all",
        "The food was terrible and the staff unfriendly",
    )

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        labelled, classes, note = read_table(text)
        training, held_out = split_reviews(labelled)
        reads = tokenizer_for(WORDS, joined(training), CLASSIFIER)
        task = cls.of_sentences(training, held_out, classes, reads, note)
        return replace(task, examples=cls.examples)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sentences(SentenceTask):
    tokenizers: ClassVar[tuple[str, ...]] = (WORDS, SUBWORDS)

    name: str = "sentences"
    title: str = "Labelled sentences"
    explanation: str = (
        "The model reads a sentence of a review, or of a table of yours that has at least "
        f"{MIN_SENTENCES}, and says which label it has. A fifth of them, at most 500, is held out, "
        "to measure the model on sentences that it was not trained on."
    )
    expectation: str = (
        "Tokens attend to the words that tell the labels apart, and little to all others."
    )

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        labelled, classes, note = read_table(text)
        training, held_out = split_sentences(labelled)
        reads = tokenizer_for(tokenizer or WORDS, joined(training), CLASSIFIER)
        held_out, same = unseen(reads, held_out, {text for text, _ in training}, "sentence")
        return cls.of_sentences(training, held_out, classes, reads, f"{note} {same}".strip())


def read_table(table: str) -> tuple[Labelled, tuple[str, ...], str]:
    """The distinct sentences with the index of their class, the names of the classes, and a note.

    The note says what of the table is left out; of several labels of a sentence the last counts.
    """
    pairs, note = read_pairs(table, ("text", "label"))
    rows, lines = dict([*pairs]), dict[str, list[int]]()
    for (text, _), line in pairs.items():
        lines.setdefault(text, []).append(line)
    if several := [numbers for numbers in lines.values() if len(numbers) > 1]:
        note = (
            f"Sentences with several labels, of which the last counts: {len(several):,}, the first "
            f"in the lines {' and '.join(map(str, sorted(several[0])))}. {note}"
        ).strip()
    classes = tuple(sorted(set(rows.values())))
    if rows and len(classes) == 1:
        raise TextError(
            f"All sentences have the label {classes[0][:40]!r}: a classifier needs at least two "
            "labels."
        )
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise TextError(
            f"The label column has {len(classes)} different values, not 2 to {MAX_CLASSES}."
        )
    if len(rows) < MIN_SENTENCES:
        raise TextError(
            f"The table has {len(rows)} different sentences; give at least {MIN_SENTENCES}."
        )
    return [(text, classes.index(label)) for text, label in rows.items()], classes, note


def split_reviews(labelled: Labelled) -> tuple[Labelled, Labelled]:
    """Training and held-out sentences: always those of the model that ships with the app."""
    return _split(labelled, by_class(labelled)[::5][:MOST_HELD_OUT])


def split_sentences(labelled: Labelled) -> tuple[Labelled, Labelled]:
    """Training and held-out sentences, always the same; a class's only sentence is trained on."""
    sizes = Counter(label for _, label in labelled)
    held_out = set_aside(by_class(labelled))
    return _split(labelled, [item for item in held_out if sizes[item[1]] > 1])


def by_class(labelled: Labelled) -> Labelled:
    """The sentences of each class together, shuffled."""
    order = sorted(labelled)
    random.Random(0).shuffle(order)
    return sorted(order, key=lambda item: item[1])


def _split(labelled: Labelled, held_out: Labelled) -> tuple[Labelled, Labelled]:
    return sorted(set(labelled) - set(held_out)), held_out


def joined(labelled: Labelled) -> str:
    return "\n".join(text for text, _ in labelled)


def _note(cut: int, count: int, tokens: int, table_note: str) -> str:
    """A note on the hidden words, on the sentences that are cut, and on the table."""
    cuts = f"Cut at {tokens} tokens: {cut:,} of {count:,}." if cut else ""
    return " ".join(filter(None, (HIDDEN, cuts, table_note)))


def labelled_batch(tokenizer: TrainedWith, labelled: Labelled) -> Batch:
    """One row for each sentence, truncated where it is too long for the model."""
    rows = sentence_rows(tokenizer, [text for text, _ in labelled])[:, :REVIEW_TOKENS]
    return Batch((rows,), torch.tensor([label for _, label in labelled]))
