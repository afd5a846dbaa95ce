"""The question of the Circuits page: a first one, templates, a table, and what is no question."""

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog.opened_model import open_model
from explorer.circuits.pair_templates import make_pairs
from explorer.circuits.text_pairs import TextPair, token_pair
from explorer.text.number_format import three
from tests import apps
from tests.apps import said, views
from tests.views.drawing import press, sent

METRIC = "Logit difference"


def page(**address: str) -> AppTest:
    return apps.page("experiments/circuits", **{"model": "induction", **address})


def tokens(at: AppTest) -> tuple[str, str]:
    """The letters of both texts."""
    header, _ = sent(at, "pair_tokens")
    return "".join(header["labels"][1:]), "".join(header["below"][1:])


def test_a_first_visitor_is_shown_a_question_that_is_one() -> None:
    at = page()
    pair = token_pair(open_model("induction"), TextPair(*tokens(at)), METRIC)
    assert at.text_input(key="corrupted").value == pair.texts.corrupted
    clean, corrupted = three(pair.clean_value), three(pair.corrupted_value)
    assert (
        f"Logit difference of “c” and “a”: {clean} after the clean text (above), {corrupted} after "
        "the corrupted one (below); the difference is "
    ) in said(at)


def test_another_sentence_brings_another_corrupted_text_until_one_is_typed() -> None:
    at = page()
    at.text_input(key="text").set_value("xyzxyzxy").run()
    assert tokens(at)[0] == "xyzxyzxy"
    assert at.text_input(key="corrupted").value == tokens(at)[1] != "xyzxyzxy"
    at.text_input(key="corrupted").set_value("xyzxyzxx").run()
    at.text_input(key="text").set_value("zyxzyxzy").run()
    assert tokens(at) == ("zyxzyxzy", "xyzxyzxx")


def test_only_the_answers_that_the_metric_reads_are_asked_for() -> None:
    for metric, keys in (
        (METRIC, {"answer_token", "against_token"}),
        ("Loss", {"answer_token"}),
        ("KL divergence", set()),
    ):
        at = page(outcome=metric)
        assert {each.key for each in at.text_input} & {"answer_token", "against_token"} == keys
    at = page(answer_token="cd")
    assert "“cd” is 2 tokens, “c”, “d”: give one token." in said(at)
    at = page(corrupted="abc")
    assert "make them as many." in said(at)


def test_a_template_shows_one_of_its_pairs_and_means_over_all() -> None:
    at = page(pair_source="Induction", pair_count="3", pair_seed="7", pair_shown="2")
    pairs = make_pairs(open_model("induction"), "Induction", 3, 7).pairs
    assert tokens(at) == (pairs[1].clean, pairs[1].corrupted)
    assert "Mean over 3 pairs: " in said(at)
    press(at, "clean_to_bar")
    assert at.text_input(key="text").value == pairs[1].clean
    assert not any(button.key == "clean_to_bar" for button in at.button)
    at.number_input(key="pair_seed").set_value(8).run()
    assert not at.exception
    assert tokens(at)[0] == make_pairs(open_model("induction"), "Induction", 3, 8).pairs[0].clean


def upload(at: AppTest, data: str) -> AppTest:
    at.file_uploader(key="pair_table").upload("pairs.csv", data.encode(), "text/csv").run()
    assert not at.exception
    return at


def test_a_table_of_ones_own_is_asked_about() -> None:
    at = page(pair_source="CSV")
    assert "pair_tokens" not in {view.key for view in at.get("bidi_component")}
    at = upload(at, "clean,corrupted\nabcabca,acbacba\nxyxyx,xyxyy\n")
    assert tokens(at) == ("abcabca", "acbacba")
    assert "Mean over 2 pairs: " in said(at)
    at = upload(page(pair_source="CSV"), "abcabca,acbacba\nxyxyx,xyx\n")
    assert "Line 2 is no pair here. The clean text has 6 tokens" in said(at)


@pytest.mark.usefixtures("small_models")
def test_two_stacks_have_a_way_out() -> None:
    at = page(model="translation")
    assert "Circuits are found in models of one stack" in said(at)
    assert "pair_tokens" not in views(at)
