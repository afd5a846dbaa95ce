"""What a reader sees of a published tokenizer: labels, spans, special tokens, the target side."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.text import PublishedTokenizer, TextError, Token, open_published
from explorer.text.limits import MAX_CHARACTERS
from tests.text.published.conftest import Made
from tests.text.published.making import BERT, END, FAIRSEQ, FOLDERS, TEXTS, byte_level

FEW = ("bert", "gpt2", "roberta", "xlm-roberta", "t5", "llama", "marian")
SEVERAL = pytest.mark.parametrize("name", FEW)
ALL = pytest.mark.parametrize("name", FOLDERS)


@cache
def opened_from(folder: Path, family: str) -> PublishedTokenizer:
    return open_published(folder, family)


def opened(made: Made, name: str) -> PublishedTokenizer:
    return opened_from(made(name), FOLDERS[name][0])


def labels(tokens: tuple[Token, ...]) -> list[str]:
    return [token.label for token in tokens]


def check_spans(text: str, tokens: tuple[Token, ...]) -> None:
    typed = [token for token in tokens if token.end > token.start or not token.special]
    starts = [token.start for token in typed]
    assert starts == sorted(starts)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    assert all(token.label and token.label.isprintable() for token in tokens)


@SEVERAL
@settings(max_examples=60)
@given(text=st.text(max_size=60))
def test_spans_lie_in_the_text_in_order(made: Made, name: str, text: str) -> None:
    check_spans(text, opened(made, name).encode(text))


@ALL
def test_spans_of_nasty_texts(made: Made, name: str) -> None:
    tokenizer = opened(made, name)
    for text in TEXTS:
        tokens = tokenizer.encode(text)
        check_spans(text, tokens)
        covered = {place for token in tokens for place in range(token.start, token.end)}
        lost = {text[place] for place in range(len(text)) if place not in covered}
        assert not any(character.isalnum() for character in lost), (text, lost)


@ALL
def test_a_span_is_what_the_label_says(made: Made, name: str) -> None:
    text = "the cat sat on the mat"
    for token in opened(made, name).encode(text):
        if not token.special:
            shown = token.label.replace("␣", " ").replace("##", "")
            part = text[token.start : token.end]
            assert shown.strip() == part.strip()
            assert shown in (part, " " + part)


def test_an_emoji_is_its_bytes_over_one_character(made: Made, subtests: pytest.Subtests) -> None:
    for name in ["gpt2", "llama"]:
        with subtests.test(name=name):
            tokens = opened(made, name).encode("x🙂y")
            assert [(t.label, t.start, t.end) for t in tokens[-5:-1]] == [
                ("<0xF0>", 1, 2), ("<0x9F>", 1, 2), ("<0x99>", 1, 2), ("<0x82>", 1, 2),
            ]  # fmt: skip


def test_one_character_that_becomes_two_pieces_is_the_span_of_both(made: Made) -> None:
    tokens = opened(made, "t5").encode("ﬁ x")
    shown = [(t.label, t.start, t.end) for t in tokens if t.end and not t.special]
    assert shown == [("f", 0, 1), ("i", 0, 1), ("␣", 1, 2), ("x", 2, 3)]


def test_a_space_that_is_shown_is_in_the_span(made: Made, subtests: pytest.Subtests) -> None:
    for name in ["gpt2", "roberta", "qwen2"]:
        with subtests.test(name=name):
            text = "the cat <x>"
            for token in opened(made, name).encode(text):
                assert token.special or text[token.start : token.end] == token.label.replace(
                    "␣", " "
                )


def test_the_places_that_t5_fills_are_numbered_from_the_end(made: Made) -> None:
    tokenizer = opened(made, "t5")
    last = tokenizer.vocab_size - 1
    assert [tokenizer.label(last - n) for n in (0, 1, 99)] == [
        "<extra_id_0>", "<extra_id_1>", "<extra_id_99>",
    ]  # fmt: skip
    assert tokenizer.id_of("<extra_id_0>") == last


def test_labels_show_what_is_invisible(made: Made) -> None:
    assert labels(opened(made, "gpt2").encode("the cat\n\u202e")) == [
        "the", "␣cat", "↵", "<0xE2>", "<0x80>", "<0xAE>",
    ]  # fmt: skip
    assert labels(opened(made, "bert").encode("the sats")) == [
        "[CLS]", "the", "sat", "##s", "[SEP]",
    ]  # fmt: skip
    assert labels(opened(made, "llama").encode("the cat")) == ["<s>", "␣the", "␣cat"]


@ALL
def test_typed_text_never_becomes_a_special_token(made: Made, name: str) -> None:
    tokenizer = opened(made, name)
    mask = set() if tokenizer.mask_id is None else {tokenizer.label(tokenizer.mask_id)}
    written = [*BERT, *FAIRSEQ, *END, "<extra_id_0>", "<start_of_turn>", "de_DE", "<bos>"]
    for text in [word for word in written if word not in mask]:
        for typed in (text, f"the {text}{text} cat"):
            found = [token for token in tokenizer.encode(typed) if not token.special]
            assert not {token.id for token in found} & tokenizer.special_ids, typed
            pair = tokenizer.encode("the", typed)
            assert sum(token.special for token in pair) == sum(
                token.special for token in tokenizer.encode("the", "cat")
            )


def whole(tmp_path: Path, **parts: Any) -> PublishedTokenizer:
    """A tokenizer.json whose model knows its special tokens as pieces like any other."""
    pieces = [["<s>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["<mask>", 0.0], ["▁", -1.0]]
    pieces += [[letter, -2.0] for letter in "abcdefg</>smk"]
    special = [("<s>", True), ("</s>", True), ("<unk>", True), ("<mask>", True)]
    stored = {
        "added_tokens": [
            {"id": number, "content": text, "special": flag}
            for number, (text, flag) in enumerate(special)
        ],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "vocab": pieces, "unk_id": 2},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored | parts))
    return open_published(tmp_path, "xlm-roberta")


def test_a_model_that_holds_its_special_tokens_as_pieces_cannot_be_made_to_say_them(
    tmp_path: Path,
) -> None:
    tokenizer = whole(tmp_path)
    assert labels(tokenizer.encode("a<s>b</s>")) == [
        "␣", "a", "<", "s", ">", "b", "<", "/", "s", ">",
    ]  # fmt: skip
    assert labels(tokenizer.encode("a <mask> b")) == ["␣", "a", "␣", "<mask>", "␣", "b"]
    assert (tokenizer.id_of("<s>"), tokenizer.label(1), tokenizer.vocab_size) == (0, "</s>", 18)
    assert tokenizer.decode([0, 5, 1]) == "a"


def test_added_words_are_text_and_added_special_tokens_are_not(tmp_path: Path) -> None:
    byte_level(tmp_path, END)
    word, special = {"content": "frogs", "special": False}, {"content": "<|x|>", "special": True}
    declared = {"added_tokens_decoder": {"400": word, "401": special}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(declared))
    tokenizer = open_published(tmp_path, "gpt2")
    assert labels(tokenizer.encode("my frogs<|x|>"))[-6:] == ["frogs", "<", "|", "x", "|", ">"]
    assert tokenizer.label(401) == "<|x|>"
    assert tokenizer.token(401).special
    assert tokenizer.vocab_size == 402


def test_a_piece_that_is_declared_special_is_not_found_in_a_text(
    made: Made, tmp_path: Path
) -> None:
    """Gemma's model knows `<start_of_turn>` as a piece of text; its settings know better."""
    (tmp_path / "tokenizer.model").write_bytes((made("gemma") / "tokenizer.model").read_bytes())
    turn = opened(made, "gemma").id_of("<start_of_turn>")
    assert turn in opened(made, "gemma").ids("a<start_of_turn>b")
    declared = {str(turn): {"content": "<start_of_turn>", "special": True}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": declared}))
    tokenizer = open_published(tmp_path, "gemma")
    assert turn in tokenizer.special_ids
    assert turn not in tokenizer.ids("a<start_of_turn>b")


def test_opt_begins_with_its_end_and_pairs_have_two_beginnings(made: Made, tmp_path: Path) -> None:
    tokenizer = opened(made, "opt")
    assert labels(tokenizer.encode("the")) == ["</s>", "the"]
    assert labels(tokenizer.encode("the", "cat"))[:3] == ["</s>", "the", "</s>"]
    for file in ("vocab.json", "merges.txt"):  # without settings, as the family does
        (tmp_path / file).write_bytes((made("opt") / file).read_bytes())
    assert labels(open_published(tmp_path, "opt").encode("the")) == ["</s>", "the"]


def test_pairs_as_the_families_write_them(made: Made) -> None:
    def special(name: str) -> list[str]:
        tokens = opened(made, name).encode("x", "x")
        return [token.label if token.special else "." for token in tokens if token.label != "␣"]

    assert special("bert") == ["[CLS]", ".", "[SEP]", ".", "[SEP]"]
    assert special("roberta") == ["<s>", ".", "</s>", "</s>", ".", "</s>"]
    assert special("xlm-roberta") == special("roberta")
    assert special("t5") == [".", "</s>", ".", "</s>"]
    tokens = opened(made, "bert").encode("x", "x")
    assert [(token.segment, token.second) for token in tokens] == [
        (0, False), (0, False), (0, False), (1, True), (1, True),
    ]  # fmt: skip


@ALL
def test_the_spans_of_a_pair_lie_each_in_its_own_text(made: Made, name: str) -> None:
    first, second = "x", "the cat sat on the mat"
    tokens = opened(made, name).encode(first, second)
    check_spans(first, tuple(token for token in tokens if not token.second))
    typed = [token for token in tokens if token.second]
    check_spans(second, tuple(typed))
    assert max(token.end for token in typed) == len(second)


def test_marian_writes_with_its_target_side(made: Made) -> None:
    tokenizer = opened(made, "marian")
    end, pad = tokenizer.eos_id, tokenizer.pad_id
    assert (end, tokenizer.unk_id, pad, tokenizer.bos_id) == (0, 1, tokenizer.vocab_size - 1, None)
    assert tokenizer.ids("the cat")[-1] == end
    written = [pad, *tokenizer.ids("the cat")]
    assert tokenizer.decode([number for number in written if number is not None]) == "the cat"
    assert labels(tokenizer.encode(">>fr<< the"))[0] == ">>fr<<"
    assert labels(tokenizer.encode(">>xx<< the"))[0] == "<unk>"


def test_a_marian_with_two_vocabularies_labels_what_it_writes(made: Made, tmp_path: Path) -> None:
    for file in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / file).write_bytes((made("marian") / file).read_bytes())
    listed = {"</s>": 0, "<unk>": 1, "▁wort": 2, "<pad>": 3}
    (tmp_path / "target_vocab.json").write_text(json.dumps(listed))
    tokenizer = open_published(tmp_path, "marian")
    assert (tokenizer.label(2), tokenizer.decode([2])) == ("␣wort", "wort")
    assert tokenizer.ids("the cat") == opened(made, "marian").ids("the cat")


