"""Ways to look at attention: keys hidden, weights cut or weighted, heads combined, words merged.

Everything is made anew from the weights of the pass, so a choice is undone by not choosing it.
The order is: keys hidden, values weighed in, heads combined, words merged, mass cut, sentences
picked. Shapes: h heads, q queries, k keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import torch
from torch import Tensor

from explorer.analysis.reweighting import (
    added,
    by_value_norm,
    cut_mass,
    hide,
    merge,
    value_and_output,
)
from explorer.analysis.word_groups import Group, sentences_of, word_tokens, words_of
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token

ALL = "All"
SENTENCES = {ALL: None, "A→A": (0, 0), "A→B": (0, 1), "B→A": (1, 0), "B→B": (1, 1)}

CLOSE = 1e-3
"""Rows that are rounded add up to one as nearly as this."""


@dataclass(frozen=True)
class Look:
    """Everything that is chosen about how a head is shown.

    `of` is "head", "mean" or "max": over the heads of the layer, or of all layers where
    `everywhere` says so. `weighting` is "plain" or "value"; `hidden` are places of keys; of
    each row the fewest keys that reach `mass` percent are kept; `words` merges the pieces of a
    word; `sentences` is a key of SENTENCES. `scaling` and `log` are about colours only: what a
    full one stands for is 1 ("one"), or the largest value of the picture ("all"), of the row
    or of the column.
    """

    of: str = "head"
    weighting: str = "plain"
    hidden: tuple[int, ...] = ()
    mass: int = 100
    words: bool = False
    sentences: str = ALL
    scaling: str = "one"
    log: bool = False
    everywhere: bool = False


@dataclass(frozen=True, eq=False)
class Shown:
    """What is drawn: `values` (rows, columns), or (h, rows, columns) of each head.

    `cut` is true where a value is left out because of the mass; `hidden` are the columns
    that were hidden, `row_groups` and `groups` the tokens behind every row and column; `unit`
    and `sentence` say a value in words; every note is a sentence for the reader.
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
    row_groups: tuple[Group, ...]
    groups: tuple[Group, ...]


def shown(
    forward: ForwardPass,
    part: str,
    layer: int,
    head: int,
    look: Look,
    report: Callable[[float], None] | None = None,
) -> Shown:
    """One picture (rows, columns): of this head, or of the heads of one or of all layers combined.

    One head after another, so memory grows with queries × keys, whatever the heads and layers.
    `report` is told the share that is done, where it takes long.
    """
    of = forward.part(part)
    layers = range(of.layers) if look.everywhere else [layer]
    heads = [head] if look.of == "head" else list(range(of.heads))
    picture, removed = None, torch.zeros(len(forward.rows(part)))
    count = len(layers) * len(heads)
    for done, (each, one) in enumerate(product(layers, heads), 1):
        values, lost = _one(forward, part, each, one, look)
        removed = removed + lost / count
        if picture is None:
            picture = values
        else:
            picture = torch.maximum(picture, values) if look.of == "max" else picture + values
        if report is not None:
            report(done / count)
    assert picture is not None, "an attention has at least one head"
    if look.of == "mean":
        picture = picture / count
    return _framed(forward, part, layers, look, picture, removed, len(heads))


def each_head(
    forward: ForwardPass, part: str, layer: int, look: Look, heads: Sequence[int]
) -> Shown:
    """The same for several heads, each by itself: (h, rows, columns)."""
    made = [_one(forward, part, layer, head, look) for head in heads]
    removed = torch.stack([lost for _, lost in made]).mean(0)
    values = torch.stack([values for values, _ in made])
    return _framed(forward, part, [layer], look, values, removed, 1)


def _one(
    forward: ForwardPass, part: str, layer: int, head: int, look: Look
) -> tuple[Tensor, Tensor]:
    """One head (q, k) with its keys hidden and its values weighed in; and what each row lost."""
    values, removed = hide(forward.weights(part, layer, head), look.hidden)
    if look.weighting == "value":
        v, o_slice = value_and_output(forward, part, layer, head)
        values = by_value_norm(values, v, o_slice)
    return values, removed


def _framed(
    forward: ForwardPass,
    part: str,
    layers: Sequence[int],
    look: Look,
    values: Tensor,
    removed: Tensor,
    combined: int,
) -> Shown:
    """Words, mass and sentences, which are the same for every head; and what is said of it all."""
    rows, columns = forward.rows(part), forward.columns(part)
    allowed = reduce(torch.logical_or, (forward.mask(part, layer) for layer in layers))
    hidden = set(look.hidden)
    row_groups: tuple[Group, ...] = tuple((at,) for at in range(len(rows)))
    groups: tuple[Group, ...] = tuple((at,) for at in range(len(columns)))
    seeing = allowed.any(-1)
    empty = (values == 0).all(-1).reshape(-1, len(rows)).any(0) & seeing
    notes = _notes(look, removed[seeing], int(empty.sum()), combined, len(layers))
    if look.words:
        row_groups = words_of(rows, forward.text, forward.pair)
        groups = words_of(columns, forward.text, forward.pair)
        values = merge(values, row_groups, groups)
        allowed = added(added(allowed.float(), groups, -1), row_groups, -2) > 0
        notes.append(_merged(rows, row_groups, columns, groups))
        rows = word_tokens(rows, row_groups, forward.text, forward.pair)
        columns = word_tokens(columns, groups, forward.text, forward.pair)
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
        row_groups = tuple(row_groups[at] for at in down)
        groups = tuple(groups[at] for at in across)
    unknown = int(values.isnan().sum())
    if unknown:
        notes.append(f"{unknown:,} cells hold no number: the pass itself gave none there.")
    adds_up = look.weighting == "plain" and look.of != "max"
    if adds_up and look.mass == 100 and wanted is None:
        notes += _adds_up(values.sum(-1))
    return Shown(
        values=values,
        rows=rows,
        columns=columns,
        allowed=allowed,
        cut=cut,
        unit="weight × ‖value‖" if look.weighting == "value" else "weight",
        sentence=_cell(forward.part(part).words.cell, look),
        notes=tuple(notes),
        hidden=tuple(at for at, group in enumerate(groups) if hidden.issuperset(group)),
        row_groups=row_groups,
        groups=groups,
    )


def _adds_up(sums: Tensor) -> list[str]:
    """Whether every row adds up to one, said only where it is so; NaN is no sum."""
    is_empty, is_one = sums == 0, (sums - 1).abs() < CLOSE
    if (is_empty | is_one).all():
        return ["Every row adds up to one, but for rows that see nothing."]
    if (sums < 1 - CLOSE)[~is_empty].any():
        return ["Some rows add up to less than one: in some heads they see nothing."]
    return []


def _cell(sentence: str, look: Look) -> str:
    return sentence if look.weighting == "plain" else sentence + ", weight × length of its value"


def _notes(look: Look, removed: Tensor, empty: int, heads: int, layers: int) -> list[str]:
    notes = []
    those = f"{heads} heads of each of the {layers} layers" if look.everywhere else ""
    those = those or f"{heads} heads of this layer"
    if look.of == "mean":
        notes.append(f"The mean of the {those}.")
    if look.of == "max":
        notes.append(
            f"In each cell the largest of the {those}, so a row may add up to more than one."
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
