"""The start of a run: its parent, its text and tokenizer, LoRA, and Start, Restart and resets."""

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from explorer.app import reader_models, widget_state
from explorer.app.controls import choose, one_of
from explorer.app.messages import say
from explorer.app.reader_runs import is_own, maker, may_change
from explorer.app.session import redraw, state_of
from explorer.catalog import ModelError, in_a_sentence
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import OpenModel, open_entry
from explorer.runs.cluster import cluster, is_active
from explorer.runs.finetuning import PARENT, task_for, usual_targets
from explorer.runs.run import Run, open_folder
from explorer.runs.run_differences import differences
from explorer.runs.settings import Setting
from explorer.runs.spec import LARGEST_SEED, RunError, RunSpec
from explorer.system import limits
from explorer.tasks import CUSTOM_TASKS, CustomTask, Task, stored_tokenizer, task_of
from explorer.tasks.own_data import SUBWORDS, WORDS
from explorer.text import TextError
from explorer.text.checked_text import BYTES_OF_CHARACTER, decoded
from explorer.text.visible_text import literal
from explorer.views.training.form_inputs import SettingInputs
from explorer.views.training.run_words import first_words
from models import TransformerConfig
from models.loading.checkpoint import CheckpointError
from models.loading.checkpoint_tokenizer import tokenizer_text
from models.lora import target_ranks

NEW_WEIGHTS = "New weights"
WHOLE, LORA = "Whole model", "LoRA"
USUAL_RANK = 4
ALPHA = Setting(
    *("lora_alpha", "α"),
    low=0.01,
    high=1_024.0,
    step=1.0,
    format="%.3g",
    help="The product is scaled by α/r.",
)
MOST_PASTED = 200_000
"""Characters, since a pasted text is sent with every click on the page, and a file only once."""
TOKENIZERS = {WORDS: "Its own words", SUBWORDS: "Its own subwords (byte-level BPE)"}
OF_MODEL = "Those of the model "
MOST_NAMED = 4
FORMER = "former_run"
"""Where a click keeps the run that its button said it stops, when it was drawn."""
RESETS = {
    "Same weights": "The same run from step 0: the same weights, the same batches.",
    "New weights": "Other weights at step 0, from the next seed; the same batches.",
    "New data": "The same weights at step 0; other batches, from the next seed.",
}


@dataclass(frozen=True)
class OwnText:
    """The reader's text and tokenizer, as `task_of` takes them; None for a task without a text.

    `parent` is the trained model that the run starts from, whose tokenizer reads the text.
    """

    text: str | None = None
    tokenizer: str | None = None
    parent: OpenModel | None = None

    def task(self, name: str) -> Task:
        """The task with this text; a TextError says why there is none."""
        if self.parent is not None:
            return task_for(self.parent, name, self.text)
        return task_of(name, self.text, self.tokenizer)


def draw_start_from(task: str, key: str = "", run: Run | None = None) -> OpenModel | None:
    """Draw and open the model that a run starts from, by default that of `run`; None for none.

    A ModelError says why it cannot be opened. With a `key`, the choice is not in the address.
    """
    if task in CUSTOM_TASKS and not CUSTOM_TASKS[task].tokenizers:
        return None  # it has a vocabulary of its own, which no trained model has
    models, names = _models_by_label()
    options = (NEW_WEIGHTS, *names)  # labels, since the address has them too
    if not names:
        return None
    if not key:
        parent = run.spec.parent if run and run.is_readable() else ""
        usual = next((label for label in names if own_name(names[label]) == parent), NEW_WEIGHTS)
        follow_run("start_from", usual, run)
        chosen = one_of("start_from", options, usual, as_list=True)
    else:
        if widget_state.get(key) not in options:
            widget_state.put(key, NEW_WEIGHTS)
        chosen = st.selectbox("Start from", options, key=key, persist_state="session", width=200)
    return open_entry(models[names[chosen]]) if chosen in names else None


class FollowedRuns(dict[str, str]):
    """By the key of a control, the run whose value it has taken."""


def follow_run(key: str, value: object, run: Run | None) -> None:
    """Let a control that is drawn next take this value once another run is on screen."""
    followed, name = state_of(FollowedRuns), run.name if run else ""
    if followed.get(key, name) != name:
        choose(key, value)
    followed[key] = name