def test_capitals_and_kinds(made: Made) -> None:
    kinds = {name: opened(made, name).kind for name in ("bert", "gpt2", "t5", "llama", "marian")}
    assert kinds == {
        "bert": "wordpiece",
        "gpt2": "bytes",
        "t5": "sentencepiece",
        "llama": "sentencepiece",
        "marian": "sentencepiece",
    }
    assert [opened(made, name).lowercase for name in ("bert", "bert-cased", "t5")] == [
        True, False, False,
    ]  # fmt: skip


@SEVERAL
def test_numbers_and_words_that_are_not_there(made: Made, name: str) -> None:
    tokenizer = opened(made, name)
    assert tokenizer.label(tokenizer.vocab_size + 7) == f"<{tokenizer.vocab_size + 7}>"
    assert tokenizer.labels([5, 6, 5]) == [tokenizer.label(number) for number in (5, 6, 5)]
    with pytest.raises(TextError, match="has no 'nowhere'"):
        tokenizer.id_of("nowhere")
    for number in (-1, 2**70):
        with pytest.raises(TextError, match="is in no vocabulary"):
            tokenizer.label(number)
    some = tokenizer.encode("the cat")[-2]
    assert tokenizer.token(some.id).label == some.label


@SEVERAL
def test_long_and_broken_texts_are_refused_and_empty_ones_are_not(made: Made, name: str) -> None:
    tokenizer = opened(made, name)
    with pytest.raises(TextError, match=r"20,001 characters; at most 20,000 fit"):
        tokenizer.encode("a" * (MAX_CHARACTERS + 1))
    with pytest.raises(TextError, match=r"U\+D83D"):
        tokenizer.encode("a", "\ud83d")
    assert len(tokenizer.encode("a b " * (MAX_CHARACTERS // 4))) > 1
    assert all(token.special for token in tokenizer.encode(""))
    assert tokenizer.decode([]) == ""
