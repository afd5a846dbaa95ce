"""Train, resume, generate, export, find circuits, and make or download models: the command line.

A run is the same folder that the app writes. In the app's folder of runs it is shown while
it trains, and its model can be opened afterwards.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # Ctrl-C ends it quietly while it is still being imported
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch
from tqdm import tqdm

from explorer.catalog import shipped
from explorer.catalog.folders import runs_root
from explorer.catalog.real_models import REAL_MODELS, RealModel
from explorer.circuits import circuit_command
from explorer.downloads.model_download import Progress, download, fetched_bytes, is_in
from explorer.export import published_folder
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run, RunError, create, create_in
from explorer.runs.settings import MODEL_SETTINGS, TRAINING_SETTINGS, WEIGHTS_SEED, spec_of
from explorer.runs.worker import advance
from explorer.tasks import GIVEN, TASKS, task_of
from explorer.text.number_format import three
from models.families.styles import LIKE
from models.generation import generate
from models.presets import PRESETS

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


def train_model(asked: argparse.Namespace) -> None:
    text = _read(asked.text) if asked.text else None
    spec = spec_of(task_of(asked.task, text), vars(asked))
    text = text if asked.task in GIVEN else None
    run = create_in(asked.out, spec, text) if asked.out else create(runs_root(), spec, text)
    _show_training(run)


def resume_run(asked: argparse.Namespace) -> None:
    run = Run(asked.folder)
    if run.status().is_active and run.has_worker():
        raise RunError(f"{run.name} is being trained by another process.")
    run.command("resume")
    _show_training(run)


def run_generate(asked: argparse.Namespace) -> None:
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


def export_model(asked: argparse.Namespace) -> None:
    opened = open_folder(asked.folder)
    family = published_folder.to_folder(opened, asked.out)
    print(f"{asked.out} is a {family} folder; transformers can open it.")


def find_circuit(asked: argparse.Namespace) -> None:
    for line in circuit_command.find_circuit(open_folder(asked.model), asked):
        print(line)


def get_model(asked: argparse.Namespace) -> None:
    if asked.name is None:
        for line in map(_row, REAL_MODELS.values()):
            print(line)
        return
    model = REAL_MODELS.get(asked.name)
    if model is None:
        raise ValueError(f"There is no model called {asked.name!r}: it is one of {known_models()}.")
    folder = asked.to or model.folder
    if is_in(model, folder):
        print(f"{folder} is there already.")
        return
    try:
        with _download_bar(model) as show:
            download(model, folder, show)
    except KeyboardInterrupt:
        print("What was fetched is kept: the same command goes on from there.", file=sys.stderr)
        raise
    print(f"{model.title} is in {folder}; its licence is {model.licence}.")
    if asked.to is None:
        print(f"It opens in the app as {model.name}.")
    else:
        print(f"To open it in the app, start the app with EXPLORER_MODELS={folder}.")


def known_models() -> str:
    return ", ".join(REAL_MODELS)


def _row(model: RealModel) -> str:
    size = f"{model.download / 1e6:,.0f} MB"
    if model.is_there:
        size += ", here"
    elif left := fetched_bytes(model.folder):
        size = f"{left / 1e6:,.0f} of {size}"
    return f"{model.name:18}{size:16}{model.licence:12}{model.kind:34}{model.good_for}"


@contextmanager
def _download_bar(model: RealModel) -> Iterator[Callable[[Progress], None]]:
    """Shows how far a download is; what an earlier try has fetched does not count as speed."""
    with ExitStack() as open_until_the_end:
        bars: list[tqdm] = []

        def show(progress: Progress) -> None:
            if progress.phase == "fetching":
                if not bars:
                    bar = tqdm(
                        total=progress.total,
                        initial=progress.done,
                        desc=model.title,
                        unit="B",
                        unit_scale=True,
                    )
                    bars.append(open_until_the_end.enter_context(bar))
                bars[0].update(progress.done - bars[0].n)
            elif progress.phase == "converting" and bars:
                bars[0].set_postfix_str("converting")

        yield show


def make_checkpoints(asked: argparse.Namespace) -> None:
    bars: list[tqdm] = []

    def show(name: str, step: int, steps: int, loss: float) -> None:
        if step == 1:
            bars.append(tqdm(total=steps, desc=name, unit="step"))
        bars[-1].set_postfix(loss=f"{loss:.3f}", refresh=False)
        bars[-1].update(step - bars[-1].n)

    made = shipped.make_shipped(asked.only or (), asked.data, asked.out, show)
    for bar in bars:
        bar.close()
    for folder in made:
        print(folder)


def _show_training(run: Run) -> None:
    """Train in this process; Ctrl-C and SIGTERM end it with its state saved."""
    status = run.status()
    total = run.spec.training.steps
    with (
        _asked_to_leave() as leave,
        tqdm(total=total, initial=status.step, desc=run.name, unit="step") as bar,
    ):
        for progress in advance(run.folder, leave.is_set):
            now = progress.status
            value = "" if now.value is None else f"{now.measure} {three(now.value)}"
            bar.set_postfix_str(f"loss {progress.report.loss:.3f}, {value}", refresh=False)
            bar.update(progress.report.step - bar.n)
    ended = run.status()
    print(f"{run.name} is {ended.state} at step {ended.step:,} of {ended.steps:,}.")
    if ended.value is not None:
        print(f"On held-out data: {ended.measure} {three(ended.value)}.")
    print(run.checkpoint() or run.folder)
    print(_where_to_see(run))


def _where_to_see(run: Run) -> str:
    """How to open it in the app, which lists only the runs of one folder."""
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
    make.set_defaults(command=train_model)
    make.add_argument("task", metavar="TASK", help=", ".join([*TASKS, *GIVEN]))
    make.add_argument("--text", type=Path, metavar="FILE", help="the text or table of the task")
    make.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="the folder of the run; by default one in the app's folder of runs",
    )
    shape = "the shape of a published family or document"
    make.add_argument("--like", choices=[*LIKE, *PRESETS], help=shape)
    for setting in (*MODEL_SETTINGS, *TRAINING_SETTINGS, WEIGHTS_SEED):
        value: dict[str, Any] = {"type": float if setting.format else int}
        value |= {"metavar": "X" if setting.format else "N"}
        if setting.options:
            value = {"choices": setting.options}
        make.add_argument(f"--{setting.name.replace('_', '-')}", help=setting.label, **value)
    goal = "end the run at this value on held-out data"
    make.add_argument("--stop-at", type=float, metavar="X", help=goal)

    again = commands.add_parser("resume", help="continue a run that was paused or interrupted")
    again.set_defaults(command=resume_run)
    again.add_argument("folder", type=Path, metavar="FOLDER")

    text = commands.add_parser("generate", help="generate text with a trained model")
    text.set_defaults(command=run_generate)
    text.add_argument("folder", type=Path, metavar="FOLDER", help="a run or a checkpoint")
    text.add_argument("prompt", metavar="TEXT")
    text.add_argument("--max-length", type=int, default=50, metavar="N", help="new tokens at most")
    text.add_argument("--temperature", type=float, default=0.7, metavar="X", help="0 is greedy")
    text.add_argument("--top-k", type=int, metavar="N")
    text.add_argument("--top-p", type=float, metavar="X")
    text.add_argument("--seed", type=int, default=0, metavar="N")

    out = commands.add_parser("export", help="write a model as the folder of a published family")
    out.set_defaults(command=export_model)
    out.add_argument("folder", type=Path, metavar="FOLDER", help="a run or a checkpoint")
    out.add_argument("out", type=Path, metavar="OUT", help="the folder to write")

    circuit = commands.add_parser("circuit", help="find the circuit behind an answer, as a file")
    circuit.set_defaults(command=find_circuit)
    circuit_command.add_arguments(circuit)

    more = commands.add_parser("get", help="download a real model, or list those there are")
    more.set_defaults(command=get_model)
    more.add_argument("name", nargs="?", metavar="NAME", help=known_models())
    more.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="the folder to make of it; by default one in the app's folder of models",
    )

    ship = commands.add_parser("checkpoints", help="train the models that ship with the app")
    ship.set_defaults(command=make_checkpoints)
    ship.add_argument("--only", action="append", metavar="NAME", help="only this one; repeatable")
    ship.add_argument("--data", type=Path, metavar="DIR", help="the folder of the training texts")
    ship.add_argument("--out", type=Path, metavar="DIR", default=shipped.SHIPPED)
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGINT, on_interrupt)
    sys.exit(main())
