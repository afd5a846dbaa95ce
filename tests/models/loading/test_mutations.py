"""A file that was changed in any way opens as another library reads it, or is refused.

That takes one sentence, little memory, and little reading.
"""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.loading.gguf_damage import NAME, good
from tests.models.loading.hostile import CONFIG, INDEX, WEIGHTS, sharded
from tests.models.loading.mutations import changed_file
from tests.models.loading.opening import Opener, check_refused

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

MOST_READ = 1 << 20
"""Bytes, of folders that have a hundredth of it."""
FILES = ("ours", CONFIG), ("gpt2", CONFIG), ("gpt2", WEIGHTS), ("shards", INDEX), ("gguf", NAME)


@pytest.fixture(scope="module")
def folders(good_folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder to be changed for each way to store a model."""
    root = tmp_path_factory.mktemp("changed")
    for kind, sound in (("ours", "ours"), ("gpt2", "gpt2"), ("shards", "gpt2")):
        shutil.copytree(good_folders / sound, root / kind)
    sharded()(root / "shards")
    (root / "gguf").mkdir()
    (root / "gguf" / NAME).write_bytes(good().written())
    return root


@pytest.mark.parametrize(("kind", "file"), FILES)
@settings(max_examples=max(60, settings().max_examples))
@given(data=st.data())
def test_a_changed_file_opens_equal_or_is_refused(
    kind: str, file: str, data: st.DataObject, folders: Path, opener: Opener
) -> None:
    place = folders / kind / file
    sound = place.read_bytes()
    place.write_bytes(data.draw(changed_file(file, sound)))
    try:
        answer = opener.ask(folders / kind)
    finally:
        place.write_bytes(sound)
    assert answer.read <= MOST_READ
    if answer.error is not None:
        check_refused(answer, folders / kind)
