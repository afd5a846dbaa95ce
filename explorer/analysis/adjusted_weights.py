"""Attention weights under the display options.

Every option starts from the weights of the forward pass, which stay unchanged. They apply in this
order: keys hidden, weighted by value norms, heads combined, words merged, rows cut to their mass,
sentences picked. Shapes: h heads, q queries, k keys, D model width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product

import torch
from torch import Tensor

from explorer.analysis.residual_writes import value_writes
from explorer.analysis.word_groups import (
    Group,
    group_words,
    merged_tokens,
    sentences_of,
    sum_groups,
)
from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import Report
from explorer.text import Token

ALL = "All"
SENTENCES = {ALL: None, "A→A": (0, 0), "A→B": (0, 1), "B→A": (1, 0), "B→B": (1, 1)}

CLOSE = 1e-3
"""How far the sum of a rounded row may be from 1."""


@dataclass(frozen=True)
class DisplayOptions:
    """How a head is drawn.

    `heads` is "one", or the "mean" or "max" over the heads of the layer, or of every layer with
    `all_layers`. `weighting` is "plain" or "value" (× norm of the value); `hidden` are positions of
    keys; each row keeps the fewest keys that reach `mass` percent; `words` merges the pieces of a
    word; `sentences` is a key of SENTENCES. `scaling` and `log` change colours only: the fullest
    colour is 1 ("one"), or the largest value of the matrix ("all"), of its row or of its column.
    """

    heads: str = "one"
    weighting: str = "plain"
    hidden: tuple[int, ...] = ()
    mass: int = 100
    words: bool = False
    sentences: str = ALL
    scaling: str = "one"
    log: bool = False
    all_layers: bool = False


@dataclass(frozen=True, eq=False)
class AdjustedWeights:
    """The drawn `values` (rows, columns), or (h, rows, columns) of several heads.

    `cut` is True where a value is left out because of the mass; `hidden` are the hidden
    columns; `row_groups` and `groups` are the tokens of every row and column; `unit` and
    `sentence` describe one value; each of the `notes` is a sentence for the reader.
    """

    values: Tensor
    rows: tuple[Token, ...]
    columns: tuple[Token, ...]
    allowed: Tensor
    cut: Tensor
    row_groups: tuple[Group, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    unit: str = "weight"
    sentence: str = ""
    hidden: tuple[int, ...] = ()

    def with_notes(self, *notes: str) -> "AdjustedWeights":
        return replace(self, notes=(*self.notes, *notes))


def adjust_head(
    forward: ForwardPass,
    part: str,
    layer: int,
    head: int,
    options: DisplayOptions,
    report: Report | None = None,
) -> "AdjustedWeights":
    """One matrix (rows, columns): of this head, or of the heads of one or all layers combined.

    It reads one head after another, so memory grows with queries × keys alone. `report` is
    called with the share that is done.
    """
    of = forward.part(part)
    layers = range(of.layers) if options.all_layers else [layer]
    heads = [head] if options.heads == "one" else list(range(of.heads))
    combined, removed = None, torch.zeros(len(forward.rows(part)))
    count = len(layers) * len(heads)
    for done, place in enumerate(product(layers, heads), 1):
        values, lost = _hidden_and_weighted(forward, part, *place, options)
        removed = removed + lost / count
        if combined is None:
            combined = values
        elif options.heads == "max":
            combined = torch.maximum(combined, values)
        else:
            combined = combined + values
        if report is not None:
            report(done / count)
    assert combined is not None, "an attention has at least one head"
    if options.heads == "mean":
        combined = combined / count
    return _finished(forward, part, layers, options, combined, removed)


def adjust_heads(
    forward: ForwardPass, part: str, layer: int, options: DisplayOptions, heads: Sequence[int]
) -> "AdjustedWeights":
    """The matrices (h, rows, columns) of several heads, which are not combined."""
    by_head = [_hidden_and_weighted(forward, part, layer, head, options) for head in heads]
    removed = torch.stack([lost for _, lost in by_head]).mean(0)
    values = torch.stack([values for values, _ in by_head])
    return _finished(forward, part, [layer], options, values, removed)


def hide_keys(weights: Tensor, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Weights (…, q, k) without these keys, each row rescaled to its sum, and the removed weight.

    The second is the weight that was on the hidden keys, (…, q). A row with no other weight
    becomes all zeros.
    """
    if not keys:
        return weights, weights.new_zeros(weights.shape[:-1])
    places = torch.tensor(sorted(set(keys)), device=weights.device)
    removed = weights[..., places].sum(-1)
    left = weights.index_fill(-1, places, 0)
    total, before = left.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
    scale = torch.where(total > 0, before / total.clamp_min(torch.finfo(total.dtype).tiny), 0)
    return left * scale, removed


