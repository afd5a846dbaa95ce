"""The form of the Training page: a task, its model, its optimizer, its cost, and the start.

What nobody chose follows the run on screen, or the task where there is none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import widget_state
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.reader_runs import may_change
from explorer.app.session import state_of
from explorer.catalog import ModelError
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel
from explorer.charts.training_curves import SCHEDULE_HEIGHT, rate_table, schedule_chart
from explorer.components.chart import chart
from explorer.components.fragment import fragment
from explorer.runs.finetuning import finetune_spec
from explorer.runs.run import Run
from explorer.runs.run_size import TIMED, expected_speed, trained_parameters, training_size
from explorer.runs.settings import (
    EVALUATE_EVERY,
    MODEL_SETTINGS,
    TRAINING_SETTINGS,
    WEIGHTS_SEED,
    Setting,
    built_like,
    default_spec,
    settings_for,
    spec_of,
)
from explorer.runs.spec import RunError, RunSpec
from explorer.tasks import GIVEN, TASKS, Given, Task
from explorer.text import TextError
from explorer.text.labels import literal
from explorer.text.number_format import megabytes, three
from explorer.views.training.data_view import RequestedRun
from explorer.views.training.form_inputs import COLD, HOT, SettingInputs
from explorer.views.training.live_run import metrics_of, seconds_between
from explorer.views.training.own_text import OwnText, draw_own_text
from explorer.views.training.run_start import draw_differences, draw_resets, draw_start_button
from explorer.views.training.run_words import duration, status_of
from explorer.views.training.start_from import draw_start_from, draw_tuning
from models.families.styles import LIKE, kind_of
from models.presets import PRESETS
from models.training import TrainConfig, learning_rate


def draw_schedule(task: Task, training: TrainConfig, run: Run | None) -> None:
    """Drawn again and again while the run trains, whose step is marked."""
    every = seconds_between(status_of(run)) if run is not None else None
    fragment(every=every)(_draw_now)(task, training, run)


def _draw_now(task: Task, training: TrainConfig, run: Run | None) -> None:
    rows = metrics_of(run).rows if run is not None else []
    been = [(row.step, row.lr) for row in rows if row.lr is not None]
    chart(
        schedule_chart(training, max((rate for _, rate in been), default=0.0)),
        table=rate_table(been),
        height=SCHEDULE_HEIGHT,
        key="schedule_curve",
        title=f"Learning rate of {task.name if run is None else run.title}",
    )


def draw_size(task: Task, spec: RunSpec) -> None:
    """One line: what each part is, and where the speed is from, stands in its help."""
    size = training_size(task, spec)
    line = st.empty()
    trained = trained_parameters(spec)
    said = f"{size.parameters:,} parameters"
    said = said if trained == size.parameters else f"{trained:,} of {said} are trained"
    memory = f"{megabytes(size.memory)} of memory"
    line.caption(f"{said} · {memory} · …")
    speed = expected_speed(task, spec)
    seconds = spec.training.steps / speed.steps_per_second
    line.caption(
        f"{said} · {memory} · about {three(speed.steps_per_second)} steps/s, {duration(seconds)}",
        help=(
            f"**Memory**: weights {megabytes(size.weights)}, gradients "
            f"{megabytes(size.gradients)}, optimizer {megabytes(size.optimizer)}, and at most "
            f"{megabytes(size.activations)} for the forward and backward pass of one batch. Python "
            "and torch themselves come on top.\n\n**Speed**: "
            + (
                f"forward and backward pass of this model, measured here on {TIMED} batches; "
                if speed.is_timed
                else f"estimated from {three(size.operations / 1e9)} billion operations a step and "
                "the speed of a model of 256 dimensions, measured here; "
            )
            + "updates, measurements and snapshots come on top."
        ),
    )


TASK_SHAPE, RUN_SHAPE = "task default", "as in the run"
BY_NAME = {each.name: each for each in TRAINING_SETTINGS}
MODEL_KINDS = {
    "encoder": "An encoder",
    "decoder": "A decoder",
    "encoder-decoder": "An encoder and a decoder",
}
OPTIMIZER_NAMES = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD", "muon": "Muon"}
IN_SIGHT = ("lr", "steps")
OPTIMIZER = ("optimizer", "momentum", "beta2", "eps", "weight_decay", "clip", "label_smoothing")
DATA = ("batch_size", "accumulation", "seed")
TUNED_SEED = replace(WEIGHTS_SEED, help="Of a new head, and of the adapters at step 0.")


def draw_form(run: Run | None) -> Task | None:
    """The form beside the run on screen; its task, or None while its text is missing."""
    requested = state_of(RequestedRun)
    requested.spec = requested.tokenizer = None
    names = [*TASKS, *GIVEN]
    # What the chosen task is about is said where its help is.
    known = _known(widget_state.get("task"), names)
    name = one_of("task", names, as_list=True, help=known.explanation)
    known = _known(name, names)
    try:
        parent = draw_start_from(name)
    except ModelError as error:
        say(str(error))
        return None
    own = draw_own_text(known, parent) if isinstance(known, Given) else OwnText(parent=parent)
    if own is None:
        draw_start_button(st, None, OwnText(), None)
        return None
    try:
        task = own.task(name)
    except TextError as error:
        say(str(error))
        return None
    _draw_settings(task, own, run)
    return task


def requested_spec(run: Run | None) -> RunSpec | None:
    """The settings of the run on screen, or those of the form, if they can be trained."""
    if run is None:
        return state_of(RequestedRun).spec
    try:
        return run.spec
    except RunError:
        return None


def requested_tokenizer(run: Run | None) -> str | None:
    """The tokenizer of the same, where it is not the usual one."""
    if run is None:
        return state_of(RequestedRun).tokenizer
    try:
        return run.tokenizer()
    except RunError:
        return None


def _known(name: Any, names: list[str]) -> Task | Given:
    name = name if name in names else names[0]
    return TASKS.get(name) or GIVEN[name]


def _draw_settings(task: Task, own: OwnText, run: Run | None) -> None:
    start, size, curve = st.container(), st.container(), st.container()
    beside = _beside(task, run, own.parent)
    live = beside.run if beside and beside.can_go_on else None
    try:
        if own.parent is None:
            base = settings_for(task, beside.now) if beside else default_spec(task)
            draw_model = partial(_draw_model_settings, task, base, beside is not None, live)
            settings, below_steps = _draw_inputs(
                task, base, SettingInputs(task.name, live), draw_model
            )
            spec = spec_of(task, settings, base)
        else:
            spec, below_steps = _draw_tuned(task, own.parent, beside, live)
    except RunError as error:
        draw_start_button(start, None, own, run)
        with start:
            say(str(error))
        return
    requested = state_of(RequestedRun)
    requested.spec, requested.tokenizer = spec, own.tokenizer
    with curve:
        draw_schedule(task, spec.training, run if beside else None)
    if sentence := _warm_up_words(spec.training):
        below_steps.caption(sentence)
    draw_start_button(start, spec, own, run)
    with start:
        if beside:
            draw_differences(beside.run, beside.now, spec)
            draw_resets(beside.run, beside.now)
    with size:
        draw_size(task, spec)


@dataclass(frozen=True)
class _Beside:
    """The run on screen, one of the form's task: its settings now, and whether it can go on."""

    run: Run
    now: RunSpec
    can_go_on: bool


