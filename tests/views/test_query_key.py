"""The Query and key page: its sentences, its ledger, and what it says of odd pairs."""

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.query_key import query_key_pair
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.interventions.address_text import to_address
from explorer.interventions.edits import AblateHead, EditHistory
from explorer.views.attention.query_key_view import pair_sentence, weight_steps
from tests import apps
from tests.tiny import save_model

TEXT = "the cat sleeps"
SITE = "decoder.self_attn"


@pytest.fixture(autouse=True)
def _models(own_models: Path) -> None:
    turned: dict[str, Any] = {"positions": "rotary", "n_kv_heads": 1, "attention_cap": 2.0}
    save_model(own_models, "turned", None, TEXT, **turned)
    save_model(own_models, "far", None, TEXT, positions="alibi")


def page(model: str = "turned", **address: str) -> AppTest:
    at = apps.page("attention/query_key", model=model, pair_view="Products", **address)
    assert at.table[0].value["step"][0].startswith("dot product q·k: the sum of ")
    return at


def test_a_head_that_is_ablated_is_not_offered_to_be() -> None:
    """The link leads on to the effect; where the head is ablated already, there is none."""
    where = {"model": "turned", "head": "0", "layer": "0"}
    for edits, links in (("", 1), (to_address(EditHistory((AblateHead(SITE, 0, 0),), 1)), 0)):
        at = apps.page("attention/query_key", **where, edits=edits, pair_view="Why")
        labels = [str(link.proto.label) for link in at.get("page_link")]
        assert labels.count("Answer without head 0.0") == links


def names_of(model: str) -> list[str]:
    """The steps of the ledger."""
    found = forward_pass.run_text(opened_model.open_model(model), TEXT)
    return [name for name, _ in weight_steps(query_key_pair(found, SITE, 0, 1, 2, 1))]


def test_another_key_changes_the_sentence() -> None:
    at = page(head="0")
    at.selectbox(key="query").set_value(2).run()
    apps.run(at.selectbox(key="key").set_value(1))
    found = forward_pass.run_text(opened_model.open_model("turned"), TEXT)
    one, words = query_key_pair(found, SITE, 0, 0, 2, 1), "{row} attends to {column}: {value}"
    assert pair_sentence(one, words, "“cat”", "“the”") in apps.said(at)
    at.segmented_control(key="order").set_value("By size of the product").run()
    assert "Heads 0 to 1 share this key" in apps.said(at)
    apps.run(at.selectbox(key="pair_view").set_value("Distances"))
    assert "rotated to every other position by the model's own angles" in apps.said(at)


def test_a_masked_pair_says_so_and_one_key_is_not_called_all_of_them() -> None:
    at = page()
    at.selectbox(key="query").set_value(1).run()
    at.selectbox(key="key").set_value(2).run()
    assert "“cat” is masked for “the”: the score becomes −∞" in apps.said(at)
    assert ("mask", "masked") in set(at.table[0].value.itertuples(index=False, name=None))
    only = "**The only visible key of this query**"
    assert only not in apps.said(at)
    at = page(query="0 · <s>")
    assert len(at.dataframe[0].value) == 1
    assert only in apps.said(at)


def test_what_was_not_chosen_follows_the_head_and_the_text() -> None:
    at = page(head="1")
    for text in (TEXT, "the cat sleeps the dog eats"):
        at.text_input(key="text").set_value(text).run()
        found = forward_pass.run_text(opened_model.open_model("turned"), text)
        query, key = (at.selectbox(key=key).value for key in ("query", "key"))
        weights = found.weights(SITE, 0, 1)[1:, 1:]  # no start token
        assert weights[int(query or 0) - 1, int(key or 0) - 1] == weights.max()
    at.selectbox(key="query").set_value(1).run()
    apps.run(at.text_input(key="text").set_value("the cat"))
    assert at.selectbox(key="query").value == 1


def test_the_ledger_goes_step_by_step() -> None:
    steps = names_of("turned")
    bent = "capped at ± 2.00 by tanh: the score"
    assert steps[:3] == ["dot product q·k: the sum of 8 products", "÷ √8", bent]
    assert steps[-1] == "weight"
    steps = names_of("far")
    assert "÷ √8: the score" in steps
    assert steps[steps.index("+ position bias") + 1] == "score + position bias"
    for model, name in [("turned", "score"), ("far", "score + position bias")]:
        assert name in page(model).dataframe[0].value.columns, "before and after the mask"


def test_a_source_is_followed_to_its_head_and_back(shipped_models: None) -> None:
    at = apps.page("attention/query_key", model="induction", layer="1", head="0", pair_view="Why")
    follow = next(one for one in at.button if str(one.key).startswith("follow_key_0."))
    head = int(str(follow.key).rpartition(".")[2])
    apps.run(follow.click())
    assert (at.selectbox(key="layer").value, at.selectbox(key="head").value) == (0, head)
    assert "No head writes before this one, so the trail ends here." in apps.said(at)
    apps.run(at.button(key="trail_0").click())
    assert (at.selectbox(key="layer").value, at.selectbox(key="head").value) == (1, 0)
    assert not any(str(one.key).startswith("trail_") for one in at.button)
    at = apps.page("attention/query_key", model="induction", trail="-".join(["0.0.0q1k0"] * 99))
    assert not any(str(one.key).startswith("trail_") for one in at.button), "of another cell"