def keep_mass(values: Tensor, share: float) -> Tensor:
    """The fewest keys of each row that reach this share of its sum, zeros elsewhere.

    Of equal values the earlier key is kept. NaN stays and counts as 0. Values are not
    negative. Cost grows with q · k · log k.
    """
    if share >= 1:
        return values
    numbers = torch.nan_to_num(values.double(), nan=0.0)
    ordered, order = numbers.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    enough = share * numbers.sum(-1, keepdim=True)
    is_kept = torch.zeros_like(numbers, dtype=torch.bool)
    is_kept.scatter_(-1, order, before < enough * (1 - 1e-9))
    return torch.where(is_kept | values.isnan(), values, 0)


def weigh_by_value_norm(weights: Tensor, writes: Tensor) -> Tensor:
    """Every weight (q, k) times the norm of the value after the output projection: w_ij ‖v_j W_O‖.

    `writes` (k, D) are those of `value_writes`. Source: Attention is Not Only a Weight (Kobayashi
    et al. 2020), section 2.3.
    """
    return weights * writes.norm(dim=-1)


def merge_words(
    values: Tensor, row_groups: Sequence[Group], column_groups: Sequence[Group]
) -> Tensor:
    """Values (…, q, k) by group: the sum over keys, the mean over queries.

    Queries without weight are left out of the mean, so that a row still sums to 1.
    """
    summed = sum_groups(values, column_groups, -1)
    seeing = (summed != 0).any(-1, keepdim=True).to(summed.dtype)
    count = sum_groups(seeing, row_groups, -2)
    return sum_groups(summed, row_groups, -2) / count.clamp_min(1)


def _hidden_and_weighted(
    forward: ForwardPass, part: str, layer: int, head: int, options: DisplayOptions
) -> tuple[Tensor, Tensor]:
    """One head (q, k) with its keys hidden and weighted by value norms, and each row's loss."""
    values, removed = hide_keys(forward.weights(part, layer, head), options.hidden)
    if options.weighting == "value":
        values = weigh_by_value_norm(values, value_writes(forward, part, layer, head))
    return values, removed


def _finished(
    forward: ForwardPass,
    part: str,
    layers: Sequence[int],
    options: DisplayOptions,
    values: Tensor,
    removed: Tensor,
) -> "AdjustedWeights":
    """Words, mass and sentences, which are the same for every head, and the notes on everything."""
    rows, columns = forward.rows(part), forward.columns(part)
    allowed = reduce(torch.logical_or, (forward.mask(part, layer) for layer in layers))
    seeing = allowed.any(-1)
    empty = int(((values == 0).all(-1).reshape(-1, len(rows)).any(0) & seeing).sum())
    adjusted = AdjustedWeights(
        values=values,
        rows=rows,
        columns=columns,
        allowed=allowed,
        cut=torch.zeros_like(values, dtype=torch.bool),
        row_groups=tuple((at,) for at in range(len(rows))),
        groups=tuple((at,) for at in range(len(columns))),
        notes=_notes(options, removed[seeing], empty, forward.part(part).heads, len(layers)),
    )
    if options.words:
        adjusted = _by_word(adjusted, forward)
    if options.mass < 100:
        adjusted = _cut(adjusted, options.mass)
    if options.sentences != ALL:
        adjusted = _between(adjusted, options.sentences)
    if unknown := int(adjusted.values.isnan().sum()):
        adjusted = adjusted.with_notes(f"{unknown:,} cells are NaN in the forward pass itself.")
    is_sum = options.weighting == "plain" and options.heads != "max"
    if is_sum and options.mass == 100 and options.sentences == ALL:
        adjusted = adjusted.with_notes(*_sums(adjusted.values.sum(-1)))
    sentence, hidden = forward.part(part).words.cell, set(options.hidden)
    if options.weighting == "value":
        adjusted = replace(adjusted, unit="weight × ‖value‖")
        sentence += ", weight × norm of its value"
    struck = tuple(at for at, group in enumerate(adjusted.groups) if hidden.issuperset(group))
    return replace(adjusted, sentence=sentence, hidden=struck)


