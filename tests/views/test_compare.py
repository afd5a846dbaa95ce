"""The Compare page without a browser: what stands on the other side, and what is said of both."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.weight_change import rank_of_change, weight_changes
from explorer.inference import results_cache
from explorer.interventions.address_text import to_address
from explorer.interventions.edits import AblateHead, EditHistory
from explorer.runs.run import open_folder
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from explorer.views.compare import changed_weights
from explorer.views.compare.sides import EDITED, HEAD, MODEL, SENTENCE, STEP
from explorer.views.shared import measurement
from tests import apps
from tests.apps import exported, said, views
from tests.tiny import save_model, trained_run
from tests.views.drawing import press, sent, titles

ALIKE = "Jensen–Shannon divergence of their rows: 0 bits"
SECOND_HEAD = AblateHead("decoder.self_attn", 0, 1)
EDITS = to_address(EditHistory((SECOND_HEAD,), 1))
pytestmark = pytest.mark.usefixtures("small_models")


def page(compared_with: str = HEAD, **address: str) -> AppTest:
    asked = {"model": "letters", "with": compared_with, **address}
    return apps.page("experiments/compare", **asked)


def other_head(at: AppTest) -> tuple[object, object]:
    return at.selectbox(key="other_layer").value, at.selectbox(key="other_head").value


def test_a_head_beside_itself_and_the_export_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(layer="0", head="1", other_layer="0", other_head="1")
    assert f"Both maps are over the same tokens. {ALIKE}" in said(at)
    at.selectbox(key="other_layer").set_value("1")
    apps.run(at.selectbox(key="other_head").set_value("3"))
    assert ALIKE not in said(at)
    figure = exported(at, monkeypatch)
    name = "Letters · Decoder self-attention · Layer {}, head {}".format
    assert figure.title == f"{name(1, 3)} − {name(0, 1)}"
    assert figure.title in said(at), "as it is called on screen"
    place = [figure.about[f"{name} of the second"] for name in ("part", "layer", "head")]
    assert place == ["decoder.self_attn", "1", "3"]
    assert "interventions of the second" not in figure.about


def test_models_that_cut_a_text_differently_are_compared_over_what_both_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`letters` has bytes and a causal mask, `reviews` words and a class."""
    at = page(MODEL, other_model="reviews", text="the dog", layer="0", head="1")
    found = {key: sent(at, key)[0] for key in ("map_first", "map_second", "map_difference")}
    rows = {key: header["rows"] for key, header in found.items()}
    assert len(rows["map_first"]) != len(rows["map_second"]) == 3
    assert rows["map_difference"] == ["<s>/<cls>", "the", "␣dog"]
    assert rows["map_difference"] == found["map_difference"]["columns"]
    counts = f"cut differently, into {len(rows['map_first'])} and 3 tokens"
    assert f"{counts}, so the difference is over 3 groups" in said(at)
    assert "adds up the weights of a group's keys and averages the rows of its queries" in said(at)
    assert "Second − first, over 3 groups of tokens" in titles(at)
    assert "Left out" not in said(at)
    for header in found.values():
        assert [each["rows"] for each in header["beside"]] == list(rows.values())
    figure = exported(at, monkeypatch)
    assert list(figure.rows) == list(figure.columns) == rows["map_difference"]
    assert "the difference is over 3 groups of tokens" in figure.about["rows and columns"]


def test_answers_and_other_texts_have_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    for at in (
        page(SENTENCE, model="translation", part="Cross", text="the cat", other_text="the red cat"),
        page(SENTENCE, text="the cat", head="0", other_text="the cat and the hat"),
    ):
        assert views(at) >= {"map_first", "map_second"}
        assert "map_difference" not in views(at)
        one, other = (sent(at, key)[0] for key in ("map_first", "map_second"))
        assert [each["rows"] for each in one["beside"]] == [one["rows"], other["rows"]]
        assert one["beside"] == other["beside"]
        assert exported(at, monkeypatch).title.count("head 0"), "the first map is exported"


