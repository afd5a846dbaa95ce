"""The lines that make the numbers of whole heads: rankings, likeness, rollout and flow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import CORE, pass_lines, pasted


def statistics(forward: ForwardPass, folder: Path, part: str, layer: int) -> str:
    """Every number of every head of one layer."""
    here = site(part, layer)
    same = part.endswith("self_attn")
    return pasted(
        [
            *pass_lines(forward, folder),
            *_tokens(forward, part, same),
            f'weights, visible = seen.weights("{here}")[0], seen.mask("{here}")[0, 0]',
            f"cells = patterns(rows, columns, visible, same_text={same})",
            f"found = of_heads(weights, visible, columns.special, cells, same_text={same})",
            "print(found)  # a number for each head of the layer",
        ],
        CORE,
        "from explorer.analysis.head_metrics import Tokens, of_heads, patterns",
    )


def _tokens(forward: ForwardPass, part: str, same: bool) -> list[str]:
    """`rows` and `columns`: the numbers of the tokens, and which are no part of the text."""
    lines: list[str] = []
    sides = {"rows": forward.rows(part), "columns": forward.columns(part)}
    for name, tokens in sides.items():
        if name == "columns" and same:
            return [*lines, "columns = rows"]
        ids, special = [t.id for t in tokens], [int(t.special) for t in tokens]
        lines.append(f"{name} = Tokens(torch.tensor({ids}), torch.tensor({special}).bool())")
    return lines


def likeness(
    forward: ForwardPass, folder: Path, at: tuple[str, int, int], rows: Sequence[int], of_rows: int
) -> str:
    """How alike the chosen head and every other look, by the rows that are compared."""
    part, layer, head = at
    shape, stack, attention = forward.part(part), *part.split(".")
    some = "" if len(rows) == of_rows else f"[:, {list(rows)}]"
    return pasted(
        [
            *pass_lines(forward, folder),
            f"layers = range({shape.layers})",
            f'every = [seen.weights(f"{stack}.{{n}}.{attention}")[0] for n in layers]',
            f"heads = torch.cat(every){some}",
            f"likeness = 1 - apart(heads[{layer * shape.heads + head}], heads)",
            f"print(likeness.reshape(-1, {shape.heads}))  # layers down, heads across",
        ],
        CORE,
        "from explorer.analysis.head_similarity import apart",
    )


def rollout(forward: ForwardPass, folder: Path, part: str, layers: int) -> str:
    """What every token after these layers is made of."""
    return pasted(
        [
            *_mixing(forward, folder, part, layers),
            "shares = rollout(mixing)",
            "print(shares)  # a row per token, a column per input",
        ],
        CORE,
        "from explorer.analysis.rollout import mixed, rollout",
    )


def flow(forward: ForwardPass, folder: Path, part: str, layers: int, token: int) -> str:
    """What fits through the graph from every input to one token."""
    return pasted(
        [
            *_mixing(forward, folder, part, layers),
            f"flow = torch.tensor(list(flows(mixing, {token})))",
            f"share = rollout(mixing)[{token}]",
            "print(flow, share)  # a number for each input",
        ],
        CORE,
        "from explorer.analysis.rollout import flows, mixed, rollout",
    )


def _mixing(forward: ForwardPass, folder: Path, part: str, layers: int) -> list[str]:
    stack, attention = part.split(".")
    return [
        *pass_lines(forward, folder),
        f'every = [seen.weights(f"{stack}.{{n}}.{attention}")[0] for n in range({layers})]',
        "mixing = [mixed(weights.mean(0)) for weights in every]",
    ]
