"""Twenty readers over all pages with fresh texts, for as long as one likes: what is left over?

    python -m tests.benchmarks.soak MINUTES

Each reader stays for some pages and leaves; another comes. A line each half minute says what the
server holds. The last lines compare what it holds once all have left and are forgotten, two
minutes later, with what it held before they came. A missed goal is printed and fails nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from dataclasses import dataclass, field
from statistics import mean

import psutil

from explorer.app.limits import PUBLIC
from tests.benchmarks.measuring import milliseconds, quantile
from tests.benchmarks.places import an_app
from tests.benchmarks.readers import MEGABYTE
from tests.reader import Answer, Reader
from tests.served import ROOT

READERS, PAGES_EACH, TEXTS_EACH = 20, 6, 3
"""Texts are typed on each page that has a field for them."""
THINKS = 2.0
"""Seconds between two actions of a reader, in the mean."""
EVERY, FORGOTTEN = 30, 240
"""Seconds between two lines, and until the server has forgotten at the latest who left."""
MOST_MEGABYTES, FLAT = 450, 1.05
MODELS = ("translation", "shakespeare", "reverse", "reviews", "induction", "negation")
PAGES = [path.stem for path in ROOT.glob("pages/*/*.py") if path.parent.name != "server"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Held:
    """What a server holds, and how many processes it has started."""

    megabytes: float
    threads: int
    files: int
    processes: int

    @classmethod
    def by(cls, server: psutil.Process) -> Held:
        with server.oneshot():
            megabytes = server.memory_info().rss / MEGABYTE
            children = server.children(recursive=True)
            return cls(megabytes, server.num_threads(), server.num_fds(), len(children))

    def is_within(self, other: Held) -> bool:
        """Whether it has no thread, file or process that the other has not."""
        mine, theirs = ((each.threads, each.files, each.processes) for each in (self, other))
        return all(one <= most for one, most in zip(mine, theirs, strict=True))

    def __str__(self) -> str:
        counts = f"{self.threads} threads, {self.files} descriptors, {self.processes} processes"
        return f"{self.megabytes:.0f} MB, {counts}"


@dataclass
class Soak:
    """The readers of one server, until their time is over."""

    url: str
    server: psutil.Process
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    ends: float = 0.0
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    async def run(self, minutes: float) -> None:
        """Look at every page once, then let everybody come, and say what is held meanwhile."""
        await self.one_reader(PAGES, texts=1)
        before = await self.forgotten()
        say(f"before: {before}")
        self.seconds.clear()
        begun = time.monotonic()
        self.ends = begun + 60 * minutes
        readers = [asyncio.create_task(self.come_and_go()) for _ in range(READERS)]
        while time.monotonic() < self.ends:
            since = len(self.seconds)
            await asyncio.sleep(min(EVERY, max(0.0, self.ends - time.monotonic())))
            held = Held.by(self.server)
            self.megabytes.append(held.megabytes)
            took = quantile(self.seconds[since:] or [0.0], 0.95)
            at = (time.monotonic() - begun) / 60
            say(f"{at:5.1f} min: {held}; {len(self.seconds):,} answers, p95 {milliseconds(took)}")
        await asyncio.gather(*readers)
        after = await self.forgotten(before)
        say(f"after: {after}")
        self.judge(before, after)

    def judge(self, before: Held, after: Held) -> None:
        """The lines with the goals."""
        third = max(1, len(self.megabytes) // 3)
        middle, last = mean(self.megabytes[third : 2 * third] or [0]), mean(self.megabytes[-third:])
        rows = (
            (
                f"memory at most {max(self.megabytes):.0f} MB",
                f"≤ {MOST_MEGABYTES} MB",
                max(self.megabytes) <= MOST_MEGABYTES,
            ),
            (
                f"memory of the last third {last:.0f} MB, of the one before {middle:.0f} MB",
                f"≤ {FLAT} ×",
                last <= FLAT * middle,
            ),
            ("threads, descriptors and processes left over", "none", after.is_within(before)),
            (f"scripts that failed: {len(self.failures)}", "none", not self.failures),
        )
        for what, goal, met in rows:
            say(f"{what} | {goal} | {'yes' if met else 'no'}")
        for failure in self.failures[:5]:
            say(failure)

    async def forgotten(self, than: Held | None = None) -> Held:
        """What is held when nobody is there any more and no less will be."""
        end = time.monotonic() + FORGOTTEN
        while time.monotonic() < end:
            await asyncio.sleep(5)
            if than is not None and Held.by(self.server).is_within(than):
                break
        return Held.by(self.server)

    async def come_and_go(self) -> None:
        while time.monotonic() < self.ends:
            await self.one_reader(self.chance.choices(PAGES, k=PAGES_EACH), TEXTS_EACH)

    async def one_reader(self, pages: list[str], texts: int) -> None:
        """Somebody who sees these pages, and types on each."""
        reader = Reader(self.url, query=f"model={self.chance.choice(MODELS)}")
        await reader.open()
        try:
            for page in pages:
                self.took(reader, await reader.turn_to(page))
                for _ in range(texts):
                    await asyncio.sleep(self.chance.expovariate(1 / THINKS) if self.ends else 0)
                    if self.ends and time.monotonic() > self.ends:
                        return
                    if "text" in reader.widgets:
                        self.took(reader, await reader.type(self.text()))
        finally:
            await reader.close()

    def took(self, reader: Reader, answer: Answer) -> None:
        self.seconds.append(answer.seconds)
        self.failures += [f"{reader.page}: {failure}" for failure in answer.failures]

    def text(self) -> str:
        """Words that nobody has typed before."""
        choose = self.chance
        return " ".join("".join(choose.choices(LETTERS, k=choose.randint(2, 8))) for _ in "12345")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak")
    parser.add_argument("minutes", type=float)
    minutes = parser.parse_args().minutes
    with an_app(env={PUBLIC: "1"}) as server:
        asyncio.run(Soak(server.url, psutil.Process(server.pid)).run(minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
