"""The page that changes the pass, without a browser: its history, its cells, what it says."""

from __future__ import annotations

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.bench import beside, changing
from explorer.edits import (
    AblateHead,
    Edit,
    HideKey,
    History,
    MaskCell,
)
from explorer.edits_in_links import LONGEST_TEXT, MOST, to_address
from explorer.library import Opened, open_model
from explorer.reading import Reading, read
from tests import apps
from tests.apps import said

D = "decoder.self_attn"


pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("change/edits", **{"model": "letters", **address})


def edits(at: AppTest) -> str:
    return str(at.text_input(key="edits").value)


def test_what_is_no_edit_is_dropped_and_said() -> None:
    at = page(edits="1.1~h.d.0.1.z~h.d.1.1.z~junk")
    assert edits(at) == "1.1~h.d.0.1.z~h.d.1.1.z"
    assert "“junk” in the address is no edit; it was dropped." in said(at)
    at.button(key="redo").click().run()
    assert edits(at) == "1.2~h.d.0.1.z~h.d.1.1.z"


def test_edits_wait_while_another_page_is_looked_at() -> None:
    at = page(edits="1.1~h.d.0.1.z")
    at.switch_page("../pages/look/attention.py").run()
    at.switch_page("../pages/change/edits.py").run()
    assert edits(at) == "1.1~h.d.0.1.z"
    at.button(key="remove_0").click().run()
    at.switch_page("../pages/look/attention.py").run()
    at.switch_page("../pages/change/edits.py").run()
    assert edits(at) == ""


def test_a_patch_of_another_length_is_refused_before_the_click() -> None:
    at = page(change="Patch", text="the cat")
    assert at.button(key="patch").disabled
    at.text_input(key="patch_text").set_value("the cat and the hat").run()
    assert at.button(key="patch").disabled
    assert "only texts of the same length have the same positions" in said(at)
    at.text_input(key="patch_text").set_value("the hat").run()
    assert not at.button(key="patch").disabled
    at.button(key="patch").click().run()
    assert "as in “the hat”" in said(at)


def test_a_model_that_writes_writes_its_answer_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPLORER_CHECKPOINTS")
    text = "the black cat does not see the white house"
    at = page(model="translation", text=text)
    assert "After, it writes: le chat noir ne voit pas la maison blanche" in said(at)
    at.text_input(key="edits").set_value("1.1~h.c.0.0.z").run()
    assert "Before, it writes: le chat noir ne voit pas la maison blanche" in said(at)
    assert "After, it writes: le chat noir ne voit pas la maison grise" in said(at)
    assert "Numbers and maps below follow the answer without edits" in said(at)


def test_a_held_cell_is_changed_by_one_click() -> None:
    at = page(text="the cat", layer="0", head="1")
    assert "Click a cell to hold it" in said(at)
    at.session_state["_folded_held"] = {"held": "q2k1"}
    at.run()
    assert "Held: “" in said(at)
    labels = [each.label for each in at.button if str(each.key).startswith("held_edit")]
    assert labels == [
        "Cut this edge in head 1",
        "Cut it in every head of layer 0",
        "Forbid this look in layer 0",
        "Hide the key in layer 0",
    ]
    at.button(key="held_edit_2").click().run()
    assert edits(at) == "1.1~c.d.0.2.1.0"
    assert at.button(key="held_edit_0").label == "Allow this look in layer 0"
    at.button(key="held_edit_0").click().run()
    assert edits(at) == ""
    assert not at.exception


def test_what_is_held_is_what_a_form_begins_with() -> None:
    at = page(text="the cat", layer="0", head="1", held="q2k1", change="Edge")
    assert (at.selectbox(key="edge_query").value, at.selectbox(key="edge_key").value) == (2, 1)
    at = page(text="the cat", layer="0", head="1", held="q2k1", change="Token")
    assert "Token 2 is “" in said(at)


def test_what_is_held_in_the_answer_is_no_place_in_the_source(subtests: pytest.Subtests) -> None:
    for part, token in [("Encoder", 2), ("Decoder", 1), ("Cross", 3)]:
        with subtests.test(part=part):
            held = {"Encoder": "q2k3", "Decoder": "q1k0", "Cross": "q0k3"}[part]
            at = page(model="translation", part=part, held=held, change="Token")
            assert f"Token {token} is “" in said(at)


def test_the_same_head_is_ablated_once() -> None:
    at = page(edits="1.1~h.d.0.1.z", layer="0", head="1", becomes="Mean over positions")
    at.button(key="ablate_head").click().run()
    assert edits(at) == "1.1~h.d.0.1.m"


def test_what_an_address_asks_for_in_vain_is_said(subtests: pytest.Subtests) -> None:
    for address, sentence in [
        ({"look": "Nowhere"}, "“Look at” has no “Nowhere” here; showing Maps."),
        ({"change": "Weather"}, "“Change” has no “Weather” here; showing Head."),
        ({"expected_at": "99 · dog"}, "“What is expected after” has no “99 · dog” here"),
        ({"watched": "dog (7)"}, "“Watched” has no “dog (7)” here"),
        ({"change": "Mask", "mask_how": "Odd"}, "“How” has no “Odd” here; showing A preset."),
    ]:
        with subtests.test(address=address):
            assert sentence in said(page(**address))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> tuple[Opened, Reading]:
    """A model, and a session that has no page."""
    monkeypatch.setattr(changing.st, "session_state", {})
    found = open_model("letters")
    return found, read(found, found.example)


