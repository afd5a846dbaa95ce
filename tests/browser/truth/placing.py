"""What the page Positions shows: the scheme, a permutation, a longer text, a doubled exponent."""

import math

import torch
from safetensors.torch import load_file

from models import Transformer, trace
from tests.browser.truth.core import CHECKPOINTS, SHAKESPEARE, doubled, sinusoid, weights_in
from tests.browser.truth.screen import Claim, cells, grid, rows, said
from tests.browser.visiting import Visitor

DOCUMENT, PLACES, OFFSET, STILL = 512, 60, 5, 0.01
LEARNED = CHECKPOINTS / "induction-learned" / "model.safetensors"
HERE = SHAKESPEARE.site, SHAKESPEARE.head


def scheme(visitor: Visitor) -> list[Claim]:
    table = torch.tensor([[sinusoid(p, d, 128) for d in range(128)] for p in range(48)])
    return [
        *cells(visitor, "positions_table", table, (3, 1)),
        *cells(visitor, "products", table @ table.mT, (3, 5)),
        Claim("one turn", said(visitor, r"One period takes ([\d.]+)")[0], 2 * math.pi),
    ]


def two_schemes(visitor: Visitor) -> list[Claim]:
    """Sinusoids beside a trained table, which another model has, at that table's size."""
    learned = load_file(LEARNED)["decoder.positions.table.weight"].double()
    rows, width = learned.shape
    waves = torch.tensor([[sinusoid(p, d, width) for d in range(width)] for p in range(rows)])
    made, spreads = [], []
    for key, table in (("", waves.double()), ("other_", learned)):
        norms = table.norm(dim=-1)
        cosines = table @ table.mT / norms[:, None] / norms
        made += cells(visitor, f"{key}positions_table", table, (3, 1), (rows - 1, width - 1))
        made += cells(visitor, f"{key}products", cosines, (3, 5), (20, 19))
        apart = [cosines.diagonal(-offset) for offset in range(rows)]
        spreads.append(max(float(each.max() - each.min()) for each in apart))
    assert spreads[0] < 1e-5, "as the page says, it follows from the distance alone"
    said(visitor, r"(The cosine similarity follows from the distance alone\.)")
    made.append(Claim("spread", said(visitor, r"distance differ by up to ([\d.]+)")[0], spreads[1]))
    shown, first = said(visitor, r"The first (\d+) positions .* no vector for position (\d+) or")
    return [*made, Claim("shown", shown, rows), Claim("the first without", first, rows)]


def order(visitor: Visitor) -> list[Claim]:
    """All but the start token backwards, passed, and every token put back where it stood."""
    places = [0, *range(SHAKESPEARE.ids.shape[1] - 1, 0, -1)]
    passed = trace(SHAKESPEARE.model, SHAKESPEARE.ids[:, places])
    last = "decoder.1.resid_post"
    before, after = SHAKESPEARE.seen[last][0].double(), passed[last][0, places].double()
    changes = 100 * (after - before).norm(dim=-1) / before.norm(dim=-1)
    weights = SHAKESPEARE.weights
    moved = weights_in(passed, *HERE)[places][:, places]
    made = [
        Claim("the largest change", said(visitor, r"change by up to ([\d.]+) %")[0], max(changes)),
        *cells(visitor, "order_map_0", weights, (7, 6)),
        *cells(visitor, "order_map_1", moved, (2, 5)),
        *cells(visitor, "order_map_2", moved - weights, (6, 2)),
    ]
    table = grid(visitor, "from position")
    for line, change, place in zip(table, changes, places, strict=True):
        made.append(Claim(f"{line[0]} now at", line[2], place))
        made.append(Claim(f"change of {line[0]}", line[3], float(change)))
    answers = {
        r"Output, original order\s+(.+)": SHAKESPEARE.chances,
        r"Output, new order\n+(.+\d)": passed.output[0, -1].double().softmax(-1),
    }
    for heading, chances in answers.items():
        shown = said(visitor, heading)[0].split(", ")
        best = chances.topk(3)
        for each, index, true in zip(shown, best.indices, best.values, strict=True):
            name, _, chance = each.rpartition(" ")
            assert name == SHAKESPEARE.label(int(index))
            made.append(Claim(f"{heading}: {name}", chance, float(true)))
    return made


def longer(visitor: Visitor) -> list[Claim]:
    """The text again and again behind its start token, twice as long as the model was made for."""
    own, ids = SHAKESPEARE.model.config, SHAKESPEARE.ids
    length, typed = 2 * own.max_len, ids[:, 1:]
    ids = torch.cat((ids[:, :1], *[typed] * length), 1)[:, :length]
    model = Transformer(own.replace(max_len=length))
    learnt = dict(SHAKESPEARE.model.named_parameters())
    assert not model.load_state_dict(learnt, strict=False).unexpected_keys
    passed = trace(model.eval(), ids)
    logits = passed.output[0].double().log_softmax(-1)
    of_text = {
        "keys": torch.special.entr(weights_in(passed, *HERE)).sum(-1).exp(),
        "nats": -logits[:-1].gather(-1, ids[0, 1:, None])[:, 0],
    }
    tokens, made_for = said(
        visitor, r"repeated to (\d+) tokens, in one forward pass; .* length is (\d+)"
    )
    claims = [Claim("tokens", tokens, length), Claim("made for", made_for, own.max_len)]
    for unit, values in of_text.items():
        inside, beyond = said(visitor, rf"average ([\d.]+) {unit} up to [^,]+, ([\d.]+) beyond")
        claims.append(Claim(f"{unit}, inside", inside, float(values[: own.max_len].mean())))
        claims.append(Claim(f"{unit}, beyond", beyond, float(values[own.max_len :].mean())))
    return claims


def exponents(visitor: Visitor) -> list[Claim]:
    """Both tables at the document's width, by their formulas, number by number."""
    made, wrong = [], rows(visitor, nth=1)  # once the second table is there, so is the first
    right = rows(visitor)
    for name, formula, measured in [("right", sinusoid, right), ("doubled", doubled, wrong)]:
        numbers = [[formula(p, d, DOCUMENT) for d in range(DOCUMENT)] for p in range(PLACES)]
        table = torch.tensor(numbers, dtype=torch.float64)
        moves = table.max(0).values - table.min(0).values
        spread_of = float((table[:-OFFSET] * table[OFFSET:]).sum(-1).std())
        first, still, spread = (line[1] for line in measured)
        for at, (shown, true) in enumerate(zip(first.split(), numbers[1], strict=False)):
            made.append(Claim(f"{name}: PE(1)[{at}]", shown, true))
        made += [
            Claim(f"{name}: still", still, int((moves < STILL).sum())),
            *cells(visitor, f"exponent_{name}", table, (3, 1)),
            *cells(visitor, f"products_{name}", table @ table.mT, (3, 5)),
        ]
        if name == "doubled":
            made.append(Claim("spread", spread, spread_of))
        else:
            assert spread_of < 1e-12
            assert spread == "0 within rounding"
    return made
