"""Every published decoder is the reference: streams, attention weights, logits, writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parity.comparing import is_the_reference
from tests.parity.decoders import BLOOM, GPT2, GPTJ, GROUPED, NEO, OPT, SIZES, WINDOW, decoder
from tests.parity.families import Case, open_pair

BY_LAYER = ["full_attention", "sliding_attention", "full_attention"]
CLASSES: dict[str, Any] = {"head": "ForSequenceClassification", "num_labels": 5}
UNSCALED = 0.1
"""Noise for scores that are not divided by √d: more would leave one weight of 1 in every row."""

CASES = [
    decoder("gpt2", "GPT2", GPT2, head="LMHeadModel", shards=True),
    decoder("gpt2, wide by default", "GPT2", GPT2, n_inner=None, head="LMHeadModel"),
    decoder("gpt2, gelu", "GPT2", GPT2, activation_function="gelu", head="LMHeadModel"),
    decoder("gpt2, own output", "GPT2", GPT2, tie_word_embeddings=False, head="LMHeadModel"),
    decoder("gpt2, bare", "GPT2", GPT2, head="Model"),
    decoder("gpt2, classes", "GPT2", GPT2, **CLASSES),
    decoder("llama", "Llama", GROUPED, shards=True),
    decoder("llama, biases", "Llama", SIZES, attention_bias=True, mlp_bias=True),
    decoder("llama, tied, wide heads", "Llama", GROUPED, tie_word_embeddings=True, head_dim=10),
    decoder("llama, bare", "Llama", GROUPED, head="Model"),
    decoder("llama, classes", "Llama", GROUPED, **CLASSES),
    decoder("mistral", "Mistral", GROUPED, **WINDOW),
    decoder("mistral, no window", "Mistral", GROUPED, sliding_window=None, head_dim=10),
    decoder("mistral, classes", "Mistral", GROUPED, **WINDOW, **CLASSES),
    decoder("qwen2", "Qwen2", GROUPED, **WINDOW),
    decoder(
        "qwen2, windows from the second layer on",
        "Qwen2",
        GROUPED,
        **WINDOW,
        use_sliding_window=True,
        max_window_layers=1,
    ),
    decoder("qwen2, classes", "Qwen2", GROUPED, **CLASSES),
    decoder("qwen3", "Qwen3", GROUPED, head_dim=10),
    decoder(
        "qwen3, windows by layer, biases",
        "Qwen3",
        GROUPED,
        **WINDOW,
        head_dim=10,
        attention_bias=True,
        use_sliding_window=True,
        layer_types=BY_LAYER,
    ),
    decoder("gemma", "Gemma", GROUPED, head_dim=10),
    decoder("gemma, gelu", "Gemma", GROUPED, head_dim=10, hidden_act="gelu", attention_bias=True),
    decoder("gemma, classes", "Gemma", GROUPED, head_dim=10, **CLASSES),
    decoder(
        "gemma2",
        "Gemma2",
        GROUPED,
        **WINDOW,
        head_dim=10,
        query_pre_attn_scalar=7,
        attn_logit_softcapping=1.5,
        final_logit_softcapping=2.5,
    ),
    decoder(
        "gemma2, no caps, windows by layer",
        "Gemma2",
        GROUPED,
        **WINDOW,
        head_dim=10,
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
        layer_types=BY_LAYER,
    ),
    decoder("phi3", "Phi3", GROUPED, **WINDOW),
    decoder("phi3, partly turned", "Phi3", GROUPED, partial_rotary_factor=0.4),
    decoder("gpt_neox", "GPTNeoX", SIZES, rotary_pct=0.4),
    decoder(
        "gpt_neox, one after the other",
        "GPTNeoX",
        SIZES,
        use_parallel_residual=False,
        attention_bias=False,
        rotary_pct=1.0,
        rotary_emb_base=500,
    ),
    decoder("gpt_neox, classes", "GPTNeoX", SIZES, **CLASSES),
    decoder("gptj", "GPTJ", GPTJ),
    decoder("gptj, classes", "GPTJ", GPTJ, **CLASSES),
    decoder("opt", "OPT", OPT),
    decoder("opt, post-norm, no biases", "OPT", OPT, do_layer_norm_before=False, enable_bias=False),
    decoder("opt, no last norm", "OPT", OPT, _remove_final_layer_norm=True),
    decoder("opt, classes", "OPT", OPT, **CLASSES),
    decoder("bloom", "Bloom", BLOOM, exact=False),
    decoder("bloom, six heads", "Bloom", BLOOM, n_head=6, exact=False),
    decoder("bloom, classes", "Bloom", BLOOM, **CLASSES, exact=False),
    decoder("phi", "Phi", GROUPED),
    decoder("phi, classes", "Phi", GROUPED, partial_rotary_factor=0.4, **CLASSES),
    decoder("stablelm", "StableLm", GROUPED, use_qkv_bias=True),
    decoder("stablelm, parallel", "StableLm", GROUPED, use_parallel_residual=True),
    decoder("starcoder2", "Starcoder2", GROUPED, **WINDOW),
    decoder("starcoder2, no biases", "Starcoder2", GROUPED, use_bias=False),
    decoder("gpt_bigcode", "GPTBigCode", GPT2),
    decoder("gpt_bigcode, keys of their own", "GPTBigCode", GPT2, multi_query=False),
    decoder("gpt_neo", "GPTNeo", NEO, window_size=5, by=UNSCALED),
    decoder(
        "gpt_neo, all of the text", "GPTNeo", NEO, attention_types=[[["global"], 3]], by=UNSCALED
    ),
    decoder("gpt_neo, classes", "GPTNeo", NEO, window_size=5, by=UNSCALED, **CLASSES),
    decoder("biogpt", "BioGpt", SIZES),
    decoder("biogpt, not scaled", "BioGpt", SIZES, scale_embedding=False, hidden_act="relu"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_the_reference(case: Case, tmp_path: Path) -> None:
    is_the_reference(case, tmp_path)


def test_a_turned_file_keeps_its_order_but_for_wide_matrices(tmp_path: Path) -> None:
    opened = open_pair(CASES[0], tmp_path).ours.model.decoder
    assert opened is not None
    turned, wide = (getattr(opened.blocks[0].mlp, name) for name in ("up_proj", "down_proj"))
    assert not turned.weight.is_contiguous()
    assert wide.weight.is_contiguous()
