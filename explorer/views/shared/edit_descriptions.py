"""Interventions in words, as the list on screen has them."""

from collections.abc import Sequence

from explorer.catalog.open_model import OpenModel
from explorer.inference.core_edits import token_label
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions import edits
from explorer.interventions.edits import Intervention
from explorer.text import Token
from explorer.text.labels import cut
from explorer.text.number_format import three

LONGEST_TEXT = 60
"""Characters of a text in the list."""
TITLES = {
    "encoder.self_attn": "Encoder, ",
    "decoder.self_attn": "Decoder, ",
    "decoder.cross_attn": "Cross-attention, ",
}
PRESET_WORDS = {
    "none": "none, every query may attend to every key",
    "causal": "causal, no query may attend to a later key",
    "padding": "padding, the last {n} keys are masked",
    "window": "sliding window, only keys less than {n} tokens away",
    "prefix": "prefix, causal except for the first {n} keys",
    "blocks": "blocks, only keys in the same block of {n}",
}


def describe_edit(opened: OpenModel, forward: ForwardPass, edit: Intervention) -> str:
    """One line, tokens by their labels."""
    exists = edit.part in {part.name for part in forward.parts}
    title = "" if exists and len(forward.parts) == 1 else TITLES[edit.part]
    layer = getattr(edit, "layer", None)
    where = f"{title}every layer" if layer is None else f"{title}layer {layer}"
    where = where[0].upper() + where[1:]
    rows = forward.rows(edit.part) if exists else ()
    columns = forward.columns(edit.part) if exists else ()
    match edit:
        case edits.AblateHead(head=head, to=to):
            return f"{where}, head {head}: {to} ablation"
        case edits.AblateAttention(to=to):
            return f"{where}, attention: {to} ablation"
        case edits.AblateMlp(to=to):
            return f"{where}, feed-forward: {to} ablation"
        case edits.CutEdge(head=head, query=query, key=key, to=to):
            which = "every head" if head is None else f"head {head}"
            edge = f"{_named(rows, query)} → {_named(columns, key)}"
            return f"{where}, {which}: edge {edge} set to {to}"
        case edits.PresetMask(preset=preset, n=n):
            return f"{where}, mask: {PRESET_WORDS[preset].format(n=n)}"
        case edits.MaskCell(query=query, key=key, allowed=allowed):
            may = "may" if allowed else "may not"
            return f"{where}: {_named(rows, query)} {may} attend to {_named(columns, key)}"
        case edits.HideKey(key=key):
            return f"{where}: key {_named(columns, key)} masked for every query"
        case edits.ReplaceToken(position=position, token=token, word=word):
            tokens = forward.source if edit.part.startswith("encoder") else forward.target
            label = word or token_label(opened, token)
            return f"{title}{_named(tokens, position)} replaced by “{label}”"
        case edits.Patch(head=head, position=position, text=text):
            what = "residual stream after it" if head is None else f"head {head}"
            return (
                f"{where}, {what} at {_named(rows, position)}: patched from “{text[:LONGEST_TEXT]}”"
            )
        case edits.Steer(head=head, strength=strength, texts=texts):
            return f"{where}: {three(strength)} × {direction_words(head, texts)} added"
    raise AssertionError(edit)


def direction_words(head: int | None, texts: Sequence[str]) -> str:
    """A direction in words: the texts that it is made from, or the head."""
    if head is not None:
        return f"the output of head {head} on “{cut(texts[0], LONGEST_TEXT)}”"
    first, *rest = (f"“{cut(each, LONGEST_TEXT)}”" for each in texts)
    pairs = f", mean over {len(texts) // 2} pairs" if len(texts) > 2 else ""
    return f"({first} − {rest[0] if rest else 'nothing'}{pairs})"


def _named(tokens: Sequence[Token], position: int) -> str:
    known = position < len(tokens)
    return f"“{tokens[position].label}” ({position})" if known else f"token {position}"
