"""Whether a model can read a text, and which one can: told from their folders alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from explorer.catalog import opened_model, pretrained_models
from explorer.catalog.available_models import ModelEntry, list_models
from explorer.inference.readable_text import Unknown, find_reader, unknown_of, why_unreadable


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
