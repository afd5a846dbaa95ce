"""Write a date as year-month-day: what comes last in the text is written first."""

import string
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate, pairwise
from typing import ClassVar

import torch

from explorer.tasks.batches import Rows, pair_batch, pair_rows
from explorer.tasks.task import SMALL, GeneratedTask, Pattern, Sizes, Tokens
from explorer.tasks.task_metrics import exact_match
from explorer.text import SOURCE, TrainedWith, character_tokenizer
from models.training import Batch

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAYS = LAST.toordinal() - FIRST.toordinal() + 1
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
FORMATS: Mapping[str, Callable[[date], tuple[str, ...]]] = {
    "%d %B %Y": lambda day: (str(day.day), " ", MONTHS[day.month - 1], " ", str(day.year)),
    "%B %d, %Y": lambda day: (MONTHS[day.month - 1], " ", str(day.day), ", ", str(day.year)),
    "%d %b %Y": lambda day: (str(day.day), " ", MONTHS[day.month - 1][:3], " ", str(day.year)),
    "%d.%m.%Y": lambda day: (str(day.day), ".", str(day.month), ".", str(day.year)),
}
"""How a date is read and its parts are written; no text means two dates."""
LONGEST = len("september 30, 2021") + 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Dates(GeneratedTask):
    """Days of two centuries; one in eight is held out in every way of writing it."""

    metric = ("exact match", exact_match)
    sizes: ClassVar[Sizes] = SMALL | {"n_encoder_layers": 2, "max_len": LONGEST}
    steps: ClassVar[int] = 600

    name: str = "dates"
    title: str = "Dates to ISO"
    explanation: str = (
        "The model reads a date in one of four formats and writes it as year-month-day. It has to "
        "know the months, and to begin with what the text ends with."
    )
    expectation: str = (
        "Cross-attention begins at the end of the text, where the year is, and then goes to the "
        "month and the day wherever they are."
    )
    examples: tuple[str, ...] = ("5 march 2021", "september 30, 1987", "17 aug 2064", "24.12.1999")
    goal: float = 0.98
    held_out: str = "one day in eight, chosen by a hash, in every way of writing it"
    pattern_site: str = "decoder.0.cross_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        letters = f"{string.ascii_lowercase}{string.digits} ,.-"
        return character_tokenizer(letters, SOURCE, lowercase=True)

    def draw(self, count: int, random: torch.Generator) -> Rows:
        """Days counted from 1 on, since the hash takes zeros for padding."""
        return torch.randint(1, DAYS + 1, (count, 1), generator=random)

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        """The days in random formats, or in each format in turn, with their answers."""
        formats = torch.arange(len(rows)) % len(FORMATS)
        if random is not None:
            formats = torch.randint(len(FORMATS), (len(rows),), generator=random)
        dates = [date.fromordinal(FIRST.toordinal() + day - 1) for day in rows[:, 0].tolist()]
        write = [*FORMATS.values()]
        texts = ("".join(write[n](day)) for day, n in zip(dates, formats.tolist(), strict=True))
        pairs = zip(texts, (day.isoformat() for day in dates), strict=True)
        return pair_batch(self.tokenizer, *pair_rows(self.tokenizer, pairs))

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each output digit attends to its source: the same digit, or the month's name.

        A zero of the day that the text lacks attends to the day's digit; hyphens attend to nothing.
        """
        read = _read(source)
        if read is None:
            return None
        expected = torch.zeros(len(target), len(source))
        for row, keys in enumerate(_places(read[1])[: len(target)]):
            expected[row, list(keys)] = 1 / max(1, len(keys))
        return expected

    def answer(self, source: Tokens) -> Tokens:
        read = _read(source)
        return () if read is None else self.answer_of(read[0].isoformat(), source)


def _read(source: Tokens) -> tuple[date, tuple[str, ...]] | None:
    """The date of a text and its parts; None for any other format."""
    text = "".join(token.label for token in source if not token.special).replace("␣", " ")
    for form, write in FORMATS.items():
        with suppress(ValueError):
            parsed = datetime.strptime(text, form).date()
            if "".join(parts := write(parsed)) == text:
                return parsed, parts
    return None


def _places(parts: Sequence[str]) -> list[tuple[int, ...]]:
    """For each character of the answer, the characters of the text that it comes from."""
    starts = [0, *accumulate(map(len, parts))]
    spans = [tuple(range(start, end)) for start, end in pairwise(starts)]
    at, day = (0, 2) if parts[0] in MONTHS else (2, 0)
    months = [spans[at], spans[at]] if parts[at].isalpha() else _digits(spans[at])
    return [*((place,) for place in spans[4]), (), *months, (), *_digits(spans[day])]


def _digits(span: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The places of the tens and of the ones."""
    return [span[:1], span[-1:]]
