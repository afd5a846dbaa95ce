"""The page on which a tokenizer is trained, and the sentence under several of them."""

import ast
import math
from functools import partial

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from explorer.app.session import SESSION_KEY
from explorer.inference import trained_tokenizers
from explorer.text.bpe_training import BPE, WORDPIECE
from explorer.text.plain_tokenizer import visible_token
from explorer.text.unigram import UNIGRAM
from explorer.views.input import tokenizer_comparison
from explorer.views.shared import tokenizer_source
from explorer.views.shared.tokenizer_source import TrainingFile
from explorer.views.tokenizer_training.training_steps import training_code
from tests import apps
from tests.apps import said
from tests.views.drawing import put_state, run, steps_of

OWN, FILE = tokenizer_source.OWN, tokenizer_source.FILE
WAYS = (BPE, WORDPIECE, UNIGRAM)
TRAINED = ("tokens long", "pieces")
"""One of both is on screen where something was trained."""
pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "input/tokenizer_training")
tokens_page = partial(apps.page, "input/tokens", model="letters")


def test_a_file_holds_a_part_of_what_was_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    short, name = "a cat and a hat", trained_tokenizers.TEXTS[0]
    about = apps.exported(page(learn_from=OWN, learn_own=short), monkeypatch).about
    assert about["learned from"] == short
    said = apps.exported(page(learn_from=name), monkeypatch).about["learned from"]
    long = trained_tokenizers.shipped_text(name)
    assert len(said) < 500 < len(long)
    assert said.startswith(long[:100])
    assert said.endswith(f"{long[-100:]} ({len(long):,} characters, without the middle here)")


def test_every_step_names_the_next_merge_and_training_that_ends_early_says_why() -> None:
    for way in (BPE, WORDPIECE):
        text = trained_tokenizers.shipped_text(trained_tokenizers.PAPER)
        found = trained_tokenizers.trained_merges(text, 20, way)
        at = page(learn_how=way, learn_from=trained_tokenizers.PAPER, learn_rules="20")
        last = len(found.merges) - 1
        for step in {0, 1, last}:
            put_state(at, learn_step=step)
            names = [visible_token(found.tokens[number], way) for number in found.merges[step]]
            assert f"Next, {names[0]} and {names[1]} are merged" in said(at)
            put_state(at, learn_step=step + 1)
            assert f"Merge {step + 1}: {names[0]} and {names[1]} became {names[2]}." in said(at)
        assert steps_of(at, "learn_step") == len(found.merges) + 1
    count = len(trained_tokenizers.trained_merges(text, 100, BPE).merges)
    assert count < 100
    ends = f"Training ends after {count} merges, though 100 were allowed"
    assert ends in said(page(learn_from=trained_tokenizers.PAPER))
    for way, name in zip(WAYS * 2, trained_tokenizers.TEXTS, strict=False):
        words = said(page(learn_how=way, learn_from=name, learn_rules="20"))
        assert any(each in words for each in TRAINED), (way, name)
        assert "though" not in words or name == trained_tokenizers.PAPER


def test_the_sentence_is_encoded_lowest_merge_first() -> None:
    at = page(text="the hat", learn_step="40")
    put_state(at, learn_encode=3)
    assert "Merge h and e (merge 1)." in said(at)
    assert "token IDs" in at.dataframe[0].value.columns
    assert "not a byte." in said(at)


def test_odd_words_of_ones_own_and_odd_sentences_are_read_or_refused() -> None:
    odd = ["", " ", "a", "\x00\x07", "\u202e", "😀"]
    for way, own in zip(WAYS * 2, odd, strict=True):
        text = said(page(learn_how=way, learn_from=OWN, learn_own=own))
        assert any(words in text for words in ("no text to train on", *TRAINED)), (way, own)
    sentences = ["", "x" * 1_500, "😀🏳️‍🌈 cat", "\x00\x07\x1b[31m", "a\u202eb", "x"]
    for way, text in zip(WAYS * 2, sentences, strict=True):
        at = page(learn_how=way, text=text)
        assert ("nothing to read yet" in said(at)) is (not text)
        assert not at.switch_page("../../pages/input/tokens.py").run().exception


def test_what_was_chosen_follows_to_the_tokens() -> None:
    at = page(learn_rules="20", learn_from=trained_tokenizers.PAPER)
    at.query_params["beside"] = f"Trained here: {BPE}"
    at.switch_page("../../pages/input/tokens.py").run()
    assert f"on “{trained_tokenizers.PAPER}”, with at most 20 new tokens" in said(at)
    made = trained_tokenizers.trained_tokenizer(
        trained_tokenizers.shipped_text(trained_tokenizers.PAPER), BPE, 20
    )
    text = str(at.text_input(key="text").value)
    assert f"{BPE} · {len(made.encode(text))} tokens, vocabulary of {made.vocab_size}" in said(at)


