"""The form of the Training page: a task, its model, its optimizer, its cost, and the start.

A value that the reader did not choose follows the run on screen, or else the task.
"""

from collections.abc import Callable
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
from explorer.catalog.opened_model import OpenModel, open_model
from explorer.charts.training_curves import SCHEDULE_HEIGHT, rate_table, schedule_chart
from explorer.components.chart import chart
from explorer.components.fragment import fragment
from explorer.runs.cluster import status_of
from explorer.runs.finetuning import finetune_spec, task_for, with_head
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
from explorer.tasks import CUSTOM_TASKS, TASKS, CustomTask, Task, task_of, text_for
from explorer.tasks.own_data import SUBWORDS, WORDS
from explorer.tasks.task import check_fit
from explorer.text import TextError
from explorer.text.number_format import megabytes, three
from explorer.text.visible_text import literal
from explorer.views.shared.code_panel import Expression, Script, script
from explorer.views.training.data_view import RequestedRun
from explorer.views.training.form_inputs import COLD, HOT, LinkedSettings, SettingInputs
from explorer.views.training.live_run import seconds_between
from explorer.views.training.run_start import (
    OwnText,
    draw_differences,
    draw_own_text,
    draw_resets,
    draw_start_button,
    draw_start_from,
    draw_tuning,
    follow_run,
)
from explorer.views.training.run_words import duration, metrics_of
from models import Transformer
from models.config import TrainConfig
from models.families.family_presets import LIKE, kind_of
from models.presets import PRESETS
from models.schedules import learning_rate
from models.training import train

TASK_SHAPE, RUN_SHAPE = "task default", "as in the run"
BY_NAME = {setting.name: setting for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS)}
MODEL_KINDS = {
    "encoder": "An encoder",
    "decoder": "A decoder",
    "encoder-decoder": "An encoder and a decoder",
}
OPTIMIZER_NAMES = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD", "muon": "Muon"}
IN_SIGHT = ("lr", "steps")
OPTIMIZER = ("momentum", "beta2", "eps", "weight_decay", "clip", "label_smoothing")
DATA = ("batch_size", "accumulation", "seed")
TUNED_SEED = replace(WEIGHTS_SEED, help="The seed of a new head, and of the adapters at step 0.")


def draw_schedule(task: Task, training: TrainConfig, run: Run | None) -> None:
    """Draw the learning rate's schedule, repeatedly while the run trains, whose step is marked."""
    every = seconds_between(status_of(run)) if run is not None else None
    fragment(every=every)(_draw_now)(task, training, run)


def _draw_now(task: Task, training: TrainConfig, run: Run | None) -> None:
    rows = metrics_of(run).rows if run is not None else []
    past_rates = [(row.step, row.lr) for row in rows if row.lr is not None]
    chart(
        schedule_chart(training, max((rate for _, rate in past_rates), default=0.0)),
        table=rate_table(past_rates),
        height=SCHEDULE_HEIGHT,
        key="schedule_curve",
        title=f"Learning rate of {task.name if run is None else run.title}",
    )


def draw_size(task: Task, spec: RunSpec) -> None:
    """Draw the size and the speed in a line, whose help says what they consist of."""
    size = training_size(task, spec)
    line = st.empty()
    trained = trained_parameters(spec)
    words = f"{size.parameters:,} parameters"
    words = words if trained == size.parameters else f"{trained:,} of {words} are trained"
    words = f"{words} · {megabytes(size.memory)} of memory"
    line.caption(f"{words} · …")
    speed = expected_speed(task, spec)
    seconds = spec.training.steps / speed.steps_per_second
    line.caption(
        f"{words} · about {three(speed.steps_per_second)} steps/s, {duration(seconds)}",
        help=(
            f"**Memory**: weights {megabytes(size.weights)}, gradients "
            f"{megabytes(size.gradients)}, optimizer {megabytes(size.optimizer)}, and at most "
            f"{megabytes(size.activations)} for the forward and backward pass of one batch. Python "
            "and torch themselves come on top.\n\n**Speed**: "
            + (
                f"passes of this model, measured here on {TIMED} batches and on held-out data; "
                if speed.is_timed
                else f"estimated from {three(size.operations / 1e9)} billion operations a step and "
                "the speed of a model of 256 dimensions, measured here; "
            )
            + "updates of the weights and snapshots come on top."
        ),
    )


