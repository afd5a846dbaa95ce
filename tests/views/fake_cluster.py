"""A cluster for pages that starts no process."""

from collections.abc import Sequence

from explorer.catalog.opened_model import OpenModel
from explorer.catalog.run_index import Maker
from explorer.runs.run import Run, create, delete
from explorer.runs.spec import RunNotes, RunSpec
from explorer.system.data_folders import runs_root


class FakeCluster:
    """Stands in for the cluster: takes what it is sent and trains nothing."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    def train_all(
        self,
        specs: Sequence[RunSpec],
        text: str | None,
        whose: Maker,
        notes: RunNotes | None = None,
        tokenizer: str | None = None,
        parent: OpenModel | None = None,
    ) -> list[Run]:
        owner, network = whose.owner or "", whose.network
        about = (text, owner, network, notes, tokenizer, parent)
        made = [create(runs_root(), spec, *about) for spec in specs]
        self.sent += [run.name for run in made]
        return made

    def waiting(self) -> list[str]:
        return self.sent

    queued = waiting

    def submit(self, run: Run) -> None:
        self.sent.append(run.name)

    def stop(self, run: Run) -> None:
        run.command("stop")

    def delete(self, run: Run) -> None:
        delete(run)
