"""The answer that an encoder-decoder writes with the reader's edits, one token after another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.catalog.opened_model import Opened
from explorer.inference.answers import Answer, longest_answer, written_answer
from explorer.inference.edited_pass import Edited
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept, size_of
from explorer.interventions.core_edits import change
from explorer.interventions.edits import Edit, PresetMask, ReplaceToken
from explorer.text import Token
from models import interventions as core
from models.generation import allowed
from models.masking import keep_of
from models.trace import Recorder
from models.transformer import evaluating

LAST = slice(-1, None)


def answer(opened: Opened, passed: Edited) -> Answer:
    """What it writes now; made once and kept. As many passes of the decoder as tokens."""
    forward = passed.forward
    if not passed.made:
        return forward.answer
    return kept(
        opened,
        ("written anew", forward.text, passed.made),
        lambda: written_answer(opened, [forward.target[0], *written_anew(opened, passed)]),
        size_of,
    )


def written_anew(opened: Opened, passed: Edited) -> tuple[Token, ...]:
    """The likeliest token after what was written so far, until it ends.

    At every step an edit is made where its positions are written already; a mean over
    positions is one over those.
    """
    model, config = opened.model, opened.config
    source = ids_of([passed.forward.source])
    keep = keep_of(source, config.pad_id)
    encoder = [edit for edit in passed.in_core if edit.site.startswith("encoder")]
    with evaluating(model):
        memory = model.encode(source, keep, Recorder((), encoder))
    ids = [passed.forward.target[0].id]
    ends = {config.eos_id, *config.more_eos_ids}
    for _ in range(longest_answer(opened)):
        read = _replaced(ids, passed.made)
        tap = Recorder((), list(_so_far(opened, passed, len(ids))))
        with evaluating(model):
            logits = model.decode(
                read, memory, keep, torch.ones_like(read).bool(), read_at=LAST, tap=tap
            )
        best = allowed(logits[:, -1], config, first=len(ids) == 1).argmax(-1)
        ids.append(int(best))
        if ids[-1] in ends:
            break
    return tuple(map(opened.tokenizer.token, ids[1:]))


def _replaced(ids: Sequence[int], made: Sequence[Edit]) -> Tensor:
    """What the decoder reads, (1, tokens): what it wrote, but for the tokens that are replaced."""
    read = list(ids)
    replacements = [edit for edit in made if isinstance(edit, ReplaceToken)]
    for edit in replacements:
        if edit.part.startswith("decoder") and edit.position < len(read):
            read[edit.position] = edit.token
    return torch.tensor([read])


def _so_far(opened: Opened, passed: Edited, count: int) -> Iterator[core.Edit]:
    """The edits of the decoder that can be made in its first `count` positions."""
    in_pass = (edit for edit in passed.made if not isinstance(edit, ReplaceToken))
    for edit, in_core in zip(in_pass, passed.in_core, strict=True):
        if not edit.part.startswith("decoder"):
            continue
        places = [getattr(edit, name, None) for name in ("query", "position")]
        if edit.part == "decoder.self_attn":
            places.append(getattr(edit, "key", None))
        if isinstance(edit, PresetMask):
            yield _mask_of(opened, passed.forward, edit, count)
        elif all(place is None or place < count for place in places):
            yield in_core


def _mask_of(opened: Opened, forward: ForwardPass, edit: PresetMask, count: int) -> core.Edit:
    """A preset as the first rows of the whole answer have it, where that is long enough."""
    longer = [forward.written[-1]] * max(0, count - len(forward.target))
    whole = dataclasses.replace(
        forward, target=(*forward.target, *longer), written=(*forward.written, *longer)
    )
    mask = change(opened, whole, edit)
    assert isinstance(mask, core.Replace)
    keys = count if edit.part == "decoder.self_attn" else len(forward.source)
    return core.Replace(mask.site, mask.value[..., :count, :keys])
