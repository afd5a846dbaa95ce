"""Byte-pair encoding and WordPiece in training: each merge, its pair counts, and the vocabulary."""

from dataclasses import dataclass

import streamlit as st

from explorer.app.messages import say
from explorer.components import chips
from explorer.inference import trained_tokenizers
from explorer.text import TextError, steps
from explorer.text.bpe_training import (
    BPE,
    WORDPIECE,
    CountedPair,
    MergeTraining,
    PairCounts,
    beginning,
)
from explorer.text.plain_tokenizer import tokenizer_after, visible_token
from explorer.views.shared import widgets
from explorer.views.shared.step_slider import stepper

MERGES_COST = "Training on the text: about a second per megabyte"
EXCERPT = 400
"""Characters of the training text that are shown in tokens."""

TABLE_HEIGHT = 388


@dataclass(frozen=True)
class ExcerptToken:
    """A token of the training text as a chip; none of them is special."""

    label: str
    id: int
    special: bool = False


def draw_merges(text: str, most: int, algorithm: str, sentence: str) -> int:
    """One step of the training on `text`, and the sentence by the merges so far."""
    with st.spinner(MERGES_COST):
        found = trained_tokenizers.trained_merges(text, most, algorithm)
        found.keep_states()
    count = len(found.merges)
    step = stepper("learn_step", count + 1, 0, arrows=True)
    counts = found.counts_after(step)
    if count < most:
        merges = "1 merge" if count == 1 else f"{count:,} merges"
        st.caption(
            f"Training ends after {merges}, though {most:,} were allowed: by then every word of "
            "the text is one token."
        )
    widgets.notes(_summary(found, counts, step))
    pairs, vocabulary = widgets.side_by_side(1, 1)
    with pairs:
        st.markdown("**Neighbouring tokens, most frequent pair first**")
        _draw_pairs(found, counts)
    with vocabulary:
        st.markdown("**Vocabulary, newest token first**")
        _draw_vocabulary(found, step)
    st.caption("A token ID is an index into the vocabulary, not a byte.")
    _draw_excerpt(found, text, step)
    _draw_encoding(found, step, sentence)
    return step


def _summary(found: MergeTraining, counts: PairCounts, step: int) -> list[str]:
    """The merge just made, the size of the vocabulary, and the merge that comes next."""
    said = []
    if step:
        left, right, new = (_label(found, token) for token in found.merges[step - 1])
        said.append(f"Merge {step}: {left} and {right} became {new}.")
    start = "bytes" if found.algorithm == BPE else "letters"
    alphabet = found.alphabet - (found.algorithm == WORDPIECE)
    unknown = ", the unknown token" if found.algorithm == WORDPIECE else ""
    size = len(found.vocabulary(step))
    said.append(
        f"The vocabulary has {alphabet:,} {start}{unknown} and {size - found.alphabet:,} merged "
        f"tokens, {size:,} in all. The text is {counts.tokens:,} tokens long."
    )
    if not counts.pairs:
        return [*said, "No pair is left: every word is one token, so training ends."]
    first = counts.pairs[0]
    next_merge = (
        f"Next, {_label(found, first.left)} and {_label(found, first.right)} are merged: they "
        f"occur together {_times(first.count)}"
    )
    if counts.ties == 1:
        said.append(f"{next_merge}, more often than any other of {counts.n_pairs:,} pairs.")
    else:
        others = counts.ties - 1
        tied = "does one other pair" if others == 1 else f"do {others:,} other pairs"
        said.append(
            f"{next_merge}, and so {tied} of {counts.n_pairs:,}. A tie goes to the lowest ID of "
            f"the first token, then of the second: here {first.left} and {first.right}."
        )
    if found.algorithm == WORDPIECE:
        said.append(_textbook(found, first, counts.scored[0]))
    return said


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _textbook(found: MergeTraining, first: CountedPair, best: CountedPair) -> str:
    same = (first.left, first.right) == (best.left, best.right)
    pair = f"{_label(found, best.left)} and {_label(found, best.right)}"
    would = "the same pair" if same else f"{pair}, found together {_times(best.count)}"
    return (
        "The tokenizers library trains WordPiece by merging the most frequent pair. Textbooks "
        "divide the count of a pair by those of its two tokens, which would merge "
        f"{would} (score {best.score:.3g}, against {first.score:.3g})."
    )


def _draw_pairs(found: MergeTraining, counts: PairCounts) -> None:
    rows = counts.pairs
    table = {
        "first": [_label(found, pair.left) for pair in rows],
        "second": [_label(found, pair.right) for pair in rows],
        "token IDs": [f"{pair.left}, {pair.right}" for pair in rows],
        "count": [pair.count for pair in rows],
    }
    if found.algorithm == WORDPIECE:
        table["textbook score"] = [f"{pair.score:.3g}" for pair in rows]
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key="learn_pairs")


def _draw_vocabulary(found: MergeTraining, step: int) -> None:
    made = list(enumerate(found.merges[:step], 1))[::-1]
    table = {
        "merge": [merge for merge, _ in made],
        "token": [_label(found, new) for _, (*_, new) in made],
        "token ID": [new for _, (*_, new) in made],
        "merged from": [
            f"{_label(found, left)}  {_label(found, right)}" for _, (left, right, _) in made
        ],
    }
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, key="learn_vocabulary")


def _draw_excerpt(found: MergeTraining, text: str, step: int) -> None:
    st.header("The text so far", anchor=False)
    excerpt = beginning(text, EXCERPT)
    ids = found.ids_of(excerpt, step)
    newest = found.merges[step - 1][2] if step else None
    marked = [place for place, token in enumerate(ids) if token == newest]
    part = f"The first {len(excerpt):,} of {len(text):,} characters: " if excerpt != text else ""
    note = f"{len(marked):,} marked, from the newest merge" if step else "no merge yet"
    st.caption(f"{part}{len(ids):,} tokens, {note}.")
    chips(
        [ExcerptToken(_label(found, token), token) for token in ids],
        key="learn_text",
        highlight=marked,
        height=200,
    )


def _draw_encoding(found: MergeTraining, step: int, sentence: str) -> None:
    """The merges so far, lowest first, on the reader's own sentence."""
    st.header("Your sentence with these merges", anchor=False)
    if not sentence.strip():
        say("There is nothing to read yet: type a sentence.")
        return
    try:
        taken = steps(tokenizer_after(found, step), sentence)
    except TextError as error:
        say(str(error))
        return
    at = stepper("learn_encode", len(taken), len(taken) - 1)
    st.text(taken[at].action)
    changed = [place for place, piece in enumerate(taken[at].pieces) if piece.changed]
    chips(taken[at].pieces, key="learn_sentence", highlight=changed)


def _label(found: MergeTraining, token: int) -> str:
    return visible_token(found.tokens[token], found.algorithm)
