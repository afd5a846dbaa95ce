"""What the Museum shows: an exhibit, every instrument of the quiz, and the systems."""

from dataclasses import replace

import torch

from explorer.views.museum.exhibits import FINDABLE
from explorer.views.museum.find_mistake import mistakes_in_order
from explorer.views.museum.mistakes import MISTAKES
from models.presets import PRESETS
from models.transformer import Transformer
from tests.browser.truth.core import TRANSLATION, doubled, parameters, sinusoid
from tests.browser.truth.measured import INSTRUMENTS, Run, gradients
from tests.browser.truth.screen import Claim, rows, said
from tests.browser.visiting import Visitor


def exhibits(visitor: Visitor) -> list[Claim]:
    """The doubled exponent at the document's own width of 512."""
    _, wrong, right = next(line for line in rows(visitor, nth=2) if line[0].startswith("PE(1)"))
    return [
        Claim(f"PE(1)[{at}]", shown, formula(1, at, 512))
        for numbers, formula in ((wrong, doubled), (right, sinusoid))
        for at, shown in zip(range(4), numbers.split(), strict=True)
    ]


def question_of(mistake: str) -> str:
    """The number of the question of the quiz whose run has this mistake."""
    config = TRANSLATION.model.config
    fitting = [each for each in FINDABLE if MISTAKES[each.name].misfit(config) is None]
    return str(1 + [each.name for each in mistakes_in_order(fitting, 0)].index(mistake))


def hold(visitor: Visitor, name: str, mistake: str) -> None:
    """Hold an instrument to the run with this mistake, in the page that is open."""
    question = question_of(mistake)
    if visitor.query().get("question", "1") != question:
        visitor.page.get_by_label("Question, of").fill(question)
        visitor.until_run(lambda: visitor.page.keyboard.press("Enter"))
    if visitor.query().get("instrument", "Shapes") != name:
        visitor.other_view("instrument", name)


def instrument(name: str, visitor: Visitor) -> list[Claim]:
    """What it says of the run with its mistake, and of the right one."""
    held = INSTRUMENTS[name]
    hold(visitor, name, held.mistake)
    target, labels = TRANSLATION.written[:, :-1], TRANSLATION.written[:, 1:]
    right = Run(TRANSLATION.model, TRANSLATION.ids, target, labels, TRANSLATION.head)
    wrong = replace(right, model=MISTAKES[held.mistake].make(right.model))
    shown = said(visitor, rf"{name}, of the model with a mistake\s+(.+)\s+As it should be: (.+)")
    if name == "Generation":  # its sentence has the words, the line under it how many differ
        shown = _both(visitor, "distinct tokens")
    made = []
    for which, text, run in zip(("wrong", "right"), shown, (wrong, right), strict=True):
        made += held.claims(f"{name}, {which}", text, run)
    if name == "Loss and gradients":
        for run in (wrong, right):
            for site, true in gradients(run).items():
                text = _both(visitor, f"gradient at {site}, all tokens")[run is right]
                made.append(Claim(f"gradient at {site}", text, true))
    return made


def _both(visitor: Visitor, line: str) -> list[str]:
    """A line of the table, for the run with the mistake and as it should be; once if it is one."""
    wrong, _, right = dict(rows(visitor, line))[line].partition("; should be ")
    return [wrong, right or wrong]


def systems(visitor: Visitor) -> list[Claim]:
    """How large each document's system is."""
    made = []
    for name, _, count, size in rows(visitor)[1:]:
        with torch.device("meta"):
            true = parameters(Transformer(PRESETS[name]()))
        made.append(Claim(f"parameters of {name}", count, true))
        made.append(Claim(f"megabytes of {name}", size, 4 * true / 1e6))
    return made
