"""How a vocabulary is learnt from a text, one rule at a time."""

import streamlit as st

from explorer import learnt, widgets
from explorer.bench import learning, learning_pieces
from explorer.snippets import learning as snippets
from explorer.text import TextError
from explorer.text.learning import Learnt
from explorer.text.learning import learn as learn_rules
from explorer.text.unigram import UNIGRAM, cuts, learn_unigram

widgets.opening(
    "Learning a tokenizer",
    "Where the pieces come from: two neighbours that often stand together in a text become "
    "one token, again and again, until the vocabulary is large enough.",
)
try:
    with st.container(horizontal=True, gap="large"):
        how, most = learning.way(), learning.most_rules()
    text = learning.source()
    if how == UNIGRAM:
        step = learning_pieces.show(text, most)
    else:
        with st.spinner(learning.BUSY):
            found = learnt.rules(text, most, how)
        step = learning.show_rules(found, text, most)
except TextError as error:
    widgets.say(str(error))
else:
    pasted = snippets.learning(st.session_state["learn_from"], text, how, most, step)
    shown = (learn_unigram, cuts) if how == UNIGRAM else (learn_rules, Learnt.after)
    widgets.code(*shown, pasted=pasted)
widgets.ways_on("tokens")
