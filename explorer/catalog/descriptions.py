"""A model in words: what its config says, and what the record of its training says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models import TransformerConfig

KINDS = {
    "encoder": "an encoder, which sees the whole text at once",
    "decoder": "a decoder, which sees only what came before",
    "encoder-decoder": "an encoder that reads and a decoder that writes",
}
HEADS = {
    "language-model": "names a token at every position",
    "masked-language-model": "names the token behind every mask",
    "classifier": "puts the whole text into a class",
    "none": "ends in a vector for every token",
}
POSITIONS = {
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "rotary": "rotary positions",
    "relative": "relative positions",
    "alibi": "ALiBi",
    "none": "no positions",
}
WHERE = {"pre": "before", "post": "after", "sandwich": "before and after"}


def in_short(config: TransformerConfig) -> str:
    """The config in a few words."""
    layers = str(config.n_layers)
    if config.kind == "encoder-decoder":
        layers = f"{config.encoder_layers} + {config.n_layers}"
    return f"{config.kind}, {layers} × {config.n_heads} heads"


def in_words(config: TransformerConfig) -> str:
    """The config as one sentence."""
    layers = f"{config.n_layers}"
    if config.kind == "encoder-decoder":
        layers = f"{config.encoder_layers} + {config.n_layers}"
    heads = f"{config.n_heads} heads of {config.head_width}"
    if config.kv_heads != config.n_heads:
        heads += f" sharing {config.kv_heads} keys and values"
    feed_forward = f"a feed-forward layer of {config.d_ff:,}" if config.d_ff else "attention only"
    activation = f" ({'gated ' if config.gated else ''}{config.activation})" if config.d_ff else ""
    norm = {"layer": "layer norm", "rms": "RMS norm"}[config.norm]
    where = WHERE[config.norm_position]
    return (
        f"It is {KINDS[config.kind]}, and {HEADS[config.head]}: {layers} "
        f"layer{'' if layers == '1' else 's'} of {heads}, width {config.d_model:,}, {feed_forward}"
        f"{activation}, {POSITIONS[config.positions]}, {norm} {where} each part. "
        f"It reads at most {config.max_len:,} tokens.{_besides(config)}"
    )


def _besides(config: TransformerConfig) -> str:
    """What few models have, as a sentence of its own."""
    said = {
        "the head is the token embedding": config.tie_embeddings and "language" in config.head,
        "both stacks read one embedding": config.share_embeddings,
        f"{config.n_segments} sentences are told apart": config.n_segments,
        "the embedding is normed": config.embedding_norm,
        "attention and feed-forward stand side by side": config.parallel,
        "queries and keys are normed": config.qk_norm,
        f"scores stay within ±{config.attention_cap or 0:g}": config.attention_cap,
        f"logits stay within ±{config.logit_cap or 0:g}": config.logit_cap,
        _windows(config): any(config.windows),
        _scaling(config): config.rope_scaling,
    }
    found = [words for words, holds in said.items() if holds]
    return f" Besides, {', '.join(found)}." if found else ""


def _windows(config: TransformerConfig) -> str:
    """How many layers look back only so far."""
    sizes = sorted({window for window in config.windows if window})
    some = sum(1 for window in config.windows if window)
    back = " or ".join(f"{size:,}" for size in sizes)
    return f"{some} of {len(config.windows)} layers look back at most {back} tokens"


def _scaling(config: TransformerConfig) -> str:
    scaling = config.rope_scaling
    return f"rotations are stretched {scaling.factor:g} times ({scaling.kind})" if scaling else ""


def measured(run: Mapping[str, Any]) -> str:
    """What the model reaches on text it never saw, beside the baseline, as far as it is known."""
    found = _numbers(run.get("metrics"))
    if not found:
        return "not measured"
    name, value = found[0]
    baseline = run.get("baseline")
    if isinstance(baseline, Mapping) and isinstance(baseline.get("value"), (int, float)):
        return f"{name} {value:.3g} ({baseline.get('name')}: {baseline['value']:.3g})"
    return f"{name} {value:.3g}"


def attribution(run: Mapping[str, Any]) -> str:
    """Whose data the model was trained on."""
    data = run.get("data")
    return str(data.get("attribution") or "") if isinstance(data, Mapping) else ""


def _numbers(values: Any) -> list[tuple[str, float]]:
    """The named numbers of a record that somebody else may have written."""
    if not isinstance(values, Mapping):
        return []
    return [(str(k), float(v)) for k, v in values.items() if isinstance(v, (int, float))]
