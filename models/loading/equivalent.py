"""A model in another form that computes the same, and that more published families have.

Nothing is trained. What is computed here without weights becomes weights there, and the bias of
the logits, W x + b, moves into the final norm's β: W (x + δ) where W δ = b.
"""

import torch

from models.config import TransformerConfig
from models.model import Transformer

CHANGES = {
    "positions": "its sinusoids as a learned table",
    "scale_embedding": "√d_model multiplied into its embedding",
    "d_ff": "feed-forward layers of zeros",
    "head_bias": "the bias of its logits in the final norm",
}
"""The fields that may differ, and what is there instead."""
MOST_OFF = 1e-6
"""How far a logit may be off by the rounding of a moved bias."""


def equivalent_config(config: TransformerConfig) -> TransformerConfig:
    """The config of the other form; the same one where there is nothing to change.

    A bias can move for sure only if no more tokens than dimensions have logits.
    """
    if config.kind == "encoder-decoder":
        return config
    new = config
    if config.positions == "sinusoidal":
        new = new.replace(positions="learned", pairs=None, position_offset=0)
    if not config.tie_embeddings:  # a tied head reads the embedding without its factor
        new = new.replace(scale_embedding=False)
    if not config.d_ff and config.norm_position == "pre":
        new = new.replace(d_ff=1)
    movable = config.final_norm and config.norm == "layer" and config.vocab_size <= config.d_model
    if movable and config.head == "language-model":
        new = new.replace(head_bias=False)
    return new


def changes(config: TransformerConfig) -> tuple[str, ...]:
    """What is different in the other form of a model."""
    new = equivalent_config(config)
    return tuple(
        text for name, text in CHANGES.items() if getattr(config, name) != getattr(new, name)
    )


@torch.no_grad()
def equivalent_form(model: Transformer) -> Transformer | None:
    """The model in its other form, whose weights alone are real; None where its bias cannot move.

    Weights that do not change are shared.
    """
    config = equivalent_config(model.config)
    stack = config.kind + "."
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    embedding = weights[stack + "embedding.weight"]
    words = weights.get("head.weight", embedding)
    if config.scale_embedding != model.config.scale_embedding:
        weights[stack + "embedding.weight"] = embedding * model.config.embedding_scale
    if config.positions != model.config.positions:
        weights[stack + "positions.table.weight"] = model.get_buffer(stack + "positions.pe")[0]
    if config.has_head_bias != model.config.has_head_bias:
        norm, bias = weights[stack + "norm.bias"], weights.pop("head.bias").double()[:, None]
        matrix = words.double() * config.logit_scale
        if not (matrix.isfinite().all() and bias.isfinite().all()):
            return None
        shift = torch.linalg.lstsq(matrix, bias).solution[:, 0]
        moved = (norm + shift).to(norm)
        left = matrix @ (moved.double() - norm)[:, None] - bias
        if not left.abs().max() <= MOST_OFF:
            return None
        weights[stack + "norm.bias"] = moved
    with torch.device("meta"):
        form = Transformer(config)
    for name, parameter in form.named_parameters():
        weights.setdefault(name, torch.zeros(parameter.shape))
    form.load_state_dict(weights, assign=True)
    return form
