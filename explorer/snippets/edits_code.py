"""The lines that ablate every head of a layer, and that cut the edges of a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.analysis.output_change import has_words
from explorer.catalog.attention_parts import site
from explorer.inference.edited_pass import EditedPass
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.edits import Intervention
from explorer.snippets.pass_code import (
    CORE,
    OPENED,
    inputs_of,
    is_short,
    model_lines,
    opened_lines,
    pass_lines,
    script,
    segment_ids,
)
from models.interventions import Edit

KL = "from explorer.analysis.output_change import kl"


def before_after_lines(
    before: EditedPass,
    after: EditedPass,
    folder: Path,
    at: tuple[str, int, int],
    position: int,
    tracked: int | None,
) -> str:
    """Both maps of a head and their difference; the output before and after, and its change.

    `tracked` is the token or class whose logit is shown; None without an output head.
    """
    forward, (part, layer, head) = before.forward, at
    config = forward.config
    lines = [
        *opened_lines(forward, folder),
        f"before = {_edited(before)}",
        f"after = {_edited(after)}",
        "passes = before.forward, after.forward",
        f"first, second = (each.weights({part!r}, {layer}, {head}) for each in passes)",
        "weights = second - first",
        "print(weights)  # a row per query, a column per key",
        "",
    ]
    imports = [
        *OPENED,
        "from explorer.inference.edited_pass import run_edited",
        *_intervention_kinds((*before.applied, *after.applied)),
    ]
    if tracked is None:
        return script(
            [
                *lines,
                "old, new = (last_stream(each.trace)[0] for each in passes)",
                "moved, size = (new - old).norm(), old.norm()",
                "print(moved, moved / size)",
            ],
            *imports,
            "from explorer.analysis.output_change import last_stream",
        )
    lines += [
        f"old, new = (logits_at(each.trace, {position}) for each in passes)",
        "likely = likeliest(old, new)",
        "probabilities = torch.stack([old, new]).double().softmax(-1)[:, likely]",
        "print(likely, probabilities)  # a row before, a row after",
        "divergence = kl(old, new)",
        "print(divergence)  # nats",
        f"was, now = old[{tracked}], new[{tracked}]",
        "print(was, now, now - was)  # the tracked logit",
    ]
    changes = "kl, likeliest, logits_at"
    if has_words(config):
        lines += [
            "ids = [predicted_ids(each) for each in passes]",
            "text = over_text(*(each.trace for each in passes), ids)",
            "print(text.kl.mean(), text.kl.max(), int(text.kl.argmax()))  # nats; which position",
            "print(text.loss)  # nats per token, before and after; None if none is predicted",
        ]
        changes += ", over_text"
        imports.append("from explorer.inference.output_tokens import predicted_ids")
    if config.kind == "encoder-decoder":
        lines += [
            "answers = [edited_answer(opened, each).text for each in (before, after)]",
            "print(answers)",
        ]
        imports.append("from explorer.inference.edited_generation import edited_answer")
    return script(lines, *imports, f"from explorer.analysis.output_change import {changes}")


def _edited(edited: EditedPass) -> str:
    if not edited.applied:
        return "run_edited(opened, forward, [])"
    return (
        "\n    ".join(["run_edited(opened, forward, [", *(f"{edit!r}," for edit in edited.applied)])
        + "\n])"
    )


def _intervention_kinds(edits: Sequence[Intervention]) -> list[str]:
    kinds = ", ".join(sorted({type(edit).__name__ for edit in edits}))
    return [f"from explorer.interventions.edits import {kinds}"] if kinds else []


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
        *_imported(edits, kind),
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
        *_imported(edits, "KeepCells"),
    )


def _traced_again(forward: ForwardPass, edits: Sequence[Edit], last: str) -> str:
    """The call that runs the text again, with one edit more."""
    segments = ", segments=segments" if segment_ids(forward) else ""
    earlier = "*edits, " if any(map(is_short, edits)) else ""
    return f"trace(model, {', '.join(inputs_of(forward))}{segments}, edits=[{earlier}{last}])"


def _output_of(forward: ForwardPass, position: int) -> str:
    return f".output[0, {position}]" if has_words(forward.config) else ".output[0]"


def _imported(edits: Sequence[Edit], kind: str) -> list[str]:
    names = sorted({type(edit).__name__ for edit in edits if is_short(edit)})
    core = [f"from models.interventions import {', '.join(names)}"] if names else []
    return [*core, f"from explorer.analysis.batch_edits import {kind}"]
