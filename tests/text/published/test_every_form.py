"""What every form of a published tokenizer does: it reads as the reference does, step by step."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.text import PublishedTokenizer, Token, TokenizerStep, steps
from explorer.text.published import steps as taking
from explorer.text.published.engine import NONE_AROUND
from explorer.text.token import ADD_SPECIAL_TOKENS, TYPED
from models.loading.checkpoint_tokenizer import tokenizer_of_folder
from tests.text.published.conftest import Made, OpenModel, reference_of
from tests.text.published.tokenizer_folders import BERT, END, FAIRSEQ, FOLDERS, TEXTS

SAVED = [f"{name}.json" for name in "bert gpt2 roberta xlm-roberta t5 llama gemma".split()]
"""What the reference library saves of a form: tokenizer.json, which wins over the older files."""
SPECIAL = [*BERT, *FAIRSEQ, *END, "<extra_id_0>", "<start_of_turn>", "de_DE", "<bos>"]
MAT = "the cat sat on the mat"
PARTS = ["the", " ", "cat", "sat", "🙂", "\n", "東京", "e\u0301", "A", "qx", "▁", "<s>"]
ANY = st.text(max_size=60) | st.lists(st.sampled_from(PARTS), max_size=40).map("".join)
Reference = Callable[[str], Any]


@pytest.fixture(scope="module", params=[*FOLDERS, *SAVED])
def name(request: pytest.FixtureRequest) -> str:
    """All tests of a form follow one another, so that its process is started once."""
    return str(request.param)


@pytest.fixture(scope="module")
def reference(made: Made) -> Reference:
    return cache(partial(reference_of, made))


def check_spans(text: str, tokens: tuple[Token, ...]) -> None:
    typed = [token for token in tokens if token.end > token.start or not token.special]
    starts = [token.start for token in typed]
    assert starts == sorted(starts)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    assert all(token.label and token.label.isprintable() for token in tokens)


def checked_steps(tokenizer: PublishedTokenizer, text: str) -> tuple[TokenizerStep, ...]:
    """The steps, which end in the encoding."""
    taken = steps(tokenizer, text)
    tokens = [(t.id, t.label, t.start, t.end, t.special) for t in tokenizer.encode(text)]
    shown = [[(p.id, p.label, p.start, p.end, p.special) for p in s.pieces] for s in taken]
    assert shown[-1] == tokens
    # All that the last step adds is what stands around: the steps before came there themselves.
    spoken = [token for token in tokens if not token[4] or token[3] > token[2]]
    assert shown[-2] == spoken or not spoken
    assert taken[-1].action == (ADD_SPECIAL_TOKENS if len(spoken) < len(tokens) else NONE_AROUND)
    assert all(0 <= p.start <= p.end <= len(text) for step in taken for p in step.pieces)
    return taken


def test_it_reads_as_the_reference(opened: OpenModel, reference: Reference, name: str) -> None:
    ours, theirs = opened(name), reference(name.removesuffix(".json"))
    assert (ours.form == "tokenizer.json") == name.endswith(".json")
    for text in TEXTS:
        assert ours.ids(text) == theirs(text)["input_ids"], text
    for text, pair in zip(TEXTS[:9], reversed(TEXTS[:9]), strict=True):
        expected = theirs(text, pair, return_token_type_ids=True)
        tokens = ours.encode(text, pair)
        assert [token.id for token in tokens] == expected["input_ids"]
        if ours.kind == "wordpiece":
            assert [token.segment for token in tokens] == expected["token_type_ids"]
        typed = [token.second for token in tokens if not token.special]
        assert typed == sorted(typed)
        assert len(set(typed)) == 2
    for text in (f"{MAT}.", "it's the dog; the cat"):  # the reference leaves out an unknown token
        ids = ours.ids(text)
        assert ours.decode(ids).strip() == theirs.decode(ids, skip_special_tokens=True).strip()
    assert ours.vocab_size == max(theirs.get_vocab().values()) + 1
    for role in ("pad", "eos", "mask"):
        if getattr(ours, f"{role}_id") is not None:
            assert getattr(ours, f"{role}_id") == getattr(theirs, f"{role}_token_id"), role


def test_spans_cover_the_text_and_steps_lead_to_the_tokens(opened: OpenModel, name: str) -> None:
    tokenizer = opened(name)
    for text in TEXTS:
        taken, tokens = checked_steps(tokenizer, text), tokenizer.encode(text)
        assert taken[0].action == TYPED
        assert taking.OWN not in [step.action for step in taken]
        check_spans(text, tokens)
        covered = {place for token in tokens for place in range(token.start, token.end)}
        lost = {text[place] for place in range(len(text)) if place not in covered}
        assert not any(character.isalnum() for character in lost), (text, lost)
    for token in tokenizer.encode(MAT):
        if not token.special:
            shown = token.label.replace("␣", " ").replace("##", "")
            part = MAT[token.start : token.end]
            assert shown.strip() == part.strip()
            assert shown in (part, " " + part)
    pair = tokenizer.encode("x", MAT)
    second = tuple(token for token in pair if token.second)
    check_spans("x", tuple(token for token in pair if not token.second))
    check_spans(MAT, second)
    assert max(token.end for token in second) == len(MAT)


def test_typed_text_never_becomes_a_special_token(opened: OpenModel, name: str) -> None:
    tokenizer = opened(name)
    mask = set() if tokenizer.mask_id is None else {tokenizer.label(tokenizer.mask_id)}
    around = sum(token.special for token in tokenizer.encode("the", "cat"))
    for text in {*SPECIAL} - mask:
        typed = f"the {text}{text} cat"
        found = [token for token in tokenizer.encode(typed) if not token.special]
        assert not {token.id for token in found} & tokenizer.special_ids, typed
        assert sum(token.special for token in tokenizer.encode("the", text)) == around


@pytest.mark.parametrize("form", ["bert", "gpt2", "xlm-roberta", "t5.json", "llama.json", "marian"])
@given(text=ANY)
def test_spans_and_steps_of_any_text(opened: OpenModel, form: str, text: str) -> None:
    checked_steps(opened(form), text)
    check_spans(text, opened(form).encode(text))


@pytest.mark.parametrize("form", SAVED)
def test_the_core_reads_a_saved_file_as_the_app_does(
    made: Made, opened: OpenModel, form: str
) -> None:
    app, core = opened(form), tokenizer_of_folder(made(form))
    assert core is not None
    for text in (*TEXTS, "the [MASK] sat<mask> on", "</s> a<s> <|endoftext|>"):
        ids = core.encode(text)
        assert (ids, core.decode(ids)) == (app.ids(text), app.decode(ids)), text


@pytest.mark.parametrize("form", ["bert", "roberta", "xlm-roberta", "mbart"])
def test_a_typed_mask_is_the_mask(opened: OpenModel, reference: Reference, form: str) -> None:
    ours = opened(form)
    assert ours.mask_id is not None
    mask = ours.label(ours.mask_id)
    text = f"the {mask} sat on{mask}"
    tokens = ours.encode(text)
    if form != "roberta":  # its reference lost the word that a mask takes its space with it
        assert [token.id for token in tokens] == reference(form)(text)["input_ids"]
    found = [token for token in tokens if token.id == ours.mask_id]
    assert [text[token.start : token.end].strip() for token in found] == [mask, mask]
    assert all(token.special for token in found)
