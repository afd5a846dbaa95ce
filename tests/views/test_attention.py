"""The large head: its display options, and what is pinned in it and carried to other pages."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest

from explorer.app.controls import token_names
from explorer.catalog import opened_model
from explorer.inference.forward_pass import run_text
from explorer.text.number_format import three
from explorer.views.attention import display_options
from explorer.views.attention.display_options import TOO_MANY_HIDDEN
from explorer.views.shared import pinned
from explorer.views.shared.pinned import PinnedCell
from tests import apps
from tests.apps import exported, said
from tests.grids import grid
from tests.views.drawing import persistent, press, put_state, sent

GROUPS = ((0,), (1, 2), (3,))
pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "attention/attention")


def test_the_caption_is_of_the_map_that_is_drawn_with_the_display_options_of_the_address() -> None:
    raw = "raw attention weights. "
    at = page()
    assert "Every row sums to 1" in said(at)
    assert raw in said(at)
    at = page(hide=["2 · cat"])
    _, planes = sent(at, "attention_head")
    drawn = torch.from_numpy(np.frombuffer(planes["exact"], np.float32).copy())
    largest = re.search(r"as drawn.*?([\d.]+), the largest weight", said(at))
    assert largest is not None
    assert largest[1] in [three(float(weight)) for weight in drawn[1:]]
    assert raw not in said(at)
    assert "The first key" in said(at)
    for options in ({"hide_first": "true"}, {"weighting": "Value norm"}, {"mass": "70"}):
        words = said(page(**options))
        assert "largest weight." not in words, options
        assert "The first key" not in words, options
    how = {"mass": "70", "heads": "Mean", "colours": "Row", "log": "true"}
    at = page(hide_first="true", hide=["2 · cat"], **how)
    numbers, colours = "2 keys hidden · 70 % of the attention mass", "colours per row · log colours"
    assert f"mean over heads · {numbers} · {colours}" in said(at)
    assert "Hidden: 2 keys" in said(at)
    assert "the fewest keys of each row that reach 70 %" in said(at)
    with pytest.MonkeyPatch.context() as patch:
        made = exported(at, patch)
    assert made.about["hidden keys"] == f"0 · {made.columns[0]}, 2 · cat"


def test_the_browser_draws_other_heads_where_the_weights_are_drawn_as_they_are() -> None:
    at = page(head="1")
    (every, _), (head, _) = sent(at, "overview"), sent(at, "attention_head")
    of, (before, between) = every["every"]["of"], every["every"]["title"]
    assert (head["of"], head["at"]) == (of, [0, 1])
    assert head["words"]["title"] == f"{before}0{between}1"
    assert sent(page(log="true"), "attention_head")[0]["of"] == head["of"]
    assert sent(page(text="mat cat"), "attention_head")[0]["of"] != head["of"]
    for options in ({"hide_first": "true"}, {"heads": "Mean"}, {"mass": "70"}, {"colours": "Row"}):
        assert "of" not in sent(page(**options), "attention_head")[0], options


def test_a_mistake_is_said_until_something_else_is_chosen_and_one_button_undoes_all() -> None:
    at = put_state(page(mass="7", hide=["2 · cat"]), adjust=True)
    assert "not “7”" in said(at)
    assert "1 key hidden" in said(at)
    at.toggle(key="log").set_value(True).run()
    assert "not “7”" not in said(at)
    assert "log colours" in said(at)
    assert "hidden" not in said(put_state(at, text="the dog sleeps")), "it has no such key"
    assert "log colours" not in said(press(at, "reset_look"))


def hidden_after_a_click(
    model: str, text: str, keys: tuple[int, ...], **chosen: str | list[str]
) -> tuple[int, ...]:
    """What is hidden of a model's first attention, after a click on the label of these keys."""

    def alone(model, text, keys, chosen):  # type: ignore[no-untyped-def]  # run by its source alone
        import streamlit as st

        from explorer.app.context import page_context
        from explorer.app.session import session
        from explorer.views.attention import display_options

        st.session_state.update(text=text, model=model)
        context = page_context()
        if "clicked" not in st.session_state:
            st.session_state["clicked"] = True
            session().persistent["display"] = chosen
            display_options.toggle_hidden_keys(context, keys)
        st.session_state["options"] = display_options.choose_display(context)

    made = AppTest.from_function(alone, args=(model, text, keys, chosen), default_timeout=60)
    at = apps.run(made)
    return tuple(at.session_state["options"].hidden)


def test_one_struck_special_key_is_shown(published_models: None) -> None:
    one = ("bert", "the cat sat")
    found = run_text(opened_model.open_model("bert"), one[1])
    special = [at for at, token in enumerate(found.source) if token.special]
    assert len(special) > 1
    first, last = (special[0],), (special[-1],)
    both = {"hide_special": "true", "hide_first": "true"}
    assert hidden_after_a_click(*one, first, **both) == tuple(special[1:])
    named = [token_names(found.source)[2]]
    left = hidden_after_a_click(*one, last, hide_special="true", hide=named)
    assert left == tuple(sorted({2, *special[:-1]}))
    more = hidden_after_a_click(*one, (2,), hide_special="true")
    assert more == tuple(sorted({2, *special}))


