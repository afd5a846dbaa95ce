"""What a reader sees of a published tokenizer: labels, spans, special tokens, the target side."""

import json
from pathlib import Path

import pytest

from explorer.text import TextError, Token, open_published
from explorer.text.checked_text import MAX_CHARACTERS
from tests.text.published.conftest import Made, OpenModel
from tests.text.published.tokenizer_folders import END, byte_level


def labels(tokens: tuple[Token, ...]) -> list[str]:
    return [token.label for token in tokens]


def test_a_character_of_several_pieces_is_the_span_of_each(opened: OpenModel) -> None:
    for name in ("gpt2", "llama"):
        tokens = opened(name).encode("x🙂y")
        assert [(t.label, t.start, t.end) for t in tokens[-5:-1]] == [
            ("<0xF0>", 1, 2), ("<0x9F>", 1, 2), ("<0x99>", 1, 2), ("<0x82>", 1, 2),
        ]  # fmt: skip
    tokens = opened("t5").encode("ﬁ x")
    shown = [(t.label, t.start, t.end) for t in tokens if t.label in "fix"]
    assert shown == [("f", 0, 1), ("i", 0, 1), ("x", 2, 3)]


def test_a_space_that_is_shown_is_in_the_span(opened: OpenModel) -> None:
    text = "the cat <x>"
    for name in ("gpt2", "roberta", "qwen2"):
        for token in opened(name).encode(text):
            shown = token.label.replace("␣", " ")
            assert token.special or text[token.start : token.end] == shown, name


def test_labels_show_what_is_invisible(opened: OpenModel) -> None:
    shown = labels(opened("gpt2").encode("the cat\n\u202e"))
    assert shown == ["the", "␣cat", "↵", "<0xE2>", "<0x80>", "<0xAE>"]
    assert labels(opened("bert").encode("the sats")) == ["[CLS]", "the", "sat", "##s", "[SEP]"]
    assert labels(opened("llama").encode("the cat")) == ["<s>", "␣the", "␣cat"]


def test_a_model_with_special_tokens_as_pieces_cannot_be_made_to_say_them(tmp_path: Path) -> None:
    special = ["<s>", "</s>", "<unk>", "<mask>"]
    pieces = [[piece, 0.0] for piece in special] + [["▁", -1.0]]
    pieces += [[letter, -2.0] for letter in "abcdefg</>smk"]
    stored = {
        "added_tokens": [
            {"id": number, "content": text, "special": True} for number, text in enumerate(special)
        ],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "vocab": pieces, "unk_id": 2},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored))
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": "<mask>"}')
    tokenizer = open_published(tmp_path, "mistral")
    assert labels(tokenizer.encode("a<s>b</s>")) == ["␣", *"a<s>b</s>"]
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


def test_special_pieces_are_no_text(made: Made, opened: OpenModel, tmp_path: Path) -> None:
    """Gemma's model knows `<start_of_turn>` as a piece of text; its settings know better."""
    (tmp_path / "tokenizer.model").write_bytes((made("gemma") / "tokenizer.model").read_bytes())
    turn = opened("gemma").id_of("<start_of_turn>")
    assert turn in opened("gemma").ids("a<start_of_turn>b")
    declared = {str(turn): {"content": "<start_of_turn>", "special": True}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": declared}))
    tokenizer = open_published(tmp_path, "gemma")
    assert turn in tokenizer.special_ids
    assert turn not in tokenizer.ids("a<start_of_turn>b")


def test_opt_begins_with_its_end_and_pairs_have_two_beginnings(opened: OpenModel) -> None:
    tokenizer = opened("opt")
    assert labels(tokenizer.encode("the")) == ["</s>", "the"]
    assert labels(tokenizer.encode("the", "cat"))[:3] == ["</s>", "the", "</s>"]


def test_marian_writes_with_its_target_side(made: Made, opened: OpenModel, tmp_path: Path) -> None:
    tokenizer = opened("marian")
    end, pad = tokenizer.eos_id, tokenizer.pad_id
    assert (end, tokenizer.unk_id, pad, tokenizer.bos_id) == (0, 1, tokenizer.vocab_size - 1, None)
    assert tokenizer.ids("the cat")[-1] == end
    assert pad is not None
    assert tokenizer.decode([pad, *tokenizer.ids("the cat")]) == "the cat"
    assert labels(tokenizer.encode(">>fr<< the"))[0] == ">>fr<<"
    assert labels(tokenizer.encode(">>xx<< the"))[0] == "<unk>"
    # One with two vocabularies labels what it writes.
    for file in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / file).write_bytes((made("marian") / file).read_bytes())
    listed = {"</s>": 0, "<unk>": 1, "▁wort": 2, "<pad>": 3}
    (tmp_path / "target_vocab.json").write_text(json.dumps(listed))
    two = open_published(tmp_path, "marian")
    assert (two.label(2), two.decode([2])) == ("␣wort", "wort")
    assert two.ids("the cat") == tokenizer.ids("the cat")


def test_capitals_kinds_and_the_places_that_t5_fills(opened: OpenModel) -> None:
    kinds = [opened(name).kind for name in ("bert", "gpt2", "t5", "llama", "marian")]
    assert kinds == ["wordpiece", "bytes", "sentencepiece", "sentencepiece", "sentencepiece"]
    lowercase = [opened(name).lowercase for name in ("bert", "bert-cased", "t5")]
    assert lowercase == [True, False, False]
    tokenizer = opened("t5")
    last = tokenizer.vocab_size - 1
    assert tokenizer.labels([last, last - 99]) == ["<extra_id_0>", "<extra_id_99>"]
    assert tokenizer.id_of("<extra_id_0>") == last


def test_what_is_not_there_too_long_or_broken_is_refused(opened: OpenModel) -> None:
    for name in ("gpt2", "marian"):
        tokenizer = opened(name)
        assert tokenizer.label(tokenizer.vocab_size + 7) == f"<{tokenizer.vocab_size + 7}>"
        assert tokenizer.labels([5, 6, 5]) == [tokenizer.label(number) for number in (5, 6, 5)]
        some = tokenizer.encode("the cat")[-2]
        assert tokenizer.token(some.id).label == some.label
        with pytest.raises(TextError, match="has no 'nowhere'"):
            tokenizer.id_of("nowhere")
        assert len(tokenizer.encode("a b " * (MAX_CHARACTERS // 4))) > 1
        assert all(token.special for token in tokenizer.encode(""))
        assert tokenizer.decode([]) == ""
    for number in (-1, 2**70):
        with pytest.raises(TextError, match="is in no vocabulary"):
            tokenizer.label(number)
    with pytest.raises(TextError, match=r"U\+D83D"):
        tokenizer.encode("a", "\ud83d")
