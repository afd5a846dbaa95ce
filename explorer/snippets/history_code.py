"""The lines behind a training history: one head at every snapshot of a run."""

from __future__ import annotations

from pathlib import Path

from explorer.inference.forward_pass import ForwardPass
from explorer.snippets.pass_code import hint, path, script

RUN = (
    "from pathlib import Path",
    "from explorer.inference.forward_pass import run_text",
    "from explorer.runs.open_run import open_folder",
    "from explorer.runs.run import Run",
)


def history_lines(last: ForwardPass, run: Path, part: str, layer: int, head: int) -> str:
    """The weights of one head over the text, step by step; `last` is the last step's pass."""
    typed = ", ".join(repr(each) for each in (last.text, last.pair) if each)
    lines = [
        f"run = Run(Path({path(run)!r})){hint(run)}",
        "models = {step: open_folder(folder) for step, folder in run.snapshots()}",
    ]
    forward, imports = f"run_text(opened, {typed})", [*RUN]
    if last.source and last.target:  # the decoder reads the same words at every step
        lines.append(f"last = run_text(models[max(models)], {typed})")
        forward = "rerun(opened, last, last.source, last.target, ())"
        imports[1] = "from explorer.inference.forward_pass import rerun, run_text"
    lines += [
        "for step, opened in models.items():",
        f"    forward = {forward}",
        f"    print(step, forward.weights({part!r}, {layer}, {head}))",
    ]
    return script(lines, *imports)
