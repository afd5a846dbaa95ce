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
    finite = "" if count == int(has_choice.sum()) else ", with finite weights"
    of_rows = "the row that sees" if count == 1 else f"the {count:,} rows that see"
    of_rows += f" more than one key{finite}"
    if count == len(weights) > 1:
        of_rows = f"all {count:,} rows"
    chosen = weights[is_choosing].double()
    if not chosen.any():
        return f"Every weight of {of_rows} is 0."
    where = " where more than one key is visible" if (allowed.sum(-1) == 1).any() else ""
    place, key = divmod(int(chosen.argmax()), chosen.shape[-1])
    query = int(is_choosing.nonzero()[place])
    sentence = cell.format(
        row=named_at(rows, query), column=named_at(columns, key), value=three(float(chosen.max()))
    )
    others = int((chosen == chosen.max()).sum()) - 1
    cells = "another cell has" if others == 1 else f"{others:,} other cells have"
    too = f", which {cells} too" if others else ""
    masked, first = int((~allowed[is_choosing, 0]).sum()), f"The first key, {named_at(columns, 0)},"
    on_first_key = f"{first} is masked in {of_rows}."
    if masked < len(chosen):
        share = three(100 * float(chosen[:, 0].sum() / chosen.sum()))
        masking = f", {masked:,} of which mask{'s' if masked == 1 else ''} it" if masked else ""
        on_first_key = f"{first} gets {share} % of the weight of {of_rows}{masking}."
    return f"{sentence}, the largest weight{where}{too}. {on_first_key}"


def head_of_cell(weights: Tensor, allowed: Tensor, query: int, key: int) -> str:
    """Which head's weight on this cell most exceeds what its other queries give the same key.

    Many heads give the first key most of every row, so the largest weight alone says little about
    the query. `weights` (layers, heads, q, k) are of every head and `allowed` (layers, q, k) are
    the masks; a query on the key's own place is left out. Empty where no other query sees the key.
    """
    others = allowed[..., key].clone()  # (layers, q)
    others[:, [place for place in (query, key) if place < others.shape[1]]] = False
    column, count = weights[..., key].double(), others.sum(-1)[:, None]
    means = (column * others[:, None]).sum(-1) / count
    excess = (column[..., query] - means).nan_to_num(-1.0, neginf=-1.0)
    if not count.any():
        return ""
    layer, head = divmod(int(excess.argmax()), excess.shape[1])
    if excess[layer, head] <= 0:
        return "No head gives the pinned cell more than its other queries give that key on average."
    return (
        f"Of {excess.numel():,} heads, head {head} of layer {layer} gives the pinned cell most "
        "beyond what its other queries give the same key on average: "
        f"{three(float(column[layer, head, query]))}, against {three(float(means[layer, head]))}."
    )
