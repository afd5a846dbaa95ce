"""Diagnostics of a checkpoint: what is right, unusual or wrong, in one sentence per finding.

Some checks need only the headers of the files, some the weights, some a forward pass. A check
that finds nothing wrong says so, so that the reader sees what was checked.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from explorer.analysis.head_metrics import HeadMetrics
from explorer.analysis.singular_values import SMALLEST_SIDE, looks_random
from explorer.analysis.weight_statistics import TensorSummary
from explorer.system.cooperative import interruptible
from explorer.text.visible_text import cut
from models.loading.inspection import Inspection
from models.loading.safe_files import quoted
from models.loading.weight_files import base_title

LEVELS = ("error", "warning", "note", "fine")
NAMED, LONGEST_NAME = 4, 60
"""The most names in a sentence, and characters of a name."""
MATRICES_SAMPLED = 12
"""The most matrices that are compared with random ones, spread evenly over the model."""
UNIFORM = 0.99
"""A head whose rows have more than this share of the largest possible entropy is uniform."""
NOTHING_TO_COMPARE = (
    f"No matrix with finite, different weights has {SMALLEST_SIDE} rows and columns or more, so "
    "whether the model is trained cannot be told from its singular values."
)
UNTIED = "Embedding and unembedding share no matrix; sharing one is as common."
SHORTEST_TEXT = 4
"""On fewer keys every head is almost uniform."""


@dataclass(frozen=True)
class Diagnostic:
    """One result of the diagnostics. `level` is one of LEVELS."""

    level: str
    title: str
    sentence: str


def most_severe_first(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors, warnings, notes, then what is fine; within a level, in the order of the findings."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def file_findings(files: Inspection) -> list[Diagnostic]:
    """Whether the files hold what the config asks for, and nothing else."""
    missing = _findings(
        (
            "error",
            "Missing tensors",
            files.missing,
            "The config asks for {}, which no file of the folder holds, so the model cannot be "
            "opened; save all of its weights.",
        ),
        (
            "error",
            "Shapes that disagree",
            files.misshapen,
            "The config and the file give different shapes to {}; the config probably belongs to "
            "another model.",
        ),
    )
    sound = "Every tensor that the config asks for is in the files, in its shape."
    surplus = "The files also hold {}, which this model does not use."
    unfollowed = (
        "The config also sets {}, which this app does not support or which the files or other "
        "settings contradict; every other setting is followed."
    )
    wrappers = [files.weights.wrapper] if files.weights.wrapper else []
    prefix = "Every name in the files begins with {}, which is left out here."
    tied = Diagnostic("fine", "No tied embeddings", UNTIED)
    if files.tied:
        stored = f"stored again as {_named(files.copies)}" if files.copies else "stored once"
        sentence = f"The unembedding and the token embedding are one matrix, {stored}, as usual."
        tied = Diagnostic("fine", "Tied embeddings", sentence)
    return [
        *(missing or [Diagnostic("fine", "Nothing missing", sound)]),
        *(
            _findings(("note", "Unexpected tensors", files.unused, surplus))
            or [Diagnostic("fine", "Nothing unexpected", "Every tensor in the files is used.")]
        ),
        *_findings(("note", "Names with a prefix", wrappers, prefix)),
        *_findings(("note", "Settings not followed", files.unfollowed, unfollowed)),
        tied,
    ]


def tokenizer_findings(unfollowed: Sequence[str]) -> list[Diagnostic]:
    """Whether all settings of the tokenizer are followed; `unfollowed` names the others."""
    sentence = (
        "The tokenizer's files also set {}, which this app does not support or which another file "
        "or setting contradicts; every other setting is followed."
    )
    return _findings(("note", "Tokenizer settings not followed", unfollowed, sentence))


def adapter_finding(named: str, folder: Path, base: Path) -> Diagnostic:
    """To which model the LoRA adapter in a folder was added, and what the adapter calls it."""
    where = "beside it" if base == folder else f"in the folder {quoted(base.name)}"
    sentence = f"A LoRA adapter is added to the weights {where}."
    if named:
        sentence += f" The adapter calls its model {base_title(named)}."
    is_plain = not named or base in (folder, Path(named))
    if not is_plain:
        sentence += " Only the names of their folders agree."
    return Diagnostic("fine" if is_plain else "note", "LoRA adapter", sentence)


def _findings(*checks: tuple[str, str, Sequence[str], str]) -> list[Diagnostic]:
    """One finding for each check (level, title, names, sentence) that has names."""
    return [
        Diagnostic(level, title, sentence.format(_named(names)))
        for level, title, names, sentence in checks
        if names
    ]


def type_findings(types: Mapping[str, str]) -> list[Diagnostic]:
    """Whether all tensors are stored as one data type; `types` is by tensor name."""
    counts = Counter(types.values()).most_common()
    if len(counts) < 2:
        kind = counts[0][0] if counts else "no type"
        return [Diagnostic("fine", "One data type", f"All tensors are stored as {kind}, as usual.")]
    types_of = ", ".join(f"{count:,} as {kind}" for kind, count in counts)
    sentence = f"The tensors are stored in different types ({types_of}); all are read as float32."
    return [Diagnostic("note", "Mixed data types", sentence)]


def value_findings(tensors: Sequence[TensorSummary]) -> list[Diagnostic]:
    """Tensors with NaN or infinity, with only zeros, or with one value everywhere."""
    constant = [tensor for tensor in tensors if tensor.is_constant]
    matrices = [tensor for tensor in constant if tensor.kind == "matrix"]
    gains = [tensor for tensor in constant if tensor.kind == "gain"]
    result = _findings(
        (
            "error",
            "Not finite",
            [tensor.name for tensor in tensors if tensor.not_finite],
            "There is NaN or infinity in {}: the model's outputs are invalid.",
        ),
        (
            "warning",
            "All zero",
            [tensor.name for tensor in matrices if tensor.highest == 0],
            "All weights are zero in {}: this part has no effect.",
        ),
        (
            "warning",
            "Constant",
            [tensor.name for tensor in matrices if tensor.highest != 0],
            "All weights have the same value in {}: it was probably never trained.",
        ),
        (
            "warning",
            "Zero norm gain",
            [tensor.name for tensor in gains if tensor.highest == 0],
            "The norm gain is all zero in {}: its output is only the bias, if it has one.",
        ),
    )
    sound = "No tensor holds NaN or infinity, and no matrix is all zero or constant."
    return result or [Diagnostic("fine", "Valid weights", sound)]


def dead_head_findings(model: nn.Module) -> list[Diagnostic]:
    """Heads that write nothing: their slice of the output projection is all zeros."""
    dead = []
    for name, module in model.named_modules():
        projection, width = getattr(module, "o_proj", None), getattr(module, "d_head", 0)
        if isinstance(projection, nn.Linear) and isinstance(width, int) and width > 0:
            alive = projection.weight.detach().any(dim=0).unflatten(0, (-1, width)).any(dim=1)
            dead += [f"{name}, head {head}" for head in (~alive).nonzero()[:, 0].tolist()]
    if not dead:
        sentence = "Every head can have an effect: none has only zeros in its output projection."
        return [Diagnostic("fine", "No dead heads", sentence)]
    sentence = f"The output projection is all zero in {_named(dead)}: the head has no effect."
    return [Diagnostic("warning", "Dead heads", sentence)]


def training_findings(model: nn.Module, tensors: Sequence[TensorSummary]) -> list[Diagnostic]:
    """Whether the model looks untrained.

    Untrained: every norm gain is exactly 1, every bias exactly 0, and none of at most 12
    matrices has a singular value that a random matrix could not have. Matrices that are constant
    or not finite are not compared.
    """
    gains = [tensor for tensor in tensors if tensor.kind == "gain"]
    biases = [tensor for tensor in tensors if tensor.kind == "bias"]
    unchanged = all(tensor.is_constant and tensor.highest == 1 for tensor in gains) and all(
        tensor.is_constant and tensor.highest == 0 for tensor in biases
    )
    parameters = dict(model.named_parameters())
    sample = [name for name in _sample(tensors) if name in parameters]
    learned = sum(not looks_random(parameters[name]) for name in interruptible(sample))
    kinds = {"every norm gain is exactly 1": gains, "every bias is exactly 0": biases}
    initial = " and ".join(words for words, tensors_of_kind in kinds.items() if tensors_of_kind)
    if not sample:
        return [Diagnostic("note", "Training not checked", NOTHING_TO_COMPARE)]
    random = f"the singular values of all {len(sample)} sampled matrices are those of random ones"
    if unchanged and (gains or biases) and not learned:
        sentence = f"{initial.capitalize()}, and {random}: the weights are untrained or unread."
        return [Diagnostic("warning", "Looks untrained", sentence)]
    if not learned:
        start = "Norms or biases have changed, but "
        if unchanged:  # there are none
            start = "The model has no norm gain and no bias, and "
        sentence = f"{start}{random}: the model was hardly trained."
        return [Diagnostic("warning", "Random matrices", sentence)]
    if unchanged and gains and biases:
        sentence = (
            f"{initial.capitalize()}, as before training, but {learned} of {len(sample)} sampled "
            "matrices are not random: norms and biases may not have been read."
        )
        return [Diagnostic("note", "Initial norms and biases", sentence)]
    sentence = (
        f"{learned} of {len(sample)} sampled matrices have singular values that a random matrix "
        "of their size could not have: training has left something in them."
    )
    return [Diagnostic("fine", "Looks trained", sentence)]


def _sample(tensors: Sequence[TensorSummary]) -> list[str]:
    """Names of matrices to compare with random ones, without position tables: some are computed."""
    names = [
        tensor.name
        for tensor in tensors
        if len(tensor.shape) == 2
        and not tensor.is_constant
        and not tensor.not_finite
        and min(tensor.shape) >= SMALLEST_SIDE
        and "positions" not in tensor.name
    ]
    if len(names) <= MATRICES_SAMPLED:
        return names
    return [
        names[at * (len(names) - 1) // (MATRICES_SAMPLED - 1)] for at in range(MATRICES_SAMPLED)
    ]


def attention_findings(metrics: Sequence[HeadMetrics]) -> list[Diagnostic]:
    """Whether heads attend to all keys equally, as with weights that were read incorrectly."""
    spreads = ((of_part.part, of_part.values["spread"]) for of_part in metrics)
    spread = {part: values for part, values in spreads if not bool(values.isnan().all())}
    if not spread or max(of_part.rows for of_part in metrics) < SHORTEST_TEXT:
        sentence = "The text is too short to tell whether heads attend selectively: type more."
        return [Diagnostic("note", "Attention not checked", sentence)]
    even = {part: ((values > UNIFORM) | values.isnan()).all(-1) for part, values in spread.items()}
    heads = torch.cat([values.flatten() for values in spread.values()])
    of_all = sum(of_part.values["spread"].numel() for of_part in metrics)
    heads = heads[~heads.isnan()]
    if all(bool(layers.all()) for layers in even.values()):
        every = "every head of every layer"
        if len(heads) < of_all:
            every = f"each of the {len(heads):,} heads that have an entropy, of {of_all:,},"
        sentence = (
            f"Over your text {every} attends to all its keys almost equally "
            f"(entropy above {UNIFORM:.0%} of the largest possible): the weights are untrained, "
            "or were read incorrectly."
        )
        return [Diagnostic("warning", "Uniform attention", sentence)]
    flat = [
        f"{part} of layer {layer}"
        for part, layers in even.items()
        for layer, is_even in enumerate(layers.tolist())
        if is_even and not spread[part][layer].isnan().all()
    ]
    if flat:
        sentence = f"Over your text every measured head attends almost equally in {_named(flat)}."
        return [Diagnostic("note", "A uniform layer", sentence)]
    uniform = int((heads > UNIFORM).sum())
    sentence = (
        f"Over your text {uniform} of {len(heads)} heads attend to all keys almost equally, as "
        "heads without training do."
    )
    return [Diagnostic("fine", "Selective attention", sentence)]


def _named(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    listed = ", ".join(cut(name, LONGEST_NAME) for name in names[:NAMED])
    more = len(names) - NAMED
    return f"{listed} and {more:,} more" if more > 0 else listed
