"""How a vocabulary is trained on a text, one merge at a time."""

import streamlit as st

from explorer.app import widget_state
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.app.throttle import turn
from explorer.components.fragment import fragment
from explorer.text import TextError
from explorer.text.bpe_training import MergeTraining, train_merges
from explorer.text.unigram import UNIGRAM, segmentations, train_unigram
from explorer.views.shared import tokenizer_source, widgets
from explorer.views.tokenizer_training.training_steps import (
    draw_merges,
    draw_unigram,
    training_code,
)

widgets.opening(
    "Training a tokenizer",
    "BPE and WordPiece merge the most frequent pair, again and again; Unigram drops pieces.",
)


@fragment()
@turn()
def draw_tokenizer_training(text: str, algorithm: str, most: int, sentence: str) -> None:
    """What a new step draws again."""
    is_unigram = algorithm == UNIGRAM
    try:
        with st.container(gap="xsmall"):
            if is_unigram:
                step = draw_unigram(text, most, sentence)
            else:
                step = draw_merges(text, most, algorithm, sentence)
    except TextError as error:
        say(str(error))
        return
    lines = training_code(widget_state.get("learn_from"), text, algorithm, most, step)
    functions = (
        (train_unigram, segmentations) if is_unigram else (train_merges, MergeTraining.counts_after)
    )
    learned = {"algorithm": algorithm, "learned from": tokenizer_source.text_for_export(text)}
    widgets.closing(learned, *functions, script=lines)


try:
    with st.container(horizontal=True):
        algorithm, name, most = tokenizer_source.choose_training()
    text = tokenizer_source.text_of(name)
except TextError as error:
    say(str(error))
else:
    draw_tokenizer_training(text, algorithm, most, page_context().choice.text)
widgets.page_links("tokens")
