"""Where models of others come from: named folders, uploads, typed paths; and bad ones of each."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from explorer.catalog import ModelError, folders, hub, uploads

WEIGHTS = {"config.json": b"{}", "model.safetensors": b"12345678"}


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(folders.ALLOW_PATHS, "1")


def folder_of(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    return path


def keep(root: Path, files: Mapping[str, bytes] = WEIGHTS) -> Path:
    streams = {name: io.BytesIO(data) for name, data in files.items()}
    return uploads.keep_upload(streams, {name: len(data) for name, data in files.items()}, root)


def test_paths_are_closed_unless_opened_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who a visitor is cannot be told behind a proxy, so only the person at the start can say."""
    here = folder_of(tmp_path / "here")
    assert folders.find_model(str(here)) == here
    for said in ["", "0", "yes"]:
        monkeypatch.setenv(folders.ALLOW_PATHS, said)
        with pytest.raises(ModelError, match=r"^Paths and hub IDs are not allowed; .*\.$"):
            folders.find_model(str(here))
    monkeypatch.delenv(folders.ALLOW_PATHS)
    with pytest.raises(ModelError, match="=1 to allow them"):
        folders.find_model(str(here))


def test_a_place_is_a_model_or_holds_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ["a", "b/snapshots/1", "snapshots/1"]:
        made = folder_of(tmp_path / place.replace("/", "-") / place)
        assert folders.checkpoints_in(tmp_path / place.replace("/", "-")) == [made]
        assert folders.checkpoints_in(made) == [made]
    many = tmp_path / "many"
    made_here = [folder_of(many / name) for name in ("b", "a", "c")]
    folder_of(many / "far" / "snapshots" / "1")
    (many / "file").write_text("no folder")
    assert folders.checkpoints_in(many) == sorted(made_here), "what lies nearest"
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    for nowhere in [Path("\0"), tmp_path / ("x" * 300), looped]:
        assert folders.checkpoints_in(nowhere) == []
    monkeypatch.setattr(folders, "MOST_FOLDERS", 2)
    assert len(folders.checkpoints_in(many)) == 2


def test_several_places_are_named_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = folder_of(tmp_path / "x" / "one"), folder_of(tmp_path / "y" / "two")
    named = [str(tmp_path / "y"), "", str(one), str(tmp_path / "x"), "/nowhere/at/all", " "]
    monkeypatch.setenv("EXPLORER_MODELS", os.pathsep.join(named))
    assert folders.named_folders() == [two, one]
    assert folders.places_without_models() == ["all"]
    monkeypatch.setattr(folders, "MOST_FOLDERS", 1)
    assert folders.named_folders() == [two]
    monkeypatch.delenv("EXPLORER_MODELS")
    assert (folders.named_folders(), folders.places_without_models()) == ([], [])


def test_a_folder_of_the_hubs_cache_is_called_by_its_id_and_leads_nowhere_else() -> None:
    for folder, name in {
        "/cache/models--someone--tiny-bert/snapshots/0123abc": "someone/tiny-bert",
        "/cache/models--..--..--victim/snapshots/abc": "abc",
        "/cache/bert": "bert",
        "/": "model",
    }.items():
        assert folders.model_name(Path(folder)) == name


def test_an_upload_is_kept_once_by_what_is_in_it(tmp_path: Path) -> None:
    left = tmp_path / f"{uploads.RECEIVING}old"
    left.mkdir()
    os.utime(left, (0, 0))
    kept = keep(tmp_path)
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == WEIGHTS
    assert keep(tmp_path, {f"my-bert/{name}": data for name, data in WEIGHTS.items()}) == kept
    assert keep(tmp_path, {**WEIGHTS, "config.json": b"[]"}) != kept
    assert keep(tmp_path, {"a": b"bc", "d": b""}) != keep(tmp_path, {"a": b"b", "cd": b""})
    assert uploads.uploaded(kept.name, tmp_path) == kept
    assert not list(tmp_path.glob(f"{uploads.RECEIVING}*")), "also what a killed process left"
    for name in ["", "upload-", "upload-../x", f"upload-{'0' * 24}", f"{kept.name}/..", "x" * 9999]:
        assert uploads.uploaded(name, tmp_path) is None


BAD_NAMES = ["..", ".", ".hidden", "a/..", "a/", "a\\..", "", "a\0b", "a\nb", "a\u202eb", "x" * 121]


def test_a_name_never_leaves_its_folder_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    for name in BAD_NAMES:
        with pytest.raises(ModelError, match=r"^This upload holds a file without a valid name"):
            keep(tmp_path, {**WEIGHTS, name: b""})
    with pytest.raises(ModelError, match=r"^This upload holds config\.json twice"):
        keep(tmp_path, {"a/config.json": b"{}", "b/config.json": b"[]"})
    assert list(tmp_path.iterdir()) == []
    for name in ["../../x", "/etc/x", "C:\\windows\\x", "..\\x"]:
        kept = keep(tmp_path / "up", {name: b"data"})
        assert [file.name for file in kept.iterdir()] == ["x"]
    assert list(tmp_path.iterdir()) == [tmp_path / "up"]


def test_nothing_and_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"^There is no file .*\.$"):
        keep(tmp_path, {})
    with pytest.raises(ModelError, match=r"^A model has at most 40 files, not 41\.$"):
        keep(tmp_path, {f"{n}": b"" for n in range(41)})
    monkeypatch.setattr(uploads, "LARGEST_UPLOAD", 1_000_000)
    with pytest.raises(ModelError, match=r"^An upload has at most 1 MB; this one has 2 MB\.$"):
        keep(tmp_path, {"config.json": b"x" * 1_000_000, "more": b"y" * 1_000_000})
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_upload_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UPLOADS_KEPT", 25)
    first, second = (keep(tmp_path, {"a": bytes([n]) * 10}) for n in (1, 2))
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    assert keep(tmp_path, {"a": bytes([1]) * 10}) == first  # asked for again, it is new again
    third = keep(tmp_path, {"a": b"3" * 10})
    assert sorted(tmp_path.iterdir()) == sorted([first, third])
    large = keep(tmp_path, {"a": b"4" * 100})
    assert list(tmp_path.iterdir()) == [large], "the newest stays even alone"


def test_a_typed_path_is_a_folder_or_that_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder_of(tmp_path / "bert")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in [str(made), f"  {tmp_path} ", "~/bert", str(made / "config.json")]:
        assert folders.find_model(path) == made
    folder_of(tmp_path / "a")
    with pytest.raises(ModelError, match=r"^There are 2 models in this folder; .* such as a\.$"):
        folders.find_model(str(tmp_path))


def test_what_is_no_folder_is_asked_of_the_hub_if_it_may_be_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "fetch_from_hub", Path)
    assert folders.find_model(" someone/bert ") == Path("someone/bert")

    def refuse(hub_id: str) -> Path:
        raise ModelError(f"The hub was asked for {hub_id}.")

    monkeypatch.setattr(hub, "fetch_from_hub", refuse)
    with pytest.raises(ModelError, match=r"^The hub was asked for someone/bert\.$"):
        folders.find_model("someone/bert")
    for place in ["", "  ", "\0", "/nowhere/at/all", "~nobody-at-all/x", "a b c", "x" * 5_000]:
        with pytest.raises(ModelError, match=r"^There is no model folder of that name, .*\.$"):
            folders.find_model(place)
