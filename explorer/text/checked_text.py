"""Limits on texts, and the error that refuses longer ones.

Text is never changed on the way in: what cannot be read is refused, so that
every span points into exactly what was typed.
"""

from explorer.system.limits import Limit

MAX_CHARACTERS = 20_000
"""Longest text that is tokenized for a page."""

LARGEST_TEMPLATE = 200_000
"""Characters of a chat template that is shown or rendered."""


class TextError(ValueError):
    """A text or a tokenizer that cannot be used; the message is one sentence for the reader."""


def checked(text: str, most: int | Limit = MAX_CHARACTERS) -> str:
    """The same text, once it is known to be short enough and to be valid Unicode."""
    if isinstance(most, Limit):
        if not most.allows(len(text)):
            raise TextError(most.refusal(len(text)))
    elif len(text) > most:
        raise TextError(
            f"The text has {len(text):,} characters; at most {most:,} fit, so shorten it."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise TextError(
            f"Character {error.start + 1} (U+{code:04X}) is an unpaired surrogate; "
            "delete it and type it again."
        ) from None
    return text


def decoded(data: bytes) -> str:
    """The text of a file. TextError where it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextError(
            f"Line {line:,} of the file is not UTF-8 text; save it as UTF-8 and give it again."
        ) from None
