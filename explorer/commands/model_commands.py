"""The commands for models: generate, export, circuit, why, programs, get, checkpoints."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from explorer.catalog import shipped
from explorer.catalog.model_download import DownloadProgress, download, fetched_bytes, is_in
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.commands import circuit_command, programs_command, why_command
from explorer.commands.training_commands import check_can_write, folder_named
from explorer.export import published_folder
from explorer.runs.run import newest_in, open_folder
from models.generation import generate

WHAT_A_MODEL_IS = "a run by its name in the app's list, or the folder of a run or a checkpoint"


def add_commands(commands: Any) -> None:
    text = commands.add_parser("generate", help="generate text with a trained model")
    text.set_defaults(command=run_generate)
    text.add_argument("model", metavar="MODEL", help=WHAT_A_MODEL_IS)
    text.add_argument("prompt", metavar="TEXT")
    text.add_argument("--max-length", type=int, default=50, metavar="N", help="new tokens at most")
    text.add_argument("--temperature", type=float, default=0.7, metavar="X", help="0 is greedy")
    text.add_argument("--top-k", type=int, metavar="N")
    text.add_argument("--top-p", type=float, metavar="X")
    text.add_argument("--seed", type=int, default=0, metavar="N")
    ids = "print the text and its token IDs as JSON"
    text.add_argument("--json", action="store_true", help=ids)

    out = commands.add_parser("export", help="write a model as the folder of a published family")
    out.set_defaults(command=export_model)
    out.add_argument("model", metavar="MODEL", help=WHAT_A_MODEL_IS)
    out.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    adapter = "write the LoRA adapter of a run alone, as PEFT's files"
    out.add_argument("--adapter", action="store_true", help=adapter)

    circuit = "circuit", circuit_command, Path, "find the circuit behind an answer"
    why = "why", why_command, folder_named, "explain one attention score by its sources"
    programs = "programs", programs_command, folder_named, "describe all heads by programs"
    for name, module, folder_of, about in (circuit, why, programs):
        measure = commands.add_parser(name, help=f"{about}, as a file")
        lines = module.summary_lines
        measure.set_defaults(command=print_lines, lines=lines, folder_of=folder_of)
        measure.add_argument("--model", type=Path, required=True, metavar="FOLDER")
        module.add_arguments(measure)
        measure.add_argument("--out", type=Path, required=True, metavar="FILE")

    more = commands.add_parser("get", help="download a pretrained model, or list those there are")
    more.set_defaults(command=get_model)
    more.add_argument("name", nargs="?", metavar="NAME", help=known_models())
    folder = "the folder to make of it; by default one in the app's folder of models"
    more.add_argument("--to", type=Path, metavar="FOLDER", help=folder)

    ship = commands.add_parser("checkpoints", help="train the models that ship with the app")
    ship.set_defaults(command=make_checkpoints)
    ship.add_argument("--only", action="append", metavar="NAME", help="only this one; repeatable")
    ship.add_argument("--data", type=Path, metavar="DIR", help="the folder of the training texts")
    ship.add_argument("--out", type=Path, metavar="DIR", default=shipped.SHIPPED)


def run_generate(args: argparse.Namespace) -> None:
    opened = open_folder(folder_named(args.model))
    steps = generate(
        opened.model,
        torch.tensor([opened.tokenizer.ids(args.prompt)]),
        max_length=args.max_length,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        seed=args.seed,
    )
    ids = [int(step.ids[0]) for step in steps]
    if opened.config.kind == "decoder":
        ids = opened.tokenizer.ids(args.prompt) + ids
    text = opened.tokenizer.decode(ids)
    print(json.dumps({"text": text, "ids": ids}) if args.json else text)


def export_model(args: argparse.Namespace) -> None:
    check_can_write(args.out)
    if args.adapter:
        checkpoint = newest_in(folder_named(args.model))
        if not published_folder.has_adapter(checkpoint):
            raise ValueError(f"{args.model} has no LoRA adapter: its whole model was trained.")
        family = published_folder.adapter_to_folder(checkpoint, args.out)
        print(f"{args.out} has the adapter of a {family} model; peft can open it.")
        return
    opened = open_folder(folder_named(args.model))
    family = published_folder.to_folder(opened, args.out)
    print(f"{args.out} is a {family} folder; {published_folder.what_opens(opened)}.")


def print_lines(args: argparse.Namespace) -> None:
    for line in args.lines(open_folder(args.folder_of(str(args.model))), args):
        print(line)


def get_model(args: argparse.Namespace) -> None:
    if args.name is None:
        for known in PRETRAINED_MODELS.values():
            size = f"{known.download / 1e6:,.0f} MB"
            if known.is_there:
                size += ", here"
            elif left := min(fetched_bytes(known.folder), known.download):
                size = f"{left / 1e6:,.0f} of {size}"
            print(f"{known.name:18}{size:16}{known.licence:12}{known.kind:34}{known.good_for}")
        return
    model = PRETRAINED_MODELS.get(args.name)
    if model is None:
        raise ValueError(f"There is no model called {args.name!r}: it is one of {known_models()}.")
    folder = args.to.resolve() if args.to else model.folder
    if is_in(model, folder):
        print(f"{folder} is there already.")
        return
    check_can_write(folder)
    try:
        with _download_bar(model) as report:
            download(model, folder, report)
    except KeyboardInterrupt:
        print("The fetched bytes are kept: the same command goes on from there.", file=sys.stderr)
        raise
    print(f"{model.title} is in {folder}; its licence is {model.licence}.")
    if args.to is None:
        print(f"It opens in the app as {model.name}.")
    else:
        print(f"To open it in the app, start the app with EXPLORER_MODELS={folder}.")


def known_models() -> str:
    return ", ".join(PRETRAINED_MODELS)


@contextmanager
def _download_bar(model: PretrainedModel) -> Iterator[Callable[[DownloadProgress], None]]:
    """A progress bar of a download, whose speed does not count bytes of an earlier try."""
    with ExitStack() as open_until_the_end:
        bars: list[tqdm] = []

        def report(progress: DownloadProgress) -> None:
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

        yield report


def make_checkpoints(args: argparse.Namespace) -> None:
    check_can_write(args.out / "a model")
    bars: list[tqdm] = []

    def report(name: str, step: int, steps: int, loss: float) -> None:
        if step == 1:
            bars.append(tqdm(total=steps, desc=name, unit="step"))
        bars[-1].set_postfix(loss=f"{loss:.3f}", refresh=False)
        bars[-1].update(step - bars[-1].n)

    folders = shipped.make_shipped(args.only or (), args.data, args.out, report)
    for bar in bars:
        bar.close()
    for folder in folders:
        print(folder)
