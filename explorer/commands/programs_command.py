"""The command `python -m explorer programs`: describe the heads of a model by small programs."""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from explorer.analysis import head_programs
from explorer.analysis.head_programs import LONGEST, HeadPrograms, ReplacedHeads
from explorer.catalog.opened_model import OpenModel
from explorer.commands.training_commands import read_bytes
from explorer.system.limits import TABLE_BYTES
from explorer.text.checked_text import decoded, lines_in
from explorer.text.number_format import signed, three


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    lines = (
        f"a text; its first {head_programs.MOST_LINES} lines are read, and {LONGEST} tokens of each"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help=lines)
    own = "your own, such as 'key is capital and before query'; repeatable"
    parser.add_argument("--program", action="append", default=[], metavar="TEXT", help=own)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")


def describe_heads(opened: OpenModel, args: argparse.Namespace) -> Iterator[str]:
    """Measure all heads and the curve, write both, and yield the lines that summarize them."""
    texts = lines_in(decoded(read_bytes(args.data, TABLE_BYTES.most)))
    lines = head_programs.read_lines(opened, texts)
    yield (
        f"{len(lines.rows)} of {len(texts)} lines are read, {lines.fitted} of them to fit; of "
        f"{lines.cut} the first {LONGEST} tokens."
    )
    curve: list[ReplacedHeads] = []
    with tqdm(total=2, desc="programs, then heads replaced", unit="part") as bar:
        heads = head_programs.measure_programs(
            opened, lines, args.program, lambda share: bar.update(share - bar.n) and None
        )
        if head_programs.has_loss(opened):
            curve = head_programs.replacement_curve(
                opened, lines, heads, lambda share: bar.update(1 + share - bar.n) and None
            )
    try:
        args.out.write_text(to_json(heads, curve), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{args.out} cannot be written: {error.strerror}.") from error
    count, least = head_programs.n_described(heads), head_programs.DESCRIBED
    yield f"Heads with an overlap of {least} or more: {count} of {len(heads)}."
    for point in curve:
        change = f"{three(point.loss)} ({signed(point.loss - curve[0].loss)})"
        yield f"Heads replaced: {point.heads}, loss {change}; random: {three(point.loss_random)}."
    yield str(args.out) if curve else f"{head_programs.NO_LOSS} {args.out}"


def to_json(heads: tuple[HeadPrograms, ...], curve: list[ReplacedHeads]) -> str:
    """The mixtures, overlaps and losses; null where a number does not exist."""
    rows = [
        {"layer": of.layer, "head": of.head, "mixture": [*map(list, of.mixture)]}
        | {"iou": _finite(of.overlap), "iou_spread": _finite(of.spread)}
        for of in heads
    ]
    points = [{name: _finite(value) for name, value in vars(point).items()} for point in curve]
    loss = points[0]["loss"] if points else None
    return json.dumps({"heads": rows, "curve": points, "loss": loss}, indent=1)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
