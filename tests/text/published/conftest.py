"""Published folders of every form, each made once; nothing is fetched from anywhere."""

import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import transformers

from explorer.text import PublishedTokenizer, open_published
from explorer.text.published.child import open_engine
from explorer.text.published.engine import Engine
from explorer.text.published.tokenizer_files import find_tokenizer, open_files
from tests.text.published.tokenizer_folders import FOLDERS

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers.logging.set_verbosity_error()

Made = Callable[[str], Path]
OpenModel = Callable[[str], PublishedTokenizer]


def reference_of(made: Made, name: str) -> Any:
    """The reference's tokenizer of the folder of this name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(transformers, FOLDERS[name][1]).from_pretrained(made(name))


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The folder of this name; `llama.json` is what the reference library saves of `llama`."""
    root = tmp_path_factory.mktemp("published")

    @cache
    def make(name: str) -> Path:
        folder = root / name
        folder.mkdir()
        kind = name.removesuffix(".json")
        if kind == name:
            FOLDERS[name][2](folder)
        else:
            reference_of(make, kind).save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def opened(made: Made) -> OpenModel:
    """The tokenizer of the folder of this name."""

    @cache
    def find(name: str) -> PublishedTokenizer:
        return open_published(made(name), FOLDERS[name.removesuffix(".json")][0])

    return find


def engine_of(folder: Path, family: str) -> Engine:
    """What a child process opens, in this one: for files that cannot harm it."""
    with open_files(find_tokenizer(folder, family)) as files:
        return open_engine(files, family)


def children() -> list[psutil.Process]:
    """The processes that hold a tokenizer of this one."""
    return [child for child in psutil.Process().children() if _is_ours(child)]


def _is_ours(process: psutil.Process) -> bool:
    try:
        return "explorer.text.published.child" in process.cmdline()
    except psutil.Error:
        return False
