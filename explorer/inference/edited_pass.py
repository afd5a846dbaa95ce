"""The forward pass with the reader's interventions, and which of them do not apply."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from explorer.catalog.entries import Opened
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.results_cache import kept
from explorer.interventions.edits import CutEdge, Intervention, Patch, ReplaceToken
from explorer.interventions.to_core import NotApplicableError, check_applicable, core_edit
from explorer.text import Token
from models import interventions as core
from models.interventions import EditError

MOST_TEXTS = 4
"""Every text that is patched from is one more pass."""
MOST_WEIGHTS = 64 * 1024 * 1024
"""An edge is cut among all weights of its layer; the pass holds those of every such layer."""


@dataclass(frozen=True, eq=False)
class EditedPass:
    """The pass with all interventions that apply, and why the others do not.

    `not_applicable` has the reasons by index among the interventions; `core_edits` is what was
    applied in the pass itself.
    """

    forward: ForwardPass
    applied: tuple[Intervention, ...] = ()
    not_applicable: Mapping[int, str] = field(default_factory=dict)
    core_edits: tuple[core.Edit, ...] = ()


def run_edited(opened: Opened, forward: ForwardPass, edits: Sequence[Intervention]) -> EditedPass:
    """The text once more with these interventions; run once and kept.

    One more pass, in time and memory like the first, and one for each text that is patched
    from. Cut edges hold their layers' weights, `MOST_WEIGHTS` in all.
    """
    if not edits:
        return EditedPass(forward)
    key = ("edited", forward.text, forward.pair, tuple(edits))
    return kept(opened, key, lambda: _run(opened, forward, edits), lambda made: made.forward.bytes)


def why_not_applicable(
    opened: Opened, forward: ForwardPass, before: Sequence[Intervention], edit: Intervention
) -> str:
    """Why this intervention does not apply after those before, in a sentence; empty if it does.

    Those before that do not apply count for nothing.
    """
    limits = _Limits()
    for each in before:
        with suppress(NotApplicableError):
            limits.count(opened, forward, each)
    try:
        _to_core(opened, forward, edit, limits)
    except (NotApplicableError, EditError) as error:
        return str(error)
    return ""


def _run(opened: Opened, forward: ForwardPass, edits: Sequence[Intervention]) -> EditedPass:
    source, target = list(forward.source), list(forward.target)
    applied: list[Intervention] = []
    not_applicable: dict[int, str] = {}
    core_edits: list[core.Edit] = []
    limits = _Limits()
    for index, edit in enumerate(edits):
        try:
            core_edits += _to_core(opened, forward, edit, limits)
        except (NotApplicableError, EditError) as error:
            not_applicable[index] = str(error)
            continue
        applied.append(edit)
        if isinstance(edit, ReplaceToken):
            row = source if edit.part.startswith("encoder") else target
            row[edit.position] = _replacement(opened, row[edit.position], edit.token)
    try:
        again = rerun(opened, forward, tuple(source), tuple(target), core_edits)
    except EditError as error:  # each applies alone, but not all together
        return EditedPass(forward, not_applicable=dict.fromkeys(range(len(edits)), str(error)))
    return EditedPass(again, tuple(applied), not_applicable, tuple(core_edits))


def _to_core(
    opened: Opened, forward: ForwardPass, edit: Intervention, limits: _Limits
) -> tuple[core.Edit, ...]:
    """The edit of the core; none for a token, which is replaced before the pass."""
    limits.count(opened, forward, edit)
    return () if isinstance(edit, ReplaceToken) else (core_edit(opened, forward, edit),)


class _Limits:
    """What all interventions of a pass may take together."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.weights: dict[tuple[str, int], int] = {}

    def count(self, opened: Opened, forward: ForwardPass, edit: Intervention) -> None:
        """One more. NotApplicableError where it does not apply or is too much; not counted then.

        A text that cannot be encoded counts too.
        """
        check_applicable(opened, forward, edit)
        if isinstance(edit, Patch):
            if len(self.texts | {edit.text}) > MOST_TEXTS:
                raise NotApplicableError(
                    f"At most {MOST_TEXTS} texts can be patched from: patch from one of them, or "
                    "remove the patches from another."
                )
            self.texts.add(edit.text)
        if isinstance(edit, CutEdge):
            rows, columns = len(forward.rows(edit.part)), len(forward.columns(edit.part))
            more = {(edit.part, edit.layer): forward.part(edit.part).heads * rows * columns}
            if sum((self.weights | more).values()) > MOST_WEIGHTS:
                raise NotApplicableError(
                    "The text is too long to hold all weights of every layer with a cut edge: "
                    "shorten it, or cut edges in fewer layers."
                )
            self.weights |= more


def _replacement(opened: Opened, before: Token, token_id: int) -> Token:
    """The new token, where the old one was."""
    token = opened.tokenizer.token(token_id)
    place = {name: getattr(before, name) for name in ("start", "end", "segment", "second")}
    return dataclasses.replace(token, **place)
