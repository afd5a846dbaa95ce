"""The page Interventions, without a browser: its history, its cells, what it refuses."""

from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app.messages import take_notes
from explorer.app.session import SESSION_KEY, session
from explorer.catalog.opened_model import OpenModel, open_model
from explorer.inference import edited_pass
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.interventions.address_text import KIND_LETTERS, MAX_EDITS, to_address
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    AblateNeuron,
    CutEdge,
    EditHistory,
    HideKey,
    Intervention,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceByProgram,
    ReplaceToken,
    Steer,
)
from explorer.text.number_format import three
from explorer.views.shared import edit_history
from tests import apps
from tests.apps import said, views
from tests.views.drawing import pasted, press, put_persistent

D = "decoder.self_attn"
pytestmark = pytest.mark.usefixtures("small_models")
INTERVENTIONS = "experiments/interventions"
page = partial(apps.page, INTERVENTIONS, model="letters")


def goes_to(at: AppTest, name: str, **parameters: str) -> AppTest:
    """Another page by a link, which has an address of its own."""
    at.query_params.clear()
    at.query_params.update(parameters)
    return apps.run(at.switch_page(f"../../pages/{name}.py"))


def edits(at: AppTest) -> str:
    return str(at.text_input(key="edits").value)


def test_edits_wait_while_another_page_or_text_is_looked_at() -> None:
    at = page(edits="1.1~h.d.0.1.z~h.d.1.1.z~junk")
    assert edits(at) == "1.1~h.d.0.1.z~h.d.1.1.z"
    assert edits(press(at, "redo")) == "1.2~h.d.0.1.z~h.d.1.1.z"
    at = page(edits="1.2~k.d.a.3~h.d.0.1.z", text="the")
    assert edits(at) == "1.2~k.d.a.3~h.d.0.1.z"
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert "not apply" not in said(at)
    assert "masked for every query" in said(at)
    at = page(edits="1.1~h.d.0.1.z", layer="0", head="1", becomes="Mean over positions")
    opened = open_model("letters")
    plain = run_text(opened, opened.example)
    after = edited_pass.run_edited(opened, plain, [AblateHead(D, 0, 1)]).forward
    old, new = (passed.trace["logits"][0, -1].double().softmax(-1) for passed in (plain, after))
    best = int(old.argmax())
    assert f": {three(float(old[best]))} → {three(float(new[best]))}; KL divergence: " in said(at)
    assert edits(press(at, "ablate_head")) == "1.1~h.d.0.1.m", "the same head is ablated once"
    for left in ("1.1~h.d.0.1.m", ""):
        for name in ("attention/attention", "lessons/lessons"):
            words = "1 intervention is active; this page shows the pass without it."
            assert (words in said(goes_to(at, name))) == (bool(left) and "lessons" not in name)
            assert at.query_params.get("edits", "") == left
        assert ("is active" in said(goes_to(at, apps.FIRST))) == bool(left)
        assert edits(goes_to(at, INTERVENTIONS)) == left
        if left:
            press(at, "remove_0")
    goes_to(at, apps.FIRST)
    assert edits(goes_to(at, INTERVENTIONS, edits="1.1~k.d.a.1")) == "1.1~k.d.a.1"


def test_a_lesson_begins_with_its_own_edits_and_those_before_it_come_back() -> None:
    mine, step = "1.1~h.d.0.1.z", {"lesson": "masks", "lesson_step": "1"}
    at = page(edits=mine)
    for own in ("", "1.1~k.d.a.1"):
        assert "is active" not in said(goes_to(at, apps.FIRST, **step))
        assert edits(goes_to(at, INTERVENTIONS, **step, **({"edits": own} if own else {}))) == own
        goes_to(at, "input/tokens")
        assert edits(goes_to(at, INTERVENTIONS)) == mine


def test_a_patch_begins_with_the_text_of_the_address_and_one_of_another_length_is_refused() -> None:
    at = page(change="Patch", text="the cat", patch_text="the cat and the hat")
    assert at.button(key="patch").disabled
    assert "only texts of the same length have the same positions" in said(at)
    at.text_input(key="patch_text").set_value("the hat").run()
    assert "patched from “the hat”" in said(press(at, "patch"))


