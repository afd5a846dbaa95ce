"""Comparing the tensors of a folder with the model that its config describes.

A folder is opened in three steps, each of which may refuse it: the config is read, the
names and shapes of the tensors are compared with it, and only then are numbers read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from models.config import TransformerConfig
from models.families.family import Family
from models.families.layout import Same
from models.loading.folder_config import FolderConfig, read_folder_config
from models.loading.memory import available_memory
from models.loading.safe_files import CONFIG, CheckpointError, quoted, title
from models.loading.stored_weights import Weights
from models.loading.weight_files import Shapes, open_weights
from models.model import Transformer
from models.positional import PositionalEncoding

POSITION_TABLE = ".positions.table.weight"
"""How our name of a table of positions ends."""


@dataclass(frozen=True, eq=False)
class Inspection:
    """A folder compared with the model of its config, by names and shapes alone.

    `layouts` maps the names of the files to ours; `missing`, `unused` and `misshapen` are
    names as the files have them, `copies` those that repeat another. `unfollowed` are
    settings of the config that are not supported, or that the files contradict. `head` are the
    tensors that an adapter brings, which the files may lack or have in other shapes.
    """

    folder: Path
    family: str
    config: TransformerConfig
    run: dict[str, Any]
    weights: Weights
    layouts: Mapping[str, Same] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()
    head: Shapes = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Bytes of all tensors in the files."""
        return self.weights.bytes

    @property
    def tied(self) -> bool:
        """Whether the output matrix is the embedding's."""
        return self.config.head.endswith("language-model") and self.config.tie_embeddings


def inspect_folder(folder: str | Path, *, numbers: bool = False) -> Inspection:
    """Compare the names and shapes of a folder with its config; nothing is allocated.

    CheckpointError when the folder cannot be compared at all. Tables that the config calls
    copies of each other count as copies when their shapes agree; with `numbers` they are read
    and compared. Tables of positions that the config calls sinusoids are always read, since
    others must be kept. Cost grows with the number of tensors and with the size of
    those that are read.
    """
    contents = read_folder_config(Path(folder))
    weights = open_weights(contents.folder)
    check_depth(contents.config, weights)
    candidates, config = _candidates(contents, weights, numbers)
    with torch.device("meta"):
        model = Transformer(config)
    parameters = dict(model.named_parameters())
    layouts: dict[str, Same] = {}
    filled: set[str] = set()
    copies = []
    for name, layout in candidates:
        if name not in weights.tensors or not parameters.keys() >= set(layout.ours):
            continue
        if contents.head.get(name, weights.shape(name)) != weights.shape(name):
            continue
        if filled >= set(layout.ours):
            copies.append(name)
        else:
            layouts[name] = layout
            filled |= set(layout.ours)
    named = {ours: name for name, layout in reversed(candidates) for ours in layout.ours}
    lacking = dict.fromkeys(named.get(n, n) for n in parameters if n not in filled)
    return Inspection(
        folder=contents.folder,
        family=contents.model_type,
        config=config,
        run=contents.run,
        weights=weights,
        layouts=layouts,
        missing=tuple(name for name in lacking if name not in contents.head),
        unused=tuple(n for n in weights.names if n not in layouts and n not in copies),
        misshapen=tuple(
            n for n, layout in layouts.items() if not fits(n, layout, weights, parameters)
        ),
        copies=tuple(copies),
        unfollowed=(*contents.unfollowed, *_contradicted(contents.config, config)),
        head=contents.head,
    )


def _contradicted(config: TransformerConfig, filed: TransformerConfig) -> tuple[str, ...]:
    """Settings of the config that the files contradict: whether there is one table, or two."""
    return () if config.tie_embeddings == filed.tie_embeddings else ("tie_word_embeddings",)


def _candidates(
    contents: FolderConfig, weights: Weights, numbers: bool
) -> tuple[list[tuple[str, Same]], TransformerConfig]:
    """Names that the files may have, each with its layout, and the config that fits them."""
    family, config = contents.family, contents.config
    if family is None:
        with torch.device("meta"):
            ours = [name for name, _ in Transformer(config).named_parameters()]
        return [(name, Same((name,))) for name in ours], config
    actual: dict[str, str] = {}
    for name in weights.names:
        actual.setdefault(family.plain(name), name)
    config = _as_filed(family, config, actual, weights, numbers)
    layouts = [(actual.get(name, name), layout) for name, layout in family.layouts(config)]
    if config.tie_embeddings and family.output in actual:
        layouts.append((actual[family.output], Same((_embedding(config),))))
    return layouts, config


