"""Uploaded models: each lies in a folder named by a digest of its contents and its reader.

The server keeps only the files that open a model, under the name of their folder, and only if they
do open one. An upload belongs to the reader who uploaded it: another who has the same files cannot
compute its key. The server deletes it some days after its last use. Each reader has a share of the
disk. Where all uploads together are too large, the reader with the most bytes, of the network with
the most, loses the upload that was used longest ago. A model that is open then stays in memory, and
the page says that its folder is gone when it next needs it.
"""

import hashlib
import math
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from explorer.catalog import ModelError
from explorer.catalog.folders import UPLOAD, files_that_open, is_checkpoint, model_name, shards_in
from explorer.system import limits
from explorer.system.atomic_files import Lock, fits
from explorer.system.data_folders import systems_root, uploads_root
from explorer.system.running_time import RunningTime
from models.loading.gguf_header import GGUF
from models.loading.memory import available_memory
from models.loading.safe_files import ADAPTER_CONFIG, CONFIG, INDEX, LARGEST_FILE, quoted
from models.loading.weight_files import ENDING, FOREIGN, PICKLED, adapter_fault

RECEIVING = ".receiving-"
LONGEST_RECEIVING = 3600
"""Seconds after which no process can still be copying."""
LARGEST_UPLOAD = 2 * limits.GB
"""The bytes of one upload at most, on a machine that has the memory."""
COPIES = 4
"""The files are in memory once, the opened weights in 32 bits too, and some memory must be left."""
DAY = 24 * 3600
OWNER_MARK = ".owner"
"""The file that names the owner of an upload; no model's folder begins with a dot."""
LEAST = 4 * limits.MB
"""The limits count at least so much for an upload: each folder is scanned, so they must be few."""
USED_EVERY = 60
"""Seconds between two notes that an upload is in use."""
MOST_UPLOADED_FILES = 40
LONGEST_NAME, LONGEST_TITLE = 120, 60


class Uploader(NamedTuple):
    """The owner of an upload and the network they came from, both as digests."""

    network: str
    owner: str


NOBODY = Uploader("", "")


class KeptUpload(NamedTuple):
    """The folder of an uploaded model, and the paths of the uploaded files that were not kept."""

    folder: Path
    skipped: tuple[str, ...] = ()


def largest_upload(is_local: bool) -> int:
    """The most bytes of one upload; a reader at this machine may have a share of its free memory.

    From elsewhere, many readers may upload at once.
    """
    usual = limits.UPLOAD_BYTES.most
    room = available_memory() // COPIES // limits.MB * limits.MB if is_local else 0
    return max(usual, min(room, LARGEST_UPLOAD))


def keep_upload(
    files: Mapping[str, BinaryIO],
    sizes: Mapping[str, int],
    root: Path,
    whose: Uploader,
    fault_of: Callable[[Path], str | None],
    largest: int | None = None,
) -> KeptUpload:
    """Keep the files of one model for the reader who uploaded them, in a folder of the same name.

    That folder lies in one named by the digest. ModelError when the files hold no model or
    more than one, when they are too many or larger than `largest` bytes, or when `fault_of` says
    why their folder cannot be opened; then nothing of them is left.
    """
    if not files:
        raise ModelError("There is no file in this upload: choose a model's folder or a GGUF file.")
    paths = {name: _path(name) for name in files}
    visible = [path for path in paths.values() if not _is_hidden(path)]
    home = _home(visible)
    index = next((files[name] for name, path in paths.items() if path == home / INDEX), None)
    needed = _files_to_keep(visible, home, _shards(index) if index else set())
    names = sorted(name for name, path in paths.items() if path in needed)
    if len(names) > MOST_UPLOADED_FILES:
        raise ModelError(f"A model has at most {MOST_UPLOADED_FILES} files, not {len(names):,}.")
    size = sum(sizes[name] for name in names)
    bounds = (limits.UPLOAD_BYTES, limits.UPLOADS_KEPT_OF_READER, limits.UPLOADS_KEPT)
    most = min(largest or bounds[0].most, *(limit.most for limit in bounds[1:]))
    if size > most:
        raise ModelError(limits.UPLOAD_BYTES.refusal(size, most))
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o700)
    if not fits(root, size):
        raise ModelError(limits.DISK_LEFT.refusal(size))
    sweep(root)
    receiving = Path(tempfile.mkdtemp(prefix=RECEIVING, dir=root))
    try:
        title = _title(home, [paths[name].name for name in names])
        digest = hashlib.sha256(f"{whose.owner} {title}".encode())
        (receiving / title).mkdir(0o700)
        for name in names:
            digest.update(_copy(files[name], receiving / title / paths[name].name))
        if fault := fault_of(receiving / title):
            raise ModelError(fault)
        folder = root / f"{UPLOAD}{digest.hexdigest()[:24]}"
        with _one_at_a_time(root):
            if not folder.is_dir():
                (receiving / OWNER_MARK).touch(0o600)
                (receiving / OWNER_MARK).write_text(" ".join(whose))
                receiving.rename(folder)
            os.utime(folder)
            _make_room(root, folder, whose.owner)
        others = {paths[name] for name in files} - needed
        within = [path.relative_to(home) if path.is_relative_to(home) else path for path in others]
        within.sort(key=lambda path: (len(path.parts), path))  # the outermost first
        return KeptUpload(folder / title, tuple(map(str, within)))
    finally:
        shutil.rmtree(receiving, ignore_errors=True)


