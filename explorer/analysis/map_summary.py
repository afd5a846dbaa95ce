"""What is true of one attention map, computed from it, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from explorer.text.number_format import three
from explorer.text.token_labels import Label, texts


def summary_of(
    weights: Tensor, allowed: Tensor, rows: Sequence[Label], columns: Sequence[Label], cell: str
) -> str:
    """The largest weight (q, k) and the share on the first key, of rows that have a choice.

    `cell` says a cell in words, with {row}, {column} and {value}. A row with one visible key
    says nothing, since its weight is 1 whatever the head does.
    """
    is_choosing = (allowed.sum(-1) > 1) & weights.isfinite().all(-1)
    count = int(is_choosing.sum())
    if not count:
        return ""
    chosen = weights[is_choosing].double()
    place, key = divmod(int(chosen.argmax()), chosen.shape[-1])
    query = int(is_choosing.nonzero()[place])
    row, column = texts(rows)[query], texts(columns)[key]
    said = cell.format(row=f"“{row}”", column=f"“{column}”", value=three(float(chosen.max())))
    first = texts(columns)[0]
    share = three(100 * float(chosen[:, 0].mean()))
    of_rows = "the row" if count == 1 else f"the {count:,} rows"
    return (
        f"{said}, the largest weight. “{first}”, the first key, gets {share} % of the weight of "
        f"{of_rows} with more than one visible key."
    )