def _draw_tuned(
    task: Task, parent: OpenModel, beside: _Beside | None, live: Run | None
) -> tuple[RunSpec, DeltaGenerator]:
    """The run that trains this model further; RunError where it cannot be."""
    now = beside.now if beside else None
    inputs = SettingInputs(f"{task.name}_{parent.name}", live)
    tuning = draw_tuning(parent.config, inputs, now)
    base = now or finetune_spec(parent, task, tuning)

    def draw_seed() -> dict[str, Any]:
        with _group("model_settings", "Model", literal(parent.title)):
            st.caption(_architecture(base))
            return {"weights_seed": inputs.draw(TUNED_SEED, base.weights_seed)}

    settings, below_steps = _draw_inputs(task, base, inputs, draw_seed)
    return finetune_spec(parent, task, settings | tuning), below_steps


def _architecture(spec: RunSpec) -> str:
    """That of the model that is trained further, which cannot be chosen."""
    model = spec.model
    return (
        f"{MODEL_KINDS[model.kind]} of {model.n_layers} layers with {model.n_heads} heads, d_model "
        f"{model.d_model}, as it was trained."
    )


def _beside(task: Task, run: Run | None, parent: OpenModel | None) -> _Beside | None:
    """Nothing where the run is of another task, or began with the weights of another model."""
    try:
        starts_from = own_name(parent.name) if parent else ""
        if run is None or (run.spec.task, run.spec.parent) != (task.name, starts_from):
            return None
        status = run.status()
        can_go_on = may_change(run) and (status.is_active or status.can_resume)
        return _Beside(run, run.spec_now().with_hot(run.requested()), can_go_on)
    except RunError:
        return None  # which is said where the run is drawn