@pytest.mark.parametrize("layer", [0, None])
def test_painting_a_cell_and_painting_it_back_leaves_no_edit(
    layer: int | None, opened: tuple[Opened, Reading]
) -> None:
    forbid, allow = (MaskCell(D, layer, 2, 1, may) for may in (False, True))
    head = AblateHead(D, 0, 0)
    changing.add(head)
    for _ in range(MOST):
        changing.make(*opened, forbid)
        assert changing.now().made == (head, forbid)
        changing.make(*opened, forbid)
        assert changing.now().made == (head, forbid), "said twice, made once"
        changing.make(*opened, allow)
        assert changing.now().made == (head,)


def test_a_cell_that_another_edit_forbids_is_allowed_by_an_edit(
    opened: tuple[Opened, Reading],
) -> None:
    everywhere, here = MaskCell(D, None, 2, 1, False), MaskCell(D, 0, 2, 1, False)
    for edit in (everywhere, here):
        changing.make(*opened, edit)
    changing.make(*opened, MaskCell(D, 0, 2, 1, True))
    assert changing.now().made == (everywhere, MaskCell(D, 0, 2, 1, True))


def test_a_cell_that_one_layer_forbids_is_allowed_by_an_edit_of_every_layer(
    opened: tuple[Opened, Reading],
) -> None:
    hidden = HideKey(D, 1, 1)
    changing.make(*opened, hidden)
    changing.make(*opened, MaskCell(D, None, 2, 1, False))
    changing.make(*opened, MaskCell(D, None, 2, 1, True))
    assert changing.now().made == (hidden, MaskCell(D, None, 2, 1, True))


def test_a_full_history_says_so() -> None:
    full: tuple[Edit, ...] = tuple(AblateHead(D, 9, head) for head in range(MOST))
    at = page(edits=to_address(History(full, MOST)), change="Mask", mask_how="Cell by cell")
    assert changing.FULL not in said(at)

    state: dict[str, object] = {"edits": edits(at)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changing.st, "session_state", state)
        changing.add(AblateHead(D, 0, 1))
    assert state["_edits_notes"] == (state["edits"], (changing.FULL,))
    at.session_state["_edits_notes"] = state["_edits_notes"]
    assert changing.FULL in said(at.run())


def test_a_sentence_that_an_address_cannot_hold_is_to_be_shortened() -> None:
    long = "\N{GRINNING FACE}" * LONGEST_TEXT
    at = page(model="reviews", text="cat", change="Patch", patch_text=long)
    assert at.button(key="patch").disabled
    assert "this sentence has 1,610 characters, and the address has room for about 1,500" in said(
        at
    )
    assert changing.FULL not in said(at), "there is none to remove"
    at.text_input(key="patch_text").set_value("\N{GRINNING FACE}" * 200).run()
    assert not at.button(key="patch").disabled
    at.button(key="patch").click().run()
    assert edits(at).startswith("1.1~p.e.")


def test_weights_that_are_no_numbers_leave_a_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    tops: list[float] = []
    weights = Reading.weights

    def broken(self: Reading, part: str, layer: int, head: int) -> torch.Tensor:
        values = weights(self, part, layer, head).clone()
        values[-1, 0] = torch.nan
        return values

    monkeypatch.setattr(Reading, "weights", broken)
    monkeypatch.setattr(beside, "matrix", lambda *_, **how: tops.append(how["top"]))
    page(look="Maps")
    assert tops[-3:] == [1.0, 1.0, 1.0]


def test_the_token_to_change_is_in_the_address(subtests: pytest.Subtests) -> None:
    for asked, said_to_be, vain in [
        ("2", "Token 2 is “", False),
        ("99", "Token 1 is “", True),
        ("-1", "Token 1 is “", True),
    ]:
        with subtests.test(asked=asked):
            at = page(text="the cat", change="Token", token_at=asked)
            assert said_to_be in said(at)
            assert (f"There is no token “{asked}” in this text; showing 1." in said(at)) == vain


def test_what_is_typed_in_a_form_is_in_the_address() -> None:
    at = page(text="the cat", change="Patch", patch_text="the hat")
    assert at.text_input(key="patch_text").value == "the hat"
    assert not at.button(key="patch").disabled
    at = page(text="the cat", change="Token", new_token="hat")
    assert at.text_input(key="new_token").value == "hat"


def test_the_lines_to_paste_make_both_maps(subtests: pytest.Subtests) -> None:
    for look in ["Maps", "Every head"]:
        with subtests.test(look=look):
            at = page(edits="1.1~h.d.0.1.z", look=look)
            at.session_state["code"] = True
            at.run()
            assert not at.exception
            assert (
                "Scale(" in at.code[0].value and "weights = second - first" in at.code[0].value
            ) == (look == "Maps")
