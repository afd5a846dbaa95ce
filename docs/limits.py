"""Writes `limits.md` from the table of limits: `python -m docs.limits`.

A test compares the two.
"""

from pathlib import Path

from docs.addresses import table
from explorer.system.limits import FILE, PREFIX, PUBLIC, TABLE

PAGE = Path(__file__).with_name("limits.md")
TOP = f"""# Limits

The limits that an operator may set. A laptop has the first default, a server that strangers use
(`{PUBLIC}=1`) the second. Set one by `{PREFIX}<NAME>` in the environment, such as
`{PREFIX}RUN_STEPS=2000`, or by a line such as `run_steps = 2_000` in the TOML file that `{FILE}`
names; the environment wins. Sizes are in bytes, times in seconds.

What a server holds in memory: about 410 MB of libraries, half of it torch, once every page was
opened; the weights of the opened models (`weights_bytes`); forward passes and what was computed
from them (`results_bytes`), each until `results_seconds` after its last use; uploads that no page
has opened yet (`uploads_receiving`); and long messages of open pages (`messages_bytes`). Ten
readers who turn pages for eight minutes bring it to about 520 MB, as
`python -m tests.benchmarks memory-walk` measures.

This page is made from the table in `explorer/system/limits.py` by `python -m docs.limits`.

"""
COLUMNS = ("Limit", "What it limits", "Laptop", "Public", "What the person who exceeds it reads")


def text() -> str:
    """The whole page."""
    rows = (
        (
            f"`{limit.name}`",
            limit.about,
            limit.in_words(limit.laptop),
            limit.in_words(limit.public),
            limit.sentence.replace("{limit}", "…").replace("{amount}", "…") or "–",
        )
        for limit in TABLE
    )
    return TOP + table(COLUMNS, rows)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
