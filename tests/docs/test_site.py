"""The pages of the documentation: they are a site without a warning, and the picture is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import architecture, moving_picture, pictures
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