def test_a_direction_is_added_from_two_texts_or_from_a_head() -> None:
    at = page(change="Steer", text="the cat", layer="1", head="2")
    assert at.button(key="steer").disabled
    at.text_input(key="steer_toward").set_value("the hat and the cat")
    at.text_input(key="steer_away").set_value("the cat")
    apps.run(at.slider(key="steer_strength").set_value(-2.5))
    assert "Layer 1: −2.50 × (“the hat and the cat” − “the cat”) added" in said(press(at, "steer"))
    at.selectbox(key="steer_by").set_value("Head output").run()
    words = said(press(at, "steer"))
    assert "−2.50 × the output of head 2 on “the hat and the cat” added" in words
    assert "not apply" not in words
    again = page(text="the cat", edits=edits(at))
    assert "2. Layer 1: −2.50 × the output of head 2" in said(again), "the link has both"
    assert "Steer(" in pasted(again)


def test_a_model_that_writes_writes_its_answer_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_CHECKPOINTS")
    text = "the black cat does not see the white house"
    at = page(model="translation", text=text)
    assert "Generated after: le chat noir ne voit pas la maison blanche" in said(at)
    at.text_input(key="edits").set_value("1.1~h.c.0.0.z").run()
    assert "Generated before: le chat noir ne voit pas la maison blanche" in said(at)
    assert "Generated after: le chat noir ne voit pas la maison grise" in said(at)
    assert "Changed: “blanche” → “grise”" in said(at)
    assert "In the numbers and maps here, the decoder reads the answer gen" in said(at)


def test_a_held_cell_is_changed_by_one_click() -> None:
    at = page(text="the cat", layer="0", head="1")
    put_persistent(at, "pinned", pinned="q2k1")
    labels = [each.label for each in at.button if str(each.key).startswith("held_edit")]
    assert labels[:2] == ["Cut this edge in head 1", "Cut it in every head of layer 0"]
    assert labels[2:] == ["Mask this cell in layer 0", "Mask the key in layer 0"]
    assert edits(press(at, "held_edit_2")) == "1.1~c.d.0.2.1.0"
    assert at.button(key="held_edit_0").label == "Unmask this cell in layer 0"
    assert edits(press(at, "held_edit_0")) == ""


def test_the_other_weights_of_a_cut_edge_sum_to_what_is_said() -> None:
    """Without the weight, which is 0 where the first cut has been."""
    head = {"text": "the cat", "layer": "0", "head": "1"}
    row = run_text(open_model("letters"), head["text"]).weights(D, 0, 1)[2].double()
    others = three(float(row.sum() - row[1]))
    for edited in ("", "1.1~x.d.0.1.2.1.z"):
        at = page(**head, pinned="q2k1", change="Edge", edits=edited)
        assert (at.selectbox(key="edge_query").value, at.selectbox(key="edge_key").value) == (2, 1)
        assert f"stay as they are: in this head they sum to {others}." in said(at)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> tuple[OpenModel, ForwardPass]:
    """A model, and a session that has no page."""
    monkeypatch.setattr(edit_history.st, "session_state", {})
    found = open_model("letters")
    return found, run_text(found, found.example)


def test_a_cell_painted_back_leaves_no_edit(opened: tuple[OpenModel, ForwardPass]) -> None:
    head = AblateHead(D, 0, 0)
    edit_history.add_edit(head)
    for layer in (0, None):
        forbid, allow = (MaskCell(D, layer, 2, 1, may) for may in (False, True))
        for _ in range(MAX_EDITS):
            edit_history.add_intervention(*opened, forbid)
            edit_history.add_intervention(*opened, forbid)
            assert edit_history.current_history().active == (head, forbid), "said twice, made once"
            edit_history.add_intervention(*opened, allow)
            assert edit_history.current_history().active == (head,)


