"""The reader's edits made in the pass itself: which fit, what they are called, what follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.edits import (
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
from explorer.kept import kept
from explorer.library import Opened
from explorer.parts import site
from explorer.reading import Reading, ReadingError, read, reread
from explorer.text import Token
from models import interventions as core
from models.interventions import EditError
from models.masking import causal_mask

MOST_WEIGHTS = 64 * 1024 * 1024
"""An edge is cut among all weights of its layer; the pass holds those of every such layer."""
MOST_TEXTS = 4
"""Every text that is patched from is one more pass."""
PRESET_WORDS = {
    "none": "everybody may look at everybody",
    "causal": "nobody may look ahead",
    "window": "nobody may look further than {n}",
    "prefix": "all may look at the first {n}, nobody else ahead",
    "blocks": "only inside blocks of {n}",
}


class Misfit(ValueError):
    """An edit does not fit this model and text; the message goes on after the edit's name."""


@dataclass(frozen=True, eq=False)
class Edited:
    """What became of a reading: the pass with all edits that fit, and what was left out."""

    reading: Reading
    made: tuple[Edit, ...]
    dropped: tuple[str, ...]


def edited(opened: Opened, reading: Reading, edits: Sequence[Edit]) -> Edited:
    """The text passed once more with these edits; made once and kept.

    One more pass, in time and memory like the first, and one for each text that is patched
    from. Cut edges hold their layers' weights, `MOST_WEIGHTS` in all.
    """
    if not edits:
        return Edited(reading, (), ())
    key = ("edited", reading.text, reading.pair, tuple(edits))
    return kept(
        opened, key, lambda: _edited(opened, reading, edits), lambda made: made.reading.bytes
    )


def _edited(opened: Opened, reading: Reading, edits: Sequence[Edit]) -> Edited:
    source, target = list(reading.source), list(reading.target)
    made: list[Edit] = []
    dropped: list[str] = []
    changes: list[core.Edit] = []
    texts: set[str] = set()
    held: dict[tuple[str, int], int] = {}
    for edit in edits:
        try:
            check(opened, reading, edit)
            if isinstance(edit, Patch):
                _one_more_text(edit, texts)
            if isinstance(edit, CutEdge):
                _one_more_layer(reading, edit, held)
            if isinstance(edit, ReplaceToken):
                row = source if edit.part.startswith("encoder") else target
                row[edit.position] = _token(opened, row[edit.position], edit.token)
            else:
                changes.append(change(opened, reading, edit))
            made.append(edit)
        except (Misfit, EditError) as error:
            dropped.append(f"Dropped: {words(opened, reading, edit)}. {error}")
    passed = reread(opened, reading, tuple(source), tuple(target), changes)
    return Edited(passed, tuple(made), tuple(dropped))


def _one_more_text(edit: Patch, texts: set[str]) -> None:
    """Misfit where the history would patch from too many texts; one that fails counts too."""
    if len(texts | {edit.text}) > MOST_TEXTS:
        raise Misfit(
            f"At most {MOST_TEXTS} texts are patched from: patch from one of them, or remove the "
            "patches from another."
        )
    texts.add(edit.text)


def _one_more_layer(reading: Reading, edit: CutEdge, held: dict[tuple[str, int], int]) -> None:
    """Misfit where the weights of all layers with a cut edge are too many to hold."""
    rows, columns = len(reading.rows(edit.part)), len(reading.columns(edit.part))
    more = {(edit.part, edit.layer): reading.part(edit.part).heads * rows * columns}
    if sum((held | more).values()) > MOST_WEIGHTS:
        raise Misfit(
            "The text is too long to hold all weights of one more layer: cut edges in fewer "
            "layers, or shorten it."
        )
    held |= more


def _token(opened: Opened, before: Token, number: int) -> Token:
    """The new token in the place of the old."""
    token = opened.tokenizer.token(number)
    place = {name: getattr(before, name) for name in ("start", "end", "segment", "second")}
    return dataclasses.replace(token, **place)


def check(opened: Opened, reading: Reading, edit: Edit) -> None:
    """Misfit says in a sentence what this model or this text does not have."""
    parts = {part.name: part for part in reading.parts}
    if edit.part not in parts:
        raise Misfit("This model has no such attention.")
    part = parts[edit.part]
    rows, columns = len(reading.rows(edit.part)), len(reading.columns(edit.part))
    for name, what, count in (
        ("layer", "layer", part.layers),
        ("head", "head", part.heads),
        ("query", "query", rows),
        ("position", "token", rows),
        ("key", "key", columns),
    ):
        number = getattr(edit, name, None)
        if number is not None and number >= count:
            raise Misfit(f"There is no {what} {number} here: there are {count}.")
    crosses = edit.part == "decoder.cross_attn"
    if isinstance(edit, PresetMask):
        if crosses and edit.preset != "none":
            raise Misfit("Positions of a source and of what is written are not on one line.")
        if edit.n < 1:
            raise Misfit("It needs a size of at least 1.")
    if isinstance(edit, AblateMlp) and (crosses or not opened.config.d_ff):
        raise Misfit("There is no feed-forward there.")
    if isinstance(edit, ReplaceToken):
        known = opened.config.vocab_size
        if edit.part.startswith("encoder"):
            known = opened.config.src_vocab_size or known
        if crosses or edit.token >= known:
            raise Misfit(f"This model has no token {edit.token:,} to read there.")
    if isinstance(edit, CutEdge) and part.heads * rows * columns > MOST_WEIGHTS:
        raise Misfit("The text is too long to hold all weights of a layer: shorten it.")
    if isinstance(edit, Patch) and crosses and edit.head is None:
        raise Misfit("The stream after a layer is patched in the decoder itself.")


