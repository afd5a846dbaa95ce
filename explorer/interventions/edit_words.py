"""Edits in words: what a reader sees in the list of changes."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.core_edits import token_label
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    MaskCell,
    Patch,
    PresetMask,
    ReplaceToken,
)
from explorer.text import Token

TITLES = {
    "encoder.self_attn": "Encoder",
    "decoder.self_attn": "Decoder",
    "decoder.cross_attn": "Cross",
}
PRESET_WORDS = {
    "none": "everybody may look at everybody",
    "causal": "nobody may look ahead",
    "padding": "the last {n} are filler, and nobody looks at them",
    "window": "only at tokens less than {n} away",
    "prefix": "all may look at the first {n}, nobody else ahead",
    "blocks": "only inside blocks of {n}",
}


def words(opened: Opened, forward: ForwardPass, edit: Edit) -> str:
    """The edit in words, tokens by their labels."""
    has_part = edit.part in {part.name for part in forward.parts}
    title = "" if has_part and len(forward.parts) == 1 else f"{TITLES[edit.part]}, "
    layer = getattr(edit, "layer", None)
    where = f"{title}layer {layer}" if layer is not None else f"{title}every layer"
    where = where[0].upper() + where[1:]
    rows = forward.rows(edit.part) if has_part else ()
    columns = forward.columns(edit.part) if has_part else ()
    to = f"to {edit.to}" if hasattr(edit, "to") else ""
    match edit:
        case AblateHead(head=head):
            return f"{where}, head {head} {to}"
        case AblateAttention():
            return f"{where}, attention {to}"
        case AblateMlp():
            return f"{where}, feed-forward {to}"
        case CutEdge(head=head, query=query, key=key):
            which = "every head" if head is None else f"head {head}"
            return f"{where}, {which}, edge {_at(rows, query)} → {_at(columns, key)} {to}"
        case PresetMask(preset=preset, n=n):
            return f"{where}, mask: {PRESET_WORDS[preset].format(n=n)}"
        case MaskCell(query=query, key=key, allowed=allowed):
            may = "may" if allowed else "may not"
            return f"{where}, {_at(rows, query)} {may} look at {_at(columns, key)}"
        case HideKey(key=key):
            return f"{where}, nobody looks at {_at(columns, key)}"
        case ReplaceToken(position=position, token=token, word=word):
            read_as = forward.source if edit.part.startswith("encoder") else forward.target
            label = word or token_label(opened, token)
            return f"{title}{_at(read_as, position)} becomes “{label}”"
        case Patch(head=head, position=position, text=text):
            what = "the stream after it" if head is None else f"head {head}"
            return f"{where}, {what} at {_at(rows, position)} as in “{text[:60]}”"
    raise AssertionError(edit)


def _at(tokens: Sequence[Token], place: int) -> str:
    return f"“{tokens[place].label}” ({place})" if place < len(tokens) else f"token {place}"