def draw_form(run: Run | None) -> Task | None:
    """Draw the form and return its task, or None while its text cannot be read."""
    requested = state_of(RequestedRun)
    requested.spec = requested.tokenizer = None
    state_of(LinkedSettings).begin()
    kinds: dict[str, Task | type[CustomTask]] = {**TASKS, **CUSTOM_TASKS}
    usual = run.spec.task if run and run.is_readable() and run.spec.task in kinds else ""
    follow_run("task", usual or widget_state.get("task"), run)
    about = kinds.get(widget_state.get("task")) or kinds[usual or next(iter(kinds))]
    picker, folded, start = st.columns([4, 3, 4], vertical_alignment="center")
    with picker:
        name = one_of("task", [*kinds], usual, as_list=True, help=about.explanation)
    settings = folded.popover("Settings", icon=":material/tune:", width="stretch", key="settings")
    try:
        with settings:
            own = draw_own_text(name, draw_start_from(name, run=run))
        if own is None:
            draw_start_button(start, None, OwnText(), None)
            return None
        task = own.task(name)
    except (ModelError, TextError) as error:
        say(str(error))
        return None
    below = st.container(gap=None)
    with settings:
        _draw_settings(task, own, run, start, below)
    return task


def requested_run(run: Run | None) -> RequestedRun:
    """The settings of the run on screen, or those of the form, if they can be trained."""
    try:
        if run is None:
            return state_of(RequestedRun)
        return RequestedRun(run.spec, run.tokenizer(), run.bundled is None)
    except RunError:
        return RequestedRun()


def _draw_settings(
    task: Task, own: OwnText, run: Run | None, start: DeltaGenerator, below: DeltaGenerator
) -> None:
    """Draw the settings, the button at `start`, and `below` what differs and what is wrong."""
    resets, size, curve = st.container(), st.container(), st.container()
    on_screen = _run_on_screen(task, run, own.parent)
    live = on_screen.run if on_screen and on_screen.can_go_on else None
    try:
        if own.parent is None:
            base = settings_for(task, on_screen.now) if on_screen else default_spec(task)
            draw_model = partial(_draw_model_settings, task, base, on_screen is not None, live)
            inputs = SettingInputs(task.name, live)
            settings, below_steps = _draw_inputs(task, base, inputs, draw_model)
            spec = spec_of(task, settings, base)
        else:
            spec, below_steps = _draw_tuned(task, own.parent, on_screen, live)
    except RunError as error:
        draw_start_button(start, None, own, run)
        with below:
            state_of(LinkedSettings).end()
            say(str(error))
        return
    requested = state_of(RequestedRun)
    requested.spec, requested.tokenizer = spec, own.tokenizer
    requested.has_own_text = own.text != text_for(task.name)
    with curve:
        draw_schedule(task, spec.training, run if on_screen else None)
    if spec.training.warmup > spec.training.steps:
        peak = learning_rate(spec.training, spec.training.steps - 1)
        below_steps.caption(
            "The run ends during the warm-up, so its learning rate only rises to "
            f"{three(peak)}, not {three(spec.training.lr)}."
        )
    draw_start_button(start, spec, own, run)
    with below:
        state_of(LinkedSettings).end()
        if on_screen:
            is_other = on_screen.text != own.text
            draw_differences(on_screen.run, on_screen.now, spec, is_text_other=is_other)
    if on_screen:
        with resets:
            draw_resets(on_screen.run, on_screen.now)
    with size:
        draw_size(task, spec)


@dataclass(frozen=True)
class _RunOnScreen:
    """The run on screen, if it is of the form's task: its settings now, and if it can go on."""

    run: Run
    text: str | None
    now: RunSpec
    can_go_on: bool


