"""What every script begins with: a model, the token IDs of a text, and one traced forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.source import ROOT
from explorer.text import Token
from models.interventions import Edit

CORE = "from models import load_checkpoint, trace"


STANDARD = ("functools", "math", "pathlib")


def script(lines: Sequence[str], *imports: str, comments: Sequence[str] = ()) -> str:
    """A whole script: comments, the imports in order, and the lines."""
    own = sorted(imports, key=lambda line: line.split()[1])
    known = [line for line in own if line.split()[1].partition(".")[0] in STANDARD]
    rest = [line for line in own if line not in known]
    front = [*known, *([""] if known else []), "import torch", "", *rest]
    return "\n".join([*comments, *front, "", *lines]) + "\n"


OPENED = (
    "from pathlib import Path",
    "from explorer.catalog.opened_model import opened_from",
    "from explorer.inference.forward_pass import run_text",
)


def opened_lines(forward: ForwardPass, folder: Path) -> list[str]:
    """After these lines `forward` is the pass that the page shows, of the `opened` model."""
    typed = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
    return [
        f"folder = Path({path(folder)!r}){hint(folder)}",
        f"opened = opened_from(folder, folder.name{how_read(forward.is_prompt)})",
        f"forward = run_text(opened, {typed})",
    ]


def how_read(is_prompt: bool) -> str:
    """The last argument of `opened_from` where the text is a prompt with special tokens."""
    return ", reads_prompts=True" if is_prompt else ""


def model_lines(folder: Path) -> list[str]:
    """After these lines `model` is the chosen model."""
    return [f"folder = {path(folder)!r}{hint(folder)}", "model = load_checkpoint(folder).model"]


def pass_lines(
    passes: ForwardPass | Sequence[ForwardPass], folder: Path, edits: Sequence[Edit] = ()
) -> list[str]:
    """After these lines `seen` is the traced forward pass over the text, or a batch of texts."""
    batch = [passes] if isinstance(passes, ForwardPass) else list(passes)
    short = [repr(edit) for edit in edits if is_short(edit)]
    left_out = len(edits) - len(short)
    missing = f"# Left out, since they hold tensors: {left_out} of the edits."
    segments = [segment_ids(one) for one in batch] if segment_ids(batch[0]) else []
    given = ", ".join(inputs_of(batch[0]))
    with_segments = ", segments=segments" if segments else ""
    return [
        *model_lines(folder),
        *input_lines(batch),
        *([f"segments = torch.tensor({segments})"] if segments else []),
        *([missing] if left_out else []),
        *(["edits = [", *(f"    {edit}," for edit in short), "]"] if short else []),
        f"seen = trace(model, {given}{with_segments}{', edits=edits' if short else ''})",
    ]


def input_lines(batch: Sequence[ForwardPass]) -> list[str]:
    """`ids`, or `source` and `target`, as the model was given them."""
    return [
        f"{name} = torch.tensor({[[token.id for token in inputs_of(one)[name]] for one in batch]})"
        for name in inputs_of(batch[0])
    ]


def inputs_of(forward: ForwardPass) -> dict[str, tuple[Token, ...]]:
    if forward.source and forward.target:
        return {"source": forward.source, "target": forward.target}
    return {"ids": forward.tokens}


def segment_ids(forward: ForwardPass) -> list[int]:
    """The segment ID of each token, for a model with segment embeddings."""
    most = forward.config.n_segments - 1
    return [min(token.segment, most) for token in forward.tokens] if most > 0 else []


def kinds_of(edits: Sequence[Edit]) -> list[str]:
    """The import that the lines of these edits need."""
    kinds = ", ".join(sorted({type(edit).__name__ for edit in edits if is_short(edit)}))
    return [f"from models.interventions import {kinds}"] if kinds else []


def is_short(edit: Edit) -> bool:
    """Whether it fits on one line: an edit with a tensor does not."""
    return not any(isinstance(value, Tensor) for value in vars(edit).values())


def hint(folder: Path) -> str:
    return "" if folder.is_relative_to(ROOT) else "  # put the way to it in front"


def path(folder: Path) -> str:
    """From the README's folder; of a folder elsewhere only the name, which is all others know."""
    return folder.relative_to(ROOT).as_posix() if folder.is_relative_to(ROOT) else folder.name
