"""Runs, generating, export, circuits, models and lessons, from the command line."""

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any, TextIO, cast

if __name__ == "__main__":  # Ctrl-C ends it quietly while it is still being imported
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)

import torch

from explorer.app import address_parameters
from explorer.commands import lesson_commands, model_commands, sweep_commands, training_commands
from explorer.runs.settings import FIELDS
from models.file_text import visible

USER_ERRORS = (OSError, ValueError, NotImplementedError)


def main(arguments: Sequence[str] | None = None, prog: str = "python -m explorer") -> int:
    """Run one command; 0 when it worked, 2 after a sentence on stderr when it did not.

    130 when Ctrl-C has ended it, and 143 when SIGTERM has.
    """
    with redirect_stdout(cast(TextIO, _VisibleOutput(sys.stdout))):
        return _run(arguments, prog)


class _VisibleOutput:
    """Writes visible characters alone: a terminal obeys the others, which a file may hold.

    The bars on stderr move the cursor.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text).replace("\r", "<U+000D>"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _run(arguments: Sequence[str] | None, prog: str) -> int:
    options = _parser(prog).parse_args(arguments)
    torch.set_num_threads(1)
    try:
        options.command(options)
    except USER_ERRORS as error:
        sentence = " ".join(str(error).split()) or type(error).__name__
        print(visible(_with_flags(sentence, options)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 128 + signal.SIGINT
    except training_commands.EndedBySignal as ended:
        for run in ended.runs:
            print(visible(f"To continue: {prog} resume {run}"), file=sys.stderr)
        return 128 + ended.number
    return 0


def _with_flags(sentence: str, options: argparse.Namespace) -> str:
    """A sentence about options has them as they are typed: --heads instead of n_heads."""
    flags = {FIELDS.get(name, name): f"--{name.replace('_', '-')}" for name in vars(options)}
    if sentence.partition(" ")[0] not in flags:
        return sentence
    names = r"^\w+(?= must be )|\b[a-z]+_\w+(?= \d)"
    return re.sub(names, lambda name: flags.get(name[0], name[0]), sentence)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; `--help` shows the rest."""

    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"{message[:1].upper()}{message[1:]}; see --help.", file=sys.stderr)
        raise SystemExit(2)


def _parser(prog: str = "python -m explorer") -> argparse.ArgumentParser:
    parser = _Parser(prog=prog, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    for group in (training_commands, sweep_commands, model_commands):
        group.add_commands(commands)
    lesson_commands.add_commands(commands, address_parameters.of_pages())
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGINT, on_interrupt)
    sys.exit(main())
