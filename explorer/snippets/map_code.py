"""The lines behind the picture of the whole pass."""

from __future__ import annotations

from pathlib import Path

from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import OPENED, opened_lines, script


def map_script(forward: ForwardPass, folder: Path, answer: int, part: str) -> str:
    """The importance of every edge for one answer, the strongest of one attention, and its head."""
    stack = part.split(".")[0]
    return script(
        [
            *opened_lines(forward, folder),
            "flow = information_flow(forward)",
            f"traced = route(flow, flow.starts[{answer}])",
            f'edges = traced.edges["{part}"]  # layers, queries, keys',
            "for value, at in zip(*edges.flatten().topk(min(10, edges.numel()))):",
            "    layer, query, key = (int(i) for i in torch.unravel_index(at, edges.shape))",
            f'    shares = flow.stacks["{stack}"][layer].attended["{part}"]',
            "    head, share = int(shares.heads[query, key]), float(shares.keys[query, key])",
            '    print(f"layer {layer}, head {head}: key {key} -> query {query}: "',
            '          f"share {share:.3g}, of the answer {float(value):.3g}")',
        ],
        *OPENED,
        "from explorer.analysis.information_flow import information_flow, route",
    )
