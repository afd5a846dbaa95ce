"""What the parts of a model are called, and by which sizes of its config each one is counted."""

from __future__ import annotations

from explorer.catalog.descriptions import POSITIONS
from models import TransformerConfig

Term = tuple[tuple[str, int], ...]
"""Sizes by their names in the config, to be multiplied."""

NAMES = {
    "embedding": "token embedding",
    "first": "token of the whole image",
    "segments": "sentence embedding",
    "embedding_norm": "norm of the embedding",
    "self_attn": "self-attention",
    "self_residual": "norm of self-attention",
    "cross_attn": "cross-attention",
    "cross_residual": "norm of cross-attention",
    "mlp": "feed-forward",
    "mlp_residual": "norm of feed-forward",
    "q_proj": "queries",
    "k_proj": "keys",
    "v_proj": "values",
    "o_proj": "heads joined (W_O)",
    "q_norm": "norm of the queries",
    "k_norm": "norm of the keys",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
    "out_norm": "norm behind",
    "transform": "one more layer",
    "proj": "projection",
    "hidden": "hidden layer",
    "out": "classes",
}


def called(path: tuple[str, ...], config: TransformerConfig) -> str:
    """`("decoder", "blocks", "0", "self_attn", "q_proj")` is "queries"."""
    if path[-1] == "positions":
        return POSITIONS[config.positions]
    if path[-1] == "norm" and len(path) == 2:
        return "last norm"
    return NAMES.get(path[-1], path[-1])


def sides(path: tuple[str, ...], config: TransformerConfig) -> tuple[Term, Term]:
    """What a part reads and what it gives: a matrix has one number for each pair of them.

    A norm reads nothing: it has a number, or two, for each of what it gives.
    """
    model, ff, classes = (_size(config, name) for name in ("d_model", "d_ff", "n_classes"))
    words, hidden = _size(config, "vocab_size"), _size(config, "d_classifier")
    heads, keys = _heads(config)
    match path:
        case ("encoder", "embedding") if config.src_vocab_size:
            return _size(config, "src_vocab_size"), model
        case (_, "embedding"):
            return words, model
        case (_, "positions", "table") if config.positions == "relative":
            return _size(config, "n_buckets"), _size(config, "n_heads")
        case (_, "positions", "table"):
            behind = config.position_offset
            name = f"(max_len + {behind})" if behind else "max_len"
            return ((name, config.max_len + behind),), model
        case (_, "segments"):
            return _size(config, "n_segments"), model
        case (*_, "q_proj"):
            return model, heads
        case (*_, "k_proj" | "v_proj"):
            return model, keys
        case (*_, "o_proj"):
            return heads, model
        case (*_, "q_norm" | "k_norm"):
            return (), (("d_head", config.head_width),)
        case (*_, "up_proj" | "gate_proj"):
            return model, ff
        case (*_, "down_proj"):
            return ff, model
        case ("head",):
            return model, words
        case ("head", "hidden"):
            return model, hidden
        case ("head", "out"):
            return hidden or model, classes
        case ("head", "transform", "proj"):
            return model, model
    return (), model


def _heads(config: TransformerConfig) -> tuple[Term, Term]:
    """All queries of a token, and all its keys: as wide as the model, or as heads × their width."""
    width = ("d_head", config.head_width)
    heads = (*_size(config, "n_heads"), width)
    if config.n_heads * config.head_width == config.d_model:
        heads = _size(config, "d_model")
    shares = config.kv_heads != config.n_heads
    return heads, (("n_kv_heads", config.kv_heads), width) if shares else heads


def _size(config: TransformerConfig, name: str) -> Term:
    value = getattr(config, name)
    return ((name, value),) if value is not None else ()
