"""Generation without a browser: what is cut, the branches, and what does not fit into them."""

from functools import partial
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.forward_pass.stages import stages_of
from explorer.catalog import opened_model
from explorer.inference.sampling_stages import sampling_stages
from explorer.views.generation.token_by_token import cut_summary
from models.sampling import Sampling
from tests import apps
from tests.apps import said, views
from tests.tiny import save_forced_to_begin
from tests.views.drawing import cells, press, sent, steps_of

pytestmark = pytest.mark.usefixtures("small_models")

WRITES = ("letters", "translation")
UNKNOWN = "Not in this model's vocabulary"
LOGITS = torch.arange(1_000.0)
"""Each token is e times likelier than the one before it."""


page = partial(apps.page, "generation/generation", model="letters")


def next_token(at: AppTest) -> str:
    """What stands over the table."""
    return str(sent(at, "stages")[0]["idle"])


def branches(at: AppTest) -> str:
    return "".join(at.query_params.get("branches", [""]))


def test_a_model_that_only_reads_leads_to_its_last_stage() -> None:
    for model in ["reviews", "reverse"]:
        at = press(page(model=model), "to_last_stage")
        last = stages_of(opened_model.open_model(model).config)[-1].name
        assert "".join(at.query_params["stage"]) == last


def test_a_candidate_that_is_a_part_of_a_character_says_which(shipped_models: None) -> None:
    """In the tree and as the next token; where it ends the character it has its name."""
    tokens = opened_model.open_model("shakespeare").tokenizer.encode("😀")
    emoji = [token for token in tokens if "<0x" in token.label]
    last = "😀 4/4 <0x80>"
    names = [*(f"{emoji[at - 1].label} byte {at}/4" for at in (1, 2, 3)), last]
    at = page(model="shakespeare", text="Oh ")
    at.text_input(key="typed").set_value("😀").run()
    header, _ = sent(at, "branches_tree")
    assert [node["label"] for node in header["nodes"][1:]] == names
    address = branches(at).rpartition(str(emoji[-1].id))[0]
    assert address, "the last byte is still to come"
    forced = page(model="shakespeare", text="Oh 😀", way="Teacher forcing", given="2")
    row = cells(forced, "forcing")["target"]
    assert set(row.values()) >= {f"😀 {at}/4 {emoji[at - 1].label}" for at in (2, 3, 4)}


def test_what_is_cut_is_told_from_what_rounds_to_0() -> None:
    for how, words in {
        (1.0,): "104 tokens can be sampled, 896 round to probability 0.",
        (0.005,): "1 token can be sampled, 999 round to probability 0.",
        (1.0, 50): "top-k cuts 950 tokens (probability 1.93e−22): 50 tokens can be sampled.",
        (0.005, 2): "cuts 998 tokens (probability 0): 1 token can be sampled, 1 rounds to",
        (1.0, 5_000): "top-k cuts 0 tokens (probability 0): 104 tokens can be sampled, 896",
        (0.005, 50, 0.9): "top-p cuts 49 tokens (probability 0): 1 token can be sampled.",
        (1.0, None, 0.9): "top-p cuts 997 tokens (probability 0.0498): 3 tokens can be sampled.",
    }.items():
        sampling = Sampling(*how)  # type: ignore[arg-type]
        assert words in cut_summary(sampling_stages(LOGITS, sampling), sampling)
    some, sampling = LOGITS[:10].clone(), Sampling(top_k=5)
    some[3] = -torch.inf
    words = "Of 9 tokens, top-k cuts 4"
    assert words in cut_summary(sampling_stages(some, sampling), sampling)


def test_what_is_cut_is_marked_and_at_temperature_0_nothing_is_sampled() -> None:
    assert [*next(iter(cells(page(), "stages").values()))] == ["logit", "softmax"]
    shown = cells(page(top_k="4", top_p="0.6"), "stages")
    assert sum(row["top-k 4"] == "cut" for row in shown.values()) == len(shown) - 4
    at = page(temperature="0.0")
    assert "at temperature 0 nothing is sampled" in next_token(at)
    assert [row["temperature 0"] for row in cells(at, "stages").values()].count("1.00") == 1
    first = branches(press(at, "draw"))
    assert first == branches(at.number_input(key="seed").set_value(7).run())


