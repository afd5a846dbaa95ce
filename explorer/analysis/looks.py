"""Ways to look at attention: keys hidden, weights cut or weighted, heads combined, words merged.

Everything is made anew from the weights of the pass, so a choice is undone by not choosing it.
The order is: keys hidden, values weighed in, heads combined, words merged, mass cut, sentences
picked. Shapes: h heads, q queries, k keys, d width of a head, D width of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.words import Group, sentences_of, word_tokens, words_of
from explorer.parts import site
from explorer.reading import Reading
from explorer.text import Token

ALL = "All"
SENTENCES = {ALL: None, "A→A": (0, 0), "A→B": (0, 1), "B→A": (1, 0), "B→B": (1, 1)}


@dataclass(frozen=True)
class Look:
    """Everything that is chosen about how a head is shown.

    `of` is "head", "mean" or "max" (over the heads of the layer); `weighting` "plain" or
    "value"; `hidden` are places of keys; of each row the fewest keys that reach `mass` percent
    are kept; `words` merges the pieces of a word; `sentences` is a key of SENTENCES. `scaling`
    and `log` are about colours only: what a full one stands for is 1 ("one"), or the largest
    value of the picture ("all"), of the row or of the column.
    """

    of: str = "head"
    weighting: str = "plain"
    hidden: tuple[int, ...] = ()
    mass: int = 100
    words: bool = False
    sentences: str = ALL
    scaling: str = "one"
    log: bool = False


@dataclass(frozen=True, eq=False)
class Shown:
    """What is drawn: `values` (rows, columns), or (h, rows, columns) of each head.

    `cut` is true where a value is left out because of the mass; `hidden` are the columns
    that were hidden, `groups` the tokens behind every column; `unit` and `sentence` say a
    value in words; every note is a sentence for the reader.
    """

    values: Tensor
    rows: tuple[Token, ...]
    columns: tuple[Token, ...]
    allowed: Tensor
    cut: Tensor
    unit: str
    sentence: str
    notes: tuple[str, ...]
    hidden: tuple[int, ...]
    groups: tuple[Group, ...]


def hide(weights: Tensor, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Weights (…, q, k) without these keys, each row scaled back to its sum; and what it lost.

    The second is the weight that was on the hidden keys, (…, q). A row that looked at
    nothing else becomes all zeros.
    """
    if not keys:
        return weights, weights.new_zeros(weights.shape[:-1])
    places = torch.tensor(sorted(set(keys)), device=weights.device)
    removed = weights[..., places].sum(-1)
    left = weights.index_fill(-1, places, 0)
    total, before = left.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
    scale = torch.where(total > 0, before / total.clamp_min(torch.finfo(total.dtype).tiny), 0)
    return left * scale, removed


def cut_mass(values: Tensor, share: float) -> Tensor:
    """The fewest keys of each row that reach this share of its sum, zeros elsewhere.

    Of equal values the earlier key is kept. What is no number stays and counts for
    nothing. Values are not negative. Cost grows with q · k · log k.
    """
    if share >= 1:
        return values
    known = torch.nan_to_num(values.double(), nan=0.0)
    ordered, order = known.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    enough = share * known.sum(-1, keepdim=True)
    kept = torch.zeros_like(known, dtype=torch.bool)
    kept.scatter_(-1, order, before < enough * (1 - 1e-9))
    return torch.where(kept | values.isnan(), values, 0)


def by_value_norm(weights: Tensor, v: Tensor, o_slice: Tensor | None = None) -> Tensor:
    """Every weight (q, k) times the length of what it brings: w_ij · ‖v_j W_O‖.

    `v` is (k, d); `o_slice` (D, d) the head's own columns of the output projection, and
    without it the length is that of v_j alone. The output's bias belongs to no key and
    is left out. Source: Attention is Not Only a Weight (Kobayashi et al. 2020), section 2.3.
    """
    brought = v if o_slice is None else v @ o_slice.mT
    return weights * brought.norm(dim=-1)


