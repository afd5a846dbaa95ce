"""The page Head, step by step: what is sent to the browser, and what its equation says."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from explorer.analysis.query_key import HeadStages, head_stages_of
from explorer.catalog import opened_model
from explorer.components import wire
from explorer.components.stages import encode
from explorer.inference import forward_pass
from explorer.views.attention.head_steps_view import (
    WINDOW_TOKENS,
    spoken_equation,
    stage_equation,
    stage_panels,
)
from tests import apps
from tests.apps import exported
from tests.views.drawing import long_model, sent

pytestmark = pytest.mark.usefixtures("small_models")
STEPS = {
    "scores": ["scaled"],
    "scaled": ["added", "logits"],
    "masked": ["weights"],
    "softmax": ["v", "out"],
    "values": [],
}
"""What may be looked up to, and what each next step adds."""


page = partial(apps.page, "attention/head_steps")


def one(model: str, text: str = "the cat", part: str = "decoder.self_attn") -> HeadStages:
    found = forward_pass.run_text(opened_model.open_model(model), text)
    rows, columns = range(len(found.rows(part))), range(len(found.columns(part)))
    return head_stages_of(found, part, 0, 0, rows, columns)


def test_what_is_not_reached_is_not_sent() -> None:
    found, late = one("letters"), list(STEPS.values())
    for step in range(len(STEPS)):
        hidden = {panel.of for panel in stage_panels(found, step) if panel.hidden}
        assert hidden == {name for names in late[step:] for name in names}
        made = encode(stage_panels(found, step), ["a"], ["b"], [], {}, name="x")
        header, planes = wire.unpack(made)
        assert set(header["later"]) == hidden
        assert {name for name, plane in planes.items() if not plane} == hidden


def test_what_is_around_the_softmax_is_exported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is this that a slide shows, and not the first steps."""
    made = exported(page(model="letters", text="the cat", up_to="values"), monkeypatch)
    assert made.title.endswith("Scores + M: the input of the softmax")


def test_every_symbol_of_the_equation_has_a_tensor() -> None:
    found = one("letters")

    def named(nodes: Any) -> set[str]:
        nodes = [node for node in nodes if not isinstance(node, str)]
        return {node["of"] for node in nodes}.union(*(named(node["parts"]) for node in nodes))

    assert named(stage_equation(found)) == {panel.of for panel in stage_panels(found, 4)}
    assert spoken_equation(found) == "head = softmax(Q Kᵀ ÷ √4 + M) V"


def test_a_cap_stands_in_the_equation_and_in_the_name_of_its_stage(own_models: Path) -> None:
    long_model(own_models, "capped", attention_cap=2.5)
    capped = one("capped", "abc")

    def flat(nodes: Any) -> str:
        return "".join(node if isinstance(node, str) else flat(node["parts"]) for node in nodes)

    root = f"√{capped.q.shape[1]}"
    assert f"2.50 tanh ( QKᵀ{root} / 2.50 )" in flat(stage_equation(capped))
    assert spoken_equation(capped) == f"head = softmax(2.50 · tanh(Q Kᵀ ÷ {root} ÷ 2.50) + M) V"
    symbols = {panel.of: panel.symbol for panel in stage_panels(capped, 4)}
    assert symbols["scaled"] == f"÷ {root}, tanh"
    assert "tanh" in sent(page(model="capped", text="abc"), "stages")[0]["spoken"]


def test_of_a_long_text_a_window_around_the_pinned_cell_is_shown(own_models: Path) -> None:
    long_model(own_models, "long")
    at = page(model="long", text="abc " * 49, pinned="q100k40")
    assert "32 of 197" in sent(at, "stages")[0]["about"]
    assert at.slider(key="queries").value == 100 - WINDOW_TOKENS // 2
    assert at.slider(key="keys").value == 40 - WINDOW_TOKENS // 2
    apps.run(at.slider(key="keys").set_value(3))
    assert sent(at, "stages")[0]["panels"][0]["shape"] == f"{WINDOW_TOKENS} × {WINDOW_TOKENS}"
