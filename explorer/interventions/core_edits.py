"""Edits as the core makes them in a pass, and why one does not fit a model and a text."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass, ForwardPassError, rerun, run_text
from explorer.inference.results_cache import kept
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
from models import interventions as core
from models.masking import causal_mask
from models.transformer import EVERYWHERE


class Misfit(ValueError):
    """An edit does not fit this model and text; the message goes on after the edit's name."""


def check(opened: Opened, forward: ForwardPass, edit: Edit) -> None:
    """Misfit says in a sentence what this model or this text does not have."""
    parts = {part.name: part for part in forward.parts}
    if edit.part not in parts:
        raise Misfit("This model has no such attention.")
    part = parts[edit.part]
    rows, columns = len(forward.rows(edit.part)), len(forward.columns(edit.part))
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
        if crosses and edit.preset not in ("none", "padding"):
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
        if edit.word and edit.word != (here := token_label(opened, edit.token)):
            raise Misfit(
                f"“{edit.word}” was chosen for another model; its number here is “{here}”."
            )
    if isinstance(edit, Patch) and crosses and edit.head is None:
        raise Misfit("The stream after a layer is patched in the decoder itself.")


def token_label(opened: Opened, token: int) -> str:
    """What a number of the vocabulary stands for; the number itself where nothing is known."""
    known = token < opened.tokenizer.vocab_size
    return opened.tokenizer.token(token).label if known else str(token)


def change(opened: Opened, forward: ForwardPass, edit: Edit) -> core.Edit:
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
            return core.Replace(f"{at}.mask", preset_mask(forward, edit)[None, None])
        case MaskCell(query=query, key=key, allowed=allowed):
            return core.SetCell(f"{at}.mask", query, key, allowed)
        case HideKey(key=key):
            return core.ForbidKey(f"{at}.mask", key)
        case Patch():
            return _patch(opened, forward, edit)
    raise Misfit("It is not made in the pass.")


def preset_mask(forward: ForwardPass, edit: PresetMask) -> Tensor:
    """Which key (column) each query (row) may look at. Sizes are tokens.

    A window, a block or the padding of a decoder stays causal; a prefix is seen by all (as
    in Raffel et al. 2020, section 3.2.1) and causal behind it. Padding is the last tokens,
    as if a batch had been filled up with them.
    """
    queries, keys = len(forward.rows(edit.part)), len(forward.columns(edit.part))
    everything = torch.ones(queries, keys, dtype=torch.bool)
    if edit.preset == "none":
        return everything
    causal = causal_mask(queries, keys)[0, 0]
    if edit.preset == "causal":
        return causal
    here, there = torch.arange(queries)[:, None], torch.arange(keys)[None]
    if edit.preset == "prefix":
        return causal | (there < edit.n)
    seen = {
        "padding": there < keys - edit.n,
        "window": (here - there).abs() < edit.n,
        "blocks": here // edit.n == there // edit.n,
    }[edit.preset].expand(queries, keys)
    return seen & causal if edit.part == "decoder.self_attn" else seen


def _patch(opened: Opened, forward: ForwardPass, edit: Patch) -> core.Edit:
    other = same_length(opened, forward, edit.part, edit.text)
    at = site(edit.part, edit.layer)
    if edit.head is None:
        stream = f"{at.rsplit('.', 1)[0]}.resid_post"
        return core.ReplaceAt(stream, edit.position, other.trace[stream][0, edit.position])
    value = head_out(other, edit.part, edit.layer, edit.head, edit.position)
    return core.ReplaceAt(f"{at}.head_out", edit.position, value, edit.head)


def head_out(
    forward: ForwardPass, part: str, layer: int, head: int, place: int | slice = EVERYWHERE
) -> Tensor:
    """What a head gives, weights · V, (tokens, d_head), or at one position (d_head,)."""
    values = forward.trace[f"{site(part, layer)}.v"][forward.row]
    values = values[head * len(values) // forward.config.n_heads]
    return forward.weights(part, layer, head)[place] @ values


def same_length(opened: Opened, forward: ForwardPass, part: str, text: str) -> ForwardPass:
    """The pass of a text to patch from; Misfit where its positions are not those of ours."""
    other = _other(opened, forward, text)
    ours, theirs = len(forward.rows(part)), len(other.rows(part))
    if ours != theirs:
        raise Misfit(
            f"That text is {theirs} tokens and yours {ours}: only texts of the same length have "
            "the same positions."
        )
    return other


def _other(opened: Opened, forward: ForwardPass, text: str) -> ForwardPass:
    """The text patched from; a decoder that writes reads our own answer there too."""
    try:
        other = run_text(opened, text)
    except ForwardPassError as error:
        raise Misfit(str(error)) from error
    if opened.config.kind != "encoder-decoder":
        return other
    same = dataclasses.replace(other, written=forward.written)
    return kept(  # once for all patches from this text
        opened,
        ("patched from", text, forward.text),
        lambda: rerun(opened, same, other.source, forward.target, ()),
        lambda made: made.bytes,
    )
