"""One file fetched over HTTP: it goes on where it stopped, and is checked against its digest."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import httpx2  # the server starts without it

BLOCK = 1 << 18
TRIES, PAUSE = 5, 1.0
"""Attempts in a row that bring nothing, and seconds between two of them."""
ANSWER_WITHIN, CONNECT_WITHIN = 30.0, 10.0
"""Seconds."""

Report = Callable[[int, int], None]
"""Called with the bytes that are there and those of the whole file; 0 where unknown."""


class NotFetchedError(Exception):
    """Why nothing came, as the end of a sentence."""


class FetchError(Exception):
    """Nothing came: `status` is that of the answer, or None where nobody answered to the end."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(f"HTTP status {status}" if status else "no answer")
        self.status = status


class _BusyError(FetchError):
    """It may be answered later."""


class WrongFileError(Exception):
    """What came is not the file that was expected; it was removed."""


def fetch(
    url: str,
    path: Path,
    report: Report,
    *,
    size: int = 0,
    sha256: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Fetch `url` to `path`, or the rest of it where its beginning is there.

    A connection that breaks is made again. What is fetched stays when this ends in any way but
    in WrongFileError, so that the next call goes on. `size` and `sha256` are those of the file;
    beyond its size at most one block of what comes is written.
    Source: RFC 9110, section 14 (range requests).
    """
    path.touch()
    if sha256 is not None and _is_expected(path, sha256):
        return
    with path.open("r+b", buffering=0) as file:
        file.seek(0, 2)
        if urlsplit(url).scheme == "file":
            _copy(Path(unquote(urlsplit(url).path)), file, report)
        elif not size or file.tell() < size:
            _fetch(url, file, size, report, headers or {})
    if size and path.stat().st_size != size:
        path.unlink()
        raise WrongFileError
    check(path, sha256)


def check(path: Path, sha256: str | None) -> None:
    """WrongFileError, and the file is gone, unless it has this digest."""
    if not _is_expected(path, sha256):
        path.unlink()
        raise WrongFileError


def _fetch(
    url: str,
    file: BinaryIO,
    size: int,
    report: Report,
    headers: Mapping[str, str],
) -> None:
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
            tries = TRIES if file.tell() > before else tries - 1
            if not tries:
                raise FetchError(status)
            time.sleep(PAUSE)


def _go_on(
    client: httpx2.Client,
    url: str,
    file: BinaryIO,
    size: int,
    report: Report,
    headers: Mapping[str, str],
) -> int:
    """Ask once for what is missing and write what comes; the size of the whole file."""
    start = file.tell()
    asked = {**headers, "Accept-Encoding": "identity"}
    if start:
        asked["Range"] = f"bytes={start}-"
    with client.stream("GET", url, headers=asked) as answer:
        if answer.status_code == 416:  # there is no more: it is another file than before
            file.seek(0)
            file.truncate()
            return size or 1
        if answer.status_code in (408, 429) or answer.status_code >= 500:
            raise _BusyError(answer.status_code)
        if answer.status_code not in (200, 206):
            raise FetchError(answer.status_code)
        length = int(answer.headers.get("Content-Length") or 0)
        if start and answer.status_code == 200:  # ranges are not served here
            file.seek(0)
            file.truncate()
            start = 0
        whole = size or (start + length if length else 0)
        report(start, whole)
        for block in answer.iter_raw():
            file.write(block)
            report(file.tell(), whole)
            if size and file.tell() > size:  # another file, which may have no end
                break
        return whole or file.tell()


def _copy(source: Path, file: BinaryIO, report: Report) -> None:
    """From a folder of packages on this machine."""
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
