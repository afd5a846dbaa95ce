"""A quantized Llama of SmolLM2's shape, opened out of its GGUF file beside the libraries of others.

Its numbers are random: what is measured is time and memory.
"""

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import gguf
from gguf import GGMLQuantizationType as Kind

from models import load_checkpoint
from models.loading.gguf_header import read_gguf_header
from models.loading.gguf_weights import gguf_weights
from tests.benchmarks.measuring import Row, compared, timed
from tests.benchmarks.published import LLAMA, megabytes, peak_bytes, reference_llama
from tests.parity.llama_cpp import write_gguf

TITLE = "SmolLM2-135M's shape in Q4_1"


@cache
def saved() -> tempfile.TemporaryDirectory[str]:
    """A folder with the file, which goes with the process."""
    made = tempfile.TemporaryDirectory(prefix="gguf-")
    write_gguf(reference_llama(), file_in(made), kind=Kind.Q4_1, more=vocabulary)
    return made


def vocabulary(writer: gguf.GGUFWriter) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([f"t{i}" for i in range(LLAMA.vocab_size)])
    writer.add_token_types([1] * LLAMA.vocab_size)
    writer.add_token_merges(["t 1"])


def file_in(folder: tempfile.TemporaryDirectory[str]) -> Path:
    return Path(folder.name) / "model.gguf"


def opening() -> Iterator[Row]:
    """The numbers alone beside the library's way to them, then the whole model."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    file = file_in(saved())
    numbers = timed(partial(all_numbers, file), partial(by_the_library, file), rounds=3)
    yield compared(f"all numbers of {TITLE}", numbers, "of gguf's reader and dequantize", 0.5)
    model = transformers.LlamaForCausalLM
    theirs = partial(model.from_pretrained, file.parent, gguf_file=file.name)
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
