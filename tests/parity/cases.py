"""Tiny published models of every family: no two of their sizes can be taken for each other."""

import copy
from collections.abc import Mapping
from typing import Any

import transformers as hf

from tests.parity.families import Case

Sizes = dict[str, Any]
TOKENS: Sizes = {"vocab_size": 53, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LAYERS: Sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 37}
SIZES = TOKENS | LAYERS | {"hidden_size": 64, "intermediate_size": 84, "rms_norm_eps": 1e-4}
"""A width whose root is whole, so that Gemma's factor is the same in 32 bits and in 64."""
GROUPED = SIZES | {"num_key_value_heads": 2}
WIDE_HEADS = GROUPED | {"head_dim": 10}
GPT2 = TOKENS | {
    "n_embd": 64, "n_layer": 3, "n_head": 4, "n_inner": 84, "n_positions": 37,
    "layer_norm_epsilon": 1e-3,
}  # fmt: skip
"""With an epsilon that is not the default: a config that is not read shows."""
GPTJ = GPT2 | {"rotary_dim": 6}
NEO = TOKENS | {
    "hidden_size": 64, "num_layers": 3, "num_heads": 4, "intermediate_size": 84,
    "max_position_embeddings": 37, "attention_types": [[["local", "global"], 1], [["local"], 1]],
}  # fmt: skip
OPT = TOKENS | LAYERS | {"hidden_size": 64, "ffn_dim": 84}
BLOOM = TOKENS | {"hidden_size": 36, "n_layer": 3, "n_head": 4}
BERT: Sizes = LAYERS | {
    "vocab_size": 53, "hidden_size": 24, "intermediate_size": 40, "num_labels": 5,
    "pad_token_id": 0, "layer_norm_eps": 1e-4,
}  # fmt: skip
ROBERTA = BERT | {
    "pad_token_id": 3, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}  # fmt: skip
DISTILBERT: Sizes = {
    "vocab_size": 53, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40,
    "max_position_embeddings": 37, "num_labels": 5,
}  # fmt: skip
BART: Sizes = {
    "vocab_size": 53, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40, "max_position_embeddings": 37,
}  # fmt: skip
MARIAN = BART | {
    "pad_token_id": 52, "decoder_start_token_id": 52, "eos_token_id": 0,
    "activation_function": "swish", "scale_embedding": True,
}  # fmt: skip
T5: Sizes = {
    "vocab_size": 53, "d_model": 24, "d_kv": 7, "d_ff": 40, "num_layers": 3,
    "num_decoder_layers": 2, "num_heads": 4, "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 9, "decoder_start_token_id": 0,
}  # fmt: skip
V1_1 = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

