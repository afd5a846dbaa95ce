"""The checkpoint doctor: what is right, odd or wrong with a model, each in one sentence.

A finding is plain data. Some need only the files' headers, some the numbers, some a
text that the model has read. A check that finds nothing says so: one sees what was
looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from explorer.analysis.head_metrics import HeadMetrics
from explorer.analysis.singular_values import SMALLEST_SIDE, passes_for_noise
from explorer.analysis.weight_statistics import Summary
from explorer.text.labels import cut

LEVELS = ("error", "warning", "note", "fine")
NAMED, LONGEST_NAME = 4, 60
"""Names that a sentence holds at most."""
SAMPLED = 12
"""Matrices that are compared with noise, spread evenly over the model."""
UNIFORM = 0.99
"""A head whose rows have more than this share of the most possible entropy looks everywhere."""
SHORTEST_TEXT = 4
"""On fewer keys every head looks almost everywhere."""


@dataclass(frozen=True)
class Finding:
    """One thing the doctor says. `level` is one of LEVELS."""

    level: str
    title: str
    sentence: str


class OnDisk(Protocol):
    """What the headers of a folder's files tell, before a weight is read."""

    @property
    def missing(self) -> tuple[str, ...]: ...

    @property
    def unused(self) -> tuple[str, ...]: ...

    @property
    def misshapen(self) -> tuple[str, ...]: ...

    @property
    def copies(self) -> tuple[str, ...]: ...

    @property
    def tied(self) -> bool: ...

    @property
    def unfollowed(self) -> tuple[str, ...]: ...


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """The worst first; otherwise as they were found."""
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def of_files(disk: OnDisk) -> list[Finding]:
    """Whether the files hold what the config asks for, and nothing else."""
    found = []
    if disk.missing:
        found.append(
            Finding(
                "error",
                "Missing tensors",
                f"The config asks for {_named(disk.missing)}, which no file of the folder holds, "
                "so the model cannot be opened; save all of its weights.",
            )
        )
    if disk.misshapen:
        found.append(
            Finding(
                "error",
                "Shapes that disagree",
                f"The config and the file give different shapes to {_named(disk.misshapen)}; "
                "the config is probably of another model.",
            )
        )
    if not found:
        sentence = "Every tensor that the config asks for is in the files, in its shape."
        found.append(Finding("fine", "Nothing missing", sentence))
    if disk.unused:
        sentence = f"The files also hold {_named(disk.unused)}, which this model does not use."
        found.append(Finding("note", "Unexpected tensors", sentence))
    else:
        found.append(Finding("fine", "Nothing unexpected", "Every tensor in the files is used."))
    if disk.unfollowed:
        sentence = (
            f"The config also says {_named(disk.unfollowed)}, which is not followed here or which "
            "the files contradict; everything else it says is."
        )
        found.append(Finding("note", "Settings not followed", sentence))
    return [*found, _tied(disk)]


def _tied(disk: OnDisk) -> Finding:
    if disk.tied:
        stored = f"stored again as {_named(disk.copies)}" if disk.copies else "stored once"
        sentence = f"The head and the token embedding are one matrix, {stored}."
        return Finding("fine", "Tied embeddings", sentence)
    return Finding("fine", "Nothing tied", "Embedding and head have no matrix in common.")


def of_types(types: Mapping[str, str]) -> list[Finding]:
    """Whether the stored numbers are all of one type; by name of the tensor."""
    counts = Counter(types.values()).most_common()
    if len(counts) < 2:
        kind = counts[0][0] if counts else "no type"
        return [Finding("fine", "One number type", f"All tensors are stored as {kind}.")]
    said = ", ".join(f"{count:,} as {kind}" for kind, count in counts)
    sentence = f"The tensors are stored in different types ({said}); all are read as float32."
    return [Finding("note", "Mixed number types", sentence)]


def of_numbers(found: Sequence[Summary]) -> list[Finding]:
    """Tensors that hold what is no number, only zeros, or one number again and again."""
    broken = [one.name for one in found if one.not_finite]
    result = []
    if broken:
        sentence = f"NaN or infinity stands in {_named(broken)}: what the model says is void."
        result.append(Finding("error", "Not finite", sentence))
    matrices = [one for one in found if one.kind == "matrix" and one.is_constant]
    empty = [one.name for one in matrices if one.highest == 0]
    if empty:
        sentence = f"Only zeros stand in {_named(empty)}: this part does nothing."
        result.append(Finding("warning", "All zero", sentence))
    flat = [one.name for one in matrices if one.highest != 0]
    if flat:
        sentence = f"One and the same number fills {_named(flat)}: it was probably never trained."
        result.append(Finding("warning", "Constant", sentence))
    silent = [
        one.name for one in found if one.kind == "gain" and one.is_constant and one.highest == 0
    ]
    if silent:
        sentence = f"The norm gain {_named(silent)} is all zero: nothing gets through."
        result.append(Finding("warning", "A norm that is shut", sentence))
    if not result:
        sentence = "No tensor holds NaN or infinity, and no matrix is all zero or constant."
        result.append(Finding("fine", "Sound numbers", sentence))
    return result


