"""Scripts for the numbers of whole heads: metrics, similarity, rollout and flow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, pass_lines, script


def head_metrics_script(forward: ForwardPass, folder: Path, part: str, layer: int) -> str:
    """Every metric of every head of one layer."""
    here = site(part, layer)
    same = part.endswith("self_attn")
    return script(
        [
            *pass_lines(forward, folder),
            *_token_lines(forward, part, same),
            f'weights, visible = seen.weights("{here}")[0], seen.mask("{here}")[0, 0]',
            f"cells = pattern_cells(rows, columns, visible, same_text={same})",
            f"found = metrics_of_heads(weights, visible, columns.special, cells, same_text={same})",
            "print(found)  # a number for each head of the layer",
        ],
        CORE,
        "from explorer.analysis.head_metrics import Tokens, metrics_of_heads, pattern_cells",
    )


def _token_lines(forward: ForwardPass, part: str, same: bool) -> list[str]:
    """`rows` and `columns`: the IDs of the tokens, and which are special."""
    lines: list[str] = []
    sides = {"rows": forward.rows(part), "columns": forward.columns(part)}
    for name, tokens in sides.items():
        if name == "columns" and same:
            return [*lines, "columns = rows"]
        ids, special = [t.id for t in tokens], [int(t.special) for t in tokens]
        lines.append(f"{name} = Tokens(torch.tensor({ids}), torch.tensor({special}).bool())")
    return lines


def similarity_script(
    forward: ForwardPass, folder: Path, at: tuple[str, int, int], rows: Sequence[int], of_rows: int
) -> str:
    """The similarity of the chosen head to every other, by the rows that are compared."""
    part, layer, head = at
    shape, stack, attention = forward.part(part), *part.split(".")
    some = "" if len(rows) == of_rows else f"[:, {list(rows)}]"
    return script(
        [
            *pass_lines(forward, folder),
            f"layers = range({shape.layers})",
            f'every = [seen.weights(f"{stack}.{{n}}.{attention}")[0] for n in layers]',
            f"heads = torch.cat(every){some}",
            f"similarity = 1 - js_divergence(heads[{layer * shape.heads + head}], heads)",
            f"print(similarity.reshape(-1, {shape.heads}))  # layers down, heads across",
        ],
        CORE,
        "from explorer.analysis.head_similarity import js_divergence",
    )


def rollout_script(forward: ForwardPass, folder: Path, part: str, layers: int) -> str:
    """Attention rollout through these layers."""
    return script(
        [
            *_graph_lines(forward, folder, part, layers),
            "shares = rollout(layers)",
            "print(shares)  # a row per token, a column per input",
        ],
        CORE,
        "from explorer.analysis.rollout import half_residual, rollout",
    )


def flow_script(forward: ForwardPass, folder: Path, part: str, layers: int, token: int) -> str:
    """Attention flow through these layers from every input to one token."""
    return script(
        [
            *_graph_lines(forward, folder, part, layers),
            f"flow = torch.tensor(list(flow_to(layers, {token})))",
            f"share = rollout(layers)[{token}]",
            "print(flow, share)  # a number for each input",
        ],
        CORE,
        "from explorer.analysis.rollout import flow_to, half_residual, rollout",
    )


def _graph_lines(forward: ForwardPass, folder: Path, part: str, layers: int) -> list[str]:
    stack, attention = part.split(".")
    return [
        *pass_lines(forward, folder),
        f'every = [seen.weights(f"{stack}.{{n}}.{attention}")[0] for n in range({layers})]',
        "layers = [half_residual(weights.mean(0)) for weights in every]",
    ]
