"""A published model as llama.cpp's conversion scripts write it into a GGUF file.

Names come from the `gguf` library's own tables; what the scripts do to the numbers is
written here once more, after the scripts and not after our reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from gguf.quants import quantize
from torch import Tensor

Numbers = Iterator[tuple[str, Tensor]]


@dataclass(frozen=True)
class Script:
    """What the conversion script of one family does beyond what all of them do."""

    arch: gguf.MODEL_ARCH
    values: Callable[[GGUFWriter, Any], object] = lambda writer, config: None
    tensors: Callable[[str, Tensor, Any], Numbers] = lambda name, tensor, config: iter(
        [(name, tensor)]
    )


def permuted(weights: Tensor, heads: int) -> Tensor:
    """`LlamaModel.permute`."""
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def llama_values(writer: GGUFWriter, config: Any) -> None:
    writer.add_vocab_size(config.vocab_size)
    head = getattr(config, "head_dim", None)
    writer.add_rope_dimension_count(head or config.hidden_size // config.num_attention_heads)


def llama_tensors(name: str, tensor: Tensor, config: Any) -> Numbers:
    if name.endswith(("q_proj.weight", "q_proj.bias")):
        tensor = permuted(tensor, config.num_attention_heads)
    if name.endswith(("k_proj.weight", "k_proj.bias")):
        tensor = permuted(tensor, config.num_key_value_heads)
    yield name, tensor


SCRIPTS = {
    "llama": Script(gguf.MODEL_ARCH.LLAMA, llama_values, llama_tensors),
}
"""By the `model_type` of the published config."""


def write_gguf(
    reference: Any,
    file: Path,
    *,
    kind: Kind = Kind.F32,
    more: Callable[[GGUFWriter], object] = lambda writer: None,
) -> None:
    """`more` adds metadata, such as a tokenizer. Matrices that fit are stored as `kind`."""
    config = reference.config
    script = SCRIPTS[config.model_type]
    writer = GGUFWriter(file, gguf.MODEL_ARCH_NAMES[script.arch])
    writer.add_type(gguf.GGUFType.MODEL)
    usual_values(writer, config)
    script.values(writer, config)
    more(writer)
    for name, tensor in tensors_of(reference, script):
        matrix = tensor.dim() == 2 and tensor.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0
        as_kind = kind if matrix else Kind.F32
        numbers = tensor.detach().float().contiguous().numpy()
        writer.add_tensor(name, quantize(numbers, as_kind), raw_dtype=as_kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors_of(reference: Any, script: Script) -> Numbers:
    """What the file holds, by llama.cpp's names. A tied output is not written twice."""
    config = reference.config
    layers = config.num_hidden_layers
    table = gguf.get_tensor_name_map(script.arch, layers)
    state: Mapping[str, Tensor] = reference.state_dict()
    tied = getattr(config, "tie_word_embeddings", False)
    for name, tensor in state.items():
        if tied and name in (reference._tied_weights_keys or ()):
            continue
        for theirs, numbers in script.tensors(name, tensor, config):
            found = table.get_name(theirs, try_suffixes=(".weight", ".bias"))
            assert found is not None, theirs
            yield found, numbers


def usual_values(writer: GGUFWriter, config: Any) -> None:
    """`TextModel.set_gguf_parameters`, with the names that configs have in common."""

    def first(*names: str) -> Any:
        return next((getattr(config, n) for n in names if getattr(config, n, None)), None)

    writer.add_block_count(config.num_hidden_layers)
    for names, add in (
        (("max_position_embeddings", "n_positions", "n_ctx"), writer.add_context_length),
        (("hidden_size", "n_embd", "d_model"), writer.add_embedding_length),
        (("intermediate_size", "n_inner", "d_ff"), writer.add_feed_forward_length),
        (("num_attention_heads", "n_head", "num_heads"), writer.add_head_count),
        (("num_key_value_heads",), writer.add_head_count_kv),
        (("rms_norm_eps",), writer.add_layer_norm_rms_eps),
        (("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"), writer.add_layer_norm_eps),
        (("head_dim",), writer.add_key_length),
        (("head_dim",), writer.add_value_length),
    ):
        if (value := first(*names)) is not None:
            add(value)
    for token, add_token in (
        (config.bos_token_id, writer.add_bos_token_id),
        (config.eos_token_id, writer.add_eos_token_id),
        (config.pad_token_id, writer.add_pad_token_id),
    ):
        if token is not None:
            add_token(token)
    rope = getattr(config, "rope_parameters", None) or {}
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
