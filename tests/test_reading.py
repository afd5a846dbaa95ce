"""One pass of a model over a text: what is kept, what is derived, what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from explorer import library, masks
from explorer.first_look import first_look
from explorer.kept import forget
from explorer.library import Opened
from explorer.parts import parts, site
from explorer.reading import ReadingError, read
from explorer.text import byte_tokenizer
from explorer.text.special import DECODER
from models import trace
from tests.shelf import NAMES, put, shelf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = shelf(tmp_path_factory.mktemp("checkpoints"))
    far = byte_tokenizer("the cat and the hat " * 20, 280, DECODER)
    put(made, "far", far, "the cat", kind="decoder", n_heads=4, positions="alibi")
    return made


@pytest.fixture(autouse=True)
def _shelf(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(folder))
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))


@pytest.fixture(params=NAMES)
def opened(request: pytest.FixtureRequest) -> Opened:
    return library.open_model(request.param)


def test_a_sentence_is_read_once(opened: Opened) -> None:
    assert read(opened, opened.example) is read(opened, opened.example)


def test_every_head_is_a_distribution_over_labelled_columns(opened: Opened) -> None:
    found = read(opened, opened.example)
    for part in found.parts:
        everything = found.all_weights(part.name)
        shape = (len(found.rows(part.name)), len(found.columns(part.name)))
        assert everything.shape == (part.layers, part.heads, *shape)
        torch.testing.assert_close(everything.sum(-1), torch.ones(everything.shape[:-1]))
        assert found.mask(part.name).shape == found.scores(part.name, 0, 0).shape == shape


def test_one_head_alone_is_the_same_as_among_all(opened: Opened) -> None:
    found = read(opened, opened.example)
    for part in found.parts:
        last = (part.layers - 1, part.heads - 1)
        one = found.weights(part.name, *last)
        torch.testing.assert_close(one, found.all_weights(part.name)[last])


def test_the_masks_shown_are_the_masks_used(opened: Opened) -> None:
    whole = read(opened, opened.example)
    for found in (whole, masks.batch(opened, whole)):
        for part in found.parts:
            shown = masks.of(found, part.name)
            assert torch.equal(shown.both, shown.padding & shown.causal)
            assert torch.equal(shown.both, found.mask(part.name))
            assert not found.weights(part.name, 0, 0)[~shown.both].any()


def test_what_is_shown_of_a_head_becomes_its_weights(opened: Opened) -> None:
    with_bias = library.open_model("far") if opened.name == "letters" else opened
    for model in {opened, with_bias}:
        whole = read(model, model.example)
        for found in (whole, masks.batch(model, whole)):
            for part in found.parts:
                made = masks.pictures(found, part.name, part.layers - 1, part.heads - 1)
                hidden = made.scores.masked_fill(~found.mask(part.name), -torch.inf)
                torch.testing.assert_close(torch.softmax(hidden, -1), made.weights)
                assert made.adds_bias == (model.config.positions == "alibi")


def test_padding_changes_no_weight(opened: Opened) -> None:
    longer = read(opened, opened.example)
    padded = masks.batch(opened, longer)
    alone = read(opened, padded.text)
    part = found_part(opened)
    size = len(alone.columns(part))
    torch.testing.assert_close(
        padded.weights(part, 0, 0)[:size, :size], alone.weights(part, 0, 0), atol=1e-5, rtol=1e-4
    )


def found_part(opened: Opened) -> str:
    """The attention over what was typed."""
    return parts(opened.config)[0].name


def test_many_threads_read_what_one_reads(opened: Opened) -> None:
    texts = [opened.example, opened.example.split()[0], opened.example] * 8
    expected = {text: read(opened, text).answer for text in texts}
    forget(opened)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: read(opened, text).answer, texts))
    assert answers == [expected[text] for text in texts]


def test_what_was_written_stands_beside_what_wrote_it() -> None:
    found = read(library.open_model("translation"), "the black cat sleeps")
    assert found.target[0].label == "<s>"
    assert found.target[1:] == found.written[:-1]
    assert [token.label for token in found.source] == ["the", "black", "cat", "sleeps", "</s>"]
    assert found.rows("decoder.cross_attn") == found.written


def test_probabilities_are_sorted_and_named() -> None:
    found = read(library.open_model("reviews"), "not a cat").answer
    assert found.kind == "classes"
    assert {guess.label for guess in found.guesses} == {"negative", "positive"}
    assert sum(guess.probability for guess in found.guesses) == pytest.approx(1)
    assert found.guesses[0].probability >= found.guesses[1].probability


def test_an_unknown_word_is_named() -> None:
    (note,) = read(library.open_model("translation"), "the purple cat").notes
    assert "“purple”" in note


@pytest.mark.parametrize("text", ["", " \t\n", "cat " * 100, "a" * 100_000])
def test_what_cannot_be_read_is_refused_in_a_sentence(opened: Opened, text: str) -> None:
    with pytest.raises(ReadingError, match=r"[:;,].*\w\.$"):
        read(opened, text)


@pytest.mark.parametrize("text", ["😀 cat", "שלום", "\x00\x07", "<b>", "a\u202eb", "🏳️‍🌈"])
def test_any_characters_are_read_or_refused(opened: Opened, text: str) -> None:
    with suppress(ReadingError):
        assert read(opened, text).tokens


def test_a_text_that_just_fits_is_read() -> None:
    model = library.open_model("translation")
    assert len(read(model, "cat " * 23).source) == model.config.max_len
    with pytest.raises(ReadingError, match="at most 24"):
        read(model, "cat " * 24)


def test_the_first_look_exists(opened: Opened) -> None:
    part, layer, head = first_look(opened)
    found = read(opened, opened.example)
    ids = [torch.tensor([[t.id for t in row]]) for row in (found.source, found.target) if row]
    watched = trace(opened.model, *ids)[f"{site(part, layer)}.weights"]
    torch.testing.assert_close(found.weights(part, layer, head), watched[0, head])
