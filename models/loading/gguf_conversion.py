"""A GGUF file as the folder of a published family, which the reference library opens too."""

import json
from pathlib import Path

from safetensors.torch import save_file

from models.families import FAMILIES
from models.loading.checkpoint import in_place_of, load_checkpoint
from models.loading.checkpoint_tokenizer import gguf_texts
from models.loading.export import HEADER_NOTES, holds_a_model_alone, published_tensors
from models.loading.folder_config import describe_gguf
from models.loading.gguf_header import gguf_file, read_gguf_header
from models.loading.safe_files import CONFIG, CheckpointError, title
from models.loading.weight_files import WEIGHTS


def convert_gguf(file: str | Path, folder: str | Path) -> str:
    """Write the model of a GGUF file as a published folder; returns its family.

    The folder gets config.json, model.safetensors in float32, tokenizer.json and
    tokenizer_config.json, all of them or none: it is written under another name and renamed.
    CheckpointError when the file cannot be opened, or when the folder holds anything but an
    earlier conversion. Takes twice the weights' size in float32 in memory and once
    on disk; time grows with it, 2 s for 135 million numbers.
    """
    file, folder = Path(file), Path(folder)
    if (source := gguf_file(file)) is None:
        raise CheckpointError(f"{title(file)} is no GGUF file.")
    if folder.exists() and not holds_a_model_alone(folder):
        raise CheckpointError(
            f"{title(folder)} holds other files, which a conversion would replace; name a new "
            "folder."
        )
    checkpoint = load_checkpoint(source)
    values, _ = describe_gguf(read_gguf_header(source))
    tensors = dict(published_tensors(FAMILIES[checkpoint.family], checkpoint.model))
    with in_place_of(folder) as new:
        (new / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        save_file(tensors, new / WEIGHTS, HEADER_NOTES)
        (new / WEIGHTS).chmod(0o644)
        for name, text in gguf_texts(source).items():
            (new / name).write_text(text + "\n", encoding="utf-8")
    return checkpoint.family
