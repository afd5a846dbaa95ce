"""Exports a model that was trained here as the folder of a published family, or as a zip file."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from explorer.catalog.opened_model import OpenModel
from explorer.catalog.tokenizers import TypedTokenIds
from explorer.inference.answers import class_names
from explorer.text import PublishedTokenizer, TextError, TrainedWith
from models import load_checkpoint
from models.loading.checkpoint_tokenizer import CHAT_TEMPLATE, tokenizer_text
from models.loading.export import export_adapter, export_checkpoint, export_form
from models.loading.safe_files import ADAPTER_CONFIG, CheckpointError

MODEL_FOLDER = "model"
"""The folder in the download; the model's own name may be a stranger's."""


def to_folder(opened: OpenModel, folder: Path) -> str:
    """Write the folder; returns its family. CheckpointError where no family has this shape.

    A published tokenizer goes along as the files, and the chat template, that it was read from.
    """
    own = opened.tokenizer

    def copy_tokenizer(new: Path) -> None:
        assert isinstance(own, PublishedTokenizer)
        try:
            own.copy_to(new)
        except TextError as error:
            raise CheckpointError(str(error)) from error
        if opened.folder.is_dir() and (text := tokenizer_text(opened.folder, CHAT_TEMPLATE)):
            (new / CHAT_TEMPLATE).write_text(text, encoding="utf-8")

    written: str | Callable[[Path], None] | None = None
    if isinstance(own, TrainedWith):
        written = own.to_json()
    elif isinstance(own, PublishedTokenizer):
        written = copy_tokenizer
    names = class_names(opened) if opened.config.head == "classifier" else None
    return export_checkpoint(folder, opened.model, written, classes=names)


def what_opens(opened: OpenModel) -> str:
    """What the reference library opens of the folder, as the end of a sentence."""
    words = "transformers can open its model and its tokenizer"
    if isinstance(opened.tokenizer, TypedTokenIds):
        words = "transformers can open its model; it has no tokenizer, since the model came without"
    changes = export_form(opened.model)[0].changes
    return words + (f"; it computes the same there with {', '.join(changes)}" if changes else "")


def adapter_to_folder(checkpoint: Path, folder: Path) -> str:
    """Write the LoRA adapter of a checkpoint in the format of the peft library; returns its family.

    CheckpointError where there is no adapter, or no family has this shape.
    """
    loaded = load_checkpoint(checkpoint, merging=False)
    return export_adapter(folder, loaded.model, str(loaded.run.get("parent") or ""))


def has_adapter(checkpoint: Path) -> bool:
    return (checkpoint / ADAPTER_CONFIG).is_file()


def to_zip(opened: OpenModel) -> bytes:
    return _zip(lambda folder: to_folder(opened, folder))


def adapter_to_zip(checkpoint: Path) -> bytes:
    return _zip(lambda folder: adapter_to_folder(checkpoint, folder))


def _zip(write: Callable[[Path], object]) -> bytes:
    with TemporaryDirectory() as place:
        folder = Path(place) / MODEL_FOLDER
        write(folder)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{MODEL_FOLDER}/{path.name}")
        return packed.getvalue()