def test_branches_are_sampled_forced_undone_and_in_the_address() -> None:
    """They belong to a text, and come back with it."""
    at = page(model="translation", length="3")
    assert not branches(at)
    one = branches(press(at, "draw"))
    assert one.startswith("0d")
    more = branches(press(at, "write_on"))
    assert more.startswith(f"{one}.1d")
    assert branches(press(at, "undo_writing")).startswith(f"{one}~1d")
    assert branches(press(at, "redo_writing")) == more
    text = at.text_input(key="text").value
    at.text_input(key="text").set_value("the cat").run()
    assert not branches(at)
    at.text_input(key="text").set_value(text).run()
    assert branches(at) == more
    assert not branches(press(at, "clear_writing"))
    again = page(model="translation", branches=more)
    assert branches(again) == more
    assert len(again.dataframe[0].value) == 1


@pytest.mark.parametrize(("model", "word"), [("letters", "the"), ("translation", "chat")])
def test_a_step_of_the_branch_shows_what_was_then_and_goes_on_from_there(
    model: str, word: str
) -> None:
    at = press(page(model=model, length="3"), "write_on")
    whole, last = branches(at), steps_of(at, "written") - 1
    assert at.session_state["written"] == last
    then = page(model=model, branches=whole.replace("d", "f"), written="1")
    alone = page(model=model, branches=whole.partition("-")[0].replace("d", "f"))
    assert cells(then, "stages") == cells(alone, "stages")
    assert "written" in then.query_params
    sizes = [sent(each, "decoded_head")[0]["rows"] for each in (then, at)]
    assert len(sizes[0]) == len(sizes[1]), "the map keeps its size"
    assert "·" in sizes[0]
    then.text_input(key="typed").set_value(word).run()
    assert ".1f" in branches(then), "behind the step that is shown"
    assert then.session_state["written"] == steps_of(then, "written") - 1


def test_generation_stops_and_says_why() -> None:
    for model in WRITES:
        at = press(page(model=model, length="64"), "write_on")
        assert "Stopped: " in next_token(at)
        assert at.button(key="draw").disabled
        opened = opened_model.open_model(model)
        last = int(branches(at).rsplit("-", 1)[-1].rsplit("d", 1)[-1])
        filled = f"all {opened.config.max_len} positions of this model are filled"
        is_end = last in opened.config.generation.eos_ids
        assert ("ends the text" if is_end else filled) in next_token(at)


def test_a_typed_target_is_fed_and_the_shifted_row_is_drawn() -> None:
    at = page(model="translation", way="Teacher forcing", target="le chat noir")
    shown = cells(at, "forcing")
    assert [*shown["input"].values()] == ["<s>", "le", "chat", "noir"]
    assert [*shown["target"].values()] == ["le", "chat", "noir", "</s>"]
    assert UNKNOWN not in said(at)


def test_words_of_ones_own_are_forced_and_what_does_not_fit_is_said() -> None:
    at = page(model="translation")
    at.text_input(key="typed").set_value("le chat").run()
    tokenizer = opened_model.open_model("translation").tokenizer
    forced = f"0f{tokenizer.id_of('le')}-{tokenizer.id_of('chat')}"
    assert branches(at) == forced
    assert not at.text_input(key="typed").value
    assert UNKNOWN not in said(at)
    at.text_input(key="typed").set_value("noir ours").run()
    assert f"{UNKNOWN}, so written as <unk>: “ours”." in said(at)
    assert UNKNOWN not in said(press(at, "undo_writing"))
    at.text_input(key="typed").set_value("le " * 60).run()
    assert "Your words have" in said(at)
    assert branches(at).startswith(f"{forced}~")


def test_what_does_not_fit_into_the_branches_is_said_and_not_cut() -> None:
    full = ".".join(f"0f{token}" for token in range(20, 258))
    at = page(length="5", branches=f"{full}.1")
    before = branches(at)
    assert not at.button(key="draw").disabled
    at.text_input(key="typed").set_value("qqqq").run()
    assert "The branches hold at most 240 tokens in total, so 2 more fit: undo or clear" in said(at)
    assert branches(at) == before
    assert "so 0 more fit: undo or clear to make room" in said(press(at, "write_on"))
    assert at.button(key="draw").disabled


def test_a_model_that_must_begin_with_a_token_begins_with_it(own_models: Path) -> None:
    save_forced_to_begin(own_models, "begins")
    at = page(model="begins", seed="3", temperature="2.0")
    assert "the only one that is left" in next_token(at)
    assert branches(press(at, "draw")) == "0d5"
    written = branches(press(at, "write_on")).split("d")[-1].split("-")
    assert not {"6", "7"} & set(written)
    apps.run(at.segmented_control(key="way").set_value("Beam search"))
    assert "beam_tree" in views(at)
    apps.run(at.segmented_control(key="way").set_value("Token by token"))
    assert at.slider(key="temperature").value == 2.0, "what was chosen is there again"
