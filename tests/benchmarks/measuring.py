"""What every benchmark is made of: two ways of doing one thing by turns, and the rows they give."""

import gc
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import torch


class NotMeasured(Exception):
    """What it is measured beside is not here; the message says why."""


@dataclass(frozen=True)
class Row:
    """One figure. `met` is None where there is no goal, or nothing was measured."""

    what: str
    ours: str
    reference: str = "–"
    ratio: float | None = None
    goal: str = "none: reported"
    met: bool | None = None


Benchmark = Callable[[], Iterator[Row]]


BROKEN = "not measured: it broke: "


def measure(name: str, benchmark: Benchmark) -> list[Row]:
    """Its rows, the last of which says why there are no more; runs in a process of its own."""
    torch.set_num_threads(1)
    rows: list[Row] = []
    try:
        rows.extend(benchmark())
    except NotMeasured as reason:
        rows.append(Row(name, f"not measured: {reason}"))
    except Exception as error:  # noqa: BLE001 - the others are measured all the same
        traceback.print_exception(error)
        rows.append(broken(name, error))
    return rows


def broken(name: str, error: BaseException) -> Row:
    """In one line of a table."""
    said = f"{error}".partition("\n")[0].replace("|", "/")
    return Row(name, f"{BROKEN}{type(error).__name__} {said}".strip())


@dataclass(frozen=True)
class Ratio:
    """Medians over the rounds: of both sides, and of ours ÷ the reference in each round."""

    ours: float
    reference: float
    times: float


Side = Callable[[], Sequence[float]]


def by_turns(ours: Side, reference: Side, rounds: int) -> list[Ratio]:
    """What both sides say of themselves, the order turned every round.

    The first round does not count: it reads from disk what the others find in memory.
    """
    rows = []
    for turn in range(rounds + 1):
        sides = (ours, reference) if turn % 2 else (reference, ours)
        said = {side: side() for side in sides}
        rows.append([*zip(said[ours], said[reference], strict=True)])
    return [_ratio(pairs) for pairs in zip(*rows[1:], strict=True)]


def _ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    mine, theirs = zip(*pairs, strict=True)
    return Ratio(median(mine), median(theirs), median(one / other for one, other in pairs))


def timed(ours: Callable[[], object], reference: Callable[[], object], rounds: int = 7) -> Ratio:
    """Seconds of the processor's time, so that a neighbour on a busy machine does not count.

    Both must keep to threads of their own process, as many on one side as on the other.
    """
    (found,) = by_turns(lambda: [seconds_of(ours)], lambda: [seconds_of(reference)], rounds)
    return found


def seconds_of(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def at_most(what: str, ours: str, reference: str, ratio: float, goal: float) -> Row:
    """The goal is the most that the ratio should be."""
    return Row(what, ours, reference, ratio, f"≤ {goal:.3g} ×", ratio <= goal)


def compared(what: str, measured: Ratio, reference: str, goal: float, note: str = "") -> Row:
    """Ours beside the reference, both in seconds."""
    beside = f"{milliseconds(measured.reference)} {reference}"
    return at_most(what, milliseconds(measured.ours) + note, beside, measured.times, goal)


def within(
    what: str,
    seconds: Sequence[float],
    reference: str = "–",
    ratio: float | None = None,
    **goals: float,
) -> Row:
    """A goal is the most that a quantile of the seconds should be: `p95=0.15`."""
    found = {name: quantile(seconds, int(name.removeprefix("p")) / 100) for name in goals}
    goal = ", ".join(f"{name} ≤ {milliseconds(most)}" for name, most in goals.items())
    if not goals:
        return Row(what, spread(seconds), reference, ratio)
    met = all(found[name] <= most for name, most in goals.items())
    return Row(what, spread(seconds), reference, ratio, goal, met)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.{0 if seconds >= 0.01 else 2}f} ms"


def spread(seconds: Sequence[float]) -> str:
    p50, p95 = quantile(seconds, 0.5), quantile(seconds, 0.95)
    return f"p50 {milliseconds(p50)}, p95 {milliseconds(p95)}, {len(seconds)} times"
