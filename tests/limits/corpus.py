"""Texts to learn from that are too long."""

from collections.abc import Callable
from functools import partial

import pytest

from explorer.inference.trained_tokenizers import trained_merges
from explorer.tasks import task_of
from explorer.text import TextError


def _refused(learn: Callable[[], object]) -> str:
    with pytest.raises(TextError) as refused:
        learn()
    return str(refused.value)


def corpus(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_CORPUS_CHARACTERS", "30_000")
    assert task_of("shakespeare", "to be or not to be " * 1_500)
    longer = "to be or not to be " * 1_600
    names = ("shakespeare", "characters", "reviews")
    (said,) = {_refused(partial(task_of, name, longer)) for name in names}
    return said


def tokenizer(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_TOKENIZER_CHARACTERS", "1_000")
    assert trained_merges("low lower " * 100, 3).merges
    return _refused(lambda: trained_merges("low lower " * 101, 3))


MEETINGS: dict[str, Callable[..., str]] = {
    "corpus_characters": corpus,
    "tokenizer_characters": tokenizer,
}
