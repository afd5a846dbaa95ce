"""The documents' largest systems, made at their own size, opened by a click and looked through."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from explorer import library, reading
from explorer.museum import systems
from explorer.museum.systems import SYSTEMS
from models import Transformer
from tests import apps
from tests.apps import said

SHAPES = {
    "encoder.tokens": "batch 1 × tokens 10",
    "encoder.embed": "batch 1 × tokens 10 → batch 1 × tokens 10 × d_model 512",
    "encoder.0.self_attn.q": "batch 1 × tokens 10 × heads·d_head 512 → batch 1 × tokens 10 × "
    "heads 8 × d_head 64 → batch 1 × heads 8 × tokens 10 × d_head 64",
    "encoder.5.self_attn.scores": "batch 1 × heads 8 × queries 10 × keys 10",
    "encoder.5.self_attn.concat": "heads 8 × d_head 64 → batch 1 × tokens 10 × heads·d_head 512",
    "encoder.5.mlp.hidden": "batch 1 × tokens 10 × d_ff 2,048",
    "decoder.5.cross_attn.weights": " × keys 10",
    "logits": " × vocabulary 11",
}
TEN = "I am a student I am a student dog"
"""Nine words and their end: the notebook steps through 10 tokens, at these sizes."""


@pytest.fixture
def root(small_models: Path) -> Iterator[Path]:
    """Where systems are made; hundreds of megabytes do not stay behind a test."""
    yield library.systems_root()
    shutil.rmtree(library.systems_root(), ignore_errors=True)


def test_the_notebook_tutorial_is_opened_from_the_museum(root: Path) -> None:
    """Its shapes are read in the whole pass, all of its 177 MB made by the click."""
    at = apps.page("change/museum", room="The systems", system="notebook tutorial")
    at.button(key="open_system").click().run()
    assert not at.exception
    assert at.selectbox(key="model").value == "notebook-tutorial"
    assert "notebook-tutorial is open and reads" in said(at)
    assert (root / "notebook-tutorial" / "model.safetensors").stat().st_size > 4 * 44_127_755
    at.text_input(key="text").set_value(TEN).run()
    at.switch_page("../pages/look/walk.py").run()
    for stage, shape in SHAPES.items():
        at.session_state["_folded_walk"] = {"stage": stage}
        at.run()
        assert not at.exception
        (caption,) = [each.value for each in at.caption if "Shape: " in each.value]
        assert shape in caption.partition("Shape: ")[2], stage


@pytest.mark.parametrize("preset", ["lecture handout", "paper"])
def test_a_system_of_93_million_numbers_is_made_opened_and_passed_through(
    root: Path, preset: str
) -> None:
    """What is read back is what was built, and one sentence goes through it whole."""
    (system,) = (each for each in SYSTEMS if each.preset == preset)
    folder = systems.make(system, root)
    opened = library.opened_from(folder, preset)
    assert opened.model.n_parameters == 93_322_496
    of = reading.read(opened, opened.example)
    assert [token.label for token in of.source] == [*"the black cat sleeps".split(), "</s>"]
    built = Transformer(system.config).eval()
    source = torch.tensor([[token.id for token in of.source]])
    target = torch.tensor([[token.id for token in of.target]])
    with torch.no_grad():
        logits = built(source, target)
    assert logits.shape == (1, len(of.target), 32_000)
    assert [token.id for token in of.written] == logits[0].argmax(-1).tolist()
    torch.testing.assert_close(of.trace["logits"][of.row], logits[0])
