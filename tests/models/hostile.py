"""What can be done to a folder: each function gives a damage, to be done to a good one."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.models.opening import Damage

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
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
SIZES = {
    "vocab_size": 13,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]} | SIZES
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]} | SIZES


def write_gpt2(folder: Path) -> None:
    """A GPT-2 of the config above, its tensors by their published names."""
    layer = {
        "attn.c_attn": ((12, 36), (36,)),
        "attn.c_proj": ((12, 12), (12,)),
        "mlp.c_fc": ((12, 20), (20,)),
        "mlp.c_proj": ((20, 12), (12,)),
        "ln_1": ((12,), (12,)),
        "ln_2": ((12,), (12,)),
    }
    modules = {f"h.{i}.{name}": shapes for i in range(2) for name, shapes in layer.items()}
    sizes: dict[str, tuple[int, ...]] = {"wte.weight": (13, 12), "wpe.weight": (16, 12)}
    for name, (weight, bias) in {**modules, "ln_f": ((12,), (12,))}.items():
        sizes |= {f"{name}.weight": weight, f"{name}.bias": bias}
    generator = torch.Generator().manual_seed(0)
    values = {f"transformer.{n}": torch.randn(s, generator=generator) for n, s in sizes.items()}
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(GPT2))
    save_file(values, folder / WEIGHTS)


def all_of(*damages: Damage) -> Damage:
    def damage(folder: Path) -> None:
        for one in damages:
            one(folder)

    return damage


def holds(name: str, content: bytes | str) -> Damage:
    """A file with another content."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(content)


def config(**changes: Any) -> Damage:
    """Other values in the config that is there."""

    def damage(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return damage


def renamed(old: str, new: str) -> Damage:
    return lambda folder: (folder / old).rename(folder / new)


def folder_for(name: str) -> Damage:
    return all_of(without(name), lambda folder: (folder / name).mkdir())


def pipe_for(name: str) -> Damage:
    return all_of(without(name), lambda folder: os.mkfifo(folder / name))


def link_for(name: str, target: str) -> Damage:
    return all_of(without(name), lambda folder: (folder / name).symlink_to(target))


def moved_out(name: str) -> Damage:
    """The file lies beside the folder, and a link leads there."""
    out = f"../outside-{name}"
    return all_of(renamed(name, out), lambda folder: (folder / name).symlink_to(out))


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Damage:
    """Other tensors, in a sound file."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        change(values)
        save_file({n: v.contiguous() for n, v in values.items()}, folder / WEIGHTS)

    return damage


def with_tensor(name: str, tensor: Tensor) -> Damage:
    return tensors(lambda values: values.update({name: tensor}))


def with_number(name: str, number: float, dtype: torch.dtype = torch.float32) -> Damage:
    """One number of one tensor."""

    def change(values: dict[str, Tensor]) -> None:
        values[name] = values[name].to(dtype)
        values[name].view(-1)[-1] = number

    return tensors(change)


def packed(header: bytes, numbers: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + numbers


def unpacked(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def raw_header(header: bytes | str, length: int | None = None) -> Damage:
    """A file that is a header and nothing else."""
    header = header.encode() if isinstance(header, str) else header
    return holds(WEIGHTS, packed(header, length=length))


def lying(change: Callable[[Header], object], more: bytes = b"") -> Damage:
    """Another header over the same numbers."""

    def damage(folder: Path) -> None:
        header, numbers = unpacked((folder / WEIGHTS).read_bytes())
        change(header)
        (folder / WEIGHTS).write_bytes(packed(json.dumps(header).encode(), numbers + more))

    return damage


def truncated(left: Callable[[int], int]) -> Damage:
    def damage(folder: Path) -> None:
        size = (folder / WEIGHTS).stat().st_size
        os.truncate(folder / WEIGHTS, left(size))

    return damage


def sharded(change: Callable[[Path, dict[str, str]], object] = lambda *_: None) -> Damage:
    """The weights in two files and an index; `change` may move files and edit the index."""

    def damage(folder: Path) -> None:
        values = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        places: dict[str, str] = {}
        for i in (1, 2):
            half = sorted(values)[i - 1 :: 2]
            save_file({name: values[name] for name in half}, folder / shard(i))
            places |= dict.fromkeys(half, shard(i))
        change(folder, places)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return damage


def shard(i: int) -> str:
    return f"model-0000{i}-of-00002.safetensors"


def mapped(name: str, file: Any) -> Damage:
    """An index that puts one tensor elsewhere."""
    return sharded(lambda _, places: places.update({name: file}))
