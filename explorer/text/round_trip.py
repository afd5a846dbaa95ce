"""What a text loses when it is encoded and decoded."""

from difflib import SequenceMatcher

from explorer.text.labels import cut, readable

LONGEST = 24
LOOKED_AT = 50
"""Words after the first difference that are compared: the cost is their square."""


def lost(text: str, back: str) -> str:
    """One sentence; empty where the decoded text is the same."""
    if text == back:
        return ""
    if "".join(text.split()) == "".join(back.split()):
        return "Decoding loses or adds spaces; every other character is the same."
    if text.casefold() == back.casefold():
        return "Decoding loses capitals; every letter is otherwise the same."
    words, others = text.split(), back.split()
    pairs = enumerate(zip(words, others, strict=False))
    shorter = min(len(words), len(others))
    start = next((at for at, (word, other) in pairs if word != other), shorter)
    differ, come = words[start : start + LOOKED_AT], others[start : start + LOOKED_AT]
    _, _, end, _, ended = SequenceMatcher(None, differ, come, autojunk=False).get_opcodes()[0]
    was, is_now = (
        f"“{cut(readable(' '.join(part)), LONGEST)}”" if part else "nothing"
        for part in (differ[:end], come[:ended])
    )
    if not differ[:end]:
        return f"Decoding adds {is_now} before word {start + 1}."
    return f"The first difference is at word {start + 1}: {was} is decoded as {is_now}."
