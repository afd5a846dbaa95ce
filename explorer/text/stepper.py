"""How a text becomes tokens, one step at a time, as plain data.

Each step holds the whole text cut into pieces, and the last one is exactly what the
tokenizer encodes. A published tokenizer makes its steps in the child process.
"""

import json

from explorer.text.checked_text import TextError, checked
from explorer.text.labels import readable
from explorer.text.plain_tokenizer import PlainTokenizer
from explorer.text.published import PublishedTokenizer
from explorer.text.published.child_wire import from_wire
from explorer.text.published.library_engine import LibraryEngine
from explorer.text.published.roles import Roles
from explorer.text.token import ADD_SPECIAL_TOKENS, TYPED, AnyTokenizer, Piece, TokenizerStep
from explorer.text.tokenizer import Tokenizer

MAX_STEPPED_CHARACTERS = 1_000
"""Longest text that is taken apart step by step: the pieces grow with its square."""


def steps(tokenizer: AnyTokenizer | PlainTokenizer, text: str) -> tuple[TokenizerStep, ...]:
    """Every step from the typed text to the tokens that the model reads."""
    checked(text, MAX_STEPPED_CHARACTERS)
    if isinstance(tokenizer, PublishedTokenizer):
        return tokenizer.steps(text)
    tokens = tokenizer.encode(text)
    if isinstance(tokenizer, (Tokenizer, PlainTokenizer)):
        stored = json.loads(tokenizer.library.to_str())
        engine = LibraryEngine(stored, Roles(), frozenset(), most_units=4 * MAX_STEPPED_CHARACTERS)
        try:
            of_text = from_wire(engine.steps(text))[:-1]
        except TextError as error:
            raise TextError(f"The steps of this text cannot be shown: {error}") from None
        if isinstance(tokenizer, PlainTokenizer):
            return of_text
        whole = [Piece(t.label, t.start, t.end, t.id, t.special, t.special) for t in tokens]
        return (*of_text, TokenizerStep(ADD_SPECIAL_TOKENS, tuple(whole)))
    typed = [Piece(t.label, t.start, t.end, t.id, changed=True) for t in tokens]
    return (
        TokenizerStep(TYPED, (Piece(readable(text), 0, len(text)),)),
        TokenizerStep("Each word is a token ID.", tuple(typed)),
    )
