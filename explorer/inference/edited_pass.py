"""The text passed once more with the reader's edits, and which of them do not fit it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass, rerun
from explorer.inference.results_cache import kept
from explorer.interventions.core_edits import Misfit, change, check
from explorer.interventions.edits import CutEdge, Edit, Patch, ReplaceToken
from explorer.text import Token
from models import interventions as core
from models.interventions import EditError

MOST_TEXTS = 4
"""Every text that is patched from is one more pass."""
MOST_WEIGHTS = 64 * 1024 * 1024
"""An edge is cut among all weights of its layer; the pass holds those of every such layer."""


@dataclass(frozen=True, eq=False)
class Edited:
    """What became of a reading: the pass with all edits that fit, and why the others do not.

    `set_aside` has them by their place among the edits; `in_core` is what was made in the
    pass itself.
    """

    forward: ForwardPass
    made: tuple[Edit, ...] = ()
    set_aside: Mapping[int, str] = field(default_factory=dict)
    in_core: tuple[core.Edit, ...] = ()


def edited(opened: Opened, forward: ForwardPass, edits: Sequence[Edit]) -> Edited:
    """The text passed once more with these edits; made once and kept.

    One more pass, in time and memory like the first, and one for each text that is patched
    from. Cut edges hold their layers' weights, `MOST_WEIGHTS` in all.
    """
    if not edits:
        return Edited(forward)
    key = ("edited", forward.text, forward.pair, tuple(edits))
    return kept(
        opened, key, lambda: _edited(opened, forward, edits), lambda made: made.forward.bytes
    )


def misfit(opened: Opened, forward: ForwardPass, before: Sequence[Edit], edit: Edit) -> str:
    """Why this edit could not be made after those before, in a sentence; nothing if it can.

    What of those is set aside takes nothing.
    """
    limits = _Limits()
    for each in before:
        with suppress(Misfit):
            limits.count(opened, forward, each)
    try:
        _as_core(opened, forward, edit, limits)
    except (Misfit, EditError) as error:
        return str(error)
    return ""


def _edited(opened: Opened, forward: ForwardPass, edits: Sequence[Edit]) -> Edited:
    source, target = list(forward.source), list(forward.target)
    made: list[Edit] = []
    set_aside: dict[int, str] = {}
    in_core: list[core.Edit] = []
    limits = _Limits()
    for place, edit in enumerate(edits):
        try:
            in_core += _as_core(opened, forward, edit, limits)
        except (Misfit, EditError) as error:
            set_aside[place] = str(error)
            continue
        made.append(edit)
        if isinstance(edit, ReplaceToken):
            row = source if edit.part.startswith("encoder") else target
            row[edit.position] = _token(opened, row[edit.position], edit.token)
    try:
        passed = rerun(opened, forward, tuple(source), tuple(target), in_core)
    except EditError as error:  # they fit one by one and not together
        return Edited(forward, set_aside=dict.fromkeys(range(len(edits)), str(error)))
    return Edited(passed, tuple(made), set_aside, tuple(in_core))


def _as_core(
    opened: Opened, forward: ForwardPass, edit: Edit, limits: _Limits
) -> tuple[core.Edit, ...]:
    """The edit as the core makes it; a token is replaced before the pass. Misfit if it cannot."""
    limits.count(opened, forward, edit)
    return () if isinstance(edit, ReplaceToken) else (change(opened, forward, edit),)


class _Limits:
    """What all edits of a pass may take together."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.held: dict[tuple[str, int], int] = {}

    def count(self, opened: Opened, forward: ForwardPass, edit: Edit) -> None:
        """One more. Misfit where it is too much or has no place here, and it is not counted.

        A text that cannot be read counts too.
        """
        check(opened, forward, edit)
        if isinstance(edit, Patch):
            if len(self.texts | {edit.text}) > MOST_TEXTS:
                raise Misfit(
                    f"At most {MOST_TEXTS} texts are patched from: patch from one of them, or "
                    "remove the patches from another."
                )
            self.texts.add(edit.text)
        if isinstance(edit, CutEdge):
            rows, columns = len(forward.rows(edit.part)), len(forward.columns(edit.part))
            more = {(edit.part, edit.layer): forward.part(edit.part).heads * rows * columns}
            if sum((self.held | more).values()) > MOST_WEIGHTS:
                raise Misfit(
                    "The text is too long to hold all weights of every layer with a cut edge: "
                    "shorten it, or cut edges in fewer layers."
                )
            self.held |= more


def _token(opened: Opened, before: Token, number: int) -> Token:
    """The new token in the place of the old."""
    token = opened.tokenizer.token(number)
    place = {name: getattr(before, name) for name in ("start", "end", "segment", "second")}
    return dataclasses.replace(token, **place)
