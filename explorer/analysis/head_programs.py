"""The programs of all heads of a model on the lines of a text, and the loss with heads replaced.

The mixture of at most three programs that describes a head is fitted by non-negative least squares
on the first two thirds of the lines and scored on the others, on rows with two visible keys or
more. Models of two stacks are described by their encoder.
Shapes: h heads, p programs, n lines of t tokens, padding included, c cells of all maps of lines.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from explorer.analysis.circuits.top_lines import tokenize_lines
from explorer.catalog.attention_parts import Part, parts, site
from explorer.catalog.opened_model import OpenModel
from explorer.inference.results_cache import cached
from explorer.inference.token_programs import (
    NAMES,
    PROGRAMS,
    LineTokens,
    Mixture,
    ProgramError,
    ReplaceMap,
    mixture_words,
    program_map,
)
from explorer.system.cooperative import Report, interruptible
from explorer.tasks import Task
from explorer.tasks.bundled_text import PLAYS
from explorer.text import TextError
from explorer.text.checked_text import ForwardPassError
from explorer.text.number_format import three
from models.losses import IGNORE, cross_entropy
from models.trace import Trace, trace

SHORTEST, LONGEST, MOST_LINES = 4, 64, 24
"""Tokens of a line, of a longer one those that are read, and the lines that are read."""
FEWEST_ROWS = 0.1
"""A program says too little of a head where a smaller share of rows has a key that fits."""
ALIKE = 0.999
"""The cosine similarity of two maps that counts as the same."""
COMPARED, SIMPLER, SMALLEST_SHARE, SINGULAR = 12, 0.005, 0.02, 1e-6
"""Of so many sets with the smallest squared errors, that with the largest overlap is taken. One
more program must add this overlap and have this share, or no reader could see it. Sets of programs
that are alike on these lines have a smaller determinant than the last number."""
DESCRIBED, NAMED = 0.75, 0.4
"""The overlap from which on a head counts as described, and as worth a name."""
SHARES_REPLACED = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
EXAMPLES, PASSAGE = 12, 156
"""Lines of the app, and the most characters of one from a play."""
NO_LOSS = "This model predicts no next token, so there is no loss to measure."


@dataclass(frozen=True, eq=False)
class ProgramLines:
    """The lines as the model reads them: the first `fitted` are fitted, the others scored.

    `ids` are their token IDs (n, t), `IGNORE` is padding; `cut` lines were longer than is read.
    """

    tokens: tuple[LineTokens, ...]
    ids: Tensor
    fitted: int
    cut: int
    part: Part

    @property
    def keep(self) -> Tensor:
        return self.ids != IGNORE

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Under which results are cached: programs read characters, which IDs may lack."""
        characters = tuple(line.characters for line in self.tokens)
        return "program lines", tuple(map(tuple, self.ids.tolist())), characters


@dataclass(frozen=True)
class HeadPrograms:
    """The mixture of a head, and its overlap with the head on the lines that are scored.

    `spread` is the standard deviation of the overlap over these lines, NaN for a single one.
    """

    layer: int
    head: int
    mixture: Mixture
    overlap: float
    spread: float

    @property
    def in_words(self) -> str:
        shares = mixture_words(self.mixture, "`")
        spread = "" if math.isnan(self.spread) else f" ± {three(self.spread)}"
        return f"{shares}, overlap {three(self.overlap)}{spread} on held-out lines"

    @property
    def row(self) -> dict[str, Any]:
        """Of a chart or a table."""
        words = mixture_words(self.mixture)
        return {"program": self.mixture[0][0], "mixture": words, "overlap": self.overlap}

    @property
    def name(self) -> str:
        """What such a head is called; "" where its strongest program or its overlap give none."""
        program, share = self.mixture[0]
        begins = (name for begin, name in NAMES.items() if program.startswith(begin))
        return next(begins, "") if self.overlap >= NAMED and share >= 0.5 else ""


def ranked(heads: Iterable[HeadPrograms]) -> list[HeadPrograms]:
    """The best described first."""
    return sorted(heads, key=lambda head: -head.overlap)


