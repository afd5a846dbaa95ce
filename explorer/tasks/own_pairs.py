"""Pairs of texts, of a table with the columns source and target: real translations, or yours."""

import random
from dataclasses import dataclass
from typing import ClassVar, Self

from explorer.tasks.batches import PairRows, pair_batch, pair_rows, sampled_pairs
from explorer.tasks.bundled_text import PAIRS, BundledText
from explorer.tasks.own_data import (
    SUBWORDS,
    WORDS,
    Pairs,
    read_pairs,
    set_aside,
    tokenizer_for,
    typical,
    unseen,
)
from explorer.tasks.task import SMALL, CustomTask, Sizes, generator, model_config, toy_training
from explorer.tasks.task_metrics import token_accuracy
from explorer.text import SOURCE, TextError, TrainedWith
from explorer.text.token import Reads
from models.config import TrainConfig
from models.training import Batch

MIN_SOURCES = 40
SIZES: Sizes = SMALL | {"n_encoder_layers": 2, "dropout": 0.1, "scale_embedding": True}
MAX_TOKENS = 128
"""The most tokens of either side. A longer pair is refused: half of it would teach nonsense."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTask(CustomTask):
    """Pairs in a fixed order; those of some sources are held out."""

    metric = ("right tokens", token_accuracy)
    bundled: ClassVar[BundledText] = PAIRS
    columns: ClassVar[tuple[str, ...]] = ("source", "target")
    tokenizers: ClassVar[tuple[str, ...]] = (WORDS, SUBWORDS)
    reads: ClassVar[Reads] = SOURCE

    name: str = "pairs"
    title: str = "Pairs of texts"
    explanation: str = (
        "The model reads the source of a pair and writes its target: a real English sentence and "
        f"its French, or pairs of yours with at least {MIN_SOURCES} different sources. A fifth of "
        "them, at most 500, is held out with all their targets."
    )
    expectation: str = (
        "Cross-attention goes from each target token to the source tokens that it stands for."
    )
    goal: float = 0.6

    training_rows: PairRows
    held_out_rows: Batch

    @classmethod
    def build(cls, text: str, tokenizer: str | TrainedWith | None = None) -> Self:
        pairs, left_out = read_pairs(text, ("source", "target"))
        training, held_out = split_pairs([*pairs])
        reads = tokenizer_for(tokenizer or WORDS, "\n".join(map("\n".join, training)), SOURCE)
        rows, sources = pair_rows(reads, training), {source for source, _ in training}
        held_out, same = unseen(reads, held_out, sources, "source")
        held_out_rows = pair_rows(reads, held_out)
        longest = max(side.shape[1] for side in (*rows, *held_out_rows))
        if longest > MAX_TOKENS:
            raise TextError(
                f"A pair has {longest} tokens on one side; at most {MAX_TOKENS} fit, so shorten it "
                "or leave it out."
            )
        model = model_config("encoder-decoder", reads, max_len=longest + 1, **SIZES)
        count = len({source for source, _ in held_out})
        return cls(
            examples=typical(sorted(sources)),
            tokenizer=reads,
            model=model,
            training=toy_training(600, lr=3e-3),
            held_out=f"{len(held_out):,} pairs, all those of {count:,} sources",
            held_out_texts=tuple(map("\n".join, held_out)),
            note=" ".join(filter(None, (left_out, same))),
            training_rows=rows,
            held_out_rows=pair_batch(reads, *held_out_rows),
        )

    @property
    def held_out_batch(self) -> Batch:
        return self.held_out_rows

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        return sampled_pairs(self.tokenizer, self.training_rows, training.batch_size, random)

    @property
    def training_size(self) -> int:
        return len(self.training_rows[0])


def split_pairs(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Training and held-out pairs, always the same; the pairs of a source stay together."""
    sources = sorted({source for source, _ in pairs})
    if len(sources) < MIN_SOURCES:
        raise TextError(
            f"The table has {len(sources)} different sources; give at least {MIN_SOURCES}."
        )
    random.Random(0).shuffle(sources)
    aside = set(set_aside(sources))
    training = [pair for pair in pairs if pair[0] not in aside]
    return training, [pair for pair in pairs if pair[0] in aside]
