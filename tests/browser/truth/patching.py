"""What the views Causal tracing and Path patching of the page Circuits show."""

from urllib.parse import quote_plus

import torch
from torch import Tensor

from models import trace
from models.interventions import Edit, Replace
from tests.browser.truth.core import Case, tokenizer_in
from tests.browser.truth.screen import Claim, cells, said
from tests.browser.truth.steering import ANSWERS, CLEAN, CORRUPTED, NUMBER
from tests.browser.visiting import Visitor

SENDER = 0
"""A head of the first layer."""
ASKS = (
    f"model=induction&head={SENDER}&text={CLEAN.text}&corrupted={CORRUPTED.text}"
    f"&answer_token={ANSWERS[0]}&against_token={ANSWERS[1]}&circuit_view="
)
ASKS_TRACING = f"{ASKS}{quote_plus('Causal tracing')}&layer=1"
ASKS_PATHS = f"{ASKS}{quote_plus('Path patching')}&layer=0&path_reads=Keys"


def metric(case: Case, *edits: Edit) -> float:
    """The difference of the two answers' logits in a pass of its own."""
    answer, against = (case_id(each) for each in ANSWERS)
    logits = trace(case.model, case.ids, edits=edits).output[0, -1].double()
    return float(logits[answer] - logits[against])


def case_id(letter: str) -> int:
    found: int = tokenizer_in(CLEAN.folder).encode(letter)[-1].id
    return found


def tracing(visitor: Visitor) -> list[Claim]:
    """What comes back when one residual stream is the clean one, from where the texts differ."""
    first = int((CLEAN.ids != CORRUPTED.ids)[0].int().argmax())
    tokens, layers = CLEAN.ids.shape[1], CLEAN.model.config.n_layers
    begin, whole = metric(CORRUPTED), metric(CLEAN) - metric(CORRUPTED)
    share = torch.zeros(tokens - first, layers, dtype=torch.double)
    for position in range(first, tokens):
        for layer in range(layers):
            site = f"decoder.{layer}.resid_pre"
            value = CORRUPTED.seen[site].clone()
            value[0, position] = CLEAN.seen[site][0, position]
            restored = metric(CORRUPTED, Replace(site, value)) - begin
            share[position - first, layer] = restored / whole
    last = tokens - 1 - first
    visitor.drawn("traced_values")
    made = cells(visitor, "traced_values", share, (0, 0), (last, 1), (last - 1, 1))
    numbers = said(
        visitor,
        rf"Chosen: layer 1, .*: ({NUMBER}) of it .*between ({NUMBER}) logits \(corrupted\) and "
        rf"({NUMBER}) logits",
    )
    true = float(share[last, 1]), begin, begin + whole
    both = zip(numbers, true, strict=True)
    return made + [Claim(f"chosen {at}", *each) for at, each in enumerate(both)]


def paths(visitor: Visitor) -> list[Claim]:
    """What is lost where one head's keys alone read what the sender wrote of the other text."""
    config = CLEAN.model.config
    lost = wrote(CORRUPTED) - wrote(CLEAN)
    grid = torch.full((config.n_heads, config.n_layers), torch.nan, dtype=torch.double)
    site = "decoder.1.self_attn.k_input"
    for head in range(config.n_heads):
        value = CLEAN.seen[site].clone()
        value[:, head] += lost
        grid[head, 1] = metric(CLEAN) - metric(CLEAN, Replace(site, value))
    visitor.drawn("path_ends")
    return cells(visitor, "path_ends", grid, (0, 1), (1, 1))


def wrote(case: Case) -> Tensor:
    """What the sender added to the residual stream, (t, d)."""
    attention = case.model.last_stack.blocks[0].self_attn
    width = attention.d_head
    weight = attention.o_proj.weight[:, SENDER * width : (SENDER + 1) * width]
    heads = case.seen["decoder.0.self_attn.head_out"]
    written: Tensor = (heads[0, SENDER] @ weight.T).detach()
    return written
