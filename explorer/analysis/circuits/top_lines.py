"""The top-activating lines of a text for every head: one pass of a batch measures all heads.

Two numbers of a head at a token: the norm of what it writes there (W_O times its output), and its
largest weight on another token than the first. A line has the largest of each over its tokens.
The first token and special tokens do not count, as queries or as keys: attention that finds
nothing else rests there.

Kept on disk are numbers under a digest of the model's weights and of the token IDs: no text, and
no way to it but to have the text. Files are written whole and the oldest leave where all are too
large together.
Shapes: n lines, b lines of a batch, L layers, h heads, t tokens.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from explorer.analysis.circuits.finding import weights_digest
from explorer.analysis.head_circuits import blocks_of, output_columns
from explorer.catalog.opened_model import OpenModel
from explorer.inference.model_inputs import ids_of, segments_of
from explorer.inference.results_cache import kept
from explorer.inference.trained_tokenizers import README, TRANSLATION, shipped_text
from explorer.system.atomic_files import fits, write_bytes
from explorer.system.cooperative import interruptible
from explorer.system.data_folders import activations_root
from explorer.system.limits import ACTIVATIONS_KEPT, LINE_CHARACTERS
from explorer.text import TextError, Token
from models import Transformer
from models.trace import RecordingTap
from models.transformer import evaluating

Rows = Sequence[tuple[Token, ...]]
TOKENS_AT_ONCE, WEIGHTS_AT_ONCE = 1_024, 1 << 22
"""Tokens of a batch, padding included, and attention weights of one of its layers."""


@dataclass(frozen=True, eq=False)
class LineActivations:
    """Of every line and head the largest of both numbers, and at which token, (n, L, h) each."""

    norm: Tensor
    norm_at: Tensor
    weight: Tensor
    weight_at: Tensor

    @property
    def measured(self) -> Tensor:
        """Which lines are measured, (n,)."""
        return ~self.norm[:, 0, 0].isnan()

    @property
    def tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))

    @classmethod
    def empty(cls, lines: int, layers: int, heads: int) -> "LineActivations":
        """NaN where nothing was measured yet."""
        shape = lines, layers, heads
        numbers = (torch.full(shape, torch.nan) for _ in range(2))
        places = (torch.zeros(shape, dtype=torch.int16) for _ in range(2))
        norm, weight = numbers
        norm_at, weight_at = places
        return cls(norm, norm_at, weight, weight_at)

    def put(self, lines: Sequence[int], found: "TokenActivations") -> None:
        """The largest over the tokens of these lines."""
        here = torch.tensor(lines)
        for name, values in (("norm", found.norm), ("weight", found.weight)):
            largest = values.max(-1)
            getattr(self, name)[here] = largest.values.nan_to_num(nan=0.0).clamp(min=0).float()
            getattr(self, f"{name}_at")[here] = largest.indices.to(torch.int16)


@dataclass(frozen=True, eq=False)
class TokenActivations:
    """Both numbers of every head at every token, (b, L, h, t); −1 where a token does not count."""

    norm: Tensor
    weight: Tensor


def batches(rows: Rows, heads: int, *, equal_lengths: bool) -> Iterator[list[int]]:
    """The places of the lines that are passed together, those of about equal length."""
    batch: list[int] = []
    for at in sorted(range(len(rows)), key=lambda at: len(rows[at])):
        length, count = len(rows[at]), len(batch) + 1
        is_full = (
            count * length > TOKENS_AT_ONCE or count * heads * length * length > WEIGHTS_AT_ONCE
        )
        if batch and (is_full or (equal_lengths and len(rows[batch[0]]) != length)):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def activations_by_batch(
    opened: OpenModel, rows: Rows, known: frozenset[int] | set[int] = frozenset()
) -> Iterator[tuple[list[int], TokenActivations]]:
    """The lines of one batch after another, without those that are known.

    Costs a pass over all tokens. Padding behind a line changes nothing: it is masked, or later
    than every token of a decoder.
    """
    config = opened.config
    equal = config.pad_id is None and config.kind == "encoder"
    for some in batches(rows, config.n_heads, equal_lengths=equal):
        if not known.issuperset(some):
            yield some, token_activations(opened, [rows[at] for at in some])


def token_activations(opened: OpenModel, rows: Rows) -> "TokenActivations":
    """Both numbers at every token of some lines; shorter ones end in tokens that do not count."""
    longest = max(map(len, rows))
    filler = Token(opened.config.pad_id or 0, "", special=True)
    padded = [(*row, *[filler] * (longest - len(row))) for row in rows]
    counts = torch.tensor([[not token.special for token in row] for row in padded])
    counts[:, 0] = False
    tap = _ActivationTap(opened.model, counts)
    with evaluating(opened.model):
        opened.model(
            ids_of(padded), segments=segments_of(opened, padded), read_at=slice(0), tap=tap
        )
    norm, weight = (torch.stack(tap.found[name], 1) for name in ("head_out", "weights"))
    aside = ~counts[:, None, None]
    return TokenActivations(norm.masked_fill(aside, -1.0), weight.masked_fill(aside, -1.0))


class _ActivationTap(RecordingTap):
    """Keeps the two numbers of each head, layer by layer, and nothing as large as what is shown."""

    def __init__(self, model: Transformer, counts: Tensor) -> None:
        super().__init__(("*.self_attn.head_out", "*.self_attn.weights"))
        self.found: dict[str, list[Tensor]] = {"head_out": [], "weights": []}
        self._model, self._counts = model, counts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self.wants(name):
            made = self._norm(value) if name == "head_out" else self._away(value)
            self.found[name].append(made)
        return value

    def _away(self, weights: Tensor) -> Tensor:
        """The largest weight of each row on a token that counts, (b, h, t)."""
        return (weights * self._counts[:, None, None]).amax(-1)

    def _norm(self, head_out: Tensor) -> Tensor:
        """‖W_O head_out‖, (b, h, t), by the w × w matrix W_Oᵀ W_O of each head."""
        attention = blocks_of(self._model)[int(self._prefix.split(".")[1])].self_attn
        columns = [output_columns(attention, head) for head in range(head_out.shape[1])]
        grams = torch.stack([each.mT @ each for each in columns])
        squares = ((head_out @ grams) * head_out).sum(-1)
        return squares.clamp(min=0).sqrt()


OF_TASK = "Examples of its task"
MOST_LINES = 300
"""Lines of each."""


def built_in_texts(opened: OpenModel) -> tuple[str, ...]:
    """The names of the texts for this model, that of its own task first."""
    return (*([OF_TASK] if _has_examples(opened) else []), TRANSLATION, README)


def built_in_lines(opened: OpenModel, name: str) -> tuple[str, ...]:
    """The first 300 different lines of one of them, without tables, code and too long ones."""
    text = _examples(opened) if name == OF_TASK else shipped_text(name)
    rows = (row.strip() for row in text.splitlines())
    prose = (row for row in rows if row[:1].isalpha() and LINE_CHARACTERS.allows(len(row)))
    return tuple(dict.fromkeys(prose))[:MOST_LINES]


def _has_examples(opened: OpenModel) -> bool:
    return opened.task is not None and len(opened.config.stacks) == 1


def _examples(opened: OpenModel) -> str:
    """What the task trains on, in batches from its own seed."""
    task = opened.task
    assert task is not None
    batches = (task.batch(step, task.training).inputs[0] for step in range(1, 6))
    rows = (row for batch in batches for row in batch.tolist())
    return "\n".join(task.tokenizer.decode(row) for row in rows)


ENDING = ".safetensors"
VERSION = 1
"""Of what is measured: another one makes everything anew."""


@dataclass(frozen=True, eq=False)
class TokenizedLines:
    """The lines of a text as a model reads them; `cut` is how many are longer than it reads."""

    lines: tuple[str, ...]
    rows: tuple[tuple[Token, ...], ...]
    cut: int


@dataclass(frozen=True)
class TopLine:
    """A line by its place in the text, its number, and the token where it is largest."""

    line: int
    value: float
    token: int


def tokenized(opened: OpenModel, lines: tuple[str, ...]) -> TokenizedLines:
    """The tokens of every line, made once; of one that is longer than the model reads, the first.

    TextError where the tokenizer fails.
    """
    return kept(opened, ("tokenized lines", lines), lambda: _tokenized(opened, lines))


def _tokenized(opened: OpenModel, lines: tuple[str, ...]) -> TokenizedLines:
    most, known = opened.config.max_len, opened.config.vocab_size
    rows = {line: opened.tokenizer.encode(line) for line in interruptible(lines)}
    rows = {line: row for line, row in rows.items() if row}
    if not rows:
        raise TextError("This model's tokenizer makes no token of these lines: try other ones.")
    if any(token.id >= known for row in rows.values() for token in row):
        raise TextError(
            f"These lines have tokens beyond the {known:,} that this model knows: its tokenizer "
            "belongs to another model."
        )
    cut = sum(len(row) > most for row in rows.values())
    return TokenizedLines(tuple(rows), tuple(row[:most] for row in rows.values()), cut)


def digest_of(opened: OpenModel, read: TokenizedLines) -> str:
    """The name of what is kept of these lines."""
    digest = hashlib.sha256(f"{VERSION} {opened.config} {weights_digest(opened)}".encode())
    for row in read.rows:
        # Whether a token is special decides whether it counts.
        digest.update(repr([(token.id, token.special) for token in row]).encode())
    return digest.hexdigest()


def best_lines(found: LineActivations, by: str, layer: int, head: int, count: int) -> list[TopLine]:
    """The lines with the largest of a number, `norm` or `weight`, of one head; measured ones."""
    values = getattr(found, by)[:, layer, head]
    order = values.nan_to_num(nan=-1.0).argsort(descending=True, stable=True)[:count].tolist()
    places = getattr(found, f"{by}_at")[:, layer, head]
    return [
        TopLine(line, float(values[line]), int(places[line]))
        for line in order
        if float(values[line]) > 0
    ]


def read_kept(digest: str, shape: tuple[int, int, int]) -> LineActivations | None:
    """What was kept under this digest, if it is there and of this shape."""
    path = activations_root() / f"{digest}{ENDING}"
    try:
        tensors = load(path.read_bytes())
        os.utime(path)
    except (OSError, SafetensorError):
        return None
    empty = LineActivations.empty(*shape).tensors
    fits_in = tensors.keys() == empty.keys() and all(
        tensors[name].shape == each.shape and tensors[name].dtype == each.dtype
        for name, each in empty.items()
    )
    return LineActivations(**tensors) if fits_in else None


def keep(digest: str, found: LineActivations) -> None:
    """Write it whole, where there is room; what is as old as to be too much leaves."""
    root, content = activations_root(), save(found.tensors)
    if len(content) > ACTIVATIONS_KEPT.most // 4:
        return
    with suppress(OSError):  # it is measured anew next time
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)
        if fits(root, len(content)):
            write_bytes(root / f"{digest}{ENDING}", content)
    sweep(root)


def sweep(root: Path) -> None:
    """Remove what was used longest ago until all fit, and what a process that ended left behind."""
    with suppress(OSError):
        files = sorted(
            ((each.stat(), each) for each in root.iterdir()), key=lambda one: -one[0].st_mtime
        )
        total = 0
        for stat, path in files:
            total += stat.st_size
            if total > ACTIVATIONS_KEPT.most:
                path.unlink(missing_ok=True)


def lines_so_far(opened: OpenModel, read: TokenizedLines) -> LineActivations:
    """What is measured of these lines; the same object for everybody who asks meanwhile."""
    layers, heads = len(blocks_of(opened.model)), opened.config.n_heads
    shape, digest = (len(read.rows), layers, heads), digest_of(opened, read)

    def begin() -> LineActivations:
        return read_kept(digest, shape) or LineActivations.empty(*shape)

    return kept(opened, ("lines", digest), begin)


def measure(opened: OpenModel, read: TokenizedLines, found: LineActivations) -> Iterator[float]:
    """Measure the other lines, batch by batch: the share of the lines that are done.

    It can be ended between two of them; a text that is measured whole is kept on disk.
    """
    known = set(found.measured.nonzero()[:, 0].tolist())
    for some, tokens in activations_by_batch(opened, read.rows, known):
        found.put(some, tokens)
        yield float(found.measured.double().mean())
    if len(known) < len(read.rows):
        keep(digest_of(opened, read), found)