def _draw_tuned(
    task: Task, parent: OpenModel, on_screen: _RunOnScreen | None, live: Run | None
) -> tuple[RunSpec, DeltaGenerator]:
    """Draw the settings that train this model further; a RunError says why it cannot be."""
    now = on_screen.now if on_screen else None
    inputs = SettingInputs(f"{task.name}_{parent.name}", live)
    tuning = draw_tuning(parent.config, inputs, now)
    base = now or finetune_spec(parent, task, tuning)
    model = base.model

    def draw_seed() -> dict[str, Any]:
        with _group("model_settings", "Model", literal(parent.title)):
            st.caption(
                f"{MODEL_KINDS[model.kind]} of {model.n_layers} layers with {model.n_heads} heads, "
                f"d_model {model.d_model}, as it was trained."
            )
            return {"weights_seed": inputs.draw(TUNED_SEED, base.weights_seed)}

    settings, below_steps = _draw_inputs(task, base, inputs, draw_seed)
    return finetune_spec(parent, task, settings | tuning), below_steps


def _run_on_screen(task: Task, run: Run | None, parent: OpenModel | None) -> _RunOnScreen | None:
    """None if the run is of another task or starts from another model."""
    try:
        starts_from = own_name(parent.name) if parent else ""
        if run is None or (run.spec.task, run.spec.parent) != (task.name, starts_from):
            return None
        check_fit(task, run.spec.model)
        status = status_of(run)
        can_go_on = may_change(run) and (status.is_active or status.can_resume)
        now = run.spec_now().with_hot(run.requested_values())
        return _RunOnScreen(run, run.text(), now, can_go_on)
    except (RunError, TextError):
        return None  # the error is shown where the run is drawn


def _draw_inputs(
    task: Task, base: RunSpec, inputs: SettingInputs, draw_model: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], DeltaGenerator]:
    """Draw the settings; return their values, and a place below the number of steps."""
    training = base.training

    def draw(*names: str) -> dict[str, Any]:
        return {name: inputs.draw(BY_NAME[name], getattr(training, name)) for name in names}

    def value_of(name: str) -> Any:
        return inputs.value_of(BY_NAME[name], getattr(training, name))

    values = draw(*IN_SIGHT)
    below_steps = st.container()
    if inputs.live:
        below_steps.caption(f"{HOT} takes effect at once · {COLD} needs a restart")
    groups = st.container(gap="xsmall")
    with groups:
        values |= draw_model()
    with groups, _group("optimizer", "Optimizer", OPTIMIZER_NAMES[value_of("optimizer")]):
        values |= draw("optimizer")
        optimizers = {name: BY_NAME[name].of or (values["optimizer"],) for name in OPTIMIZER}
        values |= draw(*(name for name in OPTIMIZER if values["optimizer"] in optimizers[name]))
    inputs.new_row()
    words = f"{value_of('schedule')}, {value_of('warmup')} warm-up"
    with groups, _group("schedule", "Schedule", words):
        values |= draw("schedule", "warmup")
    inputs.new_row()
    with groups, _group("data", "Data", f"batches of {value_of('batch_size')}"):
        values |= draw(*DATA)
        values["evaluate_every"] = inputs.draw(EVALUATE_EVERY, base.evaluate_every)
        better = "higher" if task.higher_is_better else "lower"
        words = (
            f"The run ends at the first measurement on held-out data that is as good, or {better}."
        )
        stop = Setting("stop_at_goal", "Stop at a target", help=words, is_switch=True)
        stops = inputs.draw(stop, base.stop_at is not None)
        low, high = task.measured_between
        target = Setting("stop_at", "Target", low=low, high=high, step=0.01, format="%.3g")
        goal = task.goal if base.stop_at is None else base.stop_at
        values["stop_at"] = float(inputs.draw(target, goal)) if stops else None
    return values, below_steps


def _group(key: str, label: str, choice: str) -> Any:
    """An expander whose label says what is chosen in it."""
    return st.expander(f"{label} · {choice}", expanded=False, key=key)


