"""The answer that an encoder-decoder generates with the reader's interventions."""

import dataclasses
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from explorer.catalog.open_model import OpenModel
from explorer.inference.answers import Answer, longest_answer, written_answer
from explorer.inference.core_edits import core_edit
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import kept, size_of
from explorer.interventions.edits import Intervention, PresetMask, ReplaceToken
from explorer.text import Token
from models import interventions as core
from models.masking import keep_of
from models.sampling import allowed
from models.trace import RecordingTap
from models.transformer import evaluating

LAST = slice(-1, None)


def edited_answer(opened: OpenModel, edited: EditedPass) -> Answer:
    """The answer with its interventions; made once and kept. A decoder pass for every token."""
    forward = edited.forward
    if not edited.applied:
        return forward.answer
    return kept(
        opened,
        ("edited answer", forward.text, edited.applied),
        lambda: written_answer(opened, [forward.target[0], *generate_edited(opened, edited)]),
        size_of,
    )


def generate_edited(opened: OpenModel, edited: EditedPass) -> tuple[Token, ...]:
    """Greedy decoding: the likeliest token after those so far, until an end token.

    At every step an intervention applies if its positions exist already; a mean over
    positions is one over those.
    """
    model, config = opened.model, opened.config
    source = ids_of([edited.forward.source])
    keep = keep_of(source, config.pad_id)
    encoder = [edit for edit in edited.core_edits if edit.site.startswith("encoder")]
    with evaluating(model):
        memory = model.encode(source, keep, RecordingTap((), encoder))
    ids = [edited.forward.target[0].id]
    ends = config.generation.eos_ids
    for _ in range(longest_answer(opened)):
        read = _with_replacements(ids, edited.applied)
        tap = RecordingTap((), list(_applicable(opened, edited, len(ids))))
        with evaluating(model):
            logits = model.decode(
                read, memory, keep, torch.ones_like(read).bool(), read_at=LAST, tap=tap
            )
        best = allowed(logits[:, -1], config, first=len(ids) == 1).argmax(-1)
        ids.append(int(best))
        if ids[-1] in ends:
            break
    return tuple(map(opened.tokenizer.token, ids[1:]))


def _with_replacements(ids: Sequence[int], applied: Sequence[Intervention]) -> Tensor:
    """What the decoder reads, (1, tokens): the tokens so far, with those that are replaced."""
    read = list(ids)
    for edit in applied:
        is_read = edit.part.startswith("decoder")
        if isinstance(edit, ReplaceToken) and is_read and edit.position < len(read):
            read[edit.position] = edit.token
    return torch.tensor([read])


def _applicable(opened: OpenModel, edited: EditedPass, count: int) -> Iterator[core.Edit]:
    """The edits of the decoder that apply to its first `count` positions."""
    in_pass = (edit for edit in edited.applied if not isinstance(edit, ReplaceToken))
    for edit, in_core in zip(in_pass, edited.core_edits, strict=True):
        if not edit.part.startswith("decoder"):
            continue
        positions = [getattr(edit, name, None) for name in ("query", "position")]
        if edit.part == "decoder.self_attn":
            positions.append(getattr(edit, "key", None))
        if isinstance(edit, PresetMask):
            yield _first_rows(opened, edited.forward, edit, count)
        elif all(position is None or position < count for position in positions):
            yield in_core


def _first_rows(opened: OpenModel, forward: ForwardPass, edit: PresetMask, count: int) -> core.Edit:
    """The first `count` rows of a preset mask over the whole answer, lengthened where needed."""
    longer = [forward.written[-1]] * max(0, count - len(forward.target))
    whole = dataclasses.replace(
        forward, target=(*forward.target, *longer), written=(*forward.written, *longer)
    )
    mask = core_edit(opened, whole, edit)
    assert isinstance(mask, core.Replace)
    keys = count if edit.part == "decoder.self_attn" else len(forward.source)
    return core.Replace(mask.site, mask.value[..., :count, :keys])
