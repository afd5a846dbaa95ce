"""Scripts for the weights of one head, or of two and their difference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, kinds_of, pass_lines, script
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


def head_script(
    forward: ForwardPass, folder: Path, part: str, layer: int, head: int, *, adjusted: bool = False
) -> str:
    """The weights of one head over this text; run it where the README is.

    Where they are `adjusted` on screen, a comment says that these are raw.
    """
    plain = f"# The raw weights of layer {layer}, head {head}, without the display options."
    lines = weight_lines(Head(forward, folder, part, layer, head), "weights")
    end = "print(weights)  # a row per query, a column per key"
    return script([*lines, end], CORE, comments=[plain] * adjusted)


def two_heads_script(first: Head, second: Head) -> str:
    """The weights of both, and second − first where they are over as many tokens."""
    shapes = {
        each.forward.weights(each.part, each.layer, each.head).shape for each in (first, second)
    }
    end = ["print(first, second)  # over other tokens, so there is no difference"]
    if len(shapes) == 1:
        end = ["weights = second - first", "print(weights)  # a row per query, a column per key"]
    lines = [*weight_lines(first, "first"), "", *weight_lines(second, "second"), "", *end]
    return script(lines, CORE, *kinds_of((*first.edits, *second.edits)))


def weight_lines(shown: Head, name: str) -> list[str]:
    """The lines after which a variable of this name is the weights of the head."""
    return [
        *pass_lines(shown.forward, shown.folder, shown.edits),
        f"{name} = seen.weights({site(shown.part, shown.layer)!r}, head={shown.head})[0]",
    ]
