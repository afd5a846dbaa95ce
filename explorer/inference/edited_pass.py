"""The forward pass and the answer with the reader's interventions."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import Answer, written_answer
from explorer.inference.core_edits import NotApplicableError, check_applicable, core_edit
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.generation_limits import longest_answer
from explorer.inference.model_inputs import ids_of
from explorer.inference.results_cache import cached
from explorer.interventions.edits import (
    CutEdge,
    Intervention,
    Patch,
    ReplaceByProgram,
    ReplaceToken,
    Steer,
)
from explorer.text import Token
from explorer.text.token_labels import written
from models import interventions as core
from models.generation import generate
from models.interventions import AbsentIndexError, EditError
from models.trace import RecordingTap

MOST_TEXTS = 4
"""Every text that is patched from costs one more pass."""
MOST_STEERING_TEXTS = 16
"""Of all directions together."""
MOST_WEIGHTS = 64 * 1024 * 1024
"""The pass holds all weights of every layer in which an edge is cut."""
TOO_MANY_TEXTS = (
    f"At most {MOST_TEXTS} texts can be patched from: patch from one of them, or remove the "
    "patches from another."
)
TOO_MANY_PAIRS = (
    f"Directions can be made from at most {MOST_STEERING_TEXTS} texts in all: use fewer pairs, or "
    "remove another direction."
)
TOO_MANY_WEIGHTS = (
    "The text is too long to hold all weights of every layer with a cut edge or a replaced map: "
    "shorten it, or change fewer layers."
)


@dataclass(frozen=True, eq=False)
class EditedPass:
    """The pass with all interventions that apply, and why the others do not.

    `not_applicable` has the reasons by the index of the intervention; `core_edits` are the edits
    of the pass itself.
    """

    forward: ForwardPass
    applied: tuple[Intervention, ...] = ()
    not_applicable: Mapping[int, str] = field(default_factory=dict)
    core_edits: tuple[core.Edit, ...] = ()

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Distinguishes it from other passes of the same model."""
        return self.forward.text, self.forward.pair, self.applied


def run_edited(
    opened: OpenModel, forward: ForwardPass, edits: Sequence[Intervention]
) -> EditedPass:
    """The forward pass of the text with these interventions; run once and kept.

    It costs one more pass in time and memory, and one for each text that is patched from. For cut
    edges it also holds the weights of their layers, `MOST_WEIGHTS` in all.
    """
    if not edits:
        return EditedPass(forward)
    key = ("edited", *forward.key, tuple(edits))
    return cached(opened, key, lambda: _run(opened, forward, edits), lambda run: run.forward.bytes)


def why_not_applicable(
    opened: OpenModel, forward: ForwardPass, before: Sequence[Intervention], edit: Intervention
) -> str:
    """Why this intervention does not apply after those in `before`; empty if it does."""
    _, reasons, _ = _to_core(opened, forward, (*before, edit))
    return reasons.get(len(before), "")


def _run(opened: OpenModel, forward: ForwardPass, edits: Sequence[Intervention]) -> EditedPass:
    in_core, reasons, reads = _to_core(opened, forward, edits)
    applied = tuple(edit for index, edit in enumerate(edits) if index not in reasons)
    try:
        again = rerun(opened, forward, reads.source, reads.target, in_core)
    except EditError as error:  # each edit applies alone, but not all together
        return EditedPass(forward, not_applicable=dict.fromkeys(range(len(edits)), str(error)))
    return EditedPass(dataclasses.replace(again, edits=applied), applied, reasons, tuple(in_core))


def _with_token(opened: OpenModel, forward: ForwardPass, edit: ReplaceToken) -> ForwardPass:
    """The pass with another token, which is not run again."""
    source, target = list(forward.source), list(forward.target)
    row = source if edit.part.startswith("encoder") else target
    new, at = opened.tokenizer.token(edit.token), edit.position
    label, text = new.label, written(opened.tokenizer, new)
    row[at] = dataclasses.replace(row[at], id=new.id, label=label, special=new.special, text=text)
    return dataclasses.replace(forward, source=tuple(source), target=tuple(target))


