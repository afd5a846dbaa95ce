"""Two texts that a small model tells apart, and what must be true of its edges."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from explorer.analysis.circuit_metrics import Contrast
from explorer.analysis.token_alignment import align_texts
from explorer.analysis.wiring import Place, Wiring
from explorer.text import Token
from models import TransformerConfig, trace
from models.interventions import Edit, Replace
from models.tap import Tap
from models.trace import Trace
from models.transformer import evaluating
from tests.tiny import ids_of, shaken

TOKENS, DIFFERS = 5, 2
"""Of both texts, which begin with the same two."""


def contrast_of(config: TransformerConfig, differs: int = DIFFERS, more: int = 0) -> Contrast:
    """Two texts in float64: the corrupted one has another token there, `more` times again."""
    clean = ids_of(1, TOKENS)
    other = (clean[:, [differs]] % 10 + 3).expand(1, more + 1)
    corrupted = torch.cat([clean[:, :differs], other, clean[:, differs + 1 :]], 1)
    place = TOKENS - 1
    contrast = Contrast(shaken(config), clean, corrupted, place, lambda at: at[:, 0] - at[:, 1])
    if not more:
        return contrast
    first, second = ([Token(at, "") for at in text[0].tolist()] for text in (clean, corrupted))
    partners = align_texts(first, second, (place, place + more))
    return replace(contrast, corrupted_place=place + more, partners=partners)


def texts_of(contrast: Contrast) -> tuple[Tensor, Tensor]:
    return contrast.clean, contrast.corrupted


def metric_of(contrast: Contrast, text: Tensor, *edits: Edit) -> float:
    passed = trace(contrast.model, text, sites=(), read_at=contrast.read_at, edits=edits)
    return float(contrast.metric_of(passed.output)[0])


class Reading(Tap):
    """Shows every value to a function (site, value), and goes on with what it gives."""

    def __init__(self, shown: Callable[[str, Tensor], Tensor], prefix: str = "") -> None:
        self.shown, self.prefix = shown, prefix

    def wants(self, name: str) -> bool:
        return True

    def at(self, scope: str) -> "Reading":
        return Reading(self.shown, f"{self.prefix}{scope}.")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return self.shown(self.prefix + name, value)


def passed(contrast: Contrast, shown: Callable[[str, Tensor], Tensor]) -> Tensor:
    """The metric of a pass of the clean text as `shown` changes it, part of a graph."""
    with evaluating(contrast.model), torch.enable_grad():
        output = contrast.model(contrast.clean, read_at=contrast.read_at, tap=Reading(shown))
        return contrast.metric_of(output)[0]


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


def partner_values(contrast: Contrast, clean: Tensor, corrupted: Tensor) -> Tensor:
    """The corrupted values (…, t, d) at the places of the clean ones, which stay if alone."""
    value = corrupted if not contrast.partners else clean.clone()
    for here, there in contrast.partners:
        value[..., here, :] = corrupted[..., there, :]
    return value


def without_edge(contrast: Contrast, wiring: Wiring, reader: int, writer: int) -> float:
    """The metric where one input alone reads what this part wrote in the corrupted text."""
    place = wiring.rows[reader]
    site = next(site for site, places in wiring.readers.items() if place in places)
    row = wiring.readers[site].index(place)
    clean, corrupted = (written(contrast, wiring, text)[writer] for text in texts_of(contrast))
    corrupted = partner_values(contrast, clean, corrupted)
    value = trace(contrast.model, contrast.clean, sites=[site])[site].clone()
    at = value[0, row] if value.dim() == 4 else value[0]
    at += corrupted - clean
    return metric_of(contrast, contrast.clean, Replace(site, value))
