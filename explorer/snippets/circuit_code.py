"""The lines that score every part and edge of a question, and measure circuits of every size."""

from __future__ import annotations

from pathlib import Path

from explorer.analysis.circuits.measure import METHODS
from explorer.analysis.circuits.text_pairs import Question
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import OPENED, opened_lines, script

IMPORTS = (*OPENED, "from explorer.analysis.circuits.text_pairs import TextPair, question_of")


def parts_lines(
    forward: ForwardPass, folder: Path, question: Question, method: str, *, has_edges: bool
) -> str:
    """Estimate and exact value of every part. `forward` is the pass of the first clean text."""
    lines = [
        *_scored(forward, folder, question, method, has_edges=has_edges),
        "exact = torch.zeros_like(scores.writers)",
        "for contrast in contrasts:",
        "    for columns, lost in exact_writers(contrast):",
        "        exact[columns] += lost / len(contrasts)",
        "for place, about, value in zip(scores.wiring.columns, scores.writers, exact):",
        "    print(place.kind, place.layer, place.head, float(about), float(value))",
    ]
    score = "attribute" if has_edges else "attribute_writers"
    return script(
        lines,
        *IMPORTS,
        f"from explorer.analysis.attribution_patching import {score}",
        "from explorer.analysis.circuits.measure import contrast_of, exact_writers, scores_of",
    )


def circuit_lines(
    forward: ForwardPass, folder: Path, question: Question, method: str, count: int
) -> str:
    """The strongest edges with their exact values, and the curve of circuits of every size."""
    lines = [
        *_scored(forward, folder, question, method, has_edges=True),
        f"strongest = scores.strongest({count})",
        "exact = torch.zeros(len(strongest))",
        "for at, lost in mean_over_pairs(opened, question, strongest):",
        "    exact[at] += lost",
        "for place, value in zip(strongest, exact):",
        "    print(scores.edge(*place).title, float(scores.edges[place]), float(value))",
        "passes, clean = corrupted_passes(opened, question), sum(scores.clean) / len(scores.clean)",
        "points = list(circuit_curve(passes, clean, scores.order))",
        "print(*points, sep='\\n')  # a circuit of each size",
        "print(smallest_circuit(passes, clean, scores.order, points))  # edges for 90 %",
    ]
    return script(
        lines,
        *IMPORTS,
        "from explorer.analysis.attribution_patching import attribute",
        "from explorer.analysis.circuit_curves import circuit_curve, smallest_circuit",
        "from explorer.analysis.circuits.measure import contrast_of, corrupted_passes",
        "from explorer.analysis.circuits.measure import mean_over_pairs, scores_of",
    )


def over_training_lines(
    forward: ForwardPass, folder: Path, question: Question, method: str, count: int
) -> str:
    """The strongest edges with the weights of every snapshot of the run of this checkpoint."""
    lines = [
        *_asked(forward, folder, question),
        "snapshots = Run(folder.parent).snapshots()",
        "models = ((step, open_folder(path)) for step, path in snapshots)",
        f"for each in over_training(question, models, {METHODS[method]}):  # {method}",
        "    scores = each.scores",
        "    print(each.step, scores.difference)",
        f"    for place in scores.strongest({count}):",
        "        print(scores.edge(*place).title, float(scores.edges[place]))",
    ]
    return script(
        lines,
        *IMPORTS,
        "from explorer.analysis.circuits.over_training import over_training",
        "from explorer.runs.open_run import open_folder",
        "from explorer.runs.run import Run",
    )


def _scored(
    forward: ForwardPass, folder: Path, question: Question, method: str, *, has_edges: bool
) -> list[str]:
    score = "attribute" if has_edges else "attribute_writers"
    return [
        *_asked(forward, folder, question),
        "contrasts = [contrast_of(opened, pair) for pair in question.pairs]",
        f"found = [{score}(each, steps={METHODS[method]}) for each in contrasts]  # {method}",
        "scores = scores_of(opened, found)",
    ]


def _asked(forward: ForwardPass, folder: Path, question: Question) -> list[str]:
    pairs = [f"    {pair.texts!r}," for pair in question.pairs]
    return [
        *opened_lines(forward, folder),
        "pairs = [",
        *pairs,
        "]",
        f"question = question_of(opened, pairs, {question.metric!r})",
    ]
