"""The programs of all heads of a model on the lines of a text, and the loss with heads replaced.

A mixture is fitted on the first two thirds of the lines and scored on the others, on rows with two
visible keys or more. Models of two stacks are described by their encoder.
Shapes: h heads, p programs, n lines of t tokens, padding included.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import normalize

from explorer.analysis.circuits.top_lines import tokenize_lines
from explorer.analysis.program_mixtures import SetsOfPrograms, overlap
from explorer.catalog.attention_parts import Part, parts, site
from explorer.catalog.opened_model import OpenModel
from explorer.inference.core_edits import ReplaceMaps
from explorer.inference.model_inputs import ids_of, record
from explorer.inference.program_list import NAMES, PROGRAMS
from explorer.inference.results_cache import cached
from explorer.inference.token_programs import (
    LineTokens,
    Mixture,
    ProgramError,
    parsed,
    program_map,
)
from explorer.system.cooperative import Report, interruptible
from explorer.tasks import Task
from explorer.tasks.bundled_text import PLAYS
from explorer.text import TextError, Token
from explorer.text.checked_text import ForwardPassError
from explorer.text.number_format import three
from models.losses import IGNORE, cross_entropy
from models.trace import Trace, trace

SHORTEST, LONGEST, MOST_LINES = 4, 64, 24
"""Tokens of a line, of a longer one those that are read, and the lines that are read."""
SITES = ("*.positions", "*.q", "*.k", "*.mask")
FEWEST_ROWS = 0.1
"""A program says too little of a head where a smaller share of rows has a key that fits."""
ALIKE = 0.999
"""The cosine similarity of two maps that counts as the same."""
DESCRIBED, NAMED = 0.75, 0.4
"""The overlap from which on a head counts as described, and as worth a name."""
SHARES_REPLACED = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
EXAMPLES, PASSAGE = 12, 156
"""Lines of the app, and the most characters of one from a play."""
NO_LOSS = "This model predicts no next token, so there is no loss to measure."


@dataclass(frozen=True, eq=False)
class ProgramLines:
    """The lines as the model reads them; `cut` of them were longer than is read."""

    rows: tuple[tuple[Token, ...], ...]
    tokens: tuple[LineTokens, ...]
    cut: int
    part: Part
    pad: int

    @property
    def fitted(self) -> int:
        """How many lines, the first ones, are fitted; the others are scored."""
        return max(1, min(len(self.rows) - 1, round(2 / 3 * len(self.rows))))

    @property
    def n_tokens(self) -> int:
        return sum(map(len, self.rows))

    @property
    def n_scored(self) -> int:
        return sum(map(len, self.rows[self.fitted :]))

    @property
    def keep(self) -> Tensor:
        """True on tokens, False on padding, (n, t)."""
        sizes = torch.tensor([*map(len, self.rows)])
        return torch.arange(int(sizes.max())) < sizes[:, None]

    @property
    def padded(self) -> list[tuple[Token, ...]]:
        longest, pad = max(map(len, self.rows)), Token(self.pad, "", special=True)
        return [(*row, *[pad] * (longest - len(row))) for row in self.rows]

    @property
    def key(self) -> tuple[str, tuple[tuple[int, ...], ...]]:
        """Under which the passes are cached."""
        return "program lines", tuple(tuple(token.id for token in row) for row in self.rows)


@dataclass(frozen=True)
class HeadPrograms:
    """The mixture of a head, and its overlap with the head on the lines that are scored.

    `spread` is the standard deviation of the overlap over these lines. Without a row to describe,
    the mixture is empty and the overlap NaN.
    """

    layer: int
    head: int
    mixture: Mixture
    overlap: float
    spread: float

    @property
    def in_words(self) -> str:
        """The mixture, and its overlap with the spread over lines."""
        if not self.mixture:
            return "No program describes this head: its queries see at most one key."
        shares = " + ".join(f"{share:.0%} `{program}`" for program, share in self.mixture)
        spread = "" if math.isnan(self.spread) else f" ± {three(self.spread)}"
        return f"{shares}, overlap {three(self.overlap)}{spread} on held-out lines"

    @property
    def name(self) -> str:
        """What such a head is called; "" where its strongest program or its overlap give none."""
        is_enough = self.overlap >= NAMED and self.mixture[0][1] >= 0.5
        begins = (name for begin, name in NAMES.items() if self.mixture[0][0].startswith(begin))
        return next(begins, "") if is_enough else ""


@dataclass(frozen=True)
class ReplacedHeads:
    """The loss with this many heads replaced: the best described, and random ones by a mean."""

    heads: int
    loss: float
    loss_random: float


def ranked(heads: Iterable[HeadPrograms]) -> list[HeadPrograms]:
    """The heads that have a mixture, the best described first."""
    return sorted((head for head in heads if head.mixture), key=lambda head: -head.overlap)


def n_described(heads: Iterable[HeadPrograms]) -> int:
    return sum(head.overlap >= DESCRIBED for head in heads)


def example_lines(opened: OpenModel, task: Task | None = None) -> tuple[str, ...]:
    """Held-out inputs of the model's task, or passages of plays, in each third of which the first
    half occurs twice: without repeated tokens nothing shows a head that looks for them.
    """
    if (task := task or opened.task) is not None:
        rows = task.held_out_sample(8 * EXAMPLES).inputs[0].tolist()
        texts = dict.fromkeys(" ".join(task.tokenizer.decode(row).split()) for row in rows)
        long = [text for text in texts if len(opened.tokenizer.ids(text)) >= SHORTEST]
        return tuple(long[:: max(1, len(long) // EXAMPLES)][:EXAMPLES])
    lines = []
    for number in range(EXAMPLES):
        start, most = number * len(PLAYS.text) // EXAMPLES, PASSAGE // (1 + (number % 3 == 2))
        words = PLAYS.text[start : start + 2 * PASSAGE].split()[1:]
        ends = accumulate(len(word) + 1 for word in words)
        line = " ".join(word for word, end in zip(words, ends, strict=True) if end <= most)
        lines.append(line if most == PASSAGE else f"{line} {line}")
    return tuple(lines)


def read_lines(opened: OpenModel, texts: Sequence[str]) -> ProgramLines:
    """The tokens of these lines. ProgramError or TextError says why they cannot be used."""
    read = tokenize_lines(opened, tuple(texts)[:MOST_LINES])
    rows = tuple(row[:LONGEST] for row in read.rows)
    for number, row in enumerate(rows, 1):
        if len(row) < SHORTEST:
            raise ProgramError(
                f"Line {number} has {len(row)} token{'s' * (len(row) != 1)} and a line needs at "
                f"least {SHORTEST}: make it longer or leave it out."
            )
    if len(rows) < 2:
        raise ProgramError("Give at least two lines: some are fitted, and others are scored.")
    cut = sum(len(row) > LONGEST for row in read.rows)
    tokens = tuple(map(LineTokens.of, rows, read.lines))
    return ProgramLines(rows, tokens, cut, parts(opened.config)[0], opened.config.pad_id or 0)


def recorded(opened: OpenModel, lines: ProgramLines) -> Trace:
    """The queries and keys of all lines in one padded pass; cached."""

    def make() -> Trace:
        how, stacks = {"keep": lines.keep}, [lines.padded]
        if opened.config.kind == "encoder-decoder":
            how = {"source_keep": lines.keep}
            stacks.append([(Token(opened.config.bos_id or 0, ""),)] * len(lines.rows))
        passed = record(opened, *stacks, sites=SITES, read_at=slice(0, 1), **how)
        return replace(passed, model=None)  # the cache must not keep the model alive

    passed = cached(opened, lines.key, make)
    return replace(passed, model=opened.model)


def visible_of(lines: ProgramLines, passed: Trace, layer: int) -> Tensor:
    """Which keys each query of the lines may see in a layer, (n, t, t); padding sees nothing."""
    mask = passed[f"{site(lines.part.name, layer)}.mask"].expand(len(lines.rows), -1, -1, -1)[:, 0]
    return mask & lines.keep[:, None] & lines.keep[:, :, None]


def maps_of(program: str, lines: ProgramLines, visible: Tensor) -> Tensor:
    """The map of a program on every line, (n, t, t)."""
    maps = torch.zeros(visible.shape)
    for at, line in enumerate(lines.tokens):
        cells = at, slice(len(line.ids)), slice(len(line.ids))
        maps[cells] = program_map(PROGRAMS.get(program, program), line, visible[cells])
    return maps


@dataclass(frozen=True, eq=False)
class ProgramMaps:
    """The maps of some programs (p, n, t, t) under one mask, and the rows that count (n, t)."""

    names: list[str]
    maps: Tensor
    counted: Tensor
    sets: SetsOfPrograms | None
    """None where no row counts."""

    @classmethod
    def of(cls, lines: ProgramLines, visible: Tensor, names: Iterable[str]) -> "ProgramMaps":
        """Without programs like an earlier one on the fitted lines, or with few rows that fit."""
        counted, some = visible.sum(-1) > 1, list[str]()
        fitted, sizes = range(lines.fitted), [*map(len, lines.rows)]
        for name in names:
            fits = parsed(PROGRAMS.get(name, "any").partition(" else ")[0])  # a reader's own counts
            cells = ((lines.tokens[at], visible[at, : sizes[at], : sizes[at]]) for at in fitted)
            rows = torch.cat([(fits(line, seen) * seen).sum(-1) > 0 for line, seen in cells])
            some += [name] * bool(rows.float().mean() >= FEWEST_ROWS)
        if not (counted[: lines.fitted].any() and counted[lines.fitted :].any()):
            return cls([], torch.zeros(0), counted, None)
        maps = torch.stack([maps_of(name, lines, visible) for name in some])
        cells_fitted = maps[:, : lines.fitted][:, counted[: lines.fitted]].flatten(1)
        units = normalize(cells_fitted)
        new = ~((units @ units.mT).triu(1) > ALIKE).any(0)
        names = [name for name, is_new in zip(some, new.tolist(), strict=True) if is_new]
        return cls(names, maps[new], counted, SetsOfPrograms.of(cells_fitted[new]))

    def describe(self, lines: ProgramLines, layer: int, weights: Tensor) -> list[HeadPrograms]:
        """The mixtures of the heads of a layer with these weights (h, n, t, t)."""
        if self.sets is None:
            every = range(len(weights))
            return [HeadPrograms(layer, head, (), math.nan, math.nan) for head in every]
        first = lines.fitted
        shares = self.sets.fit(weights[:, :first][:, self.counted[:first]].flatten(1))
        rows = self.counted[first:, :, None]
        real = weights[:, first:] * rows
        mixed = torch.einsum("hp,pntk->hntk", shares, self.maps[:, first:]) * rows
        by_line = overlap(real, mixed, (2, 3))
        spreads = by_line.std(1).tolist() if by_line.shape[1] > 1 else [math.nan] * len(weights)
        heads = []
        for head, (row, value) in enumerate(
            zip(shares, overlap(real, mixed, (1, 2, 3)), strict=True)
        ):
            order = [at for at in row.argsort(descending=True).tolist() if row[at]]
            mixture = tuple((self.names[at], float(row[at])) for at in order)
            heads.append(HeadPrograms(layer, head, mixture, float(value), spreads[head]))
        return heads


def measure_programs(
    opened: OpenModel,
    lines: ProgramLines,
    own: Iterable[str] = (),
    report: Report = lambda share: None,
) -> tuple[HeadPrograms, ...]:
    """The mixture and the overlap of every head; `own` are programs besides those of the app.

    Costs a pass over the lines, which is kept, and less than that for the mixtures.
    """
    names = dict.fromkeys((*PROGRAMS, *own))
    for name in own:
        parsed(name)
    passed, maps = recorded(opened, lines), dict[bytes, ProgramMaps]()
    heads: list[HeadPrograms] = []
    for layer in interruptible(range(lines.part.layers)):
        visible = visible_of(lines, passed, layer)
        weights = passed.weights(site(lines.part.name, layer)).float() * visible[:, None]
        if not weights.isfinite().all():
            raise ProgramError(
                f"Layer {layer} has attention scores that are not finite, so no program describes "
                "its heads: choose another model."
            )
        if (key := visible.numpy().tobytes()) not in maps:
            maps[key] = ProgramMaps.of(lines, visible, names)
        heads += maps[key].describe(lines, layer, weights.transpose(0, 1))
        report((layer + 1) / lines.part.layers)
    if not any(head.mixture for head in heads):
        raise ProgramError(
            "On these lines every query of every head sees at most one key, so there is nothing to "
            "describe: choose another model or longer lines."
        )
    return tuple(heads)


def programs_key(lines: ProgramLines, own: str = "") -> Hashable:
    """Under which the programs of all heads are cached."""
    return "programs", lines.key, own


def programs_of(opened: OpenModel) -> tuple[HeadPrograms, ...]:
    """The programs of every head on the lines of the app, cached; none where none describes it."""
    try:
        lines = read_lines(opened, example_lines(opened))
        key = programs_key(lines)
        return cached(opened, key, lambda: measure_programs(opened, lines))
    except (ForwardPassError, TextError):
        return ()


def has_loss(opened: OpenModel) -> bool:
    return (opened.config.kind, opened.config.head) == ("decoder", "language-model")


def loss_with(opened: OpenModel, lines: ProgramLines, replaced: Sequence[HeadPrograms]) -> float:
    """The mean loss per next token of the scored lines in nats, with these heads as their mixtures.

    Costs a pass over these lines, and the maps.
    """
    first, passed = lines.fitted, recorded(opened, lines)
    scored = replace(lines, rows=lines.rows[first:], tokens=lines.tokens[first:])
    ids, keep, edits = ids_of(scored.padded), scored.keep, []
    size = ids.shape[1]
    for layer in sorted({head.layer for head in replaced}):
        visible = visible_of(lines, passed, layer)[first:, :size, :size]
        heads = [head for head in replaced if head.layer == layer]
        names = dict.fromkeys(name for head in heads for name, _ in head.mixture)
        maps = {name: maps_of(name, scored, visible) for name in names}
        mixed = [
            torch.stack([share * maps[name] for name, share in head.mixture]).sum(0)
            for head in heads
        ]
        where = f"{site(lines.part.name, layer)}.weights"
        numbers = tuple(head.head for head in heads)
        edits.append(ReplaceMaps(where, numbers, torch.stack(mixed, 1)))
    labels = ids[:, 1:].masked_fill(~keep[:, 1:], IGNORE)
    read = slice(0, size - 1)
    passed = trace(opened.model, ids, keep=keep, read_at=read, sites=(), edits=edits)
    return float(cross_entropy(passed.output, labels))


def replacement_cost(opened: OpenModel, lines: ProgramLines, head: HeadPrograms) -> float:
    """What replacing this head by its mixture adds to the loss of the scored lines, in nats."""
    before = cached(opened, ("loss", *lines.key), lambda: loss_with(opened, lines, ()))
    return loss_with(opened, lines, (head,)) - before


def replacement_curve(
    opened: OpenModel,
    lines: ProgramLines,
    heads: Iterable[HeadPrograms],
    report: Report = lambda share: None,
) -> list[ReplacedHeads]:
    """The loss with no head replaced, then more and more; costs two passes for each point.

    As many random heads, the same at each call, get a uniform map.
    """
    best = ranked(heads)
    order = torch.randperm(len(best), generator=torch.Generator().manual_seed(0)).tolist()
    random = [replace(best[at], mixture=(("uniform", 1.0),)) for at in order]
    sizes = {max(1, round(share * len(best))) for share in SHARES_REPLACED} | {n_described(best), 0}
    curve = []
    for number, size in enumerate(interruptible(sorted(sizes)), 1):
        losses = (loss_with(opened, lines, some[:size]) for some in (best, random))
        curve.append(ReplacedHeads(size, *losses))
        report(number / len(sizes))
    return curve
