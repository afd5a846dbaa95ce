"""Train a model here, and see its attention form."""

import streamlit as st

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.tasks import Task
from explorer.views.shared import widgets
from explorer.views.shared.widgets import ViewSpec
from explorer.views.training import data_view, live_attention, live_run, run_chooser, run_form
from explorer.views.training.run_form import training_script
from models.schedules import learning_rate
from models.training import train


def draw_live(run: Run | None, task: Task | None) -> None:
    if run is not None:
        live_run.draw_run(run, text)
        run_chooser.draw_buttons(run)
    elif task is not None:
        live_attention.draw_preview(task, run_form.requested_run(run).spec, text)


VIEWS = {
    "Run": ViewSpec("Train a small model on a task and watch its attention form.", draw_live),
    "Data": ViewSpec(
        "What the model trains on: on the left what it reads, on the right what it must answer.",
        lambda run, task: data_view.draw_data(task),
    ),
}

widgets.opening_of_view("Training", "training_view", VIEWS)
cluster().start()  # its processes load while the page draws
text = page_context().choice.text
row = st.container(horizontal=True, vertical_alignment="center")
form, chooser = row.container(width="content"), row.container(width="stretch")
switch = row.container(width="content")
with switch:
    view = one_of("training_view", tuple(VIEWS), label_visibility="collapsed")
with form:
    task = run_form.draw_form(run_chooser.run_on_screen())
with chooser:
    run = run_chooser.choose_run() if view == "Run" else run_chooser.run_on_screen()
VIEWS[view].draw(run, task)
widgets.closing(
    {"run": run.title} if run is not None else {"task": task.name if task else ""},
    train,
    learning_rate,
    script=training_script(run_form.requested_run(run)),
)
