"""What a link hides and for whom it was made; every link repeats it; the table of parameters."""

from itertools import chain
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from docs import addresses
from explorer.app import address, address_parameters
from explorer.app.address_parameters import PARAMETERS
from explorer.app.page_table import PLACES
from explorer.app.reader_store import KEPT, KeptSession
from explorer.app.session import SESSION_KEY
from explorer.system import long_texts
from tests.apps import component_data, page, run, said
from tests.source import python_files
from tests.views.drawing import press, put_state, sent

pytestmark = pytest.mark.usefixtures("small_models")
STAYS = {"hidden": ["head", "view", "Training"], "lesson": ["masks"], "lesson_step": ["2"]}
STAYS |= {"present": ["true"]}
OPTIONS = [
    *("Bar: Your sentence", "Bar: Attention", "Bar: Layer", "Bar: Head"),
    *("Page: Display options", "Page: View"),
    *("Under the page: Code", "Under the page: Export"),
    *(f"Navigation: {place}" for place in PLACES),
]


def a_page(path: str, **address: Any) -> AppTest:
    return page(path, model="letters", **address)


def titles(at: AppTest) -> set[str]:
    return {link.proto.label for link in at.sidebar.get("page_link")}


def test_what_is_hidden_is_not_drawn_or_not_displayed_and_keeps_its_value() -> None:
    hidden = ["text", "head", "view", "code", "Training"]
    at = a_page("attention/attention", text="the hat", layer="1", head="1", hidden=hidden)
    assert [each.key for each in at.selectbox if each.key == "head"] == []
    assert [each.key for each in at.text_input if each.key == "text"] == []
    assert at.selectbox(key="layer").value == 1
    assert "Layer 1, head 1" in sent(at, "attention_head")[0]["words"]["title"]
    assert component_data(at, "page_top") == ["attention", ["code", "view"]]
    assert "All heads" in titles(at)
    assert not {"Training", "Runs"} & titles(at)
    assert at.query_params["text"] == ["the hat"] or at.query_params["text"] == "the hat"


def test_a_head_that_is_clicked_while_its_list_is_hidden_is_in_the_address() -> None:
    at = a_page("attention/attention", hidden=["head", "text"], layer="1", head="1")
    put_state(at, head=2, text="a hat")
    assert dict(at.query_params) | {"head": "2", "text": "a hat"} == dict(at.query_params)


def test_a_fixed_model_has_no_list_and_no_page_that_opens_another() -> None:
    """What follows from it is not said to be chosen."""
    at = a_page("attention/attention", hidden=["model"], text="日本")
    assert "model" not in [each.key for each in at.selectbox]
    assert "Letters" in sent(at, "attention_head")[0]["words"]["title"]
    assert "Models" not in titles(at)
    assert "suggested_model" not in [each.key for each in at.button]
    listed = put_state(at, share=True).multiselect(key="hide_in_link")
    assert listed.value == []
    assert "Navigation: Models" not in listed.options
    assert component_data(at, "copy_link")[0] == ["hidden", ["model"]]


def test_every_link_repeats_what_is_around_a_view_and_a_kept_view_leaves_it_out() -> None:
    asked = STAYS | {"sidebar": ["folded"]}
    at = a_page("attention/attention", **asked, layer="0")
    found = [parse_qs(link.proto.query_string) for link in at.get("page_link")]
    assert len(found) > 15
    assert [link for link in found if link | asked != link] == []
    press(at, "keep")
    (view,) = (KEPT.of(at.session_state[SESSION_KEY].owner) or KeptSession()).views
    assert view.address == "/attention?model=letters&layer=0"


