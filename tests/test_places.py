"""Where models of others come from: named folders, uploads, typed paths; and bad ones of each."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from explorer import hub, places
from explorer.places import PlaceError

WEIGHTS = {"config.json": b"{}", "model.safetensors": b"12345678"}


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(places.FREE, "1")


@pytest.mark.parametrize("said", [None, "", "0", "yes"])
def test_paths_are_closed_unless_opened_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None
) -> None:
    """Who a visitor is cannot be told behind a proxy, so only the person at the start can say."""
    folder_of(tmp_path / "here")
    assert places.typed(str(tmp_path / "here")) == tmp_path / "here"
    monkeypatch.delenv(places.FREE) if said is None else monkeypatch.setenv(places.FREE, said)
    with pytest.raises(PlaceError, match=r"^Paths and hub ids are closed; .*=1 to open them\.$"):
        places.typed(str(tmp_path / "here"))


def test_a_name_in_the_cache_of_a_hub_leads_nowhere_else(tmp_path: Path) -> None:
    made = folder_of(tmp_path / "models--..--..--victim" / "snapshots" / "abc")
    assert places.name_of(made) == "abc"


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    left = tmp_path / f"{places.RECEIVING}old"
    left.mkdir()
    os.utime(left, (0, 0))
    keep(tmp_path)
    assert not left.exists()


def folder_of(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    return path


def keep(root: Path, files: Mapping[str, bytes] = WEIGHTS) -> Path:
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    return places.keep_upload(streams, {name: len(data) for name, data in files.items()}, root)


@pytest.mark.parametrize("place", ["", "bert", "a", "b/snapshots/1"])
def test_a_place_is_a_model_or_holds_some(tmp_path: Path, place: str) -> None:
    made = folder_of(tmp_path / "here" / place)
    assert places.checkpoints_in(tmp_path / "here") == [made]


def test_what_lies_nearest_is_found_and_sorted(tmp_path: Path) -> None:
    made = [folder_of(tmp_path / name) for name in ("b", "a", "c")]
    folder_of(tmp_path / "far" / "snapshots" / "1")
    (tmp_path / "file").write_text("no folder")
    assert places.checkpoints_in(tmp_path) == sorted(made)


def test_several_places_are_named_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = folder_of(tmp_path / "x" / "one"), folder_of(tmp_path / "y" / "two")
    named = [str(tmp_path / "y"), "", str(one), str(tmp_path / "x"), "/nowhere/at/all", " "]
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join(named))
    assert places.named_folders() == [two, one]
    monkeypatch.delenv("EXPLORER_MODELS")
    assert places.named_folders() == []


def test_a_place_may_hold_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(places.MOST_FOLDERS + 3):
        folder_of(tmp_path / f"{number:03}")
    assert len(places.checkpoints_in(tmp_path)) == places.MOST_FOLDERS
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join([str(tmp_path), str(tmp_path / "202")]))
    assert len(places.named_folders()) == places.MOST_FOLDERS


def test_a_place_nobody_may_look_into_holds_nothing(tmp_path: Path) -> None:
    assert places.checkpoints_in(Path("\0")) == []
    assert places.checkpoints_in(tmp_path / ("x" * 300)) == []
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    assert places.checkpoints_in(looped) == []


def test_a_folder_of_the_hubs_cache_is_called_by_its_id(tmp_path: Path) -> None:
    kept = tmp_path / "models--someone--tiny-bert" / "snapshots" / "0123abc"
    assert places.name_of(kept) == "someone/tiny-bert"
    assert places.name_of(tmp_path / "bert") == "bert"
    assert places.name_of(Path("/")) == "model"


def test_an_upload_is_kept_once_by_what_is_in_it(tmp_path: Path) -> None:
    kept = keep(tmp_path)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == WEIGHTS
    assert keep(tmp_path, {f"my-bert/{name}": data for name, data in WEIGHTS.items()}) == kept
    assert keep(tmp_path, {**WEIGHTS, "config.json": b"[]"}) != kept
    assert places.uploaded(kept.name, tmp_path) == kept
    assert not list(tmp_path.glob(".receiving-*"))


def test_contents_do_not_run_into_each_other(tmp_path: Path) -> None:
    assert keep(tmp_path, {"a": b"bc", "d": b""}) != keep(tmp_path, {"a": b"b", "cd": b""})


BAD_NAMES = ["..", ".", ".hidden", "a/..", "a/", "a\\..", "", "a\0b", "a\nb", "a\u202eb", "x" * 121]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlaceError, match=r"^This upload holds a file whose name is none\.$"):
        keep(tmp_path, {**WEIGHTS, name: b""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "C:\\windows\\x", "..\\x"])
def test_a_name_never_leaves_its_folder(tmp_path: Path, name: str) -> None:
    kept = keep(tmp_path / "root", {name: b"mine"})
    assert [file.name for file in kept.iterdir()] == ["x"]
    assert list(tmp_path.iterdir()) == [tmp_path / "root"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"^This upload holds config\.json twice"):
        keep(tmp_path, {"a/config.json": b"{}", "b/config.json": b"[]"})
    assert list(tmp_path.iterdir()) == []


def test_nothing_and_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlaceError, match=r"^There is no file .*\.$"):
        keep(tmp_path, {})
    with pytest.raises(PlaceError, match=r"^A model has at most 40 files, not 41\.$"):
        keep(tmp_path, {f"{n}": b"" for n in range(41)})
    monkeypatch.setattr(places, "LARGEST_UPLOAD", 1_000_000)
    with pytest.raises(PlaceError, match=r"^An upload has at most 1 MB; this one has 2 MB\.$"):
        keep(tmp_path, {"config.json": b"x" * 1_000_000, "more": b"y" * 1_000_000})
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_upload_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "UPLOADS_KEPT", 25)
    first, second = (keep(tmp_path, {"a": bytes([n]) * 10}) for n in (1, 2))
    os.utime(second, (1, 1))
    os.utime(first, (2, 2))
    third = keep(tmp_path, {"a": b"3" * 10})
    assert sorted(tmp_path.iterdir()) == sorted([first, third])
    large = keep(tmp_path, {"a": b"4" * 100})
    assert list(tmp_path.iterdir()) == [large], "the newest stays even alone"


def test_an_upload_that_is_asked_for_again_is_new_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "UPLOADS_KEPT", 25)
    first, second = (keep(tmp_path, {"a": bytes([n]) * 10}) for n in (1, 2))
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    keep(tmp_path, {"a": bytes([1]) * 10})
    keep(tmp_path, {"a": b"3" * 10})
    assert first.is_dir()
    assert not second.is_dir()


@pytest.mark.parametrize(
    "name",
    ["", "upload-", "upload-../x", f"upload-{'0' * 24}", f"upload-{'a' * 24}/..", "x" * 10_000],
)
def test_an_upload_nobody_made_is_none(tmp_path: Path, name: str) -> None:
    assert places.uploaded(name, tmp_path) is None


def test_a_typed_path_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder_of(tmp_path / "bert")
    assert places.typed(str(made)) == places.typed(f"  {tmp_path} ") == made
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.typed("~/bert") == made


def test_a_path_to_a_file_is_its_folder(tmp_path: Path) -> None:
    made = folder_of(tmp_path / "bert")
    assert places.typed(str(made / "config.json")) == made


def test_a_typed_folder_of_many_names_one(tmp_path: Path) -> None:
    folder_of(tmp_path / "b")
    folder_of(tmp_path / "a")
    with pytest.raises(PlaceError, match=r"^There are 2 models in this folder; .* such as a\.$"):
        places.typed(str(tmp_path))


@pytest.mark.parametrize(
    "place", ["", "  ", "\0", "/nowhere/at/all", "~nobody-at-all/x", "a b c", "x" * 5_000]
)
def test_a_place_that_is_none_is_one_sentence(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "fetched", lambda _id: pytest.fail("nobody asked the hub"))
    with pytest.raises(PlaceError, match=r"^There is no model folder of that name, .*\.$"):
        places.typed(place)


def test_what_is_no_folder_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "fetched", Path)
    assert places.typed(" someone/bert ") == Path("someone/bert")

    def refuse(_id: str) -> Path:
        raise hub.HubError("The hub is closed.")

    monkeypatch.setattr(hub, "fetched", refuse)
    with pytest.raises(PlaceError, match=r"^The hub is closed\.$"):
        places.typed("someone/bert")


def test_a_place_without_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "here")
    named = [str(tmp_path / "here"), str(tmp_path / "nothing"), " "]
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join(named))
    assert places.empty_places() == ["nothing"]
