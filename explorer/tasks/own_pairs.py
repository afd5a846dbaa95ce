"""The reader's own pairs of texts: a table with the columns source and target."""

import random
from dataclasses import dataclass

from explorer.tasks.batches import Rows, pair_batch, sample_rows, sentence_rows, trimmed
from explorer.tasks.own_table import read_pairs
from explorer.tasks.own_tokenizer import WORDS, Pairs, tokenizer_for, typical, unseen
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import token_accuracy
from explorer.tasks.task_models import encoder_decoder
from explorer.text import SOURCE, TextError, TrainedWith
from explorer.text.token import PAD
from models.config import TrainConfig
from models.training import Batch

MIN_SOURCES = 40
NAME = "pairs"
TITLE = "Your own pairs of texts"
EXPLANATION = (
    "The model reads the source of a pair and writes its target: a translation, an answer, another "
    f"form. Give at least {MIN_SOURCES} different sources. A fifth of them, at most 500, is kept "
    "aside with all their targets."
)
EXPECTATION = "Cross-attention goes from each target token to the source tokens that it stands for."

HELD_OUT_PAIRS = 500
MAX_TOKENS = 128
"""Of either side. A longer pair is refused: half of it would teach nonsense."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTask(Task):
    """Pairs in a fixed order; those of some sources are held out."""

    metric = ("right tokens", token_accuracy)

    training_rows: tuple[Rows, Rows]
    held_out_rows: Batch

    @property
    def held_out_batch(self) -> Batch:
        return self.held_out_rows

    def batch(self, step: int, training: TrainConfig) -> Batch:
        source, target = self.training_rows
        chosen = sample_rows(training.batch_size, len(source), generator(training.seed, step))
        pad_id = self.tokenizer.id_of(PAD)
        sides = (trimmed(side[chosen], pad_id) for side in (source, target))
        return pair_batch(self.tokenizer, *sides)

    @property
    def training_size(self) -> int:
        return len(self.training_rows[0])


def pairs_from_csv(table: str, tokenizer: str | TrainedWith | None = None) -> PairTask:
    """The task of this table. TextError, in one sentence, where nothing can be learned from it."""
    training, held_out = split_pairs(read_pairs(table, ("source", "target")))
    reads = tokenizer_for(tokenizer or WORDS, "\n".join(map("\n".join, training)), SOURCE)
    known = _rows(reads, training)
    held_out = unseen(reads, held_out, {source for source, _ in training})
    if not held_out:
        raise TextError(
            "With this tokenizer every held-out source reads like one that is trained on: choose "
            "another tokenizer, or give sources that differ more."
        )
    asked = _rows(reads, held_out)
    longest = max(side.shape[1] for side in (*known, *asked))
    if longest > MAX_TOKENS:
        raise TextError(
            f"A pair has {longest} tokens on one side; at most {MAX_TOKENS} fit, so shorten it or "
            "leave it out."
        )
    return PairTask(
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        examples=tuple(typical(sorted({source for source, _ in training}))),
        tokenizer=reads,
        model=encoder_decoder(
            reads,
            d_model=64,
            n_layers=1,
            n_encoder_layers=2,
            n_heads=4,
            d_ff=128,
            max_len=longest + 1,
            dropout=0.1,
        ),
        training=TrainConfig(steps=600, batch_size=64, lr=3e-3, warmup=50, schedule="linear"),
        goal=0.6,
        held_out=f"{len(held_out):,} pairs, all those of "
        f"{len({source for source, _ in held_out}):,} sources",
        held_out_texts=tuple(map("\n".join, held_out)),
        training_rows=known,
        held_out_rows=pair_batch(reads, *asked),
    )


def split_pairs(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Training and held-out pairs, always the same; the pairs of a source stay together."""
    sources = sorted({source for source, _ in pairs})
    if len(sources) < MIN_SOURCES:
        raise TextError(
            f"The table has {len(sources)} different sources; give at least {MIN_SOURCES}."
        )
    random.Random(0).shuffle(sources)
    aside = set(sources[:: max(5, round(len(sources) / HELD_OUT_PAIRS))][:HELD_OUT_PAIRS])
    training = [pair for pair in pairs if pair[0] not in aside]
    return training, [pair for pair in pairs if pair[0] in aside]


def _rows(tokenizer: TrainedWith, pairs: Pairs) -> tuple[Rows, Rows]:
    source, target = (list(side) for side in zip(*pairs, strict=True))
    return (
        sentence_rows(tokenizer, source, special=False),
        sentence_rows(tokenizer, target, special=False),
    )
