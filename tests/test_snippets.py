"""The code panel: what it shows runs as pasted and gives the numbers on screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from explorer import library, snippets
from explorer.edits import (
    AblateAttention,
    AblateHead,
    AblateMlp,
    CutEdge,
    Edit,
    HideKey,
    MaskCell,
    PresetMask,
    ReplaceToken,
)
from explorer.library import ROOT
from explorer.reading import read
from explorer.rereading import edited
from tests import zoo


def run(code: str, out: Path, folder: Path) -> torch.Tensor:
    """Paste it into a fresh Python, where the README is; and what it made."""
    from safetensors.torch import load_file

    keep = (
        "from safetensors.torch import save_file\n"
        f"save_file({{'w': weights.contiguous()}}, {str(out)!r})\n"
    )
    pasted = code.replace(repr(folder.name), repr(str(folder)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", pasted + keep], cwd=ROOT, env=environment, check=True)
    return load_file(out)["w"]


@pytest.mark.parametrize("name", ["translation", "shakespeare", "negation"])
def test_a_shipped_head_comes_back(name: str, tmp_path: Path) -> None:
    entry = next(entry for entry in library.entries() if entry.name == name)
    opened = library.open_entry(entry)
    reading = read(opened, opened.example)
    for part in reading.parts:
        code = snippets.one_head(reading, entry.folder, part.name, part.layers - 1, part.heads - 1)
        made = run(code, tmp_path / "made", entry.folder)
        seen = reading.weights(part.name, part.layers - 1, part.heads - 1)
        torch.testing.assert_close(made, seen, rtol=1e-5, atol=1e-6)


def test_a_published_pair_comes_back(tmp_path: Path) -> None:
    folder = zoo.bert(tmp_path / "some-bert")
    opened = library.opened_from(folder, "some-bert")
    reading = read(opened, "the cat sat", "he sold the dog")
    code = snippets.one_head(reading, folder, "encoder.self_attn", 1, 2)
    assert str(tmp_path) not in code, "where a model lies is nobody else's business"
    assert "segments" in code
    made = run(code, tmp_path / "made", folder)
    seen = reading.weights("encoder.self_attn", 1, 2)
    torch.testing.assert_close(made, seen, rtol=1e-5, atol=1e-6)


def test_what_adjust_has_changed_is_said_first(small_models: Path) -> None:
    reading = read(library.open_model("letters"), "the cat")
    here = small_models / "letters", "decoder.self_attn", 1, 2
    said = "# The plain weights of layer 1, head 2, before what Adjust does to them."
    assert snippets.one_head(reading, *here, adjusted=True).splitlines()[0] == said
    assert "Adjust" not in snippets.one_head(reading, *here)


EDITS: dict[str, tuple[Edit, ...]] = {
    "letters": (
        AblateHead("decoder.self_attn", 0, 1),
        AblateMlp("decoder.self_attn", 0, "mean"),
        MaskCell("decoder.self_attn", None, 2, 1, False),
        HideKey("decoder.self_attn", 1, 0),
        CutEdge("decoder.self_attn", 1, 1, 2, 0),
        ReplaceToken("decoder.self_attn", 1, 200),
    ),
    "translation": (AblateHead("encoder.self_attn", 0, 1), AblateAttention("decoder.self_attn", 0)),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_pass_with_edits_comes_back_beside_the_pass_as_it_was(
    name: str, small_models: Path, tmp_path: Path
) -> None:
    opened, folder = library.open_model(name), small_models / name
    reading = read(opened, opened.example)
    passed = edited(opened, reading, EDITS[name])
    assert not passed.set_aside
    part = reading.parts[-1]
    here = folder, part.name, part.layers - 1, 1
    code = snippets.two_heads(
        snippets.Head(reading, *here), snippets.Head(passed.reading, *here, passed.in_core)
    )
    made = run(code, tmp_path / "made", folder)
    old, new = (each.weights(*here[1:]) for each in (reading, passed.reading))
    assert (new - old).abs().max() > 1e-3
    torch.testing.assert_close(made, new - old, rtol=1e-4, atol=1e-6)


def test_an_edit_that_no_line_holds_is_said(small_models: Path) -> None:
    opened, folder = library.open_model("letters"), small_models / "letters"
    reading = read(opened, opened.example)
    edits = (PresetMask("decoder.self_attn", 0, "none", 1), AblateHead("decoder.self_attn", 0, 1))
    passed = edited(opened, reading, edits)
    here = folder, "decoder.self_attn", 1, 1
    code = snippets.two_heads(
        snippets.Head(reading, *here), snippets.Head(passed.reading, *here, passed.in_core)
    )
    assert "# Not made here, as they hold tensors of their own: 1 of the edits." in code


def test_heads_of_two_models_over_other_tokens_have_no_difference(small_models: Path) -> None:
    first, second = (library.open_model(name) for name in ("letters", "reviews"))
    code = snippets.two_heads(
        snippets.Head(read(first, "the cat"), small_models / "letters", "decoder.self_attn", 0, 1),
        snippets.Head(
            read(second, "not a white cat eats"),
            small_models / "reviews",
            "encoder.self_attn",
            0,
            1,
        ),
    )
    assert "print(first, second)" in code
    assert "second - first" not in code
