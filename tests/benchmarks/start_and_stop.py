"""A click on Start to the first step, and on Stop to the end, in the running app by the clock."""

import time
from collections.abc import Iterator
from statistics import median

from explorer.runs.run import Run
from explorer.runs.spec import STOPPED
from tests.benchmarks.measuring import Row
from tests.benchmarks.places import a_browser, a_visitor, an_app
from tests.browser.visiting import Visitor
from tests.served import wait_until

ROUNDS = 5
WARM, COLD, BEYOND_A_STEP = 0.3, 3.0, 0.2
TASK = "reverse"


def start_and_stop() -> Iterator[Row]:
    """The first click comes as soon as the page is there, the others find a worker that waits."""
    with a_browser() as browser, an_app() as server, a_visitor(browser, server) as visitor:
        visitor.open(f"/training?task={TASK}")
        visitor.page.get_by_role("spinbutton", name="Steps").fill("20000")
        visitor.page.keyboard.press("Enter")
        starts, stops = [], []
        for number in range(1, ROUNDS + 2):
            run = Run(server.runs / f"{TASK}-{number}")
            starts.append(_seconds_to_first_step(visitor, run))
            stops.append(_seconds_to_stop(visitor, run))
    cold, warm, beyond = starts[0], median(starts[1:]), median(stops)
    what = "a click on Start to the first step on disk"
    said = f"median of {ROUNDS}, slowest {max(starts[1:]) * 1e3:.0f} ms"
    ours = f"{warm * 1e3:.0f} ms"
    yield Row(f"{what}, warm worker", ours, said, goal="≤ 300 ms", met=warm <= WARM)
    yield Row(f"{what}, fresh server", f"{cold:.1f} s", goal="≤ 3 s", met=cold <= COLD)
    yield Row(
        "a click on Stop to stopped, beyond one step",
        f"{beyond * 1e3:.0f} ms",
        goal="≤ 200 ms",
        met=beyond <= BEYOND_A_STEP,
    )


def _seconds_to_first_step(visitor: Visitor, run: Run) -> float:
    visitor.rest()
    begun = time.monotonic()
    visitor.widget("start_training").get_by_role("button").click()
    metrics = run.metrics()
    wait_until(lambda: any(row.step for row in metrics.update().rows), "the first step")
    return time.monotonic() - begun


def _seconds_to_stop(visitor: Visitor, run: Run) -> float:
    """Without the step that was computed when it was told, as long as one takes here."""
    wait_until(lambda: run.status().step > 20, "some steps")
    step = 1 / run.status().steps_per_second
    button = visitor.page.get_by_role("button", name="Stop")
    begun = time.monotonic()
    button.click()
    wait_until(lambda: run.status().state == STOPPED, "the end")
    return max(0.0, time.monotonic() - begun - step)
