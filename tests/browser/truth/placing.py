"""What the page Positions shows: the scheme, another order, a longer text, a doubled exponent."""

from __future__ import annotations

import math

import torch

from models import Transformer, trace
from tests.browser.truth import core
from tests.browser.truth.looking import a_cell
from tests.browser.truth.screen import Claim, grid, rows, said
from tests.browser.visiting import Visitor

DOCUMENT, PLACES, OFFSET, STILL = 512, 60, 5, 0.01
LAST = "decoder.1.resid_post"


def scheme(visitor: Visitor) -> list[Claim]:
    table = torch.tensor([[core.sinusoid(p, d, 128) for d in range(128)] for p in range(48)])
    return [
        a_cell(visitor, "positions_table", table, 3, 1),
        a_cell(visitor, "products", table @ table.mT, 3, 5),
        Claim("one turn", said(visitor, r"One turn takes ([\d.]+)")[0], 2 * math.pi),
    ]


def order(visitor: Visitor) -> list[Claim]:
    """All but the start token backwards, passed, and every token put back where it stood."""
    count = core.ids().shape[1]
    places = [0, *range(count - 1, 0, -1)]
    passed = trace(core.model(), core.ids()[:, places])
    before, after = core.seen()[LAST][0].double(), passed[LAST][0, places].double()
    changes = 100 * (after - before).norm(dim=-1) / before.norm(dim=-1)
    moved = core.looking_back(core.scores_of(passed))[places][:, places]
    made = [
        Claim("the largest change", said(visitor, r"change by up to ([\d.]+) %")[0], max(changes)),
        a_cell(visitor, "order_map_0", core.weights(), 7, 6),
        a_cell(visitor, "order_map_1", moved, 2, 5),
        a_cell(visitor, "order_map_2", moved - core.weights(), 6, 2),
    ]
    for line, change, place in zip(grid(visitor), changes, places, strict=True):
        made.append(Claim(f"{line[0]} now at", line[2], place))
        made.append(Claim(f"change of {line[0]}", line[3], float(change)))
    answers = {"before": core.chances(), "in the new order": passed.output[0, -1].double()}
    heads = {
        "before": r"Its answer before\s+(.+)",
        "in the new order": r"In the new order\n+(.+\d)",
    }
    for what, given in answers.items():
        chances = given if what == "before" else given.softmax(-1)
        best = chances.topk(3)
        for shown, index, true in zip(
            said(visitor, heads[what])[0].split(", "), best.indices, best.values, strict=True
        ):
            name, _, chance = shown.rpartition(" ")
            assert name == core.label(int(index))
            made.append(Claim(f"{what}: {name}", chance, float(true)))
    return made


def longer(visitor: Visitor) -> list[Claim]:
    """The text again and again behind its start token, twice as long as the model was made for."""
    own = core.model().config
    length, typed = 2 * own.max_len, core.ids()[0, 1:].tolist()
    again = [typed[at % len(typed)] for at in range(length - 1)]
    ids = torch.tensor([[int(core.ids()[0, 0]), *again]])
    model = Transformer(own.replace(max_len=length))
    learnt = dict(core.model().named_parameters())
    assert not model.load_state_dict(learnt, strict=False).unexpected_keys
    passed = trace(model.eval(), ids)
    keys = torch.special.entr(core.looking_back(core.scores_of(passed))).sum(-1).exp()
    logits = passed.output[0].double().log_softmax(-1)
    nats = -logits[:-1].gather(-1, ids[0, 1:, None])[:, 0]
    claims = []
    tokens, made_for = said(visitor, r"again and again, (\d+) tokens in one pass; .* for (\d+)")
    claims += [Claim("tokens", tokens, length), Claim("made for", made_for, own.max_len)]
    for unit, values in (("keys", keys), ("nats", nats)):
        inside, beyond = said(visitor, rf"average ([\d.]+) {unit} up to [^,]+, ([\d.]+) beyond")
        claims.append(Claim(f"{unit}, inside", inside, float(values[: own.max_len].mean())))
        claims.append(Claim(f"{unit}, beyond", beyond, float(values[own.max_len :].mean())))
    return claims


def doubled(visitor: Visitor) -> list[Claim]:
    """Both tables at the document's width, by their formulas, number by number."""
    tables = {
        "right": [[core.sinusoid(p, d, DOCUMENT) for d in range(DOCUMENT)] for p in range(PLACES)],
        "doubled": [[_doubled(p, d) for d in range(DOCUMENT)] for p in range(PLACES)],
    }
    made = []
    for nth, (name, numbers) in enumerate(tables.items()):
        table = torch.tensor(numbers, dtype=torch.float64)
        moves = table.max(0).values - table.min(0).values
        first, still, spread = (line[1] for line in rows(visitor, nth))
        apart = (table[:-OFFSET] * table[OFFSET:]).sum(-1).std()
        made += [
            *(
                Claim(f"{name}: PE(1)[{at}]", shown, true)
                for at, (shown, true) in enumerate(zip(first.split(), numbers[1], strict=False))
            ),
            Claim(f"{name}: still", still, int((moves < STILL).sum())),
            a_cell(visitor, f"exponent_{name}", table, 3, 1),
            a_cell(visitor, f"products_{name}", table @ table.mT, 3, 5),
        ]
        if name == "doubled":
            made.append(Claim("spread", spread, float(apart)))
        else:
            assert float(apart) < 1e-12
            assert spread == "0, but for rounding"
    return made


def _doubled(position: int, dimension: int) -> float:
    """sin(p / 10000^(2i/d)), cos(p / 10000^(2(i + 1)/d)) for i = 0, 2, 4, …"""
    i = dimension - dimension % 2
    angle = position / 10_000 ** (2 * (i + dimension % 2) / DOCUMENT)
    return math.cos(angle) if dimension % 2 else math.sin(angle)
