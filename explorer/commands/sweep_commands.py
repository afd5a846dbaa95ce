"""The commands for several runs and for their results: sweep, runs, evaluate."""

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from explorer.catalog.folders import own_name
from explorer.catalog.run_index import HOST, Maker
from explorer.commands.training_commands import (
    EndedBySignal,
    add_task,
    folder_named,
    leave_at_signal,
    parent_named,
    read_text,
    tokenizer_of,
)
from explorer.runs.cluster import Cluster
from explorer.runs.finetuning import PARENT, task_for
from explorer.runs.metrics import best_value
from explorer.runs.run import Run, all_runs, open_folder
from explorer.runs.run_differences import changes, what_differs
from explorer.runs.spec import DONE, INTERRUPTED, RunError
from explorer.runs.sweep import SETTINGS, TUNED_SETTINGS, grid, notes_of, parse_values, title_of
from explorer.system.data_folders import runs_root
from explorer.tasks import TASKS, Task, stored_tokenizer, task_of, text_for
from explorer.tasks.recipes import RECIPES
from explorer.text.number_format import megabytes, three
from models.loading.checkpoint import peek
from models.loading.weight_files import WEIGHTS

SWEPT = TUNED_SETTINGS | SETTINGS
STATUS_EVERY = 0.2
"""Seconds between two updates of a sweep's progress bar."""


def add_commands(commands: Any) -> None:
    many = commands.add_parser("sweep", help="train a run for every combination of settings")
    many.set_defaults(command=sweep_settings)
    add_task(many)
    many.add_argument("--dask", metavar="ADDRESS", help="train on the Dask cluster at tcp://…")
    many.add_argument("--json", action="store_true", help="print the runs as JSON")
    for setting in SWEPT.values():
        flag, about = f"--{setting.name.replace('_', '-')}", f"{setting.label}: one or more values"
        many.add_argument(flag, metavar="A,B,…", help=about)

    runs = commands.add_parser("runs", help="list the runs in the app's folder")
    runs.set_defaults(command=list_runs)
    runs.add_argument("words", nargs="*", metavar="WORD", help="only runs that have these words")
    runs.add_argument("--json", action="store_true", help="print them as JSON")

    measure = commands.add_parser("evaluate", help="measure a trained model on held-out data")
    measure.set_defaults(command=evaluate)
    whole = "a run, its folder, one of its checkpoints, or the folder of a model that ships"
    measure.add_argument("model", metavar="RUN", help=whole)
    text = "the text or table that a model which ships was trained on, where that does not ship"
    measure.add_argument("--data", type=Path, metavar="FILE", help=text)
    measure.add_argument("--json", action="store_true", help="print the value as JSON")


def sweep_settings(args: argparse.Namespace) -> None:
    """Train the runs until all end, on a cluster of one process per core or on a named one.

    Ctrl-C saves their states; `resume` or the app continues them.
    """
    text = read_text(args.text) if args.text else None
    typed = {name: getattr(args, name) for name in SWEPT if getattr(args, name) is not None}
    values = {name: parse_values(SWEPT[name], words) for name, words in typed.items()}
    if args.parent and args.tokenizer:
        raise RunError("--tokenizer is that of the model of --from: leave it out.")
    parent = parent_named(args.parent) if args.parent else None
    tokenizer = tokenizer_of(args)
    task = task_for(parent, args.task, text) if parent else task_of(args.task, text, tokenizer)
    specs = grid(task, values, parent=parent)
    text = text_for(args.task, text)
    tokenizer = stored_tokenizer(args.task, text, tokenizer)
    cluster = Cluster(runs_root(), args.dask)
    try:
        notes = notes_of(f"{args.task}: {title_of(values)}")
        runs = cluster.train_all(specs, text, Maker(HOST), notes, tokenizer, parent)
        signals = _follow(runs)
    finally:
        cluster.close()
    if parent and not args.json:
        files = [(run.folder / PARENT / WEIGHTS).stat() for run in runs]
        size, times = megabytes(max(file.st_size for file in files)), len({f.st_ino for f in files})
        often = "once" if times == 1 else f"{times} times"
        print(f"All start from {own_name(parent.name)}; its weights, {size}, are stored {often}.")
    names = what_differs(specs, [run.title for run in runs])
    if args.json:
        both = zip(runs, names, strict=True)
        print(json.dumps([run_record(run) | {"differs": name} for run, name in both]))
    else:
        for run, name in zip(runs, names, strict=True):
            status = run.status()
            value = "" if status.value is None else f"{status.measure} {three(status.value)}"
            print(f"{run.name:20}{status.state:14}{value:34}{name}")
    if signals and any(run.status().state != DONE for run in runs):
        interrupted = [run.name for run in runs if run.status().state == INTERRUPTED]
        raise EndedBySignal(signals[0], interrupted)


