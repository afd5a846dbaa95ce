"""The page Head, step by step: what is sent to the browser, of every kind of model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer import library, reading
from explorer.analysis.stages import Stages, stages
from explorer.bench.stages import MOST, equation, in_words, panels
from explorer.components import wire
from explorer.components.stages import encode
from explorer.text import character_tokenizer
from explorer.text.special import DECODER
from tests.apps import page, said, views
from tests.shelf import NAMES, put

pytestmark = pytest.mark.usefixtures("small_models")
STAGES = "look/stages"


def sent(at: AppTest) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The message that the view gets."""
    view = next(each for each in at.get("bidi_component") if each.key == "stages")
    return wire.unpack(view.proto.bytes)


def one(model: str, part: str = "decoder.self_attn") -> Stages:
    found = reading.read(library.open_model(model), "the cat")
    rows, columns = range(len(found.rows(part))), range(len(found.columns(part)))
    return stages(found, part, 0, 0, rows, columns)


def test_every_kind_of_model_has_the_page(subtests: pytest.Subtests) -> None:
    for model in NAMES:
        with subtests.test(model=model):
            at = page(STAGES, model=model)
            assert "stages" in views(at)
            assert "no weight differs from the pass by more than" in said(at)


def test_every_attention_of_an_encoder_decoder_has_the_page(subtests: pytest.Subtests) -> None:
    for part in ["Encoder", "Decoder", "Cross"]:
        with subtests.test(part=part):
            assert "stages" in views(page(STAGES, model="translation", part=part))


def test_a_text_of_one_token_has_its_stages() -> None:
    assert "stages" in views(page(STAGES, model="letters", text="t"))


def test_what_is_not_reached_is_not_sent(subtests: pytest.Subtests) -> None:
    for stage in ["scores", "scaled", "masked", "softmax", "values"]:
        with subtests.test(stage=stage):
            found = one("letters")
            step = ["scores", "scaled", "masked", "softmax", "values"].index(stage)
            made = panels(found, step)
            hidden = {panel.of for panel in made if panel.hidden}
            late = [["scaled"], ["added", "logits"], ["weights"], ["v", "out"]]
            assert hidden == {name for names in late[step:] for name in names}
            header, planes = wire.unpack(encode(made, ["a"], ["b"], [], {}, name="x"))
            assert set(header["later"]) == hidden
            assert {name for name, plane in planes.items() if not plane} == hidden


def test_what_is_sent_are_the_numbers_of_the_pass_in_single_precision() -> None:
    found = one("letters")
    _, planes = wire.unpack(encode(panels(found, 4), ["a"], ["b"], [], {}, name="x"))
    for name in ("q", "k", "v", "dots", "scaled", "added", "logits", "weights", "out"):
        numbers = np.frombuffer(planes[name], "<f4").reshape(getattr(found, name).shape)
        torch.testing.assert_close(torch.tensor(numbers), getattr(found, name), rtol=0, atol=0)


def test_every_symbol_of_the_equation_has_a_tensor() -> None:
    found = one("letters")

    def named(nodes: Any) -> set[str]:
        nodes = [node for node in nodes if not isinstance(node, str)]
        return {node["of"] for node in nodes}.union(*(named(node["parts"]) for node in nodes))

    assert named(equation(found)) == {panel.of for panel in panels(found, 4)}
    assert in_words(found) == "head = softmax(Q Kᵀ ÷ √4 + M) V"


def test_a_cap_stands_in_the_equation_and_in_the_name_of_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = character_tokenizer("abc ", DECODER)
    put(tmp_path, "capped", letters, "abc", kind="decoder", attention_cap=2.5)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    found = reading.read(library.open_model("capped"), "abc")
    every = range(len(found.tokens))
    capped = stages(found, "decoder.self_attn", 0, 0, every, every)

    def flat(nodes: Any) -> str:
        return "".join(node if isinstance(node, str) else flat(node["parts"]) for node in nodes)

    root = f"√{capped.q.shape[1]}"
    assert f"2.50 tanh ( QKᵀ{root} / 2.50 )" in flat(equation(capped))
    assert in_words(capped) == f"head = softmax(2.50 · tanh(Q Kᵀ ÷ {root} ÷ 2.50) + M) V"
    symbols = {panel.of: panel.symbol for panel in panels(capped, 4)}
    assert symbols["scaled"] == f"÷ {root}, tanh"
    made = 2.5 * (capped.dots * capped.scale / 2.5).tanh()
    torch.testing.assert_close(capped.scaled, made)
    assert "tanh" in sent(page(STAGES, model="capped", text="abc"))[0]["spoken"]


def test_a_bad_stage_in_the_address_is_said_and_replaced() -> None:
    at = page(STAGES, model="letters", up_to="nothing")
    assert "“Shown up to” has no “nothing” here; showing values." in said(at)


def test_a_bad_cell_in_the_address_is_said() -> None:
    at = page(STAGES, model="letters", held="q99k0")
    assert "“held” can be a query and a key of this text" in said(at)


def test_of_a_long_text_a_window_around_the_held_cell_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = character_tokenizer("abc ", DECODER)
    put(tmp_path / "long", "long", letters, "abc", kind="decoder", max_len=2_048)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "long"))
    at = page(STAGES, model="long", text="abc " * 499, held="q1000k40")
    assert "Shown are 32 of 1,9" in sent(at)[0]["about"]
    assert at.slider(key="queries").value == 1000 - MOST // 2
    assert at.slider(key="keys").value == 40 - MOST // 2
    at.slider(key="keys").set_value(3).run()
    assert not at.exception
    assert sent(at)[0]["panels"][0]["shape"] == f"{MOST} × {MOST}"
    asked = page(STAGES, model="long", text="abc " * 499, queries="9999", keys="many")
    assert "“Queries shown: 32 from number” goes from 0 to 1,9" in said(asked)
    assert "not “9999”; it is 1,9" in said(asked)
    assert "not “many”; it is " in said(asked)