def _as_filed(
    family: Family,
    config: TransformerConfig,
    actual: Mapping[str, str],
    weights: Weights,
    numbers: bool,
) -> TransformerConfig:
    """The config as the files decide it: which biases there are, which tables are tied.

    Two tables are tied when their numbers are equal, or when a language model has only one; the
    file of a body, or of a model with another head, does not decide it. Positions become a
    learned table when the files hold one that is not the sinusoids of the config.
    """
    for name, switch in family.optional.items():
        if name not in actual:
            config = config.replace(**{switch: False})
    if config.positions == "sinusoidal":
        places = (
            n for n, layout in family.layouts(config) if layout.ours[0].endswith(POSITION_TABLE)
        )
        if not all(_sinusoidal(config, weights, actual[n]) for n in places if n in actual):
            config = config.replace(positions="learned", pairs=None)
    if config.share_embeddings and family.apart and actual.keys() >= set(family.apart):
        first, second = (actual[name] for name in family.apart)
        config = config.replace(share_embeddings=_same(weights, first, second, numbers))
    elif config.share_embeddings and config.head == "none":
        config = config.replace(tie_embeddings=True)
    if config.head.endswith("language-model"):
        output = actual.get(family.output)
        if output is None:
            is_writer = all(name.startswith(family.prefix) for name in weights.names)
            tied = config.tie_embeddings or is_writer
            return config.replace(tie_embeddings=tied)
        if config.tie_embeddings:
            tables = [
                n for n, layout in family.layouts(config) if layout.ours == (_embedding(config),)
            ]
            table = next((actual[name] for name in tables if name in actual), None)
            same = table is None or _same(weights, table, output, numbers)
            return config.replace(tie_embeddings=same)
    return config


def _sinusoidal(config: TransformerConfig, weights: Weights, name: str) -> bool:
    """Whether a tensor of the files is the table of sinusoids, rounded to its type."""
    if weights.shape(name) != (config.max_len, config.d_model):
        return False
    table = PositionalEncoding(config.d_model, config.max_len, config.pairs or "adjacent").pe[0]
    with weights.open() as read_tensor:
        stored = read_tensor(name)
        return torch.allclose(stored.float(), table, 0, 2 * torch.finfo(stored.dtype).eps)


def _same(weights: Weights, first: str, second: str, numbers: bool) -> bool:
    """Whether two tensors of the files are equal, in their shapes or in their numbers too."""
    if weights.shape(first) != weights.shape(second):
        return False
    if not numbers:
        return True
    with weights.open() as read_tensor:
        return torch.equal(read_tensor(first), read_tensor(second))


def _embedding(config: TransformerConfig) -> str:
    """The name of the embedding that is tied to the output matrix."""
    stack = "encoder" if config.share_embeddings else config.stacks[-1]
    return f"{stack}.embedding.weight"


def fits(name: str, layout: Same, weights: Weights, parameters: Mapping[str, Tensor]) -> bool:
    """Whether a tensor of the files, split by its layout, has the shapes of ours."""
    ours = [parameters[our] for our in layout.ours]
    try:
        parts = layout.split(torch.empty(weights.shape(name), device="meta"), ours)
    except RuntimeError:
        return False
    return [part.shape for part in parts] == [tensor.shape for tensor in ours]


def check_inspection(inspection: Inspection) -> None:
    """CheckpointError unless the files hold all of the model and it fits into memory."""
    folder, weights = inspection.folder, inspection.weights
    if inspection.head and inspection.missing:
        raise CheckpointError(
            f"The adapter makes {title(folder)} a classifier, but neither of them holds "
            f"{quoted(inspection.missing[0])}, which would be random; save it with the adapter, by "
            "modules_to_save."
        )
    if missing := inspection.missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise CheckpointError(
            f"{title(folder)} lacks {quoted(missing[0])}{more}, which its config asks for."
        )
    if inspection.misshapen:
        name = inspection.misshapen[0]
        raise CheckpointError(
            f"{quoted(name)} in {title(folder)} has the shape {weights.shape(name)}, which is not "
            "what the config says."
        )
    needed = 0
    for name in inspection.layouts:
        weights.check_type(name)
        needed += 4 * torch.Size(weights.shape(name)).numel()
    if needed > available_memory():
        raise CheckpointError(
            f"{title(folder)} needs {needed / 1e9:,.0f} GB of memory, more than the "
            f"{available_memory() / 1e9:,.0f} GB there are."
        )


def check_depth(config: TransformerConfig, weights: Weights) -> None:
    """CheckpointError when there are fewer tensors than layers need, before those are built."""
    layers = config.n_layers + config.encoder_layers * (len(config.stacks) - 1)
    if 2 * layers > len(weights.names):
        raise CheckpointError(
            f"{CONFIG} in {title(weights.folder)} asks for {layers:,} layers, but there are only "
            f"{len(weights.names):,} tensors."
        )


def read_weights(inspection: Inspection, model: Transformer) -> None:
    """Copy the numbers of the files into a model that was built without any.

    A matrix keeps its order in memory from the file, unless its rows are the longer side: a
    product with a single token is faster where the longer side is contiguous.
    """
    # As `to_empty` does, whose way from meta tensors imports a computer algebra system.
    model._apply(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu"))
    ours = dict(model.named_parameters())
    with torch.no_grad():
        for name, theirs in _numbers(inspection):
            layout = inspection.layouts[name]
            targets = [ours[our] for our in layout.ours]
            for target, part in zip(targets, layout.split(theirs, targets), strict=True):
                target.data = _own(part, target.dtype)


def _own(part: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers in memory of their own, copied unless they are a whole tensor."""
    if (
        part.is_contiguous()
        and part.dtype == dtype
        and part.nbytes == part.untyped_storage().nbytes()
    ):
        return part
    is_wide = part.dim() == 2 and part.shape[1] > part.shape[0]
    order = torch.contiguous_format if is_wide else torch.preserve_format
    return part.to(dtype, copy=True, memory_format=order)


def _numbers(inspection: Inspection) -> Iterator[tuple[str, Tensor]]:
    with inspection.weights.open() as read_tensor:
        for name in inspection.layouts:
            yield name, read_tensor(name)
