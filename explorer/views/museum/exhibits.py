"""The exhibits: fourteen mistakes from the documents, read from exhibits.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOUR_TEXTS = (
    "The four texts teach the Transformer to beginners, who copy their code: a lecture handout "
    "(“The Transformer: Let's code from scratch”), a notebook (“Implementing Transformers "
    "From Scratch Using Pytorch”), a web tutorial on the encoder and a repository's README "
    "(“Transformer Implementation from Scratch”). Most of their fourteen mistakes run "
    "without an error, so only a measurement shows them."
)
FILE = Path(__file__).with_name("exhibits.toml")


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One mistake; `name` is its key in `MISTAKES`, `instrument` the one that shows it.

    `effect` says in a sentence what it does to the model.

    `numbers` are rows of `columns`, for the document's configuration. `note` says how to read them.
    """

    number: int
    name: str
    title: str
    effect: str
    where: str
    error: str
    right: str
    how_to_spot: str
    instrument: str = ""
    note: str = ""
    columns: tuple[str, ...] = ("measurement", "with the mistake", "right")
    numbers: tuple[tuple[str, ...], ...] = ()

    @property
    def label(self) -> str:
        return f"{self.number} · {self.title}"


EXHIBITS = tuple(Exhibit(**row) for row in tomllib.loads(FILE.read_text("utf-8"))["exhibit"])
BY_LABEL = {exhibit.label: exhibit for exhibit in EXHIBITS}
FINDABLE = tuple(exhibit for exhibit in EXHIBITS if exhibit.instrument)
