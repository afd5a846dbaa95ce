"""The command `python -m explorer circuit`: measure a question and write the finding to a file."""

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from tqdm import tqdm

from explorer.analysis.ablation_and_patching import exact_writers
from explorer.analysis.circuit_faithfulness import sizes, smallest_in_words
from explorer.analysis.circuit_metrics import ANSWERS_READ, UNITS, metrics_of, why_no_gradient
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    attributions,
    contrast_of,
    mean_over_pairs,
    nested_circuits,
    pieces_of_writers,
    scores_of,
)
from explorer.analysis.circuits.finding import CircuitMeasurement, Finding, finding_of
from explorer.analysis.circuits.pair_table import pairs_of_csv
from explorer.analysis.circuits.pair_templates import TEMPLATES, make_pairs
from explorer.analysis.circuits.text_pairs import (
    PairError,
    Question,
    TextPair,
    question_of,
    why_no_circuits,
)
from explorer.catalog.opened_model import OpenModel
from explorer.commands.training_commands import read_bytes, write_out
from explorer.system.limits import PAIRS, TABLE_BYTES
from explorer.text.number_format import three

EXACT_EDGES, COUNT = 40, 5
NAMED = 5
"""Heads that the last lines name."""
SOURCES = "two texts (--clean and --corrupted), a table (--pairs) or a template (--template)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clean", metavar="TEXT", help="the text whose answer is explained")
    parser.add_argument("--corrupted", metavar="TEXT", help="another answer; best as many tokens")
    parser.add_argument("--answer", default="", metavar="TOKEN", help="by default the likeliest")
    parser.add_argument("--against", default="", metavar="TOKEN", help="by default the likeliest")
    columns = "a CSV table with the columns clean, corrupted, answer, against"
    parser.add_argument("--pairs", type=Path, metavar="FILE", help=columns)
    parser.add_argument("--template", metavar="NAME", help=", ".join(TEMPLATES).lower())
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help="pairs of a template")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of a template")
    parser.add_argument("--metric", metavar="NAME", help=", ".join(ANSWERS_READ).lower())
    parser.add_argument("--method", choices=[*METHODS], default=next(iter(METHODS)))
    exact = f"the number of strongest edges to patch too; {EXACT_EDGES} by default"
    parser.add_argument("--exact", type=int, default=EXACT_EDGES, metavar="K", help=exact)


def summary_lines(opened: OpenModel, args: argparse.Namespace) -> Iterator[str]:
    """Measure the question, write the finding, and yield the lines that summarize it.

    It costs as much as all views of the Circuits page together.
    """
    if why := why_no_circuits(opened.config):
        raise PairError(why)
    metric = _named("metric", args.metric, metrics_of(opened.config))
    pairs, remarks = _pairs(opened, args)
    yield from remarks
    question = question_of(opened, pairs, metric)
    yield from (question.pairs[0].notes if len(pairs) == 1 else ())
    if METHODS[args.method] == 1 and (why := why_no_gradient(question.metric)):
        raise PairError(why)
    if args.exact < 0:
        raise ValueError("--exact must be a whole number from 0 on.")
    finding = finding_of(opened, question, measure(opened, question, args.method, args.exact))
    write_out(args.out, finding.to_json())
    yield from _summary(finding)
    yield str(args.out)


def _pairs(opened: OpenModel, args: argparse.Namespace) -> tuple[list[TextPair], list[str]]:
    sources = [args.clean is not None or args.corrupted is not None, args.pairs, args.template]
    if sum(map(bool, sources)) != 1:
        raise ValueError(f"Give one of these: {SOURCES}.")
    if args.pairs:
        return [*pairs_of_csv(read_bytes(args.pairs, TABLE_BYTES.most)).values()], []
    if args.template:
        if not 1 <= args.count <= PAIRS.most:
            raise ValueError(f"--count must be from 1 to {PAIRS.most}.")
        template = _named("template", args.template, TEMPLATES)
        of_template = make_pairs(opened, template, args.count, args.seed)
        return [*of_template.pairs], [of_template.note] if of_template.note else []
    return [TextPair(args.clean or "", args.corrupted or "", args.answer, args.against)], []


def _named(what: str, typed: str | None, names: Iterable[str]) -> str:
    """The name that was typed, in any case or as a prefix; the first if nothing was typed."""
    names = [*names]
    if typed is None:
        return names[0]
    plain = typed.replace("-", " ").casefold()
    exact = [name for name in names if name.replace("-", " ").casefold() == plain]
    begun = [name for name in names if name.replace("-", " ").casefold().startswith(plain)]
    if len(matches := exact or begun) == 1:
        return matches[0]
    raise ValueError(
        f"There is no {what} called {typed[:40]!r} here: it is one of {', '.join(names).lower()}."
    )


def measure(opened: OpenModel, question: Question, method: str, count: int) -> CircuitMeasurement:
    """The whole measurement, with a progress bar for each part."""
    pairs, bar = question.pairs, partial(tqdm, unit="step")
    parts_of_pairs = attributions(opened, question, METHODS[method])
    scores = scores_of(opened, [*bar(parts_of_pairs, "attribution", len(pairs))])
    exact = [0.0] * len(scores.wiring.columns)
    pieces = (piece for pair in pairs for piece in exact_writers(contrast_of(opened, pair)))
    for some, lost in bar(pieces, "exact, parts", len(pairs) * pieces_of_writers(opened)):
        for column, value in zip(some, lost.tolist(), strict=True):
            exact[column] += value / len(pairs)
    if scores.edges is None:
        return CircuitMeasurement(method, scores, exact)
    strongest = scores.strongest(count)
    exact_edges = [0.0] * len(strongest)
    if strongest:
        parts = mean_over_pairs(opened, question, strongest)
        for at, part in bar(parts, "exact, edges", len(strongest) * len(pairs)):
            exact_edges[at] += part
    circuits = nested_circuits(opened, question, scores)
    points = [*bar(circuits.curve(), "circuits", len(sizes(len(scores.order))))]
    return CircuitMeasurement(method, scores, exact, exact_edges, points, circuits.smallest(points))


def _summary(finding: Finding) -> Iterator[str]:
    unit = f" {UNITS[finding.metric]}".rstrip()
    yield (
        f"{finding.metric}: {three(finding.clean.mean)}{unit} after the clean text, "
        f"{three(finding.corrupted.mean)}{unit} after the corrupted one"
        f"{f', means over {len(finding.pairs)} pairs' if len(finding.pairs) > 1 else ''}."
    )
    heads = sorted(finding.heads, key=lambda head: -abs(head.estimate))[:NAMED]
    named = ", ".join(f"{head.layer}.{head.head} ({three(head.estimate)})" for head in heads)
    yield f"Strongest heads by {finding.method}: {named}."
    if (r := finding.correlation) is not None:
        yield f"Pearson's r of estimate and exact value over the heads: {three(r)}."
    if finding.faithfulness:
        yield smallest_in_words(finding.minimum, finding.faithfulness)
