"""A package of the Python registry as a file: asked for by pip, never installed, never run.

pip knows which registry is configured here, and says where the package lies. It is fetched from
there so that it can go on where it stopped. Where that fails, as behind a registry that asks for
a password, pip fetches it itself.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from explorer.catalog.downloads.resumable_fetch import (
    FetchError,
    NotFetchedError,
    Report,
    WrongFileError,
    check,
    fetch,
)

PIP = (sys.executable, "-m", "pip")
ASKS = ("--no-input", "--disable-pip-version-check", "--retries", "1", "--no-cache-dir")
FETCHES = ("--no-deps", "--only-binary", ":all:", "--quiet", *ASKS)
FOUND = re.compile(r"Found link (\S+) .*, version: (\S+)$", re.MULTILINE)
"""How pip tells in its log of each file that it finds in the registry."""
LOOKS = 0.1
"""Seconds between two looks at what pip has fetched."""
UNREACHABLE = re.compile(
    r"connection broken|ConnectionError|ConnectTimeout|timed out|Max retries|resolution|"
    r"unreachable|ProxyError|SSLError",
    re.IGNORECASE,
)
REFUSED = re.compile(r"\b(40[13]) Client Error")


class _PipEnded(NamedTuple):
    code: int
    output: str
    errors: str


def fetch_package(
    requirement: str, sha256: str, wheel: Path, report: Report, size: int = 0
) -> None:
    """The wheel of `name==version`, or what is missing of it, at this path.

    `size` is about what it has, for a report where nobody says.
    """
    try:
        url = _address_of(requirement)
        if url is not None:
            fetch(url, wheel, report, sha256=sha256)
            return
    except FetchError as error:
        if wheel.exists() and wheel.stat().st_size:
            raise NotFetchedError(_broken_off(error)) from error
    except WrongFileError as error:
        raise NotFetchedError(_wrong(requirement)) from error
    most = 0

    def watch(done: int) -> None:
        nonlocal most
        most = max(most, min(done, size))
        report(most, size)

    _fetch_by_pip(requirement, wheel, watch)
    try:
        check(wheel, sha256)
    except WrongFileError as error:
        raise NotFetchedError(_wrong(requirement)) from error


def _address_of(requirement: str) -> str | None:
    """Where pip would fetch its wheel from; None where it does not say."""
    name, _, version = requirement.partition("==")
    ended = _run_pip(["index", "versions", "-vv", *ASKS, name])
    if ended.code:
        raise NotFetchedError(_refusal(requirement, ended.output + ended.errors))
    for link, found in FOUND.findall(ended.output):
        if found == version and PurePosixPath(urlsplit(link).path).suffix == ".whl":
            return str(link)
    return None


def _fetch_by_pip(requirement: str, wheel: Path, watch: Callable[[int], None]) -> None:
    with tempfile.TemporaryDirectory(dir=wheel.parent) as place:
        ended = _run_pip(["download", "--dest", place, *FETCHES, requirement], watch)
        fetched = list(Path(place).glob("*.whl"))
        if ended.code or len(fetched) != 1:
            raise NotFetchedError(_refusal(requirement, ended.errors))
        fetched[0].replace(wheel)


def _run_pip(arguments: Sequence[str], watch: Callable[[int], None] = lambda _: None) -> _PipEnded:
    """Run pip; `watch` is told again and again how many bytes it has fetched, and may raise."""
    with (
        tempfile.TemporaryDirectory() as scratch,
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
            while True:
                try:
                    code = pip.wait(LOOKS)
                    break
                except subprocess.TimeoutExpired:
                    watch(_bytes_in(Path(scratch)))
        finally:
            pip.kill()
            pip.wait()
        output.seek(0)
        errors.seek(0)
        return _PipEnded(code, output.read(), errors.read())


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(place) / name).stat().st_size
            except OSError:  # it was moved meanwhile
                continue
    return total


def _refusal(requirement: str, errors: str) -> str:
    """Why pip did not give it, as the end of a sentence."""
    if "No module named pip" in errors:
        return "pip is not installed beside Python here; install it, such as by ensurepip."
    if found := REFUSED.search(errors):
        return f"the Python registry refused it with HTTP status {found[1]}."
    if UNREACHABLE.search(errors):
        return "the Python registry cannot be reached; check that this machine is online."
    return f"the Python registry that pip is set to here does not offer {requirement}."


def _broken_off(error: FetchError) -> str:
    if error.status is None:
        return "the connection broke; try again, and it goes on where it stopped."
    return (
        f"the Python registry answered with HTTP status {error.status}; try again, and it goes on "
        "where it stopped."
    )


def _wrong(requirement: str) -> str:
    return f"{requirement} on the Python registry is not the file that was expected."
