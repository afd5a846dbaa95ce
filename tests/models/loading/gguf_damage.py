"""A GGUF file byte by byte: a sound one, and any other that its fields can say."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Self

NAME = "model.gguf"
U8, I8, U16, I16, U32, I32, F32, FLAG, TEXT, LIST, U64, I64, F64 = range(13)
FORMS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", FLAG: "B"} | {
    U64: "Q", I64: "q", F64: "d",
}  # fmt: skip
F32_TENSOR, F16_TENSOR, Q4_0_TENSOR, Q8_0_TENSOR = 0, 1, 2, 8
SIZES = {F32_TENSOR: (1, 4), F16_TENSOR: (1, 2), Q4_0_TENSOR: (32, 18), Q8_0_TENSOR: (32, 34)}


def text(value: str | bytes) -> bytes:
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(raw)) + raw


def number(kind: int, value: float) -> bytes:
    return struct.pack("<" + FORMS[kind], value)


def listed(kind: int, values: list[Any]) -> bytes:
    content = (text(value) if kind == TEXT else number(kind, value) for value in values)
    return struct.pack("<IQ", kind, len(values)) + b"".join(content)


Value = tuple[int, bytes]
"""The type of a value and its bytes."""


def whole(value: int, kind: int = U32) -> Value:
    return kind, number(kind, value)


def word(value: str | bytes) -> Value:
    return TEXT, text(value)


def words(*values: str | bytes) -> Value:
    return LIST, listed(TEXT, list(values))


@dataclass(frozen=True)
class Tensor:
    """One tensor: its dimensions in the order of the file, its type, place and bytes."""

    axes: tuple[int, ...]
    kind: int = F32_TENSOR
    offset: int | None = None
    content: bytes | None = None

    def bytes(self) -> bytes:
        """0.01 everywhere unless its content is given; quantized ones are of the scale 1."""
        if self.content is not None:
            return self.content
        per_block, size = SIZES[self.kind]
        count = prod(self.axes) // per_block
        if self.kind == F32_TENSOR:
            return struct.pack("<f", 0.01) * count
        return (struct.pack("<e", 1.0) + b"\1" * (size - 2)) * count


@dataclass(frozen=True)
class Draft:
    """A file before it is written; counts are those that it claims where they are given."""

    values: dict[str, Value]
    tensors: dict[str, Tensor]
    magic: bytes = b"GGUF"
    version: bytes = struct.pack("<I", 3)
    n_tensors: int | None = None
    n_values: int | None = None
    alignment: int = 32
    more_values: list[tuple[bytes, Value]] = field(default_factory=list)
    more_tensors: list[tuple[str, Tensor]] = field(default_factory=list)

    def with_values(self, changes: Mapping[str, Value | None]) -> Self:
        kept = {**self.values, **changes}
        return replace(self, values={k: v for k, v in kept.items() if v is not None})

    def with_tensors(self, changes: Mapping[str, Tensor | None]) -> Self:
        kept = {**self.tensors, **changes}
        return replace(self, tensors={k: v for k, v in kept.items() if v is not None})

    def written(self) -> bytes:
        values = [(text(name), value) for name, value in self.values.items()] + self.more_values
        tensors = [*self.tensors.items(), *self.more_tensors]
        n_tensors = len(tensors) if self.n_tensors is None else self.n_tensors
        n_values = len(values) if self.n_values is None else self.n_values
        head = self.magic + self.version + struct.pack("<QQ", n_tensors, n_values)
        head += b"".join(name + struct.pack("<I", kind) + raw for name, (kind, raw) in values)
        data = b""
        for name, tensor in tensors:
            offset = len(data) if tensor.offset is None else tensor.offset
            head += text(name) + struct.pack("<I", len(tensor.axes))
            head += struct.pack(f"<{len(tensor.axes)}Q", *tensor.axes)
            head += struct.pack("<IQ", tensor.kind, offset)
            data += tensor.bytes()
            data += bytes(-len(data) % self.alignment)
        return head + bytes(-len(head) % self.alignment) + data


def good(width: int = 32, layers: int = 2, letters: str = "abcdefghij") -> Draft:
    """A Llama with a small byte-level vocabulary."""
    tokens = ["<s>", "</s>", *letters, "ab"]
    values = {
        "general.architecture": word("llama"),
        "general.alignment": whole(32),
        "llama.block_count": whole(layers),
        "llama.context_length": whole(16),
        "llama.embedding_length": whole(width),
        "llama.feed_forward_length": whole(64),
        "llama.attention.head_count": whole(4),
        "llama.attention.head_count_kv": whole(2),
        "llama.attention.layer_norm_rms_epsilon": (F32, number(F32, 1e-5)),
        "tokenizer.ggml.model": word("gpt2"),
        "tokenizer.ggml.pre": word("smollm"),
        "tokenizer.ggml.tokens": words(*tokens),
        "tokenizer.ggml.token_type": (LIST, listed(I32, [3, 3] + [1] * (len(tokens) - 2))),
        "tokenizer.ggml.scores": (LIST, listed(F32, [0.0] * len(tokens))),
        "tokenizer.ggml.merges": words("a b"),
        "tokenizer.ggml.bos_token_id": whole(0),
        "tokenizer.ggml.eos_token_id": whole(1),
    }
    table = Tensor((width, len(tokens)))
    tensors = {"token_embd.weight": table, "output_norm.weight": Tensor((width,))}
    for i in range(layers):
        for name, axes in {
            "attn_norm": (width,),
            "ffn_norm": (width,),
            "attn_q": (width, width),
            "attn_k": (width, width // 2),
            "attn_v": (width, width // 2),
            "attn_output": (width, width),
            "ffn_gate": (width, 64),
            "ffn_up": (width, 64),
            "ffn_down": (64, width),
        }.items():
            tensors[f"blk.{i}.{name}.weight"] = Tensor(axes)
    return Draft(values, tensors)
