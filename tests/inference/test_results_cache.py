"""Results that are kept, and texts that can be read."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.catalog import opened_model, pretrained_models
from explorer.catalog.available_models import ModelEntry, list_models
from explorer.catalog.opened_model import OpenModel
from explorer.inference import results_cache as store
from explorer.inference.answers import Answer, Guess
from explorer.inference.forward_pass import run_text
from explorer.inference.readable_text import Unknown, find_reader, unknown_of, why_unreadable
from explorer.inference.results_cache import cached, forget, size_of
from explorer.interventions.edits import Patch


def own(folder: Path) -> OpenModel:
    """A model that nobody else has opened."""
    return opened_model.open_checkpoint(folder, folder.name)


@pytest.fixture
def opened(small_models: Path) -> OpenModel:
    return own(small_models / "letters")


@pytest.fixture
def other(small_models: Path) -> OpenModel:
    return own(small_models / "letters")


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BYTES_KEPT", 1_000)
    monkeypatch.setattr(store, "_results", store.cache_of(1_000))


class Made:
    """Something that may be referred to weakly."""


def fails() -> Made:
    raise ValueError("once")


def nothing(made: object) -> int:
    """The bytes of what is small enough beside its key."""
    return 0


def test_once_for_its_model_and_key_until_forgotten(opened: OpenModel, other: OpenModel) -> None:
    with pytest.raises(ValueError, match="once"):
        cached(opened, "a", fails, nothing)
    first = cached(opened, "a", Made, nothing)
    assert cached(opened, "a", Made, nothing) is first
    assert cached(opened, "b", Made, nothing) is not first
    assert cached(other, "a", Made, nothing) is not first
    forget(opened)
    assert cached(opened, "a", Made, nothing) is not first
    forget(opened)
    forget(opened)


@pytest.mark.usefixtures("little_room")
def test_the_oldest_of_all_models_makes_room(opened: OpenModel, other: OpenModel) -> None:
    first, second = (cached(each, "a", Made, lambda _: 400) for each in (opened, other))
    assert cached(opened, "a", Made, lambda _: 400) is first
    cached(opened, "c", Made, lambda _: 400)
    assert cached(opened, "a", Made, lambda _: 400) is first
    assert cached(other, "a", Made, lambda _: 400) is not second


@pytest.mark.usefixtures("little_room")
def test_what_is_too_large_with_its_key_is_given_and_not_kept(opened: OpenModel) -> None:
    small = cached(opened, "small", Made, lambda _: 400)
    large = cached(opened, "large", Made, lambda _: 1_001)
    assert cached(opened, "large", Made, lambda _: 1_001) is not large
    assert cached(opened, "small", Made, nothing) is small, "it pushed nothing out"
    text = "the cat and the hat " * 60
    patch = Patch("decoder.self_attn", 0, 0, 1, text)
    for key in (text, ("text", text), ("edited", (patch,)), tuple(range(50))):
        assert cached(opened, key, Made, nothing) is not cached(opened, key, Made, nothing)


def test_everything_is_counted_with_what_is_in_it(opened: OpenModel) -> None:
    text = "x" * 10_000
    for plain in (text, (text,), [(1, text)], Answer("text", "", (Guess(text, 0.5),))):
        assert 10_000 < size_of(plain) < 11_000
    found = run_text(opened, opened.example)
    values = found.trace.values.values()
    storages = {value.untyped_storage().data_ptr(): value for value in values}
    assert found.bytes >= sum(value.nbytes for value in storages.values()) > 0


def test_what_was_made_goes_with_its_model(small_models: Path) -> None:
    opened = own(small_models / "letters")
    made, model = weakref.ref(cached(opened, "a", Made, nothing)), weakref.ref(opened)
    run_text(opened, opened.example)
    del opened
    gc.collect()
    assert model() is None, "something that was made refers to the model"
    assert made() is None


def test_the_unused_goes_after_a_time(opened: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each use begins the time anew."""
    now = 0.0
    monkeypatch.setattr(store, "_results", store.cache_of(1_000, timer=lambda: now))
    most = store.RESULTS_SECONDS.most
    used, unused = (cached(opened, key, Made, nothing) for key in ("used", "unused"))
    gone = weakref.ref(unused)
    del unused
    now = most - 1
    assert cached(opened, "used", fails, nothing) is used
    now = most + 1
    assert cached(opened, "used", fails, nothing) is used
    assert not store.is_cached(opened, "unused")
    store.forget_unused()
    gc.collect()
    assert gone() is None
    now = 3 * most
    assert cached(opened, "used", Made, nothing) is not used


def test_a_model_that_cannot_be_opened_reads_nothing_and_says_why() -> None:
    fault = "There is no checkpoint folder here."
    entry = ModelEntry("here", "Here", Path("here"), None, {}, fault=fault)
    assert why_unreadable(entry, "a text") == fault


@pytest.fixture
def models(small_models: Path) -> dict[str, ModelEntry]:
    """The small models by name: only letters reads any text."""
    return {entry.name: entry for entry in list_models(small_models / "no runs")}


def reader(models: dict[str, ModelEntry], here: str, text: str, *, pair: str = "") -> str:
    """The name of the model that is found."""
    found = find_reader(models.values(), models[here], text, lambda _: pair)
    return found.name if found else ""


def test_a_model_is_found_whose_tokenizer_knows_all_words(models: dict[str, ModelEntry]) -> None:
    assert reader(models, "translation", "the quick fox") == "letters"
    assert reader(models, "translation", "12 34") == "letters", "the first in the list that can"
    assert reader(models, "letters", "a black cat") == "translation"
    assert reader(models, "letters", "the cat " * 30) == "", "it is too long for all"


def test_one_for_the_same_comes_first_then_a_pretrained_one(models: dict[str, ModelEntry]) -> None:
    published = replace(models["letters"], name="published", family="gpt2")
    first = replace(published, name=pretrained_models.FIRST)
    every = models | {"published": published, pretrained_models.FIRST: first}
    assert reader(every, "translation", "the quick fox") == pretrained_models.FIRST
    config = models["letters"].config
    assert config is not None
    same = replace(published, name="same", config=config.replace(kind="encoder-decoder"))
    assert reader(every | {"same": same}, "translation", "the quick fox") == "same"


UNKNOWN = ("Not in this model's vocabulary, so read as <unk>: “fox”.",)
LONG = "the cat and the hat the cat"


def test_what_is_unknown_is_said_with_a_model_that_knows_it(models: dict[str, ModelEntry]) -> None:
    for here, text, expected in (
        ("translation", "the black cat", None),
        ("translation", "  ", None),
        ("translation", "the fox", Unknown(UNKNOWN, "letters")),
        ("reverse", LONG, Unknown((), "letters")),
        ("reverse", LONG * 9, Unknown((), "")),
    ):
        opened = opened_model.open_entry(models[here])
        assert unknown_of(opened, text, "", models, lambda _: "") == expected
