"""The top-activating lines of a text for every head: one pass of a batch measures all heads.

A head has two numbers at a token: the norm of what it writes there (W_O times its output), and its
largest weight on a token other than the first. A line has the largest of each over its tokens.
The first token and special tokens count neither as queries nor as keys: attention that finds
nothing else rests there.

The disk holds only these numbers, under a digest of the model's weights and of the token IDs, so
nobody can read the text from it. Files are written atomically, and the oldest are removed when
all together are too large.
Shapes: n lines, b lines of a batch, L layers, h heads, t tokens.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
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
from explorer.inference.model_inputs import ids_of, record, segments_of
from explorer.inference.results_cache import cached
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
    """The largest of both numbers of every line and head, and at which token, (n, L, h) each."""

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
        """NaN in every line, since none is measured yet."""
        shape = lines, layers, heads
        numbers, places = torch.full(shape, torch.nan), torch.zeros(shape, dtype=torch.int16)
        return cls(numbers, places, numbers.clone(), places.clone())

    def put(self, lines: Sequence[int], activations: "TokenActivations") -> None:
        """Store the largest numbers over the tokens of these lines."""
        here = torch.tensor(lines)
        for name, values in vars(activations).items():
            largest = values.max(-1)
            getattr(self, name)[here] = largest.values.nan_to_num(nan=0.0).clamp(min=0).float()
            getattr(self, f"{name}_at")[here] = largest.indices.to(torch.int16)


@dataclass(frozen=True, eq=False)
class TokenActivations:
    """Both numbers of every head at every token, (b, L, h, t); −1 where a token does not count."""

    norm: Tensor
    weight: Tensor


def batches(opened: OpenModel, rows: Rows) -> Iterator[list[int]]:
    """The places of the lines of each batch, which are of about equal length."""
    batch, heads = list[int](), opened.config.n_heads
    equal_lengths = opened.config.pad_id is None and opened.config.kind == "encoder"
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
    opened: OpenModel, rows: Rows, measured: frozenset[int] | set[int] = frozenset()
) -> Iterator[tuple[list[int], TokenActivations]]:
    """The activations of one batch after another, without batches that are measured already.

    Costs a pass over all tokens. Padding after a line changes nothing: it is masked, or later
    than every token of a decoder.
    """
    for some in batches(opened, rows):
        if not measured.issuperset(some):
            yield some, token_activations(opened, [rows[at] for at in some])


def token_activations(opened: OpenModel, rows: Rows) -> TokenActivations:
    """Both numbers at every token of these lines; padding of shorter ones does not count."""
    padded, counts = padded_lines(opened, rows)
    tap = _ActivationTap(opened.model, counts)
    with evaluating(opened.model):
        opened.model(
            ids_of(padded), segments=segments_of(opened, padded), read_at=slice(0), tap=tap
        )
    norm, weight = (torch.stack(layers, 1) for layers in (tap.norms, tap.weights))
    uncounted = ~counts[:, None, None]
    return TokenActivations(norm.masked_fill(uncounted, -1.0), weight.masked_fill(uncounted, -1.0))


def padded_lines(opened: OpenModel, rows: Rows) -> tuple[Rows, Tensor]:
    """The lines at the length of the longest, and which of their tokens count, (b, t)."""
    longest = max(map(len, rows))
    padding = Token(opened.config.pad_id or 0, "", special=True)
    padded = [(*row, *[padding] * (longest - len(row))) for row in rows]
    counts = torch.tensor([[not token.special for token in row] for row in padded])
    counts[:, 0] = False
    return padded, counts


class _ActivationTap(RecordingTap):
    """Keeps the two numbers of each head, layer by layer, and not the tensors they come from."""

    def __init__(self, model: Transformer, counts: Tensor) -> None:
        super().__init__(("*.self_attn.head_out", "*.self_attn.weights"))
        self.norms: list[Tensor] = []
        self.weights: list[Tensor] = []
        self._model, self._counts = model, counts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self.wants(name):
            if name == "head_out":
                self.norms.append(self._norm(value))
            else:
                self.weights.append((value * self._counts[:, None, None]).amax(-1))
        return value

    def _norm(self, head_out: Tensor) -> Tensor:
        """‖W_O head_out‖, (b, h, t), by the w × w matrix W_Oᵀ W_O of each head."""
        attention = blocks_of(self._model)[int(self._prefix.split(".")[1])].self_attn
        columns = [output_columns(attention, head) for head in range(head_out.shape[1])]
        grams = torch.stack([o_proj.mT @ o_proj for o_proj in columns])
        squares = ((head_out @ grams) * head_out).sum(-1)
        return squares.clamp(min=0).sqrt()


def neuron_activations(
    opened: OpenModel, rows: Rows, layer: int, report: Callable[[float], None]
) -> tuple[Tensor, Tensor]:
    """The largest positive and negative activation of every neuron in a line, and their tokens.

    Both are (2, l, n), sizes without a sign, of a model of one stack. The first token and special
    tokens do not count. Costs a pass over all tokens.
    """
    config, done = opened.config, 0
    site = f"{config.stacks[0]}.{layer}.mlp.hidden"
    values = torch.zeros(2, len(rows), config.d_ff)
    places = torch.zeros(values.shape, dtype=torch.int16)
    for some in batches(opened, rows):
        padded, counts = padded_lines(opened, [rows[at] for at in some])
        hidden = record(opened, padded, sites=[site], read_at=slice(0))[site]
        hidden = hidden.float() * counts[..., None]
        largest = torch.stack([hidden, -hidden]).max(2)
        values[:, some], places[:, some] = largest.values, largest.indices.to(torch.int16)
        report((done := done + len(some)) / len(rows))
    return values, places


OF_TASK = "Examples of its task"
MOST_LINES = 300
"""Lines of a built-in text."""


def built_in_texts(opened: OpenModel) -> tuple[str, ...]:
    """The names of the texts for this model, its own task's first."""
    has_examples = opened.task is not None and len(opened.config.stacks) == 1
    return (*([OF_TASK] if has_examples else []), TRANSLATION, README)


