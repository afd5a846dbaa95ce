"""A published tokenizer's steps: the merges of the library in its order, and what they say."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from explorer.text import PublishedTokenizer, TextError, open_published, steps
from explorer.text.published import steps as taking
from explorer.text.token import ADD_SPECIAL_TOKENS
from tests.text.published.conftest import Made, OpenModel
from tests.text.published.hostile_tokenizers import BPE, FOLLOWS_THE_FILE, words
from tests.text.published.test_every_form import checked_steps


@pytest.mark.parametrize("name", ["gpt2", "llama.json"])
def test_each_merge_is_what_the_library_makes(made: Made, opened: OpenModel, name: str) -> None:
    """A library that has only the rules up to this one makes exactly this step."""
    tokenizer, text = opened(name), "the cat sat on the mat, 東 the dog"
    folder = made(name.removesuffix(".json") + ".json")
    stored = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    rules = stored["model"]["merges"]
    merging = [step for step in steps(tokenizer, text) if step.rank is not None]
    assert len(merging) > 9
    assert [step.rank for step in merging] == sorted(step.rank or 0 for step in merging)
    for step in merging[:: len(merging) // 8]:
        assert step.rank is not None
        fewer = stored | {"model": stored["model"] | {"merges": rules[: step.rank + 1]}}
        library = tokenizers.Tokenizer.from_str(json.dumps(fewer))
        expected = library.encode(text, add_special_tokens=False).ids
        assert [piece.id for piece in step.pieces] == expected, step.action
        left, right = rules[step.rank]
        made_here = [piece.label for piece in step.pieces if piece.changed]
        assert made_here == [tokenizer.label(tokenizer.id_of(left + right))] * len(made_here) != []


def test_a_word_piece_says_how_each_word_is_cut(tmp_path: Path) -> None:
    listed = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "the", "##ing", "##in", "##g"]
    (tmp_path / "vocab.txt").write_text("\n".join(listed), "utf-8")
    tokenizer = open_published(tmp_path, "bert")
    actions = [step.action for step in steps(tokenizer, "The playing owl")]
    assert actions == [
        "The text as it was typed.",
        "Lowercase the text.",
        "Split into words; no token spans two of them.",
        "Take every word that is in the vocabulary.",
        "The longest piece that “playing” begins with: play, then ##ing.",
        "The longest piece that “##ing” begins with: ##ing.",
        "“owl” cannot be made of pieces of the vocabulary, so it becomes [UNK].",
        ADD_SPECIAL_TOKENS,
    ]
    typed = [step.action for step in steps(tokenizer, "[MASK] the")]
    assert typed[2:] == ["Take every word that is in the vocabulary.", ADD_SPECIAL_TOKENS]
    too_long = [step.action for step in steps(tokenizer, "a" * 120)]
    assert too_long[1].endswith(" has more than 100 characters, so it becomes [UNK].")


def written(folder: Path, model: dict[str, Any], **parts: Any) -> PublishedTokenizer:
    (folder / "tokenizer.json").write_text(words(model=model, **parts), "utf-8")
    (folder / "tokenizer_config.json").write_text(FOLLOWS_THE_FILE)
    return open_published(folder, "gpt2")


def test_words_that_are_taken_whole_are_not_merged(tmp_path: Path) -> None:
    """`ignore_merges`: no rule makes `abb`, yet it is in the vocabulary and so is read whole."""
    vocabulary = {"a": 0, "b": 1, "ab": 2, "abb": 3}
    tokenizer = written(tmp_path, BPE | {"vocab": vocabulary, "ignore_merges": True})
    taken = checked_steps(tokenizer, "abb ab aba")
    assert "stays whole" in taken[2].action
    assert [p.label for p in taken[2].pieces] == ["abb", "ab", "a", "b", "a"]


def test_what_is_not_the_librarys_end_is_not_shown(tmp_path: Path) -> None:
    """A prefix inside words changes what a rule makes, which is not done here."""
    vocabulary = {"a": 0, "b": 1, "##b": 2, "ab": 3}
    model = BPE | {"continuing_subword_prefix": "##", "vocab": vocabulary, "merges": [["a", "##b"]]}
    taken = checked_steps(written(tmp_path, model), "ab ab")
    assert taken[-2].action == taking.OWN
    assert not any(step.rank is not None for step in taken)


def test_the_rules_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    """A rule that makes a special token is out of reach; the next keeps its number."""
    model = BPE | {"vocab": {"a": 0, "b": 1, "aa": 2, "ab": 3}, "merges": ["a a", "a b"]}
    token = {"id": 2, "content": "aa", "special": True}
    taken = checked_steps(written(tmp_path, model, added_tokens=[token]), "aab")
    assert [step.rank for step in taken if step.rank is not None] == [1]
    assert "Merge a and b (merge 2)." in [step.action for step in taken]


def test_a_text_of_too_many_steps_is_refused(opened: OpenModel) -> None:
    with pytest.raises(TextError, match=r"too many steps to show; shorten it\.$"):
        steps(opened("gpt2"), "東" * 600)
