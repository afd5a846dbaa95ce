"""A quantized Llama of SmolLM2's shape, opened out of its GGUF file beside the libraries of others.

Its numbers are random: what is measured is time and memory.
"""

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import gguf
import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as Kind

from models import load_checkpoint
from models.loading.gguf_header import read_gguf_header
from models.loading.gguf_weights import gguf_weights
from tests.benchmarks.measuring import Row, compared, timed
from tests.benchmarks.published import megabytes, peak_bytes

TITLE = "SmolLM2-135M's shape in Q4_1"
WIDTH, INNER, LAYERS, HEADS, KEYS, VOCABULARY = 576, 1536, 30, 9, 3, 49_152


@cache
def saved() -> tempfile.TemporaryDirectory[str]:
    """A folder with the file, which goes with the process."""
    made = tempfile.TemporaryDirectory(prefix="gguf-")
    writer = gguf.GGUFWriter(file_in(made), "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100_000)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"t{i}" for i in range(VOCABULARY)])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges(["t 1"])
    draw = np.random.default_rng(0)
    matrix(writer, draw, "token_embd", VOCABULARY, WIDTH, Kind.Q8_0)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    keys = WIDTH // HEADS * KEYS
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{name}.weight", np.ones(WIDTH, np.float32))
        for name, rows, columns in (
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", keys, WIDTH),
            ("attn_v", keys, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ):
            matrix(writer, draw, f"blk.{i}.{name}", rows, columns, Kind.Q4_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return made


def matrix(
    writer: gguf.GGUFWriter,
    draw: np.random.Generator,
    name: str,
    rows: int,
    columns: int,
    kind: Kind,
) -> None:
    """Random blocks with scales of 0.01."""
    per_block, size = GGML_QUANT_SIZES[kind]
    blocks = draw.integers(256, size=(rows * columns // per_block, size), dtype=np.uint8)
    scales = 2 if kind == Kind.Q8_0 else 4
    blocks[:, :scales] = np.full(scales // 2, 0.01, np.float16).view(np.uint8)
    writer.add_tensor(f"{name}.weight", blocks.reshape(rows, -1), raw_dtype=kind)


def file_in(folder: tempfile.TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "model.gguf"


def opening() -> Iterator[Row]:
    """The numbers alone beside the library's way to them, then the whole model."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    file = file_in(saved())
    numbers = timed(partial(all_numbers, file), partial(by_the_library, file), rounds=3)
    yield compared(f"all numbers of {TITLE}", numbers, "of gguf's reader and dequantize", 0.5)
    theirs = partial(
        transformers.LlamaForCausalLM.from_pretrained, file.parent, gguf_file=file.name
    )
    whole = timed(partial(load_checkpoint, file), theirs, rounds=3)
    yield compared(f"opening {TITLE}", whole, "of transformers gguf_file", 0.5)
    peak, weights = peak_bytes(partial(load_checkpoint, file)), 4 * 134_515_008
    yield megabytes(f"memory to open {TITLE}", peak, " at its peak", weights, "of weights", 1.6)


def all_numbers(file: Path) -> None:
    weights = gguf_weights(read_gguf_header(file))
    with weights.open() as read:
        for name in weights.names:
            read(name)


def by_the_library(file: Path) -> None:
    for tensor in gguf.GGUFReader(file).tensors:
        gguf.dequantize(tensor.data, tensor.tensor_type)
