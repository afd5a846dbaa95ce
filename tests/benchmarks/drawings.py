"""The pictures that are measured: ours as one page without a server, and Plotly's of the same."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.thumbnails import thumbnails_of_weights
from explorer.charts.figure_data import WINDOW, OfflineView
from explorer.components.matrix import _VIEW as MATRIX
from explorer.components.matrix import encode as encode_matrix
from explorer.components.picker import _VIEW as GRID
from explorer.components.picker import encode_grid
from explorer.export import offline_page

LAYERS = HEADS = 12
HANDED = "handed"
MARK = f'performance.mark("{HANDED}");'


@dataclass(frozen=True)
class Drawing:
    """A page on disk, the elements (CSS) it has when it is drawn, and which of them have pixels."""

    path: Path
    selector: str
    count: int = 1
    pixels: str = ""

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def weights(tokens: int) -> Tensor:
    """Causal attention (12, 12, tokens, tokens) without a pattern but for the token before."""
    random = torch.Generator().manual_seed(0)
    future = torch.ones(tokens, tokens).triu(1).bool()
    made = torch.empty(LAYERS, HEADS, tokens, tokens)
    for layer in made:
        layer.normal_(0, 1.5, generator=random)
        layer += 5 * torch.eye(tokens).roll(-1, 1)
        layer.masked_fill_(future, -torch.inf)
        layer.copy_(layer.softmax(-1))
    return made


def labels(tokens: int) -> list[str]:
    return [f"token{i}" for i in range(tokens)]


def overview(heads: Tensor, into: Path) -> tuple[Drawing, OfflineView]:
    """Our page of every head, and the view in it."""
    small = thumbnails_of_weights(heads)
    data = encode_grid(small, name="overview")
    view = GRID.offline("overview", data, WINDOW, [0, 0])
    return written(view, into, f"overview-{heads.shape[-1]}"), view


def one_head(head: Tensor, into: Path) -> Drawing:
    """Our page of one head, large."""
    names = labels(len(head))
    words = {
        "row": "query",
        "column": "key",
        "sentence": "{row} attends to {column}: {value}",
        "masked": "{column} is masked for {row}",
        "absent": "masked",
        "unit": "weight",
        "title": "weights",
    }
    allowed = torch.ones_like(head).tril().bool()
    data = encode_matrix(head, names, names, scale="sequential", allowed=allowed, words=words)
    view = MATRIX.offline("head", data, WINDOW, None)
    return written(view, into, f"head-{len(head)}")


def written(view: OfflineView, into: Path, name: str) -> Drawing:
    """A page of this view alone."""
    path = into / f"ours-{name}.html"
    page, start = offline_page.offline_html("Attention", {}, [view]), offline_page.START.encode()
    assert start in page
    path.write_bytes(page.replace(start, f"\n{MARK}{offline_page.START}".encode()))
    return Drawing(path, "[data-painted]", pixels="[data-painted] canvas")


def plotly_one_head(script: Path, head: Tensor, into: Path) -> Drawing:
    """Plotly's heatmap of one head, its labels on both axes."""
    names = labels(len(head))
    trace = {"type": "heatmap", "z": _typed(head), "x": names, "y": names}
    layout = {"width": 1160, "height": 700, "yaxis": {"autorange": "reversed"}}
    path = _plotly(script, [trace], layout, into / "plotly-head.html")
    return Drawing(path, ".heatmaplayer image[*|href]")


def plotly_overview(script: Path, heads: Tensor, into: Path) -> Drawing:
    """Plotly's 12 × 12 heatmaps in one figure, without the numbers on their axes."""
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"width": 1160, "height": 1160}
    layout["grid"] = {"rows": LAYERS, "columns": HEADS, "pattern": "independent"}
    for at, head in enumerate(heads.flatten(0, 1)):
        number = str(at + 1) if at else ""
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        traces.append({"type": "heatmap", "z": _typed(head), "showscale": False, **axes})
        plain = {"showticklabels": False, "ticks": ""}
        layout |= {f"xaxis{number}": plain, f"yaxis{number}": {**plain, "autorange": "reversed"}}
    path = _plotly(script, traces, layout, into / "plotly-overview.html")
    return Drawing(path, ".heatmaplayer image[*|href]", LAYERS * HEADS)


def plotly_edges(script: Path, edges: Sequence[tuple[int, int, int, float]], into: Path) -> Drawing:
    """Plotly's lines from key to query, an edge (layer, query, key, width 0 to 1) each."""
    traces: list[dict[str, Any]] = []
    for layer, query, key, share in edges:
        line = {"width": 0.6 + 6 * share**0.5, "shape": "spline"}
        x, y = [key, key + 0.1, query], [layer, layer + 0.26, layer + 0.26]
        drawn = {"mode": "lines", "line": line, "x": x, "y": y, "showlegend": False}
        traces.append({"type": "scatter", **drawn})
    path = _plotly(script, traces, {"width": 1160, "height": 620}, into / "plotly-edges.html")
    return Drawing(path, ".scatterlayer path.js-line", len(edges))


def _typed(head: Tensor) -> dict[str, Any]:
    """Numbers as Plotly's Python package sends them: 32-bit floats in base64."""
    data = base64.b64encode(head.numpy().astype("<f4").tobytes()).decode()
    return {"dtype": "f4", "bdata": data, "shape": ", ".join(map(str, head.shape))}


def _plotly(script: Path, traces: list[dict[str, Any]], layout: dict[str, Any], path: Path) -> Path:
    page = '<!doctype html><meta charset="utf-8"><body><div id="figure"></div>'
    page += f'<script src="{script.as_uri()}"></script><script>{MARK} Plotly.newPlot("figure", '
    path.write_text(f"{page}{json.dumps(traces)}, {json.dumps(layout)})</script>", "utf-8")
    return path
