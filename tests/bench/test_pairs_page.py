"""The Query and key page: what it says, of every kind of model, alone and inside the app."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library, reading
from explorer.analysis.pairs import pair
from explorer.bench.pairs import ledger, said
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests.apps import page
from tests.shelf import NAMES, put, shelf
from tests.shelf import WORDS as KNOWN

PAGE = Path(__file__).resolve().parents[2] / "pages" / "look" / "pairs.py"
SHELL = PAGE.parents[2] / "explorer" / "shell.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = shelf(tmp_path_factory.mktemp("checkpoints"))
    words = word_tokenizer(KNOWN, DECODER)
    more: dict[str, Any] = {
        "kind": "decoder",
        "positions": "rotary",
        "n_kv_heads": 1,
        "attention_cap": 2.0,
    }
    put(made, "turned", words, "the cat sleeps", **more)
    put(made, "far", words, "the cat sleeps", kind="decoder", positions="alibi")
    return made


@pytest.fixture(autouse=True)
def _shelf(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))


def inside(**address: str) -> AppTest:
    at = AppTest.from_file(SHELL, default_timeout=60)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run().switch_page("../pages/look/pairs.py").run()


def texts(at: AppTest) -> str:
    return "\n".join([*(t.value for t in at.text), *(c.value for c in at.caption)])


def test_every_kind_of_model_has_the_page(subtests: pytest.Subtests) -> None:
    for model in [*NAMES, "turned", "far"]:
        with subtests.test(model=model):
            at = inside(model=model)
            assert not at.exception
            assert "the model's own numbers" in texts(at)
            assert at.table[0].value["step"][0].startswith("q·k, the sum of ")


def test_the_page_runs_alone() -> None:
    assert not AppTest.from_file(str(PAGE), default_timeout=60).run().exception


def test_a_text_of_one_token_has_a_pair() -> None:
    at = inside(model="letters", text="t")
    assert not at.exception


def test_another_key_changes_the_sentence_and_the_order_changes_nothing_else() -> None:
    at = inside(model="turned", head="0")
    at.selectbox(key="query").set_value(2).run()
    at.selectbox(key="key").set_value(1).run()
    assert not at.exception
    found = reading.read(library.open_model("turned"), "the cat sleeps")
    one = pair(found, "decoder.self_attn", 0, 0, 2, 1)
    expected = said(one, "{row} attends to {column}: {value}", "“cat”", "“the”")
    assert expected in texts(at)
    before = at.table[0].value
    at.segmented_control(key="order").set_value("By size of the product").run()
    assert at.table[0].value.equals(before)
    assert "Heads 0 to 1 share this key" in texts(at)
    assert "turned by the model's own angles" in texts(at)


def test_a_forbidden_pair_says_so() -> None:
    at = inside(model="turned")
    at.selectbox(key="query").set_value(1).run()
    at.selectbox(key="key").set_value(2).run()
    assert "may not look at “cat”: the mask takes the score out" in texts(at)
    assert ("mask", "may not look") in set(at.table[0].value.itertuples(index=False, name=None))


def test_a_bad_token_in_the_address_is_said_and_replaced(subtests: pytest.Subtests) -> None:
    for query in ["99", "abc", "1 · nothing", "-1", "99999999999999999999"]:
        with subtests.test(query=query):
            at = AppTest.from_file(str(PAGE), default_timeout=60)
            at.query_params["query"] = query
            at.run()
            assert not at.exception
            assert f"“Query” has no “{query}” here; showing" in texts(at)


def test_what_was_not_chosen_follows_the_head_and_the_text() -> None:
    at = inside(model="turned")
    last = at.selectbox(key="query").value or 0
    at.text_input(key="text").set_value("the cat sleeps the dog eats").run()
    assert at.selectbox(key="query").value == last + 3
    at.selectbox(key="query").set_value(1).run()
    at.text_input(key="text").set_value("the cat").run()
    assert at.selectbox(key="query").value == 1
    assert not at.exception


def test_the_ledger_goes_step_by_step() -> None:
    found = reading.read(library.open_model("turned"), "the cat sleeps")
    steps = [name for name, _ in ledger(pair(found, "decoder.self_attn", 0, 1, 2, 1))]
    bent = "bent to stay within ± 2.00: the score"
    assert steps[:3] == ["q·k, the sum of 8 products", "÷ √8", bent]
    assert steps[-1] == "weight"
    far = reading.read(library.open_model("far"), "the cat sleeps")
    steps = [name for name, _ in ledger(pair(far, "decoder.self_attn", 0, 1, 2, 1))]
    assert "÷ √8: the score" in steps
    after_bias = steps.index("plus the bias of the distance") + 1
    assert steps[after_bias] == "score with bias"
    assert not any("logit" in step for step in steps)


def test_what_is_no_number_and_a_row_that_sees_nothing_are_said() -> None:
    opened = library.open_model("far")
    found = reading.fresh_batch(opened, ("the cat sleeps",))[0]
    site = "decoder.0.self_attn"
    mask = found.trace.values[f"{site}.mask"].expand(1, 1, -1, -1).clone()
    mask[:, :, 1] = False
    found.trace.values[f"{site}.mask"] = mask
    blind = pair(found, "decoder.self_attn", 0, 0, 1, 0)
    assert said(blind, "{row} {column} {value}", "the", "cat").startswith("the may look at nothing")
    assert dict(ledger(blind))["weight"] == "0"
    found.trace.values[f"{site}.q"] = found.trace.values[f"{site}.q"] * float("nan")
    unknown = pair(found, "decoder.self_attn", 0, 0, 2, 0)
    assert dict(ledger(unknown))["weight"] == "no value"


def test_a_model_whose_numbers_are_none_has_the_page(folder: Path) -> None:
    put(folder, "broken", word_tokenizer(KNOWN, DECODER), "the cat sleeps", kind="decoder")
    named = dict(library.open_model("broken").model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))
    at = inside(model="broken")
    assert not at.exception
    assert "no value" in set(at.table[0].value["value"])


def test_one_key_is_not_called_all_of_them() -> None:
    at = inside(model="turned", query="0 · <s>")
    titles = [each.value for each in at.markdown]
    assert at.selectbox(key="query").value == 0
    seen = len(at.dataframe[0].value)
    assert ("**The only key that this query may look at**" in titles) == (seen == 1)
    assert seen == 1


def test_before_and_after_the_mask_it_is_called_a_score(subtests: pytest.Subtests) -> None:
    for model, name in [("letters", "score"), ("far", "score with bias")]:
        with subtests.test(model=model):
            at = page("look/pairs", model=model)
            assert name in at.dataframe[0].value.columns