def _models_by_label() -> tuple[dict[str, ModelEntry], dict[str, str]]:
    """The models that can be opened, and their names by their labels in a list."""
    models = reader_models.openable()
    return models, {label: name for name, label in reader_models.labels(models).items()}


def draw_own_text(task: str, parent: OpenModel | None) -> OwnText | None:
    """Draw the inputs of a task's text and tokenizer; None for a text that cannot be read."""
    kind = CUSTOM_TASKS.get(task)
    if kind is None:
        return OwnText(parent=parent)
    try:
        text = _draw_text(kind)
        if parent is not None:
            st.caption(f"Read by the tokenizer of {literal(parent.title)}.")
        tokenizer = _draw_tokenizer(kind) if kind.tokenizers and parent is None else None
    except TextError as error:
        say(str(error))
        return None
    return OwnText(text, tokenizer, parent)


def _draw_tokenizer(kind: type[CustomTask]) -> str | None:
    """Draw the choice of a tokenizer, as `task_of` takes it; None for the usual one."""
    models, names = _models_by_label()
    trained = {TOKENIZERS[name]: name for name in kind.tokenizers}
    options = [*trained, *(f"{OF_MODEL}{label}" for label in names)]
    chosen = one_of("tokens", options, as_list=True)
    if chosen in trained:
        return None if chosen == options[0] else trained[chosen]
    label = chosen.removeprefix(OF_MODEL)
    try:
        text = tokenizer_text(models[names[label]].folder)
    except CheckpointError as error:
        raise TextError(str(error)) from error
    if text is None:
        raise TextError(f"{label} comes without a tokenizer.json: choose another tokenizer.")
    return text


def _draw_text(kind: type[CustomTask]) -> str:
    """Draw whose text is read, and the inputs of another one; its size is checked."""
    about = st.empty()
    with st.expander("Your own table" if kind.columns else "Your own text", key="own_text"):
        own = _draw_own(kind)
    about.caption("Your own, which stays with the run." if own else kind.bundled.attribution)
    return own or kind.bundled.text


def _draw_own(kind: type[CustomTask]) -> str:
    """Draw the inputs of a text, pasted or uploaded; empty without one."""
    is_table = bool(kind.columns)
    pasted = st.text_area(
        f"Table with the columns {' and '.join(kind.columns)}" if is_table else "Text",
        key=f"pasted_{kind.name}",
        height=140,
        persist_state="session",
    )
    st.button("Use this table" if is_table else "Use this text", key=f"use_{kind.name}")
    largest = BYTES_OF_CHARACTER * limits.CORPUS_CHARACTERS.most
    kinds = ["csv", "tsv"] if is_table else ["txt"]
    file = st.file_uploader(
        f"Or a .{' or .'.join(kinds)} file",
        type=kinds,
        key=f"file_{kind.name}",
        max_upload_size=largest // 1_000_000 or 1,
    )
    if file is None and len(pasted) > MOST_PASTED:
        raise TextError(
            f"Pasted text can have at most {MOST_PASTED:,} characters: upload a file instead."
        )
    if file is None:
        return str(pasted)
    if file.size > largest:
        most = limits.CORPUS_CHARACTERS.most
        raise TextError(f"The file is too long; {most:,} characters at most.")
    if not file.size:
        raise TextError("The file is empty: choose another.")
    return decoded(file.getvalue())


