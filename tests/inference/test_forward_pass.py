"""One pass of a model over a text: what is kept, derived, answered, and refused or cut."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.catalog import available_models, opened_model
from explorer.catalog.opened_model import OpenModel
from explorer.inference import mask_examples
from explorer.inference.answers import ANSWERS_SHOWN
from explorer.inference.forward_pass import ForwardPassError, run_batch, run_text
from explorer.text import byte_tokenizer
from explorer.text.checked_text import truncate
from explorer.text.token import DECODER
from models import trace
from tests import tiny
from tests.closeness import assert_close_to
from tests.tiny import NAMES, saved_and_opened

pytestmark = pytest.mark.usefixtures("small_models")
PIECES = byte_tokenizer("the cat and the hat 😀 " * 20, 280, DECODER)
TEXTS = st.text(alphabet="the catnd😀é\n", min_size=1, max_size=60).filter(str.strip)


@pytest.fixture(params=[*NAMES, "far"])
def opened(request: pytest.FixtureRequest, small_models: Path, tmp_path: Path) -> OpenModel:
    if request.param != "far":
        return opened_model.open_model(request.param)
    return saved_and_opened(tmp_path, "far", PIECES, n_heads=4, positions="alibi")


@pytest.fixture(scope="module")
def bert(published: Path) -> OpenModel:
    return opened_model.open_entry(available_models.brought_model(published / "bert"))


@pytest.fixture(scope="module")
def gpt2(published: Path) -> OpenModel:
    return opened_model.open_entry(available_models.brought_model(published / "gpt2"))


def test_every_head_is_a_distribution_made_of_its_scores_and_mask(opened: OpenModel) -> None:
    whole = run_text(opened, opened.example)
    assert run_text(opened, opened.example) is whole
    for found in (whole, mask_examples.padded(opened, whole)[1]):
        for part in found.parts:
            last = part.layers - 1, part.heads - 1
            weights, one = found.all_weights(part.name), found.weights(part.name, *last)
            shape = (len(found.rows(part.name)), len(found.columns(part.name)))
            assert weights.shape == (part.layers, part.heads, *shape)
            assert_close_to(weights.sum(-1), torch.ones(weights.shape[:-1]))
            assert_close_to(one, weights[last])
            shown = mask_examples.of(found, part.name)
            assert torch.equal(shown.both, shown.padding & shown.causal)
            assert torch.equal(shown.both, found.mask(part.name))
            assert not one[~shown.both].any()
            made = mask_examples.pictures(found, part.name, *last)
            hidden = made.scores.masked_fill(~shown.both, -torch.inf)
            assert_close_to(torch.softmax(hidden, -1), one)
            assert made.adds_bias == (opened.name == "far")


def test_what_was_written_stands_beside_what_wrote_it(published: Path) -> None:
    found = run_text(opened_model.open_model("translation"), "the black cat sleeps")
    assert found.target[0].label == "<s>"
    assert [token.label for token in found.source] == ["the", "black", "cat", "sleeps", "</s>"]
    assert found.rows("decoder.cross_attn") == found.output_tokens
    opened = opened_model.open_entry(available_models.brought_model(published / "t5"))
    t5 = run_text(opened, "the cat sat on the mat")
    assert t5.answer.kind == "text"
    for each in (found, t5):
        assert each.target[1:] == each.output_tokens[:-1]
        parts = ["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"]
        assert [part.name for part in each.parts] == parts


def test_an_unknown_word_is_named_and_a_text_that_just_fits_is_read(bert: OpenModel) -> None:
    (note,) = run_text(opened_model.open_model("translation"), "the purple cat").notes
    assert "“purple”" in note
    (note,) = run_text(bert, "The cat", "a  DOG? zz").notes
    assert "“zz”" in note
    model = opened_model.open_model("translation")
    assert len(run_text(model, "cat " * 23).source) == model.config.max_len
    with pytest.raises(ForwardPassError, match="at most 24"):
        run_text(model, "cat " * 24)


def test_any_text_is_read_or_refused_in_a_sentence(opened: OpenModel, gpt2: OpenModel) -> None:
    for text in ["", " \t\n", "cat " * 100, "a" * 100_000]:
        with pytest.raises(ForwardPassError, match=r"[:;,].*\w\.$"):
            run_text(opened, text)
    for text in ["", "  ", "50", "one", "1 " * 33]:
        with pytest.raises(ForwardPassError, match=r"\w\.$"):
            run_text(gpt2, text)
    for text in ["😀 cat", "שלום", "\x00\x07", "<b>", "a\u202eb", "🏳️‍🌈"]:
        with suppress(ForwardPassError):
            assert run_text(opened, text).tokens


def whole(opened: OpenModel, text: str, pair: str = "") -> torch.Tensor:
    """What the model says at every position, from a pass that leaves nothing out."""
    tokens = opened.tokenizer.encode(text, pair or None)
    ids = torch.tensor([[token.id for token in tokens]])
    segments = torch.tensor([[token.segment for token in tokens]])
    passed = trace(opened.model, ids, segments=segments if opened.config.n_segments else None)
    return passed.output[0]


def expected(opened: OpenModel, logits: torch.Tensor) -> list[tuple[str, Any]]:
    chances = torch.softmax(logits, -1).topk(ANSWERS_SHOWN)
    pairs = zip(chances.indices.tolist(), chances.values.tolist(), strict=True)
    label = opened.tokenizer.label
    return [(label(index), pytest.approx(value, rel=1e-4)) for index, value in pairs]


def test_what_is_expected_behind_the_first_mask(bert: OpenModel) -> None:
    for text, pair in [("[MASK]", ""), ("a [MASK] and a [MASK] .", "the dog [MASK] good")]:
        forward = run_text(bert, text, pair)
        tokens = bert.tokenizer.encode(text, pair or None)
        at = [place for place, token in enumerate(tokens) if token.label == "[MASK]"]
        assert len(at) == f"{text} {pair}".count("[MASK]")
        found = [(guess.label, guess.score) for guess in forward.answer.guesses]
        assert found == expected(bert, whole(bert, text, pair)[at[0]])
        several = f"There are {len(at)} masks; shown is the first."
        assert forward.answer.note == (several if len(at) > 1 else "")
        assert forward.trace.output.shape[1] == 1, "only what is shown is computed"
    answer = run_text(bert, "the cat is good").answer
    assert (answer.kind, answer.guesses) == ("mask", ())
    assert answer.note == "Replace a word with [MASK] to see predictions for it."


def test_a_pair_is_not_one_text_and_its_tokens_are_found_in_what_was_typed(bert: OpenModel) -> None:
    answers = [run_text(bert, *texts).answer for texts in (("a [MASK]", "cat"), ("a [MASK] cat",))]
    assert answers[0].guesses != answers[1].guesses
    found = run_text(bert, "The cat", "a  DOG? zz")
    assert found.typed == "The cat\na  DOG? zz"
    spans = {token.label: found.typed[token.start : token.end] for token in found.placed}
    words = {"the": "The", "cat": "cat", "a": "a", "dog": "DOG", "?": "?", "[UNK]": "zz"}
    assert spans == {"[CLS]": "", "[SEP]": ""} | words
    # The second text is longer: its places are no places in the first.
    longer = run_text(bert, "the cat is a good dog", "a dog is a dog ? a good dog")
    found = mask_examples.padded(bert, longer)[1]
    assert (found.text, found.pair) == ("the cat is", "")


def test_classes_are_called_as_the_config_calls_them(tmp_path: Path) -> None:
    folder = tiny.reference_classifier(tmp_path / "moods")
    opened = opened_model.open_entry(available_models.brought_model(folder))
    answer = run_text(opened, "she is good").answer
    chances = torch.softmax(whole(opened, "she is good"), -1)
    assert answer.kind == "classes"
    found = {guess.label: guess.score for guess in answer.guesses}
    assert found == pytest.approx({"gloomy": float(chances[0]), "cheerful": float(chances[1])})
    assert answer.guesses[0].score >= answer.guesses[1].score


def test_the_next_token_is_that_of_a_whole_pass(gpt2: OpenModel) -> None:
    for text in ["5", "5 17 3", "1 " * 32]:
        forward = run_text(gpt2, text)
        assert forward.answer.kind == "next"
        found = [(guess.label, guess.score) for guess in forward.answer.guesses]
        assert found == expected(gpt2, whole(gpt2, text)[-1])
        assert forward.trace.output.shape[1] == 1, "only what is shown is computed"


def test_texts_of_a_batch_are_answered_as_alone(gpt2: OpenModel, bert: OpenModel) -> None:
    masked = ("the [MASK] is a good dog", "a good [MASK]")
    for opened, texts in [(bert, masked), (gpt2, ("5 17 3", "1 2 4"))]:
        for text, forward in zip(texts, run_batch(opened, texts), strict=True):
            alone = run_text(opened, text).answer
            assert forward.answer.text == alone.text
            assert [g.label for g in forward.answer.guesses] == [g.label for g in alone.guesses]
    with pytest.raises(ForwardPassError, match="no padding token, so it reads one text at a time"):
        run_batch(gpt2, ("5 17 3", "1 2"))


@given(TEXTS, st.integers(2, 20))
def test_what_is_kept_of_a_too_long_text_is_its_beginning_and_fits(text: str, most: int) -> None:
    found = truncate(PIECES.encode, text, "", most)
    if found is None:
        return
    assert text.startswith(found.kept_text)
    assert len(PIECES.encode(found.kept_text)) <= most
    if found.kept_text != text:
        assert len(PIECES.encode(text)) > most


def test_as_much_as_fits_is_kept_and_of_two_texts_the_second_is_cut_first(bert: OpenModel) -> None:
    text = "the cat and the hat"
    found = truncate(PIECES.encode, text, "", 5)
    assert found is not None
    assert len(PIECES.encode(found.kept_text)) == 5
    more = next(token.end for token in PIECES.encode(text) if token.end > len(found.kept_text))
    assert len(PIECES.encode(text[:more])) > 5
    assert found.in_words == f"its first {len(found.kept_text)} characters"
    assert truncate(PIECES.encode, "the cat", "", 1) is None, "special tokens take all"
    longer = ("the cat", "the dog " * 60, "all of it and the first ")
    for text, pair, said in [longer, ("the cat " * 60, "the dog", "its first ")]:
        with pytest.raises(ForwardPassError, match="at most 64: shorten it to " + said) as error:
            run_text(bert, text, pair)
        found = error.value.cut
        assert found is not None
        assert (found.text, found.pair) == (text, pair)
        assert len(run_text(bert, found.kept_text, found.kept_pair).tokens) == 64
