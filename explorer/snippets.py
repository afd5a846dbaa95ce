"""The lines of Python that make what is on screen, for whoever wants to run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from explorer.parts import site
from explorer.reading import Reading
from explorer.source import ROOT
from explorer.text import Token
from models.interventions import Edit


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a model that lies in `folder`, over a text; `edits` were made in that pass."""

    reading: Reading
    folder: Path
    part: str
    layer: int
    head: int
    edits: tuple[Edit, ...] = ()


def one_head(
    reading: Reading, folder: Path, part: str, layer: int, head: int, *, adjusted: bool = False
) -> str:
    """The weights of one head over this text; run it where the README is.

    Where they are `adjusted` on screen, the first line says that these are not.
    """
    plain = f"# The plain weights of layer {layer}, head {head}, before what Adjust does to them."
    lines = _weights(Head(reading, folder, part, layer, head), "weights")
    end = "print(weights)  # a row per query, a column per key"
    return _joined([plain] * adjusted, (), [*lines, end])


def two_heads(first: Head, second: Head) -> str:
    """The weights of both, and second − first where they are over as many tokens."""
    shapes = {
        each.reading.weights(each.part, each.layer, each.head).shape for each in (first, second)
    }
    end = ["print(first, second)  # over other tokens, so there is no difference"]
    if len(shapes) == 1:
        end = ["weights = second - first", "print(weights)  # a row per query, a column per key"]
    lines = [*_weights(first, "first"), "", *_weights(second, "second"), "", *end]
    return _joined([], (*first.edits, *second.edits), lines)


def _joined(said: Sequence[str], edits: Sequence[Edit], lines: Sequence[str]) -> str:
    kinds = ", ".join(sorted({type(edit).__name__ for edit in edits if _is_short(edit)}))
    imports = ["import torch", "", "from models import load_checkpoint, trace"]
    imports += [f"from models.interventions import {kinds}"] if kinds else []
    return "\n".join([*said, *imports, "", *lines]) + "\n"


def _weights(shown: Head, name: str) -> list[str]:
    """The lines after which a variable of this name holds the weights of the head."""
    reading, folder = shown.reading, shown.folder
    inputs = _inputs(reading)
    names = ", ".join(each for each, _ in inputs)
    segments = _segments(reading)
    with_segments = ", segments=segments" if segments else ""
    edits = [repr(edit) for edit in shown.edits if _is_short(edit)]
    left_out = len(shown.edits) - len(edits)
    missing = f"# Not made here, as they hold tensors of their own: {left_out} of the edits."
    return [
        f"folder = {_path(folder)!r}{_hint(folder)}",
        "model = load_checkpoint(folder).model",
        *(f"{each} = torch.tensor([{[token.id for token in tokens]}])" for each, tokens in inputs),
        *([f"segments = torch.tensor([{segments}])"] if segments else []),
        *([missing] if left_out else []),
        *(["edits = [", *(f"    {edit}," for edit in edits), "]"] if edits else []),
        f"seen = trace(model, {names}{with_segments}{', edits=edits' if edits else ''})",
        f"{name} = seen.weights({site(shown.part, shown.layer)!r}, head={shown.head})[0]",
    ]


def _is_short(edit: Edit) -> bool:
    """Whether one line holds it: an edit with a mask or a value of another pass is long."""
    return not any(isinstance(value, Tensor) for value in vars(edit).values())


def _inputs(reading: Reading) -> list[tuple[str, tuple[Token, ...]]]:
    if reading.source and reading.target:
        return [("source", reading.source), ("target", reading.target)]
    return [("ids", reading.tokens)]


def _segments(reading: Reading) -> list[int]:
    """Which sentence a token is of, for a model that is told."""
    most = reading.config.n_segments - 1
    return [min(token.segment, most) for token in reading.tokens] if most > 0 else []


def _hint(folder: Path) -> str:
    return "" if folder.is_relative_to(ROOT) else "  # put the way to it in front"


def _path(folder: Path) -> str:
    """From the README's folder; of a folder elsewhere only the name, which is all others know."""
    return folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else folder.name
