"""The core reads as a book, and the shapes in its signatures are compared with every call."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import models
from models.attention import attention_scores, attention_weights
from models.masking import padding_mask
from models.normalization import LayerNorm
from models.training import Batch
from tests.tiny import SMALL, shaken

NUMBERS = torch.zeros(2, 3, 4, 5)
WRONG: dict[str, Callable[[], object]] = {
    "an axis too few": lambda: attention_scores(NUMBERS[0], NUMBERS, 1.0),
    "two sizes of one name": lambda: attention_weights(NUMBERS, NUMBERS[..., :3].bool()),
    "another kind of number": lambda: padding_mask(torch.ones(2, 3)),
    "a method": lambda: LayerNorm(4)(torch.zeros(2, 4, dtype=torch.long)),
    "a model": lambda: shaken(SMALL)(torch.zeros(2, 3)),
    "a dataclass": lambda: Batch((torch.zeros(2, 3),), torch.zeros(2, 3, dtype=torch.long)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_shape_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(TypeCheckError):
        call()


CORE = Path(models.__file__).parent


def order() -> list[str]:
    """The modules that the docstring of `models` numbers, in their order."""
    steps = re.findall(r"^\d+\. (.*?):", models.__doc__ or "", re.MULTILINE)
    return [name for step in steps for name in re.findall(r"`(\w+)`", step)]


def test_every_module_is_in_the_reading_order_once() -> None:
    modules = {path.stem for path in CORE.glob("*.py")} - {"__init__"}
    assert sorted(order()) == sorted(modules)


def test_no_module_needs_a_later_one() -> None:
    known: set[str] = set()
    for name in order():
        for node in ast.parse((CORE / f"{name}.py").read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("models."):
                assert (node.module or "").removeprefix("models.") in known, name
        known.add(name)
