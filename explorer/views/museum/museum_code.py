"""The lines that make a mistake in a model and measure the wrong and the right one."""

from __future__ import annotations

from pathlib import Path

from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import hint, how_read, path
from explorer.views.museum.document_numbers import DOCUMENT_NUMBERS

RUNS = """from pathlib import Path

from explorer.catalog.opened_model import opened_from
from explorer.views.museum.measured_run import right_run
from explorer.views.museum.instruments import INSTRUMENTS
from explorer.inference.forward_pass import run_text
from explorer.views.museum.mistakes import MISTAKES

folder = {folder!r}{hint}
opened = opened_from(Path(folder), "model"{how})
right = right_run(opened, run_text(opened, {text!r}, {pair!r}), {head!r})
{made}for run in {runs}:
    print(INSTRUMENTS[{sign!r}](run).said)
"""
MADE = "wrong = right.with_model(MISTAKES[{mistake!r}].make(opened.model))\n"
NUMBERS = """from explorer.views.museum.document_numbers import DOCUMENT_NUMBERS

for line in DOCUMENT_NUMBERS[{mistake!r}]():
    print(*line)
"""
LEARNED = """from explorer.views.museum.paired_training import train_on_random_labels

for point in train_on_random_labels():
    print(point.step, point.curve, point.value)
"""
PRESET = """from models import Transformer
from models.presets import PRESETS

model = Transformer(PRESETS[{preset!r}]())
print(model.n_parameters)
"""


def instrument_lines(
    sign: str, mistake: str, forward: ForwardPass, folder: Path, head: tuple[str, int, int]
) -> str:
    """What the instrument says of the model with a mistake, if one is made, and the right one."""
    return RUNS.format(
        folder=path(folder),
        hint=hint(folder),
        how=how_read(forward.is_prompt),
        text=forward.text,
        pair=forward.pair,
        head=head,
        made=MADE.format(mistake=mistake) if mistake else "",
        runs="(wrong, right)" if mistake else "(right,)",
        sign=sign,
    )


def has_document_lines(exhibit: str) -> bool:
    """Whether the document has numbers of its own for this exhibit, or it has its trainings."""
    return exhibit == "random-labels" or exhibit in DOCUMENT_NUMBERS


def document_lines(exhibit: str) -> str:
    """The document's own numbers, or the two trainings of the exhibit that has none."""
    return LEARNED if exhibit == "random-labels" else NUMBERS.format(mistake=exhibit)


def preset_lines(name: str) -> str:
    """A document's system, and its number of parameters."""
    return PRESET.format(preset=name)
