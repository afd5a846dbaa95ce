"""A small model of every kind that has edges, with two texts, and what must be true of all."""

from collections.abc import Callable

import torch
from torch import Tensor

from explorer.analysis.contrast import Contrast
from explorer.analysis.wiring import Place, Wiring
from models import TransformerConfig, trace
from models.interventions import Edit, Replace
from models.tap import Tap
from models.trace import Trace
from models.transformer import evaluating
from tests.tiny import config_of, ids_of, shaken

GROUPED = config_of("decoder", positions="rotary", n_kv_heads=1, n_layers=3, norm="rms")
MODELS = {
    "decoder": config_of("decoder"),
    "rotary, grouped": GROUPED,
    "gated without biases": config_of("decoder", gated=True, bias=False, qkv_bias=False),
    "alibi, windows": config_of("decoder", positions="alibi", windows=(0, 2, 3), n_layers=3),
    "learned positions": config_of("decoder", positions="learned"),
    "relative": config_of("decoder", positions="relative"),
    "parallel": config_of("decoder", parallel=True, positions="rotary", d_rotary=2),
    "parallel behind one norm": config_of("decoder", parallel=True, shared_norm=True),
    "attention only": config_of("decoder", d_ff=0, n_layers=3),
    "heads of their own width": config_of("decoder", d_model=10, d_head=6),
    "capped": config_of("decoder", attention_cap=2.0, logit_cap=1.0),
    "normed queries": config_of("decoder", qk_norm=True, embedding_norm=True, n_kv_heads=1),
    "no last norm": config_of("decoder", final_norm=False),
    "encoder": config_of("encoder", head="masked-language-model", n_segments=2),
    "classifier": config_of("encoder", head="classifier", d_classifier=7),
    "the last token decides": config_of("decoder", head="classifier", pooling="last"),
}
TOKENS, DIFFERS = 5, 2
"""Of both texts, which begin with the same two."""


def contrast_of(
    config: TransformerConfig,
    differs: int = DIFFERS,
    outcome: Callable[[Tensor], Tensor] = lambda logits: logits[:, 0] - logits[:, 1],
) -> Contrast:
    """Two texts that differ in one token, in float64."""
    clean = ids_of(1, TOKENS)
    corrupted = clean.clone()
    corrupted[0, differs] = clean[0, differs] % 10 + 3
    return Contrast(shaken(config), clean, corrupted, TOKENS - 1, outcome)


def metric_of(contrast: Contrast, text: Tensor, *edits: Edit) -> float:
    passed = trace(contrast.model, text, sites=(), read_at=contrast.read_at, edits=edits)
    return float(contrast.measured(passed.output)[0])


class Reading(Tap):
    """Shows every value to a function (site, value), and goes on with what it gives."""

    def __init__(self, shown: Callable[[str, Tensor], Tensor], prefix: str = "") -> None:
        self.shown, self.prefix = shown, prefix

    def at(self, scope: str) -> "Reading":
        return Reading(self.shown, f"{self.prefix}{scope}.")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return self.shown(self.prefix + name, value)


def passed(contrast: Contrast, shown: Callable[[str, Tensor], Tensor]) -> Tensor:
    """The metric of a pass of the clean text as `shown` changes it, part of a graph."""
    with evaluating(contrast.model), torch.enable_grad():
        output = contrast.model(contrast.clean, read_at=contrast.read_at, tap=Reading(shown))
        return contrast.measured(output)[0]


def written(contrast: Contrast, wiring: Wiring, text: Tensor) -> Tensor:
    """What each part adds to the residual stream, (w, t, d), head by head."""
    seen = trace(contrast.model, text)
    return torch.stack([_write(contrast, wiring, place, seen) for place in wiring.columns])


def _write(contrast: Contrast, wiring: Wiring, place: Place, seen: Trace) -> Tensor:
    at = f"{wiring.stack}.{place.layer}"
    if place.kind == "embedding":
        return seen[f"{at}.resid_pre"][0]
    if place.kind == "feed-forward":
        return seen[f"{at}.mlp.out"][0]
    name = f"{wiring.stack}.blocks.{place.layer}.self_attn.o_proj.weight"
    weight = contrast.model.get_parameter(name).detach()
    wide = contrast.config.head_width
    columns = slice(place.head * wide, (place.head + 1) * wide)
    return seen[f"{at}.self_attn.head_out"][0, place.head] @ weight[:, columns].mT


def without_edge(contrast: Contrast, wiring: Wiring, reader: int, writer: int) -> float:
    """The metric where one input alone reads what this part wrote in the corrupted text."""
    site, row = next(
        (site, places.index(wiring.rows[reader]))
        for site, places in wiring.readers.items()
        if wiring.rows[reader] in places
    )
    both = (contrast.clean, contrast.corrupted)
    clean, corrupted = (written(contrast, wiring, text)[writer] for text in both)
    value = trace(contrast.model, contrast.clean, sites=[site])[site].clone()
    at = value[0, row] if value.dim() == 4 else value[0]
    at += corrupted - clean
    return metric_of(contrast, contrast.clean, Replace(site, value))
