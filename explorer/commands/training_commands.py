"""The commands that train: `train` and `resume`.

`torchrun --nproc-per-node 2 -m explorer train …` trains in two processes, with the same updates
except for dropout.

A run is the same folder that the app writes. The app shows a run in its folder of runs while it
trains, and can open its model afterwards.
"""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tqdm import tqdm

from explorer.catalog.opened_model import OpenModel, open_model
from explorer.runs.exported_metrics import EventFiles, write_csv
from explorer.runs.finetuning import finetune_spec, task_for
from explorer.runs.run import Run, create, create_in, open_folder, run_named
from explorer.runs.settings import (
    EVALUATE_EVERY,
    MODEL_SETTINGS,
    TRAINING_SETTINGS,
    WEIGHTS_SEED,
    spec_of,
)
from explorer.runs.spec import HOT, INTERRUPTED, RunError, RunSpec
from explorer.runs.worker import ANEW, END, advance, broadcast, saved_or_untrained
from explorer.system import limits
from explorer.system.data_folders import recorded_root, runs_root
from explorer.tasks import CUSTOM_TASKS, TASKS, stored_tokenizer, task_of, text_for
from explorer.tasks.own_data import SUBWORDS, WORDS
from explorer.text import TextError
from explorer.text.checked_text import BYTES_OF_CHARACTER, decoded
from explorer.text.number_format import three
from models import distributed
from models.families.family_presets import LIKE
from models.loading.safe_files import quoted
from models.lora import TARGETS
from models.presets import PRESETS
from models.training import train


def follow(folder: Path) -> None:
    """Train this run together with the first process, until that ends."""
    run = Run(folder)
    spec, task = run.spec, run.task()
    model, state = saved_or_untrained(run, spec)
    updates = None
    try:
        broadcast([END])
        while True:
            message, *values = broadcast([END] * (1 + len(HOT)))
            if message == END:
                return
            if updates is None or message == ANEW:
                training = spec.with_hot(dict(zip(HOT, values, strict=True))).training
                updates = train(model, partial(task.batch, training=training), training, state)
            next(updates, None)
    except RuntimeError as error:  # the run's status has the first process's own errors
        raise RunError("The first process of this training has ended.") from error


def add_commands(commands: Any) -> None:
    make = commands.add_parser("train", help="train a model for a task, with a progress bar")
    make.set_defaults(command=partial(_train_together, run_of=_new_run))
    add_task(make)
    folder = "the folder of the run; by default one in the app's folder of runs"
    make.add_argument("--out", type=Path, metavar="FOLDER", help=folder)
    shape = "the shape of a published family or document"
    make.add_argument("--like", choices=[*LIKE, *PRESETS], help=shape)
    for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS, EVALUATE_EVERY, WEIGHTS_SEED):
        value: dict[str, Any] = {"type": float if setting.format else int}
        value |= {"metavar": "X" if setting.format else "N"}
        if setting.options:
            value = {"choices": setting.options}
        if setting.is_switch:
            value = {"action": argparse.BooleanOptionalAction, "default": None}
        make.add_argument(f"--{setting.name.replace('_', '-')}", help=setting.label, **value)
    rank = "train LoRA adapters of this rank, not the whole model"
    make.add_argument("--lora-rank", type=int, default=0, metavar="N", help=rank)
    make.add_argument("--lora-alpha", type=float, metavar="X", help="their α; by default 2 × rank")
    matrices = f"the matrices that get one: {', '.join(TARGETS)}; by default q_proj and v_proj"
    make.add_argument("--lora-targets", nargs="+", choices=TARGETS, metavar="NAME", help=matrices)
    goal = "end the run at this value on held-out data"
    make.add_argument("--stop-at", type=float, metavar="X", help=goal)

    again = commands.add_parser("resume", help="continue a run that was paused or interrupted")
    again.set_defaults(command=partial(_train_together, run_of=_old_run))
    again.add_argument("run", metavar="RUN", help="its name in the app's list, or its folder")
    for command in (make, again):
        command.add_argument("--json", action="store_true", help="print the end as JSON")
        command.add_argument("--metrics-csv", action="store_true", help="write metrics.csv as well")
        board = "write TensorBoard's event files as well"
        command.add_argument("--tensorboard", action="store_true", help=board)


