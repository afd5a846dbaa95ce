"""What is loaded before the first page: no library that only some pages need."""

import subprocess
import sys
from pathlib import Path

from tests.source import ROOT, imports

BEFORE_THE_FIRST_PAGE = ("app.py", "explorer/app/shell.py", "pages/overview/overview.py")
LATER = {
    *("altair", "cryptography", "dask", "distributed", "gguf", "httpx2", "huggingface_hub"),
    *("jinja2", "matplotlib", "pandas", "platformdirs", "sentencepiece", "tensorboardX"),
    *("vl_convert", "yaml"),
}


def test_the_first_page_waits_for_no_library_of_others() -> None:
    """What its files import, and what they do, in a process of its own."""
    named = {each for path in BEFORE_THE_FIRST_PAGE for each in imports(Path(path))}
    ours = sorted(each for each in named if each.startswith("explorer."))
    assert len(ours) > 20
    code = (
        "import importlib, importlib.util, sys\n"
        f"for name in {ours}:\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error: assert error.name == name\n"  # names no module
        "print(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"torch", "streamlit", "explorer.app.bar"} <= {*ran.stdout.split()}
    assert LATER & {*ran.stdout.split()} == set()
