"""The app as the public meets it: replicas of it behind Debian's nginx, with its own settings."""

import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from explorer.app.reader import COOKIE, new_key
from tests.served import ROOT, Server, free_port, wait_until

NGINX = "nginx"
PACKAGES = (NGINX, "nginx-core")
"""The program lies in the first, or the first needs the second (Ubuntu's)."""
SYSTEMS = ("/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx")
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "explorer-tests"
CONFIG = ROOT / "deploy" / "nginx.conf"
SHARED = {"STREAMLIT_SERVER_COOKIE_SECRET": "of all replicas"}
"""What replicas have in common besides their folders: a form of one is taken by the other."""


class NoNginx(RuntimeError):
    """There is none and none could be fetched."""


def ensure() -> str:
    """The path of an nginx that starts: the system's, or Debian's package unpacked in a cache.

    Installed, the package would start a server of its own; unpacked it needs no rights.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileLock(KEPT / "nginx.lock"):  # one process fetches it, the others wait
        unpacked = KEPT / NGINX / "usr" / "sbin" / NGINX
        for path in (shutil.which(NGINX), *SYSTEMS, str(unpacked)):
            if path and starts(path):
                return path
        fetch_package(KEPT / NGINX)
        if starts(str(unpacked)):
            return str(unpacked)
    raise NoNginx("no nginx is installed, and Debian's package could not be fetched")


def starts(path: str) -> bool:
    """Whether this program runs here."""
    return run([path, "-v"])


def fetch_package(to: Path) -> None:
    """Debian's package by apt, with lists of our own where the system has none."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        ours = ["-o", f"Dir::State={place / 'state'}", "-o", f"Dir::Cache={place / 'cache'}"]
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (place / folder).mkdir(parents=True)
        for options in ([], [*ours]):
            if options:
                run(["apt-get", *options, "update"])
            for package in PACKAGES:
                run(["apt-get", *options, "download", package], place)
            for found in place.glob("*.deb"):
                run(["dpkg", "-x", str(found), str(to)])
                found.unlink()
            if (to / "usr" / "sbin" / NGINX).exists():
                return


def run(command: Sequence[str], folder: Path | None = None) -> bool:
    """Whether the command ended well."""
    try:
        return not subprocess.run(command, cwd=folder, capture_output=True, timeout=300).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass
class Proxy:
    """A running nginx with the settings of `deploy`, and where it listens."""

    url: str
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        """What it has printed so far: a line for each request, and what is critical."""
        return self.log_path.read_text(errors="replace")


@contextmanager
def proxy(folder: Path, port: int, ports: Sequence[int], more: str = "") -> Iterator[Proxy]:
    """nginx on this port before the replicas on those; what it writes is in the folder.

    `more` stands in listen.conf besides.
    """
    folder.mkdir()
    shutil.copy(CONFIG, folder)
    replicas = (f"server 127.0.0.1:{each} max_fails=0;" for each in ports)
    (folder / "replicas.conf").write_text("\n".join(replicas))
    (folder / "listen.conf").write_text(f"listen 127.0.0.1:{port};\n{more}")
    settings = "daemon off;" + (" user root;" if os.geteuid() == 0 else "")
    command = [ensure(), "-p", f"{folder}/", "-e", "stderr", "-c", str(folder / CONFIG.name)]
    log_path = folder / "nginx.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen([*command, "-g", settings], stdout=log, stderr=log)
    try:
        wait_until((folder / "nginx.pid").exists, f"nginx: {log_path.read_text()}", 20)
        yield Proxy(f"http://127.0.0.1:{port}", process, log_path)
    finally:
        process.terminate()
        process.wait(20)


@dataclass
class Replicas:
    """Several processes of the app that share their folders, behind one proxy."""

    servers: Sequence[Server]
    proxy: Proxy

    @property
    def url(self) -> str:
        return self.proxy.url

    def place_of(self, key: str) -> Server:
        """The replica that a reader with this key is led to."""
        before = len(self.proxy.log)
        headers = {"Cookie": f"{COOKIE}={key}"}
        request = urllib.request.Request(f"{self.url}/_stcore/health", headers=headers)
        with urllib.request.urlopen(request, timeout=30):
            wait_until(lambda: self.proxy.log[before:].count("\n") == 1, "the proxy's line")
        asked = json.loads(self.proxy.log[before:])["replica"]
        return next(each for each in self.servers if asked.endswith(f":{each.port}"))

    def reader_of(self, server: Server) -> str:
        """The key of a reader who is led to this replica."""
        return next(key for key in iter(new_key, "") if self.place_of(key) is server)


@contextmanager
def before(servers: Sequence[Server], folder: Path) -> Iterator[Replicas]:
    """These, which run already, behind a proxy that writes into this folder."""
    with proxy(folder, free_port(), [each.port for each in servers]) as front:
        yield Replicas(servers, front)
