"""Who meets each limit: a function makes the app meet it, and returns the sentence that is read."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from explorer.analysis.circuits.finding import FindingError, finding_from
from explorer.analysis.circuits.pair_table import pairs_of_csv
from explorer.analysis.circuits.text_pairs import PairError
from explorer.analysis.wiring import WiringError, plain_wiring, wiring_of
from explorer.app import throttle
from explorer.app.reader_store import KeptSessions
from explorer.catalog import ModelError, hub, opened_model, pass_budget, uploads
from explorer.charts.figure_data import FigureData, OfflinePicture
from explorer.export.kept_view import KeptView
from explorer.export.session_page import refusal
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.trained_tokenizers import trained_merges
from explorer.lessons.lesson_file import LessonError, lesson_from
from explorer.runs import cluster as cluster_module
from explorer.runs import watchdog as watchdog_module
from explorer.runs.cluster import Cluster, Maker
from explorer.runs.finetuning import finetune_spec, task_for
from explorer.runs.run import create, open_folder
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunError
from explorer.runs.sweep import grid
from explorer.runs.watchdog import STEP, Watchdog
from explorer.runs.worker import train_to_end
from explorer.server.connection_limits import ConnectionLimits
from explorer.server.message_limits import LARGE_MESSAGE, MessageLimits
from explorer.system import atomic_files, cooperative, limits
from explorer.tasks import TASKS, task_of
from explorer.text import TextError
from explorer.text.checked_text import lines_in
from tests import apps, tiny
from tests.calls import run_in_thread
from tests.server.asking import Inside, ask, scope_of
from tests.server.uploading import bound, open_world

OWNER = "0123456789abcdef" * 2


@dataclass(frozen=True)
class Meeting:
    """What makes the app meet a limit that is `most` meanwhile; its arguments are fixtures."""

    meet: Callable[..., str]
    most: int | None = None


def refused(error: type[Exception], do: Callable[..., object], *given: object) -> str:
    """The sentence of this error, in which it ends."""
    with pytest.raises(error) as ended:
        do(*given)
    return str(ended.value)


def reads(
    most: int, error: type[Exception], read: Callable[..., object], fits: object, too_much: object
) -> Meeting:
    """The first of two inputs is within the limit of a reader, the second is refused."""

    def meet() -> str:
        assert read(fits)
        return refused(error, read, too_much)

    return Meeting(meet, most)


def page_of_a_text(small_models: Path) -> str:
    return apps.said(apps.page("input/tokens", model="letters", text="a" * 2_501))


def corpus() -> str:
    assert task_of("shakespeare", "to be or not to be " * 1_500)
    longer = "to be or not to be " * 1_600
    names = ("shakespeare", "characters", "reviews")
    (said,) = {refused(TextError, task_of, name, longer) for name in names}
    return said


def large_model(small_models: Path) -> str:
    return refused(ModelError, opened_model.open_checkpoint, small_models / "letters", "letters")


def pass_of_letters(small_models: Path) -> str:
    opened = opened_model.open_checkpoint(small_models / "letters", "letters")
    return refused(ForwardPassError, run_text, opened, "the cat")


def second_upload(monkeypatch: pytest.MonkeyPatch, *, status: int, size: int = 0) -> str:
    """What the second of two uploads is answered, and the page says too."""
    world = open_world(monkeypatch)
    first, second = (world.put("a", size) for _ in range(2))
    run_in_thread(first)
    answer = run_in_thread(second)
    assert (answer.status, answer.text) == (status, world.received.take_note("a"))
    return answer.text


def another_view() -> str:
    kept, figure = KeptSessions(), FigureData(torch.eye(40), ("a",) * 40, ("b",) * 40, "Identity")
    said = kept.add("reader", KeptView("Identity", "/attention", figures=[figure]))
    assert kept.of("reader") is None
    return said


def file_of_a_session() -> str:
    """The sentence names the largest view, and how large it is."""
    drawn = KeptView("Identity", "/attention", pictures=[OfflinePicture("", bytes(2_000))])
    assert "“Identity”" in refusal([drawn])
    return refusal([drawn])


def tokens(tmp_path: Path) -> str:
    return refused(
        ForwardPassError, run_text, tiny.million_positions(tmp_path / "model"), "a" * 300
    )


def share(small_models: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(pass_budget, "LITTLE", 0)
    monkeypatch.setattr(pass_budget, "available_memory", lambda: 1_000)
    return pass_of_letters(small_models)


def seconds(monkeypatch: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    monkeypatch.setattr(throttle, "say", said.append)
    monkeypatch.setattr(throttle, "MOMENT", 0.0)
    with throttle.turn():
        while not said:
            cooperative.step()
    return said[0]


def edges(monkeypatch: pytest.MonkeyPatch) -> str:
    config = tiny.config_of("decoder")
    count = wiring_of(config).edges
    bound(monkeypatch, edges=count)
    assert wiring_of(config).edges == count
    bound(monkeypatch, edges=count - 1)
    assert plain_wiring(config).columns, "its parts have scores"
    return refused(WiringError, wiring_of, config)


def parent(tmp_path: Path) -> str:
    opened = open_folder(tiny.save_small_models(tmp_path) / "letters")
    task = task_for(opened, "subwords", "the cat and the hat " * 300)
    return refused(RunError, finetune_spec, opened, task, {})


def another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the processes that train have nothing to do."""
    monkeypatch.setattr(Cluster, "connect", lambda _: None)
    monkeypatch.setattr(cluster_module, "_keys", lambda _: [])
    said = refused(
        RunError, Cluster(tmp_path).train_all, [tiny.tiny_spec()], None, Maker(OWNER, OWNER)
    )
    assert not list(tmp_path.glob("reverse*")), "nothing is left of it"
    return said