def grid(lines: ProgramLines, heads: Iterable[HeadPrograms]) -> Tensor:
    """The overlaps of all heads, (layers, h)."""
    return torch.tensor([head.overlap for head in heads]).view(-1, lines.part.heads)


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
        start = number * len(PLAYS.text) // EXAMPLES
        words = PLAYS.text[start : start + PASSAGE].split()[1:-1]
        lines.append(" ".join(words if number % 3 < 2 else 2 * words[: len(words) // 2]))
    return tuple(lines)


def read_lines(opened: OpenModel, texts: Sequence[str]) -> ProgramLines:
    """The tokens of these lines. ProgramError or TextError says why they cannot be used."""
    read = tokenize_lines(opened, tuple(texts)[:MOST_LINES])
    for number, row in enumerate(read.rows, 1):
        if len(row) < SHORTEST:
            raise ProgramError(
                f"Line {number} has {len(row)} token{'s' * (len(row) != 1)} and a line needs at "
                f"least {SHORTEST}: make it longer or leave it out."
            )
    if len(read.rows) < 2:
        raise ProgramError("Give at least two lines: some are fitted, and others are scored.")
    cut = sum(len(row) > LONGEST for row in read.rows)
    tokens = tuple(map(LineTokens.of, (row[:LONGEST] for row in read.rows), read.lines))
    ids = pad_sequence([line.ids for line in tokens], True, IGNORE)
    fitted = max(1, min(len(ids) - 1, round(2 / 3 * len(ids))))
    return ProgramLines(tokens, ids, fitted, cut, parts(opened.config)[0])


def recorded(opened: OpenModel, lines: ProgramLines) -> Trace:
    """The queries and keys of all lines in one padded pass; cached."""

    def make() -> Trace:
        stacks, how = [lines.ids.clamp(min=0)], dict[str, Any](keep=lines.keep)
        if opened.config.kind == "encoder-decoder":
            stacks.append(torch.full((len(lines.ids), 1), opened.config.bos_id or 0))
            how = {"source_keep": lines.keep}
        how |= {"sites": ("*.positions", "*.q", "*.k", "*.mask"), "read_at": slice(0, 1)}
        passed = trace(opened.model, *stacks, **how)
        return replace(passed, model=None)  # the cache must not keep the model alive

    return replace(cached(opened, lines.key, make), model=opened.model)


def visible_of(lines: ProgramLines, passed: Trace, layer: int) -> Tensor:
    """Which keys each query of the lines may see in a layer, (n, t, t); padding sees nothing."""
    mask = passed[f"{site(lines.part.name, layer)}.mask"].expand(len(lines.ids), -1, -1, -1)[:, 0]
    return mask & lines.keep[:, None] & lines.keep[:, :, None]


def maps_of(names: Sequence[str], tokens: Sequence[LineTokens], visible: Tensor) -> Tensor:
    """The maps of programs on these lines, (p, n, t, t)."""
    maps = torch.zeros(len(names), *visible.shape)
    for at, line in enumerate(tokens):
        cells = at, slice(len(line.ids)), slice(len(line.ids))
        maps[:, *cells] = torch.stack([program_map(of, line, visible[cells]) for of in names])
    return maps


def overlap(weights: Tensor, maps: Tensor, over: tuple[int, ...]) -> Tensor:
    """The IoU Σ min(a, p) / Σ max(a, p) of two maps over these dimensions; NaN if both are 0."""
    return torch.minimum(weights, maps).sum(over) / torch.maximum(weights, maps).sum(over)


def fit(maps: Tensor, weights: Tensor) -> Tensor:
    """The shares (h, p) of at most three maps (p, c) for heads with these weights (h, c).

    For one, two or three programs the least squared error has a closed form, and the best set
    without a negative share is the best mixture: so all p³ sets are tried, for all heads together.
    Shares are then scaled to sum to 1, as rows of attention do. Costs p² · c and h · p³.
    """
    gram, together = (maps @ maps.mT).double(), (maps @ weights.mT).double()
    heads, gains, shares = torch.arange(len(weights)), list[Tensor](), list[Tensor]()
    for size in range(1, min(3, len(maps)) + 1):
        members = torch.combinations(torch.arange(len(maps)), size)
        products = gram[members[:, :, None], members[:, None]]
        differ = torch.linalg.det(products) > SINGULAR * gram.diagonal()[members].prod(-1)
        members = members[differ]
        solved = torch.linalg.solve(products[differ], together[members])
        gain = (solved * together[members]).sum(1).masked_fill((solved < 0).any(1), -1.0)
        best = gain.topk(min(COMPARED, len(gain)), dim=0)
        rows = torch.zeros(*best.indices.shape, len(maps)).double()
        gains.append(best.values)
        shares.append(rows.scatter(-1, members[best.indices], solved[best.indices, :, heads]))
    best = torch.cat(gains).topk(min(COMPARED, len(torch.cat(gains))), dim=0)
    some = torch.cat(shares)[best.indices, heads].clamp(min=0)
    some *= some >= SMALLEST_SHARE * some.sum(-1, keepdim=True)
    some = normalize(some, 1, -1).float()
    overlaps = torch.stack([overlap(weights, one @ maps, (-1,)) for one in some])
    return some[(overlaps.nan_to_num() - SIMPLER * (some > 0).sum(-1)).argmax(0), heads]


def different_programs(
    lines: ProgramLines, visible: Tensor, names: Sequence[str]
) -> tuple[list[str], Tensor]:
    """Those of these programs that differ on the fitted lines, and their maps (p, n, t, t).

    Without programs of the app of which few rows fit: their other rows are those of `first`.
    """
    maps, rows = maps_of(names, lines.tokens, visible), visible[: lines.fitted].sum(-1) > 1
    fitted = maps[:, : lines.fitted][:, rows]
    fits = (fitted != fitted[names.index("first")]).any(-1).float().mean(-1) >= FEWEST_ROWS
    fits |= torch.tensor([name == "first" or name not in PROGRAMS for name in names])
    units = normalize(fitted[fits].flatten(1))
    chosen = fits.nonzero()[:, 0][~((units @ units.mT).triu(1) > ALIKE).any(0)]
    return [names[at] for at in chosen.tolist()], maps[chosen]


def _describe(
    lines: ProgramLines, layer: int, weights: Tensor, names: list[str], maps: Tensor, rows: Tensor
) -> list[HeadPrograms]:
    """The mixtures of the heads of a layer with these weights (h, n, t, t), on the rows (n, t)."""
    first = lines.fitted
    fitted = (some[:, :first][:, rows[:first]].flatten(1) for some in (maps, weights))
    shares = fit(*fitted)
    real = weights[:, first:] * rows[first:, :, None]
    mixed = torch.einsum("hp,pntk->hntk", shares, maps[:, first:]) * rows[first:, :, None]
    by_line = overlap(real, mixed, (2, 3))
    variance = (by_line - by_line.mean(1, keepdim=True)).square().sum(1) / (by_line.shape[1] - 1)
    heads = []
    for head, share in enumerate(shares):
        order = share.argsort(descending=True)[: int((share > 0).sum())].tolist()
        mixture = tuple((names[at], float(share[at])) for at in order)
        value = float(overlap(real[head], mixed[head], (0, 1, 2)))
        heads.append(HeadPrograms(layer, head, mixture, value, float(variance[head].sqrt())))
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
    names, heads = [*dict.fromkeys((*PROGRAMS, *own))], list[HeadPrograms]()
    passed, described = recorded(opened, lines), dict[bytes, tuple[list[str], Tensor]]()
    for layer in interruptible(range(lines.part.layers)):
        visible = visible_of(lines, passed, layer)
        rows = visible.sum(-1) > 1
        if not (rows[: lines.fitted].any() and rows[lines.fitted :].any()):
            raise ProgramError(
                f"On these lines every query of layer {layer} sees at most one key, so there is "
                "nothing to describe: choose another model or longer lines."
            )
        weights = passed.weights(site(lines.part.name, layer)).float() * visible[:, None]
        if not weights.isfinite().all():
            raise ProgramError(
                f"Layer {layer} has attention scores that are not finite, so no program describes "
                "its heads: choose another model."
            )
        if (key := visible.numpy().tobytes()) not in described:
            described[key] = different_programs(lines, visible, names)
        heads += _describe(lines, layer, weights.transpose(0, 1), *described[key], rows)
        report((layer + 1) / lines.part.layers)
    return tuple(heads)


def overlaps_of(opened: OpenModel, lines: ProgramLines, program: str) -> Tensor:
    """The overlap (layers, h) of one program alone with every head on the scored lines."""
    passed, scored, rows = recorded(opened, lines), slice(lines.fitted, None), list[Tensor]()
    for layer in interruptible(range(lines.part.layers)):
        visible = visible_of(lines, passed, layer)[scored]
        seen = (visible.sum(-1) > 1)[..., None]
        (drawn,) = maps_of([program], lines.tokens[scored], visible) * seen
        weights = passed.weights(site(lines.part.name, layer))[scored].float().transpose(0, 1)
        rows.append(overlap(weights * visible * seen, drawn, (1, 2, 3)))
    return torch.stack(rows)


def same_as(opened: OpenModel, lines: ProgramLines, program: str, names: Sequence[str]) -> set[str]:
    """The program, and those of these names that give the same map on the fitted lines."""
    visible = visible_of(lines, recorded(opened, lines), 0)[: lines.fitted]
    maps = maps_of([program, *names], lines.tokens[: lines.fitted], visible)
    own, *others = normalize(maps[:, visible.sum(-1) > 1].flatten(1))
    return {program, *(name for name, of in zip(names, others, strict=True) if own @ of > ALIKE)}


def programs_of(opened: OpenModel) -> tuple[HeadPrograms, ...]:
    """The programs of every head on the lines of the app, cached; none where none describes it."""
    try:
        lines = read_lines(opened, example_lines(opened))
        return cached(opened, ("programs", lines.key, ""), lambda: measure_programs(opened, lines))
    except (ForwardPassError, TextError):
        return ()


def has_loss(opened: OpenModel) -> bool:
    return (opened.config.kind, opened.config.head) == ("decoder", "language-model")


def loss_with(opened: OpenModel, lines: ProgramLines, replaced: Sequence[HeadPrograms]) -> float:
    """The mean loss per next token of the scored lines in nats, with these heads as their mixtures.

    Costs a pass over these lines, and the maps.
    """
    passed, scored, edits = recorded(opened, lines), slice(lines.fitted, None), list[ReplaceMap]()
    for layer in sorted({head.layer for head in replaced}):
        heads = [head for head in replaced if head.layer == layer]
        names = [*{name for head in heads for name, _ in head.mixture}]
        visible = visible_of(lines, passed, layer)[scored]
        maps = dict(zip(names, maps_of(names, lines.tokens[scored], visible), strict=True))
        for head in heads:
            mixed = torch.stack([share * maps[name] for name, share in head.mixture]).sum(0)
            where = f"{site(lines.part.name, layer)}.weights"
            edits.append(ReplaceMap(where, mixed, head.head))
    ids, keep = lines.ids[scored], lines.keep[scored]
    passed = trace(opened.model, ids.clamp(min=0), keep=keep, sites=(), edits=edits)
    return float(cross_entropy(passed.output[:, :-1], ids[:, 1:]))


def replacement_cost(opened: OpenModel, lines: ProgramLines, head: HeadPrograms) -> float:
    """What replacing this head by its mixture adds to the loss of the scored lines, in nats."""
    before = cached(opened, ("loss", *lines.key), lambda: loss_with(opened, lines, ()))
    return loss_with(opened, lines, (head,)) - before


def replacement_curve(
    opened: OpenModel,
    lines: ProgramLines,
    heads: Iterable[HeadPrograms],
    report: Report = lambda share: None,
) -> dict[int, tuple[float, float]]:
    """By the number of heads replaced, two losses: with the best described as their mixtures, and
    with as many random heads, the same at each call, as a uniform map; costs two passes for each.
    """
    best = ranked(heads)
    order = torch.randperm(len(best), generator=torch.Generator().manual_seed(0)).tolist()
    random = [replace(best[at], mixture=(("uniform", 1.0),)) for at in order]
    sizes = {max(1, round(share * len(best))) for share in SHARES_REPLACED} | {n_described(best), 0}
    curve = dict[int, tuple[float, float]]()
    for size in interruptible(sorted(sizes)):
        curve[size] = loss_with(opened, lines, best[:size]), loss_with(opened, lines, random[:size])
        report(len(curve) / len(sizes))
    return curve