def of_heads(model: nn.Module) -> list[Finding]:
    """Heads that write nothing: their slice of the output projection is all zeros."""
    dead = [
        f"{name}, head {head}"
        for name, module in model.named_modules()
        for head in _dead_heads(module)
    ]
    if not dead:
        sentence = "The output projection of every head holds numbers other than zero."
        return [Finding("fine", "No dead heads", sentence)]
    sentence = f"The output projection of {_named(dead)} is all zero: what it sees is lost."
    return [Finding("warning", "Dead heads", sentence)]


def _dead_heads(module: nn.Module) -> list[int]:
    projection, width = getattr(module, "o_proj", None), getattr(module, "d_head", 0)
    if not isinstance(projection, nn.Linear) or not isinstance(width, int) or width < 1:
        return []
    alive = projection.weight.detach().any(dim=0).unflatten(0, (-1, width)).any(dim=1)
    return [head for head, lives in enumerate(alive.tolist()) if not lives]


def of_training(model: nn.Module, found: Sequence[Summary]) -> list[Finding]:
    """Whether the weights look as they do before training.

    The rule: every norm gain is exactly 1, every bias exactly 0, and of at most 12
    matrices none has a singular value that noise could not have. A trained model
    fails all three, a fresh one none.
    """
    gains = [one for one in found if one.kind == "gain"]
    biases = [one for one in found if one.kind == "bias"]
    untouched = all(one.is_constant and one.highest == 1 for one in gains) and all(
        one.is_constant and one.highest == 0 for one in biases
    )
    named = dict(model.named_parameters())
    sample = [name for name in _sample(found) if name in named]
    noisy = sum(passes_for_noise(named[name]) for name in sample)
    fresh = " and ".join(
        words
        for words, some in (
            ("every norm gain is exactly 1", gains),
            ("every bias is exactly 0", biases),
        )
        if some
    )
    matrices = f"the spectra of all {len(sample)} matrices looked at are those of noise"
    if untouched and (gains or biases) and noisy == len(sample):
        sentence = (
            f"{fresh.capitalize()}, and {matrices}: these are fresh weights, or trained ones "
            "that were never read."
        )
        return [Finding("warning", "Looks untrained", sentence)]
    if sample and noisy == len(sample):
        sentence = f"Though norms or biases have moved, {matrices}: it was trained little, if ever."
        return [Finding("warning", "Matrices like noise", sentence)]
    if untouched and gains and biases:
        sentence = (
            f"{fresh.capitalize()}, as before training, but "
            f"{len(sample) - noisy} of {len(sample)} matrices looked at are not noise: norms "
            "and biases may not have been read."
        )
        return [Finding("note", "Norms and biases as fresh", sentence)]
    sentence = (
        f"{len(sample) - noisy} of {len(sample)} matrices looked at have singular values that "
        "noise of their size could not have."
    )
    return [Finding("fine", "Looks trained", sentence)]


def _sample(found: Sequence[Summary]) -> list[str]:
    """Names of matrices to compare with noise; tables of positions may be computed ones."""
    names = [
        one.name
        for one in found
        if len(one.shape) == 2 and min(one.shape) >= SMALLEST_SIDE and "positions" not in one.name
    ]
    if len(names) <= SAMPLED:
        return names
    return [names[at * (len(names) - 1) // (SAMPLED - 1)] for at in range(SAMPLED)]


def of_attention(found: Sequence[HeadMetrics]) -> list[Finding]:
    """Whether heads look everywhere equally: the sign of weights that were read wrongly."""
    spread = {each.part: each.values["spread"] for each in found}
    known = {part: values for part, values in spread.items() if not bool(values.isnan().all())}
    if not known or max(each.rows for each in found) < SHORTEST_TEXT:
        sentence = "The text is too short to tell whether a head chooses: type a longer one."
        return [Finding("note", "Attention not judged", sentence)]
    even = {part: ((values > UNIFORM) | values.isnan()).all(-1) for part, values in known.items()}
    if all(bool(layers.all()) for layers in even.values()):
        sentence = (
            "Over your text every head of every layer looks at all it may see almost equally "
            f"(entropy above {UNIFORM:.0%} of the most possible): the weights are fresh, or "
            "were not read as they were meant."
        )
        return [Finding("warning", "Attention uniform", sentence)]
    flat = [
        f"{part} of layer {layer}"
        for part, layers in even.items()
        for layer, is_even in enumerate(layers.tolist())
        if is_even
    ]
    if flat:
        sentence = f"Over your text every head looks everywhere almost equally in {_named(flat)}."
        return [Finding("note", "A layer that does not choose", sentence)]
    heads = torch.cat([values.flatten() for values in known.values()])
    uniform = int((heads > UNIFORM).sum())
    sentence = f"Over your text {uniform} of {len(heads)} heads look everywhere almost equally."
    return [Finding("fine", "Attention chooses", sentence)]


def _named(names: Sequence[str]) -> str:
    """Some of the names, and how many more there are."""
    shown = ", ".join(cut(name, LONGEST_NAME) for name in names[:NAMED])
    more = len(names) - NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown
