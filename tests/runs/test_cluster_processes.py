"""What the processes that train note: no text, and no run's name, which holds its link's key."""

from tests.server.test_json_logs import MISHAPS, TEXT, noted_by

SCRIPT = f"""
import logging, threading
from explorer.runs import cluster_processes

cluster_processes.dask_setup(None)
other = logging.getLogger("distributed.worker")
other.addHandler(logging.StreamHandler())
other.warning("Compute Failed: %s", {TEXT!r})
{MISHAPS}"""


def test_a_line_says_what_kind_of_thing_happened_and_where() -> None:
    assert noted_by(SCRIPT) == [
        "WARNING distributed.worker: <string>.<module>, line 8",
        "ERROR distributed.worker: <string>.<module>, line 13, ValueError",
        "ERROR KeyError in end, line 15",
        "ERROR OSError in <module>, line 19",
    ]
