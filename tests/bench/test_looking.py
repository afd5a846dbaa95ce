"""The controls over the large head: what an address asks for, what cannot be, what is undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library
from explorer.analysis.looks import Look, Shown, shown
from explorer.bench import large, looking, wishes
from explorer.bench.looking import summary
from explorer.bench.wishes import FULL, MOST_HIDDEN
from explorer.choices import token_names
from explorer.reading import Reading, read
from tests import zoo
from tests.apps import taken
from tests.grids import grid

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str | list[str]) -> AppTest:
    """The Attention page alone, opened by an address."""
    at = AppTest.from_file(str(ROOT / "pages" / "look" / "attention.py"), default_timeout=60)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run()


def unfold(at: AppTest) -> None:
    """Open what holds the controls: they are drawn while somebody looks at them."""
    at.session_state["adjust"] = True
    at.run()


def said(at: AppTest) -> str:
    return "\n".join([*(text.value for text in at.text), *(each.value for each in at.caption)])


def test_the_usual_page_shows_the_head_as_it_is() -> None:
    at = page()
    assert not at.exception
    assert "The head as the pass left it" in said(at)
    assert "Every row adds up to one" in said(at)


def test_an_address_gives_the_look_it_names() -> None:
    at = page(
        hide_first="true", hide=["2 · cat"], mass="70", heads="Mean", colours="Row", log="true"
    )
    assert not at.exception
    wanted = "mean of the heads · 2 keys hidden · 70 % of each row · colours by row · log colours"
    assert wanted in said(at)
    assert "Hidden: 2 keys" in said(at)
    assert "Cut: of each row the fewest keys that reach 70 % of it" in said(at)


BAD = {
    "heads": "“heads” can be This head, Mean, Max, Mean of all layers or Max of all layers, "
    "not “banana”; showing This head.",
    "weighting": "“weighting” can be Plain or Value length, not “banana”; showing Plain.",
    "colours": "“colours” can be 1, Picture, Row or Column, not “banana”; showing 1.",
    "mass": "The share shown is between 10 and 100 %, not “banana”; showing all.",
    "hide": "There is no key “banana” to hide in this text.",
    "words": "“words” can be true or false, not “banana”; it is off.",
    "log": "“log” can be true or false, not “banana”; it is off.",
}


def test_a_bad_value_in_the_address_is_said_and_replaced(subtests: pytest.Subtests) -> None:
    for key in BAD:
        with subtests.test(key=key):
            at = page(**{key: "banana"})
            assert not at.exception
            assert BAD[key] in said(at)
            assert "The head as the pass left it" in said(at)


def test_a_number_of_5000_digits_is_no_share() -> None:
    at = page(mass="1" * 5000)
    assert not at.exception
    assert "The share shown is between 10 and 100 %" in said(at)


def test_a_pair_that_is_not_there_is_said() -> None:
    at = page(sentences="A→B")
    assert not at.exception
    assert "There is one sentence here" in said(at)


def test_a_mistake_is_said_until_something_else_is_chosen() -> None:
    at = page(mass="7")
    assert "not “7”" in said(at)
    unfold(at)
    at.toggle(key="log").set_value(True).run()
    assert "not “7”" not in said(at)
    assert "log colours" in said(at)


def test_everything_is_undone_by_one_button() -> None:
    at = page(hide_first="true", mass="50", heads="Max", weighting="Value length")
    assert "largest of the heads" in said(at)
    unfold(at)
    at.button(key="reset_look").click().run()
    assert not at.exception
    assert "The head as the pass left it" in said(at)


@grid("view, heads", ["Matrix", "Lines"], ["This head", "Mean", "Max"])
def test_lines_and_matrix_take_every_look(view: str, heads: str) -> None:
    look = {"weighting": "Value length", "mass": "60", "words": "true", "hide_special": "true"}
    at = page(view=view, heads=heads, **look)
    assert not at.exception
    assert "Kobayashi et al. 2020" in said(at)


def test_a_key_that_the_next_text_does_not_have_is_shown_again() -> None:
    at = page(hide=["2 · cat"])
    assert "1 key hidden" in said(at)
    at.session_state["text"] = "the dog sleeps"
    at.run()
    assert not at.exception
    assert "The head as the pass left it" in said(at)


def test_the_summary_names_all_that_was_chosen() -> None:
    everything = Look("max", "value", (0, 3), 70, True, "A→B", "column", True)
    assert summary(everything).count(" · ") == 7
    assert summary(Look()) == "The head as the pass left it"
    assert MOST_HIDDEN * 35 < 1000, "the address holds the names of all hidden keys"


def test_what_is_taken_away_names_the_hidden_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    made = taken(page(hide_first="true", hide=["2 · cat"]), monkeypatch)
    assert made.about["hidden keys"] == f"0 · {made.columns[0]}, 2 · cat"


def test_the_lines_to_paste_say_what_they_leave_out(subtests: pytest.Subtests) -> None:
    for look in [{"heads": "Mean"}, {"hide_first": "true"}, {"mass": "50"}]:
        with subtests.test(look=look):
            for address, is_said in ((look, True), ({"log": "true", "colours": "Row"}, False)):
                at = page(**address)
                at.session_state["code"] = True
                at.run()
                assert not at.exception
                assert ("before what Adjust does to them" in at.code[0].value) == is_said


def test_other_colours_do_not_combine_the_heads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(*given: Any) -> Shown:
        made.append(given)
        return shown(*given)

    monkeypatch.setattr(large, "shown", counted)
    at = page(heads="Mean", mass="35")
    unfold(at)
    assert len(made) == 1
    at.toggle(key="log").set_value(True).run()
    at.segmented_control(key="colours").set_value("Row").run()
    assert not at.exception
    assert "colours by row · log colours" in said(at)
    assert len(made) == 1


def clicked(reading: Reading, keys: tuple[int, ...], **chosen: str | list[str]) -> AppTest:
    """A page of the look alone, after a click on the label of these keys."""

    def alone(reading, keys, chosen):  # type: ignore[no-untyped-def]  # run by its source alone
        import streamlit as st

        from explorer.bench import looking

        if "clicked" not in st.session_state:
            st.session_state["clicked"] = True
            st.session_state["_folded_look"] = chosen
            looking.toggle_hidden(reading, reading.parts[0].name, keys)
        st.session_state["look"] = looking.choose(reading, reading.parts[0].name)

    at = AppTest.from_function(alone, args=(reading, keys, chosen), default_timeout=60).run()
    assert not at.exception
    return at


def test_a_struck_special_key_is_shown_again_and_the_others_stay_hidden(tmp_path: Path) -> None:
    found = read(library.opened_from(zoo.bert(tmp_path / "bert"), "bert"), "the cat sat")
    special = [at for at, token in enumerate(found.source) if token.special]
    assert len(special) > 1
    for first in ({}, {"hide_first": "true"}):
        at = clicked(found, (special[0],), hide_special="true", **first)
        left = at.session_state["look"].hidden
        assert left == tuple(special[1:])
    at = clicked(found, (special[-1],), hide_special="true", hide=[token_names(found.source)[2]])
    assert at.session_state["look"].hidden == tuple(sorted({2, *special[:-1]}))
    at = clicked(found, (2,), hide_special="true")
    assert at.session_state["look"].hidden == tuple(sorted({2, *special}))


def test_the_first_key_is_shown_again_also_where_it_was_named_too() -> None:
    found = read(library.open_model("reviews"), "not a cat")
    first = token_names(found.source)[0]
    assert clicked(found, (0,), hide_first="true").session_state["look"].hidden == ()
    at = clicked(found, (0,), hide_first="true", hide=[first])
    assert at.session_state["look"].hidden == ()


def test_more_keys_than_can_be_named_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (looking, wishes):
        monkeypatch.setattr(each, "MOST_HIDDEN", 2)
    found = read(library.open_model("reviews"), "not a cat")
    names = token_names(found.source)
    at = clicked(found, (0,), hide=names[1:3])
    assert at.session_state["look"].hidden == (1, 2)
    assert FULL in said(at)
    three = ["0 · the", "1 · black", "2 · cat"]
    assert FULL in said(page(hide=three))
    assert FULL not in said(page(hide=three[:2]))
