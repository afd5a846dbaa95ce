"""Write a date as year-month-day: what comes last in the text is written first."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explorer.tasks.batches import pair_batch, sentence_rows
from explorer.tasks.held_out import draw_held_out, draw_training
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import exact_match
from explorer.tasks.task_models import encoder_decoder
from explorer.text import SOURCE, Token, character_tokenizer
from models.config import TrainConfig
from models.training import Batch

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAYS = LAST.toordinal() - FIRST.toordinal() + 1
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
FORMATS: tuple[Callable[[date], tuple[str, ...]], ...] = (
    lambda day: (str(day.day), " ", MONTHS[day.month - 1], " ", str(day.year)),
    lambda day: (MONTHS[day.month - 1], " ", str(day.day), ", ", str(day.year)),
    lambda day: (str(day.day), " ", MONTHS[day.month - 1][:3], " ", str(day.year)),
    lambda day: (str(day.day), ".", str(day.month), ".", str(day.year)),
)
"""The ways in which a date is written; none of them can be taken for another date."""
HELD_OUT = 256
LONGEST = len("september 30, 2021") + 1

Days = Int[Tensor, "b 1"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dates(Task):
    """Days of two centuries; one in eight is held out in every way of writing it."""

    metric = ("exact match", exact_match)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        days = draw_training(partial(_days, random), training.batch_size)
        return self.written(days, torch.randint(len(FORMATS), (len(days),), generator=random))

    @cached_property
    def held_out_batch(self) -> Batch:
        days = draw_held_out(partial(_days, generator(seed=0, step=0)), HELD_OUT)
        return self.written(days, torch.arange(len(days)) % len(FORMATS))

    def written(self, days: Days, formats: Int[Tensor, b]) -> Batch:
        """The days in these formats, each with its answer."""
        dates = [date.fromordinal(FIRST.toordinal() + day - 1) for day in days[:, 0].tolist()]
        texts = [
            "".join(FORMATS[form](day)) for day, form in zip(dates, formats.tolist(), strict=True)
        ]
        answers = [day.isoformat() for day in dates]
        source, target = (
            sentence_rows(self.tokenizer, sentences, special=False)
            for sentences in (texts, answers)
        )
        return pair_batch(self.tokenizer, source, target)

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """Each output digit attends to what it comes from: its digit, or the month's name.

        The day's zero, where the text has none, attends to the day's digit; hyphens to nothing.
        """
        places = _places("".join(token.label for token in source if not token.special))
        if places is None:
            return None
        expected = torch.zeros(len(target), len(source))
        for row, keys in enumerate(places[: len(target)]):
            expected[row, list(keys)] = 1 / max(1, len(keys))
        return expected

    def answer(self, source: Sequence[Token]) -> Sequence[Token]:
        day = _read("".join(token.label for token in source if not token.special))
        if day is None:
            return ()
        written = [Token(self.tokenizer.id_of(letter), letter) for letter in day[0].isoformat()]
        return [*written, *(token for token in source[-1:] if token.special)]


def _days(random: torch.Generator, count: int) -> Days:
    """Days counted from 1 on, since the hash takes zeros for padding."""
    return torch.randint(1, DAYS + 1, (count, 1), generator=random)


def _read(text: str) -> tuple[date, tuple[str, ...]] | None:
    """The date of a text and its parts, or None where it is written in another way."""
    text = text.replace("␣", " ")
    words = text.replace(",", " ").replace(".", " ").split()
    if len(words) != 3:
        return None
    months = {name: at + 1 for at, name in enumerate(MONTHS)}
    months |= {name[:3]: at for name, at in months.items()} | {str(n): n for n in range(1, 13)}
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    for year, month, day in ((words[2], words[1], words[0]), (words[2], words[0], words[1])):
        if {year, day} <= set(numbers) and month in months and len(year) == 4 and len(day) < 3:
            try:
                found = date(int(year), months[month], int(day))
            except ValueError:
                continue
            for parts in (form(found) for form in FORMATS):
                if "".join(parts) == text:
                    return found, parts
    return None


def _places(text: str) -> list[tuple[int, ...]] | None:
    """For each character of the answer, the characters of the text that it comes from."""
    found = _read(text)
    if found is None:
        return None
    parts = found[1]
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    spans = [tuple(range(start, end)) for start, end in pairwise(starts)]
    is_month_first = parts[0] in MONTHS
    month, day = (spans[0], spans[2]) if is_month_first else (spans[2], spans[0])
    months = [month, month] if text[month[0]].isalpha() else _digits(month)
    return [*((at,) for at in spans[4]), (), *months, (), *_digits(day)]


def _digits(span: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Tens and ones."""
    return [span[:1], span[-1:]]


def build_dates() -> Dates:
    tokenizer = character_tokenizer(
        f"{string.ascii_lowercase}{string.digits} ,.-", SOURCE, lowercase=True
    )
    return Dates(
        name="dates",
        title="Dates to ISO",
        explanation=(
            "The model reads a date in one of four formats and writes it as year-month-day. It has "
            "to know the months, and to begin with what the text ends with."
        ),
        expectation=(
            "Cross-attention begins at the end of the text, where the year is, and then goes to "
            "the month and the day wherever they are."
        ),
        examples=("5 march 2021", "september 30, 1987", "17 aug 2064", "24.12.1999"),
        tokenizer=tokenizer,
        model=encoder_decoder(
            tokenizer,
            d_model=64,
            n_layers=1,
            n_encoder_layers=2,
            n_heads=4,
            d_ff=128,
            max_len=LONGEST,
            scale_embedding=False,
        ),
        training=TrainConfig(steps=600, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.98,
        held_out="one day in eight, chosen by a hash, in every way of writing it",
        pattern_site="decoder.0.cross_attn",
    )
