"""The code behind the Positions page and the stages of a head."""

from __future__ import annotations

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


def scheme(
    config: TransformerConfig, folder: Path, name: str, count: int, at: Place, width: int
) -> str | None:
    """The table or the bias of one scheme at a model's sizes; None where there is neither."""
    stack, head, own = at[0].split(".")[0], at[2], name == config.positions
    places = f"places = torch.arange({count})"
    found = f"positions = model.{stack}.positions"
    products = ["products = table @ table.T", "print(table, products)"]
    if name == "sinusoidal":
        pairs = ', "halves"' if own and config.pairs == "halves" else ""
        lines = [places, f"table = sinusoids(places, {width}{pairs})", *products]
        return script(lines, "from models.positional import sinusoids")
    if name == "learned":
        table = f"table = positions.table.weight.detach()[positions.offset :][:{count}]"
        return script([*model_lines(folder), found, table, *products], OPEN)
    if name == "rotary":
        width = config.rotary_width - config.rotary_width % 2
        given = f"{width}, {config.rope_theta}, {config.pairs or 'halves'!r}"
        front = [*model_lines(folder), found] if own else [f"positions = RotaryPositions({given})"]
        ones = f"table = positions.rotation(places)(torch.ones(1, 1, {count}, {width}))[0, 0]"
        load = OPEN if own else "from models.positional import RotaryPositions"
        return script([*front, places, ones, *products], load)
    bias = [places, f"products = positions.bias(places, places).detach()[0, {head}]"]
    if name == "alibi":
        lines = [f"positions = AlibiPositions({config.n_heads})", *bias, "print(products)"]
        return script(lines, "from models.positional import AlibiPositions")
    if name == "relative" and own:
        return script([*model_lines(folder), found, *bias, "print(products)"], OPEN)
    if name == "relative":
        causal = stack != "encoder" and config.kind != "encoder"
        sizes = f"{config.n_heads}, {config.n_buckets}, {config.max_distance}, {causal}"
        return script(
            [
                f"positions = RelativePositions({sizes})",
                places,
                "products = positions.buckets(places[None] - places[:, None])",
                "print(products)  # which bucket",
            ],
            "from models.positional import RelativePositions",
        )
    return None


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
