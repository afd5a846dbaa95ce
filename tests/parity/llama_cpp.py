"""A published model as llama.cpp's conversion scripts write it into a GGUF file.

Names come from the `gguf` library's own tables; what the scripts do to the numbers is
written here once more, after the scripts and not after our reader.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import torch
from gguf import MODEL_ARCH as Arch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from gguf.quants import quantize
from torch import Tensor

Numbers = Iterator[tuple[str, Tensor]]
More = Callable[[GGUFWriter], object]


def permuted(weights: Tensor, heads: int) -> Tensor:
    """`LlamaModel.permute`."""
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def llama3_factors(config: Any) -> Tensor:
    """`LlamaModel.generate_extra_tensors`."""
    rope = config.rope_parameters
    width = config.head_dim or config.hidden_size // config.num_attention_heads
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for power in range(0, width, 2):
        waves = 2 * math.pi * rope["rope_theta"] ** (power / width)
        old = rope["original_max_position_embeddings"]
        smooth = (old / waves - low) / (high - low)
        mixed = 1 / ((1 - smooth) / rope["factor"] + smooth)
        factors.append(1 if waves < old / high else rope["factor"] if waves > old / low else mixed)
    return torch.tensor(factors, dtype=torch.float32)


def family_values(writer: GGUFWriter, config: Any) -> None:
    """What the script of one family adds to what is usual, or writes in its place."""
    match config.model_type:
        case "llama" | "mistral":
            writer.add_vocab_size(config.vocab_size)
            width = config.head_dim or config.hidden_size // config.num_attention_heads
            writer.add_rope_dimension_count(width)
        case "gemma" | "gemma2":
            for name in ("attn_logit_softcapping", "final_logit_softcapping", "sliding_window"):
                if (value := getattr(config, name, None)) is not None:
                    getattr(writer, f"add_{name}")(value)
        case "gpt2" | "gptj" | "gpt_bigcode" as kind:
            writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
            if kind == "gptj":  # there is no script: the library has the names alone
                writer.add_rope_dimension_count(config.rotary_dim)
            if kind == "gpt_bigcode":
                writer.add_head_count_kv(1)
        case "gpt_neox" | "phi" | "phi3" | "stablelm" as kind:
            part = config.rope_parameters.get("partial_rotary_factor", 1.0)
            width = config.hidden_size // config.num_attention_heads
            writer.add_rope_dimension_count(int(part * width))
            if kind in ("gpt_neox", "stablelm"):
                writer.add_parallel_residual(kind == "stablelm" or config.use_parallel_residual)
            if kind == "phi3":
                writer.add_rope_scaling_orig_ctx_len(config.max_position_embeddings)
                writer.add_sliding_window(config.sliding_window or 0)
        case "bloom":
            writer.add_context_length(getattr(config, "seq_length", config.hidden_size))
            writer.add_feed_forward_length(4 * config.hidden_size)
            writer.add_head_count_kv(config.n_head)
        case "bert" | "distilbert" | "roberta" as kind:
            writer.add_causal_attention(False)
            writer.add_token_type_count(getattr(config, "type_vocab_size", 1))
            if kind == "distilbert":
                writer.add_layer_norm_eps(1e-12)
            if kind == "roberta":
                writer.add_context_length(config.max_position_embeddings - config.pad_token_id - 1)
        case "t5" | "mt5":
            writer.add_context_length(512)
            if config.is_encoder_decoder:
                writer.add_decoder_block_count(config.num_decoder_layers)
                writer.add_decoder_start_token_id(config.decoder_start_token_id)
            writer.add_key_length(config.d_kv)
            writer.add_value_length(config.d_kv)
            writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
            writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)


AFTER_THE_LAST_LAYER = ("pooler.", "cls.", "vocab_", "lm_head.")
"""What the files of BERT leave out."""


def family_tensors(name: str, tensor: Tensor, config: Any) -> Numbers:
    """What becomes of one of the published tensors: nothing, itself, or it in another order."""
    match config.model_type:
        case "llama" | "mistral":
            if name.endswith(("q_proj.weight", "q_proj.bias")):
                tensor = permuted(tensor, config.num_attention_heads)
            if name.endswith(("k_proj.weight", "k_proj.bias")):
                tensor = permuted(tensor, config.num_key_value_heads)
        case "gemma" | "gemma2" if name.endswith("norm.weight"):
            tensor = tensor + 1
        case "gpt2" if name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            tensor = tensor.T
        case "gpt_neox" | "bloom":  # first all queries, then all keys, then all values
            name = name.removeprefix("transformer.")
            if "query_key_value" in name:
                heads, width = config.num_attention_heads, config.hidden_size
                by_head = tensor.reshape(heads, 3, width // heads, *tensor.shape[1:])
                tensor = torch.cat([by_head[:, i].reshape(-1, *tensor.shape[1:]) for i in range(3)])
        case "bert" | "distilbert" | "roberta" as kind:
            name = name.removeprefix(f"{kind}.")
            if name.startswith(AFTER_THE_LAST_LAYER) or name.endswith("position_ids"):
                return
            if kind == "roberta" and name == "embeddings.position_embeddings.weight":
                tensor = tensor[config.pad_token_id + 1 :]
        case "t5" | "mt5" if name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
            return
    yield name, tensor


ARCHITECTURES = {
    **dict.fromkeys(("llama", "mistral"), Arch.LLAMA),
    **dict.fromkeys(("bert", "distilbert", "roberta"), Arch.BERT),
    **dict.fromkeys(("t5", "mt5"), Arch.T5),
    **{name: Arch[name.upper()] for name in "gemma gemma2 phi3 gpt2 gptj bloom".split()},
    **{name: Arch[name.upper()] for name in "qwen2 qwen3 starcoder2 stablelm".split()},
}
ARCHITECTURES |= {"gpt_bigcode": Arch.STARCODER, "gpt_neox": Arch.GPTNEOX, "phi": Arch.PHI2}
"""By the `model_type` of the published config."""


def write_gguf(
    reference: Any, file: Path, *, kind: Kind = Kind.F32, more: More = lambda writer: None
) -> None:
    """`more` adds metadata, such as a tokenizer. Matrices whose rows fit are stored as `kind`."""
    config = reference.config
    arch = ARCHITECTURES[config.model_type]
    if arch == Arch.T5 and not config.is_encoder_decoder:
        arch = Arch.T5ENCODER
    writer = GGUFWriter(file, gguf.MODEL_ARCH_NAMES[arch])
    writer.add_type(gguf.GGUFType.MODEL)
    usual_values(writer, config)
    family_values(writer, config)
    more(writer)
    for name, tensor in tensors_of(reference, arch):
        matrix = tensor.dim() == 2 and tensor.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0
        as_kind = kind if matrix else Kind.F32
        numbers = tensor.detach().float().contiguous().numpy()
        writer.add_tensor(name, quantize(numbers, as_kind), raw_dtype=as_kind)
    if (getattr(config, "rope_parameters", None) or {}).get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(config).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tensors_of(reference: Any, arch: Arch) -> Numbers:
    """What the file holds, by llama.cpp's names. A tied output is not written twice."""
    config = reference.config
    layers = max(config.num_hidden_layers, getattr(config, "num_decoder_layers", None) or 0)
    table = gguf.get_tensor_name_map(arch, layers)
    state: Mapping[str, Tensor] = reference.state_dict()
    is_tied = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
    is_tied &= config.model_type != "mt5"  # the reference ties what no published file does
    tied = reference._tied_weights_keys or () if is_tied else ()
    for name, tensor in state.items():
        for theirs, numbers in () if name in tied else family_tensors(name, tensor, config):
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
        (("intermediate_size", "n_inner", "d_ff", "hidden_dim"), writer.add_feed_forward_length),
        (("num_attention_heads", "n_head", "num_heads"), writer.add_head_count),
        (("num_key_value_heads",), writer.add_head_count_kv),
        (("rms_norm_eps",), writer.add_layer_norm_rms_eps),
        (("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"), writer.add_layer_norm_eps),
        (("head_dim",), writer.add_key_length),
        (("head_dim",), writer.add_value_length),
    ):
        if (value := first(*names)) is not None:
            add(value)
    for role in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if (token := getattr(config, role, None)) is not None:
            getattr(writer, f"add_{role}")(token)
    scaling_values(writer, getattr(config, "rope_parameters", None) or {})


def scaling_values(writer: GGUFWriter, rope: Mapping[str, Any]) -> None:
    """`llama3` is written as numbers: see `llama3_factors`."""
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    kinds = {"linear": gguf.RopeScalingType.LINEAR, "yarn": gguf.RopeScalingType.YARN}
    if (kind := kinds.get(rope.get("rope_type", ""))) is None:
        return
    writer.add_rope_scaling_type(kind)
    writer.add_rope_scaling_factor(rope["factor"])
    if kind == gguf.RopeScalingType.YARN:
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        for name, add in (
            ("attention_factor", writer.add_rope_scaling_yarn_attn_factor),
            ("beta_fast", writer.add_rope_scaling_yarn_beta_fast),
            ("beta_slow", writer.add_rope_scaling_yarn_beta_slow),
        ):
            if rope.get(name) is not None:
                add(rope[name])