def test_a_forbidden_cell_is_allowed_by_an_edit(opened: tuple[OpenModel, ForwardPass]) -> None:
    """Forbidden in every layer and allowed in one, or in one layer and allowed in every one."""
    everywhere = MaskCell(D, None, 2, 1, False)
    edit_history.add_intervention(*opened, everywhere)
    edit_history.add_intervention(*opened, MaskCell(D, 0, 2, 1, False))
    edit_history.add_intervention(*opened, MaskCell(D, 0, 2, 1, True))
    assert edit_history.current_history().active == (everywhere, MaskCell(D, 0, 2, 1, True))
    hidden = HideKey(D, 1, 1)
    edit_history.store_history(EditHistory((hidden, everywhere), 2))
    edit_history.add_intervention(*opened, MaskCell(D, None, 2, 1, True))
    assert edit_history.current_history().active == (hidden, MaskCell(D, None, 2, 1, True))


def test_a_full_history_says_so() -> None:
    full: tuple[Intervention, ...] = tuple(AblateHead(D, 9, head) for head in range(MAX_EDITS))
    address = to_address(EditHistory(full, MAX_EDITS))
    at = page(edits=address, change="Mask", mask_how="Cell by cell")
    assert edit_history.FULL not in said(at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_history.st, "session_state", {})
        edit_history.store_history(EditHistory(full, MAX_EDITS))
        edit_history.add_edit(AblateHead(D, 0, 1))
        assert take_notes("edits", address) == (edit_history.FULL,)
        at.session_state[SESSION_KEY] = session()
    at.run()
    assert edit_history.FULL in said(at)


@pytest.mark.parametrize(
    ("model", "part"), [("letters", "encoder.self_attn"), ("reverse", "decoder.cross_attn")]
)
def test_an_edit_of_an_attention_that_is_not_there_is_set_aside(model: str, part: str) -> None:
    """It waits, and another is made."""
    foreign: tuple[Intervention, ...] = (
        AblateHead(part, 0, 0),
        AblateAttention(part, 0),
        AblateMlp(part, 0),
        AblateNeuron(part, 0, 0),
        CutEdge(part, 0, 0, 0, 0),
        PresetMask(part, 0, "none"),
        MaskCell(part, 0, 0, 0, False),
        HideKey(part, 0, 0),
        ReplaceToken(part, 0, 0),
        Patch(part, 0, 0, 0, "the cat"),
        Steer(part, 0, None, 1.0, ("the cat", "the hat")),
        ReplaceByProgram(part, 0, 0, (("first", 1.0),)),
    )
    assert {type(edit) for edit in foreign} == set(KIND_LETTERS)
    at = page(model=model, edits=to_address(EditHistory(foreign, len(foreign))))
    assert said(at).count("(does not apply). This model has no such attention.") == len(foreign)
    assert f"{len(foreign)} interventions do not apply to this model and text" in said(at)
    address = to_address(EditHistory(foreign[:1], 1))
    at.text_input(key="edits").set_value(address).run()
    assert edits(press(at, "ablate_head")).startswith(address.replace("1.1~", "1.2~"))


def is_shown(at: AppTest) -> bool:
    """Whether a view that takes many passes is drawn."""
    return "heads_off" in views(at) or "set to zero, the strongest first" in said(at)


def test_heads_and_cuts_are_those_of_the_pass_with_the_interventions() -> None:
    for look in ("Every head", "Faithfulness"):
        at = page(text="the cat", look=look)
        assert is_shown(at), "what is quick is shown at once"
        assert "in the original pass" in said(at)
        at.text_input(key="edits").set_value("1.1~k.d.a.1").run()
        assert is_shown(at)
        assert "in the pass with your interventions" in said(at)


def test_heads_are_patched_from_a_sentence_of_as_many_tokens() -> None:
    at = page(text="the cat", look="Every head", heads_are="Patched")
    assert "type a sentence" in said(at)
    assert not is_shown(at)
    at.text_input(key="heads_from").set_value("the cat and the hat").run()
    assert "only texts of the same length" in said(at)
    assert not is_shown(at)
    tables = []
    for source in ("the hat", "hat the"):
        apps.run(at.text_input(key="heads_from").set_value(source))
        assert is_shown(at)
        tables += [each.value for each in at.dataframe if "head" in each.value]
    assert "patched from the source sentence" in said(at)
    first, second = tables
    assert not first.equals(second), "another sentence, other numbers"