def _draw_inputs(
    task: Task, base: RunSpec, inputs: SettingInputs, draw_model: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], DeltaGenerator]:
    """The values, and a place below the number of steps; the model's are drawn among them."""
    training = base.training
    values = {name: inputs.draw(BY_NAME[name], getattr(training, name)) for name in IN_SIGHT}
    below_steps = st.container()
    if inputs.is_live:
        below_steps.caption(f"{HOT} applies now · {COLD} needs a restart")
    groups = st.container(gap="xsmall")
    with groups:
        values |= draw_model()
    optimizer = _shown(inputs, "optimizer", training.optimizer)
    with groups, _group("optimizer", "Optimizer", OPTIMIZER_NAMES[optimizer]):
        for name in OPTIMIZER:
            setting = BY_NAME[name]
            if setting.of and values["optimizer"] not in setting.of:
                continue
            values[name] = inputs.draw(setting, getattr(training, name))
    inputs.new_row()
    schedule = _shown(inputs, "schedule", training.schedule)
    warmup = _shown(inputs, "warmup", training.warmup)
    with groups, _group("schedule", "Schedule", f"{schedule}, {warmup} warm-up"):
        for name in ("schedule", "warmup"):
            values[name] = inputs.draw(BY_NAME[name], getattr(training, name))
    inputs.new_row()
    batch_size = _shown(inputs, "batch_size", training.batch_size)
    with groups, _group("data", "Data", f"batches of {batch_size}"):
        for name in DATA:
            values[name] = inputs.draw(BY_NAME[name], getattr(training, name))
        values["evaluate_every"] = inputs.draw(EVALUATE_EVERY, base.evaluate_every)
        values["stop_at"] = _draw_target(task, base, inputs)
    return values, below_steps


def _group(key: str, label: str, said: str) -> Any:
    """An expander that says what is chosen in it."""
    return st.expander(f"{label} · {said}", expanded=False, key=key)


def _options(name: str) -> Sequence[str]:
    return BY_NAME[name].options if name in BY_NAME else ()


def _shown(inputs: SettingInputs, name: str, value: Any) -> Any:
    """What the input of this setting shows, which is drawn later; `value` where that is none."""
    chosen, options = widget_state.get(inputs.key(name), value), _options(name)
    return chosen if not options or chosen in options else value


def _draw_target(task: Task, base: RunSpec, inputs: SettingInputs) -> float | None:
    """The held-out metric that ends the run, if one does."""
    held = "lower" if not task.higher_is_better else "higher"
    words = f"The run ends at the first measurement on held-out data that is as good, or {held}."
    stops = inputs.switch("Stop at a target", "stop_at_goal", base.stop_at is not None, words)
    low, high = task.measured_between
    target = Setting("stop_at", "Target", low=low, high=high, step=0.01, format="%.3g")
    goal = task.goal if base.stop_at is None else base.stop_at
    return float(inputs.draw(target, goal)) if stops else None


def _draw_model_settings(
    task: Task, base: RunSpec, is_of_run: bool, live: Run | None
) -> dict[str, Any]:
    inputs = SettingInputs(task.name, live)
    fitting = [name for name in (*LIKE, *PRESETS) if kind_of(name) == task.model.kind]
    own = (RUN_SHAPE, TASK_SHAPE) if is_of_run else (TASK_SHAPE,)
    chosen = _shown(inputs, "like", own[0])
    chosen = chosen if chosen in (*own, *fitting) else own[0]
    family = chosen if chosen in fitting else None
    inside = SettingInputs(f"{task.name}_{family}" if family else task.name, live)
    config = built_like(task.model, family) if family else task.model
    config = base.model if chosen == own[0] else config
    layers, heads, width = (
        _shown(inside, name, getattr(config, field))
        for name, field in (("layers", "n_layers"), ("heads", "n_heads"), ("d_model", "d_model"))
    )
    said = f"{layers} × {heads} {'head' if heads == 1 else 'heads'}, d {width}"
    with _group("model_settings", "Model", said):
        st.caption(f"{MODEL_KINDS[task.model.kind]}, as the task needs it.")
        if len(own) + len(fitting) > 1:
            widget_state.put(inputs.key("like"), chosen)
            inputs.draw(Setting("like", "Shape of", (*own, *fitting)), own[0])
        values = {
            each.name: inside.draw(each, getattr(config, each.field)) for each in MODEL_SETTINGS
        }
        seed = inside.draw(WEIGHTS_SEED, base.weights_seed)
    return values | {"like": family, "weights_seed": seed}


def _warm_up_words(training: TrainConfig) -> str:
    """What a warm-up that the run does not outlast means; nothing of any other."""
    if training.warmup <= training.steps:
        return ""
    reached = learning_rate(training, training.steps - 1)
    return (
        "The run ends during the warm-up, so its learning rate only rises to "
        f"{three(reached)}, not {three(training.lr)}."
    )
