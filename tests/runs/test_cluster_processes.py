"""What the processes that train note: no text, and no run's name, which holds its link's key."""

import subprocess
import sys

from tests.served import ROOT

TEXT = "what a reader typed"
SCRIPT = f"""
import logging, threading
from explorer.runs import cluster_processes

cluster_processes.dask_setup(None)
other = logging.getLogger("distributed.worker")
other.addHandler(logging.StreamHandler())
other.warning("Compute Failed: %s", {TEXT!r})
try:
    raise ValueError({TEXT!r})
except ValueError:
    other.exception({TEXT!r})
def end():
    raise KeyError({TEXT!r})
thread = threading.Thread(target=end)
thread.start()
thread.join()
raise OSError({TEXT!r})
"""


def test_a_line_says_what_kind_of_thing_happened_and_where() -> None:
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines() == [
        "WARNING distributed.worker: <string>.<module>, line 8",
        "ERROR distributed.worker: <string>.<module>, line 12, ValueError",
        "ERROR KeyError in end, line 14",
        "ERROR OSError in <module>, line 18",
    ]
