"""The files of a tokenizer lie in the folder of their model, whatever a link in it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.text import TextError
from explorer.text.published.files import find, opened


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """Whether it was there or is put there later."""
    secret, folder = tmp_path / "secret", tmp_path / "model"
    secret.write_text("[UNK]\nroot\n")
    folder.mkdir()
    (folder / "vocab.txt").write_text("[UNK]\nword\n")
    found = find(folder, "bert")
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to(secret)
    with pytest.raises(TextError), opened(found):
        pass
    with pytest.raises(TextError, match="link out of the folder, which is not followed"):
        find(folder, "bert")


def test_the_cache_of_a_hub_links_to_its_own_blobs(tmp_path: Path) -> None:
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    folder.mkdir(parents=True)
    (blobs / "123").write_text("[UNK]\nword\n")
    (folder / "vocab.txt").symlink_to("../../blobs/123")
    with opened(find(folder, "bert")) as files:
        assert set(files) == {"vocab.txt"}
