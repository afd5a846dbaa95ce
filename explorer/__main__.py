"""Train, resume, generate, export, and make or add models from the command line.

A run that is trained here is the same folder that the app writes. In the folder of
the runs the app shows it while it trains and opens it afterwards.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from tqdm import tqdm

from explorer.catalog import added_examples, shipped
from explorer.catalog.entries import runs_root
from explorer.export import published_folder
from explorer.runs.open_run import open_folder
from explorer.runs.request import Wishes, spec_of
from explorer.runs.run import Run, RunError, create, create_in
from explorer.runs.worker import advance
from explorer.tasks import GIVEN, TASKS, task_of
from models.config import ACTIVATIONS, NORM_POSITIONS, NORMS, POSITIONS
from models.families.styles import LIKE
from models.generation import generate
from models.presets import PRESETS
from models.training import OPTIMIZERS, SCHEDULES

SAID_IN_A_SENTENCE = (OSError, ValueError, NotImplementedError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 2 after a sentence on stderr when it did not."""
    asked = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    try:
        asked.command(asked)
    except SAID_IN_A_SENTENCE as error:
        print(f"{' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    return 0


def train(asked: argparse.Namespace) -> None:
    text = _read(asked.text) if asked.text else None
    wishes = Wishes(**{name: getattr(asked, name) for name in Wishes.names()})
    spec = spec_of(task_of(asked.task, text), wishes)
    text = text if asked.task in GIVEN else None
    run = create_in(asked.out, spec, text) if asked.out else create(runs_root(), spec, text)
    _show_training(run)


def resume(asked: argparse.Namespace) -> None:
    run = Run(asked.folder)
    if run.status().is_active and run.has_worker():
        raise RunError(f"{run.name} is being trained by another process.")
    run.command("resume")
    _show_training(run)


def write(asked: argparse.Namespace) -> None:
    opened = open_folder(asked.folder)
    steps = generate(
        opened.model,
        torch.tensor([opened.tokenizer.ids(asked.prompt)]),
        max_length=asked.max_length,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=asked.seed,
    )
    written = [int(step.ids[0]) for step in steps]
    if opened.config.kind == "decoder":
        written = opened.tokenizer.ids(asked.prompt) + written
    print(opened.tokenizer.decode(written))


def export(asked: argparse.Namespace) -> None:
    opened = open_folder(asked.folder)
    family = published_folder.to_folder(opened, asked.out)
    print(f"{asked.out} is a {family} folder, which the reference library opens.")


def example(asked: argparse.Namespace) -> None:
    print(f"{added_examples.add()} is on the shelf of the app, as {added_examples.NAME}.")


def checkpoints(asked: argparse.Namespace) -> None:
    bar: tqdm | None = None

    def show(name: str, step: int, steps: int, loss: float) -> None:
        nonlocal bar
        if bar is None or bar.desc != f"{name}: ":
            if bar is not None:
                bar.close()
            bar = tqdm(total=steps, desc=name, unit="step")
        bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        bar.update(step - bar.n)

    made = shipped.make(asked.only or (), asked.data, asked.out, show)
    if bar is not None:
        bar.close()
    for folder in made:
        print(folder)


def _show_training(run: Run) -> None:
    """Train in this process; Ctrl-C and SIGTERM end it with its state written down."""
    status = run.status()
    total = run.spec.training.steps
    with (
        _asked_to_leave() as leave,
        tqdm(total=total, initial=status.step, desc=run.name, unit="step") as bar,
    ):
        for progress in advance(run.folder, leave.is_set):
            now = progress.status
            value = "" if now.value is None else f"{now.measure} {now.value:.3f}"
            bar.set_postfix_str(f"loss {progress.report.loss:.3f}, {value}", refresh=False)
            bar.update(progress.report.step - bar.n)
    ended = run.status()
    print(f"{run.name} is {ended.state} at step {ended.step:,} of {ended.steps:,}.")
    if ended.value is not None:
        print(f"Held out: {ended.measure} {ended.value:.3f}.")
    print(run.checkpoint() or run.folder)
    print(_where_to_see(run))


def _where_to_see(run: Run) -> str:
    """The app looks in one folder of runs; what lies elsewhere is not shown by itself."""
    if run.folder.parent.resolve() == runs_root().resolve():
        return f"It opens in the app as {run.name}."
    return f"To open it in the app, start the app with EXPLORER_RUNS={run.folder.parent}."


@contextmanager
def _asked_to_leave() -> Iterator[threading.Event]:
    leave = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: leave.set()) for number in numbers}
    try:
        yield leave
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8.") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; `--help` shows the rest."""

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{message[:1].upper()}{message[1:]}; see --help.", file=sys.stderr)
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m explorer", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    make = commands.add_parser("train", help="train a model for a task, with a progress bar")
    make.set_defaults(command=train)
    make.add_argument("task", metavar="TASK", help=", ".join([*TASKS, *GIVEN]))
    make.add_argument("--text", type=Path, metavar="FILE", help="what the task learns from")
    make.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where the run is written, if not with the others",
    )
    for name in ("layers", "heads", "d-model", "d-ff", "steps", "batch-size", "warmup"):
        make.add_argument(f"--{name}", type=int, metavar="N")
    for name in ("lr", "dropout", "label-smoothing", "weight-decay", "stop-at"):
        make.add_argument(f"--{name}", type=float, metavar="X")
    built = "built like a published family or a document"
    make.add_argument("--like", choices=[*LIKE, *PRESETS], help=built)
    make.add_argument("--norm", choices=NORMS)
    make.add_argument("--norm-position", choices=NORM_POSITIONS)
    make.add_argument("--positions", choices=POSITIONS)
    make.add_argument("--activation", choices=ACTIVATIONS)
    make.add_argument("--optimizer", choices=OPTIMIZERS)
    make.add_argument("--schedule", choices=SCHEDULES)
    make.add_argument("--seed", type=int, metavar="N", help="draws the data and dropout")
    make.add_argument("--weights-seed", type=int, metavar="N", help="draws the first weights")

    again = commands.add_parser("resume", help="go on with a run that was paused or interrupted")
    again.set_defaults(command=resume)
    again.add_argument("folder", type=Path, metavar="FOLDER")

    text = commands.add_parser("generate", help="let a trained model write")
    text.set_defaults(command=write)
    text.add_argument("folder", type=Path, metavar="FOLDER", help="a run or a checkpoint")
    text.add_argument("prompt", metavar="TEXT")
    text.add_argument("--max-length", type=int, default=50, metavar="N", help="most new tokens")
    text.add_argument("--temperature", type=float, default=0.7, metavar="X", help="0 is greedy")
    text.add_argument("--top-k", type=int, metavar="N")
    text.add_argument("--top-p", type=float, metavar="X")
    text.add_argument("--seed", type=int, default=0, metavar="N")

    out = commands.add_parser("export", help="write a model as the folder of a published family")
    out.set_defaults(command=export)
    out.add_argument("folder", type=Path, metavar="FOLDER", help="a run or a checkpoint")
    out.add_argument("out", type=Path, metavar="OUT", help="where the published folder is written")

    more = commands.add_parser("example", help=f"fetch {added_examples.WHAT}")
    more.set_defaults(command=example)

    ship = commands.add_parser("checkpoints", help="train the models that ship with the app")
    ship.set_defaults(command=checkpoints)
    ship.add_argument("--only", action="append", metavar="NAME", help="this one; may be repeated")
    ship.add_argument("--data", type=Path, metavar="DIR", help="where the real texts lie")
    ship.add_argument("--out", type=Path, metavar="DIR", default=shipped.SHIPPED)
    return parser


if __name__ == "__main__":
    sys.exit(main())