def skipped_files(skipped: Sequence[str]) -> str:
    """Which files of an upload were not kept, in one line."""
    if not skipped:
        return ""
    files = "1 file" if len(skipped) == 1 else f"{len(skipped):,} files"
    named = [quoted(name) for name in skipped[:2]]
    if (more := len(skipped) - len(named)) > 0:
        named = [", ".join(named), "1 other" if more == 1 else f"{more:,} others"]
    return f"Skipped {files} that a model does not need: {' and '.join(named)}."


def _path(name: str) -> PurePosixPath:
    """An uploaded name, with the folders that a browser puts before it."""
    parts = re.split(r"[/\\]", name)
    if any(part in ("", ".", "..") for part in parts):
        raise ModelError("This upload holds a file without a valid name: rename it.")
    return PurePosixPath(*parts)


def _is_hidden(path: PurePosixPath) -> bool:
    """Whether it or a folder around it begins with a dot; the chosen folder itself may."""
    return any(part.startswith(".") for part in path.parts[1:] or path.parts)


def _home(visible: Sequence[PurePosixPath]) -> PurePosixPath:
    """The folder of the model: the outermost one with a config and, if any has them, weights."""
    homes = {path.parent for path in visible if path.name == CONFIG}
    homes = homes or {path.parent for path in visible if path.name.endswith(GGUF)}
    if not homes:
        if any(path.name == ADAPTER_CONFIG for path in visible):
            raise ModelError(adapter_fault("This upload"))
        raise ModelError(
            f"There is no {CONFIG} and no GGUF file in this upload: choose the folder of a model."
        )
    endings = (ENDING, GGUF, *PICKLED, *FOREIGN)
    homes = homes & {path.parent for path in visible if path.name.endswith(endings)} or homes
    outermost = min(len(home.parts) for home in homes)
    first, *more = (home for home in homes if len(home.parts) == outermost)
    if more:
        raise ModelError(f"This upload holds {CONFIG} twice: choose the folder of one model.")
    return first


def _shards(index: BinaryIO) -> set[str]:
    """The files that an index names; none where it is damaged: opening the model reports that."""
    try:
        return shards_in(index.read(LARGEST_FILE[INDEX]).decode("utf-8"))
    except UnicodeDecodeError:
        return set()
    finally:
        index.seek(0)


def _files_to_keep(
    visible: Sequence[PurePosixPath], home: PurePosixPath, shards: Set[str]
) -> set[PurePosixPath]:
    """The files of the folder that open its model. ModelError where none holds its weights.

    `shards` are the files that its index names.
    """
    names = {path.name for path in visible if path.parent == home}
    elsewhere = {path.name for path in visible if path.is_relative_to(home)} - names
    needed = files_that_open(names, shards, quoted(_title(home)), elsewhere)
    if any(not name.isprintable() or len(name) > LONGEST_NAME for name in needed):
        raise ModelError("This upload holds a file without a valid name: rename it.")
    return {home / name for name in needed}


def _title(home: PurePosixPath, names: Sequence[str] = ()) -> str:
    """The name of the folder, or of the model in the hub's cache, as a valid folder name.

    A GGUF file that came without a folder keeps its own name.
    """
    alone = next((name for name in names if name.endswith(GGUF)), "") if not home.name else ""
    called = model_name(Path(alone) if alone else Path(home)).rpartition("/")[2]
    plain = "".join(letter if letter.isprintable() else "_" for letter in called)
    return plain[:LONGEST_TITLE].strip(" .") or "model"


