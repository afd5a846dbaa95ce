"""What one head of 128 tokens weighs on its way to the browser, beside bertviz's JSON of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.benchmarks.figure import report
from tests.benchmarks.one_head import TOKENS, weights
from tests.benchmarks.reader import Answer, Reader
from tests.served import Server

BAR = 25_000


def as_bertviz_sends_it(head: int) -> int:
    """The parameters that bertviz 1.4 writes into its page for one head of one layer."""
    attention = weights(head)[None, None].tolist()
    texts = {"left_text": TOKENS, "right_text": TOKENS}
    params = {
        "attention": [{"name": None, "attn": attention, **texts}],
        "default_filter": "0",
        "root_div_id": "bertviz",
        "layer": 0,
        "heads": [0],
        "include_layers": [0],
    }
    return len(json.dumps(params).encode())


async def three_heads(url: str) -> list[Answer]:
    """A first visit, then two changes of the head."""
    reader = Reader(url)
    await reader.open()
    try:
        return [await reader.act() for _ in range(3)]
    finally:
        await reader.close()


def test_bytes_of_one_head(tmp_path: Path) -> None:
    with Server(tmp_path / "runs", script=Path(__file__).with_name("one_head.py")) as server:
        first, _, third = asyncio.run(three_heads(server.url))
    assert not first.failures + third.failures
    assert third.picture() != first.picture()
    theirs = as_bertviz_sends_it(2)
    ours = len(third.picture())
    report(
        "one head at 128 tokens, bytes to the browser",
        f"{ours:,} bytes of data, {third.size:,} with everything a change of head sends "
        f"(the code once: {first.size:,} at the first visit), {theirs / third.size:.1f} times less",
        f"{theirs:,} bytes of JSON as bertviz sends it",
        f"{BAR:,} bytes",
    )
    assert third.size <= BAR
