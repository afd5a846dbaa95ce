"""The command `python -m explorer programs`: describe the heads of a model by small programs."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from explorer.analysis import head_programs
from explorer.analysis.head_programs import DESCRIBED, LONGEST
from explorer.catalog.opened_model import OpenModel
from explorer.charts.vega_lite import finite
from explorer.commands.training_commands import read_bytes, write_out
from explorer.system.limits import TABLE_BYTES
from explorer.text.checked_text import decoded, lines_in
from explorer.text.number_format import signed, three

BEST = 5
"""Heads that the last lines describe."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lines = (
        f"a text; its first {head_programs.MOST_LINES} lines are read, and {LONGEST} tokens of each"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help=lines)
    own = "your own, such as 'key is capital and before query'; repeatable"
    parser.add_argument("--program", action="append", default=[], metavar="TEXT", help=own)


def summary_lines(opened: OpenModel, args: argparse.Namespace) -> Iterator[str]:
    """Measure all heads and the curve, write both, and yield the lines that summarize them.

    A number that does not exist is null in the file.
    """
    texts = lines_in(decoded(read_bytes(args.data, TABLE_BYTES.most)))
    lines, has_loss = head_programs.read_lines(opened, texts), head_programs.has_loss(opened)
    read = f"{len(lines.tokens)} of {len(texts)} lines are read, {lines.fitted} of them to fit"
    yield f"{read}{f'; {lines.cut} are cut to {LONGEST} tokens' if lines.cut else ''}."
    with tqdm(total=2, desc="programs, then heads replaced", unit="part") as bar:

        def report(share: float) -> None:
            bar.update(share - bar.n)

        heads, curve = head_programs.measure_programs(opened, lines, args.program, report), {}
        if has_loss:
            both = lines, heads
            curve = head_programs.replacement_curve(opened, *both, lambda share: report(1 + share))
    rows = [
        {"layer": of.layer, "head": of.head, "mixture": of.mixture}
        | {"iou": finite(of.overlap), "iou_spread": finite(of.spread)}
        for of in heads
    ]
    points = [
        {"heads": count, "loss": finite(loss), "loss_random": finite(loss_random)}
        for count, (loss, loss_random) in curve.items()
    ]
    written = {"heads": rows, "curve": points, "loss": points[0]["loss"] if points else None}
    write_out(args.out, json.dumps(written, indent=1))
    described = head_programs.n_described(heads)
    for of in head_programs.ranked(heads)[:BEST]:
        yield f"Head {of.layer}.{of.head}: {of.in_words}."
    yield f"Heads with an overlap of {DESCRIBED} or more: {described} of {len(heads)}."
    for count, (loss, loss_random) in curve.items():
        change = f"{three(loss)} ({signed(loss - curve[0][0])})"
        yield f"Heads replaced: {count}, loss {change}; random: {three(loss_random)}."
    yield str(args.out) if curve else f"{head_programs.NO_LOSS} {args.out}"