def _to_core(
    opened: OpenModel, forward: ForwardPass, edits: Sequence[Intervention]
) -> tuple[list[core.Edit], dict[int, str], ForwardPass]:
    """The edits of the core in order, why others do not apply, and the pass with other tokens.

    An intervention that does not apply does not count towards the limits; but a text that cannot
    be encoded counts as a text. A token is replaced before the pass, not by an edit of the core.
    """
    in_core: list[core.Edit] = []
    reasons: dict[int, str] = {}
    texts: set[str] = set()
    steering: set[str] = set()
    weights: dict[tuple[str, int], int] = {}
    reads = forward
    for index, edit in sorted(enumerate(edits), key=lambda of: not isinstance(of[1], ReplaceToken)):
        try:
            check_applicable(opened, forward, edit)
            match edit:
                case Patch(text=text):
                    _check_room(len(texts | {text}), MOST_TEXTS, TOO_MANY_TEXTS)
                    texts.add(text)
                case Steer(texts=pairs):
                    _check_room(len(steering.union(pairs)), MOST_STEERING_TEXTS, TOO_MANY_PAIRS)
                    steering.update(pairs)
                case CutEdge(part=part, layer=layer) | ReplaceByProgram(part=part, layer=layer):
                    cells = len(forward.rows(part)) * len(forward.columns(part))
                    more = weights | {(part, layer): forward.part(part).heads * cells}
                    _check_room(sum(more.values()), MOST_WEIGHTS, TOO_MANY_WEIGHTS)
                    weights = more
            if isinstance(edit, ReplaceToken):
                reads = _with_token(opened, reads, edit)
            else:  # only programs read the tokens
                of = reads if isinstance(edit, ReplaceByProgram) else forward
                in_core.append(core_edit(opened, of, edit))
        except (NotApplicableError, EditError) as error:
            reasons[index] = str(error)
    return in_core, reasons, reads


def _check_room(count: int, most: int, refusal: str) -> None:
    if count > most:
        raise NotApplicableError(refusal)


def edited_answer(opened: OpenModel, edited: EditedPass) -> Answer:
    """The answer of an encoder-decoder with its interventions; generated once and kept."""
    forward = edited.forward
    if not edited.applied:
        return forward.answer
    return cached(
        opened,
        ("edited answer", forward.text, edited.applied),
        lambda: written_answer(opened, [forward.target[0], *generate_edited(opened, edited)]),
    )


def generate_edited(opened: OpenModel, edited: EditedPass) -> tuple[Token, ...]:
    """Greedy decoding without a KV cache: each token costs a decoder pass over all tokens so far.

    At every step an intervention applies if its positions exist already; a mean over positions
    is over the positions so far.
    """
    decoder = opened.model.decoder
    assert decoder is not None
    tokens = [
        core.ReplaceAt("decoder.embed", edit.position, vector * decoder.embedding_scale)
        for edit in edited.applied
        if isinstance(edit, ReplaceToken) and edit.part.startswith("decoder")
        for vector in decoder.embedding(torch.tensor([edit.token])).detach()
    ]
    steps = generate(
        opened.model,
        ids_of([edited.forward.source]),
        max_length=longest_answer(opened),
        greedy=True,
        use_cache=False,
        tap=RecordingTap((), [_DelayedEdit(edit) for edit in (*tokens, *edited.core_edits)]),
    )
    return tuple(opened.tokenizer.token(int(step.ids)) for step in steps)


@dataclass(frozen=True, eq=False)
class _DelayedEdit:
    """An edit of the core that waits until the answer has the positions that it names."""

    edit: core.Edit

    @property
    def site(self) -> str:
        return self.edit.site

    def __call__(self, value: Tensor) -> Tensor:
        try:
            return self.edit(value)
        except AbsentIndexError:
            return value
