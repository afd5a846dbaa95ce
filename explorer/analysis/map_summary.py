"""A summary of one attention map in sentences."""

from collections.abc import Sequence

from torch import Tensor

from explorer.text.number_format import three
from explorer.text.token_labels import Label, named_at


def summary_of(
    weights: Tensor, allowed: Tensor, rows: Sequence[Label], columns: Sequence[Label], cell: str
) -> str:
    """The largest weight (q, k) and the share on the first key, over rows with a choice.

    `cell` is the sentence of a cell, with {row}, {column} and {value}. Rows with one visible key
    are left out, since their weight is 1 whatever the head does.
    """
    has_choice = allowed.sum(-1) > 1
    is_choosing = has_choice & weights.isfinite().all(-1)
    count = int(is_choosing.sum())
    if not count:
        return ""
    finite = "" if count == int(has_choice.sum()) else " and finite weights"
    of_rows = "the row" if count == 1 else f"the {count:,} rows"
    of_rows += f" with more than one visible key{finite}"
    chosen = weights[is_choosing].double()
    if not chosen.any():
        return f"Every weight of {of_rows} is 0."
    where = " where more than one key is visible" if (allowed.sum(-1) == 1).any() else ""
    return f"{_largest(chosen, is_choosing, rows, columns, cell, where)} " + _on_first_key(
        chosen, int((~allowed[is_choosing, 0]).sum()), named_at(columns, 0), of_rows
    )


def _largest(
    chosen: Tensor,
    is_choosing: Tensor,
    rows: Sequence[Label],
    columns: Sequence[Label],
    cell: str,
    where: str,
) -> str:
    place, key = divmod(int(chosen.argmax()), chosen.shape[-1])
    query = int(is_choosing.nonzero()[place])
    sentence = cell.format(
        row=named_at(rows, query), column=named_at(columns, key), value=three(float(chosen.max()))
    )
    others = int((chosen == chosen.max()).sum()) - 1
    cells = "another cell has" if others == 1 else f"{others:,} other cells have"
    return f"{sentence}, the largest weight{where}{f', which {cells} too' if others else ''}."


def _on_first_key(chosen: Tensor, masked: int, first: str, of_rows: str) -> str:
    """The share of all weight on the key in column 0, which `masked` rows mask."""
    if masked == len(chosen):
        return f"{first}, the first key, is masked in {of_rows}."
    share = three(100 * float(chosen[:, 0].sum() / chosen.sum()))
    masking = f", {masked:,} of which mask{'s' if masked == 1 else ''} it" if masked else ""
    return f"{first}, the first key, gets {share} % of the weight of {of_rows}{masking}."
