"""One token that a reader types."""

from explorer.catalog.opened_model import Opened
from explorer.text import TextError
from explorer.text.token_labels import text_of


def one_token(opened: Opened, typed: str) -> tuple[int | None, str]:
    """The ID of the one token that this is, or why it is none; a space may come before it."""
    if not typed.strip():
        return None, ""
    for text in (typed, f" {typed}"):
        try:
            inside = [t for t in opened.tokenizer.encode(text) if t.end > t.start]
        except TextError as error:
            return None, str(error)
        if len(inside) == 1 and inside[0].id != opened.tokenizer.unk_id:
            return inside[0].id, ""
    if len(inside) == 1:
        return None, f"“{typed[:40]}” is not in this model's vocabulary."
    named = ", ".join(f"“{text_of(each)}”" for each in inside[:6])
    return None, f"“{typed[:40]}” is {len(inside)} tokens here: {named}. Type one."
