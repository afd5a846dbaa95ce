"""The tokenizer of a model that is trained here: its own, or a stranger's that it adopted."""

from functools import lru_cache

from explorer.text.checked_text import TextError
from explorer.text.published.adopted import AdoptedTokenizer, adopted_json, is_adopted
from explorer.text.published.training_tokenizer import TrainingTokenizer
from explorer.text.special import SPECIALS, Reads
from explorer.text.tokenizer import Tokenizer

TrainedWith = Tokenizer | TrainingTokenizer
KEPT = 16


@lru_cache(maxsize=KEPT)
def trained_with(text: str) -> TrainedWith:
    """What the `to_json` of either wrote; TextError for anything else."""
    try:
        return Tokenizer.from_json(text)
    except TextError:
        if not is_adopted(text):
            raise
        return AdoptedTokenizer(text)


def adopted(text: str, reads: Reads) -> TrainedWith:
    """The tokenizer of any tokenizer.json for a model that reads so; TextError without one."""
    try:
        own = Tokenizer.from_json(text)
        if all(own.library.token_to_id(name) is not None for name in SPECIALS[reads]):
            return own
    except TextError:
        pass  # it is no tokenizer of ours
    return trained_with(adopted_json(text, reads))