def stopped_run(tmp_path: Path) -> str:
    """It can resume from its state."""
    run = tiny.tiny_run(tmp_path)
    assert train_to_end(run.folder) == "stopped"
    assert (run.folder / "state" / "step-000000").is_dir()
    assert run.status().can_resume
    return run.status().message


def long_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its process ends; the next one that is given the run leaves it as it is."""
    ended: list[bool] = []
    monkeypatch.setattr(watchdog_module, "end_process", lambda: ended.append(True))
    run = tiny.tiny_run(tmp_path)
    watchdog = Watchdog(run)
    watchdog.begin(STEP)
    watchdog.watch()
    assert ended == [True]
    assert train_to_end(run.folder) == "stopped"
    assert run.metrics().rows == []
    return run.status().message


def memory_of_a_run(tmp_path: Path) -> str:
    """By tensors of 80 MB, which the system gives anew: no memory that was freed has room."""
    spec = tiny.tiny_spec(batch_size=4096)
    run = create(tmp_path, replace(spec, model=spec.model.replace(d_ff=512)))
    assert train_to_end(run.folder) == "stopped"
    return run.status().message


def inside(
    at_the_machine: None, small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """An update of a run is taken apart, and the model is too large."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    run = tiny.trained_run(tmp_path, steps=2)
    bound(monkeypatch, inside_bytes=1_000)
    return apps.said(apps.page("training/inside_training", run=run.name))


def another_reader() -> str:
    return ask(ConnectionLimits(Inside()), scope_of("/attention")).sentence


def long_message() -> str:
    said = [b"a" * LARGE_MESSAGE, b"a" * (LARGE_MESSAGE + 1)]
    socket = scope_of("/_stcore/stream", kind="websocket")
    return str(ask(MessageLimits(Inside(), lambda _: True), socket, said).sent[-1]["reason"])


