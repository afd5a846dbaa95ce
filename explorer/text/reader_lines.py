"""A reader's own text, line by line: what is read of it, and why it is refused."""

from explorer.system.limits import LINE_CHARACTERS, LINES
from explorer.text.checked_text import TextError, checked

BYTES_OF_CHARACTER = 4
"""At most, in UTF-8: a file that cannot fit is refused unread."""


def lines_in(text: str) -> tuple[str, ...]:
    """The different lines of a text, in their order, without empty ones. TextError says why not."""
    rows = [line.strip() for line in text.splitlines()]
    found = [*dict.fromkeys(row for row in rows if row)]
    if not found:
        raise TextError("There is no line to read yet: type or upload a text.")
    if not LINES.allows(len(found)):
        raise TextError(LINES.refusal(len(found)))
    longest = max(map(len, found))
    if not LINE_CHARACTERS.allows(longest):
        raise TextError(LINE_CHARACTERS.refusal(longest))
    return tuple(checked(line, LINE_CHARACTERS) for line in found)


def decoded(content: bytes) -> str:
    """The text of a file; TextError where it is too large or not in UTF-8."""
    most = LINES.most * (LINE_CHARACTERS.most + 1)
    if len(content) > BYTES_OF_CHARACTER * most:
        raise TextError(
            f"The file has {len(content):,} bytes; at most {most:,} characters are read, so upload "
            "a part of it."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextError(
            "The file is not text in UTF-8; save it as plain text in UTF-8 and upload it again."
        ) from None
