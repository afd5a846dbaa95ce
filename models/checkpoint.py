"""A checkpoint is a folder: config.json, model.safetensors, tokenizer.json, run.json.

One from which training can go on also has state.safetensors and state.json. Nothing in
it is pickled. A folder is written beside its place and then renamed: a reader finds the
old one, the new one or, for an instant between, none, but never half of one. It is not
trusted: its config is bounded and must be a model, the model is built without memory,
every name and shape is compared with the file, and only then are numbers read, as
copies, since a mapped file cut short later kills the process.
"""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from models.config import TransformerConfig
from models.positional import Positions
from models.training import TrainConfig, TrainState
from models.transformer import Transformer

CONFIG, WEIGHTS, TOKENIZER, RUN = "config.json", "model.safetensors", "tokenizer.json", "run.json"
STATE, STATE_WEIGHTS = "state.json", "state.safetensors"
KEPT_BY = {
    "adamw": {"step", "exp_avg", "exp_avg_sq"},
    "adam": {"step", "exp_avg", "exp_avg_sq"},
    "sgd": {"momentum_buffer"},
}
"""What each optimizer remembers of a parameter."""
LARGEST_JSON = {CONFIG: 1 << 20, RUN: 1 << 20, STATE: 1 << 20, TOKENIZER: 32 << 20}
"""Bytes of each text file that are read at most."""


class CheckpointError(ValueError):
    """Why a folder cannot be opened, in one sentence."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """An opened folder. `tokenizer` is its tokenizer.json's text, `unused` what was not read."""

    folder: Path
    model: Transformer
    config: TransformerConfig
    tokenizer: str | None = None
    run: dict[str, Any] = field(default_factory=dict)
    family: str = "ours"
    unused: tuple[str, ...] = ()


def save_checkpoint(
    folder: str | Path,
    model: Transformer,
    *,
    tokenizer: str | None = None,
    run: dict[str, Any] | None = None,
    state: TrainState | None = None,
) -> None:
    """Write the folder, in place of one that is there. `tokenizer` is a tokenizer.json's text."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        beside.chmod(0o755)
        (beside / CONFIG).write_text(model.config.to_json())
        (beside / RUN).write_text(json.dumps(run or {}, indent=2) + "\n")
        if tokenizer is not None:
            (beside / TOKENIZER).write_text(tokenizer, encoding="utf-8")
        save_file(
            {n: p.detach().contiguous() for n, p in model.named_parameters()}, beside / WEIGHTS
        )
        if state is not None:
            save_file(optimizer_tensors(model, state), beside / STATE_WEIGHTS)
            (beside / STATE).write_text(json.dumps({"step": state.step}) + "\n")
        replace_folder(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def replace_folder(new: Path, old: Path) -> None:
    """Rename `new` to `old`. A folder cannot take the name of a full one, so that steps aside."""
    aside = new.with_name(new.name + "-old")
    if old.exists():
        os.rename(old, aside)
    os.rename(new, old)
    shutil.rmtree(aside, ignore_errors=True)


def load_checkpoint(folder: str | Path) -> Checkpoint:
    """Open a folder; the model is in eval mode. CheckpointError says in one sentence why not.

    Time and memory grow with the file; nothing is allocated before names and shapes agree.
    """
    folder = Path(folder)
    config, run = peek(folder)
    with torch.device("meta"):
        model = Transformer(config)
    tokenizer = read_text(folder, TOKENIZER) if (folder / TOKENIZER).is_file() else None
    try:
        with safe_open(weights_file(folder), framework="pt") as file:
            unused = compare(model, file)
            # As `to_empty` does, whose way from meta tensors imports a computer algebra system.
            model._apply(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype))
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(file.get_tensor(name))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise CheckpointError(f"{WEIGHTS} in {folder.name} is damaged or cut short.") from error
    for module in model.modules():
        if isinstance(module, Positions):
            module.reset_buffers()
    return Checkpoint(folder, model.eval(), config, tokenizer, run, unused=unused)


def peek(folder: str | Path) -> tuple[TransformerConfig, dict[str, Any]]:
    """Config and run record of a folder, without reading a weight."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"There is no checkpoint folder {folder.name}.")
    try:
        config = TransformerConfig.from_json(read_text(folder, CONFIG))
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{CONFIG} in {folder.name} is no model: {error}") from error
    run = read_json(folder, RUN) if (folder / RUN).is_file() else {}
    return config, run


