"""What can be done to a folder: each function gives a damage, to be done to a good one."""

import json
import os
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
"""What is done, and words of the sentence that says so."""
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
BERT = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "vocab_size": 13,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
}
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 13,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
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


def all_of(*damages: Damage) -> Damage:
    def damage(folder: Path) -> None:
        for one in damages:
            one(folder)

    return damage


def text(name: str, content: str) -> Damage:
    return lambda folder: (folder / name).write_text(content, "utf-8")


def data(name: str, content: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content)


def config(**changes: Any) -> Damage:
    """Other values in the config that is there."""

    def damage(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def value(field: str, json_text: str) -> Damage:
    """A value in the config that is written as it stands, be it JSON or not."""

    def damage(folder: Path) -> None:
        path = folder / CONFIG
        start = path.read_text().rstrip().removesuffix("}").rstrip()
        values = json.loads(path.read_text())
        if field in values:
            del values[field]
            start = json.dumps(values).removesuffix("}")
        path.write_text(f'{start}, "{field}": {json_text}}}')

    return damage


def replaced(values: Header) -> Damage:
    return text(CONFIG, json.dumps(values))


def without(*names: str) -> Damage:
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

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

    def damage(folder: Path) -> None:
        (folder / name).rename(folder.parent / f"outside-{name}")
        (folder / name).symlink_to(f"../outside-{name}")

    return damage


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


def as_type(name: str, dtype: torch.dtype) -> Damage:
    return tensors(lambda values: values.update({name: values[name].to(dtype)}))


def packed(header: bytes, numbers: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + numbers


def unpacked(content: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def raw_header(header: bytes | str, length: int | None = None) -> Damage:
    """A file that is a header and nothing else."""
    header = header.encode() if isinstance(header, str) else header
    return data(WEIGHTS, packed(header, length=length))


def lying(change: Callable[[Header], object], more: bytes = b"") -> Damage:
    """Another header over the same numbers."""

    def damage(folder: Path) -> None:
        header, numbers = unpacked((folder / WEIGHTS).read_bytes())
        change(header)
        (folder / WEIGHTS).write_bytes(packed(json.dumps(header).encode(), numbers + more))

    return damage


def entry(name: str, **changes: Any) -> Damage:
    """Other words about one tensor."""
    return lying(lambda header: header[name].update(changes))


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
        names = sorted(values)
        halves = names[::2], names[1::2]
        places: dict[str, str] = {}
        for i, half in enumerate(halves, 1):
            file = shard(i)
            save_file({name: values[name] for name in half}, folder / file)
            places |= dict.fromkeys(half, file)
        change(folder, places)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return damage


def shard(i: int) -> str:
    return f"model-0000{i}-of-00002.safetensors"


def mapped(name: str, file: Any) -> Damage:
    """An index that puts one tensor elsewhere."""
    return sharded(lambda _, places: places.update({name: file}))
