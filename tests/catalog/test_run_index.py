"""The index of runs: what it finds, when it looks again, and that it looks at nothing else."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from explorer.catalog import available_models
from explorer.catalog.run_index import HOST, index_of, maker_in

OWNERS = "a" * 32, "b" * 32
KEY = "run-" + "0" * 24
watched: list[str] | None = None


def note(event: str, given: tuple[Any, ...]) -> None:
    """Told of everything this process opens or lists."""
    if watched is not None and event in ("open", "os.listdir", "os.scandir"):
        watched.append(str(given[0]))


sys.addaudithook(note)


@contextmanager
def opened() -> Iterator[list[str]]:
    """The files opened and the folders listed meanwhile."""
    global watched
    watched = []
    try:
        yield watched
    finally:
        watched = None


def put(root: Path, name: str, owner: str = HOST, began: int = 1_000) -> Path:
    """A run folder, as far as the index knows it."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    if owner:
        (folder / "owner").write_text(owner)
    os.utime(folder / "spec.json", (began, began))
    return folder


def settle(root: Path, at: int = 5_000) -> None:
    """The folder has changed long ago."""
    os.utime(root, (at, at))


def test_runs_are_the_newest_first_and_each_has_its_owner(tmp_path: Path) -> None:
    put(tmp_path, "reverse-1", began=3)
    put(tmp_path, "reverse-2", began=1)
    put(tmp_path, f"reverse-1-{KEY}", OWNERS[0], began=2)
    put(tmp_path, f"sort-7-{KEY}", OWNERS[1], began=2)
    for name in (".new-1", "no run", "é"):
        (tmp_path / name).mkdir()
    found = index_of(tmp_path).now()
    names = [each.name for each in found.newest()]
    assert names == ["reverse-1", f"sort-7-{KEY}", f"reverse-1-{KEY}", "reverse-2"]
    assert [each.name for each in found.newest(HOST)] == ["reverse-1", "reverse-2"]
    assert [each.name for each in found.newest(OWNERS[0])] == [f"reverse-1-{KEY}"]
    assert found.newest("c" * 32) == ()
    assert (found.next_number("reverse", HOST), found.next_number("reverse", OWNERS[0])) == (3, 2)
    assert found.next_number("sort", OWNERS[0]) == 1, "numbers count the reader's own runs"
    assert found.incomplete == [".new-1"]


def test_an_owner_that_cannot_be_read_is_nobody(tmp_path: Path) -> None:
    folder = put(tmp_path, f"reverse-1-{KEY}")
    for said in (b"", b"\xff" * 32, b"x" * 32, b"a" * 33, b"a" * 10_000):
        (folder / "owner").write_bytes(said)
        assert maker_in(folder).owner is None
    (folder / "owner").unlink()
    assert maker_in(folder).owner is None
    assert index_of(tmp_path).now().newest(HOST) == ()
    assert len(index_of(tmp_path).now().newest()) == 1


def test_what_comes_and_goes_is_seen_at_once(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    index = index_of(root)
    assert not index.now().newest()
    put(root, "reverse-1")
    assert len(index.now().newest()) == 1
    settle(root)
    assert len(index.now().newest()) == 1
    put(root, "reverse-2")
    assert len(index.now().newest()) == 2
    (root / "reverse-1").rename(root / ".deleted-1")
    assert [each.name for each in index.now().newest()] == ["reverse-2"]
    settle(root)
    assert index.now().incomplete == [".deleted-1"]


def test_only_new_runs_are_looked_at_and_nothing_while_none_comes_or_goes(tmp_path: Path) -> None:
    for number in range(1, 301):
        put(tmp_path, f"reverse-{number}-{KEY}", OWNERS[number % 2])
    settle(tmp_path)
    with opened() as files:
        assert len(index_of(tmp_path).now().newest()) == 300
    assert len(files) == 301, "one list of names, and whose each is"
    with opened() as files:
        assert len(index_of(tmp_path).now().newest(OWNERS[0])) == 150
    assert files == []
    put(tmp_path, f"reverse-301-{KEY}", OWNERS[0])
    settle(tmp_path, 6_000)
    with opened() as files:
        assert len(index_of(tmp_path).now().newest()) == 301
    assert files == [str(tmp_path), str(tmp_path / f"reverse-301-{KEY}" / "owner")]


def test_the_list_opens_no_file_of_any_run(small_models: Path, tmp_path: Path) -> None:
    """Those that are listed were read once."""
    root, runs = tmp_path / "runs", 120
    for number in range(1, runs + 1):
        put(root, f"reverse-{number}", began=number)
        (root / f"reverse-{number}" / "checkpoint").symlink_to(small_models / "reverse")
    settle(root)
    with opened() as files:
        listed = [entry for entry in available_models.list_models() if entry.origin == "run"]
    newest = [f"reverse-{number}" for number in range(runs, runs - 50, -1)]
    assert [entry.name for entry in listed] == newest
    read = [Path(file) for file in files if root in Path(file).parents]
    assert {file.relative_to(root).parts[0] for file in read} == {*newest}
    with opened() as files:
        assert available_models.list_models()[-1].name == newest[-1]
    assert [file for file in files if file.startswith(str(root))] == []