def built_in_lines(opened: OpenModel, name: str) -> tuple[str, ...]:
    """The first different lines of a built-in text, without tables, code and overlong lines."""
    text = _examples(opened) if name == OF_TASK else shipped_text(name)
    rows = (row.strip() for row in text.splitlines())
    prose = (row for row in rows if row[:1].isalpha() and LINE_CHARACTERS.allows(len(row)))
    return tuple(dict.fromkeys(prose))[:MOST_LINES]


def _examples(opened: OpenModel) -> str:
    """Training inputs of the model's task, drawn with its own seed."""
    task = opened.task
    assert task is not None
    batches = (task.batch(step, task.training).inputs[0] for step in range(1, 6))
    rows = (row for batch in batches for row in batch.tolist())
    return "\n".join(task.tokenizer.decode(row) for row in rows)


SUFFIX = ".safetensors"
LAYOUT = 1
"""A new layout has every text measured again."""


@dataclass(frozen=True, eq=False)
class TokenizedLines:
    """The lines of a text as a model reads them; `cut` of them are longer than it reads."""

    lines: tuple[str, ...]
    rows: tuple[tuple[Token, ...], ...]
    cut: int


@dataclass(frozen=True)
class TopLine:
    """The place of a line in the text, its largest value, and the token that has this value."""

    line: int
    value: float
    token: int


def tokenize_lines(opened: OpenModel, lines: tuple[str, ...]) -> TokenizedLines:
    """The tokens of every line, cut to the length that the model reads; cached.

    TextError where the tokenizer fails.
    """
    return cached(opened, ("tokenized lines", lines), lambda: _tokenize(opened, lines))


def _tokenize(opened: OpenModel, lines: tuple[str, ...]) -> TokenizedLines:
    most, vocabulary = opened.config.max_len, opened.config.vocab_size
    rows = {line: opened.tokenizer.encode(line) for line in interruptible(lines)}
    rows = {line: row for line, row in rows.items() if row}
    if not rows:
        raise TextError("This model's tokenizer makes no token of these lines: try others.")
    if any(token.id >= vocabulary for row in rows.values() for token in row):
        raise TextError(
            f"These lines have tokens beyond the {vocabulary:,} that this model has: its tokenizer "
            "belongs to another model."
        )
    cut = sum(len(row) > most for row in rows.values())
    return TokenizedLines(tuple(rows), tuple(row[:most] for row in rows.values()), cut)


