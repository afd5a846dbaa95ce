"""The lines that make a mistake in a model and hold the instrument to both runs."""

from __future__ import annotations

from pathlib import Path

from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import hint, path
from explorer.views.museum.exhibits import Exhibit

RUNS = """from pathlib import Path

from explorer.catalog.opened_model import opened_from
from explorer.views.museum.case import case_of
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.inference.forward_pass import run_text
from explorer.views.museum.mistakes import MISTAKES

folder = {folder!r}{hint}
opened = opened_from(Path(folder), "model")
right = case_of(opened, run_text(opened, {text!r}, {pair!r}), {look!r})
{made}for run in {runs}:
    print(INSTRUMENTS[{sign!r}](run).said)
"""
MADE = "wrong = right.of(MISTAKES[{mistake!r}].make(opened.model))\n"
NUMBERS = """from explorer.views.museum.document_numbers import FIGURES

for line in FIGURES[{mistake!r}]():
    print(*line)
"""
LEARNT = """from explorer.views.museum.paired_training import random_labels

for point in random_labels():
    print(point.step, point.curve, point.value)
"""
PRESET = """from models import Transformer
from models.presets import PRESETS

model = Transformer(PRESETS[{preset!r}]())
print(model.n_parameters)
"""


def both_runs(
    sign: str, mistake: str, forward: ForwardPass, folder: Path, look: tuple[str, int, int]
) -> str:
    """What the instrument says of the run with a mistake, if one is made, and of the right one."""
    return RUNS.format(
        folder=path(folder),
        hint=hint(folder),
        text=forward.text,
        pair=forward.pair,
        look=look,
        made=MADE.format(mistake=mistake) if mistake else "",
        runs="(wrong, right)" if mistake else "(right,)",
        sign=sign,
    )


def of_the_document(exhibit: Exhibit) -> str:
    """The document's own numbers, or the two trainings of one that has none."""
    return LEARNT if exhibit.name == "random-labels" else NUMBERS.format(mistake=exhibit.name)


def preset(name: str) -> str:
    """A document's system, and how large it is."""
    return PRESET.format(preset=name)
