"""The lines that ablate every head of a layer, and that cut the edges of a map."""

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
    script,
    segment_ids,
)
from models.interventions import Edit

KL = "from explorer.analysis.output_change import kl"


def ablation_lines(
    forward: ForwardPass,
    folder: Path,
    at: tuple[str, int],
    position: int,
    edits: Sequence[Edit],
    other: ForwardPass | None = None,
) -> str:
    """KL after each head of one layer alone is ablated, or patched from another pass."""
    here = f"{site(*at)}.head_out"
    lines = pass_lines(forward, folder, edits)
    edit, kind = f"AblateHeads({here!r}, (head,))", "AblateHeads"
    if other is not None:
        edit, kind = f"PatchHeads({here!r}, (head,), patched)", "PatchHeads"
        of_other = [*pass_lines(other, folder), f'patched = seen["{here}"][0]', ""]
        lines = [*of_other, *lines[len(model_lines(folder)) :]]
    output, again = _output_of(forward, position), _traced_again(forward, edits, edit)
    return script(
        [
            *lines,
            f"before = seen{output}",
            "after = [",
            f"    {again}{output}",
            f"    for head in range({forward.config.n_heads})",
            "]",
            "found = kl(before, torch.stack(after))",
            "print(found)  # nats, a number for each head of the layer",
        ],
        CORE,
        KL,
        _imported(edits, kind),
    )


def edge_cutting_lines(
    forward: ForwardPass,
    folder: Path,
    at: tuple[str, int, int | None],
    position: int,
    counts: Sequence[int],
    edits: Sequence[Edit],
) -> str:
    """KL after so many of the strongest edges are cut, of one head or (None) of the layer."""
    part, layer, head = at
    here = site(part, layer)
    row = "0" if head is None else f"0, {head}"
    output = _output_of(forward, position)
    again = _traced_again(forward, edits, f"KeepCells({f'{here}.weights'!r}, left)")
    return script(
        [
            *pass_lines(forward, folder, edits),
            f"before = seen{output}",
            f'weights = seen.weights("{here}")',
            f"order = weights[{row}].flatten().argsort(descending=True, stable=True)",
            "found = []",
            f"for count in {list(counts)}:",
            "    left = torch.ones_like(weights)",
            f"    left[{row}].view(-1)[order[:count]] = 0",
            f"    found.append(float(kl(before, {again}{output})))",
            "print(found)  # nats, after each of these counts",
        ],
        CORE,
        KL,
        _imported(edits, "KeepCells"),
    )


def _traced_again(forward: ForwardPass, edits: Sequence[Edit], last: str) -> str:
    """The call that runs the text again, with one edit more."""
    segments = ", segments=segments" if segment_ids(forward) else ""
    earlier = "*edits, " if any(map(is_short, edits)) else ""
    return f"trace(model, {', '.join(inputs_of(forward))}{segments}, edits=[{earlier}{last}])"


def _output_of(forward: ForwardPass, position: int) -> str:
    return f".output[0, {position}]" if has_words(forward.config) else ".output[0]"


def _imported(edits: Sequence[Edit], kind: str) -> str:
    names = {type(edit).__name__ for edit in edits if is_short(edit)} | {kind}
    return f"from models.interventions import {', '.join(sorted(names))}"
