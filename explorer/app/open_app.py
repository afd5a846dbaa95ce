"""The command `attention-explorer` of the installed package: opens the app, or runs a subcommand.

The package has the whole project in one folder, `attention_explorer`, since modules named `app`,
`models` and `pages` could clash with others. That folder comes first on Python's path.
"""

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand, or open the app without one; 0 on success."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    words = sys.argv[1:] if arguments is None else [*arguments]
    if words and not words[0].startswith("-"):
        from explorer.__main__ import main as run_command  # loads torch

        return run_command(words, prog="attention-explorer")
    return open_app(words)


def open_app(words: Sequence[str]) -> int:
    """Run the server in this process until it ends."""
    args, others = parser().parse_known_args(words)
    if args.models:
        before = filter(None, [os.environ.get("EXPLORER_MODELS")])
        os.environ["EXPLORER_MODELS"] = os.pathsep.join([*before, *args.models])
    options = [] if args.port is None else ["--server.port", str(args.port)]
    options += [] if args.address is None else ["--server.address", args.address]
    options += ["--server.headless", "true"] if args.no_browser else []
    sys.argv[1:] = ["run", str(ROOT / "app.py"), *options, *others]
    runpy.run_module("streamlit", run_name="__main__")  # as `python -m streamlit` does
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        "attention-explorer",
        description="Open the app in the browser. Options of Streamlit are passed on.",
        epilog="With a command before all options (train, sweep, runs, evaluate, generate, export, "
        "circuit, get and others) it does that: attention-explorer train --help.",
        allow_abbrev=False,
    )
    options.add_argument("--port", type=int, metavar="N", help="8501, or the next that is free")
    where = "localhost; 0.0.0.0 opens it to other machines"
    options.add_argument("--address", metavar="A", help=where)
    models = "a model, or a folder of models, that the app opens with; more than once for more"
    options.add_argument("--models", action="append", default=[], metavar="FOLDER", help=models)
    options.add_argument("--no-browser", action="store_true", help="open no window of the browser")
    return options


if __name__ == "__main__":
    sys.exit(main())