def _by_word(adjusted: "AdjustedWeights", forward: ForwardPass) -> "AdjustedWeights":
    typed = forward.text, forward.pair
    down, across = group_words(adjusted.rows, *typed), group_words(adjusted.columns, *typed)
    may = sum_groups(sum_groups(adjusted.allowed.float(), across, -1), down, -2) > 0
    values = merge_words(adjusted.values, down, across)
    return replace(
        adjusted,
        values=values,
        cut=torch.zeros_like(values, dtype=torch.bool),
        allowed=may,
        rows=merged_tokens(adjusted.rows, down, *typed),
        columns=merged_tokens(adjusted.columns, across, *typed),
        row_groups=down,
        groups=across,
    ).with_notes(
        f"Words: {len(adjusted.rows)} query tokens are {len(down)} words, "
        f"{len(adjusted.columns)} key tokens are {len(across)}; summed over keys, averaged over "
        "queries. A word ends at a space and at punctuation."
    )


def _cut(adjusted: "AdjustedWeights", mass: int) -> "AdjustedWeights":
    values = keep_mass(adjusted.values, mass / 100)
    cut = (adjusted.values != values) & ~adjusted.values.isnan()
    count = (values > 0).sum(-1).float()
    count = count[count > 0]
    average = f"{float(count.mean()):.3g}" if count.numel() else "no"
    return replace(adjusted, values=values, cut=cut).with_notes(
        f"Cumulative attention mass: the fewest keys of each row that reach {mass} % are shown, "
        f"{average} on average; the others are left out."
    )


def _between(adjusted: "AdjustedWeights", sentences: str) -> "AdjustedWeights":
    """The rows of one sentence of a pair and the columns of one."""
    pair = SENTENCES[sentences]
    assert pair is not None, "all sentences need no picking"
    down, across = (
        [at for at, sentence in enumerate(sentences_of(tokens)) if sentence == which]
        for tokens, which in zip((adjusted.rows, adjusted.columns), pair, strict=True)
    )
    values = adjusted.values[..., down, :][..., across]
    whole = float(adjusted.values[..., down, :].nansum())
    share = float(values.nansum()) / whole if whole > 0 else 0.0
    return replace(
        adjusted,
        values=values,
        cut=adjusted.cut[..., down, :][..., across],
        allowed=adjusted.allowed[down][:, across],
        rows=tuple(adjusted.rows[at] for at in down),
        columns=tuple(adjusted.columns[at] for at in across),
        row_groups=tuple(adjusted.row_groups[at] for at in down),
        groups=tuple(adjusted.groups[at] for at in across),
    ).with_notes(f"{sentences}: {percent(share)} of the weight of these rows is on these columns.")


def _sums(sums: Tensor) -> list[str]:
    """A sentence on the sums of the rows, where one holds; NaN is not a sum."""
    is_empty, is_one = sums == 0, (sums - 1).abs() < CLOSE
    if (is_empty | is_one).all():
        return ["Every row sums to 1" + (", except empty rows." if is_empty.any() else ".")]
    if (sums < 1 - CLOSE)[~is_empty].any():
        return ["Some rows sum to less than 1: empty rows, or rows that the model scales."]
    return []


def _notes(
    options: DisplayOptions, removed: Tensor, empty: int, heads: int, layers: int
) -> tuple[str, ...]:
    notes = []
    where = f"each of the {layers} layers" if options.all_layers and layers > 1 else "this layer"
    if options.heads == "mean":
        notes.append(f"Mean of the {heads} heads of {where}.")
    if options.heads == "max":
        notes.append(
            f"Maximum of the {heads} heads of {where} in each cell, so a row may sum to more than "
            "1."
        )
    if options.hidden:
        notes.append(
            f"Hidden: {keys_in_words(len(options.hidden))}, with "
            f"{percent(float(removed.nanmean()))} of the weight (mean over rows). Every row is "
            "rescaled without it."
        )
        if empty:
            notes.append(f"Rows whose weight was all on hidden keys: {empty}; they are left empty.")
    if options.weighting == "value":
        notes.append(
            "Each weight is multiplied by the norm of what it brings: the key's value after this "
            "head's slice of the output projection (Kobayashi et al. 2020)."
        )
    return tuple(notes)


def keys_in_words(count: int) -> str:
    """1 key, 2 keys."""
    return "1 key" if count == 1 else f"{count:,} keys"


def percent(share: float) -> str:
    """A share in whole percent, or with two digits below 1 %."""
    if share != share:
        return "an unknown share"
    size = 100 * share
    return f"{size:.0f} %" if size >= 1 or size == 0 else f"{size:.2g} %"
