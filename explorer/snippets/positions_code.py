"""The code behind the Positions page and the stages of a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.position_passes import Permuted, longest_text
from explorer.snippets.pass_code import (
    CORE,
    input_lines,
    inputs_of,
    model_lines,
    pass_lines,
    script,
    segment_ids,
)
from models import TransformerConfig


@dataclass(frozen=True)
class SchemeAsked:
    """One scheme on screen: for which model and stack, how many positions, and how compared.

    `head` is that of biases, `width` that of sinusoids.
    """

    config: TransformerConfig
    folder: Path
    name: str
    count: int
    stack: str
    head: int
    width: int
    by_cosine: bool = False


OPEN = "from models import load_checkpoint"
TWIN = "from explorer.inference.position_passes import twin"
Place = tuple[str, int, int]
"""The part, the layer and the head that are chosen."""


def head_stages_script(forward: ForwardPass, folder: Path, at: Place) -> str:
    """One head from its queries and keys to its output."""
    part, layer, head = at
    here, config = site(part, layer), forward.config
    group = config.kv_head(head)
    bent = "" if config.attention_cap is None else f", bent within ± {config.attention_cap}"
    added = ["added = torch.zeros_like(scores)"]
    if forward.bias(part, layer, head) is not None:
        added = [f'added = seen.bias("{here}", slice({head}, {head + 1}))[0, 0]']
    return script(
        [
            *pass_lines(forward, folder),
            f'q = seen["{here}.q"][0, {head}]',
            f'k, v = (seen[f"{here}.{{name}}"][0, {group}] for name in "kv")',
            "dots = q @ k.mT",
            f'scores = seen.scores("{here}", head={head})[0]  # times the scale{bent}',
            *added,
            f'mask = seen.mask("{here}").expand(1, -1, *scores.shape)[0, 0]',
            "masked = scores + added.masked_fill(~mask, -torch.inf)",
            f'weights = seen.weights("{here}", head={head})[0]',
            "out = weights @ v",
            "print(dots, scores, masked, weights, out)",
        ],
        CORE,
    )


def schemes(asked: Sequence[SchemeAsked]) -> str:
    """The tables or the biases of the schemes on screen; the names of the second say so."""
    lines: list[str] = []
    imports: dict[str, None] = {}
    for each, front in zip(asked, ("", "other_"), strict=False):
        made, needed, names = _scheme_lines(each, front)
        lines += [*made, *([f"print({', '.join(names)})"] if names else [])]
        imports |= dict.fromkeys(needed)
    return script(lines, *imports)


def _scheme_lines(asked: SchemeAsked, front: str) -> tuple[list[str], list[str], list[str]]:
    """Lines, imports, and what the lines make."""
    config, name, count, head = asked.config, asked.name, asked.count, asked.head
    own = name == config.positions
    places = f"places = torch.arange({count})"
    found = [*model_lines(asked.folder), f"positions = model.{asked.stack}.positions"]
    table, products = f"{front}table", f"{front}products"
    compared = [f"{products} = {table} @ {table}.T"]
    if asked.by_cosine:
        products = f"{front}cosines"
        unit = f"torch.nn.functional.normalize({table}, dim=-1)"
        compared = [f"{front}unit = {unit}", f"{products} = {front}unit @ {front}unit.T"]
    if name == "sinusoidal":
        pairs = ', "halves"' if own and config.pairs == "halves" else ""
        lines = [places, f"{table} = sinusoids(places, {asked.width}{pairs})", *compared]
        return lines, ["from models.positional import sinusoids"], [table, products]
    if name == "learned":
        rows = f"{table} = positions.table.weight.detach()[positions.offset :][:{count}]"
        return [*found, rows, *compared], [OPEN], [table, products]
    if name == "rotary":
        width = config.rotary_width - config.rotary_width % 2
        given = f"{width}, {config.rope_theta}, {config.pairs or 'halves'!r}"
        made = found if own else [f"positions = RotaryPositions({given})"]
        ones = f"{table} = positions.rotation(places)(torch.ones(1, 1, {count}, {width}))[0, 0]"
        load = OPEN if own else "from models.rotary import RotaryPositions"
        return [*made, places, ones, *compared], [load], [table, products]
    products = f"{front}products"
    bias = [places, f"{products} = positions.bias(places, places).detach()[0, {head}]"]
    if name == "alibi":
        made = [f"positions = AlibiPositions({config.n_heads})"]
        return [*made, *bias], ["from models.position_biases import AlibiPositions"], [products]
    if name == "relative" and own:
        return [*found, *bias], [OPEN], [products]
    if name == "relative":
        causal = asked.stack != "encoder" and config.kind != "encoder"
        sizes = f"{config.n_heads}, {config.n_buckets}, {config.max_distance}, {causal}"
        lines = [
            f"positions = RelativePositions({sizes})",
            places,
            f"{products} = positions.buckets(places[None] - places[:, None])  # which bucket",
        ]
        return lines, ["from models.position_biases import RelativePositions"], [products]
    return [], [], []


def doubled(width: int, places: int, offset: int) -> str:
    """Both tables and their measurements."""
    return script(
        [
            f"right, wrong = right_and_doubled({width}, {places}, {offset})",
            "for each in (right, wrong):",
            "    print(each.first, each.still, each.spread)",
        ],
        "from explorer.analysis.position_experiments import right_and_doubled",
    )


def order(found: Permuted, folder: Path, name: str, own: str, at: Place) -> str:
    """The head over the tokens in the new order, in this scheme."""
    part, layer, head = at
    lines = pass_lines(found.after, folder)
    if name != own:
        made = f"model = twin(model, {name!r}, {longest_text(found.before)})"
        lines.insert(2, f"{made}  # the same weights in another scheme")
    return script(
        [
            *lines,
            f'weights = seen.weights("{site(part, layer)}", head={head})[0]',
            "print(weights)  # in the new order, tokens are not put back here",
        ],
        CORE,
        *([] if name == own else [TWIN]),
    )


def longer(forward: ForwardPass, folder: Path, length: int, name: str, at: Place) -> str:
    """The effective number of keys per query, in a text beyond the trained length."""
    part, layer, head = at
    given = list(inputs_of(forward))
    typed = [place for place, token in enumerate(forward.tokens) if not token.special]
    first, last = (typed[0], typed[-1] + 1) if typed else (0, len(forward.tokens))
    room = length - first - (len(forward.tokens) - last)
    times = room // (last - first) + 1
    segments = segment_ids(forward)
    repeated = [
        f"{row} = torch.cat(({row}[:, :{first}], {row}[:, {first}:{last}].repeat(1, {times})"
        f"[:, :{room}], {row}[:, {last}:]), 1)"
        for row in (given[0], *(["segments"] if segments else []))
    ]
    return script(
        [
            *model_lines(folder),
            f"model = twin(model, {name!r}, {length})  # the same weights, for a longer text",
            *input_lines([forward]),
            *([f"segments = torch.tensor([{segments}])"] if segments else []),
            *repeated,
            f"seen = trace(model, {', '.join(given)}{', segments=segments' if segments else ''})",
            f'weights = seen.weights("{site(part, layer)}", head={head})[0]',
            "entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)",
            "effective_keys = entropy.exp().detach()",
            "print(effective_keys)",
        ],
        CORE,
        TWIN,
    )
