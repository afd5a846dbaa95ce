"""A small GPT-2 folder, and the bytes of its files, to be damaged."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
Damage = Callable[[Path], object]
Cases = dict[str, tuple[Damage, str]]
"""What is done to a good folder, and words of the sentence that says so."""
Header = dict[str, Any]

UGLY = "a\n\x1b[2J\u202e\ud800" + "x" * 100_000
"""A name that would break a line, clear a terminal, turn the reading around and fill a page."""
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n"
PAGE = "\n<!DOCTYPE html><html><body>Sign in</body></html>"

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 13,
    "n_embd": 12,
    "n_layer": 2,
    "n_head": 3,
    "n_inner": 20,
    "n_positions": 16,
    "bos_token_id": 1,
    "eos_token_id": 1,
}


def gpt2_tensors() -> dict[str, Tensor]:
    """Those of a GPT-2 of the config above, by their published names."""
    sizes: dict[str, tuple[int, ...]] = {"wte.weight": (13, 12), "wpe.weight": (16, 12)}
    widths = {"attn.c_attn": (12, 36), "attn.c_proj": (12, 12)}
    widths |= {"mlp.c_fc": (12, 20), "mlp.c_proj": (20, 12)}
    for i in range(2):
        for name, (read, written) in widths.items():
            sizes[f"h.{i}.{name}.weight"] = (read, written)
            sizes[f"h.{i}.{name}.bias"] = (written,)
    for name in ("h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"):
        sizes |= {f"{name}.weight": (12,), f"{name}.bias": (12,)}
    generator = torch.Generator().manual_seed(0)
    return {
        f"transformer.{name}": torch.randn(size, generator=generator)
        for name, size in sizes.items()
    }


def write_gpt2(folder: Path) -> None:
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(GPT2))
    save_file(gpt2_tensors(), folder / WEIGHTS)


def packed(header: bytes, numbers: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + numbers


def unpacked(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def shard(i: int) -> str:
    return f"model-0000{i}-of-00002.safetensors"


def sharded(change: Callable[[Path, dict[str, Any]], object] = lambda *_: None) -> Damage:
    """The weights in two files and an index; `change` may move files and edit the index."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        names = sorted(values)
        places: dict[str, Any] = {}
        for i, half in enumerate((names[::2], names[1::2]), 1):
            save_file({name: values[name] for name in half}, folder / shard(i))
            places |= dict.fromkeys(half, shard(i))
        change(folder, places)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return damage
