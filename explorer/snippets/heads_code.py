"""Scripts for the weights of one head, or of two and their difference."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from explorer.analysis.adjusted_weights import DisplayOptions
from explorer.analysis.word_groups import Group
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, OPENED, kinds_of, opened_lines, pass_lines, script
from models.interventions import Edit


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a model that lies in `folder`, over a text; `edits` were made in that pass."""

    forward: ForwardPass
    folder: Path
    part: str
    layer: int
    head: int
    edits: tuple[Edit, ...] = ()


MapGroups = tuple[tuple[Group, ...], tuple[Group, ...]]
"""The groups of queries and of keys of a map: the places of the tokens of each."""
RAW = DisplayOptions()


def head_script(
    forward: ForwardPass,
    folder: Path,
    part: str,
    layer: int,
    head: int,
    options: DisplayOptions = RAW,
) -> str:
    """The weights of one head over this text as its display options show them; or raw.

    Run it where the README is.
    """
    end = "print(weights)  # a row per query, a column per key"
    if options == RAW:
        lines = weight_lines(Head(forward, folder, part, layer, head), "weights")
        return script([*lines, end], CORE)
    chosen = ", ".join(
        f"{field.name}={getattr(options, field.name)!r}"
        for field in fields(options)
        if getattr(options, field.name) != field.default
    )
    return script(
        [
            *opened_lines(forward, folder),
            f"options = DisplayOptions({chosen})",
            f"weights = adjust_head(forward, {part!r}, {layer}, {head}, options).values",
            end,
        ],
        *OPENED,
        "from explorer.analysis.adjusted_weights import DisplayOptions, adjust_head",
    )


def two_heads_script(
    first: Head, second: Head, groups: tuple[MapGroups, MapGroups] | None = None
) -> str:
    """The weights of both, and second − first where their cells belong together.

    `groups` are those of the first and of the second, where the difference is over groups.
    """
    shapes = {
        each.forward.weights(each.part, each.layer, each.head).shape for each in (first, second)
    }
    imports = [CORE, *kinds_of((*first.edits, *second.edits))]
    end = ["print(first, second)  # over other tokens, so there is no difference"]
    if groups is not None:
        imports.append("from explorer.analysis.comparison import pool_map")
        end = [*_pooled_lines("first", groups[0]), *_pooled_lines("second", groups[1])]
        end += [
            "weights = second_groups - first_groups",
            "print(weights)  # a row per group of queries, a column per group of keys",
        ]
    elif len(shapes) == 1:
        end = ["weights = second - first", "print(weights)  # a row per query, a column per key"]
    lines = [*weight_lines(first, "first"), "", *weight_lines(second, "second"), "", *end]
    return script(lines, *imports)


def _pooled_lines(name: str, groups: MapGroups) -> list[str]:
    """The lines after which `first_groups`, or `second_groups`, is the map over its groups."""
    rows, columns = (str([list(places) for places in axis]) for axis in groups)
    note = "  # the places of each group's tokens"
    axes = [f"rows = {rows}{note}", f"columns = {columns}"]
    return [
        *([f"rows = columns = {rows}{note}"] if rows == columns else axes),
        f"{name}_groups = pool_map({name}, rows, columns)",
    ]


def weight_lines(shown: Head, name: str) -> list[str]:
    """The lines after which a variable of this name is the weights of the head."""
    return [
        *pass_lines(shown.forward, shown.folder, shown.edits),
        f"{name} = seen.weights({site(shown.part, shown.layer)!r}, head={shown.head})[0]",
    ]
