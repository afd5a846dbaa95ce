"""The lines of Python that make what is on screen, for whoever wants to run them."""

from __future__ import annotations

from pathlib import Path

from explorer.parts import site
from explorer.reading import Reading
from explorer.source import ROOT
from explorer.text import Token


def one_head(reading: Reading, folder: Path, part: str, layer: int, head: int) -> str:
    """The weights of one head over this text; run it where the README is."""
    inputs = _inputs(reading)
    names = ", ".join(name for name, _ in inputs)
    segments = _segments(reading)
    with_segments = ", segments=segments" if segments else ""
    lines = [
        "import torch",
        "",
        "from models import load_checkpoint, trace",
        "",
        f"folder = {_path(folder)!r}{_hint(folder)}",
        "model = load_checkpoint(folder).model",
        *(f"{name} = torch.tensor([{[token.id for token in tokens]}])" for name, tokens in inputs),
        *([f"segments = torch.tensor([{segments}])"] if segments else []),
        f"seen = trace(model, {names}{with_segments})",
        f"weights = seen.weights({site(part, layer)!r}, head={head})[0]",
        "print(weights)  # a row per query, a column per key",
    ]
    return "\n".join(lines) + "\n"


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
