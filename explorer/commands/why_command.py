"""The command `python -m explorer why`: the sources of one attention score, as JSON."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from explorer.analysis.score_sources import (
    KEY,
    QUERY,
    ScoreSources,
    score_sources,
    sources_in_words,
)
from explorer.catalog.opened_model import OpenModel
from explorer.commands.training_commands import write_out
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.text import Token
from explorer.text.number_format import three
from explorer.text.token_labels import label_at
from explorer.text.visible_text import in_quotes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text", required=True, metavar="TEXT")
    head = "the layer and the head, such as 23.0"
    parser.add_argument("--head", required=True, metavar="LAYER.HEAD", help=head)
    part = "the kind of attention, such as decoder.cross_attn; by default the last self-attention"
    parser.add_argument("--part", metavar="NAME", help=part)
    place = "the position of a token; −1 is the last"
    parser.add_argument("--query", type=int, default=-1, metavar="N", help=place)
    parser.add_argument("--key", type=int, required=True, metavar="N", help=place)
    other = "the other key of the contrast; by default the mean of all other visible keys"
    parser.add_argument("--against", type=int, metavar="N", help=other)
    plain = "the score itself, without a contrast"
    parser.add_argument("--plain", action="store_true", help=plain)


def summary_lines(opened: OpenModel, args: argparse.Namespace) -> Iterator[str]:
    """Write the sources of the score, and yield the lines that summarize them."""
    forward = run_text(opened, args.text)
    part, layer, head = _head(forward, args)
    rows, columns = forward.rows(part), forward.columns(part)
    query, key = _place("query", args.query, rows), _place("key", args.key, columns)
    against = None if args.against is None else _place("against", args.against, columns)
    if args.plain and against is not None:
        raise ValueError("Give --against or --plain, not both.")
    sources = score_sources(forward, part, layer, head, query, key, against, plain=args.plain)
    write_out(args.out, json.dumps(as_json(sources), indent=1))
    weight = float(forward.weights(part, layer, head)[query, key])
    row, column = in_quotes(label_at(rows, query)), in_quotes(label_at(columns, key))
    yield forward.part(part).words.cell.format(row=row, column=column, value=three(weight)) + "."
    other = "" if against is None else f"that of {in_quotes(label_at(columns, against))}"
    yield sources_in_words(sources, forward.columns, other)
    yield str(args.out)


def as_json(sources: ScoreSources) -> dict[str, Any]:
    """`sum` is that of the query's sources (or the key's) with the position bias."""
    return {
        "score": sources.score,
        "sum": sources.sums[0],
        "contrast": sources.contrast,
        "position_bias": sources.position_bias,
        "sources": [
            {
                "side": side,
                "source": one.name,
                "value": one.value,
                "tokens": [
                    {"position": place, "value": value}
                    for place, value in enumerate(one.tokens.tolist())
                    if value
                ],
            }
            for side, some in zip((QUERY, KEY), sources.sides, strict=True)
            for one in sorted(some, key=lambda one: -abs(one.value))
        ],
    }


def _head(forward: ForwardPass, args: argparse.Namespace) -> tuple[str, int, int]:
    names = [part.name for part in forward.parts]
    own = [name for name in names if name.endswith("self_attn")]
    part = own[-1] if args.part is None else args.part
    if part not in names:
        raise ValueError(f"--part must be one of {', '.join(names)}.")
    layer, _, head = args.head.partition(".")
    of = forward.part(part)
    is_number = layer.isdecimal() and head.isdecimal()
    if not (is_number and int(layer) < of.layers and int(head) < of.heads):
        raise ValueError(
            f"--head must be a layer from 0 to {of.layers - 1} and a head from 0 to "
            f"{of.heads - 1}, such as 0.0."
        )
    return part, int(layer), int(head)


def _place(name: str, number: int, tokens: tuple[Token, ...]) -> int:
    count = len(tokens)
    if not -count <= number < count:
        raise ValueError(f"--{name} must be from {-count} to {count - 1}: these are its tokens.")
    return number % count
