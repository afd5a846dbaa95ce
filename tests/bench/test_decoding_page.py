"""Decoding without a browser: its numbers, its branches, its bad inputs, on every kind of model."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer import library
from explorer.analysis.walk import stages_of
from explorer.bench import forcing
from explorer.components import wire
from explorer.decoding import ends, stand
from explorer.numbers import three
from explorer.text import word_tokenizer
from explorer.text.special import DECODER, SOURCE
from models.generation import Sampling, choose_from
from tests.apps import page, said, views
from tests.grids import grid
from tests.shelf import NAMES, WORDS, put
from tests.watching import watched

pytestmark = pytest.mark.usefixtures("small_models")

WRITES = ("letters", "translation")
WAYS = ("Token by token", "Beam search", "Teacher forcing")
MADE = {"Token by token": "stages", "Beam search": "beam_tree", "Teacher forcing": "forcing"}


def table(at: AppTest, key: str) -> dict[str, dict[str, str]]:
    """What a board shows: rows by their names, cells by their columns."""
    view = next(view for view in at.get("bidi_component") if view.key == key)
    header, _ = wire.unpack(view.proto.bytes)
    columns = [name for name, _ in header["columns"]]
    return {
        row["name"]: dict(zip(columns, (cell[0] for cell in row["cells"]), strict=True))
        for row in header["rows"]
    }


def branches(at: AppTest) -> str:
    return "".join(at.query_params.get("branches", [""]))


@grid("model, way", WRITES, WAYS)
def test_every_way_is_drawn(model: str, way: str) -> None:
    assert MADE[way] in views(page("look/decoding", model=model, way=way))


@grid("way, model", WAYS, [name for name in NAMES if name not in WRITES])
def test_a_model_that_only_reads_says_so(model: str, way: str) -> None:
    at = page("look/decoding", model=model, way=way)
    assert "This model only reads: choose one that writes" in said(at)
    assert not views(at) & {"stages", "beam_tree", "forcing"}
    assert "way" not in {each.key for each in at.segmented_control}


def test_a_model_that_only_reads_leads_to_its_last_stage(subtests: pytest.Subtests) -> None:
    for model in [name for name in NAMES if name not in WRITES]:
        with subtests.test(model=model):
            at = page("look/decoding", model=model)
            at.button(key="to_last_stage").click().run()
            assert not at.exception
            last = stages_of(library.open_model(model).config)[-1].name
            assert "".join(at.query_params["stage"]) == last


def test_the_columns_are_what_the_model_draws_from(subtests: pytest.Subtests) -> None:
    for model in WRITES:
        with subtests.test(model=model):
            at = page("look/decoding", model=model, temperature="0.5", top_k="4", top_p="0.6")
            opened = library.open_model(model)
            logits = stand(opened, str(at.text_input(key="text").value), ()).logits
            final = choose_from(logits[None], Sampling(0.5, 4, 0.6))[0]
            shown = table(at, "stages")
            for token in logits.topk(12).indices.tolist():
                row = shown[opened.tokenizer.label(token)]
                assert row["logit"] == three(float(logits[token]))
                last = row["renormalised"]
                assert last == (three(float(final[token])) if final[token] else "0")
            assert sum(row["top-k 4"] == "cut" for row in shown.values()) == len(shown) - 4
            assert "top-k cuts" in said(at)
            assert "top-p cuts" in said(at)


def test_a_k_of_one_and_the_ends_of_p_leave_what_they_should() -> None:
    assert "1 token can be drawn" in said(page("look/decoding", model="letters", top_k="1"))
    assert "1 token can be drawn" in said(page("look/decoding", model="letters", top_p="0.01"))
    at = page("look/decoding", model="letters", top_p="1.0")
    count = library.open_model("letters").config.vocab_size
    assert f"Nothing is cut: {count:,} tokens can be drawn." in said(at)


def test_at_temperature_0_nothing_is_drawn() -> None:
    at = page("look/decoding", model="letters", temperature="0.0")
    assert "at temperature 0 nothing is drawn" in said(at)
    shown = table(at, "stages")
    assert [row["renormalised"] for row in shown.values()].count("1.00") == 1
    first = branches(at.button(key="draw").click().run())
    assert first == branches(at.number_input(key="seed").set_value(7).run())


def test_branches_are_drawn_forced_undone_and_in_the_address(subtests: pytest.Subtests) -> None:
    for model in WRITES:
        with subtests.test(model=model):
            at = page("look/decoding", model=model, length="3")
            assert not branches(at)
            at.button(key="draw").click().run()
            one = branches(at)
            assert one.startswith("0d")
            at.button(key="write_on").click().run()
            more = branches(at)
            assert more.startswith(f"{one}.1d")
            at.button(key="undo_writing").click().run()
            assert branches(at).startswith(f"{one}~1d")
            at.button(key="redo_writing").click().run()
            assert branches(at) == more
            at.button(key="clear_writing").click().run()
            assert not branches(at)
            assert not at.exception
            again = page("look/decoding", model=model, branches=more)
            assert branches(again) == more
            assert len(again.dataframe[0].value) == 1


def test_branches_that_do_not_fit_are_said_and_begin_anew(subtests: pytest.Subtests) -> None:
    for asked in ["nonsense", "0d9999", "0d5.7f3", "0d5-5-5" + "-5" * 80]:
        with subtests.test(asked=asked):
            at = page("look/decoding", model="letters", branches=asked)
            assert "The branches in the address do not fit" in said(at)
            assert not branches(at)
            at.button(key="draw").click().run()
            assert "The branches in the address do not fit" not in said(at)


def test_branches_belong_to_a_text_and_come_back_with_it() -> None:
    at = page("look/decoding", model="letters")
    at.button(key="draw").click().run()
    before, text = branches(at), at.text_input(key="text").value
    at.text_input(key="text").set_value("the hat").run()
    assert not branches(at)
    at.text_input(key="text").set_value(text).run()
    assert branches(at) == before


def test_a_bad_number_in_the_address_is_said(subtests: pytest.Subtests) -> None:
    for key, bad, sentence in [
        ("temperature", "9", "“Temperature” goes from 0 to 3, not “9”; it is 1."),
        ("top_k", "-3", "“Top-k” goes from 0 to 1,000, not “-3”; it is 0."),
        ("top_p", "0", "“Top-p” goes from 0.01 to 1, not “0”; it is 1."),
        ("seed", "x", "“Seed” goes from 0 to 9,999, not “x”; it is 0."),
    ]:
        with subtests.test(key=key):
            assert sentence in said(page("look/decoding", model="letters", **{key: bad}))


@grid("way, model", WAYS, WRITES)
def test_a_text_of_one_token_and_one_that_is_too_long(model: str, way: str) -> None:
    for text in ("t", "the", "word " * 300, ""):
        at = page("look/decoding", model=model, way=way, text=text)
        assert not at.exception
    assert "There is nothing to read yet" in said(at)
    long = page("look/decoding", model=model, way=way, text="word " * 300)
    assert "shorten it" in said(long)


def test_writing_stops_and_says_why(subtests: pytest.Subtests) -> None:
    for model in WRITES:
        with subtests.test(model=model):
            at = page("look/decoding", model=model, length="64")
            at.button(key="write_on").click().run()
            assert "Stopped: " in said(at)
            assert at.button(key="draw").disabled
            config = library.open_model(model).config
            last = int(branches(at).rsplit("-", 1)[-1].rsplit("d", 1)[-1])
            has_ended = last in ends(library.open_model(model))
            assert has_ended == ("ends the text" in said(at))
            assert has_ended or f"all {config.max_len} places of this model are filled" in said(at)


def test_a_typed_target_is_fed_and_the_shifted_row_is_drawn() -> None:
    at = page("look/decoding", model="translation", way="Teacher forcing", target="le chat noir")
    shown = table(at, "forcing")
    assert [*shown["target in"].values()] == ["<s>", "le", "chat", "noir"]
    assert [*shown["target out"].values()] == ["le", "chat", "noir", "</s>"]
    assert "Fed the target, " in said(at)
    assert "Not in this model's vocabulary" not in said(at)
    at = page("look/decoding", model="translation", way="Teacher forcing", target="le ours")
    assert "so written as <unk>: “ours”." in said(at)
    at = page("look/decoding", model="translation", way="Teacher forcing", target="le " * 90)
    assert "shorten it" in said(at)


def test_without_a_right_answer_its_own_is_fed_and_it_never_departs() -> None:
    at = page("look/decoding", model="translation", way="Teacher forcing", text="cat the")
    assert "it is the model's own answer: type another" in said(at)
    assert "never departs" in said(at)


def test_words_of_ones_own_are_forced_and_what_does_not_fit_is_said() -> None:
    at = page("look/decoding", model="translation")
    at.text_input(key="typed").set_value("le chat").run()
    opened = library.open_model("translation")
    ids = [opened.tokenizer.id_of(word) for word in ("le", "chat")]
    assert branches(at) == f"0f{ids[0]}-{ids[1]}"
    assert not at.text_input(key="typed").value
    assert "Not in this model's vocabulary" not in said(at)
    at.text_input(key="typed").set_value("noir ours").run()
    assert "Not in this model's vocabulary, so written as <unk>: “ours”." in said(at)
    at.button(key="undo_writing").click().run()
    assert "Not in this model's vocabulary" not in said(at)
    at.text_input(key="typed").set_value("le " * 60).run()
    assert "there is room for" in said(at)
    assert branches(at).startswith(f"0f{ids[0]}-{ids[1]}~")


def test_what_does_not_fit_into_the_branches_is_said_and_not_cut() -> None:
    full = ".".join(f"0f{token}" for token in range(20, 258))
    at = page("look/decoding", model="letters", length="5", branches=f"{full}.1")
    assert not at.exception
    before = branches(at)
    assert not at.button(key="draw").disabled
    at.text_input(key="typed").set_value("qqqq").run()
    assert "The branches hold 240 tokens in all, so 2 more fit: Undo or Clear" in said(at)
    assert branches(at) == before
    at.button(key="write_on").click().run()
    assert "so 0 more fit: Undo or Clear makes room" in said(at)
    assert at.button(key="draw").disabled
    assert not at.exception


def test_a_target_is_fed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[object]()
    monkeypatch.setattr(forcing, "forced", watched(forcing.forced, lambda *a: made.append(a)))
    at = page("look/decoding", model="letters", way="Teacher forcing", text="the hat and")
    assert len(made) == 1
    at.run()
    assert len(made) == 1
    at.slider(key="given").set_value(1).run()
    assert len(made) == 2


def test_what_was_chosen_is_there_again_after_another_way() -> None:
    at = page("look/decoding", model="letters", temperature="0.5")
    at.segmented_control(key="way").set_value("Beam search").run()
    at.segmented_control(key="way").set_value("Token by token").run()
    assert at.slider(key="temperature").value == 0.5


@pytest.fixture
def strange(small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that must begin with a certain token, and one whose weights are no numbers."""
    words, both = word_tokenizer(WORDS, SOURCE), {"kind": "encoder-decoder"}
    put(tmp_path, "begins", words, "the cat", None, first_id=5, banned_ids=(6, 7), **both)
    put(tmp_path, "broken", word_tokenizer(WORDS, DECODER), "the cat", kind="decoder")
    assert small_models != tmp_path, "these stand in their place"
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    named = dict(library.open_model("broken").model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))


@pytest.mark.usefixtures("strange")
def test_a_model_that_must_begin_with_a_token_begins_with_it() -> None:
    at = page("look/decoding", model="begins", seed="3", temperature="2.0")
    assert "the only one that is left" in said(at)
    at.button(key="draw").click().run()
    assert branches(at) == "0d5"
    at.button(key="write_on").click().run()
    assert not at.exception
    assert not {"6", "7"} & set(branches(at).split("d")[-1].split("-"))
    for way in WAYS[1:]:
        assert MADE[way] in views(page("look/decoding", model="begins", way=way))


@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize("way", WAYS)
def test_a_model_whose_logits_are_none_is_one_sentence(way: str) -> None:
    at = page("look/decoding", model="broken", way=way)
    assert "logits are no numbers" in said(at)
    assert not views(at) & {"stages", "beam_tree", "forcing"}