def _copy(source: BinaryIO, path: Path) -> bytes:
    """Copy a file; returns the digest of its name and contents."""
    digest = hashlib.sha256(path.name.encode())
    if path.exists():
        raise ModelError(
            f"This upload holds {path.name[:60]} twice: choose the folder of one model."
        )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
    return digest.digest()


def sweep(root: Path) -> None:
    """Remove the uploads whose days are over, and the rests of those whose process was killed."""
    if any(_outdated(root)):
        with _one_at_a_time(root):
            for folder in _outdated(root):
                shutil.rmtree(folder, ignore_errors=True)


def _outdated(root: Path) -> Iterator[Path]:
    longest = {RECEIVING: LONGEST_RECEIVING, UPLOAD: limits.UPLOADS_DAYS.most * DAY}
    ran = RunningTime(root)
    for begins, seconds in longest.items():
        for folder in root.glob(f"{begins}*"):
            with suppress(OSError):
                if ran.age(folder) > seconds:
                    yield folder


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """A lock: meanwhile no other process keeps or removes an upload."""
    with Lock(root / ".lock") as lock:
        lock.acquire(patience=math.inf)
        yield


class StoredUpload(NamedTuple):
    """An upload on disk; one without an owner's file is nobody's."""

    folder: Path
    whose: Uploader
    bytes: int
    used: int

    @property
    def counts(self) -> int:
        """The bytes that the limits count for it."""
        return max(self.bytes, LEAST)


def _make_room(root: Path, newest: Path, owner: str) -> None:
    """Remove the oldest uploads of those who have too many until all fit; the newest stays."""
    uploads = list_uploads(root)
    of_owner, of_network = Counter[str](), Counter[str]()
    for upload in uploads:
        of_owner[upload.whose.owner] += upload.counts
        of_network[upload.whose.network] += upload.counts

    def remove(upload: StoredUpload) -> None:
        uploads.remove(upload)
        of_owner[upload.whose.owner] -= upload.counts
        of_network[upload.whose.network] -= upload.counts
        shutil.rmtree(upload.folder, ignore_errors=True)

    def share(upload: StoredUpload) -> tuple[int, int]:
        return of_network[upload.whose.network], of_owner[upload.whose.owner]

    for upload in list(uploads):
        is_older = upload.whose.owner == owner and upload.folder != newest
        if is_older and not limits.UPLOADS_KEPT_OF_READER.allows(of_owner[owner]):
            remove(upload)
    while not limits.UPLOADS_KEPT.allows(of_network.total()):
        older = [upload for upload in uploads if upload.folder != newest]
        if not older:
            break
        remove(max(older, key=share))


def list_uploads(root: Path) -> list[StoredUpload]:
    """The uploads of all readers; the one that was used longest ago comes first."""
    return sorted(map(_stored_upload, root.glob(f"{UPLOAD}*")), key=lambda upload: upload.used)


def delete(root: Path, name: str) -> None:
    if re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}", name) and (root / name).is_dir():
        with _one_at_a_time(root):
            shutil.rmtree(root / name, ignore_errors=True)


def _stored_upload(folder: Path) -> StoredUpload:
    whose, size, used = NOBODY, 0, 0
    with suppress(OSError, TypeError):  # TypeError: not two words
        whose = Uploader(*(folder / OWNER_MARK).read_text("utf-8").split(" "))
    with suppress(OSError):  # another removes it meanwhile
        for path in folder.rglob("*"):
            size += path.stat().st_size if path.is_file() else 0
    with suppress(OSError):
        used = folder.stat().st_mtime_ns
    return StoredUpload(folder, whose, size, used)


def find_upload(name: str, *roots: Path) -> Path | None:
    """The folder of an upload, or of one of the museum's systems, by its name in an address.

    This notes its use: the upload that was used longest ago is removed first.
    """
    roots, folders = roots or (uploads_root(), systems_root()), list[Path]()
    own, _, digest = name.rpartition(f"-{UPLOAD}")
    if re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}|[a-z-]{{1,40}}", name):
        folders = [root / name for root in roots if is_checkpoint(root / name)]
    elif re.fullmatch(r"[0-9a-f]{24}", digest) and not own.startswith("."):
        inside = (folder for root in roots for folder in root.glob(f"{UPLOAD}{digest}/*"))
        folders = [folder for folder in inside if folder.name == own]
    folder = next(iter(folders), None)
    if folder is not None:
        used = folder if folder.name.startswith(UPLOAD) else folder.parent
        with suppress(OSError):
            if used.name.startswith(UPLOAD) and time.time() - used.stat().st_mtime > USED_EVERY:
                os.utime(used)
    return folder
