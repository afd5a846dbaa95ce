"""The page Forward pass without a browser: its stages, its labels, and what is pinned in it."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.default_head import default_head
from explorer.analysis.forward_pass.stage_cut import BETWEEN
from explorer.analysis.forward_pass.stages import stages_of
from explorer.analysis.query_key import strongest, strongest_cell
from explorer.app.session import SESSION_KEY
from explorer.catalog import opened_model
from explorer.components import mounting
from explorer.components.mounting import PageViews
from explorer.inference import forward_pass
from explorer.text.visible_text import readable
from explorer.views.forward_pass.neurons_view import KEY
from explorer.views.shared.pass_position import StageBar, StageClicks
from tests import apps
from tests.apps import said
from tests.views.drawing import handed, persistent, put_persistent, put_state, run_parts, sent

pytestmark = pytest.mark.usefixtures("small_models")
WEIGHTS = "decoder.1.self_attn.weights"


def page(stage: str = "", **address: str) -> AppTest:
    asked = {"stage": stage} if stage else {}
    return apps.page("forward_pass/forward_pass", **{"model": "letters", **asked, **address})


def kept(at: AppTest) -> dict[str, str]:
    """What the page keeps of the stage and of what is pinned in it."""
    return dict(persistent(at, "stages"))


def picture(at: AppTest) -> dict[str, Any]:
    return sent(at, "stage_values")[0]


def draw_stage(at: AppTest, stage: str) -> None:
    """Draw the part of the page that shows a stage, of this one."""
    persistent(at, "stages").update(stage=stage)
    run_parts(at, slice(-1, None))


def test_every_stage_has_its_heading_and_its_site() -> None:
    """One stage of each title; the panels draw every kind of stage of every kind of model."""
    at = page(model="translation", text="the black cat", head="0")
    stages = stages_of(opened_model.open_model("translation").config)
    for stage in {stage.title: stage for stage in stages}.values():
        draw_stage(at, stage.name)
        assert f"**{stage.title}** " in said(at)
        if stage.kind != "tokens":
            title = picture(at)["words"]["title"]
            assert title.startswith("Translation · ")
            assert title.endswith(stage.title.lower())
            assert ("head 0" in title) is stage.per_head
        assert not stage.site or f"`{stage.site}`" in said(at)
    draw_stage(at, "decoder.0.mlp.out")
    assert r"\text{ more}" in at.latex[-1].value, "the largest products, and the sum of the others"


def test_a_step_exports_the_stage_on_screen_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(model="reverse")
    values, tokens = ("encoder.embed", "stage_values"), ("encoder.tokens", "stage_tokens")
    for stage, drawn in [values, tokens, values]:
        with monkeypatch.context() as patch:
            patch.setattr(mounting, "begin", lambda: pytest.fail("only the part is drawn"))
            draw_stage(at, stage)
        assert set(at.session_state[SESSION_KEY].state(PageViews).drawn) == {"stage_list", drawn}


def test_a_token_and_a_number_are_read_as_numbers_and_chosen() -> None:
    at = page("decoder.embed", decoder_token="01")
    assert kept(at)["decoder_token"] == "1"
    assert "There is no token" not in said(at)
    at.selectbox(key="stage_decoder_token").select(0)
    apps.run(at.selectbox(key="stage_dimensions").select(1))
    assert (kept(at)["decoder_token"], kept(at)["number"]) == ("0", "12")
    assert "4 of 16 dimensions" in said(at)
    assert picture(at)["places"][1] == [12, 13, 14, 15]
    at = page("encoder.embed", model="reverse", text="7", number="15")
    assert "There is no dimension" not in said(at), "it is the last one"
    assert at.selectbox(key="stage_dimensions").value == 1


def test_the_page_opens_at_the_attention_of_the_bar_and_follows_it() -> None:
    at = page(layer="1")
    assert f"`{WEIGHTS}`" in said(at)
    apps.run(at.selectbox(key="layer").set_value(0))
    assert kept(at)["stage"] == "decoder.0.self_attn.weights"
    at = page("decoder.0.mlp.hidden", layer="1")
    assert at.selectbox(key="layer").value == 0, "the layer of the stage is in the bar at once"
    assert kept(at)["stage"] == "decoder.0.mlp.hidden"
    apps.run(at.selectbox(key="layer").set_value(1))
    assert kept(at)["stage"] == "decoder.1.self_attn.q"


def test_a_view_that_has_not_heard_of_the_new_layer_does_not_turn_back() -> None:
    """What it says of the bar is the layer before; the stage stays, the bar follows."""
    at = page(WEIGHTS, layer="0")
    assert at.session_state[SESSION_KEY].state(StageBar).at == ("letters", "decoder.self_attn", 1)
    at.session_state[SESSION_KEY].state(StageClicks).was_clicked = True
    put_state(at, layer=0)
    assert kept(at)["stage"] == WEIGHTS
    assert at.selectbox(key="layer").value == 1


def test_a_layer_and_a_token_that_are_chosen_in_one_run_both_count() -> None:
    """Also when the layer is the one before, once the browser has shown the new one."""
    at = page(WEIGHTS)
    at.selectbox(key="stage_decoder_token").select(0).run()
    for layer, token in [(0, 1), (1, 0), (0, 2)]:
        at.selectbox(key="stage_decoder_token").select(token)
        apps.run(at.selectbox(key="layer").set_value(layer))
        assert at.selectbox(key="layer").value == layer
        assert kept(at)["stage"] == f"decoder.{layer}.self_attn.weights"
        assert kept(at)["decoder_token"] == str(token)


def test_the_first_stage_shows_the_letters_of_each_token() -> None:
    opened = opened_model.open_model("letters")
    tokens = forward_pass.run_text(opened, opened.example).target
    (table,) = page("decoder.tokens").dataframe
    letters = [readable(opened.example[token.start : token.end]) for token in tokens]
    shown = list(table.value["characters"])
    assert [one for one in shown if "added" not in one] == [one for one in letters if one]


def test_a_step_of_an_answer_is_called_by_what_it_reads_and_what_it_writes() -> None:
    """And the pair that is held goes to the other pages and comes back."""
    held = {"decoder_token": "1", "encoder_token": "2"}
    at = page("decoder.0.cross_attn.weights", model="translation", **held)
    opened = opened_model.open_model("translation")
    of = forward_pass.run_text(opened, opened.example)
    pairs = zip(of.target, of.output_tokens, strict=True)
    both = [f"{one.label}{BETWEEN}{other.label}" for one, other in pairs]
    assert picture(at)["rows"] == both
    assert picture(at)["words"]["row"] == "reads / writes"
    assert at.selectbox(key="stage_decoder_token").options[-1].endswith(both[-1])
    assert persistent(at, "pinned")["pinned"] == "q1k2"
    assert (at.session_state["query"], at.session_state["key"]) == (1, 2)
    put_persistent(at, "pinned", pinned="q0k1")
    assert (kept(at)["decoder_token"], kept(at)["encoder_token"]) == ("0", "1")
    narrow = picture(page("decoder.0.resid_post", model="translation", decoder_token="0"))
    assert narrow["rows"] == [token.label for token in of.target[:16]]
    assert narrow["words"]["row"] == "reads"


def test_it_opens_at_an_ordinary_cell_and_of_a_query_at_the_key_attended_to_most() -> None:
    opened = opened_model.open_model("letters")
    of = forward_pass.run_text(opened, opened.example)
    assert handed(page(), "stage_values") == [*strongest_cell(of, *default_head(opened))]
    key = strongest(of, "decoder.self_attn", 1, 0, 2)
    assert handed(page(WEIGHTS, head="0", decoder_token="2"), "stage_values") == [2, key]


def test_the_shapes_of_the_notebooks_batch_are_shown() -> None:
    tables = [each.value for each in page(notebook_batch="true").dataframe if "shape" in each.value]
    (shapes,) = (dict(zip(table["stage"], table["shape"], strict=True)) for table in tables)
    assert shapes["Embedding"] == "32 × 10 → 32 × 10 × 512"


def test_a_neuron_is_chosen_among_the_strongest_and_its_lines_are_listed() -> None:
    at = page("decoder.0.mlp.hidden", neuron_lines="true")
    neurons = at.segmented_control(key=KEY)
    assert "Strongest neurons at this token" in said(at)
    assert f"largest activation of neuron {neurons.options[0]} of the sign" in said(at)
    other = int(neurons.options[1])
    apps.run(neurons.set_value(other))
    assert kept(at)["number"] == str(other)
    assert f"largest activation of neuron {other} of the sign" in said(at)
    assert "Strongest neurons" not in said(page("decoder.0.mlp.out"))