def _follow(runs: Sequence[Run]) -> list[int]:
    """Show a progress bar over all steps, until no run trains or waits, or a signal has come."""
    total = sum(run.spec.training.steps for run in runs)
    with (
        leave_at_signal() as signals,
        tqdm(total=total, desc=f"{len(runs)} runs", unit="step") as bar,
    ):
        while True:
            every = [run.status() for run in runs]
            bar.update(sum(status.step for status in every) - bar.n)
            bar.set_postfix_str(f"{sum(not status.is_active for status in every)} ended")
            if signals or not any(status.is_active for status in every):
                return signals
            time.sleep(STATUS_EVERY)


def list_runs(args: argparse.Namespace) -> None:
    words = [word.lower() for word in args.words]
    records = [
        record
        for record in map(run_record, all_runs(runs_root()))
        if all(word in json.dumps(record).lower() for word in words)
    ]
    if args.json:
        print(json.dumps(records))
        return
    for run in records:
        value = "" if run["value"] is None else f"{run['measure']} {three(run['value'])}"
        steps = f"{run['step']:,} of {run['steps']:,}"
        print(f"{run['name']:20}{run['state']:14}{steps:18}{value:28}{', '.join(run['changes'])}")


def evaluate(args: argparse.Namespace) -> None:
    folder = folder_named(args.model)
    opened = open_folder(folder)
    around = (folder, *folder.absolute().parents[:2])
    run = next((Run(path) for path in around if (path / "spec.json").is_file()), None)
    task = _task_of(run, folder, args.data)
    result = task.measure(opened.model)
    if args.json:
        about = {"model": str(folder), "task": task.name, "held_out": task.held_out}
        print(json.dumps(about | {"measure": result.name, "value": result.value}))
    else:
        print(f"On held-out data: {result.name} {three(result.value)}.")


def _task_of(run: Run | None, folder: Path, data: Path | None) -> Task:
    """The task of the run, or of a model that ships, whose training text may not ship with it."""
    about = {} if run is not None else peek(folder)[1]
    name = str(about.get("task"))
    if run is not None or name in TASKS:
        if data is not None:
            raise RunError("The held-out data of this model is known: leave --data out.")
        return TASKS[name] if run is None else run.task()
    recipe, source = RECIPES.get(name), about.get("data")
    if recipe is None or not isinstance(source, dict):
        raise RunError("This model does not say on which held-out data it can be measured.")
    if data is None:
        raise RunError(f"This model is measured on a part of {recipe.file}: name it with --data.")
    text = read_text(data).replace("\r\n", "\n")  # as the command that trained it has read it
    if hashlib.sha256(text.encode()).hexdigest() != source.get("sha256"):
        raise RunError(
            f"{data} is not the {recipe.file} that this model was trained on, so its held-out part "
            "is not known."
        )
    return recipe.task(text)


def run_record(run: Run) -> dict[str, Any]:
    """A run as JSON; one that cannot be read says why in `fault`."""
    notes = run.notes()
    about: dict[str, Any] = {"name": run.name, "folder": str(run.folder), "tags": notes.tags}
    about |= {"note": notes.note, "sweep": notes.sweep_title}
    try:
        spec, status = run.spec, run.status()
    except RunError as error:
        nothing = {"state": "damaged", "step": 0, "steps": 0, "value": None, "measure": ""}
        return about | nothing | {"changes": [], "fault": str(error)}
    best = best_value(run.folder, status.measure)
    about |= {"task": spec.task, "state": status.state, "step": status.step, "steps": status.steps}
    about |= {"loss": status.loss, "measure": status.measure, "value": status.value}
    about |= {"best": best and best.value, "best_step": best and best.step}
    return about | {"seconds": status.seconds, "changes": changes(spec), "message": status.message}