def merge(values: Tensor, row_groups: Sequence[Group], column_groups: Sequence[Group]) -> Tensor:
    """Values (…, q, k) by group: the sum over keys, the mean over queries.

    Queries that look at nothing are left out of the mean, so that a row goes on adding up to one.
    """
    summed = _added(values, column_groups, -1)
    seeing = (summed != 0).any(-1, keepdim=True).to(summed.dtype)
    count = _added(seeing, row_groups, -2)
    return _added(summed, row_groups, -2) / count.clamp_min(1)


def _added(values: Tensor, groups: Sequence[Group], dim: int) -> Tensor:
    shape = list(values.shape)
    shape[dim] = len(groups)
    owner = [number for number, group in enumerate(groups) for _ in group]
    return values.new_zeros(shape).index_add_(
        dim, torch.tensor(owner, device=values.device), values
    )


def shown(reading: Reading, part: str, layer: int, head: int, look: Look) -> Shown:
    """One picture (rows, columns): of this head, or of the heads of its layer combined.

    One head after another, so memory grows with queries × keys, whatever the heads.
    """
    heads = [head] if look.of == "head" else list(range(reading.part(part).heads))
    picture, removed = None, torch.zeros(len(reading.rows(part)))
    for each in heads:
        values, lost = _one(reading, part, layer, each, look)
        removed = removed + lost / len(heads)
        if picture is None:
            picture = values
        else:
            picture = torch.maximum(picture, values) if look.of == "max" else picture + values
    assert picture is not None, "an attention has at least one head"
    if look.of == "mean":
        picture = picture / len(heads)
    return _framed(reading, part, layer, look, picture, removed, len(heads))


def each_head(reading: Reading, part: str, layer: int, look: Look, heads: Sequence[int]) -> Shown:
    """The same for several heads, each by itself: (h, rows, columns)."""
    made = [_one(reading, part, layer, head, look) for head in heads]
    removed = torch.stack([lost for _, lost in made]).mean(0)
    values = torch.stack([values for values, _ in made])
    return _framed(reading, part, layer, look, values, removed, 1)


def _one(reading: Reading, part: str, layer: int, head: int, look: Look) -> tuple[Tensor, Tensor]:
    """One head (q, k) with its keys hidden and its values weighed in; and what each row lost."""
    values, removed = hide(reading.weights(part, layer, head), look.hidden)
    if look.weighting == "value":
        v, o_slice = value_and_output(reading, part, layer, head)
        values = by_value_norm(values, v, o_slice)
    return values, removed


