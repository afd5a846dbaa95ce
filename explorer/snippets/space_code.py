"""The lines that make the places of tokens on three axes, and the tokens nearest to one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.analysis.embedding_space import STREAM, UNEMBEDDING
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import OPENED, opened_lines, script

PATHS = "from explorer.analysis.token_paths import "


def space_script(
    forward: ForwardPass,
    folder: Path,
    stack: str,
    axes: str,
    drawn: range,
    tables: Sequence[str],
    token: int,
    count: int,
) -> str:
    """Places of the `drawn` tokens at every step, then the nearest to a token in each table."""
    embedding = f"opened.model.{stack}.embedding.weight"
    used = ["token_paths"]
    lines = [
        *opened_lines(forward, folder),
        f"paths = token_paths(forward, {stack!r}, {drawn!r})",
    ]
    if axes == UNEMBEDDING:
        used.append("as_read")
        lines.append("paths = as_read(opened.model, paths)  # after the final norm")
    rows = {UNEMBEDDING: "unembedding(opened.model)", STREAM: "paths.states.flatten(0, 1)"}
    lines += [
        f"axes = principal_axes({rows.get(axes, embedding)})",
        "places = axes.places(paths.states)",
        "print(axes.shares, paths.steps)",
        "print(places)  # by step and token, on three axes",
        "",
    ]
    for table in tables:
        name, of = ("unembedded", rows[table]) if table == UNEMBEDDING else ("embedded", embedding)
        lines += [
            f"table = {of}",
            f"{name} = nearest_tokens(table, table[[{token}]], {count}, torch.tensor([{token}]))",
            f"print({name}.ids, {name}.cosines)",
        ]
    if UNEMBEDDING in (axes, *tables):
        used.append("unembedding")
    return script(
        lines,
        *OPENED,
        "from explorer.analysis.nearest_tokens import nearest_tokens",
        "from explorer.analysis.principal_components import principal_axes",
        PATHS + ", ".join(sorted(used)),
    )