def digest_of(opened: OpenModel, text: TokenizedLines) -> str:
    """The name under which the activations of these lines are stored."""
    digest = hashlib.sha256(f"{LAYOUT} {opened.config} {weights_digest(opened)}".encode())
    for row in text.rows:
        # Special tokens do not count, so the digest holds which they are.
        digest.update(repr([(token.id, token.special) for token in row]).encode())
    return digest.hexdigest()


def best_lines(
    activations: LineActivations, by: str, layer: int, head: int, count: int
) -> list[TopLine]:
    """The measured lines with the largest `norm` or `weight` of one head."""
    by_line, at = getattr(activations, by), getattr(activations, f"{by}_at")
    return largest_lines(by_line[:, layer, head], at[:, layer, head], count)


def largest_lines(values: Tensor, places: Tensor, count: int) -> list[TopLine]:
    """The lines of the largest positive `values` (n,), whose tokens are `places` (n,)."""
    order = values.nan_to_num(nan=-1.0).argsort(descending=True, stable=True)[:count].tolist()
    best = [TopLine(line, float(values[line]), int(places[line])) for line in order]
    return [top for top in best if top.value > 0]


def load_activations(digest: str, shape: tuple[int, int, int]) -> LineActivations | None:
    """The activations on disk under this digest, if there are any of this shape."""
    path = activations_root() / f"{digest}{SUFFIX}"
    try:
        tensors = load(path.read_bytes())
        os.utime(path)
    except (OSError, SafetensorError):
        return None
    empty = LineActivations.empty(*shape).tensors
    is_same_shape = tensors.keys() == empty.keys() and all(
        tensors[name].shape == tensor.shape and tensors[name].dtype == tensor.dtype
        for name, tensor in empty.items()
    )
    return LineActivations(**tensors) if is_same_shape else None


def save_activations(digest: str, activations: LineActivations) -> None:
    """Write the file if there is room for it, and remove the oldest files if there are too many."""
    root, content = activations_root(), save(activations.tensors)
    if len(content) > ACTIVATIONS_KEPT.most // 4:
        return
    with suppress(OSError):  # the next search measures the lines again
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)
        if fits(root, len(content)):
            write_bytes(root / f"{digest}{SUFFIX}", content)
    sweep(root)


def sweep(root: Path) -> None:
    """Remove the files that were used longest ago, until the others fit."""
    with suppress(OSError):
        files = [(path.stat(), path) for path in root.iterdir()]
        files.sort(key=lambda file: -file[0].st_mtime)
        total = 0
        for stat, path in files:
            total += stat.st_size
            if total > ACTIVATIONS_KEPT.most:
                path.unlink(missing_ok=True)


def activations_of(opened: OpenModel, text: TokenizedLines) -> LineActivations:
    """The activations of these lines, as far as they are measured; one object for all callers."""
    layers, heads = len(blocks_of(opened.model)), opened.config.n_heads
    shape, digest = (len(text.rows), layers, heads), digest_of(opened, text)
    return cached(
        opened,
        ("lines", digest),
        lambda: load_activations(digest, shape) or LineActivations.empty(*shape),
    )


def measure(
    opened: OpenModel, text: TokenizedLines, activations: LineActivations
) -> Iterator[float]:
    """Measure the lines that are not measured yet, and yield the share of lines that are.

    The caller may stop after any batch. Once every line is measured, the numbers are saved.
    """
    measured = set(activations.measured.nonzero()[:, 0].tolist())
    for some, tokens in activations_by_batch(opened, text.rows, measured):
        activations.put(some, tokens)
        yield float(activations.measured.double().mean())
    if len(measured) < len(text.rows):
        save_activations(digest_of(opened, text), activations)