def _draw_model_settings(
    task: Task, base: RunSpec, is_of_run: bool, live: Run | None
) -> dict[str, Any]:
    inputs = SettingInputs(task.name, live)
    fitting = [name for name in (*LIKE, *PRESETS) if kind_of(name) == task.model.kind]
    own = (RUN_SHAPE, TASK_SHAPE) if is_of_run else (TASK_SHAPE,)
    shape_of = Setting("like", "Shape of", (*own, *fitting))
    chosen = inputs.value_of(shape_of, own[0])
    family = chosen if chosen in fitting else None
    inside = SettingInputs(f"{task.name}_{family}" if family else task.name, live)
    config = built_like(task.model, family) if family else task.model
    config = base.model if chosen == own[0] else config
    layers, heads, width = (
        inside.value_of(BY_NAME[name], getattr(config, field))
        for name, field in (("layers", "n_layers"), ("heads", "n_heads"), ("d_model", "d_model"))
    )
    shape = f"{layers} × {heads} {'head' if heads == 1 else 'heads'}, d {width}"
    with _group("model_settings", "Model", shape):
        st.caption(f"{MODEL_KINDS[task.model.kind]}, as the task needs it.")
        if len(own) + len(fitting) > 1:
            inputs.draw(shape_of, own[0])
        lowest = {"max_len": task.model.max_len}
        values = {
            setting.name: inside.draw(
                replace(setting, low=lowest.get(setting.name, setting.low)),
                setting.value_in(config),
            )
            for setting in MODEL_SETTINGS
        }
        seed = inside.draw(WEIGHTS_SEED, base.weights_seed)
    return values | {"like": family, "weights_seed": seed}


OF_THE_TEXT = ("vocab_size", "src_vocab_size", "pad_id", "bos_id", "generation")
"""Settings of a model that follow from the reader's text."""


def training_script(requested: RequestedRun) -> Script | None:
    """The code of this training; the reader's text is opened by name, not copied."""
    spec, tokenizer = requested.spec, requested.tokenizer
    if spec is None:
        return None
    is_own = requested.has_own_text and spec.task in CUSTOM_TASKS
    text = Expression('open("your-text.txt").read()') if is_own else None
    if spec.parent:
        settings = {
            setting.name: getattr(spec.training, setting.field)
            for setting in TRAINING_SETTINGS
            if setting.field in spec.training.to_dict()
        }
        settings |= {"weights_seed": spec.weights_seed, "lora_rank": spec.lora_rank}
        if spec.lora_rank:
            settings |= {"lora_alpha": spec.lora_alpha, "lora_targets": spec.lora_targets}
        return script(finetuning_code, spec.parent, spec.task, text, settings)
    if tokenizer and tokenizer not in (WORDS, SUBWORDS):
        tokenizer = Expression('open("tokenizer.json").read()')
    model, training = (_changes(spec, part) for part in ("model", "training"))
    return script(training_code, spec.task, text, tokenizer, model, training, spec.weights_seed)


def _changes(spec: RunSpec, part: str) -> dict[str, Any]:
    """The settings that differ from the task's own."""
    mine = getattr(spec, part).to_dict()
    if spec.task not in TASKS:
        return {name: value for name, value in mine.items() if name not in OF_THE_TEXT}
    theirs = getattr(TASKS[spec.task], part).to_dict()
    return {name: value for name, value in mine.items() if theirs.get(name) != value}


def training_code(
    name: str,
    text: str | None,
    tokenizer: str | None,
    model_settings: dict[str, Any],
    settings: dict[str, Any],
    seed: int,
) -> None:
    task = task_of(name, text, tokenizer)
    training = task.training.replace(**settings)
    model = Transformer(task.model.replace(**model_settings), seed=seed)
    losses = []
    for report in train(model, lambda step: task.batch(step, training), training):
        losses.append(report.loss)
        print(report.step, report.loss)


def finetuning_code(parent: str, name: str, text: str | None, settings: dict[str, Any]) -> None:
    opened = open_model(parent)
    task = task_for(opened, name, text)
    spec = finetune_spec(opened, task, settings)
    model = with_head(opened.model, spec)
    model = spec.adapt(model) if spec.lora_rank else model
    losses = []
    for report in train(model, lambda step: task.batch(step, spec.training), spec.training):
        losses.append(report.loss)
        print(report.step, report.loss)