def draw_tuning(
    config: TransformerConfig, inputs: SettingInputs, now: RunSpec | None
) -> dict[str, Any]:
    """Draw what part of the model is trained, for `finetune_spec`; the default is that of `now`."""
    ranks, inside = target_ranks(config), now if now and now.lora_rank else None
    usual = WHOLE if now and not inside else LORA
    tuned = inputs.linked(
        Setting("tuned", "Train", (LORA, WHOLE)),
        usual,
        st.segmented_control,
        options=(LORA, WHOLE),
        default=usual,
        required=True,
        help="LoRA freezes the model. To each chosen matrix it adds a product of two thin ones and "
        "trains only these: r · (in + out) numbers in place of in · out.",
    )
    if tuned == WHOLE:
        return {"lora_rank": 0}
    targets = list(inside.lora_targets if inside else usual_targets(config))
    matrices = Setting("lora_targets", "Matrices with an adapter", tuple(ranks))
    chosen = inputs.linked(matrices, targets, st.multiselect, options=[*ranks], default=targets)
    most = min((ranks[name] for name in chosen), default=1)
    rank = Setting("lora_rank", "Rank r", low=1, high=most, help="The rank of each adapter.")
    return {
        "lora_rank": inputs.draw(rank, min(most, inside.lora_rank if inside else USUAL_RANK)),
        "lora_alpha": inputs.draw(ALPHA, inside.lora_alpha if inside else 2.0 * USUAL_RANK),
        "lora_targets": tuple(chosen) or ("none",),
    }


def draw_start_button(place: Any, spec: RunSpec | None, own: OwnText, run: Run | None) -> None:
    """Draw the button that starts a run; it first stops a run of the same task that trains."""
    is_same = run is not None and spec and run.is_readable() and run.spec.task == spec.task
    former = run if run is not None and is_same and _trains(run) else None
    words = former and f"Stops {literal(former.title)}, and starts a new run with these settings."
    if spec is None:
        words = "The note in the form says what to change before a run can start."
    clicked = place.button(
        "Restart" if former else "Start training",
        type="primary",
        width="stretch",
        key="start_training" if spec else None,
        icon=":material/restart_alt:" if former else ":material/play_arrow:",
        disabled=spec is None,
        help=words,
        on_click=widget_state.put,
        args=(FORMER, former),
    )
    if clicked and spec:
        with place:
            start(spec, own)


def draw_resets(run: Run, now: RunSpec) -> None:
    """Draw a button for each way to start the run on screen again from step 0."""
    if not is_own(run):
        return
    former = run if _trains(run) else None
    stops = f" Stops {literal(run.title)}." if former else ""
    with st.container(gap=None):
        st.caption(f"Start {literal(run.title)} again with")
        with st.container(horizontal=True, gap="small"):
            clicked = [
                label
                for label, words in RESETS.items()
                if st.button(
                    label,
                    key=f"reset_{label.lower().replace(' ', '_')}",
                    type="tertiary",
                    help=words + stops,
                    on_click=widget_state.put,
                    args=(FORMER, former),
                )
            ]
    for label in clicked[:1]:
        try:
            parent = open_folder(run.folder / PARENT) if now.parent else None
            own = OwnText(run.text(), run.tokenizer(), parent)
        except (ModelError, RunError) as error:
            say(str(error))
            return
        start(reset(now, label), own)


def reset(spec: RunSpec, label: str) -> RunSpec:
    """The same settings, with the seeds that this label of `RESETS` calls for."""
    if label == "New weights":
        return replace(spec, weights_seed=(spec.weights_seed + 1) % LARGEST_SEED)
    if label == "New data":
        seed = (spec.training.seed + 1) % LARGEST_SEED
        return replace(spec, training=spec.training.replace(seed=seed))
    return spec


def draw_differences(run: Run, now: RunSpec, spec: RunSpec, *, is_text_other: bool) -> None:
    """Say how the form differs from the run on screen, whose settings are `now`."""
    words = differences(now, spec) + (["another text"] if is_text_other else [])
    if words:
        named = first_words(words, MOST_NAMED, last=", and ")
        st.caption(f"Differs from **{literal(run.title)}**: {named}. Needs a restart.")


def start(spec: RunSpec, own: OwnText) -> None:
    """Start a run and show it; the run that the button named is stopped, and can be resumed."""
    former = widget_state.get(FORMER)
    try:
        if former is not None and _trains(former):
            cluster().stop(former)
        tokenizer = stored_tokenizer(spec.task, own.text, own.tokenizer)
        runs = cluster().train_all([spec], own.text, maker(), None, tokenizer, own.parent)
        widget_state.put("run", runs[0].name)
    except (RunError, TextError, OSError) as error:
        say(in_a_sentence(error))
    else:
        redraw()  # the new run is drawn beside the form


def _trains(run: Run) -> bool:
    """Whether it is this reader's run, and trains or is queued."""
    return is_own(run) and may_change(run) and is_active(run)
