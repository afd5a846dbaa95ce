"""The lines that switch off every head of a layer, and that cut the edges of a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.analysis.output_change import has_words
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import (
    CORE,
    inputs_of,
    is_short,
    model_lines,
    pass_lines,
    pasted,
    segments_of,
)
from models.interventions import Edit


def every_head(
    forward: ForwardPass,
    folder: Path,
    at: tuple[str, int],
    place: int,
    edits: Sequence[Edit],
    other: Sequence[ForwardPass] = (),
) -> str:
    """KL after each head of one layer alone is switched off, or gives what it gives elsewhere."""
    here = f"{site(*at)}.head_out"
    lines = pass_lines(forward, folder, edits)
    off, kind = f"AblateHeads({here!r}, (head,))", "AblateHeads"
    if other:
        off, kind = f"PatchHeads({here!r}, (head,), instead)", "PatchHeads"
        elsewhere = [*pass_lines(other[0], folder), f'instead = seen["{here}"][0]', ""]
        lines = [*elsewhere, *lines[len(model_lines(folder)) :]]
    return pasted(
        [
            *lines,
            f"before = seen.output{_at(forward, place)}",
            "after = [",
            f"    trace({_given(forward, edits, off)}).output{_at(forward, place)}",
            f"    for head in range({forward.config.n_heads})",
            "]",
            "found = kl(before, torch.stack(after))",
            "print(found)  # nats, a number for each head of the layer",
        ],
        CORE,
        "from explorer.analysis.output_change import kl",
        _interventions(edits, kind),
    )


def cuts(
    forward: ForwardPass,
    folder: Path,
    at: tuple[str, int, int | None],
    place: int,
    counts: Sequence[int],
    edits: Sequence[Edit],
) -> str:
    """KL after so many of the strongest edges are cut, of one head or of the whole layer."""
    part, layer, head = at
    here = site(part, layer)
    whose = "0" if head is None else f"0, {head}"
    cut = f"KeepCells({f'{here}.weights'!r}, left)"
    return pasted(
        [
            *pass_lines(forward, folder, edits),
            f"before = seen.output{_at(forward, place)}",
            f'weights = seen.weights("{here}")',
            f"order = weights[{whose}].flatten().argsort(descending=True, stable=True)",
            "found = []",
            f"for count in {list(counts)}:",
            "    left = torch.ones_like(weights)",
            f"    left[{whose}].view(-1)[order[:count]] = 0",
            f"    after = trace({_given(forward, edits, cut)}).output{_at(forward, place)}",
            "    found.append(float(kl(before, after)))",
            "print(found)  # nats, after each of these counts",
        ],
        CORE,
        "from explorer.analysis.output_change import kl",
        _interventions(edits, "KeepCells"),
    )


def _given(forward: ForwardPass, edits: Sequence[Edit], last: str) -> str:
    """What `trace` is given: the text, and one edit more."""
    segments = ", segments=segments" if segments_of(forward) else ""
    made = "*edits, " if any(map(is_short, edits)) else ""
    return f"model, {', '.join(inputs_of(forward))}{segments}, edits=[{made}{last}]"


def _at(forward: ForwardPass, place: int) -> str:
    return f"[0, {place}]" if has_words(forward.config) else "[0]"


def _interventions(edits: Sequence[Edit], kind: str) -> str:
    kinds = {type(edit).__name__ for edit in edits if is_short(edit)} | {kind}
    return f"from models.interventions import {', '.join(sorted(kinds))}"
