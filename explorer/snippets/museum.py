"""The lines that make a mistake in a model and hold the instrument to both runs."""

from __future__ import annotations

from pathlib import Path

from explorer.museum.exhibits import Exhibit
from explorer.reading import Reading
from explorer.snippets.passes import hint, path

RUNS = """from pathlib import Path

from explorer.library import opened_from
from explorer.museum.case import case_of
from explorer.museum.instruments import INSTRUMENTS
from explorer.reading import read
from models.mistakes import MISTAKES

folder = {folder!r}{hint}
opened = opened_from(Path(folder), "model")
right = case_of(opened, read(opened, {text!r}, {pair!r}), {look!r})
wrong = right.of(MISTAKES[{mistake!r}].make(opened.model))
for run in ({first}, right):
    print(INSTRUMENTS[{sign!r}](run).said)
"""
NUMBERS = """from explorer.museum.documents import FIGURES

for line in FIGURES[{mistake!r}]():
    print(*line)
"""
LEARNT = """from explorer.museum.learning import random_labels

for point in random_labels():
    print(point.step, point.curve, point.value)
"""
PRESET = """from models import Transformer
from models.presets import PRESETS

model = Transformer(PRESETS[{preset!r}]())
print(model.n_parameters)
"""


def both_runs(
    exhibit: Exhibit, reading: Reading, folder: Path, look: tuple[str, int, int], is_made: bool
) -> str:
    """What the instrument says of the run with the mistake, if it is made, and of the right one."""
    return RUNS.format(
        folder=path(folder),
        hint=hint(folder),
        text=reading.text,
        pair=reading.pair,
        look=look,
        mistake=exhibit.name,
        first="wrong" if is_made else "right",
        sign=exhibit.sign,
    )


def of_the_document(exhibit: Exhibit) -> str:
    """The document's own numbers, or the two trainings of one that has none."""
    return LEARNT if exhibit.name == "random-labels" else NUMBERS.format(mistake=exhibit.name)


def preset(name: str) -> str:
    """A document's system, and how large it is."""
    return PRESET.format(preset=name)
