"""Every head's scores over the steps of a training, as one picture."""

from functools import partial

import streamlit as st
import torch

from explorer.analysis.head_metrics import METRICS, join_layers, metrics_by_layer
from explorer.app import reader_models, widget_state
from explorer.app.choosing import choose_head, choose_model
from explorer.app.controls import one_of, text_field
from explorer.app.session import session
from explorer.catalog.attention_parts import parts
from explorer.components import matrix
from explorer.components.events import Place
from explorer.inference.forward_pass import run_text
from explorer.runs.run import Run, open_folder
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.inside_training.measuring import of_snapshots
from explorer.views.shared.code_panel import Script, script

CELL, AROUND = 26, 130
"""Pixels of a head's row, and around all of them."""


def draw_head_scores(chosen: InsideRun) -> Script | None:
    """Heads down, steps across; a click on a cell shows that head at that step."""
    config = chosen.first.config
    titles = {part.title: part.name for part in parts(config)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        title = one_of("scores_part", [*titles], [*titles][-1])
        name = one_of(
            "scores_metric", [each.title for each in METRICS.values()],
            METRICS["largest"].title, as_list=True, width=240,
        )  # fmt: skip
        text = text_field("scores_text", chosen.task.example)
    metric = next(each for each in METRICS.values() if each.title == name)
    part = titles[title]

    def measure(step: int) -> dict[str, torch.Tensor]:
        forward = run_text(chosen.opened(step), text)
        return dict(join_layers([*metrics_by_layer(forward, part)]).values)

    tokens = max(1, len(text))
    found = of_snapshots(
        chosen,
        "head_scores",
        (part, text),
        measure,
        lambda made: sum(each.nbytes for each in made.values()),
        tokens * chosen.parameters,
        "The heads at every step",
    )
    if found is None:
        return None
    values = torch.stack([each[metric.name].flatten() for each in found], dim=1)
    layers, heads = found[0][metric.name].shape
    rows = [f"L{layer}H{head}" for layer in range(layers) for head in range(heads)]
    columns = [f"{step:,}" for step in chosen.steps]
    matrix(
        values,
        rows,
        columns,
        key="scores_over_steps",
        title=f"{metric.title} of every head of {chosen.run.title} over its training",
        row_name="head",
        column_name="step",
        sentence="{row} at step {column}: {value}",
        unit=metric.unit,
        top=metric.top,
        exact=True,
        height=min(620, AROUND + CELL * len(rows)),
        click="open its head",
        on_pin=partial(_open_head, chosen, part, heads),
    )
    st.caption(
        f"{metric.meaning} Measured on this sentence at every snapshot; L1H2 is head 2 of layer 1. "
        "A click on a cell opens Attention maps with that head at that step."
    )
    return script(head_scores_code, chosen.run, text, part, metric.name)


def _open_head(chosen: InsideRun, part: str, heads: int, cell: Place | None) -> None:
    """The head at the step on the page Attention maps, which is gone to in the next run."""
    if cell is None:
        return
    row, column = cell
    reader_models.add_run(chosen.run.name)
    choose_model(chosen.run.name)
    widget_state.put("training_step", chosen.steps[column])
    choose_head(*divmod(row, heads), part)
    session().next_page = "attention"


def head_scores_code(run: Run, text: str, part: str, metric: str) -> None:
    for step, folder in run.snapshots():
        forward = run_text(open_folder(folder), text)
        found = join_layers([*metrics_by_layer(forward, part)])
        print(step, found.values[metric])