def load_state(folder: str | Path, model: Transformer, config: TrainConfig) -> TrainState:
    """The training state saved with these weights, for a model that was loaded from there."""
    folder = Path(folder)
    state = TrainState.fresh(model, config)
    step = read_json(folder, STATE).get("step")
    if type(step) is not int or step < 0:
        raise CheckpointError(f"{STATE} in {folder.name} names no step.")
    state.step = step
    try:
        with safe_open(folder / STATE_WEIGHTS, framework="pt") as file:
            kept: dict[str, dict[str, Tensor]] = {}
            for key in file.keys():  # noqa: SIM118  (the file is no dict)
                name, _, what = key.rpartition("/")
                kept.setdefault(name, {})[what] = file.get_tensor(key).clone()
            for name, parameter in model.named_parameters() if step else ():
                memory = kept.get(name, {})
                check_memory(folder, memory, parameter, config)
                state.optimizer.state[parameter] = memory
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{STATE_WEIGHTS} in {folder.name} is damaged.") from error
    return state


def check_memory(
    folder: Path, memory: dict[str, Tensor], parameter: Tensor, config: TrainConfig
) -> None:
    """CheckpointError unless this optimizer could have kept it for this parameter."""
    shapes = {"step": ()}
    fits = all(value.shape == shapes.get(key, parameter.shape) for key, value in memory.items())
    if memory.keys() != KEPT_BY[config.optimizer] or not fits:
        raise CheckpointError(f"{STATE_WEIGHTS} in {folder.name} is of another model or optimizer.")


def optimizer_tensors(model: Transformer, state: TrainState) -> dict[str, Tensor]:
    """The optimizer's memory by parameter name: `{parameter}/{exp_avg, exp_avg_sq, step, …}`."""
    return {
        f"{name}/{key}": value.detach().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in state.optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def compare(model: Transformer, file: Any) -> tuple[str, ...]:
    """Names in the file that the model does not use. CheckpointError when one is missing or off."""
    names = set(file.keys())
    for name, parameter in model.named_parameters():
        if name not in names:
            raise CheckpointError(f"{WEIGHTS} lacks {name}, which the config asks for.")
        theirs = tuple(file.get_slice(name).get_shape())
        if theirs != tuple(parameter.shape):
            raise CheckpointError(
                f"{name} has the shape {theirs} in {WEIGHTS}, but {tuple(parameter.shape)} "
                "by the config."
            )
        names.discard(name)
    return tuple(sorted(names))


def weights_file(folder: Path) -> Path:
    """The weights, or the reason why there are none that may be read."""
    if (folder / WEIGHTS).is_file():
        return folder / WEIGHTS
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt*")):
        raise CheckpointError(
            f"{folder.name} holds pickled weights, which can run code when they are opened; "
            f"save them as {WEIGHTS} instead."
        )
    raise CheckpointError(f"{folder.name} has no {WEIGHTS}.")


def read_json(folder: Path, name: str) -> dict[str, Any]:
    text = read_text(folder, name)
    try:
        values = json.loads(text)
    except RecursionError as error:
        raise CheckpointError(f"{name} in {folder.name} is nested too deep.") from error
    except ValueError as error:  # also an integer of thousands of digits
        raise CheckpointError(f"{name} in {folder.name} is not readable JSON.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{name} in {folder.name} must be a JSON object.")
    return values


def read_text(folder: Path, name: str) -> str:
    """A text file of the folder, no larger than its kind may be."""
    path = folder / name
    try:
        if path.stat().st_size > LARGEST_JSON[name]:
            raise CheckpointError(f"{name} in {folder.name} is too large to be one.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"{folder.name} has no readable {name}.") from error
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{name} in {folder.name} is not text.") from error