WINDOW: Sizes = {"sliding_window": 5}
"""Shorter than the texts."""
BY_LAYER: Sizes = {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
CAPS: Sizes = {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.5}
NO_CAPS: Sizes = dict.fromkeys(CAPS)
LM, CLASSIFIER, MASKED = "LMHeadModel", "ForSequenceClassification", "ForMaskedLM"
WRITER = "ForConditionalGeneration"
LABELS: Sizes = {"head": CLASSIFIER, "num_labels": 5}
SINUSOIDS = ("*embed_positions.weight",)
POOLER = ("*pooler.dense.*",)
UNSCALED = 0.1
"""Noise for scores that are not divided by √d: more would leave one weight of 1 in every row."""


OF_THE_CASE = {"shards", "exact", "by", "fixed", "unused"}


def tiny(name: str, model: str, sizes: Sizes, head: str = "ForCausalLM", **more: Any) -> Case:
    """The case of `{model}{head}` with these sizes, and what else it or its config says."""
    about = {key: more.pop(key) for key in OF_THE_CASE & more.keys()}
    config = getattr(hf, model + "Config")(**(sizes | more))
    return Case(name, config, getattr(hf, model + head), **about)


def published(name: str, model: str, values: Mapping[str, Any]) -> Case:
    """A decoder by its config.json as others wrote it, read by the reference too, from a copy:
    it completes what it is handed."""
    config = getattr(hf, model + "Config")
    reference = getattr(hf, model + "ForCausalLM")
    said = {"model_type": config.model_type, "architectures": [reference.__name__]} | dict(values)
    return Case(name, config.from_dict(copy.deepcopy(said)), reference, published=said)


DECODERS = [
    tiny("gpt2", "GPT2", GPT2, LM, shards=True),
    tiny("gpt2, wide by default", "GPT2", GPT2, LM, n_inner=None),
    tiny("gpt2, own output", "GPT2", GPT2, LM, tie_word_embeddings=False),
    tiny("gpt2, bare", "GPT2", GPT2, "Model", activation_function="gelu"),
    tiny("gpt2, classes", "GPT2", GPT2, **LABELS),
    tiny("llama", "Llama", GROUPED, shards=True),
    tiny("llama, biases", "Llama", SIZES, attention_bias=True, mlp_bias=True),
    tiny("llama, tied, wide heads", "Llama", WIDE_HEADS, tie_word_embeddings=True),
    tiny("llama, bare", "Llama", GROUPED, "Model"),
    tiny("llama, classes", "Llama", GROUPED, **LABELS),
    tiny("mistral", "Mistral", GROUPED, **WINDOW),
    tiny("mistral, no window", "Mistral", WIDE_HEADS, sliding_window=None),
    tiny("qwen2", "Qwen2", GROUPED, **WINDOW),
    tiny(
        "qwen2, windows from the second layer on", "Qwen2", GROUPED, **WINDOW,
        use_sliding_window=True, max_window_layers=1,
    ),
    tiny("qwen3", "Qwen3", WIDE_HEADS),
    tiny(
        "qwen3, windows by layer, biases", "Qwen3", WIDE_HEADS, **WINDOW, **BY_LAYER,
        attention_bias=True, use_sliding_window=True,
    ),
    tiny("gemma", "Gemma", WIDE_HEADS),
    tiny("gemma, gelu", "Gemma", WIDE_HEADS, hidden_act="gelu", attention_bias=True),
    tiny("gemma, classes", "Gemma", WIDE_HEADS, **LABELS),
    tiny("gemma2", "Gemma2", WIDE_HEADS, **WINDOW, **CAPS, query_pre_attn_scalar=7),
    tiny(
        "gemma2, no caps, windows by layer", "Gemma2", WIDE_HEADS, **WINDOW, **NO_CAPS, **BY_LAYER
    ),
    tiny("phi3", "Phi3", GROUPED, **WINDOW),
    tiny("phi3, partly turned", "Phi3", GROUPED, partial_rotary_factor=0.4),
    tiny("gpt_neox", "GPTNeoX", SIZES, rotary_pct=0.4),
    tiny(
        "gpt_neox, one after the other", "GPTNeoX", SIZES, use_parallel_residual=False,
        attention_bias=False, rotary_pct=1.0, rotary_emb_base=500,
    ),
    tiny("gpt_neox, classes", "GPTNeoX", SIZES, **LABELS),
    tiny("gptj", "GPTJ", GPTJ),
    tiny("gptj, classes", "GPTJ", GPTJ, **LABELS),
    tiny("opt", "OPT", OPT),
    tiny("opt, post-norm, no biases", "OPT", OPT, do_layer_norm_before=False, enable_bias=False),
    tiny("opt, no last norm", "OPT", OPT, _remove_final_layer_norm=True),
    tiny("opt, classes", "OPT", OPT, **LABELS),
    tiny("bloom", "Bloom", BLOOM, exact=False),
    tiny("bloom, six heads", "Bloom", BLOOM, n_head=6, exact=False),
    tiny("bloom, classes", "Bloom", BLOOM, **LABELS, exact=False),
    tiny("phi", "Phi", GROUPED),
    tiny("phi, classes", "Phi", GROUPED, partial_rotary_factor=0.4, **LABELS),
    tiny("stablelm", "StableLm", GROUPED, use_qkv_bias=True),
    tiny("stablelm, parallel", "StableLm", GROUPED, use_parallel_residual=True),
    tiny("starcoder2", "Starcoder2", GROUPED, **WINDOW),
    tiny("starcoder2, no biases", "Starcoder2", GROUPED, use_bias=False),
    tiny("gpt_bigcode", "GPTBigCode", GPT2),
    tiny("gpt_bigcode, keys of their own", "GPTBigCode", GPT2, multi_query=False),
    tiny("gpt_neo", "GPTNeo", NEO, window_size=5, by=UNSCALED),
    tiny("gpt_neo, all of the text", "GPTNeo", NEO, by=UNSCALED, attention_types=[[["global"], 3]]),
    tiny("gpt_neo, classes", "GPTNeo", NEO, window_size=5, by=UNSCALED, **LABELS),
    tiny("biogpt", "BioGpt", SIZES),
    tiny("biogpt, not scaled", "BioGpt", SIZES, scale_embedding=False, hidden_act="relu"),
]  # fmt: skip

ENCODERS = [
    tiny("bert, masked", "Bert", BERT, MASKED),
    tiny("bert, untied", "Bert", BERT, MASKED, tie_word_embeddings=False, shards=True),
    tiny("bert, classes", "Bert", BERT, CLASSIFIER),
    tiny("bert, bare", "Bert", BERT, "Model", hidden_act="gelu_new", unused=POOLER),
    tiny(
        "bert, pretraining", "Bert", BERT, "ForPreTraining", hidden_act="relu",
        unused=(*POOLER, "cls.seq_relationship.*"),
    ),
    tiny("distilbert, masked", "DistilBert", DISTILBERT, MASKED),
    tiny("distilbert, classes", "DistilBert", DISTILBERT, CLASSIFIER),
    tiny("distilbert, sinusoids", "DistilBert", DISTILBERT, "Model", sinusoidal_pos_embds=True),
    tiny("roberta, masked", "Roberta", ROBERTA, MASKED),
    tiny("roberta, classes", "Roberta", ROBERTA, CLASSIFIER),
    tiny("roberta, two segments", "Roberta", ROBERTA, "Model", type_vocab_size=2, unused=POOLER),
    tiny("xlm-roberta", "XLMRoberta", ROBERTA, MASKED),
    tiny("camembert", "Camembert", ROBERTA, CLASSIFIER),
]  # fmt: skip

ENCODER_DECODERS = [
    tiny("marian", "Marian", MARIAN, "MTModel", fixed=SINUSOIDS),
    tiny(
        "marian, two vocabularies", "Marian", MARIAN, "MTModel", fixed=SINUSOIDS,
        share_encoder_decoder_embeddings=False, decoder_vocab_size=59,
    ),
    tiny("marian, bare", "Marian", MARIAN, "Model", fixed=SINUSOIDS, unused=SINUSOIDS),
    tiny("bart", "Bart", BART, WRITER, shards=True),
    tiny(
        "bart, nothing shared", "Bart", BART, WRITER, tie_word_embeddings=False,
        activation_function="relu", unused=("model.shared.weight",),
    ),
    tiny("bart, a wider encoder", "Bart", BART, WRITER, encoder_ffn_dim=44),
    tiny("bart, bare", "Bart", BART, "Model", scale_embedding=True),
    tiny("mbart", "MBart", BART, WRITER, scale_embedding=True, decoder_start_token_id=2),
    tiny("plbart", "PLBart", BART, WRITER),
    tiny(
        "pegasus", "Pegasus", BART, WRITER, scale_embedding=True, activation_function="relu",
        fixed=SINUSOIDS, unused=SINUSOIDS,
    ),
    tiny("blenderbot", "Blenderbot", BART, WRITER),
    tiny("t5", "T5", T5, WRITER),
    tiny("t5 v1.1", "T5", V1_1, WRITER, shards=True),
    tiny("t5, gated silu", "T5", T5, "EncoderModel", feed_forward_proj="gated-silu"),
    tiny("mt5", "MT5", V1_1, WRITER),
]  # fmt: skip

CASES = {one.name: one for one in (*DECODERS, *ENCODERS, *ENCODER_DECODERS)}
