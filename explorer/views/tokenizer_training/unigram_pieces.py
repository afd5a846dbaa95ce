"""A Unigram in training: fewer and fewer pieces, and the likeliest segmentations of a sentence."""

import math
from collections.abc import Sequence

import streamlit as st

from explorer.app.messages import say
from explorer.components import chips
from explorer.inference import trained_tokenizers
from explorer.text import TextError
from explorer.text.plain_tokenizer import unigram_tokenizer, visible_token
from explorer.text.unigram import (
    MAX_UNIGRAM_TEXT,
    UNIGRAM,
    Segmentation,
    UnigramPieces,
    segmentations,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Expression, Script, script
from explorer.views.shared.step_slider import stepper

UNIGRAM_COST = "Training on the text: some seconds for 100,000 characters"
TABLE_HEIGHT = 388
WORDS_SHOWN = 40
UNKNOWN_CHARACTER = "has an unknown character"
LONGEST_PRINTED = 2_500
"""Characters of a text that stands in the script itself."""


def draw_unigram(text: str, most: int, sentence: str) -> int:
    """One vocabulary size of the training on `text`, and the sentence in its pieces."""
    sizes = trained_tokenizers.unigram_sizes(text, most)
    names = [f"at most {size:,} pieces" for size in sizes]
    step = stepper("learn_size", len(sizes), 0, names=names, arrows=True)
    with st.spinner(UNIGRAM_COST):
        found = trained_tokenizers.unigram_pieces(text, sizes[step])
        larger = trained_tokenizers.unigram_pieces(text, sizes[step - 1]) if step else None
    total = sum(map(math.exp, found.scores.values()))
    notes = [
        "The tokenizers library starts from substrings that occur at least twice among the "
        "distinct words of the text and drops those whose removal lowers the likelihood least. "
        "It returns only the final pieces, so each size is trained separately.",
        f"{len(found.pieces):,} pieces, the unknown token among them. Single characters are never "
        "dropped.",
        "A score is a log-probability, but the library does not renormalize what is left: e^score "
        f"sums to {total:.3g} over these pieces.",
    ]
    if len(text) > MAX_UNIGRAM_TEXT:
        notes.append(f"Trained on the first {MAX_UNIGRAM_TEXT:,} of {len(text):,} characters.")
    widgets.notes(notes)
    left, right = widgets.side_by_side(1, 1)
    with left:
        st.markdown("**Pieces, likeliest first**")
        _draw_pieces(found.pieces[1:], "learn_pieces")
    with right:
        st.markdown("**Dropped from the larger size**")
        before = larger.pieces[1:] if larger else ()
        dropped = [piece for piece in before if piece[0] not in found.scores]
        _draw_pieces(dropped, "learn_dropped")
    _draw_segmentations(found, sentence)
    return step


def _draw_pieces(pieces: Sequence[tuple[str, float]], key: str) -> None:
    table = {
        "piece": [visible_token(piece, UNIGRAM) for piece, _ in pieces],
        "score": [f"{score:.3f}" for _, score in pieces],
        "e^score": [f"{math.exp(score):.3g}" for _, score in pieces],
    }
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key=key)


def _draw_segmentations(found: UnigramPieces, sentence: str) -> None:
    st.header("Your sentence in these pieces", anchor=False)
    if not sentence.strip():
        say("There is nothing to read yet: type a sentence.")
        return
    try:
        tokens = unigram_tokenizer(found).encode(sentence)
    except TextError as error:
        say(str(error))
        return
    chips(tokens, key="learn_sentence", text=sentence)
    words = dict.fromkeys(sentence.split()[:WORDS_SHOWN])
    best = {word: segmentations(f"▁{word}", found.scores) for word in words}
    table = {
        "word": list(best),
        "likeliest": [
            _pieces_text(each[0]) if each else UNKNOWN_CHARACTER for each in best.values()
        ],
        "sum of scores": [f"{each[0].score:.3f}" if each else "" for each in best.values()],
        "second": [_pieces_text(each[1]) if len(each) > 1 else "none" for each in best.values()],
        "its sum": [f"{each[1].score:.3f}" if len(each) > 1 else "" for each in best.values()],
    }
    st.caption(
        "Each word is segmented so that the sum of the scores of its pieces is largest. A score "
        "is a log-probability."
    )
    st.dataframe(table, hide_index=True, key="learn_cuts")


def _pieces_text(found: Segmentation) -> str:
    return "  ".join(
        f"{visible_token(piece, UNIGRAM)} {score:.3f}"
        for piece, score in zip(found.pieces, found.scores, strict=True)
    )


def training_code(name: str, text: str, algorithm: str, most: int, step: int) -> Script:
    """What is trained on the text of this name, at this step."""
    if name in trained_tokenizers.TEXTS:
        text = Expression(f"trained_tokenizers.shipped_text({name!r})")
    elif len(text) > LONGEST_PRINTED:
        text = Expression('open("your text.txt", encoding="utf-8-sig", newline="").read()')
    if algorithm == UNIGRAM:
        return script(pieces_code, text, most, step)
    return script(merges_code, text, algorithm, most, step)


def merges_code(text: str, algorithm: str, most: int, step: int) -> None:
    found = trained_tokenizers.trained_merges(text, most, algorithm)
    counted = found.counts_after(step)
    for pair in counted.pairs:
        print(found.tokens[pair.left], found.tokens[pair.right], pair.count)
    print(counted.tokens)


def pieces_code(text: str, most: int, step: int) -> None:
    size = trained_tokenizers.unigram_sizes(text, most)[step]
    pieces = trained_tokenizers.unigram_pieces(text, size).pieces
    print(pieces[1:13])
