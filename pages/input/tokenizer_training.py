"""How a vocabulary is learnt from a text, one rule at a time."""

import streamlit as st

from explorer.app.messages import say
from explorer.app.throttle import turn
from explorer.components.alone import alone
from explorer.snippets import tokenizer_code as snippets
from explorer.text import TextError
from explorer.text.bpe_training import Learnt
from explorer.text.bpe_training import learn as learn_rules
from explorer.text.unigram import UNIGRAM, cuts, learn_unigram
from explorer.views.shared import tokenizer_source, widgets
from explorer.views.tokenizer_training import merges, unigram_pieces

widgets.opening(
    "Learning a tokenizer",
    "Where the pieces come from: two neighbours that often stand together in a text become "
    "one token, again and again, until the vocabulary is large enough.",
)


@alone()
@turn()
def here(text: str, how: str, most: int) -> None:
    """All that a step draws anew."""
    try:
        is_unigram = how == UNIGRAM
        step = unigram_pieces.show(text, most) if is_unigram else merges.show(text, most, how)
    except TextError as error:
        say(str(error))
        return
    pasted = snippets.learning(st.session_state["learn_from"], text, how, most, step)
    shown = (learn_unigram, cuts) if how == UNIGRAM else (learn_rules, Learnt.after)
    widgets.code(*shown, pasted=pasted)


try:
    with st.container(horizontal=True, gap="large"):
        how, most = tokenizer_source.way(), tokenizer_source.most_rules()
    text = tokenizer_source.source()
except TextError as error:
    say(str(error))
else:
    here(text, how, most)
widgets.ways_on("tokens")
