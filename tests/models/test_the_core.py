"""The core reads as a book, and the shapes in its signatures are compared with every call."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import models
from explorer.catalog.opened_model import open_checkpoint
from models import minimal
from models.attention import attention_scores, attention_weights
from models.masking import padding_mask
from models.normalization import LayerNorm
from models.training import Batch
from tests.source import imports
from tests.tiny import SMALL, shake, shaken

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
    """Also where it imports inside of a function, or for types alone."""
    known: set[str] = set()
    for name in order():
        needs = {each.split(".")[1] for each in imports(CORE / f"{name}.py") if "models." in each}
        assert needs <= known, name
        known.add(name)


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_decoder_in_one_file_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its demo saves opens in the app."""
    file = CORE / "minimal.py"
    assert len(file.read_text("utf-8").splitlines()) <= 200
    others = {name.partition(".")[0] for name in imports(file)} - sys.stdlib_module_names
    assert others == {"torch", "safetensors"}
    monkeypatch.setattr(sys, "argv", ["minimal.py", str(tmp_path / "trained"), "2"])
    vocabulary = runpy.run_path(str(file), run_name="__main__")["vocabulary"]
    model = shake(minimal.load(tmp_path / "trained"))
    minimal.save(tmp_path / "shaken", model, vocabulary)
    opened = open_checkpoint(tmp_path / "shaken", "shaken")
    ids = torch.tensor([opened.tokenizer.ids("def forward(self, x: Tensor)")])
    with torch.no_grad():
        expected, logits = model(ids), opened.model(ids)
    torch.testing.assert_close(logits, expected, atol=1e-5 * expected.abs().max().item(), rtol=0)


def test_attention_and_the_whole_model_are_met_soon() -> None:
    for name, most in (("attention", 150), ("transformer", 900)):
        earlier = [CORE / f"{module}.py" for module in order()[: order().index(name)]]
        assert sum(len(path.read_text("utf-8").splitlines()) for path in earlier) <= most, name
