"""One number followed from the typed letters to the probability, in the equations of the page."""

import math
import re

import pytest
import torch
from torch import Tensor

from explorer.catalog import opened_model
from explorer.inference import forward_pass
from models import trace
from tests.apps import page
from tests.views.drawing import persistent, run_parts

TEXT = "the white cat does not see the black house"
HEAD, NUMBER, KEY = 0, 5, 1
ROWS = {"encoder": 2, "decoder": 3}
"""What is followed: a number of these tokens' vectors, in this head; they attend to this key."""
LAYER = {
    "self_attn.products": (),
    "self_attn.weights": ("self_attn.scores",),
    "self_attn.head_out": (),
    "resid_mid": ("resid_pre", "self_attn.out"),
}
CROSS = {
    "cross_attn.scores": ("cross_attn.products",),
    "cross_attn.weights": ("cross_attn.scores",),
    "resid_cross": ("resid_mid", "cross_attn.out"),
    "resid_post": ("resid_cross", "mlp.out"),
}
NUMBERS = re.compile(r"-?\d(?:\d|\{,\})*(?:\.\d+)?(?: \\cdot 10\^\{-?\d+\})?")


def stops() -> dict[str, tuple[str, ...]]:
    """The stages to stop at, and of which others the equation has numbers at its beginning."""
    found: dict[str, tuple[str, ...]] = {}
    for stack in ROWS:
        for stage, reads in {"{0}.embed": (), "{0}.sum": ("{0}.embed", "{0}.pos_embed")}.items():
            found[stage.format(stack)] = tuple(each.format(stack) for each in reads)
        behind = CROSS if stack == "decoder" else {"resid_post": ("resid_mid", "mlp.out")}
        for stage, reads in (LAYER | behind).items():
            found[f"{stack}.0.{stage}"] = tuple(f"{stack}.0.{each}" for each in reads)
        found[f"{stack}.final"] = ()
    return found | {"logits": (), "probabilities": ("logits",)}


@pytest.fixture(scope="module")
def passed() -> dict[str, Tensor]:
    """The core's pass, by the names that the page gives to its stages."""
    opened = opened_model.open_model("translation")
    of = forward_pass.run_text(opened, TEXT)
    ids = [torch.tensor([[token.id for token in side]]) for side in (of.source, of.target)]
    made = {name: value[0].double() for name, value in trace(opened.model, *ids).values.items()}
    for stack in ROWS:
        made[f"{stack}.sum"] = made[f"{stack}.embed"] + made[f"{stack}.pos_embed"]
    for name in [name for name in made if name.endswith("_attn.scores")]:
        width = made[name.replace("scores", "q")].shape[-1]
        made[name.replace("scores", "products")] = made[name] * math.sqrt(width)
    made["probabilities"] = made["logits"].softmax(-1)
    return made


def held(passed: dict[str, Tensor], stage: str) -> tuple[float, float]:
    """The number that is followed, and the largest beside it."""
    row = ROWS.get(stage.partition(".")[0], ROWS["decoder"])
    values = passed[stage][HEAD, row] if passed[stage].dim() == 3 else passed[stage][row]
    column = NUMBER
    if stage in ("logits", "probabilities"):
        column = int(values.argmax())
    elif stage.endswith((".products", ".scores", ".weights")):
        column = ROWS["encoder"] if "cross_attn" in stage else KEY
    return float(values[column]), float(values[values.isfinite()].abs().max())


def agrees(shown: str, value: float, largest: float) -> bool:
    """Whether the value is what is shown, rounded; the pass was made in single precision."""
    digits, _, power = re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", shown).partition("e")
    digits = digits.replace("{,}", "")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(float(f"{digits}e{power or 0}") - value) <= last / 2 + 5e-6 * largest


def test_every_equation_has_the_number_and_what_makes_it(passed: dict[str, Tensor]) -> None:
    chosen = {f"{stack}_token": str(row) for stack, row in ROWS.items()}
    chosen |= {"head": str(HEAD), "number": str(NUMBER), "key_token": str(KEY), "text": TEXT}
    at = page("forward_pass/forward_pass", model="translation", **chosen)
    for stage, reads in stops().items():
        persistent(at, "stages").update({"stage": stage})
        run_parts(at, slice(-1, None))
        equation = at.latex[-1].value.replace(r"\rule{0pt}{2em}", "")
        left, _, right = equation.partition(" = ")
        written = NUMBERS.findall(left) + NUMBERS.findall(right)
        for shown, each in zip(written, (stage, *reads), strict=False):
            value, largest = held(passed, each)
            assert agrees(shown, value, largest), f"{stage}: no {value} of {each} in {equation}"
        assert len(written) > len(reads)
