"""The weights of every snapshot: singular values of one matrix, and norms of all of them."""

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.one_update import block_of
from explorer.analysis.singular_values import SingularValuesError, singular_values_of
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.runs.run import Run, open_folder
from explorer.text.number_format import three
from explorer.views.inside_training.chosen_run import InsideRun
from explorer.views.inside_training.measuring import of_snapshots
from explorer.views.shared.code_panel import Script, script

DRAWN = 6
"""Singular values that have a line."""
HEIGHT = 340


def draw_singular_values(chosen: InsideRun) -> Script | None:
    """The largest singular values of a matrix at every step, and its stable rank."""
    matrices = {name: p for name, p in chosen.first.model.named_parameters() if p.dim() == 2}
    usual = next((name for name in matrices if "q_proj" in name), next(iter(matrices)))
    name = one_of("spectrum_matrix", [*matrices], usual, as_list=True, width=420)
    rows, columns = matrices[name].shape

    def measure(step: int) -> Tensor:
        return singular_values_of(chosen.opened(step).model.get_parameter(name)).values

    try:
        cost = rows * columns * min(rows, columns)
        found = of_snapshots(
            chosen, "spectra", name, measure, lambda made: made.nbytes, cost, "Singular values"
        )
    except SingularValuesError as error:
        say(str(error))
        return None
    if found is None:
        return None
    lines = [
        (step, f"σ{rank + 1}", float(values[rank]))
        for rank in range(min(DRAWN, rows, columns))
        for step, values in zip(chosen.steps, found, strict=True)
    ]
    title = f"Singular values of {name} in {chosen.run.title}"
    chart(lines_over_steps(lines, "singular value"), height=HEIGHT, key="spectra", title=title)
    first, last = (_stable_rank(values) for values in (found[0], found[-1]))
    st.caption(
        f"The {min(DRAWN, rows, columns)} largest of {min(rows, columns):,} singular values at "
        f"every snapshot. The stable rank, Σσ² ÷ σ₁², goes from {three(first)} to {three(last)}: "
        "roughly the number of directions that the matrix uses."
    )
    return script(spectrum_code, chosen.run, name)


def draw_norms_over_steps(chosen: InsideRun) -> Script | None:
    """The norm of every kind of weight in every block, at every step."""
    blocks = [*dict.fromkeys(block_of(name) for name, _ in chosen.first.model.named_parameters())]

    def measure(step: int) -> Tensor:
        squares = dict.fromkeys(blocks, 0.0)
        for name, parameter in chosen.opened(step).model.named_parameters():
            squares[block_of(name)] += float(parameter.detach().double().square().sum())
        return torch.tensor([squares[block] for block in blocks], dtype=torch.double).sqrt()

    found = of_snapshots(
        chosen, "norms", "", measure, lambda made: made.nbytes, chosen.parameters, "Norms"
    )
    if found is None:
        return None
    lines = [
        (step, block, float(values[at]))
        for at, block in enumerate(blocks)
        for step, values in zip(chosen.steps, found, strict=True)
    ]
    title = f"Norms of the weights of {chosen.run.title}"
    chart(lines_over_steps(lines, "‖weights‖"), height=HEIGHT, key="norms", title=title)
    first, last = (three(float(values.norm())) for values in (found[0], found[-1]))
    st.caption(
        "The Euclidean norm of the weights of each part at every snapshot. That of the whole "
        f"model goes from {first} to {last}."
    )
    return script(norms_code, chosen.run)


def _stable_rank(values: Tensor) -> float:
    return float((values / values[0]).square().sum()) if float(values[0]) else 0.0


def spectrum_code(run: Run, name: str) -> None:
    for step, folder in run.snapshots():
        found = singular_values_of(open_folder(folder).model.get_parameter(name))
        print(step, found.values[:6], found.stable_rank)


def norms_code(run: Run) -> None:
    for step, folder in run.snapshots():
        for name, parameter in open_folder(folder).model.named_parameters():
            print(step, name, parameter.norm().item())
