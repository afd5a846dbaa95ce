"""A checkpoint is a folder: config.json, model.safetensors, tokenizer.json, run.json.

One from which training can resume also has state.safetensors and state.json. Nothing in it is
pickled. A folder is written under another name and then renamed: a reader finds the old one, the
new one or, for an instant, none, but never half of one. It is not trusted: its config is bounded
and must describe a model, the model is built without memory, every name and shape is compared
with the file, and only then are numbers read. They are never mapped, since a mapped file that is
cut short later kills the process.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models.config import TrainConfig, TransformerConfig
from models.families import FAMILIES
from models.loading.adapter_files import attach_adapter, save_adapter
from models.loading.checkpoint_tokenizer import CheckpointTokenizer, tokenizer_of_folder
from models.loading.folder_config import read_folder_config
from models.loading.inspection import check_inspection, inspect_folder, read_weights
from models.loading.safe_files import (
    ADAPTER_CONFIG,
    CONFIG,
    RUN,
    STATE,
    TOKENIZER,
    CheckpointError,
    is_there,
    read_json,
    title,
)
from models.loading.weight_files import STATE_WEIGHTS, WEIGHTS, open_file
from models.lora import lora_leaves, merge, merged
from models.model import Transformer
from models.positional import Positions
from models.training import TrainState

ASIDE = "-old"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """An opened folder. `unused` are names of tensors that were not read.

    `unfollowed` names settings of the config that the files contradict or that have no effect.
    """

    folder: Path
    model: Transformer
    config: TransformerConfig
    tokenizer: CheckpointTokenizer | None = None
    run: dict[str, Any] = field(default_factory=dict)
    family: str = "ours"
    unused: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()


def save_checkpoint(
    folder: str | Path,
    model: Transformer,
    *,
    tokenizer: CheckpointTokenizer | str | None = None,
    run: dict[str, Any] | None = None,
    state: TrainState | None = None,
    private: bool = False,
    linked: Sequence[Path] = (),
) -> None:
    """Write the folder, in place of one that is there.

    A tokenizer may be the text of its tokenizer.json. A private folder is readable by this
    account alone. Files `linked` take no more room on the same disk, and are never changed. If
    the frozen weights of a model with adapters are among them, the adapters are written to files
    of their own; otherwise they are merged.
    """
    with in_place_of(Path(folder), private) as new:
        (new / CONFIG).write_text(model.config.to_json())
        (new / RUN).write_text(json.dumps(run or {}, indent=2) + "\n")
        text = tokenizer.text if isinstance(tokenizer, CheckpointTokenizer) else tokenizer
        if text is not None:
            (new / TOKENIZER).write_text(text, encoding="utf-8")
        for path in linked:
            link_or_copy(path, new / path.name)
        if (new / WEIGHTS).exists():
            save_adapter(new, model)
        else:
            weights = (
                merged(model).named_parameters() if lora_leaves(model) else model.named_parameters()
            )
            save_file({n: p.detach().contiguous() for n, p in weights}, new / WEIGHTS)
        if state is not None:
            save_file(optimizer_tensors(model, state), new / STATE_WEIGHTS)
            (new / STATE).write_text(json.dumps({"step": state.step}) + "\n")


def link_or_copy(file: Path, to: Path) -> None:
    """The same file under another name; a copy where the disk or its format has no such links."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)