def value_and_output(reading: Reading, part: str, layer: int, head: int) -> tuple[Tensor, Tensor]:
    """The head's values (k, d), of its group where they are shared, and its part of W_O (D, d)."""
    stack, kind = part.split(".")
    attention = getattr(getattr(reading.trace.model, stack).blocks[layer], kind)
    grouped = reading.trace[f"{site(part, layer)}.v"][reading.row]
    v = grouped[head * grouped.shape[0] // attention.n_heads]
    width = v.shape[-1]
    return v, attention.o_proj.weight.detach()[:, head * width : (head + 1) * width]


def _framed(
    reading: Reading,
    part: str,
    layer: int,
    look: Look,
    values: Tensor,
    removed: Tensor,
    combined: int,
) -> Shown:
    """Words, mass and sentences, which are the same for every head; and what is said of it all."""
    rows, columns = reading.rows(part), reading.columns(part)
    allowed, hidden = reading.mask(part, layer), set(look.hidden)
    row_groups: tuple[Group, ...] = tuple((at,) for at in range(len(rows)))
    groups: tuple[Group, ...] = tuple((at,) for at in range(len(columns)))
    seeing = allowed.any(-1)
    empty = (values == 0).all(-1).reshape(-1, len(rows)).any(0) & seeing
    notes = _notes(look, removed[seeing], int(empty.sum()), combined)
    if look.words:
        row_groups = words_of(rows, reading.text, reading.pair)
        groups = words_of(columns, reading.text, reading.pair)
        values = merge(values, row_groups, groups)
        allowed = _added(_added(allowed.float(), groups, -1), row_groups, -2) > 0
        notes.append(_merged(rows, row_groups, columns, groups))
        rows = word_tokens(rows, row_groups, reading.text, reading.pair)
        columns = word_tokens(columns, groups, reading.text, reading.pair)
    before = values
    values = cut_mass(values, look.mass / 100)
    cut = before != values
    cut &= ~before.isnan()
    if look.mass < 100:
        count = (values > 0).sum(-1).float()
        count = count[count > 0]
        kept = f"{float(count.mean()):.3g}" if count.numel() else "no"
        notes.append(
            f"Cut: of each row the fewest keys that reach {look.mass} % of it are shown, "
            f"{kept} on average; the others are left out."
        )
    wanted = SENTENCES[look.sentences]
    if wanted is not None:
        of_rows, of_columns = sentences_of(rows), sentences_of(columns)
        down = [at for at, sentence in enumerate(of_rows) if sentence == wanted[0]]
        across = [at for at, sentence in enumerate(of_columns) if sentence == wanted[1]]
        whole = float(values[..., down, :].nansum())
        values, cut = (each[..., down, :][..., across] for each in (values, cut))
        allowed = allowed[down][:, across]
        share = float(values.nansum()) / whole if whole > 0 else 0.0
        notes.append(
            f"{look.sentences}: {percent(share)} of what these rows give goes to these columns."
        )
        rows, columns = tuple(rows[at] for at in down), tuple(columns[at] for at in across)
        groups = tuple(groups[at] for at in across)
    unknown = int(values.isnan().sum())
    if unknown:
        notes.append(f"{unknown:,} cells hold no number: the pass itself gave none there.")
    adds_up = look.weighting == "plain" and look.of != "max"
    if adds_up and look.mass == 100 and wanted is None:
        notes.append("Every row adds up to one, but for rows that see nothing.")
    return Shown(
        values=values,
        rows=rows,
        columns=columns,
        allowed=allowed,
        cut=cut,
        unit="weight × ‖value‖" if look.weighting == "value" else "weight",
        sentence=_cell(reading.part(part).words.cell, look),
        notes=tuple(notes),
        hidden=tuple(at for at, group in enumerate(groups) if hidden.issuperset(group)),
        groups=groups,
    )


def _cell(sentence: str, look: Look) -> str:
    return sentence if look.weighting == "plain" else sentence + ", weight × length of its value"


def _notes(look: Look, removed: Tensor, empty: int, combined: int) -> list[str]:
    notes = []
    if look.of == "mean":
        notes.append(f"The mean of the {combined} heads of this layer.")
    if look.of == "max":
        notes.append(
            f"In each cell the largest of the {combined} heads of this layer, so a row may add up "
            "to more than one."
        )
    if look.hidden:
        keys = "1 key" if len(look.hidden) == 1 else f"{len(look.hidden)} keys"
        notes.append(
            f"Hidden: {keys}, with {percent(float(removed.nanmean()))} of the weight (mean over "
            "rows). It is removed, and every row is scaled back."
        )
        if empty:
            notes.append(f"Rows that looked at nothing else: {empty}. They are left empty.")
    if look.weighting == "value":
        notes.append(
            "Each weight is multiplied by the length of what it brings: the key's value after this "
            "head's slice of the output projection (Kobayashi et al. 2020)."
        )
    return notes


def _merged(
    rows: Sequence[Token],
    row_groups: Sequence[Group],
    columns: Sequence[Token],
    groups: Sequence[Group],
) -> str:
    return (
        f"Words: {len(rows)} tokens down are {len(row_groups)} words, {len(columns)} across are "
        f"{len(groups)}; summed over keys, averaged over queries. A word ends at a space and at "
        "punctuation."
    )


def percent(share: float) -> str:
    """A share as whole percent, or with three digits where that would be none."""
    if share != share:
        return "an unknown share"
    size = 100 * share
    return f"{size:.0f} %" if size >= 1 or size == 0 else f"{size:.2g} %"