def add_task(command: argparse.ArgumentParser) -> None:
    """The arguments for a task, its text and tokenizer, and the model that it starts from."""
    command.add_argument("task", metavar="TASK", help=", ".join([*TASKS, *CUSTOM_TASKS]))
    own = "a text or table of your own; without it, the one that comes with the app"
    command.add_argument("--text", type=Path, metavar="FILE", help=own)
    own = "of a task of your own text: trained on it, or a tokenizer.json"
    command.add_argument("--tokenizer", metavar="words|subwords|FILE", help=own)
    start = "fine-tune this model: a run, a checkpoint's folder, or a name of the app's list"
    command.add_argument("--from", dest="parent", metavar="MODEL", help=start)


def tokenizer_of(args: argparse.Namespace) -> str | None:
    """The tokenizer of `--tokenizer`, as `task_of` takes it."""
    named: str | None = args.tokenizer
    return named if named in (None, WORDS, SUBWORDS) else read_text(Path(named))


def _train_together(args: argparse.Namespace, run_of: Callable[[argparse.Namespace], Run]) -> None:
    """Train in all processes that torchrun started; the first one leads and writes the run."""
    with distributed.process_group():
        if distributed.rank() > 0:
            with leave_at_signal():  # only the first process acts on the signal
                follow(Path(broadcast_text("")))
            return
        run = run_of(args)
        broadcast_text(str(run.folder))
        _show_training(run, args)


def broadcast_text(text: str) -> str:
    """The text of process 0, in every process."""
    data = text.encode()
    size = int(broadcast([len(data)])[0])
    numbers = list(data) if distributed.rank() == 0 else [0] * size
    return bytes(map(int, broadcast(numbers))).decode()


def _new_run(args: argparse.Namespace) -> Run:
    text = read_text(args.text) if args.text else None
    if args.parent:
        return _tuned_run(args, text)
    if args.lora_rank:
        raise RunError("LoRA adapts a trained model: name it with --from.")
    tokenizer = tokenizer_of(args)
    spec = spec_of(task_of(args.task, text, tokenizer), vars(args))
    text = text_for(args.task, text)
    tokenizer = stored_tokenizer(args.task, text, tokenizer)
    if spec.training.batch_size < distributed.world_size():
        raise RunError(f"A batch of at least {distributed.world_size()} gives each process a text.")
    return _create(args, spec, text, tokenizer=tokenizer)


def _tuned_run(args: argparse.Namespace, text: str | None) -> Run:
    names = (*(setting.name for setting in MODEL_SETTINGS), "like", "tokenizer")
    if fixed := next((name for name in names if getattr(args, name) is not None), None):
        raise RunError(f"--{fixed.replace('_', '-')} is that of the model of --from: leave it out.")
    opened = parent_named(args.parent)
    spec = finetune_spec(opened, task_for(opened, args.task, text), vars(args))
    return _create(args, spec, text_for(args.task, text), parent=opened)


def _create(args: argparse.Namespace, spec: RunSpec, text: str | None, **more: Any) -> Run:
    if args.out:
        check_can_write(args.out)
        return create_in(args.out, spec, text, **more)
    return create(runs_root(), spec, text, **more)


def parent_named(name: str) -> OpenModel:
    """The model of `--from`."""
    folder = Path(name)
    return open_folder(folder) if folder.is_dir() else open_model(name)


def _old_run(args: argparse.Namespace) -> Run:
    run = Run(folder_named(args.run))
    if run.folder.absolute().parent == recorded_root().absolute():
        raise RunError(f"{run.name} comes with the app and cannot be changed: start a new run.")
    if run.status().is_active and run.has_worker():
        raise RunError(f"{run.name} is being trained by another process.")
    run.command("resume")
    return run


