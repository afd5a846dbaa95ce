"""The option of the output that a typed answer is: a class by its name, or one token."""

from collections.abc import Sequence

from torch import Tensor

from explorer.catalog.open_model import OpenModel
from explorer.inference.answers import class_names
from explorer.text import TextError, Token
from explorer.text.labels import cut
from explorer.text.token_labels import text_of, texts

MOST_NAMED, LONGEST = 4, 40


def option_of(opened: OpenModel, before: str, typed: str, logits: Tensor) -> tuple[int | None, str]:
    """Its number, and a note; without a number the note says why, in a sentence.

    `before` is the text that it follows, and `logits` (options,) are those after it. Typed
    without a space it may be a token with one before it: of the two the likelier is taken.
    """
    shown = text_of(cut(typed, LONGEST))
    if opened.config.head == "classifier":
        return _class_of(class_names(opened), typed, shown)
    variants = [typed] if typed[:1].isspace() or before[-1:].isspace() else [typed, f" {typed}"]
    try:
        pieces = [pieces_of(opened, before, each) for each in variants]
    except TextError as error:
        return None, str(error)
    single = [each[0] for each in pieces if len(each) == 1]
    known = [each for each in single if each.id != opened.tokenizer.unk_id]
    if known:
        best = max(known, key=lambda token: float(logits[token.id]))
        is_other = text_of(best).strip("␣") == shown and text_of(best) != shown
        return best.id, f"“{shown}” is read as “{text_of(best)}”." if is_other else ""
    if single or not pieces[0]:
        return None, f"“{shown}” is not in this model's vocabulary: give one token that is."
    names = [f"“{name}”" for name in texts(pieces[0][:MOST_NAMED])]
    more = ["…"] if len(pieces[0]) > MOST_NAMED else []
    said = ", ".join([*names, *more])
    return None, f"“{shown}” is {len(pieces[0])} tokens, {said}: give one token."


def _class_of(names: Sequence[str], typed: str, shown: str) -> tuple[int | None, str]:
    found = [at for at, name in enumerate(names) if name.casefold() == typed.strip().casefold()]
    if found:
        return found[0], ""
    some = ", ".join(f"“{text_of(cut(name, LONGEST))}”" for name in names[:MOST_NAMED])
    more = ", …" if len(names) > MOST_NAMED else ""
    return None, f"“{shown}” is no class of this model: give one of {some}{more}."


def pieces_of(opened: OpenModel, before: str, typed: str) -> tuple[Token, ...]:
    """The tokens with which a text goes on that goes on so; else those of the answer alone."""
    if opened.config.kind == "decoder":
        start, whole = (_inside(opened, text) for text in (before, before + typed))
        if [each.id for each in whole[: len(start)]] == [each.id for each in start]:
            return whole[len(start) :]
    return _inside(opened, typed)


def _inside(opened: OpenModel, text: str) -> tuple[Token, ...]:
    """Its tokens without the special ones around it."""
    return tuple(each for each in opened.tokenizer.encode(text) if each.end > each.start)
