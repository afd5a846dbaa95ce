"""Text in visible characters: spaces, line ends, control characters, bytes; and in Markdown."""

import re
import unicodedata
from functools import cache, lru_cache

SPACE, NEWLINE, RETURN, TAB = "␣", "↵", "␍", "⇥"

_VISIBLE = {" ": SPACE, "\n": NEWLINE, "\r": RETURN, "\t": TAB}
_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}


def readable(text: str) -> str:
    """The text with every invisible character replaced by a visible one.

    Direction marks and other control characters become `<U+200F>`, so a label
    can neither hide nor turn the text around it.
    """
    label = "".join(readable_character(character) for character in text)
    return "◌" + label if label and unicodedata.combining(label[0]) else label


def cut(text: str, longest: int) -> str:
    """The text, without its middle where it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    front = longest // 2
    return f"{text[:front]}…{text[len(text) - (longest - 1 - front) :]}"


def in_quotes(text: str) -> str:
    """The text in quotes; one with right-to-left letters keeps its direction to itself."""
    turns = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"“\u2068{text}\u2069”" if turns else f"“{text}”"


def readable_bytes(piece: bytes) -> str:
    """The piece as text where its bytes are whole characters, as `<0xE2>` where they are not."""
    label = ""
    for part in piece.decode("utf-8", "surrogateescape"):
        code = ord(part)
        label += f"<0x{code - 0xDC00:02X}>" if 0xDC80 <= code <= 0xDCFF else part
    return readable(label)


@lru_cache(maxsize=4096)
def readable_character(character: str) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return f"<U+{ord(character):04X}>"
    return character


@cache
def byte_alphabet() -> dict[str, int]:
    """The byte of each printable character that byte-level BPE writes for one.

    Printable Latin-1 bytes are written as themselves, the other 68 as the characters from
    U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    alphabet.update({chr(0x100 + index): byte for index, byte in enumerate(others)})
    return alphabet


def bytes_of(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for."""
    alphabet = byte_alphabet()
    return bytes(alphabet[character] for character in token)


PUNCTUATION = re.compile(r"[!-+./:-@\[-`{-~]|(?<![A-Za-z])-|-(?![A-Za-z])")
"""All of ASCII but the comma and the hyphen between two letters, which mean nothing in Markdown."""
JOINER = "\u2060"
"""Invisible. It also keeps Streamlit from replacing shortcodes such as `:smile:`."""


LONGEST_LABEL, LONGEST_SENTENCE = 80, 1_000
"""Characters of a label, whose end is cut, and of a sentence, of which it is said."""


@lru_cache(maxsize=512)
def literal(text: str, longest: int = LONGEST_LABEL) -> str:
    """The text as a label without Markdown; a line break is shown as ↵."""
    plain = _in_one_line(text)
    if len(plain) > longest:
        plain = plain[: longest - 1].rstrip() + "…"
    visible = "".join(c if c.isprintable() else readable(c) for c in plain)
    return PUNCTUATION.sub(lambda mark: f"\\{mark[0]}{JOINER}", visible)


def literal_sentence(text: str) -> str:
    """The same of a sentence or a list, whole; a very long one ends in how much is left out."""
    left_out = len(_in_one_line(text)) - LONGEST_SENTENCE
    sentence = literal(text, LONGEST_SENTENCE)
    return f"{sentence} ({left_out + 1:,} more characters)" if left_out > 0 else sentence


def _in_one_line(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return " ↵ ".join(line for line in lines if line)
