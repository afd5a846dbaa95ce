"""A text to tokens and back: the same, or what was lost on the way."""

from __future__ import annotations

from difflib import SequenceMatcher

from explorer.text.labels import cut, readable

LONGEST = 24


def lost(text: str, back: str) -> str:
    """One sentence; empty where the text comes back as it was."""
    if text == back:
        return ""
    if "".join(text.split()) == "".join(back.split()):
        return "Spaces are lost or added; every other character comes back."
    if text.casefold() == back.casefold():
        return "Capitals are lost; every letter comes back."
    words, others = text.split(), back.split()
    first = next(
        tag
        for tag in SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
        if tag[0] != "equal"
    )
    _, start, end, begun, ended = first
    was, is_now = (
        f"“{cut(readable(' '.join(part)), LONGEST)}”" if part else "nothing"
        for part in (words[start:end], others[begun:ended])
    )
    if not words[start:end]:
        return f"Before word {start + 1}, {is_now} comes back, which was not there."
    return f"The first difference is at word {start + 1}: {was} comes back as {is_now}."