def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    free = SimpleNamespace(free=limits.DISK_LEFT.most + 9)
    monkeypatch.setattr(atomic_files.shutil, "disk_usage", lambda _: free)
    files = {"config.json": b"{}", "model.safetensors": bytes(8)}
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    sizes = {name: len(data) for name, data in files.items()}
    keep = partial(uploads.keep_upload, streams, sizes, tmp_path, uploads.NOBODY)
    said = refused(ModelError, keep, lambda _: None)
    assert list(tmp_path.iterdir()) == []
    return said


def large_download(monkeypatch: pytest.MonkeyPatch) -> str:
    plan = SimpleNamespace(size=limits.DOWNLOAD_BYTES.most + 1)
    monkeypatch.setattr(hub, "_plan", lambda _: plan)
    return refused(ModelError, hub.fetch_from_hub, "someone/large")


TASK = TASKS["reverse"]
ROOM_FOR_A_RUN = ["runs_of_reader", "runs_kept", "runs_bytes", "runs_bytes_of_reader"]
ROOM_FOR_A_RUN += ["queue_of_reader", "queue", "network_share"]
LESSON = (
    b'title = "a"\nabout = "b"\nminutes = 1\n[[steps]]\ntitle = "a"\nopen = "/masks"\ntext = "b"\n'
)
MEETINGS: dict[str, Meeting] = {
    "text_characters": Meeting(page_of_a_text, 2_500),
    "lines": reads(3, TextError, lines_in, "a\nb\nc", "a\nb\nc\nd"),
    "line_characters": reads(9, TextError, lines_in, "123456789", "short\n1234567890"),
    "corpus_characters": Meeting(corpus, 30_000),
    "tokenizer_characters": reads(
        1_000, TextError, partial(trained_merges, most=3), "low lower " * 100, "low lower " * 101
    ),
    "pairs": reads(2, PairError, pairs_of_csv, b"a,b\n" * 2, b"a,b\n" * 3),
    "table_bytes": reads(8, PairError, pairs_of_csv, b"a,b\n" * 2, b"a,b\n" * 3),
    "finding_bytes": Meeting(lambda: refused(FindingError, finding_from, b"{" * 9), 8),
    "lesson_bytes": reads(
        200, LessonError, partial(lesson_from, file="a.toml"), LESSON, LESSON + b"#" * 200
    ),
    "pass_bytes": Meeting(pass_of_letters, 1_000),
    "model_bytes": Meeting(large_model, 1_000),
    "run_parameters": Meeting(lambda: refused(RunError, spec_of, TASK, {}), 0),
    "run_steps": Meeting(lambda: refused(RunError, spec_of, TASK, {}), 0),
    "sweep_runs": Meeting(lambda: refused(RunError, grid, TASK, {"seed": range(2)}), 0),
    "upload_bytes": Meeting(partial(second_upload, status=413, size=1_200_000), 100_000),
    "upload_seconds": Meeting(partial(second_upload, status=408), 0),
    "uploads_receiving": Meeting(partial(second_upload, status=503), 700_000),
    "uploads_receiving_of_reader": Meeting(partial(second_upload, status=413), 700_000),
    **dict.fromkeys(("kept_views", "kept_bytes_of_reader"), Meeting(another_view, 0)),
    "session_file_bytes": Meeting(file_of_a_session, 1_000),
    "pass_tokens": Meeting(tokens),
    "pass_share": Meeting(share),
    "work_seconds": Meeting(seconds, 0),
    "edges": Meeting(edges),
    "parent_parameters": Meeting(parent, 0),
    **dict.fromkeys(ROOM_FOR_A_RUN, Meeting(another_run, 0)),
    **dict.fromkeys(("run_seconds", "run_bytes"), Meeting(stopped_run, 0)),
    "step_seconds": Meeting(long_step, 0),
    "run_memory": Meeting(memory_of_a_run, 1_000_000),
    "inside_bytes": Meeting(inside),
    **dict.fromkeys(("sessions", "sessions_of_address"), Meeting(another_reader, 0)),
    "messages_bytes": Meeting(long_message, LARGE_MESSAGE),
    "disk_left": Meeting(full_disk),
    "download_bytes": Meeting(large_download),
}
