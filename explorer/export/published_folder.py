"""Out again: a model trained here as the folder of a published family, or as one file of it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from explorer.catalog.opened_model import Opened
from explorer.inference.answers import class_names
from explorer.text import TrainedWith
from models.loading.export import export_checkpoint

MODEL = "model"
"""The folder in the download; the model's own name may be a stranger's."""


def to_folder(opened: Opened, folder: Path) -> str:
    """Write the folder and say which family it is of. CheckpointError when none has this shape."""
    own = opened.tokenizer
    text = own.to_json() if isinstance(own, TrainedWith) else None
    names = class_names(opened) if opened.config.head == "classifier" else None
    return export_checkpoint(folder, opened.model, text, classes=names)


def to_zip(opened: Opened) -> bytes:
    """The same folder as one file to download."""
    with TemporaryDirectory() as place:
        folder = Path(place) / MODEL
        to_folder(opened, folder)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{MODEL}/{path.name}")
        return packed.getvalue()