def test_the_class_builder_writes_what_is_hidden_into_the_link() -> None:
    at = a_page("attention/attention", hidden=["view"])
    put_state(at, share=True)
    assert at.multiselect(key="hide_in_link").options == OPTIONS
    assert component_data(at, "copy_link")[:2] == [["hidden", ["view"]], ["sidebar", []]]
    at.multiselect(key="hide_in_link").set_value(["view", "layer", "Training"])
    for toggle in ("fix_model", "fold_in_link", "lock_in_link"):
        at.toggle(key=toggle).set_value(True)
    run(at)
    assert component_data(at, "copy_link") == [
        ["hidden", ["view", "layer", "Training", "model", "show_all"]],
        ["sidebar", ["folded"]],
        ["model", [at.session_state[SESSION_KEY].shown_model]],
        ["version", [str(address_parameters.VERSION)]],
    ]


def test_hidden_controls_come_back_at_a_click_unless_the_link_says_otherwise() -> None:
    at = a_page("attention/attention", hidden=["head"])
    press(put_state(at, share=True), "show_all")
    assert "head" in [each.key for each in at.selectbox]
    assert "hidden" not in at.query_params
    at = a_page("attention/attention", hidden=["head", "show_all"])
    assert "show_all" not in [each.key for each in put_state(at, share=True).button]


def test_what_undoes_a_click_in_a_picture_is_never_hidden() -> None:
    at = a_page("attention/attention", hidden=["hide", "pinned"])
    assert component_data(at, "page_top") == ["attention", []]
    assert "“hidden” names “hide” and “pinned”, and no control has that name." in said(at)


def test_the_version_of_this_app_leaves_the_address() -> None:
    at = a_page("attention/attention", version="1")
    assert "version" not in at.query_params
    assert "version" not in said(at)


LONG = "the hat " * 400


def test_a_text_too_long_for_an_address_is_kept_and_its_link_opens_it() -> None:
    at = a_page("input/tokens")
    run(at.text_input(key="text").set_value(LONG))
    name = at.query_params["text_file"]
    assert "text" not in at.query_params
    assert name == [long_texts.name_of(LONG)] or name == long_texts.name_of(LONG)
    links = [parse_qs(link.proto.query_string) for link in at.get("page_link")]
    assert all(link["text_file"] == [long_texts.name_of(LONG)] for link in links)
    assert "the link works only here" in said(put_state(at, share=True))
    assert "its tokens included" not in said(at)
    at.query_params["run"] = f"characters-1-run-{'0' * 24}"
    assert "its tokens included. Do not train on a secret text and share" in said(run(at))
    again = a_page("input/tokens", text_file=long_texts.name_of(LONG))
    assert again.text_input(key="text").value == LONG
    run(again.text_input(key="text").set_value("the hat"))
    assert "text_file" not in again.query_params


def test_a_link_whose_text_is_not_here_says_so() -> None:
    for name in ("0" * 32, "../../secret", "x"):
        at = a_page("attention/attention", text_file=name)
        assert "The text of this link is not on this server" in said(at)
        assert "text_file" not in at.query_params


def test_a_long_text_in_an_address_is_kept_too() -> None:
    at = a_page("input/tokens", text=LONG)
    assert at.text_input(key="text").value == LONG
    assert "text" not in at.query_params
    assert "text_file" in at.query_params


def test_every_page_of_the_table_is_one() -> None:
    pages = {path.stem for path in python_files("pages")}
    assert set(chain.from_iterable(row.pages for row in PARAMETERS)) <= pages


def test_a_name_stands_for_one_thing_on_a_page() -> None:
    seen = set()
    for row in PARAMETERS:
        for on in row.pages or [""]:
            assert (row.name, on) not in seen
            seen.add((row.name, on))


def test_a_page_may_ask_only_for_what_it_declares() -> None:
    with pytest.raises(KeyError):
        address.bound("no_such_parameter")


def test_the_documentation_is_made_of_the_table() -> None:
    assert addresses.FILE.read_text("utf-8") == addresses.text(), "run: python -m docs.addresses"


def test_a_value_that_is_too_long_stays_invalid() -> None:
    at = page("generation/generation", model="letters", branches="0d5" + "-5" * 5_000)
    assert "The branches in the address do not fit" in said(at)
