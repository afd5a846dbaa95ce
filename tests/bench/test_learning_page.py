"""The page on which a tokenizer is learnt, and the sentence under several of them."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from explorer import learnt, library
from explorer.bench import learning_source, tokenizers
from explorer.snippets import learning as lines
from explorer.text.learning import BPE, WORDPIECE
from explorer.text.made_here import label_of
from explorer.text.unigram import UNIGRAM
from tests.grids import grid

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "explorer" / "shell.py"
pytestmark = pytest.mark.usefixtures("small_models")
WAYS = pytest.mark.parametrize("way", [BPE, WORDPIECE, UNIGRAM])


def inside(page: str = "learning", **address: str | list[str]) -> AppTest:
    at = AppTest.from_file(str(SHELL), default_timeout=60)
    for key, value in address.items():
        at.query_params[key] = value
    return at.run().switch_page(f"../pages/look/{page}.py").run()


def said(at: AppTest) -> str:
    assert not at.exception
    return "\n".join([*(t.value for t in at.text), *(c.value for c in at.caption)])


@WAYS
@pytest.mark.parametrize("name", learnt.SHIPPED)
def test_every_shipped_text_is_learnt_in_every_way(way: str, name: str) -> None:
    at = inside(learn_how=way, learn_from=name)
    assert "pieces" in said(at) or "tokens long" in said(at)


def test_every_step_names_the_next_rule(subtests: pytest.Subtests) -> None:
    for way in [BPE, WORDPIECE]:
        with subtests.test(way=way):
            found = learnt.rules(learnt.shipped(learnt.PAPER), 20, way)
            at = inside(learn_how=way, learn_from=learnt.PAPER, learn_rules="20")
            for step, (left, right, new) in enumerate(found.rules):
                names = [label_of(found.tokens[number], way) for number in (left, right, new)]
                assert f"Next, {names[0]} and {names[1]} are merged" in said(at)
                at.button(key="learn_step_next").click().run()
                assert f"Rule {step + 1}: {names[0]} and {names[1]} became {names[2]}." in said(at)
            if len(found.rules) < 20:
                assert "so learning ends" in said(at)
            assert at.button(key="learn_step_next").disabled


def test_the_sentence_is_read_lowest_rule_first() -> None:
    at = inside(text="the hat", learn_step="40")
    at.slider(key="learn_encode").set_value(3).run()
    assert "Merge h and e (rule 1)." in said(at)


@WAYS
@pytest.mark.parametrize("own", ["", " ", "a", "\x00\x07", "\u202e", "😀"])
def test_odd_words_of_ones_own(way: str, own: str) -> None:
    at = inside(learn_how=way, learn_from="Words of your own", learn_own=own)
    text = said(at)
    assert "no text to learn from" in text or "tokens long" in text or "pieces, the" in text


@WAYS
def test_no_sentence_is_one_sentence(way: str) -> None:
    assert "nothing to read yet" in said(inside(learn_how=way, text=""))


@WAYS
@pytest.mark.parametrize("text", ["x" * 1_500, "😀🏳️‍🌈 cat", "\x00\x07\x1b[31m", "a\u202eb"])
def test_strange_sentences_are_read_or_refused(way: str, text: str) -> None:
    said(inside(learn_how=way, text=text))
    said(inside("tokens", text=text))


def test_what_was_chosen_follows_to_the_tokens() -> None:
    at = inside(learn_rules="20", learn_from=learnt.PAPER)
    at.query_params["beside"] = f"Learnt here: {BPE}"
    at.switch_page("../pages/look/tokens.py").run()
    assert f"from “{learnt.PAPER}”, at most 20 rules" in said(at)
    made = learnt.tokenizer(learnt.shipped(learnt.PAPER), BPE, 20)
    text = str(at.text_input(key="text").value)
    assert f"{BPE} · {len(made.encode(text))} tokens of {made.vocab_size}" in said(at)


def test_others_are_made_only_while_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_one", lambda *_: pytest.fail("nobody looks at it"))
    assert "Learnt here" not in said(inside("tokens"))


def test_of_another_model_only_the_tokenizer_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    really, names = library.opened_from, []

    def opened_from(folder: Path, name: str, *more: str) -> library.Opened:
        names.append(name)
        return really(folder, name, *more)

    monkeypatch.setattr(library, "opened_from", opened_from)
    library._open.cache_clear()
    at = inside("tokens", model="letters", beside="reverse")
    assert "reverse · " in said(at)
    assert names == ["letters"]


FILE = "A file of your own"


def brought(at: AppTest, content: bytes) -> AppTest:
    return at.file_uploader(key="learn_file").upload("mine.txt", content).run()


class Large:
    """An upload that would fail if it were read."""

    file_id, size = "large", 200_000_000

    def getvalue(self) -> bytes:
        raise AssertionError("a file that cannot fit is not read")


def test_a_file_is_judged_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "file_uploader", lambda *_, **__: Large())
    at = inside(learn_from=FILE)
    assert "200,000,000 bytes; at most 1,000,000 characters fit" in said(at)


def test_a_file_that_is_refused_is_not_kept() -> None:
    at = brought(inside(learn_from=FILE), b"a b aa")
    assert "tokens long" in said(at)
    assert "1,200,000 characters; at most 1,000,000 fit" in said(brought(at, b"a " * 600_000))
    assert learning_source.KEPT not in at.session_state
    assert "is not text in UTF-8" in said(brought(at, b"\xff\xfe"))


def test_a_file_that_is_removed_is_no_longer_learnt_from() -> None:
    at = brought(inside(learn_from=FILE), b"low low lower")
    assert "tokens long" in said(at)
    at.file_uploader(key="learn_file").set_value(None).run()
    assert "no text to learn from" in said(at)
    assert learning_source.KEPT not in at.session_state


def test_a_file_is_kept_while_another_page_is_looked_at() -> None:
    at = brought(inside(learn_from=FILE), b"low low lower")
    at.switch_page("../pages/look/tokens.py").run()
    at.switch_page("../pages/look/learning.py").run()
    assert "tokens long" in said(at)


def test_a_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    really = learning_source._read

    def reads(content: bytes) -> str:
        read.append(content)
        return really(content)

    monkeypatch.setattr(learning_source, "_read", reads)
    at = brought(inside(learn_from=FILE), b"low low lower")
    at.button(key="learn_step_next").click().run()
    assert "Rule 1: " in said(at)
    assert read == [b"low low lower"]
    brought(at, b"high high")
    assert read[1:] == [b"high high"]


@WAYS
def test_words_that_are_refused_are_refused_on_both_pages(way: str) -> None:
    words = {"learn_from": "Words of your own", "learn_own": "ab " * 1_000}
    refused = "3,000 characters; 2,000 fit into the address"
    assert refused in said(inside(learn_how=way, **words))
    at = inside("tokens", beside=f"Learnt here: {way}", **words)
    assert refused in said(at)
    assert f"Learnt here: {way} · " not in said(at)


def test_the_excerpt_ends_where_a_word_does() -> None:
    text = "catastrophe " * 60
    at = inside(learn_from="Words of your own", learn_own=text)
    assert f"The first {33 * 12 - 1} of its {len(text)} characters." in said(at)


def test_what_the_scores_of_a_unigram_sum_to_is_said() -> None:
    at = inside(learn_how=UNIGRAM, learn_from=learnt.PAPER, learn_rules="20")
    text = learnt.shipped(learnt.PAPER)
    scores = learnt.pieces(text, learnt.sizes(text, 20)[0]).scores.values()
    assert f"e^score sums to {sum(map(math.exp, scores)):.3g} over" in said(at)


def test_what_the_address_of_tokens_asks_for_in_vain_is_replaced() -> None:
    at = inside("tokens", learn_rules="7", learn_from="nowhere", beside="nothing")
    assert "“Beside it” has no “nothing” here." in said(at)
    assert f"from “{learnt.SHIPPED[0]}”, at most 100 rules" in said(at)


def test_a_tokenizer_beside_that_becomes_the_chosen_one_is_said() -> None:
    at = inside("tokens", model="letters", beside=["reverse", "translation"])
    assert "is the chosen model" not in said(at)
    at.selectbox(key="model").set_value("reverse").run()
    note = "reverse is the chosen model now, so its tokenizer stands first."
    assert note in said(at)
    assert at.multiselect(key="beside").value == ["translation"]
    at.text_input(key="text").set_value("12").run()
    assert note in said(at)
    at.selectbox(key="model").set_value("letters").run()
    assert note not in said(at)
    assert note.replace("reverse", "letters") in said(
        inside("tokens", model="letters", beside="letters")
    )


def test_more_tokenizers_than_fit_beside_are_said() -> None:
    names = [
        *(f"Learnt here: {way}" for way in learning_source.WAYS),
        "translation",
        "reviews",
        "reverse",
    ]
    at = inside("tokens", model="letters", beside=[*names, "nothing"])
    assert "“Beside it” has no “nothing” here." in said(at)
    assert "left out" not in said(at)
    assert tokenizers.in_vain([*names, "one", "two"], [*names, "one", "two"], "letters") == [
        "At most 6 stand beside it; left out: “one”, “two”."
    ]


@pytest.mark.parametrize(
    ("way", "name"), [(BPE, learnt.PAPER), (WORDPIECE, "own"), (UNIGRAM, learnt.PAPER)]
)
def test_the_pasted_lines_give_what_is_on_screen(way: str, name: str) -> None:
    text = "low low lower lowest slow slower" if name == "own" else learnt.shipped(name)
    pasted = [sys.executable, "-c", lines.learning(name, text, way, 20, 1)()]
    ran = subprocess.run(pasted, cwd=ROOT, check=True, capture_output=True, text=True)
    if way == UNIGRAM:  # of equal pieces any may be the first
        pieces = learnt.pieces(text, learnt.sizes(text, 20)[1]).pieces[1:13]
        scores = [score for _, score in ast.literal_eval(ran.stdout)]
        assert scores == pytest.approx([score for _, score in pieces], abs=1e-3)
        return
    found = learnt.rules(text, 20, way)
    first = found.after(1).pairs[0]
    names = found.tokens[first.left], found.tokens[first.right]
    printed = ran.stdout.splitlines()
    assert printed[0] == f"{names[0]} {names[1]} {first.count}"
    assert printed[-1] == str(found.after(1).tokens)


def test_learning_that_ends_before_its_limit_says_why() -> None:
    at = inside(learn_from=learnt.PAPER)
    count = len(learnt.rules(learnt.shipped(learnt.PAPER), 100, BPE).rules)
    assert count < 100
    assert f"Learning ends after {count} rules, though 100 were allowed" in said(at)
    assert "though" not in said(inside(learn_from=learnt.README, learn_rules="20"))


@grid("way, name", [BPE, WORDPIECE], learnt.SHIPPED)
def test_learning_ends_early_only_where_every_word_is_one_token(name: str, way: str) -> None:
    found = learnt.rules(learnt.shipped(name), 1_000, way)
    is_early = len(found.rules) < 1_000
    assert is_early == (not found.after(len(found.rules)).pairs)


def test_numbers_of_tokens_are_not_taken_for_bytes() -> None:
    at = inside()
    assert {"token numbers"} <= {*at.dataframe[0].value.columns}
    assert "It is no byte." in said(at)
