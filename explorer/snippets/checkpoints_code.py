"""The lines that make what the Checkpoints page shows of a model, without any text."""

from __future__ import annotations

from pathlib import Path

from explorer.snippets.pass_code import model_lines, script

LOAD = "from models import load_checkpoint"
PRINT_TREE = (
    "for depth, part in tree_lines(node):\n"
    '    print("  " * depth + part.name, part.symbols, part.count)'
)


def parameter_tree_lines(folder: Path) -> str:
    """Every part of the model with its formula and its count."""
    lines = ["node = parameter_tree(model)", "print(node.count, model.n_parameters)", PRINT_TREE]
    imports = LOAD, "from explorer.catalog.parameters import parameter_tree, tree_lines"
    return script([*model_lines(folder), *lines], *imports)


def preset_tree_lines(name: str) -> str:
    """The same of a document's configuration."""
    return script(
        [f"node = parameter_tree_of(PRESETS[{name!r}]())", "print(node.count)", PRINT_TREE],
        "from models.presets import PRESETS",
        "from explorer.catalog.parameters import parameter_tree_of, tree_lines",
    )


def tensor_lines(folder: Path, name: str) -> str:
    """One tensor in numbers."""
    lines = [
        f"weight = model.get_parameter({name!r}).detach()",
        "rms = weight.square().mean().sqrt()",
        "print(weight.shape, weight.mean(), weight.std(correction=0), rms, weight.norm())",
        "print(weight.min(), weight.max(), weight.abs().max())",
    ]
    return script([*model_lines(folder), *lines], LOAD)


def norm_lines(folder: Path) -> str:
    """The root mean square of every tensor."""
    lines = [
        "with torch.no_grad():",
        "    named = dict(model.named_parameters())",
        "    rms = {name: float(w.square().mean().sqrt()) for name, w in named.items()}",
        "print(rms)",
    ]
    return script([*model_lines(folder), *lines], LOAD)


def singular_value_lines(folder: Path, name: str) -> str:
    """The singular values of one matrix, and the edge of those of a random one."""
    lines = [
        f"weight = model.get_parameter({name!r}).detach().double()",
        "values = torch.linalg.svdvals(weight)",
        "edge = random_edge(tuple(weight.shape), float(weight.square().mean().sqrt()))",
        "print(values, edge, int((values > edge).sum()))",
    ]
    imports = LOAD, "from explorer.analysis.singular_values import random_edge"
    return script([*model_lines(folder), *lines], *imports)


def diagnostics_lines(folder: Path) -> str:
    """The findings about the weights of a model."""
    lines = [
        "found = tuple(summarized(model))",
        "findings = diagnostics.value_findings(found)",
        "findings += diagnostics.training_findings(model, found)",
        "findings += diagnostics.dead_head_findings(model)",
        "for finding in diagnostics.most_severe_first(findings):",
        "    print(finding.level, finding.title, finding.sentence)",
    ]
    return script(
        [*model_lines(folder), *lines],
        LOAD,
        "from explorer.analysis import diagnostics",
        "from explorer.analysis.weight_statistics import summarized",
    )
