"""The texts that come with the app, for the tasks made of a text: packed in the folder `data`."""

import gzip
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).with_name("data")
LARGEST_TEXT = 1_000_000
"""Bytes of an unpacked text; whatever a file holds beyond them is not read."""


@dataclass(frozen=True)
class BundledText:
    """One of them, by its file; `attribution` names whose it is and its licence."""

    file: str
    attribution: str

    @cached_property
    def text(self) -> str:
        with gzip.open(FOLDER / self.file) as packed:
            return packed.read(LARGEST_TEXT).decode()


REVIEWS = BundledText(
    "reviews.csv.gz",
    "Review sentences: Dimitrios Kotzias et al., From Group to Individual Labels using Deep "
    "Features, KDD 2015, CC BY 4.0.",
)
PAIRS = BundledText("pairs.csv.gz", "English and French sentence pairs: Tatoeba, CC BY 2.0 FR.")
PLAYS = BundledText(
    "shakespeare.txt.gz", "Text: plays of William Shakespeare, in the public domain."
)
