"""The lines of a text that excite a head: found, kept on disk by their contents, and bounded."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from explorer.analysis.circuits import top_lines
from explorer.analysis.circuits.finding import weights_digest
from explorer.analysis.circuits.top_lines import (
    activations_of,
    best_lines,
    digest_of,
    measure,
    tokenize_lines,
)
from explorer.catalog import opened_model
from explorer.system.data_folders import activations_root
from explorer.system.limits import ACTIVATIONS_KEPT
from explorer.text import TextError
from explorer.text.checked_text import decoded, lines_in

TEXT = "the cat\n\n the hat and the cat \nand the hat\nthe cat\nthat cat sat\n"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_models: Path) -> None:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))


def test_lines_are_read_once_each_and_without_empty_ones() -> None:
    assert lines_in(TEXT) == ("the cat", "the hat and the cat", "and the hat", "that cat sat")
    for text in ("", " \n\t\n"):
        with pytest.raises(TextError, match="no line to read"):
            lines_in(text)
    assert decoded("\ufeffthe cat\nnaïve".encode()) == "the cat\nnaïve"
    with pytest.raises(TextError, match="UTF-8"):
        decoded("naïve".encode("latin-1"))
    with pytest.raises(TextError, match="surrogate"):
        lines_in("the \ud800 cat")


def test_what_is_measured_is_kept_as_numbers_and_found_again() -> None:
    opened = opened_model.open_model("letters")
    read = tokenize_lines(opened, lines_in(TEXT))
    found = activations_of(opened, read)
    assert not bool(found.measured.any())
    assert list(measure(opened, read, found))[-1] == 1.0
    (path,) = activations_root().iterdir()
    assert path.name == f"{digest_of(opened, read)}.safetensors"
    again = top_lines.load_activations(digest_of(opened, read), (4, 2, 4))
    assert again is not None
    for name, values in found.tensors.items():
        assert torch.equal(again.tensors[name], values)
    assert list(measure(opened, read, found)) == []
    best = best_lines(found, "weight", 1, 2, 3)
    assert [each.value for each in best] == sorted((each.value for each in best), reverse=True)
    assert best[0].value == float(found.weight[:, 1, 2].max())


def test_only_the_servers_user_reads_what_is_kept_and_no_text_is_in_it() -> None:
    opened = opened_model.open_model("letters")
    read = tokenize_lines(opened, ("the secret cat", "that hat"))
    list(measure(opened, read, activations_of(opened, read)))
    (path,) = activations_root().iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {each.dtype for each in load(path.read_bytes()).values()} == {torch.float32, torch.int16}
    assert b"secret" not in path.read_bytes()


def test_it_goes_on_where_it_was_stopped() -> None:
    opened = opened_model.open_model("letters")
    text = "\n".join("the cat and the hat "[: 3 + n] for n in range(12))
    read = tokenize_lines(opened, lines_in(text))
    found = activations_of(opened, read)
    steps = measure(opened, read, found)
    exciting_lines_of_first = next(steps)
    assert 0 < exciting_lines_of_first <= 1
    assert activations_of(opened, read) is found
    assert len(best_lines(found, "norm", 0, 0, 100)) <= int(found.measured.sum())
    list(measure(opened, read, found))
    assert bool(found.measured.all())


def test_other_weights_or_other_tokens_have_another_digest() -> None:
    opened = opened_model.open_model("letters")
    read = tokenize_lines(opened, lines_in(TEXT))
    other = tokenize_lines(opened, lines_in(TEXT + "the rat"))
    assert digest_of(opened, read) != digest_of(opened, other)
    before = weights_digest(opened)
    assert before == weights_digest(opened_model.open_model("letters"))
    assert before != weights_digest(opened_model.open_model("reverse"))


def test_a_line_that_is_longer_than_the_model_reads_is_cut() -> None:
    opened = opened_model.open_model("letters")
    read = tokenize_lines(opened, ("the cat", "z" * 100))
    assert read.cut == 1
    assert max(map(len, read.rows)) == opened.config.max_len
    small = replace(opened, config=opened.config.replace(vocab_size=9))
    with pytest.raises(TextError, match="belongs to another model"):
        tokenize_lines(small, ("the cat",))


def test_the_oldest_leave_and_a_damaged_file_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = opened_model.open_model("letters")
    names = []
    monkeypatch.setenv("EXPLORER_LIMIT_ACTIVATIONS_KEPT", "5000")
    for number in range(8):
        read = tokenize_lines(opened, tuple(f"the cat {number}{word}" for word in "abcdef"))
        list(measure(opened, read, activations_of(opened, read)))
        names.append(digest_of(opened, read))
        for at, path in enumerate(sorted(activations_root().iterdir())):
            assert path.suffix == ".safetensors", at
    files = [*activations_root().iterdir()]
    assert 0 < sum(each.stat().st_size for each in files) <= ACTIVATIONS_KEPT.most
    last = activations_root() / f"{names[-1]}.safetensors"
    assert last in files
    last.write_bytes(b"no tensors")
    assert top_lines.load_activations(names[-1], (6, 2, 4)) is None