def change(opened: Opened, reading: Reading, edit: Edit) -> core.Edit:
    """The edit of the core; Misfit where another text cannot be patched from."""
    every = "*" if getattr(edit, "layer", None) is None else None
    stack, attention = edit.part.split(".")
    at = f"{stack}.{every or edit.layer}.{attention}"  # type: ignore[union-attr]
    match edit:
        case AblateHead(head=head, to="mean"):
            return core.Mean(f"{at}.head_out", head)
        case AblateHead(head=head):
            return core.Scale(f"{at}.head_out", head=head)
        case AblateAttention(to=to):
            return core.Mean(f"{at}.out") if to == "mean" else core.Scale(f"{at}.out")
        case AblateMlp(layer=layer, to=to):
            out = f"{stack}.{layer}.mlp.out"
            return core.Mean(out) if to == "mean" else core.Scale(out)
        case CutEdge(head=head, query=query, key=key, to=to):
            return core.SetCell(f"{at}.weights", query, key, None if to == "mean" else 0.0, head)
        case PresetMask():
            return core.Replace(f"{at}.mask", preset_mask(reading, edit)[None, None])
        case MaskCell(query=query, key=key, allowed=allowed):
            return core.SetCell(f"{at}.mask", query, key, allowed)
        case HideKey(key=key):
            return core.ForbidKey(f"{at}.mask", key)
        case Patch():
            return _patch(opened, reading, edit)
    raise Misfit("It is not made in the pass.")


def preset_mask(reading: Reading, edit: PresetMask) -> Tensor:
    """Which key (column) each query (row) may look at. Sizes are tokens.

    A window or a block of a decoder stays causal; a prefix is seen by all (as in Raffel et
    al. 2020, section 3.2.1) and causal behind it.
    """
    queries, keys = len(reading.rows(edit.part)), len(reading.columns(edit.part))
    everything = torch.ones(queries, keys, dtype=torch.bool)
    if edit.preset == "none":
        return everything
    causal = causal_mask(queries, keys)[0, 0]
    if edit.preset == "causal":
        return causal
    here, there = torch.arange(queries)[:, None], torch.arange(keys)[None]
    if edit.preset == "prefix":
        return causal | (there < edit.n)
    near = (
        (here - there).abs() < edit.n
        if edit.preset == "window"
        else here // edit.n == there // edit.n
    )
    return near & causal if edit.part.startswith("decoder") else near


def _patch(opened: Opened, reading: Reading, edit: Patch) -> core.Edit:
    other = _other(opened, reading, edit.text)
    ours, theirs = len(reading.rows(edit.part)), len(other.rows(edit.part))
    if ours != theirs:
        raise Misfit(
            f"That text is {theirs} tokens and yours {ours}: only texts of the same length have "
            "the same positions."
        )
    at = site(edit.part, edit.layer)
    if edit.head is None:
        stream = f"{at.rsplit('.', 1)[0]}.resid_post"
        return core.ReplaceAt(stream, edit.position, other.trace[stream][0, edit.position])
    values = other.trace[f"{at}.v"][0]
    values = values[edit.head * len(values) // opened.config.n_heads]
    weights = other.weights(edit.part, edit.layer, edit.head)[edit.position]
    return core.ReplaceAt(f"{at}.head_out", edit.position, weights @ values, edit.head)


def _other(opened: Opened, reading: Reading, text: str) -> Reading:
    """The text patched from; a decoder that writes reads our own answer there too."""
    try:
        other = read(opened, text)
    except ReadingError as error:
        raise Misfit(str(error)) from error
    if opened.config.kind != "encoder-decoder":
        return other
    same = dataclasses.replace(other, written=reading.written)
    return kept(  # once for all patches from this text
        opened,
        ("patched from", text, reading.text),
        lambda: reread(opened, same, other.source, reading.target, ()),
        lambda made: made.bytes,
    )


def words(opened: Opened, reading: Reading, edit: Edit) -> str:
    """The edit in words, tokens by their labels."""
    title = {part.name: part.title for part in reading.parts}.get(edit.part, "?")
    title = f"{title}, " if len(reading.parts) > 1 else ""
    layer = getattr(edit, "layer", None)
    where = f"{title}layer {layer}" if layer is not None else f"{title}every layer"
    where = where[0].upper() + where[1:]
    rows = reading.rows(edit.part) if title != "?, " else ()
    columns = reading.columns(edit.part) if title != "?, " else ()
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
        case ReplaceToken(position=position, token=token):
            read_as = reading.source if edit.part.startswith("encoder") else reading.target
            label = opened.tokenizer.token(token).label if token < _tokens(opened) else token
            return f"{title}{_at(read_as, position)} becomes “{label}”"
        case Patch(head=head, position=position, text=text):
            what = "the stream after it" if head is None else f"head {head}"
            return f"{where}, {what} at {_at(rows, position)} as in “{text[:60]}”"
    raise AssertionError(edit)


def _tokens(opened: Opened) -> int:
    return opened.tokenizer.vocab_size


def _at(tokens: Sequence[Token], place: int) -> str:
    return f"“{tokens[place].label}” ({place})" if place < len(tokens) else f"token {place}"
