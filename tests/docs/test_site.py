"""The documentation: a site without a warning, true pictures, and code that works as written."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs import architecture, examples, moving_picture, pictures, readme
from explorer.__main__ import _parser
from tests.source import ROOT


def test_they_become_a_site_without_a_warning(tmp_path: Path) -> None:
    """Every link to a page, a heading or a file leads somewhere; every page is listed."""
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    made = subprocess.run([*build, ".", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert made.stderr == ""
    front = (tmp_path / "docs" / "README.html").read_text("utf-8")
    assert "docs/README.html" in (tmp_path / "index.html").read_text("utf-8")
    assert (tmp_path / "README.html").is_file()
    foreign = re.findall(r'(?:<script[^>]*src|<link[^>]*href|<img[^>]*src)="(https?:[^"]+)"', front)
    assert foreign == []


def test_the_picture_of_the_rooms_is_that_of_the_imports() -> None:
    drawn = architecture.FILE.read_text("utf-8")
    assert drawn == architecture.picture(), "run: python -m docs.architecture"


PICTURED = {name: address for name, (address, _) in pictures.PICTURES.items()} | {
    moving_picture.FILE.name: moving_picture.FIRST_PAGE
}


@pytest.mark.parametrize("name", PICTURED)
def test_a_picture_shows_the_page_as_it_is(name: str) -> None:
    words = json.loads(pictures.WORDS.read_text("utf-8"))[name]
    assert pictures.page_words(PICTURED[name]) == words, "run docs.pictures or docs.moving_picture"


COMMAND = re.compile(r"^\S*python -m explorer ([^|&#\n]+)", re.MULTILINE)


def test_python_prints_what_the_page_says() -> None:
    for page in examples.pages():
        text = page.read_text("utf-8")
        assert examples.with_output(text) == text, f"{page.name}: run: python -m docs.examples"


def test_every_command_is_one_that_is_understood() -> None:
    found = 0
    for page in readme.PAGES:
        shell = "\n".join(re.findall(r"^```bash\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))
        for line in COMMAND.findall(shell.replace("\\\n", "")):
            asked = shlex.split(line, comments=True)
            assert _parser().parse_args(asked).command, f"{page.name}: {line}"
            found += 1
    assert found > 10