def _show_training(run: Run, args: argparse.Namespace) -> None:
    """Train in this process; Ctrl-C and SIGTERM end it with its state saved."""
    status = run.status()
    total = run.spec.training.steps
    if note := run.task().note:
        print(note, file=sys.stderr)
    with (
        leave_at_signal() as signals,
        tqdm(total=total, initial=status.step, desc=run.name, unit="step") as bar,
        EventFiles(run) if args.tensorboard else nullcontext() as events,
    ):

        def tell(read: int, rows: int) -> None:
            bar.bar_format = "{desc}"
            bar.set_description_str(f"Measuring {rows:,} held-out rows: {read:,}")

        for progress in advance(run.folder, lambda: bool(signals), tell=tell):
            now = progress.status
            bar.bar_format = None
            bar.set_description(run.name, refresh=False)
            value = "" if now.value is None else f"{now.measure} {three(now.value)}"
            bar.set_postfix_str(f"loss {progress.report.loss:.3f}, {value}", refresh=False)
            bar.update(progress.report.step - bar.n)
            if events is not None:
                events.update()
    if args.metrics_csv:
        write_csv(run)
    ended = run.status()
    if args.json:
        speed = ended.step / ended.seconds if ended.seconds else 0.0
        about = {"name": run.name, "folder": str(run.folder)}
        print(json.dumps(about | ended.to_dict() | {"steps_per_second": speed}))
    else:
        print(f"{run.name} is {ended.state} at step {ended.step:,} of {ended.steps:,}.")
        if ended.value is not None:
            print(f"On {ended.held_out}: {ended.measure} {three(ended.value)}.")
        print(run.checkpoint() or run.folder)
        if _is_in_app(run):
            print(f"It opens in the app as {run.name}.")
        else:
            folder = run.folder.parent
            print(f"To open it in the app, start the app with EXPLORER_RUNS={folder}.")
    if signals and ended.state == INTERRUPTED:
        name = run.name if _is_in_app(run) else shlex.quote(str(run.folder))
        raise EndedBySignal(signals[0], [name])


def _is_in_app(run: Run) -> bool:
    return run.folder.parent.resolve() == runs_root().resolve()


@dataclass
class EndedBySignal(Exception):
    """The signal of this number has ended a command; `resume` continues these runs."""

    number: int
    runs: Sequence[str]


@contextmanager
def leave_at_signal() -> Iterator[list[int]]:
    """Within it, Ctrl-C and SIGTERM end nothing: the list has their numbers once they come."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def folder_named(model: str) -> Path:
    """A folder, or the folder of the run with this name."""
    folder = Path(model)
    if folder.is_dir():
        return folder
    try:
        return run_named(runs_root(), model).folder
    except RunError:
        raise RunError(
            f"There is no folder and no run called {quoted(model)}; "
            "the command runs lists the runs."
        ) from None


def check_can_write(folder: Path) -> None:
    """ValueError where this folder cannot be made."""
    try:
        there = next(path for path in folder.absolute().parents if path.exists())
        with TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        why = f"Cannot write to {folder} ({error.strerror}): choose another folder."
        raise ValueError(why) from error


def write_out(path: Path, text: str) -> None:
    """ValueError says why the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from error


def read_text(path: Path) -> str:
    """The text of a file that a task can be trained on. ValueError names the file."""
    try:
        return decoded(read_bytes(path, BYTES_OF_CHARACTER * limits.CORPUS_CHARACTERS.most))
    except TextError as error:
        raise ValueError(f"{path}: {error}") from error


def read_bytes(path: Path, most: int) -> bytes:
    """A file of at most so many bytes; it may be a pipe or a device, which has no size."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > most:
        raise ValueError(f"{path} has more than {most:,} bytes, the most that is read.")
    return content
