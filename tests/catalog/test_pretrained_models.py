"""The pretrained models: their table, and what its first model answers where it is there."""

import os
import re
from pathlib import Path

import pytest

from explorer.catalog.folders import is_hub_id
from explorer.catalog.opened_model import open_checkpoint
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS, Package
from explorer.inference.default_head import default_head
from explorer.inference.forward_pass import run_text
from tests.source import ROOT

ANSWERS = {
    "When Mary and John went to the store, John gave a drink to": " Mary",
    "The glimmerfinch sang at dawn. By noon the glimmer": "f",
    "The capital of France is": " Paris",
    "The strike went on from the year 1868 to the year 18": "7",
    "The children that the woman sees": " are",
    "x = foo(bar[3": "])",
    "big → small, hot → cold, tall →": " short",
}
"""The likeliest token after each example of SmolLM2: a circuit's, not a memorized text's."""


def test_every_row_can_be_asked_for_and_says_what_it_is() -> None:
    assert next(iter(PRETRAINED_MODELS)) == FIRST
    folders = {model.folder.name for model in PRETRAINED_MODELS.values()}
    assert len(folders) == len(PRETRAINED_MODELS)
    for name, model in PRETRAINED_MODELS.items():
        assert re.fullmatch(r"[a-z0-9.-]{3,20}", name)
        assert model.licence in ("Apache 2.0", "MIT")
        assert 10 < len(model.good_for) < 80
        assert not model.good_for.endswith(".")
        assert model.download <= 1_000_000_000
        assert len(set(model.examples)) == len(model.examples)
        if isinstance(model.source, str):
            assert is_hub_id(model.source)
        else:
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", model.source.requirement)
            assert re.fullmatch(r"[0-9a-f]{64}", model.source.sha256)
            assert model.source.inside.endswith("/")
    smollm2 = PRETRAINED_MODELS[FIRST]
    assert isinstance(smollm2.source, Package)
    assert smollm2.source.gguf
    assert smollm2.examples[: len(ANSWERS)] == tuple(ANSWERS)


def test_the_first_pretrained_model_answers_its_examples(subtests: pytest.Subtests) -> None:
    folder = Path(os.environ.get("EXPLORER_SMOLLM2") or ROOT / "examples" / FIRST)
    if not folder.is_dir():
        pytest.skip("needs SmolLM2 (python -m explorer get smollm2); EXPLORER_SMOLLM2 names it")
    opened = open_checkpoint(folder, FIRST)
    for text, answer in ANSWERS.items():
        with subtests.test(text=text):
            assert run_text(opened, text).answer.guesses[0].label == answer.replace(" ", "␣")
    forward = run_text(opened, next(iter(ANSWERS)))
    part, layer, head = default_head(opened)
    row = forward.trace.weights(f"decoder.{layer}.self_attn")[forward.row, head, -1]
    assert part == "decoder.self_attn"
    assert forward.tokens[int(row.argmax())].label == "␣Mary"
