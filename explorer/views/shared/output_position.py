"""The position whose prediction is read: one choice on Interventions and Logit lens."""

from explorer.analysis.output_change import has_words
from explorer.app.context import PageContext
from explorer.app.controls import token
from explorer.app.persistent_choices import PersistentChoices
from explorer.inference.answers import first_place
from explorer.inference.output_tokens import last_stack_tokens

ANSWER = PersistentChoices("answer", {"answer": ""})
"""The same position in the picture of the whole pass; empty where nobody chose one."""
PREDICTS = {
    "decoder": "The model predicts the token after this one.",
    "encoder": "The model predicts the token in this place.",
    "encoder-decoder": "The model predicted this token of its answer.",
}


def choose_output_position(context: PageContext) -> int:
    """The chosen position; 0 where the model gives one answer for the whole text."""
    opened, forward = context.opened, context.forward
    kind = opened.config.kind
    if not has_words(opened.config):
        return 0
    read = last_stack_tokens(forward)
    tokens = forward.written if kind == "encoder-decoder" else read
    default = first_place(opened, read)
    picked = token("expected_at", tokens, default, help=PREDICTS[kind], width=360)
    ANSWER.put("answer", "" if picked == default else str(picked))
    return picked
