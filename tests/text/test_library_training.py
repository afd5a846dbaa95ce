"""Long trainings: linear in the text, done elsewhere, and ended with the reader who waits."""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import numpy as np
import psutil
import pytest

from explorer.text import TextError, library_training
from explorer.text.bpe_training import BPE, WORDPIECE, train_merges
from explorer.text.library_training import LONGEST_WORD
from explorer.text.unigram import train_unigram
from tests.source import ROOT

README = (ROOT / "README.md").read_text("utf-8")[:20_000]
TOKEN = "of the server and of none of its children"
GENOME = "".join(random.Random(0).choices("ACGT", k=30_000))


Children = list[subprocess.Popen[bytes]]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    """The processes that are started; every training takes one."""
    started: Children = []

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            assert TOKEN not in psutil.Process(self.pid).environ().values()
            started.append(self)

    monkeypatch.setenv("EXPLORER_ADMIN_TOKEN", TOKEN)
    monkeypatch.setattr(subprocess, "Popen", Watched)
    monkeypatch.setattr(library_training, "LONG_WORDS", 0)
    return started


@pytest.mark.parametrize("way", [BPE, WORDPIECE])
def test_a_genome_without_a_space_is_learned_from_in_pieces(way: str) -> None:
    """The library's time grows with the square of a word's length, and here no word is long."""
    learned = train_merges(GENOME, 40, way)
    assert len(learned.merges) == 40
    assert np.diff(np.flatnonzero(learned.states[0] == 0), prepend=-1).max() == LONGEST_WORD + 1
    assert learned.counts_after(0).tokens == len(GENOME)
    for step in (0, 20, 39):
        first = learned.counts_after(step).pairs[0]
        assert (first.left, first.right) == learned.merges[step][:2]


def test_spaces_without_a_word_are_no_long_word_either() -> None:
    spaces = f"a{' ' * 50_000}b"
    ends = np.flatnonzero(train_merges(spaces, 5).states[0] == 0)
    assert np.diff(ends, prepend=-1).max() == LONGEST_WORD + 1, "whichever word comes first"
    assert train_merges(spaces, 5, WORDPIECE).merges == ()


def test_a_child_learns_the_same(children: Children) -> None:
    there = train_merges(README, 50), train_unigram(README, 300)
    assert [child.returncode for child in children] == [0, 0]
    library_training.LONG_WORDS = 10**9
    here = train_merges(README, 50), train_unigram(README, 300)
    assert len(children) == 2, "a short one is done at once"
    assert there[0].tokens == here[0].tokens
    assert there[0].merges == here[0].merges
    assert np.array_equal(there[0].counts[there[0].counts.argsort()], np.sort(here[0].counts))
    assert dict(there[1].pieces) == pytest.approx(dict(here[1].pieces), rel=1e-3)


class Gone(BaseException):
    """How Streamlit ends the run of a reader who has left."""


@contextmanager
def nobody_waits() -> Iterator[Mock]:
    yield Mock(side_effect=Gone)


def test_training_ends_with_its_reader(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of a reader who waits for a turn."""
    monkeypatch.setattr(library_training, "offload", nobody_waits)
    with library_training._turns, library_training._turns, pytest.raises(Gone):
        train_unigram(README, 300)
    assert children == []
    with pytest.raises(Gone):
        train_unigram(GENOME * 3, 1_000)
    (child,) = children
    assert child.returncode == -9
    with library_training._turns, library_training._turns:
        """Its turn is another's."""


def test_what_takes_too_long_is_ended(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LIMIT_WORK_SECONDS", "1")
    with pytest.raises(TextError, match="took more than 1 second and was stopped"):
        train_unigram(GENOME * 3, 1_000)
    monkeypatch.setattr(library_training, "CHILD_BYTES", 1)
    with pytest.raises(TextError, match="needs more memory than it may use"):
        train_merges(README, 50)
    assert len(children) == 2
