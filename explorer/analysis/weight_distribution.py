"""All weights of every head over many lines, by decile, with examples of each decile.

The strongest cells of one text say little about a head: its behaviour on the full distribution
rarely matches what a narrow task suggests. So the weights of all visible cells of all lines are
sorted, head by head, and cut into ten parts of equally many cells. The examples of a part are at
even distances in its order. Shapes: L layers, h heads, n visible cells of all lines.
Source: HeadVis (transformer-circuits.pub/2026/headvis).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.analysis.circuits.top_lines import OF_TASK, built_in_lines
from explorer.catalog.model_descriptions import data_attribution
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPassError, encode_text, run_batch_uncached
from explorer.system.cooperative import Report, interruptible
from explorer.tasks.bundled_text import PLAYS, REVIEWS
from explorer.tasks.own_data import read_pairs

DECILES, EXAMPLES = 10, 3
MOST_BUILT_IN = 50
"""Built-in lines that are read."""
SHORTEST = 30
"""Characters of a line of the plays; a shorter one may be a name."""
MOST_WEIGHTS = 1 << 24
"""Of all heads together, while they are sorted: 64 MB."""


@dataclass(frozen=True, eq=False)
class WeightDeciles:
    """The deciles of every head: bounds and shares of all weight, (L, h, 10); NaN below 10 cells.

    `examples` (L, h, 10, 3, 3) are the line, query and key of three cells, `weights` (L, h, 10, 3)
    theirs. A head is `finite`, (L, h), if all its weights are. `cells` counts the visible and the
    masked ones, (L, 2).
    """

    low: Tensor
    high: Tensor
    share: Tensor
    examples: Tensor
    weights: Tensor
    finite: Tensor
    cells: Tensor


def usual_lines(opened: OpenModel) -> tuple[tuple[str, ...], str]:
    """Lines that the model should read well, and whose they are: examples of its task, the plays
    for a model that learned from them, else reviews; evenly from the whole text."""
    if opened.task is not None:
        return (built_in_lines(opened, OF_TASK) or opened.task.examples)[:MOST_BUILT_IN], ""
    source = PLAYS if data_attribution(opened.run) == PLAYS.attribution else REVIEWS
    lines = [text for text, _ in read_pairs(REVIEWS.text, ("text", "label"))[0]]
    if source is PLAYS:
        lines = [line for line in PLAYS.text.splitlines() if len(line) >= SHORTEST]
    return tuple(lines[:: len(lines) // MOST_BUILT_IN])[:MOST_BUILT_IN], source.attribution


def readable_lines(
    opened: OpenModel, lines: Sequence[str], most_tokens: int, *, own: bool
) -> dict[str, int]:
    """As many of the first lines as fit, and their numbers of tokens.

    A built-in line that the model cannot read is left out. ForwardPassError where it is the
    reader's `own`, or where not even one line fits.
    """
    config, counts = opened.config, dict[str, int]()
    heads = config.n_heads * max(config.n_layers, config.n_encoder_layers or 0)
    weights = 0
    for line in interruptible(lines):
        try:
            count = len(encode_text(opened.tokenizer, config, line))
        except ForwardPassError:
            if own:
                raise
            continue
        weights += heads * count**2
        if sum(counts.values()) + count > most_tokens or weights > MOST_WEIGHTS:
            break
        counts[line] = count
    if not counts:
        raise ForwardPassError("The first line is too long to sort its weights: shorten it.")
    return counts


def weight_deciles(
    opened: OpenModel, part: str, lines: Sequence[str], report: Report = lambda _: None
) -> WeightDeciles:
    """The deciles of all heads of this kind of attention.

    Costs a pass of each line, and sorting L × h × n numbers; `report` gets the share of lines that
    are read. ForwardPassError where a pass fails.
    """
    layers: dict[int, list[tuple[Tensor, Tensor, int]]] = {}
    for line, text in enumerate(lines):
        forward = run_batch_uncached(opened, (text,))[0]
        for layer in range(forward.part(part).layers):
            every = torch.cat([*forward.some_heads(part, layer)]).float()
            at = forward.mask(part, layer).expand(every.shape[1:]).nonzero()
            places = torch.cat([torch.full((len(at), 1), line), at], 1).int()
            cells = every[:, at[:, 0], at[:, 1]], places, every[0].numel() - len(at)
            layers.setdefault(layer, []).append(cells)
        report((line + 1) / len(lines))
    of_layers = [_deciles(*zip(*of, strict=True)) for of in interruptible(layers.values())]
    return WeightDeciles(*map(torch.stack, zip(*of_layers, strict=True)))


def _deciles(
    of_lines: Sequence[Tensor], places_of_lines: Sequence[Tensor], masked: Sequence[int]
) -> tuple[Tensor, ...]:
    """The tensors of `WeightDeciles` for the heads of a layer."""
    weights, places = torch.cat([*of_lines], 1), torch.cat([*places_of_lines])
    heads, count = weights.shape
    cells, finite = torch.tensor([count, sum(masked)]), weights.isfinite().all(-1)
    if count < DECILES:
        nothing = weights.new_full((heads, DECILES), torch.nan)
        examples = places.new_zeros(heads, DECILES, EXAMPLES, 3)
        return nothing, nothing, nothing, examples, examples[..., 0].float(), finite, cells
    ordered, order = weights.sort(dim=-1, stable=True)
    ends = torch.arange(DECILES + 1) * count // DECILES
    sums = pad(ordered.double().cumsum(-1), (1, 0))[:, ends]
    shares = (sums.diff(dim=-1) / sums[:, -1:]).float()
    even = (2 * torch.arange(EXAMPLES) + 1) * ends.diff()[:, None] // (2 * EXAMPLES)
    picked = ends[:-1, None] + even
    low, high = ordered[:, ends[:-1]], ordered[:, ends[1:] - 1]
    return low, high, shares, places[order[:, picked]], ordered[:, picked], finite, cells
