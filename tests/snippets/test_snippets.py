"""The code panel: what it shows runs as pasted and gives the numbers on screen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from explorer import snippets
from explorer.catalog import opened_model
from explorer.catalog.folders import ROOT
from explorer.inference.edited_pass import run_edited
from explorer.inference.forward_pass import ForwardPass, run_text
from explorer.interventions.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    HideKey,
    Intervention,
    MaskCell,
    PresetMask,
    ReplaceToken,
)
from models import interventions as core

D = "decoder.self_attn"
EDITS: dict[str, tuple[Intervention, ...]] = {
    "letters": (
        AblateHead(D, 0, 1),
        AblateMlp(D, 0, "mean"),
        MaskCell(D, None, 2, 1, False),
        HideKey(D, 1, 0),
        CutEdge(D, 1, 1, 2, 0),
        ReplaceToken(D, 1, 200),
    ),
    "translation": (AblateHead("encoder.self_attn", 0, 1), AblateAttention(D, 0)),
}
KEPT = """
from safetensors.torch import save_file
save_file({{"weights": weights.contiguous()}}, {out!r})
"""
EACH_ALONE = """
import json, sys
for lines in json.load(sys.stdin):
    exec(lines, {})
"""


def run(snippets: list[tuple[str, Path]], out: Path) -> list[torch.Tensor]:
    """What each makes, pasted alone into a Python that runs where the README is."""
    pasted = [
        code.replace(repr(folder.name), repr(str(folder))) + KEPT.format(out=str(out / str(place)))
        for place, (code, folder) in enumerate(snippets)
    ]
    subprocess.run(
        [sys.executable, "-c", EACH_ALONE],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        input=json.dumps(pasted),
        text=True,
        check=True,
    )
    return [load_file(out / str(place))["weights"] for place in range(len(snippets))]


def two(
    before: ForwardPass, after: ForwardPass, folder: Path, in_core: tuple[core.Edit, ...]
) -> str:
    """The lines of the last head of a pass, and of the same with edits."""
    part = before.parts[-1]
    here = folder, part.name, part.layers - 1, 1
    return snippets.two_heads_script(
        snippets.Head(before, *here),
        snippets.Head(after, *here, in_core),
    )


def test_what_is_pasted_makes_what_is_seen(
    small_models: Path, published: Path, tmp_path: Path
) -> None:
    pasted: list[tuple[str, Path]] = []
    seen: list[torch.Tensor] = []
    shown = [
        (ROOT / "models/checkpoints/translation", ("the black cat sleeps",)),
        (ROOT / "models/checkpoints/shakespeare", ("To be",)),
        (published / "bert", ("the cat sat", "he sold the dog")),
    ]
    for folder, texts in shown:
        forward = run_text(opened_model.opened_from(folder, folder.name), *texts)
        for part in forward.parts:
            last = part.name, part.layers - 1, part.heads - 1
            code = snippets.head_script(forward, folder, *last)
            assert str(folder.parent) not in code, "where a model lies is nobody else's business"
            assert ("segments" in code) == (len(texts) == 2)
            pasted.append((code, folder))
            seen.append(forward.weights(*last))
    for name, edits in EDITS.items():
        opened, folder = opened_model.open_model(name), small_models / name
        forward = run_text(opened, opened.example)
        passed = run_edited(opened, forward, edits)
        assert not passed.not_applicable
        pasted.append((two(forward, passed.forward, folder, passed.core_edits), folder))
        part = forward.parts[-1]
        here = part.name, part.layers - 1, 1
        seen.append(passed.forward.weights(*here) - forward.weights(*here))
        assert seen[-1].abs().max() > 1e-3
    for made, expected in zip(run(pasted, tmp_path), seen, strict=True):
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-6)


def test_what_the_lines_leave_out_is_said(small_models: Path) -> None:
    opened, folder = opened_model.open_model("letters"), small_models / "letters"
    forward = run_text(opened, "the cat")
    edits = (PresetMask(D, 0, "none", 1), AblateHead(D, 0, 1))
    passed = run_edited(opened, forward, edits)
    code = two(forward, passed.forward, folder, passed.core_edits)
    assert "# Left out, since they hold tensors: 1 of the edits." in code


def test_heads_of_two_models_over_other_tokens_have_no_difference(small_models: Path) -> None:
    first, second = (opened_model.open_model(name) for name in ("letters", "reviews"))
    other = run_text(second, "not a white cat eats")
    code = snippets.two_heads_script(
        snippets.Head(run_text(first, "the cat"), small_models / "letters", D, 0, 1),
        snippets.Head(other, small_models / "reviews", "encoder.self_attn", 0, 1),
    )
    assert "print(first, second)" in code
    assert "second - first" not in code