def brought(at: AppTest, content: bytes) -> AppTest:
    return at.file_uploader(key="learn_file").upload("mine.txt", content).run()


class Large:
    """An upload that would fail if it were read."""

    file_id, size = "large", 200_000_000

    def getvalue(self) -> bytes:
        raise AssertionError("a file that cannot fit is not read")


def test_a_file_is_judged_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "file_uploader", lambda *_, **__: Large())
    at = page(learn_from=FILE)
    assert "200,000,000 bytes; the limit is 1,000,000 characters" in said(at)


def test_a_file_is_kept_from_page_to_page_until_it_is_refused_or_removed() -> None:
    at = brought(page(learn_from=FILE), b"low low lower")
    at.switch_page("../../pages/input/tokens.py").run()
    at.switch_page("../../pages/input/tokenizer_training.py").run()
    assert "tokens long" in said(at)
    too_long = said(brought(at, b"a " * 600_000))
    assert "1,200,000 characters; the limit is 1,000,000 characters" in too_long
    assert at.session_state[SESSION_KEY].state(TrainingFile).text == ""
    assert "is not UTF-8 text" in said(brought(at, b"\xff\xfe"))
    assert "tokens long" in said(brought(at, b"a b aa"))
    at.file_uploader(key="learn_file").set_value(None).run()
    assert "no text to train on" in said(at)
    assert at.session_state[SESSION_KEY].state(TrainingFile).text == ""


def test_what_the_scores_of_a_unigram_sum_to_is_said() -> None:
    at = page(learn_how=UNIGRAM, learn_from=trained_tokenizers.PAPER, learn_rules="20")
    text = trained_tokenizers.shipped_text(trained_tokenizers.PAPER)
    size = trained_tokenizers.unigram_sizes(text, 20)[0]
    scores = trained_tokenizers.unigram_pieces(text, size).scores.values()
    assert f"e^score sums to {sum(map(math.exp, scores)):.3g} over" in said(at)


def test_a_tokenizer_beside_that_becomes_the_chosen_one_is_said() -> None:
    at = tokens_page(beside=["reverse", "translation"])
    note = "reverse is the chosen model now, so its tokenizer comes first."
    assert "is the chosen model" not in said(at)
    at.selectbox(key="model").set_value("reverse").run()
    assert note in said(at)
    assert at.multiselect(key="beside").value == ["translation"]
    at.text_input(key="text").set_value("12").run()
    assert note in said(at)
    at.selectbox(key="model").set_value("letters").run()
    assert note not in said(at)
    itself = said(tokens_page(beside="letters"))
    assert note.replace("reverse", "letters") in itself


def test_more_tokenizers_than_fit_beside_are_said() -> None:
    names = [f"Trained here: {way}" for way in tokenizer_source.ALGORITHMS]
    names += ["translation", "reviews", "reverse"]
    assert "left out" not in said(tokens_page(beside=names))
    more = [*names, "one", "two"]
    assert tokenizer_comparison.invalid_names(more, more, "letters") == [
        "At most 6 can be compared; left out: “one”, “two”."
    ]


def test_the_pasted_lines_give_what_is_on_screen() -> None:
    own = "low low lower lowest slow slower"
    paper = trained_tokenizers.shipped_text(trained_tokenizers.PAPER)
    for way, name, text in [(BPE, trained_tokenizers.PAPER, paper), (WORDPIECE, "own", own)]:
        _, printed = run(training_code(name, text, way, 20, 1).text()[0])
        found = trained_tokenizers.trained_merges(text, 20, way)
        first = found.counts_after(1).pairs[0]
        names = found.tokens[first.left], found.tokens[first.right]
        assert printed[0] == f"{names[0]} {names[1]} {first.count}"
        assert printed[-1] == str(found.counts_after(1).tokens)

    _, printed = run(training_code(trained_tokenizers.PAPER, paper, UNIGRAM, 20, 1).text()[0])
    size = trained_tokenizers.unigram_sizes(paper, 20)[1]
    pieces = trained_tokenizers.unigram_pieces(paper, size).pieces[1:13]
    scores = [score for _, score in ast.literal_eval("\n".join(printed))]
    same = [score for _, score in pieces]  # of equal pieces any may be the first
    assert scores == pytest.approx(same, abs=1e-3)
