"""The lines that make what the Checkpoints page shows of a model, without any text."""

from __future__ import annotations

from pathlib import Path

from explorer.snippets.pass_code import model_lines, pasted

LOAD = "from models import load_checkpoint"
TOLD = (
    'for depth, part in lines(node):\n    print("  " * depth + part.name, part.symbols, part.count)'
)


def ledger(folder: Path) -> str:
    """Every part of the model with its formula and its count."""
    ends = ["node = ledger(model)", "print(node.count, model.n_parameters)", TOLD]
    imports = LOAD, "from explorer.catalog.parameters import ledger, lines"
    return pasted([*model_lines(folder), *ends], *imports)


def ledger_of_preset(name: str) -> str:
    """The same of a document's configuration."""
    return pasted(
        [f"node = of_config(PRESETS[{name!r}]())", "print(node.count)", TOLD],
        "from models.presets import PRESETS",
        "from explorer.catalog.parameters import lines, of_config",
    )


def tensor(folder: Path, name: str) -> str:
    """One tensor in numbers."""
    return pasted(
        [
            *model_lines(folder),
            f"weight = model.get_parameter({name!r}).detach()",
            "rms = weight.square().mean().sqrt()",
            "print(weight.shape, weight.mean(), weight.std(correction=0), rms, weight.norm())",
            "print(weight.min(), weight.max(), weight.abs().max())",
        ],
        LOAD,
    )


def norms(folder: Path) -> str:
    """The root mean square of every tensor."""
    return pasted(
        [
            *model_lines(folder),
            "with torch.no_grad():",
            "    named = dict(model.named_parameters())",
            "    rms = {name: float(w.square().mean().sqrt()) for name, w in named.items()}",
            "print(rms)",
        ],
        LOAD,
    )


def spectrum(folder: Path, name: str) -> str:
    """The singular values of one matrix, and where those of noise would end."""
    return pasted(
        [
            *model_lines(folder),
            f"weight = model.get_parameter({name!r}).detach().double()",
            "values = torch.linalg.svdvals(weight)",
            "end = edge(tuple(weight.shape), float(weight.square().mean().sqrt()))",
            "print(values, end, int((values > end).sum()))",
        ],
        LOAD,
        "from explorer.analysis.singular_values import edge",
    )


def doctor(folder: Path) -> str:
    """What the doctor finds in the numbers of a model."""
    return pasted(
        [
            *model_lines(folder),
            "found = tuple(survey(model))",
            "findings = diagnostics.of_numbers(found) + diagnostics.of_training(model, found)",
            "findings += diagnostics.of_heads(model)",
            "for finding in diagnostics.in_order(findings):",
            "    print(finding.level, finding.title, finding.sentence)",
        ],
        LOAD,
        "from explorer.analysis import diagnostics",
        "from explorer.analysis.weight_statistics import survey",
    )
