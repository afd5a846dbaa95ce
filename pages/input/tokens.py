"""How the typed text becomes the numbers that a model reads, one step at a time."""

import streamlit as st

from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.components import chips
from explorer.snippets import attention_code
from explorer.text import TextError, Tokenizer, steps
from explorer.views.shared import widgets
from explorer.views.shared.step_slider import stepper
from explorer.views.tokens import embedding_space, tokenizer_comparison

widgets.opening(
    "Tokens",
    "A model reads numbers, not letters: your sentence is cut into pieces, "
    "and every piece has a number in the model's vocabulary.",
)
forward = page_context().forward
tokenizer, chosen = page_context().opened.tokenizer, page_context().choice

KINDS = {
    "characters": "One token for each character: a small vocabulary, long sentences.",
    "words": "One token for each word; a word that was not learnt is read as unknown.",
    "bytes": "Common pieces are one token, and any text can be read, "
    "because in the end everything is bytes.",
    "wordpiece": "Common words are one token, others several, of which the later ones begin "
    "with ##.",
    "sentencepiece": "Common pieces are one token; a space belongs to the piece behind it.",
    "pieces": "Common pieces of words are one token.",
    "numbers": "This model came without a tokenizer, so its tokens are typed as their numbers.",
}
st.caption(f"{KINDS[tokenizer.kind]} The vocabulary has {tokenizer.vocab_size:,} tokens.")
chips(forward.placed, key="tokens_read", text=forward.typed)
widgets.notes(forward.notes)

st.subheader("Step by step", anchor=False)
try:
    found = steps(tokenizer, forward.text)
except TextError as error:
    say(str(error))
else:
    names = [f"{place} of {len(found) - 1}" for place in range(len(found))]
    at = stepper("Step", "step", names, 0, arrows=True)
    step = found[at]
    st.text(step.action)
    if chosen.pair:
        st.caption("These are the steps of the first sentence alone.")
    changed = [index for index, piece in enumerate(step.pieces) if piece.changed]
    chips(step.pieces, key="tokens_step", highlight=changed)

tokenizer_comparison.one_by_one(forward)
tokenizer_comparison.beside(forward.text)
embedding_space.draw_embedding_space(page_context().opened, forward)
widgets.code(
    Tokenizer.encode,
    steps,
    pasted=lambda: attention_code.tokens_script(page_context().folder, chosen.text, chosen.pair),
)
