"""The code panel: what it shows runs as pasted and gives the numbers on screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from explorer import library, snippets
from explorer.library import ROOT
from explorer.reading import read
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
