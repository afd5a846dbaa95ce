"""A laptop without a network: the installed program, and a browser, where no host can be reached.

Both run in a network namespace of their own that has nothing but itself, where the system lets us
make one. Everywhere the program's processes refuse any other host by themselves, and write it down.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Self

from tests.package import COMMAND, built_wheel, installed
from tests.served import Server, wait_until

ALONE = ["unshare", "--map-root-user", "--net"]
GUARD = '''
"""Python imports it first in every process of the program."""
import sys

HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}

def hear(event, arguments):
    if event == "socket.connect":
        place = arguments[1]
        host = place[0] if isinstance(place, tuple) else "localhost"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0] or ""
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    if host not in HERE:
        with open(%r, "a") as asked:
            asked.write(f"{host}\\n")
        raise OSError("There is no network.")

sys.addaudithook(hear)
'''
LOOPBACK = """
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    try:  # SIOCSIFFLAGS, IFF_UP: a new namespace has a loopback that is down
        fcntl.ioctl(line, 0x8914, struct.pack("16sh14x", b"lo", 1))
    except OSError:
        pass
"""


def can_be_alone() -> bool:
    """Whether this system lets us make a network namespace."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0


class Laptop(Server):
    """The installed program without a network; `asked` names the hosts it wanted all the same."""

    def __init__(self, folder: Path) -> None:
        packages = installed(built_wheel(folder), folder)
        self.is_alone = can_be_alone()
        self._asked = folder / "asked.txt"
        guard = GUARD % str(self._asked) + (LOOPBACK if self.is_alone else "")
        for place in (packages, packages / "attention_explorer"):  # where the workers look
            (place / "sitecustomize.py").write_text(guard)
        command = [*ALONE, *COMMAND] if self.is_alone else COMMAND
        env = {"PYTHONPATH": str(packages), "EXPLORER_EXAMPLES": str(folder / "examples")}
        super().__init__(folder / "runs", command=command, env=env, folder=folder)

    def wait(self, seconds: float = 90) -> Self:
        """Come back when the program says where it is: from outside nobody can ask it."""
        wait_until(lambda: "The app is at" in self.log, "the program", seconds)
        return self

    @property
    def asked(self) -> str:
        return self._asked.read_text() if self._asked.exists() else ""

    def browser(self, path: str) -> str:
        """A program that is this browser where the laptop is."""
        if not self.is_alone:
            return path
        inside = self.runs.with_name("browser")
        enter = f"nsenter --target {self.pid} --user --net --preserve-credentials"
        inside.write_text(f'#!/bin/sh\nexec {enter} "{path}" "$@"\n')
        inside.chmod(0o700)
        return str(inside)