def test_a_named_first_key_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And more keys than can be named are said."""
    one = ("reviews", "not a cat")
    names = token_names(run_text(opened_model.open_model("reviews"), one[1]).source)
    assert hidden_after_a_click(*one, (0,), hide_first="true") == ()
    assert hidden_after_a_click(*one, (0,), hide_first="true", hide=names[:1]) == ()
    monkeypatch.setattr(display_options, "HIDE", replace(display_options.HIDE, most=2))
    assert hidden_after_a_click(*one, (0,), hide=names[1:3]) == (1, 2)
    three = ["0 · the", "1 · black", "2 · cat"]
    assert TOO_MANY_HIDDEN in said(page(hide=three))
    assert TOO_MANY_HIDDEN not in said(page(hide=three[:2]))


@given(some.none() | some.integers(0, 9), some.none() | some.integers(0, 9))
def test_an_address_says_what_is_pinned(query: int | None, key: int | None) -> None:
    wish = PinnedCell(query, key)
    assert pinned.parse_pinned(str(wish), 10, 10) == wish
    short = pinned.parse_pinned(str(wish), 5, 5)
    assert short.query == (query if query is not None and query < 5 else None)
    assert short.key == (key if key is not None and key < 5 else None)


def test_an_invalid_address_pins_and_draws_nothing() -> None:
    for wish in ["banana", "q", "q-1", "k1q2", "q1 k2", "q" + "9" * 5_000]:
        assert pinned.parse_pinned(wish, 10, 10) == PinnedCell(), wish[:10]
    for wish in ["4", "", "x"]:
        assert pinned.parse_heads(wish, 4) == ()
    assert pinned.parse_heads("2.0.0", 4) == (0, 2)
    assert pinned.parse_heads("all", 4) == (0, 1, 2, 3)


def test_a_token_is_found_in_a_picture_of_words() -> None:
    assert pinned.pinned_cell(PinnedCell(2, 3), GROUPS, GROUPS) == (1, 2)
    assert pinned.pinned_cell(PinnedCell(2, None), GROUPS, GROUPS) is None
    assert pinned.pinned_cell(PinnedCell(2, 9), GROUPS, GROUPS) is None, "that key is left out"
    assert pinned.pinned_token(PinnedCell(2, 3), GROUPS, GROUPS) == (0, 1)
    assert pinned.pinned_token(PinnedCell(None, 3), GROUPS, GROUPS) == (1, 2)
    assert pinned.pinned_token(PinnedCell(None, 3), GROUPS, GROUPS, one_strip=True) == (0, 2)
    assert pinned.pinned_token(PinnedCell(), GROUPS, GROUPS) is None


def test_what_is_pinned_reaches_as_far_as_the_rows_and_the_columns() -> None:
    part = "decoder.cross_attn"
    found = run_text(opened_model.open_model("translation"), "the black cat")
    rows, columns = len(found.rows(part)), len(found.columns(part))
    assert rows != columns
    last = PinnedCell(rows - 1, columns - 1)
    assert last.within(found, part) == last
    assert PinnedCell(rows, columns).within(found, part) == PinnedCell()


def test_drawn_heads_belong_to_the_head_beside_them_and_a_pinned_cell_to_its_text() -> None:
    at = page(model="letters", view="Lines", head="1", drawn="1.2", pinned="q2k1")
    assert persistent(at, "pinned") == {"drawn": "1.2", "pinned": "q2k1"}
    assert "“pinned”" not in said(at)
    at.selectbox(key="head").set_value(3).run()
    assert persistent(at, "pinned") == {"pinned": "q2k1"}
    apps.run(at.text_input(key="text").set_value("t"))
    assert "q2" not in str(persistent(at, "pinned"))
    assert "“pinned”" not in said(at)


@grid("view, part", ["Matrix", "Lines", "Tokens"], ["Encoder", "Decoder", "Cross"])
def test_a_pinned_cell_is_the_pair_of_the_query_and_key_page(view: str, part: str) -> None:
    at = page(model="translation", part=part, view=view, pinned="q1k2", words="true")
    assert persistent(at, "pinned") == {"pinned": "q1k2"}
    apps.run(at.switch_page("../../pages/attention/query_key.py"))
    assert (at.selectbox(key="query").value, at.selectbox(key="key").value) == (1, 2)


def test_no_view_makes_streamlit_look_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would load pandas, which takes 65 MB of a server whose pages have no table."""
    looked_at: list[object] = []
    for module in ("dataframe_util", "components.v2.bidi_component.main"):
        monkeypatch.setattr(f"streamlit.{module}.determine_data_format", looked_at.append)
    page()
    assert looked_at == []
