"""How the typed text becomes the token IDs that a model reads, one step at a time."""

import streamlit as st

from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.app.throttle import turn
from explorer.components.chips import chips
from explorer.components.fragment import fragment
from explorer.text import AnyTokenizer, TextError, Tokenizer, steps
from explorer.views.input.tokenizer_comparison import draw_comparison, draw_token_table, tokens_code
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from explorer.views.shared.step_slider import stepper

KINDS = {
    "characters": "One token per character: a small vocabulary and long sequences.",
    "words": "One token per word; a word outside the vocabulary becomes the unknown token.",
    "bytes": "Frequent pieces are one token, and any text can be read, because the smallest "
    "tokens are bytes.",
    "wordpiece": "Frequent words are one token, others several; every piece but a word's first "
    "begins with ##.",
    "sentencepiece": "Frequent pieces are one token; a space belongs to the piece after it.",
    "pieces": "Frequent pieces of words are one token.",
    "numbers": "This model came without a tokenizer, so you type token IDs.",
}

widgets.opening(
    "Tokens",
    "The tokenizer splits your sentence into tokens; each has an ID in the model's vocabulary.",
)
context = page_context()
forward, tokenizer, choice = context.forward, context.opened.tokenizer, context.choice


@fragment()
@turn()
def draw_steps(tokenizer: AnyTokenizer, text: str, *, has_pair: bool) -> None:
    """What a new step draws again."""
    try:
        stages = steps(tokenizer, text)
    except TextError as error:
        say(str(error))
        return
    step = stages[stepper("step", len(stages), len(stages) - 1, arrows=True)]
    st.text(step.action)
    if has_pair:
        st.caption("The steps are those of the first sentence alone.")
    changed = [index for index, piece in enumerate(step.pieces) if piece.changed]
    chips(step.pieces, key="tokens_step", highlight=changed)


split, table = st.columns([2, 3], gap="medium")
with split:
    chips(forward.placed, key="tokens_read", text=forward.typed)
    draw_steps(tokenizer, forward.text, has_pair=bool(choice.pair))
    st.caption(f"{KINDS[tokenizer.kind]} The vocabulary has {tokenizer.vocab_size:,} tokens.")
    widgets.notes(forward.notes)
with table:
    draw_token_table(context)
draw_comparison(context)
lines = script(tokens_code, context.opened, forward.text, forward.pair)
widgets.closing(context, Tokenizer.encode, steps, script=lines)
