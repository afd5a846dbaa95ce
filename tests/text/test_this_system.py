"""The app without what only POSIX has: played here, since the tests run where it is all there."""

import os
import subprocess
import sys
from pathlib import Path

from explorer.system import operating_system
from tests.source import ROOT

AS_ON_WINDOWS = '''
"""A Python that finds what Windows has, for the module that asks, and lacks what it has not."""
import ctypes, fcntl, os, signal, subprocess, sys, types
import distributed, multiprocessing, socket, torch, streamlit, tqdm, uvicorn

held = set()
def locking(handle, mode, count):
    fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
subprocess.CREATE_NEW_PROCESS_GROUP = 0
usual, sys.platform = sys.platform, "win32"
import explorer.system.operating_system
sys.platform = usual
for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None
names = "getuid killpg getpgid nice sysconf sched_getaffinity O_NOFOLLOW O_NONBLOCK O_CLOEXEC"
for name in names.split():
    delattr(os, name)
'''
TRAINS_AND_DRAWS = """
from explorer.__main__ import main
wishes = "--layers 1 --heads 1 --d-model 8 --steps 1".split()
assert main(["train", "reverse", *wishes]) == main(["runs"]) == 0
from streamlit.testing.v1 import AppTest
from explorer.app import reader
from explorer.runs.cluster import workers_here
from explorer.server.connection_limits import files_are_scarce, raise_file_limit
from explorer.text.published.process import CHILDREN, ChildError
from explorer.text.published.tokenizer_files import TokenizerText
page = AppTest.from_file("explorer/app/shell.py", default_timeout=60).run()
assert not page.exception, page.exception
assert workers_here() >= 1 and raise_file_limit() and not files_are_scarce()
assert len(reader.digest("a")) == 32
try:
    with CHILDREN.child(TokenizerText.of("{}", "{}")):
        raise AssertionError
except ChildError as error:
    print(error)
"""


def test_the_app_trains_and_draws_without_what_only_posix_has(tmp_path: Path) -> None:
    call = [sys.executable, "-c", AS_ON_WINDOWS + TRAINS_AND_DRAWS]
    env = os.environ | {"EXPLORER_RUNS": str(tmp_path)}
    made = subprocess.run(call, cwd=ROOT, env=env, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    assert "reverse-1" in made.stdout
    assert "WSL" in made.stdout


def test_a_lock_is_one_processs(tmp_path: Path) -> None:
    """flock is of the open file: a second one of the same process is another's."""
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert operating_system.lock(first)
    assert not operating_system.lock(second)
    assert not operating_system.lock(second, shared=True)
    os.close(first)
    assert operating_system.lock(second)
    os.close(second)
