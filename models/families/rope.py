"""Rotary positions of a published config, in the older and the newer notation.

Older files have `rope_theta` and `rope_scaling` beside the other values, newer ones all of
it in `rope_parameters`; where both are given, `rope_scaling` wins.
"""

import math
from typing import Any

from models.families.published import Published
from models.loading.safe_files import quoted
from models.rotary import RopeScaling

SCALING_KINDS = ("linear", "llama3", "yarn")


def rope(
    published: Published,
    *,
    kinds: tuple[str, ...] = SCALING_KINDS,
    width: int | None = None,
    part: float = 1.0,
    theta_name: str = "rope_theta",
    part_name: str = "partial_rotary_factor",
) -> dict[str, Any]:
    """θ, the scaling and how much of a head is turned, as fields of our config.

    `kinds` are the scalings that the family knows. `width` is that of a head, for families
    that may turn only a part of it, by default `part`.
    """
    settings = published.values.get("rope_scaling") or published.values.get("rope_parameters") or {}
    if not isinstance(settings, dict) or any(
        isinstance(value, dict) for value in settings.values()
    ):
        raise ValueError("rope_scaling must be an object of plain values.")
    inner = Published(settings)
    part = inner.number("partial_rotary_factor", published.number(part_name, part))
    if not 0 < part <= 1 or (width is None and part != 1):
        raise ValueError(f"{part_name} {part:g} is not supported.")
    fields: dict[str, Any] = {
        "positions": "rotary",
        "rope_theta": inner.number("rope_theta", published.number(theta_name, 10_000.0)),
    }
    if part != 1:
        fields["d_rotary"] = int((width or 0) * part)
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return fields
    if kind not in kinds:
        raise ValueError(f"rope_scaling of the type {quoted(repr(kind))} is not supported.")
    return fields | {"rope_scaling": scaling(inner, kind, published)}


def scaling(inner: Published, kind: str, model: Published) -> RopeScaling:
    """The scaling that `inner` describes; ValueError where it lacks what its kind must have."""
    whole = model.int("max_position_embeddings", 2048)
    length = whole
    if kind != "linear":  # beside the other values, it counts before the one inside
        name = "original_max_position_embeddings"
        length = (model if name in model else inner).int(name, whole)
    factor = inner.optional_number("factor")
    if factor is None and kind == "yarn" and "factor" in inner and length > 0:
        factor = whole / length
    if factor is None:
        raise ValueError("rope_scaling must have a factor.")
    if kind == "linear":
        return RopeScaling(kind, factor)
    if kind == "llama3":
        return RopeScaling(
            kind,
            factor,
            length,
            low_freq_factor=needed(inner, "low_freq_factor"),
            high_freq_factor=needed(inner, "high_freq_factor"),
        )
    attention = inner.optional_number("attention_factor")
    if attention is None:
        scales = inner.optional_number("mscale"), inner.optional_number("mscale_all_dim")
        if any(scale is not None and not 0 <= scale <= 1e6 for scale in scales):
            raise ValueError("mscale and mscale_all_dim must be between 0 and a million.")
        attention = yarn_attention_factor(factor, *scales)
    return RopeScaling(
        kind,
        factor,
        length,
        beta_fast=inner.optional_number("beta_fast") or 32.0,
        beta_slow=inner.optional_number("beta_slow") or 1.0,
        attention_factor=attention,
        truncate=inner.flag("truncate", True),
    )


def needed(inner: Published, name: str) -> float:
    value = inner.optional_number(name)
    if value is None:
        raise ValueError(f"rope_scaling must have a {name}.")
    return value


def yarn_attention_factor(
    factor: float, mscale: float | None = None, mscale_all_dim: float | None = None
) -> float:
    """The factor of cosines and sines: 0.1 ln(factor) + 1, or a quotient of two such numbers."""

    def stretch(by: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0

    if mscale and mscale_all_dim:
        return stretch(mscale) / stretch(mscale_all_dim)
    return stretch(1.0)