def test_the_other_model_reads_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(at: AppTest) -> tuple[str, str]:
        return str(at.selectbox(key="other_model").value), said(at)

    for text, first in [("the cat", "translation"), ("314", "reverse")]:
        name, words = other(page(MODEL, text=text))
        assert name == first
        assert "choose" not in words
    # The same kind comes first, but only if it reads the text.
    digits = character_tokenizer("0123456789", DECODER)
    save_model(tmp_path / "more", "digits", digits, "1", max_len=6)
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path / "more"))
    assert other(page(MODEL, text="314"))[0] == "digits"
    assert other(page(MODEL, text="the cat"))[0] == "translation"
    assert other(page(MODEL, text="31415926"))[0] == "reverse"
    at = page(MODEL, text="31415926", other_model="digits")
    assert "9 tokens long and digits reads at most 6: shorten it to its first 5 ch" in said(at)
    assert "To compare the whole text, choose Reverse." in said(at)
    assert not views(at)


def test_long_ranks_wait_and_both_shapes_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "QUICK", 1)
    monkeypatch.setattr(results_cache, "_results", results_cache.cache_of(10**6))
    at = page(MODEL, other_model="translation", text="the cat")
    differing, unpaired = (table.value for table in at.dataframe)
    assert set(differing["rank of the change"]) == {"–"}
    (label,) = [each.label for each in at.expander if each.label.startswith("Not compared")]
    assert label.endswith(f": {len(unpaired)}")
    embedding = unpaired.set_index("matrix").loc["decoder.embedding"]
    assert embedding["first"] != embedding["second"]
    press(at, "begin_ranks")
    assert "–" not in set(at.dataframe[0].value["rank of the change"])


@pytest.mark.usefixtures("at_the_machine")
def test_steps_beside_a_model_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained_run(tmp_path / "runs", steps=2)
    at = page(STEP, model=run.name, text="cab", part="Cross")
    assert "map_difference" in views(at), "the answer may be another one, but the rows are the same"
    steps = at.selectbox(key="other_step")
    assert steps.options == [str(step) for step, _ in run.snapshots()]
    assert ALIKE not in said(at)
    first, last = (open_folder(run.snapshots()[at][1]).model for at in (0, -1))
    found = weight_changes(last, first)
    (table,) = at.dataframe
    ranks = [rank_of_change(last, first, each.name) for each in found.matrices]
    assert table.value.to_dict("records") == changed_weights.rows(found.matrices, ranks)
    assert f"{len(found.matrices)} of {found.compared} matrices differ" in said(at)
    apps.run(steps.set_value(steps.options[-1]))
    assert ALIKE in said(at)
    assert "0 of " in said(at)
    assert not at.dataframe

    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "none"))
    monkeypatch.setenv("EXPLORER_MODELS", str(run.folder / "checkpoint"))
    at = page(STEP, model="checkpoint", text="cab")
    assert at.selectbox(key="model").value == "checkpoint", "it was trained elsewhere"
    assert at.selectbox(key="other_step").options[0] == "0"


def test_what_is_taken_away_says_what_was_edited_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what was undone nor what does not fit."""
    undone, misfit = AblateHead("decoder.self_attn", 0, 2), AblateHead("decoder.self_attn", 9, 0)
    address = to_address(EditHistory((SECOND_HEAD, misfit, undone), 2))
    at = page(EDITED, layer="1", edits=address)
    assert ALIKE not in said(at)
    found = exported(at, monkeypatch).about
    assert found["interventions of the second"] == "Layer 0, head 1: zero ablation"
    assert found["the same in an address"] == f"edits={EDITS}"
    assert ALIKE in said(press(press(at, "undo"), "undo"))


def test_the_other_side_follows_what_is_chosen_until_somebody_chooses_there() -> None:
    at = page(layer="0", head="1")
    at.selectbox(key="layer").set_value(1).run()
    assert other_head(at) == ("1", "2")
    at.selectbox(key="head").set_value(2).run()
    assert other_head(at) == ("1", "3")
    at.selectbox(key="other_head").set_value("0").run()
    at.selectbox(key="head").set_value(1).run()
    assert other_head(at) == ("1", "0")

    at = page(SENTENCE, text="the cat")
    assert at.text_input(key="other_text").value == "the cat", "no example has as many tokens"
    at.text_input(key="other_text").set_value("a cat").run()
    apps.run(at.text_input(key="text").set_value("the dog"))
    assert at.text_input(key="other_text").value == "a cat"
