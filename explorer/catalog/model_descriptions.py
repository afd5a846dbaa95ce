"""A model in words: its config and its training record, with example texts where it has none."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.text.number_format import three
from models import TransformerConfig
from models.loading.checkpoint_tokenizer import has_tokenizer

KINDS_IN_WORDS = {
    "encoder": "An encoder",
    "decoder": "A decoder",
    "encoder-decoder": "An encoder-decoder",
}
HEADS_IN_WORDS = {
    "language-model": "that predicts the next token at every position",
    "masked-language-model": "that predicts masked tokens",
    "classifier": "that classifies the whole text",
    "none": "without a head, which ends in one vector per token",
}
CLASSIFIERS_IN_WORDS = {
    "softmax": HEADS_IN_WORDS["classifier"],
    "sigmoid": "that gives each label of the whole text a probability of its own",
    "none": "that predicts values for the whole text (regression)",
}
POSITIONS_IN_WORDS = {
    "sinusoidal": "sinusoidal positions",
    "learned": "learned positions",
    "rotary": "rotary positions",
    "relative": "relative positions",
    "alibi": "ALiBi",
    "none": "no positions",
}


def in_short(config: TransformerConfig) -> str:
    return f"{config.kind}, {_layers(config)} × {config.n_heads} heads"


def config_sentences(config: TransformerConfig) -> str:
    layers = _layers(config)
    heads = f"{config.n_heads} heads of width {config.head_width}"
    if config.kv_heads != config.n_heads:
        heads += f" sharing {config.kv_heads} key-value heads"
    feed_forward = "no feed-forward layer"
    if config.d_ff:
        gate = "gated " if config.gated else ""
        widths = f"{config.d_ff:,}"
        if config.d_ff_encoder is not None:
            widths = f"{config.d_ff_encoder:,} + {widths}"
        feed_forward = f"feed-forward width {widths} ({gate}{config.activation})"
    norm = {"layer": "layer norm", "rms": "RMS norm"}[config.norm]
    return (
        f"{_kind(config)}: "
        f"{layers} layer{'' if layers == '1' else 's'}, {heads}, d_model {config.d_model:,}, "
        f"{feed_forward}, {POSITIONS_IN_WORDS[config.positions]}, "
        f"{norm} ({config.norm_position}). "
        f"It reads at most {config.max_len:,} tokens.{_also(config)}"
    )


def _kind(config: TransformerConfig) -> str:
    """What kind of model it is, and what its head makes of a text."""
    is_classifier = config.head == "classifier"
    words = CLASSIFIERS_IN_WORDS[config.score_function] if is_classifier else ""
    return f"{KINDS_IN_WORDS[config.kind]} {words or HEADS_IN_WORDS[config.head]}"


def _layers(config: TransformerConfig) -> str:
    """`6`, or `6 + 6` for two stacks."""
    if config.kind == "encoder-decoder":
        return f"{config.encoder_layers} + {config.n_layers}"
    return str(config.n_layers)


def _also(config: TransformerConfig) -> str:
    """A sentence about what few models have."""
    windows, scaling = list(filter(None, config.windows)), config.rope_scaling
    sizes = " or ".join(f"{size:,}" for size in sorted(set(windows)))
    layers = f"{len(windows)} of {len(config.windows)} layers"
    scaled = f"rotations scaled {scaling.factor:g} times ({scaling.kind})" if scaling else ""
    options = {
        "unembedding tied to the token embedding": config.tie_embeddings
        and "language" in config.head,
        "one embedding shared by both stacks": config.share_embeddings,
        f"embeddings of {config.n_segments} segments": config.n_segments,
        "normed embedding": config.embedding_norm,
        "parallel attention and feed-forward": config.parallel,
        "normalized queries and keys": config.qk_norm,
        "a learned sink logit in each softmax": config.sink_logit,
        "gated attention": config.gated_attention,
        f"scores soft-capped at ±{config.attention_cap or 0:g}": config.attention_cap,
        f"logits soft-capped at ±{config.logit_cap or 0:g}": config.logit_cap,
        f"a sliding window of {sizes} tokens in {layers}": windows,
        scaled: scaling,
    }
    chosen = [words for words, holds in options.items() if holds]
    return f" Also: {', '.join(chosen)}." if chosen else ""


def what_it_does(config: TransformerConfig, run: Mapping[str, Any]) -> str:
    """The first sentence of its description, or else of what its config says."""
    described = str(run.get("explanation") or "").partition(". ")[0].rstrip(".")
    return f"{described or _kind(config)}."


def short_score(run: Mapping[str, Any]) -> str:
    """The metric on held-out text without its baseline, for a narrow column."""
    metrics = _numbers(run.get("metrics"))
    return f"{metrics[0][0]} {three(metrics[0][1])}" if metrics else "not measured"


def held_out_score(run: Mapping[str, Any]) -> str:
    """The metric on held-out text, with the baseline; "not measured" where there is none."""
    score, baseline = short_score(run), run.get("baseline")
    if not _numbers(run.get("metrics")) or not isinstance(baseline, Mapping):
        return score
    if not _is_float(baseline.get("value")):
        return score
    return f"{score} ({baseline.get('name')}: {three(baseline['value'])})"


def data_attribution(run: Mapping[str, Any]) -> str:
    data = run.get("data")
    return str(data.get("attribution") or "") if isinstance(data, Mapping) else ""


def _numbers(values: Any) -> list[tuple[str, float]]:
    """The named numbers of a record that anybody may have written."""
    if not isinstance(values, Mapping):
        return []
    return [(str(name), float(value)) for name, value in values.items() if _is_float(value)]


def _is_float(value: Any) -> bool:
    """Whether it is a number that a float can hold, unlike an integer of 400 digits."""
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


ANGLED_MASKS = ("roberta", "camembert", "xlm", "bart")
MASKED = ("The capital of France is {mask}.", "She opened the door with her {mask}.")
CLASSIFIED = ("A wonderful little film, not a minute too long.", "I would not see it again.")
ANY_EXAMPLE = "To be, or not to be"
CONTINUED = (
    "When Mary and John went to the store, John gave a drink to",
    "The keys to the cabinet are on the table, so the cabinet",
    ANY_EXAMPLE,
)
WHOLE_SENTENCES = ("I am a student.", "The cat that the dog chased is tired.")


def examples_for(config: TransformerConfig, family: str, folder: Path) -> tuple[str, ...]:
    """Sentences whose attention is worth seeing; token IDs where there is no tokenizer.

    Each is cut to as many characters as the model reads tokens, after a word.
    """
    most = config.max_len - 2
    return tuple(
        text if len(text) <= most else text[: most + 1].rpartition(" ")[0] or text.split()[0]
        for text in _sentences(config, family, folder)
    )


def _sentences(config: TransformerConfig, family: str, folder: Path) -> tuple[str, ...]:
    if not has_tokenizer(folder):
        return (" ".join(str(i % config.vocab_size) for i in (5, 17, 3, 29, 17, 3, 8, 5, 17)),)
    if config.head == "masked-language-model":
        mask = "<mask>" if any(name in family for name in ANGLED_MASKS) else "[MASK]"
        return tuple(text.format(mask=mask) for text in MASKED)
    if config.kind == "encoder-decoder":
        prefix = "translate English to German: " if "t5" in family else ""
        return tuple(prefix + text for text in WHOLE_SENTENCES)
    if config.head == "classifier":
        return CLASSIFIED
    return CONTINUED if config.kind == "decoder" else WHOLE_SENTENCES[::-1]