@contextmanager
def in_place_of(folder: Path, private: bool = False) -> Iterator[Path]:
    """A new folder to write into, which replaces this one when everything is written."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    finish_replacing(folder)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield new
        for path in new.iterdir() if private else ():
            path.chmod(0o600)
        new.chmod(0o700 if private else 0o755)
        replace_folder(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def replace_folder(new: Path, old: Path) -> None:
    """Rename `new` to `old`, which is renamed first if it exists: a full folder blocks its name."""
    aside = new.with_name(new.name + ASIDE)
    if old.exists():
        os.rename(old, aside)
    if new.exists() or not old.exists():  # otherwise a reader has renamed it meanwhile
        os.rename(new, old)
    shutil.rmtree(aside, ignore_errors=True)


def finish_replacing(folder: Path) -> None:
    """If a process was killed between two renames, give the whole copy that it left its name."""
    if os.path.exists(folder):  # `Path.exists` fails for a name that is too long
        return
    for aside in folder.parent.glob(f".{escape(folder.name)}-*{ASIDE}"):
        new = aside.with_name(aside.name.removesuffix(ASIDE))
        with suppress(OSError):  # another has done it meanwhile
            os.rename(new if new.exists() else aside, folder)
        return


def finish_all(parent: Path) -> None:
    """The same for every folder in this one, where no living process writes; remove the rests."""
    for aside in parent.glob(f".*-????????{ASIDE}"):
        finish_replacing(parent / aside.name[1 : -len(f"-????????{ASIDE}")])
    for rest in [*parent.glob(".*-????????"), *parent.glob(f".*-????????{ASIDE}")]:
        shutil.rmtree(rest, ignore_errors=True)


def load_checkpoint(folder: str | Path, *, merging: bool = True) -> Checkpoint:
    """Open a folder of ours or of a published family, or a GGUF file; the model is in eval mode.

    CheckpointError says in one sentence why not. Time and memory grow with the files;
    nothing is allocated before names and shapes agree. Weights are kept in 32 bits. A LoRA
    adapter in the folder is merged, or without `merging` attached, to be trained further. Of an
    adapter alone, the model is the folder of this machine that its config names; its own tokenizer
    counts where it has one.
    """
    finish_replacing(Path(folder))
    inspection = inspect_folder(folder)
    check_inspection(inspection)
    if inspection.copies:
        inspection = inspect_folder(folder, numbers=True)
        check_inspection(inspection)
    with torch.device("meta"):
        model = Transformer(inspection.config)
    tokenizer = tokenizer_of_folder(Path(folder))
    read_weights(inspection, model)
    for module in model.modules():
        if isinstance(module, Positions):
            module.reset_buffers()
    if is_there(Path(folder), ADAPTER_CONFIG):
        attach_adapter(Path(folder), model, FAMILIES.get(inspection.family))
        model = merge(model) if merging else model
    return Checkpoint(
        inspection.folder,
        model.eval(),
        inspection.config,
        tokenizer=tokenizer,
        run=inspection.run,
        family=inspection.family,
        unused=inspection.unused,
        unfollowed=inspection.unfollowed,
    )


def peek(folder: str | Path) -> tuple[TransformerConfig, dict[str, Any]]:
    """The config and run record of a folder; its weights are not read."""
    contents = read_folder_config(Path(folder))
    return contents.config, contents.run


def load_state(folder: str | Path, model: Transformer, config: TrainConfig) -> TrainState:
    """The training state saved with these weights, for a model that was loaded from there."""
    folder = Path(folder)
    state = TrainState.fresh(model, config)
    step = read_json(folder, STATE).get("step")
    if type(step) is not int or step < 0:
        raise CheckpointError(f"{STATE} in {title(folder)} names no step.")
    state.step = step
    memories: dict[str, dict[str, Tensor]] = {}
    memory = open_file(folder, STATE_WEIGHTS)
    with memory.open() as read_tensor:
        for key in memory.names:
            name, _, what = key.rpartition("/")
            memories.setdefault(name, {})[what] = read_tensor(key)
    names = {parameter: name for name, parameter in model.named_parameters()}
    for group in state.optimizer.param_groups if step else ():
        for parameter in group["params"]:
            memory_of = memories.get(names[parameter], {})
            check_memory(folder, memory_of, parameter, state_names(group))
            here = {key: value.to(parameter.device) for key, value in memory_of.items()}
            state.optimizer.state[parameter] = here
    return state


def state_names(group: dict[str, Any]) -> set[str]:
    """The names of an optimizer's state for each parameter of this group."""
    if "betas" in group:
        return {"step", "exp_avg", "exp_avg_sq"}
    return {"momentum_buffer"} if group["momentum"] or "ns_steps" in group else set()


def check_memory(
    folder: Path, memory: dict[str, Tensor], parameter: Tensor, expected: set[str]
) -> None:
    """CheckpointError unless it can be the state of this parameter in this optimizer."""
    shapes = {"step": ()}
    fits = all(value.shape == shapes.get(key, parameter.shape) for key, value in memory.items())
    if memory.keys() != expected or not fits:
        raise CheckpointError(
            f"{STATE_WEIGHTS} in {title(folder)} is of another model or optimizer."
        )


def optimizer_tensors(model: Transformer, state: TrainState) -> dict[str, Tensor]:
    """The optimizer's state by parameter name: `{parameter}/{exp_avg, exp_avg_sq, step, …}`."""
    return {
        f"{name}/{key}": value.detach().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in state.optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }
