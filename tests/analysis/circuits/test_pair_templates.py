"""Templates of pairs: which fit a model, what they make, and that the same seed makes the same."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE
from explorer.analysis.circuits.pair_templates import (
    TEMPLATES,
    WordGroups,
    fitting_templates,
    make_pairs,
    own_words,
)
from explorer.analysis.circuits.text_pairs import PairError, question_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from explorer.text import word_tokenizer
from explorer.text.token import DECODER
from tests.tiny import reference_bert, saved_and_opened

WORDS = (
    "When Mary and John Tom went to the store park school garden office station hospital "
    "restaurant , gave a drink book ring letter ball flower key present The capital of France is "
    "Italy Paris Rome man woman boy girl he she was tired happy home after said that smiled Then "
    "because when keys"
).split()


@pytest.fixture
def reader(tmp_path: Path) -> OpenModel:
    """An untrained decoder whose tokens are these words."""
    return saved_and_opened(tmp_path, "words", word_tokenizer(WORDS, DECODER), "Mary went")


def test_which_templates_fit_is_found_by_trying(reader: OpenModel, published: Path) -> None:
    assert fitting_templates(reader) == ("Indirect object", "Induction", "Capitals", "Gender")
    assert fitting_templates(open_checkpoint(SHIPPED / "induction", "induction")) == ("Induction",)
    for name in ("negation", "reverse"):
        assert fitting_templates(open_checkpoint(SHIPPED / name, name)) == ()
    numbers = open_checkpoint(published / "gpt2", "gpt2")
    assert fitting_templates(numbers) == ("Induction",), "without a tokenizer a text is token IDs"


@pytest.mark.parametrize("title", ["Indirect object", "Induction", "Gender"])
def test_pairs_differ_where_the_template_says(title: str, reader: OpenModel) -> None:
    made = make_pairs(reader, title, 4, 3)
    assert len(set(made.pairs)) == 4
    assert make_pairs(reader, title, 4, 3).pairs == made.pairs
    assert make_pairs(reader, title, 4, 4).pairs != made.pairs
    for pair in question_of(reader, made.pairs, LOGIT_DIFFERENCE).pairs:
        assert len(pair.differing_places) == TEMPLATES[title].changes
        assert pair.texts.answer.strip() == pair.names[0].strip("␣")


def test_what_is_left_of_the_words_is_said(reader: OpenModel) -> None:
    note = make_pairs(reader, "Gender", 2, 0).note
    assert note == "2 of 15 pairs of words are single tokens of this model."
    few = make_pairs(reader, "Capitals", 40, 0)
    assert len(few.pairs) == 2
    assert few.note == (
        "2 of 30 pairs of words are single tokens of this model. There are 2 different pairs, "
        "not 40."
    )


def refusal(opened: OpenModel, title: str) -> str:
    with pytest.raises(PairError) as refused:
        make_pairs(opened, title, 2, 0)
    return str(refused.value)


def test_a_template_that_does_not_fit_is_refused(reader: OpenModel) -> None:
    assert refusal(reader, "Agreement") == (
        "Of the 19 words or pairs of words of this template, 1 is a single token of this model, "
        "and 2 are needed: choose another template."
    )
    assert refusal(reader, "Greater-than") == (
        "This model's tokenizer splits the texts or the answers of this template in other ways: "
        "choose another template."
    )
    assert refusal(open_checkpoint(SHIPPED / "negation", "negation"), "Gender") == (
        "Templates ask for a next token or a masked one, and this model gives neither: type two "
        "texts."
    )


def test_a_mask_stands_for_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked = open_checkpoint(reference_bert(tmp_path / "bert"), "bert")
    few = (("cat", "paris"), ("dog", "france"))
    known = replace(TEMPLATES["Capitals"], words=lambda opened, random: WordGroups(few, 2))
    monkeypatch.setitem(TEMPLATES, "Capitals", known)
    made = make_pairs(masked, "Capitals", 2, 0)
    assert {pair.clean for pair in made.pairs} == {
        f"The capital of {name} is [MASK]." for name in ("cat", "dog")
    }
    assert question_of(masked, made.pairs, LOGIT_DIFFERENCE).pairs[0].place == 6


def test_own_words_are_single_tokens_of_the_vocabulary(reader: OpenModel) -> None:
    found = own_words(reader, Random(0))
    assert found.glue == " "
    before = len(reader.tokenizer.encode("the"))
    for (word,) in found.groups:
        assert len(reader.tokenizer.encode(f"the {word}")) == before + 1
    induction = open_checkpoint(SHIPPED / "induction", "induction")
    letters = own_words(induction, Random(0))
    assert letters.glue == ""
    assert {len(word) for (word,) in letters.groups} == {1}
    pairs = make_pairs(induction, "Induction", 10, 0).pairs
    for pair in question_of(induction, pairs, LOGIT_DIFFERENCE).pairs:
        for text, answer in zip((pair.texts.clean, pair.texts.corrupted), pair.names, strict=True):
            assert text[text.index(text[-1]) + 1] == answer
        assert pair.clean_value > 0 > pair.corrupted_value, "the model continues the block"
