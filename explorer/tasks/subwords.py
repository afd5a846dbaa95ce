"""The reader's own text, subword by subword: byte-level BPE trained on it, or another tokenizer."""

from functools import partial

from explorer.tasks.language import LanguageTask, own_text_task
from explorer.tasks.own_tokenizer import SUBWORDS, tokenizer_for
from explorer.text import TrainedWith

NAME = "subwords"
TITLE = "Your own text, subword by subword"
EXPLANATION = (
    "The model reads a text of yours in subwords, of a vocabulary that is trained on it or comes "
    "with another model, and learns which comes next. The last tenth of the text is kept aside."
)
EXPECTATION = (
    "Some heads attend to the previous token, others to an earlier copy of the same word or to "
    "what came after it."
)

MIN_CHARACTERS = 5_000


def subwords_from_text(text: str, tokenizer: str | TrainedWith | None = None) -> LanguageTask:
    """The task of this text. TextError, in one sentence, where it is too short."""
    return own_text_task(
        text,
        MIN_CHARACTERS,
        partial(tokenizer_for, tokenizer or SUBWORDS),
        dropout=0.1,
        name=NAME,
        title=TITLE,
        explanation=EXPLANATION,
        expectation=EXPECTATION,
        goal=4.0,
    )
