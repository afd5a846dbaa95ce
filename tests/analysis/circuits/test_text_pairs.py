"""Two texts as a pair: typed, in a table or found, what a model reads of them, what is refused."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.circuit_metrics import (
    CLASS_SCORE,
    KL,
    LOGIT_DIFFERENCE,
    LOSS,
    PROBABILITY,
    metrics_of,
    why_no_gradient,
)
from explorer.analysis.circuits import text_pairs
from explorer.analysis.circuits.default_corruption import default_corruption
from explorer.analysis.circuits.pair_table import pairs_of_csv
from explorer.analysis.circuits.text_pairs import (
    PairError,
    TextPair,
    TokenPair,
    question_of,
    token_pair,
)
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from tests.closeness import assert_close_to
from tests.tiny import reference_bert

CLEAN, SWAPPED = "abcdeabcdeab", "adcbeadcbeab"
GOOD, BAD = "the food was really very good", "the food was not very good"


def opened(name: str) -> OpenModel:
    return open_checkpoint(SHIPPED / name, name)


@pytest.fixture
def induction() -> OpenModel:
    return opened("induction")


@pytest.fixture
def masked(published: Path) -> OpenModel:
    return open_checkpoint(published / "bert", "bert")


def refusal(opened: OpenModel, *texts: str, metric: str = LOGIT_DIFFERENCE) -> str:
    with pytest.raises(PairError) as refused:
        token_pair(opened, TextPair(*texts), metric)
    return str(refused.value)


def pair_of(opened: OpenModel, *texts: str, metric: str = LOGIT_DIFFERENCE) -> TokenPair:
    return token_pair(opened, TextPair(*texts), metric)


def test_answers_that_nobody_typed_are_the_likeliest(induction: OpenModel) -> None:
    pair = pair_of(induction, CLEAN, SWAPPED)
    assert pair.names == ("c", "e")
    assert pair.differing_places == (2, 4, 7, 9)
    assert pair.place == 12
    assert pair.clean_value > 0 > pair.corrupted_value
    assert pair_of(induction, CLEAN, "abcdeabcdeac").names == ("c", "d")
    twice = pair_of(induction, CLEAN, "bbcdeabcdeab")
    assert twice.names[0] == "c"
    assert twice.names[1] != "c", "the likeliest after both is named once"
    assert pair_of(induction, CLEAN, SWAPPED, "", "c").names[0] != "c"


def test_the_metrics_are_those_of_the_logits(induction: OpenModel) -> None:
    model, ids = induction.model, induction.tokenizer.ids
    logits = [model(torch.tensor([ids(text)]))[0, -1] for text in (CLEAN, SWAPPED)]
    c, e = (induction.tokenizer.id_of(letter) for letter in "ce")
    p, q = (each.log_softmax(-1) for each in logits)
    expected = {
        LOGIT_DIFFERENCE: [each[c] - each[e] for each in logits],
        PROBABILITY: [p[c].exp(), q[c].exp()],
        LOSS: [-p[c], -q[c]],
        KL: [torch.zeros(()), (p.exp() * (p - q)).sum()],
    }
    assert set(expected) == set(metrics_of(induction.config))
    for metric, values in expected.items():
        pair = pair_of(induction, CLEAN, SWAPPED, "c", "e", metric=metric)
        assert_close_to(torch.tensor([pair.clean_value, pair.corrupted_value]), torch.stack(values))
    assert pair_of(induction, CLEAN, SWAPPED, "c", "no token", metric=PROBABILITY).names[0] == "c"
    assert pair_of(induction, CLEAN, SWAPPED, "none", "neither", metric=KL).clean_value == 0


def test_a_class_is_an_answer_by_its_name() -> None:
    negation = opened("negation")
    assert CLASS_SCORE in metrics_of(negation.config)
    pair = pair_of(negation, GOOD, BAD, "Positive", "negative")
    assert pair.names == ("positive", "negative")
    assert pair.clean_value > 0 > pair.corrupted_value
    assert refusal(negation, GOOD, BAD, "good", metric=CLASS_SCORE) == (
        "“good” is no class of this model: give one of “negative”, “neutral”, “positive”."
    )


def test_an_answer_typed_without_its_space_is_read_with_it() -> None:
    shakespeare = opened("shakespeare")
    texts = "To be, or not to", "To do, or not to"
    typed = pair_of(shakespeare, *texts, "be", "the")
    assert typed.names == ("␣be", "␣the")
    assert typed.notes == ("“be” is read as “␣be”.", "“the” is read as “␣the”.")
    spaced = pair_of(shakespeare, *texts, " be", " the")
    assert (spaced.answer, spaced.against, spaced.notes) == (typed.answer, typed.against, ())
    assert pair_of(shakespeare, texts[0] + " ", texts[1] + " ", "t", "m").names == ("t", "m")
    said = refusal(shakespeare, *texts, "Maryland", "be")
    assert said.startswith("“Maryland” is ")
    assert said.endswith(": give one token.")


SAME_TOKENS = (
    "Both texts are the same tokens to this model, so there is nothing to explain: change a word "
    "of the corrupted one."
)
TOO_LONG = (
    "The corrupted text is 61 tokens long and this model reads at most 32: shorten it to its first "
    "31 characters."
)
BOTH_ANSWERS = "Both answers are “c”, so they do not differ in any text: give another one."
REFUSED: list[tuple[tuple[str, ...], str]] = [
    ((" ", SWAPPED), "There is nothing to read yet: type a sentence."),
    ((CLEAN, ""), "There is no corrupted text yet: type the clean one with a word changed."),
    ((CLEAN, "ab" * 30), TOO_LONG),
    ((CLEAN, CLEAN.upper()), SAME_TOKENS),
    ((CLEAN, SWAPPED, "abcdef"), "“abcdef” is 6 tokens, “a”, “b”, “c”, “d”, …: give one token."),
    ((CLEAN, SWAPPED, "?"), "“?” is not in this model's vocabulary: give one token that is."),
    ((CLEAN, SWAPPED, "c", "C"), BOTH_ANSWERS),
]


def test_what_is_no_pair_is_refused_in_a_sentence(induction: OpenModel) -> None:
    for texts, sentence in REFUSED:
        assert refusal(induction, *texts) == sentence


def test_a_mask_stands_at_one_place_of_both_texts(masked: OpenModel) -> None:
    pair = pair_of(masked, "the [MASK] is good", "the [MASK] is paris", "cat", "dog")
    assert (pair.place, pair.names) == (2, ("cat", "dog"))
    no_mask = "This model fills a mask: put [MASK] into both texts, at the same place."
    assert refusal(masked, "the cat is good", "the dog is good") == no_mask
    assert refusal(masked, "the [MASK] is good", "the dog is good") == no_mask
    assert refusal(masked, "the [MASK] is good", "[MASK] dog is good") == (
        "The mask is token 2 of the clean text and 1 of the corrupted one: put it at the same "
        "place."
    )


def test_of_unequal_texts_it_is_said_what_has_no_partner(masked: OpenModel) -> None:
    pair = pair_of(masked, "the [MASK] is good", "the good [MASK] is good", "cat", "dog")
    assert (pair.place, pair.corrupted_place) == (2, 3)
    assert pair.partners == ((0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 6))
    assert pair.notes == (
        "The clean text has 6 tokens and the corrupted one 7; those without a partner keep their "
        "value: 1 (“good” (2)) of the corrupted text.",
    )
    assert pair.counterparts == pair.corrupted[:2] + pair.corrupted[3:]
    assert pair.differing_places == ()
    texts = "a dogs is [MASK] a dogs is good", "a cat is [MASK] a cat is good"
    pair = pair_of(masked, *texts, "cat", "dog")
    assert pair.notes[0].endswith("value: 2 (“dog” (2), “dog” (7)) of the clean text.")
    assert [token.label for token in pair.counterparts][2:4] == ["–", "cat"]
    assert pair.differing_places == (2, 3, 7, 8)


def test_models_without_one_stack_and_a_head_are_refused(tmp_path: Path) -> None:
    reverse = opened("reverse")
    assert refusal(reverse, "abc", "abd") == (
        "This page needs a model with one stack, and this one has an encoder and a decoder: choose "
        "another, or patch single heads on the page Interventions."
    )
    assert text_pairs.why_no_circuits(reverse.config.replace(kind="encoder", head="none")) == (
        "This model has no output head, so there is no output to compare: choose another."
    )
    masked = open_checkpoint(reference_bert(tmp_path / "bert"), "bert")
    for parameter in masked.model.parameters():
        parameter.fill_(float("nan"))
    assert refusal(masked, "the [MASK] is good", "the [MASK] is paris") == (
        "The output for the clean text is not finite, so nothing can be measured: the page "
        "Models shows what is wrong with the model's weights."
    )


def test_a_change_that_the_metric_does_not_see_is_refused(induction: OpenModel) -> None:
    for parameter in induction.model.last_stack.norm.parameters():
        parameter.zero_()
    said = refusal(induction, CLEAN, SWAPPED, "c", "e")
    assert said.startswith("The metric is ")
    assert " for both texts, so there is nothing to explain: change a word on which" in said


def test_a_question_says_where_plain_attribution_finds_nothing(induction: OpenModel) -> None:
    pairs = [TextPair(CLEAN, SWAPPED), TextPair(CLEAN, "abcdeabcdeac")]
    question = question_of(induction, pairs, KL)
    assert question.key == (KL, tuple(pairs))
    assert why_no_gradient(KL) == (
        "The gradient of KL divergence is 0 at the clean text, so EAP finds nothing: choose EAP-IG."
    )
    assert why_no_gradient(LOSS) == ""
    both = [TextPair(CLEAN, SWAPPED, "c", "e"), TextPair(SWAPPED, CLEAN, "c", "e")]
    with pytest.raises(PairError, match="cancel out, so their mean explains nothing"):
        question_of(induction, both, LOGIT_DIFFERENCE)
    assert len(question_of(induction, both[:1] * 2, LOGIT_DIFFERENCE).pairs) == 2


FOUND = [
    ("induction", "abcdeabcdeab", "aecdbaecdbab"),
    ("induction-learned", "wordplaywordplay", "wordpyalwordpyay"),
    ("negation", "the food was not very good", "the food was really very good"),
    ("negation", "the hotel is never boring", "the hotel is always boring"),
    ("reviews", "I would not recommend this place", "I would really recommend this place"),
]


@pytest.mark.parametrize(("name", "clean", "corrupted"), FOUND)
def test_it_changes_what_the_model_says(name: str, clean: str, corrupted: str) -> None:
    assert default_corruption(opened(name), clean) == corrupted
    pair = pair_of(opened(name), clean, corrupted)
    assert pair.clean_value > 0 > pair.corrupted_value


def test_there_may_be_none(induction: OpenModel) -> None:
    for clean in ("", "a", "abc", "ab" * 300):
        assert default_corruption(induction, clean) == ""
    assert default_corruption(opened("reverse"), "level level") == ""


PAIR = TextPair("When Mary, and", "When John, and", " Mary", " John")
READ = {
    "no header": '"When Mary, and","When John, and", Mary, John\n',
    "a header": 'clean,corrupted,answer,against\n"When Mary, and","When John, and", Mary, John\n',
    "in another order": 'Against,Corrupted,Number,Answer,Clean\n John,"When John, and",3, Mary,'
    '"When Mary, and"\n',
    "with semicolons": "When Mary, and;When John, and; Mary; John\n",
    "with tabs, a mark and empty rows": "\ufeff\r\nWhen Mary, and\tWhen John, and\t Mary\t John\r\n"
    "\t\r\n",
}


def test_tables_are_read_and_their_lines_are_counted() -> None:
    for name, table in READ.items():
        assert [*pairs_of_csv(table.encode()).values()] == [PAIR], name
    found = pairs_of_csv(b'clean,corrupted,answer\n"a\nb",c\n\nd\x1b,e,f\n')
    assert found == {3: TextPair("a\nb", "c"), 5: TextPair("d<U+001B>", "e", "f")}


NO_PAIR = "There is no pair in this table: a row has a clean and a corrupted text."
LEFT_OUT = "give one, or leave the row out."
COMMAS = "put texts with commas into quotes."
QUOTES = (
    "Line 2 is no row of a CSV table: put texts with quotes or commas into quotes, and double the "
    "quotes inside."
)
REFUSED_TABLES: list[tuple[bytes, str]] = [
    (b" \n", NO_PAIR),
    (b"clean,corrupted\n", NO_PAIR),
    (b"a,b\nc\n", f"Line 2 has no corrupted text: {LEFT_OUT}"),
    (b"a,b\n ,d\n", f"Line 2 has no clean text: {LEFT_OUT}"),
    (b"a,b\n1,2,3,4,5\n", f"Line 2 has 5 cells and there are 4 columns: {COMMAS}"),
    (b"clean,corrupted\n1,2,3\n", f"Line 2 has 3 cells and there are 2 columns: {COMMAS}"),
    (b'a,b\n"c,d\n', QUOTES),
    (b'a,b\n"c"d,e\n', QUOTES),
    (b"a,b\n\xff,d\n", "Line 2 is not text in UTF-8: save the table as UTF-8."),
]


def test_a_bad_row_is_named_by_its_line(subtests: pytest.Subtests) -> None:
    for data, sentence in REFUSED_TABLES:
        with subtests.test(data=data), pytest.raises(PairError) as refused:
            pairs_of_csv(data)
        assert str(refused.value) == sentence
