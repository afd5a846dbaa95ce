"""How a vocabulary is trained on a text, one merge at a time."""

import streamlit as st

from explorer.app import widget_state
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.app.throttle import turn
from explorer.components.fragment import fragment
from explorer.text import TextError
from explorer.text.bpe_training import BPE, WORDPIECE, MergeTraining, train_merges
from explorer.text.unigram import UNIGRAM, segmentations, train_unigram
from explorer.views.shared import tokenizer_source, widgets
from explorer.views.shared.widgets import ViewSpec
from explorer.views.tokenizer_training.training_steps import (
    draw_merges,
    draw_unigram,
    training_code,
)

VIEWS = {
    BPE: ViewSpec(
        "The two neighbours that occur most often together become one token, again and again.",
        draw_merges,
        (train_merges, MergeTraining.counts_after),
    ),
    WORDPIECE: ViewSpec(
        "The two neighbours that occur most often become one token; ## continues a word.",
        draw_merges,
        (train_merges, MergeTraining.counts_after),
    ),
    UNIGRAM: ViewSpec(
        "It starts with very many pieces of words and drops those that the text needs least.",
        draw_unigram,
        (train_unigram, segmentations),
    ),
}
widgets.opening_of_view("Training a tokenizer", "learn_how", VIEWS)


@fragment()
@turn()
def draw_tokenizer_training(text: str, algorithm: str, most: int, sentence: str) -> None:
    """What a new step draws again."""
    view = VIEWS[algorithm]
    try:
        with st.container(gap="xsmall"):
            step = view.draw(text, most, algorithm, sentence)
    except TextError as error:
        say(str(error))
        return
    lines = training_code(widget_state.get("learn_from"), text, algorithm, most, step)
    learned = {"algorithm": algorithm, "learned from": tokenizer_source.text_for_export(text)}
    widgets.closing(learned, *view.code, script=lines)


try:
    with st.container(horizontal=True):
        algorithm, name, most = tokenizer_source.choose_training()
    text = tokenizer_source.text_of(name)
except TextError as error:
    say(str(error))
else:
    draw_tokenizer_training(text, algorithm, most, page_context().choice.text)
widgets.page_links("tokens")
