"""The lessons that ship have no fault; a lecturer's folder adds its own and says what is wrong."""

import os
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.app import address_parameters
from explorer.lessons.lesson_catalog import FILES, FOLDER, TAUGHT, lesson_catalog

PAGES = address_parameters.of_pages()


def test_the_lessons_that_ship_have_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    found = lesson_catalog(PAGES)
    assert found.faults == ()
    assert (*found.lessons,) == TAUGHT
    assert {*found.lessons} == {path.stem for path in FILES.glob("*.toml")}


def test_a_folder_of_ones_own_is_read_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert main(["lesson", "new", "mine", "--to", str(tmp_path)]) == 0
    assert main(["lesson", "new", "mine", "--to", str(tmp_path)]) == 2
    assert main(["lesson", "new", "My own", "--to", str(tmp_path)]) == 2
    path = tmp_path / "mine.toml"
    os.mkfifo(tmp_path / "pipe.toml")  # nobody waits for it
    assert main(["lesson", "check", str(path)]) == 0
    for name, text in (("digits", f"minutes = {'1' * 5_000}"), ("keys", '"\\u001b[31m" = 1')):
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
        assert main(["lesson", "check", str(tmp_path / f"{name}.toml")]) == 2
    assert [*lesson_catalog(PAGES).lessons] == [*TAUGHT, "mine"]
    assert "\x1b" not in capsys.readouterr().out
    path.write_text(path.read_text("utf-8").replace("/attention?", "/nowhere?"), "utf-8")
    capsys.readouterr()
    assert main(["lesson", "check", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out.count("names no page “nowhere”") == 2
    assert said.err == "2 faults\n"
    found = lesson_catalog(PAGES)
    assert "mine" not in found.lessons
    assert any("names no page “nowhere”" in fault for fault in found.faults)
    assert found.faults[-1].startswith("pipe.toml: cannot be read")
    monkeypatch.setenv(FOLDER, str(tmp_path / "gone"))
    faults = lesson_catalog(PAGES).faults
    assert any(FOLDER in each for each in faults)
    assert not any(str(tmp_path) in each for each in faults)
