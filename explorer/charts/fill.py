"""The data of one run in a chart that was made once: 0.02 to 0.05 ms, and no altair."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.text.number_format import fixed

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def finite(value: float) -> float | None:
    """None for what JSON has no number for: nothing is drawn there."""
    return value if math.isfinite(value) else None


def written(value: float, places: int = 4) -> str:
    return fixed(value, places) if math.isfinite(value) else "no value"


def filled_chart(spec: Spec, tables: Mapping[str, Rows], **params: Any) -> Spec:
    """A copy with rows for the tables that the chart names, and values for its parameters.

    A table of the whole chart is sent beside the spec, as Arrow. That of a layer stays in
    the spec: Streamlit needs pandas (65 MB) to make Arrow, too much for ten numbers.
    """
    made = dict(spec)
    made["params"] = [
        *spec.get("params", ()),
        *({"name": name, "value": value} for name, value in params.items()),
    ]
    if "layer" in spec:
        made["layer"] = [_with_rows(layer, tables) for layer in spec["layer"]]
    whole = spec.get("data", {}).get("name")
    if whole in tables:
        made["datasets"] = {whole: list(tables[whole])}
    return made


def _with_rows(layer: Spec, tables: Mapping[str, Rows]) -> Spec:
    name = layer.get("data", {}).get("name")
    if name not in tables:
        return layer
    return layer | {"data": {"name": name, "values": list(tables[name])}}
