"""The command `attention-explorer` of the installed package: opens the app, or runs a subcommand.

In the package the whole project lies below one folder, `attention_explorer`, since modules named
`app`, `models` and `pages` would be in the way of others. That folder comes first on Python's path.
"""

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Without the name of a subcommand it opens the app; 0 when all went well."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    given = sys.argv[1:] if arguments is None else [*arguments]
    if given and not given[0].startswith("-"):
        from explorer.__main__ import main as run_command  # loads torch

        return run_command(given, prog="attention-explorer")
    return open_app(given)


def open_app(given: Sequence[str]) -> int:
    """Start the server in this process; it comes back when the server has ended."""
    asked, others = parser().parse_known_args(given)
    if asked.models:
        before = filter(None, [os.environ.get("EXPLORER_MODELS")])
        os.environ["EXPLORER_MODELS"] = os.pathsep.join([*before, *asked.models])
    sys.argv[1:] = ["run", str(ROOT / "app.py"), *options(asked), *others]
    runpy.run_module("streamlit", run_name="__main__")  # as `python -m streamlit` does
    return 0


def options(asked: argparse.Namespace) -> list[str]:
    """What Streamlit is told of what was asked for."""
    found = [] if asked.port is None else ["--server.port", str(asked.port)]
    found += [] if asked.address is None else ["--server.address", asked.address]
    return [*found, "--server.headless", "true"] if asked.no_browser else found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "attention-explorer",
        description="Open the app in the browser. Options of Streamlit are passed on.",
        epilog="With a command before all options (train, sweep, runs, evaluate, generate, export, "
        "circuit, get and others) it does that: attention-explorer train --help.",
        allow_abbrev=False,
    )
    made.add_argument("--port", type=int, metavar="N", help="8501, or the next that is free")
    made.add_argument(
        "--address", metavar="A", help="localhost; 0.0.0.0 opens it to other machines"
    )
    made.add_argument(
        "--models",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a model, or a folder of models, that the app opens with; more than once for more",
    )
    made.add_argument("--no-browser", action="store_true", help="open no window of the browser")
    return made


if __name__ == "__main__":
    sys.exit(main())
